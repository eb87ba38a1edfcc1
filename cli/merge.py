"""`ldp merge`: the reports of many devices as one file, in a graph's order."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphldp.cli import console
from graphldp.cli.options import DATA, AsJson, Data, Dataset, ParquetOut

__all__ = ["register"]


def merge(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="What `ldp perturb --input` wrote on devices.", dir_okay=False, show_default=False
        ),
    ],
    dataset: Dataset,
    people: Annotated[
        Path | None,
        typer.Option(
            "--people",
            help="Among whom links were reported, as devices were told: Parquet or CSV with the column node. Needed "
            "where somebody of these is no node of the graph; what others have reported of her is left out.",
            dir_okay=False,
            show_default=False,
        ),
    ] = None,
    data: Data = DATA,
    output: ParquetOut = None,
    as_json: AsJson = False,
) -> None:
    """Put the reports of many devices into one file, in the order of a graph's nodes.

    Nothing is drawn, so nothing more is spent. All reports have to be of one collection: the same mechanism, budget,
    range and features, and one of each node. `ldp denoise` and `ldp train` take the file from its usual place.
    """
    import json

    from graphldp.stages.files.artifacts import read_meta
    from graphldp.stages.merge import merge as stage
    from graphldp.stages.merge import words

    path = stage(files, dataset, data=data, people=people, output=output)
    meta = read_meta(path, "ldp merge")
    if as_json:
        console.out.print_json(json.dumps({"path": str(path), **meta}))
        return
    console.out.print(words(path, meta), soft_wrap=True)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("merge")(merge)
