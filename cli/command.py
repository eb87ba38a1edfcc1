"""What every command has: options in groups, examples in its help, and each option once in a line."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints

from typer import TyperException
from typer.core import TyperCommand

from graphldp.errors import OptionError, near_names

__all__ = ["EXAMPLES", "PANELS", "Command", "classes", "examples"]

# In which group of a command's help an option stands; one that is not here stands under "Options".
PANELS = {
    "What is asked": (
        *("dataset", "input", "method", "mechanism", "epsilon", "m", "set", "labels", "epsilon-labels", "links"),
        *("epsilon-links", "link-option", "levels", "scores", "scores-epsilon", "secure", "by", "answers", "reports"),
        *(
            "calibrated",
            "steps",
            "task",
            "split",
            "parts",
            "public",
            "protocol",
            "grid",
            "only",
            "attributes",
            "by-level",
            "top",
            "random",
            "features",
        ),
        *("edges", "low", "high", "missing", "name", "features-file", "dimensions", "module", "property", "people"),
        *("links-file", "labels-file", "classes-file", "rho"),
        *("inputs", "samples", "all-seeds", "nodes", "pairs", "profile", "datasets", "theirs", "reading"),
    ),
    "Search": (*("search", "search-points", "search-seeds", "search-strategy", "search-space"),),
    "Training": (*("model", "hidden", "epochs", "patience", "batch-size", "references", "save-model"),),
    "Repetitions": ("seeds", "seed"),
    "Machine": (*("device", "processes", "jobs", "max-memory"),),
    "Files and output": (
        *("data", "params", "papers", "output", "results", "docs", "json", "force", "materialize", "dry", "format"),
        *("list", "check", "stale", "against", "show", "without-audit"),
    ),
}
_PANEL = {name: panel for panel, names in PANELS.items() for name in names}

# What a reader of a command's help can type at once, and what it does.
EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "download": (
        ("ldp download cora citeseer", "two public graphs"),
        ("ldp download synthetic --set nodes=500 --name small", "one that is drawn, under a name of its own"),
    ),
    "import": (
        (
            "ldp import mine --features f.csv --edges e.csv --labels l.csv --low 0 --high 1",
            "your own graph, with everybody's features",
        ),
        (
            "ldp import mine --edges e.csv --labels l.csv --features-file words.txt --low 0 --high 1",
            "a server's: what is public, and the names of the features",
        ),
    ),
    "perturb": (
        (
            "ldp perturb --input me.csv --low 0 --high 1 -e 1 --secure -o report.parquet",
            "a real report, on a device",
        ),
        ("ldp perturb -d cora -m pm -e 1 --seeds 10 --search-seeds 2", "a rehearsal on a public graph"),
    ),
    "select": (
        (
            "ldp select --reports data/perturbed/cora/pm/eps=1.parquet -o scores.parquet",
            "which features set the classes apart, by people's reports",
        ),
    ),
    "denoise": (
        ("ldp denoise -d cora -e 1", "estimates of the reports of `ldp perturb -d cora -e 1`"),
        ("ldp denoise -d mine -e 1 --reports reports.parquet", "of reports that were collected"),
    ),
    "train": (
        ("ldp train -d cora -e 1", "search, choose, and train ten final runs"),
        ("ldp train -d mine -e 1 --save-model models/mine", "and keep the models"),
    ),
    "evaluate": (("ldp evaluate", "tables, figures and page of the grid in params.yaml"),),
    "run": (
        ("ldp run -d cora -e 1", "LPGNN between its floor and its ceiling"),
        ("ldp run -d cora -e 3 --method frontier --seeds 5 --json", "another method, five runs, for a script"),
        ("ldp run -d cora -e 1 --set method.filter=hoa --search steps=2,4", "another filter, depths 2 and 4"),
    ),
    "search": (("ldp search -d cora -e 1 --search dropout=0,0.5 --search-points 8", "every trial, the best first"),),
    "split": (
        ("ldp split -d synthetic -e 4", "where four units of epsilon are best spent: on features, links or labels"),
    ),
    "experiment": (
        ("ldp experiment methods --dry", "how much is to be computed"),
        ("ldp experiment methods --only dataset=cora --only row=lpgnn,base", "a part of it"),
    ),
    "reproduce": (("ldp reproduce togl:table17", "a paper's table under its own protocol and under ours"),),
    "claims": (("ldp claims", "what the papers' texts claim, each with a verdict"),),
    "results": (("ldp results", "results/index.html, the entry to all results"),),
    "predict": (
        (
            "ldp predict models/mine --reports reports.parquet --output predictions.csv",
            "from a kept model; the file's ending decides its format",
        ),
    ),
    "merge": (("ldp merge alice.parquet bob.parquet -d mine -o reports.parquet", "in the order of the graph's nodes"),),
    "list": (("ldp list methods", "names that --method takes"), ("ldp list data", "graphs that are here")),
    "inspect": (("ldp inspect reports.parquet", "mechanism, budget, seeds, what it was made of"),),
    "ledger": (("ldp ledger reports.parquet more.parquet", "what each person has spent in all"),),
    "tables": (
        ("ldp tables --format csv", "the record, with everything that a terminal has no room for"),
        ("ldp tables --check", "what moved since the last commit"),
    ),
    "audit": (
        ("ldp audit mb pm -e 0.1,1", "two mechanisms at two budgets"),
        ("ldp audit --module mine.py:perturb -e 1", "a function of your own"),
    ),
    "calibration": (("ldp calibration -d cora -e 0.1,1 --method lpgnn,upgnet-nh", "two methods at two budgets"),),
    "attack": (
        ("ldp attack -d cora -m mb,pm -e 1,10 --seeds 3", "two mechanisms at two budgets"),
        ("ldp attack --reports data/perturbed/cora/mb/eps=1.parquet", "one artifact"),
    ),
    "links": (("ldp links -d cora -e 1,8", "every way of reporting links at two losses of a relationship"),),
    "labels": (("ldp labels -d cora -e 0.5,1,2,3", "labels as sent, the best guess, and after neighbours' answers"),),
    "influence": (("ldp influence -d cora -e 4,8", "what a model tells of links, over true and estimated graphs"),),
    "selection": (("ldp selection -d cora -m pm -e 5,10 --by fda,sma", "two rankings at two budgets"),),
}


def examples(lines: tuple[tuple[str, str], ...]) -> str:
    """Return examples as the end of a help text."""
    told = (f"`{line}`  \n{words}" for line, words in lines)  # two spaces: Markdown's line break
    return "**Examples**\n\n" + "\n\n".join(told) if lines else ""


def classes(function: Callable[..., None]) -> Callable[..., None]:
    """Let a command take classes of options: their fields stand as options in such a parameter's place."""
    parameters: list[inspect.Parameter] = []
    packed: dict[str, type[Any]] = {}
    hints = get_type_hints(function, include_extras=True)
    for name, one in inspect.signature(function).parameters.items():
        if not is_dataclass(hints[name]):
            parameters.append(one.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        packed[name] = hints[name]
        own = get_type_hints(hints[name], include_extras=True)
        for field in fields(hints[name]):
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            parameters.append(
                inspect.Parameter(
                    field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=own[field.name]
                )
            )
    parameters.sort(key=lambda one: one.default is not inspect.Parameter.empty)  # what has to be given stands first

    @wraps(function)
    def command(**given: Any) -> None:
        whole = {
            name: cls(**{field.name: given.pop(field.name) for field in fields(cls)}) for name, cls in packed.items()
        }
        function(**whole, **given)

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command


class Command(TyperCommand):
    """A command as all of ours are."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        for param in self.params:
            names = [name.removeprefix("--") for name in getattr(param, "opts", ()) if name.startswith("--")]
            panel = next((_PANEL[name] for name in names if name in _PANEL), None)
            if panel is not None:
                param.rich_help_panel = panel  # type: ignore[attr-defined]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse a line in which an option stands once: of two values, one would be lost without a word."""
        if not ctx.resilient_parsing:
            try:
                values, _, order = self.make_parser(ctx).parse_args(args=list(args))
            except TyperException as error:
                told = vars(error)
                if "possibilities" in told:  # the dashes, which all options have, make none of them near
                    known = {name.lstrip("-"): name for one in self.params for name in one.opts}
                    told["possibilities"] = [known[name] for name in near_names(told["option_name"].lstrip("-"), known)]
                raise
            for param, count in Counter(order).items():
                _once(param, count, values.get(param.name))
            asked = next((one for one in self.params if one.name in ("mechanism", "mechanisms")), None)
            if values.get("settings") and asked is not None:
                from graphldp.cli.settings import check_keys

                several = getattr(asked, "multiple", False) or asked.nargs != 1
                check_keys(values["settings"], _own(self.params), several=several)
        return super().parse_args(ctx, args)


def _own(params: Sequence[Any]) -> dict[str, bool]:
    """Return a command's options by their long names, without dashes, with whether each of them takes a value."""
    options = [one for one in params if one.param_type_name == "option" and one.name not in ("settings", "help")]
    return {name.removeprefix("--"): not one.is_flag for one in options for name in one.opts if name.startswith("--")}


def _once(param: Any, count: int, value: Any) -> None:
    """Refuse an option that stands twice, unless it takes pairs, and several numbers where one is asked for."""
    if param.param_type_name != "option" or param.is_flag or str(param.metavar).startswith("KEY="):
        return
    name = next(word for word in param.opts if word.startswith("--"))
    if count > 1 and param.multiple:
        together = ",".join(map(str, value))
        raise OptionError(f"{name} is given {count} times; several values go with commas: {name} {together}")
    if count > 1:
        raise OptionError(f"{name} is given {count} times; leave all but one out")
    if name == "--epsilon" and not param.multiple and "," in str(value):
        raise OptionError(f"{name} takes one budget here, got {value!r}; `ldp experiment` runs a grid of several")
