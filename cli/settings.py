"""`--set key=value`: options that only some mechanisms, methods or data sets have."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from graphldp.errors import OptionError, did_you_mean, near_names

if TYPE_CHECKING:
    from graphldp.experiment.options import Further

__all__ = [
    "Search",
    "Settings",
    "axes",
    "check_keys",
    "further_of",
    "known_mechanism",
    "link_pairs",
    "mechanism_of",
    "of_mechanism",
    "parse",
    "parts",
]

Settings: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--set", help="A further option as KEY=VALUE; may be given several times.", metavar="KEY=VALUE"),
]
Search: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--search",
        help="What is searched on one axis, as KEY=VALUE,VALUE,... or a JSON list; may be given several times. Keys "
        "are learning_rate, weight_decay, dropout, steps, what --set takes, and train.KEY.",
        metavar="KEY=VALUES",
    ),
]

_GIVEN = ("epsilon", "dimensions", "low", "high")  # of a mechanism, which says itself that they are no further options
_PARTS = ("filter", "evidence", "before", "after", "tau")  # of a method, which others have options beside
_FILED = ("train", "search")  # whose keys stand in params.yaml
_WAYS = {"labels": "krr", "links": "blink"}  # an example of how each is reported


def parse(pairs: Sequence[str] | None, flag: str = "--set") -> dict[str, Any]:
    """Return the pairs as a dictionary; values are JSON where they can be read so, and text otherwise."""
    out: dict[str, Any] = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not (equals and key.strip()):
            raise OptionError(f"{flag} takes KEY=VALUE, got {pair!r}")
        if key.strip() in out:
            raise OptionError(f"{flag} gives {key.strip()!r} twice; leave one out")
        out[key.strip()] = _value(value)
    return out


def check_keys(pairs: Sequence[str], options: Mapping[str, bool], *, several: bool = False) -> None:
    """Refuse a key of `--set` that is a slip of what is given otherwise, and say how.

    `options` are the command's own, by their names without dashes, with whether each of them takes a value; `several`
    says whether it takes several mechanisms, which `--set` does not.
    """
    from graphldp.client import names, option_names
    from graphldp.points import AXES

    mechanisms = {option for name in names() for option in option_names(name)} | {"mechanism", *_GIVEN}
    axes = AXES if "search" in options else ()
    ways = {name: f"--set method.{name}=VALUE" for name in _PARTS}
    ways |= {name: f"--search {name}=VALUE" for name in axes}
    ways |= {name.replace("-", "_"): f"--{name}" + " VALUE" * valued for name, valued in options.items()}
    for pair in pairs:
        key, _, value = (part.strip() for part in pair.partition("="))
        if not key or (key in mechanisms and not (several and key == "mechanism")):
            continue
        place, dot, option = key.partition(".")
        if dot:
            if near_names(place, ["mechanism", "method", *_FILED])[:1] == ["mechanism"]:
                raise OptionError(f"--set has no {key!r}; did you mean --set {option}={value}?")
            continue
        near = near_names(key.replace("-", "_"), [*mechanisms, *ways])
        if near and (near[0] in ways or near[0] == "mechanism"):
            way = ways.get(near[0], "--mechanism VALUE")
            raise OptionError(f"--set has no {key!r}; did you mean {way.replace('VALUE', value)}?")


def mechanism_of(settings: dict[str, Any], given: str | None) -> str | None:
    """Take the mechanism out of the settings: `--set mechanism=pm` is `--mechanism pm`."""
    known_mechanism(given)
    if "mechanism" not in settings:
        return given
    found = settings.pop("mechanism")
    if given is not None:
        raise OptionError(f"the mechanism is given twice, as --mechanism {given} and with --set; leave one out")
    return str(found)


def known_mechanism(name: str | None) -> None:
    """Refuse a mechanism that there is not, before any file is missed that it would have made."""
    from graphldp.client import option_names

    if name not in (None, "none"):  # as tables write it of a row that asks nobody
        option_names(str(name))


def further_of(link_option: Sequence[str] | None = None, **given: str | float | None) -> Further:
    """Return what people are asked for beside features, from options by the names in which it is written everywhere."""
    from graphldp.experiment.options import Further

    for name, way in _WAYS.items():
        budget = given[f"epsilon_{name}"]
        how = f"goes with --{name}: how people report their {name}, for example --{name} {way}"
        if given[name] is None and isinstance(budget, float) and budget < math.inf:
            raise OptionError(f"--epsilon-{name} {budget:g} {how}")
        if name == "links" and given[name] is None and link_option:
            raise OptionError(f"--link-option {how}")
        if given[name] is not None and budget is None:
            raise OptionError(f"--{name} {given[name]} needs --epsilon-{name}: how much may be spent on {name}")
    facts: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return Further(**facts, link_options=tuple(link_pairs(link_option, facts.get("links")).items()))


def link_pairs(link_option: Sequence[str] | None, links: str | None) -> dict[str, Any]:
    """Return what `--link-option` gives, checked against what this way of reporting links has."""
    from graphldp.client.links import link_names, lookup_link
    from graphldp.experiment.options import SERVERS
    from graphldp.registry import check_options

    pairs = parse(link_option, "--link-option")
    if links in link_names():
        check_options(str(links), pairs, ("report", *SERVERS, *lookup_link(str(links)).option_names))
    return pairs


def axes(pairs: Sequence[str] | None) -> dict[str, list[Any]]:
    """Return what `--search` gives: of each key its values, from a JSON list or from text with commas."""
    out: dict[str, list[Any]] = {}
    for pair in pairs or ():
        key, equals, text = pair.partition("=")
        key = key.strip()
        if not (equals and key and text.strip()):
            raise OptionError(f"--search takes KEY=VALUE,VALUE,... or KEY=[VALUE, ...], got {pair!r}")
        if key in out:
            raise OptionError(f"--search gives {key!r} twice; leave one out")
        if text.lstrip().startswith("["):
            out[key] = _json_list(key, text)
        else:
            out[key] = [_value(part.strip()) for part in text.split(",")]
    return out


def _json_list(key: str, text: str) -> list[Any]:
    try:
        values = json.loads(text)
    except json.JSONDecodeError:
        values = None
    if not isinstance(values, list):
        raise OptionError(f"--search {key}: {text!r} is no JSON list")
    return values


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def parts(
    settings: dict[str, Any], methods: Sequence[str] = (), own: Collection[str] = ()
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the mechanism's settings, and those of the method, which are written `method.KEY`.

    A part that one of these methods has not is refused here, before any file is missed. `own` are the options of the
    training that the command itself has.
    """
    from graphldp.cli.cell import train_options
    from graphldp.methods import PREFIX, method, part_of

    for given in settings:
        place, dot, option = given.partition(".")
        filed = [one for one in near_names(place, [PREFIX.rstrip("."), *_FILED])[:1] if dot and one in _FILED]
        if filed:
            where = "this command" if option in own else "`ldp train`"
            raise OptionError(
                f"--set takes options of the mechanism, and of the method as method.KEY; {given} stands in "
                f"params.yaml, under {filed[0]}"
                + ("" if option not in train_options() else f", or is --{option.replace('_', '-')} of {where}")
            )
        if dot and not given.startswith(PREFIX) and did_you_mean(f"{place}.", [PREFIX]):
            raise OptionError(f"--set has no {given!r}; did you mean {PREFIX + option!r}?")
    changes = {key: value for name, value in settings.items() if (key := part_of(name)) is not None}
    for name in methods:
        method(name).but(changes)
    return {name: value for name, value in settings.items() if part_of(name) is None}, changes


def of_mechanism(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings of a mechanism alone, where no method makes anything of its reports."""
    options, changes = parts(settings)
    if changes:
        raise OptionError(
            f"--set takes options of the mechanism here, and method.{next(iter(changes))} is of what a server makes of "
            "reports: leave it out"
        )
    return options
