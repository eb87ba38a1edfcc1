"""A few cells of the committed experiments, computed again: a number that has left its interval is found.

Cells are chosen by a number, such as a commit's, so that each commit looks at others. Rows that choose among learners
are left out: each of them costs as much as ten others, and the default pipeline makes them at every commit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from graphldp import methods
from graphldp.measures import measures_of
from graphldp.stages.artifacts import read_table
from graphldp.stages.compare import Difference
from graphldp.stages.experiment import cell_title, plan, run_cells
from graphldp.stages.params import Cell, Params, experiments, find, load, value_text
from graphldp.stages.tables import read_csv

__all__ = ["Spot", "choose", "look", "spots"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A cell of an experiment, and the row that is committed for it."""

    experiment: Params
    cell: Cell
    row: Mapping[str, str]

    @property
    def text(self) -> str:
        """The cell, in words."""
        return f"{self.experiment.name}: {cell_title(self.cell)}"


def spots(results: Path, datasets: Sequence[str], names: Sequence[str] | None = None) -> list[Spot]:
    """Return the cells that can be looked at: of experiments whose tables say which code made them."""
    found = []
    for name in experiments() if names is None else names:
        grid = load(find(name))
        tables = results / grid.name / "tables"
        if not (tables / "made.json").is_file():
            continue
        rows = read_csv((tables / "main.csv").read_text(encoding="utf-8"))
        for cell in grid.cells():
            recipe = methods.method(cell.method)
            if cell.dataset not in datasets or not recipe.model or recipe.learners:
                continue
            found += [Spot(experiment=grid, cell=cell, row=row) for row in rows if _same(cell, row)]
    return found


def _same(cell: Cell, row: Mapping[str, str]) -> bool:
    """Whether a committed row is the cell's."""
    places = {name: value_text(value) for name, value in cell.axes}
    there = {name: value for name, value in row.items() if "." in name and value}
    named = (row["dataset"], row["row"]) == (cell.dataset, cell.name)
    return named and there == places and math.isclose(float(row["epsilon"]), cell.epsilon)


def choose(among: Sequence[Spot], count: int, number: int) -> list[Spot]:
    """Return so many of them, by a number."""
    return Random(number).sample(list(among), min(count, len(among)))


def look(spot: Spot, data: Path, device: str = "auto") -> list[Difference]:
    """Compute a cell and return the measures that have left the interval that is committed for them."""
    what = plan(spot.experiment, data, cells=[spot.cell], device=device)
    run_cells(what, data, device)
    runs = [row for row in read_table(what.paths[0], "ldp experiment").to_pylist() if row["role"] == "final"]
    found = []
    for measure in measures_of(spot.experiment.of(spot.cell).train.task).measures:
        low, high = (spot.row.get(f"{measure.name}{end}", "") for end in ("_low", "_high"))
        value = measure.factor * sum(row[f"test_{measure.name}"] for row in runs) / len(runs)
        new = f"{value:.{measure.digits + 1}f}"
        if low and high and not float(low) <= float(new) <= float(high):
            found.append(
                Difference(
                    table=spot.experiment.name,
                    cell=cell_title(spot.cell),
                    column=measure.name,
                    old=spot.row[measure.name],
                    new=new,
                    allowed=f"{low} to {high}",
                    fails=True,
                )
            )
    return found
