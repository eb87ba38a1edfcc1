"""`--set key=value`: options that only some mechanisms, methods or data sets have."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from graphldp.errors import OptionError

if TYPE_CHECKING:
    from graphldp.experiment.options import Further

__all__ = ["Search", "Settings", "axes", "further_of", "known_mechanism", "mechanism_of", "parse", "parts"]

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
    pairs = parse(link_option, "--link-option")
    return Further(**facts, link_options=tuple(pairs.items()))


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


def parts(settings: dict[str, Any], own: Collection[str] = ()) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the mechanism's settings, and those of the method, which are written `method.KEY`.

    `own` are the options of the training that the command itself has.
    """
    from graphldp.cli.cell import train_options
    from graphldp.methods import part_of

    for given in settings:
        place, dot, option = given.partition(".")
        if dot and place in ("train", "search"):
            where = "this command" if option in own else "`ldp train`"
            raise OptionError(
                f"--set takes options of the mechanism, and of the method as method.KEY; {given} stands in "
                f"params.yaml, under {place}"
                + ("" if option not in train_options() else f", or is --{option.replace('_', '-')} of {where}")
            )
    changes = {key: value for name, value in settings.items() if (key := part_of(name)) is not None}
    return {name: value for name, value in settings.items() if part_of(name) is None}, changes
