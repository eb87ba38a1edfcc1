"""A table or figure of a paper made again: under its own protocol and under ours, beside what is printed.

Its cells are those of any grid (`graphldp.stages.experiment`), kept in data/cells, so that a second run computes
nothing and an interrupted one goes on. What it says ends in results/reproduce/PAPER-TARGET/PROFILE.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import math
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from graphldp import __version__, methods
from graphldp.client import option_names, own_budget
from graphldp.errors import ArtifactError, DataError, GraphLDPError, OptionError
from graphldp.evaluation import MANY, Confidence, Interval, paired_difference
from graphldp.ledger import ledger_from_meta
from graphldp.measures import Measure, measures_of, tasks
from graphldp.methods import Role
from graphldp.progress import Progress
from graphldp.stages.download import obtain
from graphldp.stages.evaluate import remark_of
from graphldp.stages.experiment import Plan, plan, run_cells, spent
from graphldp.stages.files.artifacts import read_meta, read_table, write_json, write_text
from graphldp.stages.files.graphs import read_graph_meta
from graphldp.stages.files.paths import graph_dir
from graphldp.stages.grids.params import Cell, Params, value_text
from graphldp.stages.grids.protocols import Protocol
from graphldp.stages.grids.targets import Made, Printed, Profile, Target, protocol_of, stands
from graphldp.stages.pages.tables import number, span

__all__ = [
    "COLUMNS",
    "Estimate",
    "Line",
    "Order",
    "Outcome",
    "Reproduction",
    "axes_text",
    "cell_seconds",
    "compare",
    "csv_text",
    "estimate",
    "estimates",
    "filled",
    "is_of",
    "latex_text",
    "markdown_text",
    "order",
    "outcome",
    "read_outcome",
    "reason",
    "reproduce",
    "write",
]

# Seconds of an epoch: of any; for each unit of width of a node or link, and of a feature where inputs are dense.
_EPOCH, _NODE, _FEATURE = 2e-3, 2.5e-9, 2.5e-11
_DEARER = {"gat": 3.0, "sage": 1.4}  # times a GCN's
_LEARNER = 2.0  # a learner of a row that has several, with its playoff


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a target needs before it is run.

    Attributes:
        plans: of each column what there is to compute.
        made: of each column its cells, and where they belong.
        missing: the data sets that are left out, each with the reason.
    """

    target: Target
    profile: Profile
    protocol: Protocol | None
    plans: Mapping[str, Plan]
    made: Mapping[str, Sequence[Made]]
    missing: Mapping[str, str]

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return sum(len(one.cells) for one in self.plans.values())

    @property
    def todo(self) -> int:
        """How many of them have to be computed."""
        return sum(len(one.todo) for one in self.plans.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What the cells to compute are going to take, roughly: seconds, bytes of memory and of disk."""

    seconds: float
    memory: float
    disk: float

    @property
    def text(self) -> str:
        """One line for people."""
        minutes = self.seconds / 60
        time = f"{minutes / 60:.1f} hours" if minutes >= 90 else f"{max(1, round(minutes))} min"
        return f"about {time} on one core, {self.memory / 1e9:.1f} GB of memory, {self.disk / 1e6:.1f} MB on disk"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One row of what was made again.

    Attributes:
        place: the row's place on the target's axes, in words; of a bridge the step.
        printed: as the paper has it, with its spread; empty of a figure.
        theirs, ours: under the paper's protocol, in the reading that comes nearest, and under ours.
        floor, ceiling: of the same data set under our protocol.
        to_printed: theirs less what is printed.
        apart: theirs less ours, on the same splits.
        mean_epsilon: what people spend on average.
        readings: what every reading of the paper came to.
        remark: what has to be said of the row itself.
        why: why there is no number.
    """

    dataset: str
    row: str
    place: str
    epsilon: float | None
    metric: str
    printed: str
    spread: str
    theirs: Interval | None
    ours: Interval | None
    floor: Interval | None
    ceiling: Interval | None
    to_printed: Interval | None
    apart: Interval | None
    mean_epsilon: float | None
    readings: tuple[tuple[str, Interval], ...] = ()
    reading: str = ""
    remark: str = ""
    why: str = ""
    number: int | None = None
    digits: int = 1

    @property
    def runs(self) -> int | None:
        """How many runs the intervals are of; None where nothing was trained for them."""
        made = self.theirs or self.ours
        return None if made is None or made.runs == MANY else made.runs

    @property
    def within(self) -> bool | None:
        """Whether the printed number lies in the interval under its protocol; None where one of the two is missing."""
        value = _float(self.printed)
        return None if value is None or self.theirs is None else self.theirs.contains(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """All lines of a target, how they were made, and how long that took."""

    target: Target
    profile: Profile
    lines: tuple[Line, ...]
    notes: tuple[str, ...]
    made: Mapping[str, Any]


def order(
    target: Target,
    profile: Profile,
    *,
    data: Path,
    papers: Path,
    datasets: Sequence[str] = (),
    fetch: bool = True,
    device: str = "auto",
    progress: Progress | None = None,
) -> Order:
    """Return what there is to do, after looking at which data are at hand."""
    graphs = target.graphs()
    for name in datasets:
        if name not in graphs:
            raise OptionError(f"{target.key} is not about {name!r}; it has {', '.join(graphs) or 'no data set'}")
    missing: dict[str, str] = {}
    here: list[str] = []
    given = protocol_of(target, papers) if target.trains else None
    plans: dict[str, Plan] = {}
    made: dict[str, Sequence[Made]] = {}

    def look(names: Sequence[str]) -> None:
        assert given is not None
        for column, (params, cells) in target.columns(profile, given, names).items():
            plans[column] = plan(params, data, cells=[one.cell for one in cells], fetch=False, device=device)
            made[column] = cells

    for name in graphs if target.trains else ():
        if reason := _absent(name, data, fetch=fetch and (not datasets or name in datasets), progress=progress):
            missing[name] = reason
            continue
        if name not in datasets:
            look([name])
            if any(one.todo for one in plans.values()):  # what is there already is shown, too
                why = "not asked for" if datasets else _left(target, profile, plans, data, here)
                if why:
                    missing[name] = f"not run: {why}; `--datasets {name}`"
                    continue
        here.append(name)
    plans.clear()
    made.clear()
    if here:
        look(here)
    return Order(target=target, profile=profile, protocol=given, plans=plans, made=made, missing=missing)


def _left(target: Target, profile: Profile, plans: Mapping[str, Plan], data: Path, here: Sequence[str]) -> str:
    """Return why a profile leaves a data set out; empty where it does not."""
    if not here or profile.minutes == math.inf:
        return ""
    if not target.printed:
        return "a figure's first data set alone"
    minutes = _spend(plans.values(), data).seconds / 60
    return f"about {minutes:.0f} minutes on one core" if minutes > profile.minutes else ""


def _absent(name: str, data: Path, *, fetch: bool, progress: Progress | None) -> str:
    """Return why a data set is not at hand; empty where it is."""
    if graph_dir(data, name).exists():
        return ""
    if not fetch:
        return f"not downloaded; `ldp download {name}`"
    try:
        obtain(name, data, settings={}, progress=progress)
    except GraphLDPError as error:
        return " ".join(str(error).split())
    return ""


def estimate(orders: Iterable[Order], data: Path) -> Estimate:
    """Return what the cells of some targets will take: a guess, from the sizes. Cells that they share count once."""
    return _spend([what for one in orders for what in one.plans.values()], data)


def estimates(orders: Iterable[Order], data: Path) -> list[Estimate]:
    """Return what each target is going to take after the ones before it: cells that they share are of the first."""
    seen: set[str] = set()
    return [_spend(one.plans.values(), data, seen) for one in orders]


def cell_seconds(params: Params, cell: Cell, data: Path) -> float:
    """Return how long a cell takes on one idle core: a guess, from its sizes."""
    own = params.of(cell)
    meta = read_graph_meta(graph_dir(data, cell.graph))
    nodes, links = int(meta["n"]), int(meta["edges"])
    recipe = methods.method(cell.method)
    dearer = _LEARNER * recipe.trained if recipe.learners else recipe.trained * _DEARER.get(own.train.model, 1.0)
    # The whole grid counts as 48 points: what most papers' have.
    points = 48 if own.search.strategy == "grid" else own.search.points
    runs = dearer * (points * own.search.seeds + own.seeds)
    dense = recipe.propagates or not _samples(cell)
    features = nodes * int(meta["d"]) * _FEATURE if dense else 0.0
    epoch = _EPOCH + ((nodes + links) * _NODE + features) * (own.train.hidden + 16)
    return runs * min(own.train.epochs, 3 * own.train.patience) * epoch


def _samples(cell: Cell) -> bool:
    """Whether few of a row's inputs are anything but the fill."""
    if methods.method(cell.method).budget is not None or own_budget(cell.mechanism) is not None:
        return True
    return bool({"m", "m_rule"} & set(option_names(cell.mechanism)))


def _spend(plans: Iterable[Plan], data: Path, seen: set[str] | None = None) -> Estimate:
    seconds = memory = 0.0
    cells, seen = 0, set() if seen is None else seen
    for what in plans:
        for cell in what.todo:
            params = what.experiment.of(cell)
            own = (cell.graph, cell.method, cell.mechanism, cell.epsilon, cell.options, cell.changes)
            key = repr((*own, params.train, params.search, params.seed, params.seeds, params.further))
            if key in seen:
                continue
            seen.add(key)
            seconds += cell_seconds(what.experiment, cell, data)
            meta = read_graph_meta(graph_dir(data, cell.graph))
            memory = max(memory, 4.0 * int(meta["n"]) * int(meta["d"]))
            cells += 1
    return Estimate(seconds=seconds, memory=memory + 6e8 if cells else 0.0, disk=3e4 * cells)


def reproduce(
    what: Order, *, data: Path, results: Path, device: str = "auto", jobs: int = 1, progress: Progress | None = None
) -> Reproduction:
    """Compute what is not there, column by column, and say what came out."""
    for column in _first_ours(what.plans):
        run_cells(what.plans[column], data, device, progress, jobs=jobs)
    return outcome(what, results)


def _first_ours(plans: Mapping[str, Plan]) -> list[str]:
    return sorted(plans, key=lambda column: column != "ours")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a cell has become: its scores by measure, what people spent, what is to be said of it, and by which code."""

    made: Made
    scores: Mapping[str, NDArray[np.float64]]
    mean_epsilon: float
    remark: str
    steps: str
    code: str

    def measure(self, name: str) -> Measure:
        """Return one of its measures."""
        found = [one for one in _ALL if one.name == name and name in self.scores]
        if not found:
            raise DataError(f"{self.made.cell.name}: {name} is nothing that a run measures")
        return found[0]


def _outcomes(what: Order) -> dict[str, list[Outcome]]:
    return {
        column: [read_outcome(made, path) for made, path in zip(what.made[column], plan_.paths, strict=True)]
        for column, plan_ in what.plans.items()
    }


def read_outcome(made: Made, path: Path) -> Outcome:
    """Return what a cell that is there has become."""
    meta, table = read_meta(path, "ldp reproduce"), read_table(path, "ldp reproduce")
    final = table.filter(pc.equal(table["role"], "final")).sort_by("seed")
    measures = measures_of(str(meta["task"]))
    scores = {name: np.array(final[f"test_{name}"].to_pylist(), dtype=np.float64) for name in measures.names}
    total = ledger_from_meta([meta]).once().total()
    return Outcome(
        made=made, scores=scores, mean_epsilon=total.epsilon if total.mean is None else total.mean,
        remark=remark_of(meta), steps=str((meta.get("chosen_point") or {}).get("steps", "")),
        code=str(meta.get("code", "")),
    )  # fmt: skip


def outcome(what: Order, results: Path) -> Reproduction:
    """Return what a target's cells say together; every one of them must be there."""
    target = what.target
    found = _outcomes(what)
    lines = _lines(what, found, results)
    notes = [f"{name} is left out: {reason}." for name, reason in what.missing.items()]
    if target.note:
        notes.insert(0, target.note)
    took = [spent(one) for one in what.plans.values()]
    made = {
        "target": target.key,
        "profile": what.profile.name,
        "protocol": _facts(what),
        "seconds": {column: one.seconds for column, one in zip(what.plans, took, strict=True)},
        "cells": {column: len(one.cells) for column, one in what.plans.items()},
        "machine": {"processor": platform.machine(), "system": platform.system(), "python": platform.python_version()},
        "code": ", ".join(sorted({one.code for several in found.values() for one in several if one.code})),
        "library": __version__,
        "missing": dict(what.missing),
    }
    return Reproduction(target=target, profile=what.profile, lines=tuple(lines), notes=tuple(notes), made=made)


def _facts(what: Order) -> list[dict[str, str]]:
    if what.protocol is None:
        return []
    return [{"place": one.place, "value": _said(one.value), "source": one.source} for one in what.protocol.entries]


def _said(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(value_text, value))
    return value_text(value)


def _lines(what: Order, found: Mapping[str, Sequence[Outcome]], results: Path) -> list[Line]:
    if what.target.steps:
        return _steps(what, found)
    confidence = Confidence()
    ours = {_key(one.made): one for one in found["ours"] if one.made.asked is not None} if found else {}
    readings: dict[tuple[Any, ...], list[Outcome]] = {}
    for one in found.get("theirs", []):
        readings.setdefault(_key(one.made), []).append(one)
    references = {
        (one.made.cell.dataset, one.made.cell.setting, methods.role_of(one.made.cell.method)): one
        for one in found.get("ours", [])
        if one.made.asked is None
    }
    target, lines, used = what.target, [], set()
    nearest = _nearest(what, readings)
    for key, several in readings.items():
        asked, cell = several[0].made.asked, several[0].made.cell
        assert asked is not None
        chosen = next((one for one in several if one.made.reading == nearest), several[0])
        mine = ours[key]
        numbers: list[Printed | None] = [one for one in target.printed if stands(one, several[0].made)]
        for printed in numbers or [None]:
            measure = _measure(several[0], printed)
            if printed is not None:
                used.add((printed.file, printed.row))
            theirs = _interval(chosen, measure, confidence)
            value = None if printed is None else _float(printed.value)
            lines.append(
                Line(
                    dataset=cell.dataset, row=asked.label, place=axes_text(cell.axes), epsilon=cell.epsilon,
                    metric=measure.name, printed="" if printed is None else printed.value,
                    spread="" if printed is None else printed.spread, theirs=theirs,
                    ours=_interval(mine, measure, confidence),
                    floor=_reference(references, cell, Role.FLOOR, measure, confidence),
                    ceiling=_reference(references, cell, Role.CEILING, measure, confidence),
                    to_printed=None if value is None else theirs.less(value),
                    apart=paired_difference(
                        chosen.scores[measure.name], mine.scores[measure.name], confidence
                    ).scaled(measure.factor),
                    mean_epsilon=chosen.mean_epsilon,
                    readings=tuple(
                        (one.made.reading, _interval(one, measure, confidence))
                        for one in several if one.made.reading
                    ),
                    reading=chosen.made.reading,
                    remark="; ".join(
                        filter(None, [_under("their protocol", chosen.remark), _under("ours", mine.remark)])
                    ),
                    number=None if printed is None else printed.row, digits=measure.digits,
                )
            )  # fmt: skip
    lines += _gains(what, readings, ours, nearest, used, confidence)
    lines += _measured(target, results, used)
    lines += [_without(one, what) for one in target.printed if (one.file, one.row) not in used]
    return _told(lines)


def _under(protocol: str, remark: str) -> str:
    return f"{remark} under {protocol}" if remark else ""


def _nearest(what: Order, readings: Mapping[tuple[Any, ...], Sequence[Outcome]]) -> str:
    """Return the reading whose numbers lie nearest to the printed ones, by the mean distance over all of them."""
    distances: dict[str, list[float]] = {}
    for several in readings.values():
        for one in several:
            for printed in what.target.printed:
                value = _float(printed.value)
                if value is None or not stands(printed, one.made):
                    continue
                measure = _measure(one, printed)
                mean = measure.factor * float(one.scores[measure.name].mean())
                distances.setdefault(one.made.reading, []).append(abs(mean - value))
    return min(distances, key=lambda name: float(np.mean(distances[name]))) if distances else ""


def _told(lines: list[Line]) -> list[Line]:
    """Return the lines, each whose numbers are those of an earlier one saying so."""
    first: dict[Any, Line] = {}
    out = []
    for line in lines:
        key = (line.dataset, line.metric, line.theirs, line.ours)
        if line.theirs is not None and key in first and first[key].row != line.row:
            line = dataclasses.replace(line, remark="; ".join(filter(None, [line.remark, f"same as {first[key].row}"])))
        first.setdefault(key, line)
        out.append(line)
    return out


def _gains(
    what: Order, readings: Mapping[Any, Sequence[Outcome]], ours: Mapping[Any, Outcome], nearest: str, used: set[Any],
    confidence: Confidence,
) -> list[Line]:  # fmt: skip
    """Return what rows gain over others, where a target compares them, and the printed gains beside."""
    lines = []
    for label, other in what.target.gains.items():
        for key, several in readings.items():
            if key[1] != label:
                continue
            base = (key[0], other, *key[2:])
            one, two = several[0], readings[base][0]
            measure, cell = _measure(one, None), one.made.cell
            theirs, mine = (
                paired_difference(a.scores[measure.name], b.scores[measure.name], confidence).scaled(measure.factor)
                for a, b, name in ((one, two, "theirs"), (ours[key], ours[base], "ours"))
            )
            found = next(
                (p for p in what.target.printed if p.metric.endswith("_gain") and p.label == label
                 and p.dataset == cell.dataset and p.epsilon is not None and _same(p.epsilon, cell.epsilon)), None,
            )  # fmt: skip
            if found is not None:
                used.add((found.file, found.row))
            value = None if found is None else _float(found.value)
            lines.append(
                Line(
                    dataset=cell.dataset, row=f"{label} less {other}", place=axes_text(cell.axes), epsilon=cell.epsilon,
                    metric=f"{measure.name} gain", printed="" if found is None else found.value, spread="",
                    theirs=theirs, ours=mine, floor=None, ceiling=None,
                    to_printed=None if value is None else theirs.less(value), apart=None,
                    mean_epsilon=one.mean_epsilon, number=None if found is None else found.row, digits=measure.digits,
                )
            )  # fmt: skip
    return lines


def _without(one: Printed, what: Order) -> Line:
    """Return the line of a printed number that has no row, with the reason."""
    return dataclasses.replace(_bare(one), why=reason(one, what.target, what.missing))


def reason(one: Printed, target: Target, missing: Mapping[str, str]) -> str:
    """Return why a printed number has no row of ours here; empty where nothing says so."""
    found = missing.get(one.dataset or "", "") or one.why
    if not found and any(is_of(where, one) for where in target.source):
        found = f"not measured here; `{target.measured['command']}`"
    if not found and one.metric.endswith("_gain") and one.epsilon is None:
        found = "a mean over the other gains of the table"
    return found


def _steps(what: Order, found: Mapping[str, Sequence[Outcome]]) -> list[Line]:
    """Return a bridge's lines: each step's result, and what it changed."""
    confidence, lines, before = Confidence(), [], None
    printed = what.target.printed[0]
    for outcomes in found.values():
        (one,) = outcomes
        measure, cell = _measure(one, printed), one.made.cell
        score = _interval(one, measure, confidence)
        change = None
        if before is not None:
            change = paired_difference(one.scores[measure.name], before.scores[measure.name], confidence)
        value = _float(printed.value)
        lines.append(
            Line(
                dataset=cell.dataset, row=printed.label, place=one.made.reading, epsilon=cell.epsilon,
                metric=measure.name, printed=printed.value, spread=printed.spread, theirs=score, ours=None, floor=None,
                ceiling=None, to_printed=None if value is None else score.less(value),
                apart=None if change is None else change.scaled(measure.factor), mean_epsilon=one.mean_epsilon,
                remark=_under("it", one.remark).removesuffix(" under it"), number=printed.row, digits=measure.digits,
            )
        )  # fmt: skip
        before = one
    return lines


def _measured(target: Target, results: Path, used: set[Any]) -> list[Line]:
    """Return the lines of what is measured without training, from the file that its command wrote."""
    lines = []
    rows = _rows(results / str(target.measured["file"])) if target.measured.get("file") else []
    for one in target.source:
        where = {"dataset": one["dataset"], **one["where"]}
        fits = [row for row in rows if all(row.get(key) == value for key, value in where.items())]
        number_ = next(printed for printed in target.printed if is_of(one, printed))
        if not fits:
            continue
        used.add((number_.file, number_.row))
        mean = float(one.get("factor", 1)) * float(fits[0][one["column"]])
        error = fits[0].get(f"{one['column']}_error")
        ours = Interval.of_error(mean, float(one.get("factor", 1)) * float(error) if error else math.nan)
        lines.append(
            dataclasses.replace(
                _bare(number_), ours=ours, why="", digits=3 if abs(mean) < 1 else 1,
                to_printed=ours.less(float(number_.value)), remark=f"column {one['column']}",
            )
        )  # fmt: skip
    return lines


def is_of(source: Mapping[str, Any], one: Printed) -> bool:
    """Return whether an entry of `from` is about a printed number."""
    named = source["printed"], source["metric"], source["dataset"], source.get("csv", one.row)
    return (one.label, one.metric, one.dataset, one.row) == named


def _bare(one: Printed) -> Line:
    return Line(
        dataset=one.dataset or "all", row=one.label, place="", epsilon=one.epsilon, metric=one.metric,
        printed=one.value, spread=one.spread, theirs=None, ours=None, floor=None, ceiling=None, to_printed=None,
        apart=None,
        mean_epsilon=None, number=one.row,
    )  # fmt: skip


def _rows(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def _key(made: Made) -> tuple[Any, ...]:
    assert made.asked is not None
    return made.cell.dataset, made.asked.label, made.cell.epsilon, axes_text(made.cell.axes)


def axes_text(axes: Sequence[tuple[str, Any]]) -> str:
    """Return a row's place on its target's axes in words."""
    return ", ".join(f"{name.rpartition('.')[2]} {value_text(value)}" for name, value in axes)


def _same(one: float, other: float) -> bool:
    return one == other or math.isclose(one, other, rel_tol=1e-9)


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _measure(one: Outcome, printed: Printed | None) -> Measure:
    task = measures_of(one.made.cell.places.get("train.task", "")) if "train.task" in one.made.cell.places else None
    known = [measure for name in one.scores for measure in _ALL if measure.name == name]
    if printed is not None:
        found = [measure for measure in known if measure.name == printed.metric]
        if not found:
            raise DataError(f"{printed.file}, row {printed.row}: {printed.metric} is nothing that a run measures")
        return found[0]
    return task.headline if task else known[0]


_ALL = {measure.name: measure for name in tasks() for measure in measures_of(name).measures}.values()


_PLAIN = {one.name for one in (measures_of(name).headline for name in tasks()) if one.unit}  # go without saying


def _interval(one: Outcome, measure: Measure, confidence: Confidence) -> Interval:
    return measure.interval(one.scores[measure.name], confidence)


def _reference(
    references: Mapping[tuple[Any, ...], Outcome], cell: Cell, role: Role, measure: Measure, confidence: Confidence
) -> Interval | None:
    found = references.get((cell.dataset, cell.setting, role))
    return None if found is None else _interval(found, measure, confidence)


COLUMNS = (
    "dataset", "row", "place", "epsilon", "mean_epsilon", "metric", "printed", "spread", "runs", "theirs",
    "theirs_low", "theirs_high", "ours", "ours_low", "ours_high", "floor", "ceiling", "to_printed", "to_printed_low",
    "to_printed_high", "apart", "apart_low", "apart_high", "within", "reading", "readings", "remark", "why", "number",
)  # fmt: skip


def _record(line: Line) -> dict[str, str]:
    """Return a line as the CSV has it."""

    def ends(name: str, interval: Interval | None) -> dict[str, str]:
        show = f"{{:.{line.digits + 2}f}}".format
        if interval is None:
            return {name: "", f"{name}_low": "", f"{name}_high": ""}
        low, high = (show(end) if interval.known else "" for end in (interval.low, interval.high))
        return {name: show(interval.mean), f"{name}_low": low, f"{name}_high": high}

    bare = {
        name: "" if one is None else f"{one.mean:.{line.digits + 2}f}"
        for name, one in (("floor", line.floor), ("ceiling", line.ceiling))
    }
    return {
        "dataset": line.dataset, "row": line.row, "place": line.place,
        "epsilon": "" if line.epsilon is None else number(line.epsilon),
        "mean_epsilon": "" if line.mean_epsilon is None else f"{line.mean_epsilon:.6g}", "metric": line.metric,
        "printed": line.printed, "spread": line.spread, "runs": "" if line.runs is None else str(line.runs),
        **ends("theirs", line.theirs), **ends("ours", line.ours),
        **bare,
        **ends("to_printed", line.to_printed), **ends("apart", line.apart),
        "within": "" if line.within is None else value_text(line.within), "reading": line.reading,
        "readings": "; ".join(f"{name}: {span(one, digits=line.digits)}" for name, one in line.readings),
        "remark": line.remark, "why": line.why, "number": "" if line.number is None else str(line.number),
    }  # fmt: skip


def csv_text(found: Reproduction) -> str:
    """Return all lines as CSV: the record, of which the other texts are renderings."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_record(line) for line in found.lines)
    return out.getvalue()


_SHOWN = ("data", "row", "place", "epsilon", "printed", "their protocol", "less printed", "ours", "theirs less ours",
          "floor", "ceiling", "spent", "remark")  # fmt: skip


def _shown(line: Line) -> list[str]:
    def show(interval: Interval | None, *, sign: bool = False) -> str:
        return span(interval, sign=sign, digits=line.digits)

    gain = line.metric.endswith("gain")
    printed = f"{line.printed} ± {line.spread}" if line.spread else line.printed
    name = line.row if line.metric in _PLAIN else f"{line.row}, {line.metric.replace('_', ' ')}"
    return [
        line.dataset, name, line.place, "" if line.epsilon is None else number(line.epsilon), printed,
        show(line.theirs, sign=gain), show(line.to_printed, sign=True), show(line.ours, sign=gain),
        show(line.apart, sign=True),
        show(line.floor), show(line.ceiling), "" if line.mean_epsilon is None else f"{line.mean_epsilon:.4g}",
        "; ".join(filter(None, [line.remark, line.why])),
    ]  # fmt: skip


def filled(found: Reproduction) -> tuple[list[str], list[list[str]]]:
    """Return the headings and rows of the columns that hold anything."""
    rows = [_shown(line) for line in found.lines]
    heads = list(_SHOWN)
    if found.target.steps:
        heads[5], heads[8], heads[2] = "so far", "this step", "step"
    kept = [place for place in range(len(heads)) if any(row[place] for row in rows)]
    return [heads[place] for place in kept], [[row[place] for place in kept] for row in rows]


def markdown_text(found: Reproduction) -> str:
    """Return the table for people."""
    heads, rows = filled(found)
    escape = str.maketrans({"|": "\\|", "*": "\\*"})
    lines = [f"# {found.target.heading}: {found.target.title}", ""]
    lines += [f"Profile {found.profile.name}: {found.profile.text}. Intervals are 95 %, Student's, over runs; "
              "differences of the two protocols are of the same splits.", ""]  # fmt: skip
    lines += ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    lines += ["| " + " | ".join(cell.translate(escape) for cell in row) + " |" for row in rows]
    if any(line.readings for line in found.lines):
        lines += ["", "What the paper leaves open, in each reading (their protocol; the nearest one stands above):", ""]
        lines += [
            f"- {line.dataset}, {line.row}, epsilon {number(line.epsilon or 0)}, printed {line.printed}: "
            + "; ".join(f"{name} {span(one)}" for name, one in line.readings)
            for line in found.lines if line.readings
        ]  # fmt: skip
    lines += ["", *(f"- {note}" for note in found.notes)] if found.notes else []
    facts = found.made["protocol"]
    if facts:
        lines += ["", "Their protocol:", ""]
        lines += [f"- `{one['place']}` {one['value']} ({one['source']})" for one in facts]
    return "\n".join(lines) + "\n"


_TEX = {"\\": r"\textbackslash{}", "±": r"$\pm$", "−": "$-$", **{char: f"\\{char}" for char in "&%$#_{}"},
        "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}  # fmt: skip


def latex_text(found: Reproduction) -> str:
    """Return the table for a paper."""
    heads, rows = filled(found)

    def escape(text: str) -> str:
        return "".join(_TEX.get(char, char) for char in text)

    lines = [f"\\begin{{tabular}}{{{'l' * len(heads)}}}", " & ".join(map(escape, heads)) + r" \\", r"\hline"]
    # A bracket behind `\\` would be read as its argument.
    lines += [" & ".join("{" + escape(cell) + "}" for cell in row) + r" \\" for row in rows]
    return "\n".join([*lines, r"\end{tabular}"]) + "\n"


def write(found: Reproduction, results: Path) -> list[Path]:
    """Write a target's table as CSV, Markdown and LaTeX, and how it was made; return their paths."""
    folder = results / "reproduce" / found.target.slug / found.profile.name
    texts = {"table.csv": csv_text(found), "table.md": markdown_text(found), "table.tex": latex_text(found)}
    for name, text in texts.items():
        write_text(folder / name, text)
    write_json(folder / "time.json", {**found.made, "title": found.target.title, "heading": found.target.heading,
                                      "notes": list(found.notes)})  # fmt: skip
    return [*(folder / name for name in texts), folder / "time.json"]


def compare(found: Reproduction, committed: Path) -> list[str]:
    """Return which numbers have moved against a committed table, beyond the interval that is committed beside them."""
    path = committed / "reproduce" / found.target.slug / found.profile.name / "table.csv"
    if not path.is_file():
        raise ArtifactError(f"{path} does not exist: nothing to compare with")
    keys = ("dataset", "row", "place", "epsilon", "metric", "number")
    before = {tuple(row[key] for key in keys): row for row in _rows(path)}
    moved = []
    for row in (_record(line) for line in found.lines):
        key = tuple(row[name] for name in keys)
        old = before.pop(key, None)
        words = " ".join(filter(None, key[:4]))
        if old is None:
            moved.append(f"{words}: is new")
            continue
        for column in ("theirs", "ours"):
            if old[column] == row[column]:
                continue
            now = _float(row[column])
            low, high = (_float(old[f"{column}_{end}"]) for end in ("low", "high"))
            if now is None or low is None or high is None or not low <= now <= high:
                moved.append(f"{words}: {column} was {old[column] or 'empty'}, is {row[column] or 'empty'}")
        if old["printed"] != row["printed"]:
            moved.append(f"{words}: printed was {old['printed']}, is {row['printed']}")
    return moved + [f"{' '.join(filter(None, key[:4]))}: is gone" for key in before]
