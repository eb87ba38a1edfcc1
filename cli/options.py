"""The options that several commands share: one name, one help text, one completion each.

Use as annotations: `def perturb(dataset: Dataset, epsilon: Epsilon, seeds: Seeds = 10) -> None`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

__all__ = [
    "DATA",
    "AsJson",
    "BatchSize",
    "ClassesFile",
    "Data",
    "Dataset",
    "Device",
    "Dimensions",
    "Epsilon",
    "Epsilons",
    "FeaturesFile",
    "Graphs",
    "Jobs",
    "MaxMemory",
    "Mechanism",
    "Mechanisms",
    "Method",
    "OneEpsilon",
    "PairedSeeds",
    "ParquetOut",
    "Processes",
    "ProtocolName",
    "ResultsFolder",
    "RootSeed",
    "Seed",
    "Seeds",
    "Space",
    "Split",
    "Strategy",
    "Task",
    "file_ending",
    "folder",
    "folder_option",
    "graph_names",
    "parquet_file",
]

DATA = Path("data")  # the default of `Data`: where the pipeline keeps its artifacts
_OTHER_FORMATS = (".csv", ".tsv", ".txt", ".json", ".yaml", ".yml", ".xlsx", ".npz", ".arrow", ".feather")
_DEVICES = ("auto", "cpu", "cuda", "mps")


def _complete(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return a completion over names that are looked up only when somebody presses Tab."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def graph_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the name of a graph: a registered one, or one that stands in the data folder."""
    from graphldp.datasets import names
    from graphldp.stages.files.paths import stored_graphs

    known = {*names(), *stored_graphs(ctx.params.get("data") or DATA)}
    return [name for name in sorted(known) if name.startswith(incomplete)]


def parquet_file(value: Path | None) -> Path | None:
    """Refuse another ending for an artifact, which is Parquet with its facts beside the columns."""
    if value is None or value.suffix.lower() == ".parquet":
        return value
    known = value.suffix.lower() in _OTHER_FORMATS
    name = value.with_suffix(".parquet") if known else value.with_name(f"{value.name}.parquet")
    raise typer.BadParameter(f"{value} is an artifact, which is Parquet: name it {name}")


def file_ending(*endings: str) -> Callable[[Path | None], Path | None]:
    """Return a check that a file's name says one of the formats in which it can be written."""

    def check(value: Path | None) -> Path | None:
        if value is not None and value.suffix.lower() not in endings:
            raise typer.BadParameter(f"{value}: what is written has the format that its name ends in, {_or(endings)}")
        return value

    return check


def folder(value: Path | None) -> Path | None:
    """Refuse a file's name where a folder is written."""
    if value is not None and value.suffix.lower() in (".parquet", ".md", ".html", *_OTHER_FORMATS):
        raise typer.BadParameter(f"{value}: several files are written into a folder: name it {value.with_suffix('')}")
    return value


def folder_option(help: str) -> Any:
    """Return the option of a folder that files are written into."""
    return typer.Option(
        "--output", "-o", help=help, show_default="nothing is written", file_okay=False, callback=folder
    )


def _or(words: Sequence[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


def _mechanisms() -> Iterable[str]:
    from graphldp.client import names

    return names()


def _link_mechanisms() -> tuple[str, ...]:
    from graphldp.experiment.options import link_ways

    return link_ways()


def _methods() -> Iterable[str]:
    from graphldp.methods import names

    return names()


def _tasks() -> Iterable[str]:
    from graphldp.measures import tasks

    return tasks()


def _protocols() -> Iterable[str]:
    from graphldp.stages.grids.protocols import protocol_names

    return protocol_names(Path("papers"))


def _device(value: str) -> str:
    if value not in _DEVICES:
        raise typer.BadParameter(f"device must be one of {', '.join(_DEVICES)}, got {value!r}")
    return value


Dataset: TypeAlias = Annotated[
    str,
    typer.Option(
        "--dataset",
        "-d",
        help="Name of the graph; `ldp list datasets` and `ldp list data` show them.",
        autocompletion=graph_names,
        show_default=False,
    ),
]
Mechanism: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--mechanism",
        "-m",
        help="What perturbs each person's features (`ldp list mechanisms`); mb, or the method's own, if left out.",
        autocompletion=_complete(_mechanisms),
        show_default=False,
    ),
]
Mechanisms: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--mechanism",
        "-m",
        help="What perturbs each person's features; several with commas.",
        autocompletion=_complete(_mechanisms),
        show_default=False,
    ),
]
Method: TypeAlias = Annotated[
    str,
    typer.Option(
        "--method",
        help="How the reports are calibrated and learned from; `ldp list methods` shows them.",
        autocompletion=_complete(_methods),
    ),
]
Epsilon: TypeAlias = Annotated[
    float,
    typer.Option(
        "--epsilon",
        "-e",
        help="The privacy budget of one person's whole row: above 0 (0 with mechanism null, inf with identity).",
        show_default=False,
    ),
]
OneEpsilon: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--epsilon",
        "-e",
        help="The privacy budget of one person's whole row: above 0 (0 with mechanism null, inf with identity).",
        show_default=False,
    ),
]
Epsilons: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--epsilon",
        "-e",
        help="The privacy budget of one person's whole row; several with commas.",
        show_default=False,
    ),
]
Labels: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--labels",
        help="How people report their labels: krr. Left out, labels are public.",
        autocompletion=_complete(lambda: ("krr",)),
        show_default=False,
    ),
]
EpsilonLabels: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--epsilon-labels",
        help="With --labels: the privacy budget of a label, beside that of --epsilon.",
        show_default=False,
    ),
]
Links: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--links",
        help="How people report to whom they are linked: rr, blink, dprr or laplace-bits; or, for comparison alone, a "
        "curator who is trusted with all links: edgerand, edgerr, lapgraph or privhrg. Left out, links are public.",
        autocompletion=_complete(_link_mechanisms),
        show_default=False,
    ),
]
EpsilonLinks: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--epsilon-links",
        help="With --links: the privacy budget of one bit of a person's list of neighbours, beside that of --epsilon.",
        show_default=False,
    ),
]
LinkOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--link-option",
        help="With --links: report=both, estimator=hard, most=1e8 (reported links at most), or the mechanism's own. "
        "May be given several times.",
        metavar="KEY=VALUE",
        show_default=False,
    ),
]
_SEEDS = "How many independent repetitions; those of --params (10 without such a file) if left out."
Seeds: TypeAlias = Annotated[int | None, typer.Option("--seeds", help=_SEEDS, min=1, show_default=False)]
PairedSeeds: TypeAlias = Annotated[int | None, typer.Option("--seeds", help=_SEEDS, min=2, show_default=False)]
Graphs: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--dataset", "-d", help="A public graph; several with commas.", show_default="cora", autocompletion=graph_names
    ),
]

ResultsFolder: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="Write a table, a page and what figures there are into this folder; nothing is written if left out.",
        file_okay=False,
        callback=folder,
        show_default=False,
    ),
]

RootSeed: TypeAlias = Annotated[int | None, typer.Option("--seed", help="The root of all randomness.", min=0)]
Seed: TypeAlias = Annotated[int, typer.Option("--seed", help="The root of all randomness of an experiment.", min=0)]
ParquetOut: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="Where to write it, as Parquet; its usual place below --data if left out.",
        dir_okay=False,
        callback=parquet_file,
        show_default=False,
    ),
]
Data: TypeAlias = Annotated[
    Path,
    typer.Option("--data", help="Folder of the artifacts.", file_okay=False),
]
FeaturesFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--features-file",
        help="The declared features of your own data, in their order: one name per line, or a Parquet or CSV file with "
        "the column feature. Triples need it, or --dimensions, to be collected.",
        dir_okay=False,
        show_default=False,
    ),
]
Dimensions: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--dimensions",
        help="The declared number N of features of your own data, where they are the numbers 0 to N-1.",
        min=1,
        show_default=False,
    ),
]
ClassesFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--classes-file",
        help="The declared classes of your own data, in their order: one name per line, or a Parquet or CSV file with "
        "the column class.",
        dir_okay=False,
        show_default=False,
    ),
]
Task: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--task",
        help="What is learned; ldp list tasks shows it.",
        autocompletion=_complete(_tasks),
    ),
]
Split: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--split",
        help="random: all people in one graph; inductive: those who are tested in a graph that training has not seen.",
        autocompletion=_complete(lambda: ("random", "inductive")),
    ),
]
Device: TypeAlias = Annotated[
    str,
    typer.Option(
        "--device", help="auto, cpu, cuda or mps.", callback=_device, autocompletion=_complete(lambda: _DEVICES)
    ),
]
BatchSize: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--batch-size",
        help="Training nodes of one update; 0, the usual, is all of them.",
        min=0,
        show_default=False,
    ),
]
MaxMemory: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--max-memory",
        help="GB that training may take beside the data, by estimate. Runs that would take more train in waves; "
        "where a single run does, in batches.",
        min=0.001,
        show_default=False,
    ),
]
Strategy: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--search-strategy",
        help="random: so many points, drawn; grid: all that there are.",
        autocompletion=_complete(lambda: ("random", "grid")),
    ),
]
Space: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--search-space",
        help="shared: every method the same; paper: what its paper searched, where it says so.",
        autocompletion=_complete(lambda: ("shared", "paper")),
    ),
]
ProtocolName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--protocol",
        help="Train, search and ask as a paper does: heterorr, ldpge, ppgnn, togl or upgnet, by the folder papers. "
        "What is said beside it counts more.",
        autocompletion=_complete(_protocols),
        show_default=False,
    ),
]
Jobs: TypeAlias = Annotated[
    int | None,
    typer.Option("--jobs", "-j", help="Work on so many cells at once; one for each processor if left out.", min=1),
]
Processes: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--processes",
        help="Share the runs between so many processes of this machine; for several machines use torchrun.",
        min=1,
        show_default=False,
    ),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for a script instead of a table.")]
