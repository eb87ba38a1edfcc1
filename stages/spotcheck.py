"""A few cells of what is committed, computed again: a number that has left its interval is found.

Continuous integration takes other cells at each commit, so that a change that moves a number is found without making
everything again. Rows of experiments that choose among learners are left out: each of them costs as much as ten others,
and the default pipeline makes them at every commit.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from graphldp import methods
from graphldp.measures import Measure, measures_of
from graphldp.stages.experiment import cell_title, plan, run_cells
from graphldp.stages.files.artifacts import read_meta, read_table
from graphldp.stages.files.runs import RunsMeta, final_rows
from graphldp.stages.grids.cell import Cell, value_text
from graphldp.stages.grids.params import Params, experiments, find, load
from graphldp.stages.grids.targets import PaperTarget, Profile, TargetCell, protocol_of
from graphldp.stages.pages.reproduced import Line, axes_text, lines_of, record
from graphldp.stages.pages.tables import number, read_csv
from graphldp.stages.reproduce import cell_seconds

__all__ = ["Spot", "look", "of_experiments", "of_target", "rotated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A cell, and the committed numbers that it has to come to.

    Attributes:
        title: what people call it.
        params: those that it is computed by.
        committed: by measure a number and the ends of its interval, as they are committed.
    """

    title: str
    params: Params
    cell: Cell
    committed: Mapping[str, tuple[str, str, str]]


def of_experiments(results: Path, datasets: Sequence[str], names: Sequence[str] | None = None) -> Iterator[Spot]:
    """Yield the cells of the experiments whose tables say which code made them."""
    for name in experiments() if names is None else names:
        grid = load(find(name))
        tables = results / grid.name / "tables"
        if not (tables / "made.json").is_file():
            continue
        rows = read_csv((tables / "main.csv").read_text(encoding="utf-8"))
        for cell in grid.cells():
            recipe = methods.method(cell.method)
            row = next((row for row in rows if _same(cell, row)), None)
            if row is None or cell.dataset not in datasets or not recipe.model or recipe.learners:
                continue
            found = {measure.name: _interval(row, measure.name) for measure in _measures(grid, cell)}
            known = {name: ends for name, ends in found.items() if all(ends)}
            if known:
                yield Spot(title=f"{grid.name}: {cell_title(cell)}", params=grid, cell=cell, committed=known)


def of_target(
    target: PaperTarget, profile: Profile, results: Path, papers: Path, datasets: Sequence[str]
) -> Iterator[Spot]:
    """Yield the cells of a paper's table or figure that have a committed number with an interval."""
    path = results / "reproduce" / target.slug / profile.name / "table.csv"
    if not target.trains or not path.is_file():
        return
    lines = [line for line in lines_of(path) if line.dataset in datasets]
    there = list(dict.fromkeys(line.dataset for line in lines))
    if not there:
        return
    for name, (params, made) in target.columns(profile, protocol_of(target, papers), there).items():
        column = "theirs" if target.steps else name
        for one in made:
            line = next((line for line in lines if _is_of(one, line, column, bool(target.steps))), None)
            if line is None or not all(known := _interval(record(line), column)):
                continue
            place = [line.dataset, line.row, line.place, f"epsilon {line.epsilon_text}", column]
            title = f"{target.key}: {', '.join(filter(None, place))}"
            yield Spot(title=title, params=params, cell=one.cell, committed={line.metric: known})


def _measures(grid: Params, cell: Cell) -> Sequence[Measure]:
    return measures_of(grid.of(cell).train.task).measures


def _interval(row: Mapping[str, str], column: str) -> tuple[str, str, str]:
    return row.get(column, ""), row.get(f"{column}_low", ""), row.get(f"{column}_high", "")


def _same(cell: Cell, row: Mapping[str, str]) -> bool:
    """Whether an experiment's row is the cell's."""
    places = {name: value_text(value) for name, value in cell.axes}
    there = {name: value for name, value in row.items() if "." in name and value}
    named = (row["dataset"], row["row"]) == (cell.dataset, cell.name)
    return named and there == places and math.isclose(float(row["epsilon"]), cell.epsilon)


def _is_of(made: TargetCell, line: Line, column: str, steps: bool) -> bool:
    """Whether a reproduced line is the cell's, in this column."""
    if made.asked is None or line.gain or getattr(line, column) is None:
        return False
    place = made.reading if steps else axes_text(made.cell.axes)
    label = made.asked.printed if steps else made.asked.label
    same = (line.dataset, line.row, line.place, line.epsilon_text) == (
        made.cell.dataset, label, place, number(made.cell.epsilon)
    )  # fmt: skip
    return same and (steps or column == "ours" or line.reading in ("", made.reading))


def rotated(spots: Sequence[Spot], commit: str) -> list[Spot]:
    """Return them in an order that a commit's hash decides."""
    return sorted(spots, key=lambda one: hashlib.sha256(f"{commit} {one.title}".encode()).hexdigest())


def look(spots: Sequence[Spot], data: Path, seconds: float, device: str = "auto") -> tuple[list[str], list[str]]:
    """Compute what fits in so many seconds of a core; return the titles of what was computed, and what has moved."""
    names, moved, start = [], [], time.process_time()
    for one in spots:
        left = seconds - (time.process_time() - start)
        if left <= 0:
            break
        what = plan(one.params, data, cells=[one.cell], device=device)
        if cell_seconds(one.params, one.cell, data) > left:
            continue
        run_cells(what, data, device)
        names.append(one.title)
        moved += [f"{one.title}, {text}" for text in _moved(one, what.paths[0])]
    return names, moved


def _moved(spot: Spot, path: Path) -> Iterator[str]:
    runs = final_rows(read_table(path, "ldp experiment").to_pylist())
    for measure in measures_of(RunsMeta.of(read_meta(path, "ldp experiment")).task).measures:
        if measure.name not in spot.committed:
            continue
        text, low, high = spot.committed[measure.name]
        mean = measure.factor * float(np.mean([row[f"test_{measure.name}"] for row in runs]))
        found = f"{mean:.{len(text.partition('.')[2])}f}"
        if not float(low) <= float(found) <= float(high):
            yield f"{measure.name}: was {text} [{low}, {high}], is {found}"
