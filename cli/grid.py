"""`--grid FILE`: a stage for every row of a file, on one graph, in one process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from graphldp.cli import console
from graphldp.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Collection

    from graphldp.stages.grid import Made
    from graphldp.stages.grids.params import Params

__all__ = ["Grid", "alone", "grid_of", "show"]

Grid: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--grid",
        help="Do it for every row of this file (params.yaml) that is missing, or that something else made.",
        dir_okay=False,
    ),
]


def alone(ctx: typer.Context, beside: Collection[str] = ()) -> None:
    """Refuse options beside `--grid`: the file says what they would."""
    may = {"grid", "dataset", "data", "as_json", *beside}
    for name in ctx.params:
        source = ctx.get_parameter_source(name)
        if name not in may and source is not None and source.name == "COMMANDLINE":
            raise OptionError(f"--{name.replace('_', '-')} goes without --grid, whose file says it")


def grid_of(file: Path, dataset: str | None) -> tuple[Params, str]:
    """Return a file's grid and the data set to work on."""
    from graphldp.stages.grids.params import load

    grid = load(file)
    if dataset is None:
        raise OptionError(f"--grid needs --dataset: one of {', '.join(grid.datasets)}")
    if dataset not in grid.datasets:
        raise OptionError(f"{dataset!r} is no data set of {file}: {', '.join(grid.datasets)}")
    return grid, dataset


def show(made: Made, *, as_json: bool) -> None:
    """Print what was made."""
    import json

    if as_json:
        there = set(made.there)
        console.out.print_json(json.dumps([{"path": str(path), "there": path in there} for path in made.paths]))
        return
    console.out.print(made.text, soft_wrap=True)
