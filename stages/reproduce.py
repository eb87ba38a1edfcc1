"""A table or figure of a paper made again: under its own protocol and under ours, beside what is printed.

Its cells are those of any grid (`graphldp.stages.experiment`), kept in data/cells, so that a second run computes
nothing and an interrupted one goes on. What it says ends in results/reproduce/PAPER-TARGET/PROFILE.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
import platform
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from graphldp import __version__, methods
from graphldp.client import option_names, own_budget
from graphldp.datasets import names as dataset_names
from graphldp.errors import ArtifactError, DataError, GraphLDPError, OptionError
from graphldp.evaluation import Confidence, Interval, paired_difference
from graphldp.ledger import ledger_from_meta
from graphldp.measures import Measure, measures_of, tasks
from graphldp.methods import Role
from graphldp.progress import Progress
from graphldp.stages.download import obtain
from graphldp.stages.evaluate import remark_of
from graphldp.stages.experiment import GridPlan, plan, run_plans, spent
from graphldp.stages.files.artifacts import read_meta, read_table
from graphldp.stages.files.graphs import read_graph_meta
from graphldp.stages.files.paths import graph_dir
from graphldp.stages.grids.cell import Cell, value_text
from graphldp.stages.grids.params import Params
from graphldp.stages.grids.protocols import Protocol
from graphldp.stages.grids.targets import (
    MeasuredNumber,
    PaperTarget,
    Printed,
    Profile,
    TargetCell,
    not_at_hand,
    protocol_of,
    stands,
)
from graphldp.stages.pages.reproduced import (
    Line,
    Reproduction,
    axes_text,
    bare,
    completed,
    csv_text,
    decimal,
    folder_of,
    lines_of,
    lost_of,
    rows_of,
)

__all__ = [
    "CellOutcome",
    "ComputeCost",
    "Extent",
    "Order",
    "cell_seconds",
    "check_keeps",
    "compare",
    "estimate",
    "estimates",
    "is_of",
    "missing_measurement",
    "order",
    "outcome",
    "read_outcome",
    "reason",
    "reproduce",
    "reproduce_all",
]

# Seconds of an epoch: of any; for each unit of width of a node or link, and of a feature where inputs are dense.
_EPOCH, _NODE, _FEATURE = 2e-4, 2.5e-9, 1.5e-11
_DEARER = {"gat": 3.0, "sage": 1.4}  # times a GCN's
_LEARNER = 2.0  # a learner of a row that has several, with its playoff
_PAIRS = 1.6  # times as much where links are predicted


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a target needs before it is run.

    Attributes:
        plans: of each column what there is to compute.
        made: of each column its cells, and where they belong.
        missing: the data sets that are left out, each with the reason.
    """

    target: PaperTarget
    profile: Profile
    protocol: Protocol | None
    plans: Mapping[str, GridPlan]
    made: Mapping[str, Sequence[TargetCell]]
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
class ComputeCost:
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
class Extent:
    """How much of a target is computed.

    Attributes:
        profile: how much is spent on it.
        datasets: those of its data sets that are run whatever they take.
        theirs: whether our own column is left out, with floor and ceiling, unless it is there already.
        reading: one of what the paper leaves open, where there are several.
        fetch: whether data that are not at hand are downloaded.
    """

    profile: Profile
    datasets: Sequence[str] = ()
    theirs: bool = False
    reading: str = ""
    fetch: bool = True


def order(
    target: PaperTarget,
    extent: Extent,
    *,
    data: Path,
    papers: Path,
    device: str = "auto",
    progress: Progress | None = None,
) -> Order:
    """Return what there is to do, after looking at which data are at hand."""
    profile, datasets = extent.profile, extent.datasets
    target = _read_as(target, extent.reading) if extent.reading else target
    graphs = target.graphs()
    for name in datasets:
        if name not in graphs:
            raise OptionError(f"{target.key} is not about {name!r}; it has {', '.join(graphs) or 'no data set'}")
    missing: dict[str, str] = {}
    here: list[str] = []
    given = protocol_of(target, papers) if target.trains else None
    plans: dict[str, GridPlan] = {}
    made: dict[str, Sequence[TargetCell]] = {}

    def look(names: Sequence[str]) -> None:
        assert given is not None
        for column, (params, cells) in target.columns(profile, given, names).items():
            found = plan(params, data, cells=[one.cell for one in cells], fetch=False, device=device)
            if extent.theirs and column == "ours" and found.todo:
                continue
            plans[column], made[column] = found, cells

    for name in graphs if target.trains else ():
        if reason := _absent(name, data, fetch=extent.fetch and (not datasets or name in datasets), progress=progress):
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


def _read_as(target: PaperTarget, reading: str) -> PaperTarget:
    names = [one.name for one in target.readings]
    if reading not in names:
        raise OptionError(f"{target.key} is not read as {reading!r}; it has {', '.join(names) or 'one reading'}")
    return dataclasses.replace(target, readings=tuple(one for one in target.readings if one.name == reading))


def _left(target: PaperTarget, profile: Profile, plans: Mapping[str, GridPlan], data: Path, here: Sequence[str]) -> str:
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
    if name not in dataset_names():
        return "no data set here"
    if not fetch:
        return f"not downloaded; `ldp download {name}`"
    try:
        obtain(name, data, settings={}, progress=progress)
    except GraphLDPError:
        return not_at_hand(name)
    return ""


def estimate(orders: Iterable[Order], data: Path) -> ComputeCost:
    """Return what the cells of some targets will take: a guess, from the sizes. Cells that they share count once."""
    return _spend([what for one in orders for what in one.plans.values()], data)


def estimates(orders: Iterable[Order], data: Path) -> list[ComputeCost]:
    """Return what each target is going to take after the ones before it: cells that they share are of the first."""
    seen: set[str] = set()
    return [_spend(one.plans.values(), data, seen) for one in orders]


def cell_seconds(params: Params, cell: Cell, data: Path) -> float:
    """Return how long a cell takes on one idle core: a guess, from its sizes."""
    own = params.of(cell)
    meta = read_graph_meta(graph_dir(data, cell.graph))
    nodes, links = meta.n, meta.edges
    recipe = methods.method(cell.method)
    dearer = _LEARNER * recipe.trained if recipe.learners else recipe.trained * _DEARER.get(own.train.model, 1.0)
    # The whole grid counts as 48 points: what most papers' have.
    points = 48 if own.search.strategy == "grid" else own.search.points
    dearer *= _PAIRS if measures_of(own.train.task).parts == "edges" else 1.0
    runs = dearer * (points * own.search.seeds + own.seeds)
    # LDP-GE's filter reaches everybody: what a perceptron is given of few reports is full, too.
    dense = recipe.model == "mlp" or not _samples(cell)
    features = nodes * meta.d * _FEATURE if dense else 0.0
    epoch = _EPOCH + ((nodes + links) * _NODE + features) * (own.train.hidden + 16)
    return runs * min(own.train.epochs, 3 * own.train.patience) * epoch


def _samples(cell: Cell) -> bool:
    """Whether few of a row's inputs are anything but the fill."""
    if methods.method(cell.method).budget is not None or own_budget(cell.mechanism) is not None:
        return True
    return bool({"m", "m_rule"} & set(option_names(cell.mechanism)))


def _spend(plans: Iterable[GridPlan], data: Path, seen: set[str] | None = None) -> ComputeCost:
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
            memory = max(memory, 4.0 * meta.n * meta.d)
            cells += 1
    return ComputeCost(seconds=seconds, memory=memory + 6e8 if cells else 0.0, disk=3e4 * cells)


def check_keeps(what: Order, results: Path) -> None:
    """Refuse to write over a table that says more of a data set: our column, or readings that are not run now."""
    asked = {one.cell.dataset for cells in what.made.values() for one in cells}
    said = ("ours" in what.plans, {one.name for one in what.target.readings})
    path = folder_of(what.target, what.profile.name, results) / "table.csv"
    if lost := lost_of(lines_of(path), dict.fromkeys(asked, said)):
        raise OptionError(
            f"{path} has {lost}, which would be lost; leave --theirs and --reading out, or write to another folder "
            "with --results"
        )


def reproduce(
    what: Order, *, data: Path, results: Path, device: str = "auto", jobs: int = 1, progress: Progress | None = None
) -> Reproduction:
    """Compute what is not there of a target, and say what came out."""
    ((_, found),) = reproduce_all([what], data=data, results=results, device=device, jobs=jobs, progress=progress)
    return found


def reproduce_all(
    orders: Sequence[Order],
    *,
    data: Path,
    results: Path,
    device: str = "auto",
    jobs: int = 1,
    progress: Progress | None = None,
    note: Callable[[str], None] | None = None,
) -> Iterator[tuple[Order, Reproduction]]:
    """Compute what is not there, target by target, and say of each what came out once all of its cells are there.

    A process that finds nothing more to do for a target goes on with the next one's cells.
    """
    plans = [what.plans[column] for what in orders for column in _first_ours(what.plans)]
    steps = run_plans(plans, data, device, progress, jobs=jobs, note=note)
    for what in orders:
        for _ in what.plans:
            next(steps)
        yield what, outcome(what, results)
    for _ in steps:  # the other processes end
        pass


def _first_ours(plans: Mapping[str, GridPlan]) -> list[str]:
    return sorted(plans, key=lambda column: column != "ours")


@dataclass(frozen=True, slots=True, kw_only=True)
class CellOutcome:
    """What a cell has become.

    Its scores by measure, what people spent, what is to be said of it, by which code, and how long it took (None where
    nothing says).
    """

    made: TargetCell
    scores: Mapping[str, NDArray[np.float64]]
    mean_epsilon: float
    remark: str
    steps: str
    code: str
    seconds: float | None

    def measure(self, name: str) -> Measure:
        """Return one of its measures."""
        found = [one for one in _ALL if one.name == name and name in self.scores]
        if not found:
            raise DataError(f"{self.made.cell.name}: {name} is nothing that a run measures")
        return found[0]


def _outcomes(what: Order) -> dict[str, list[CellOutcome]]:
    return {
        column: [read_outcome(made, path) for made, path in zip(what.made[column], plan_.paths, strict=True)]
        for column, plan_ in what.plans.items()
    }


def read_outcome(made: TargetCell, path: Path) -> CellOutcome:
    """Return what a cell that is there has become."""
    meta, table = read_meta(path, "ldp reproduce"), read_table(path, "ldp reproduce")
    final = table.filter(pc.equal(table["role"], "final")).sort_by("seed")
    measures = measures_of(str(meta["task"]))
    scores = {name: np.array(final[f"test_{name}"].to_pylist(), dtype=np.float64) for name in measures.names}
    total = ledger_from_meta([meta]).once().total()
    return CellOutcome(
        made=made, scores=scores, mean_epsilon=total.epsilon if total.mean is None else total.mean,
        remark=remark_of(meta), steps=str((meta.get("chosen_point") or {}).get("steps", "")),
        code=str(meta.get("code", "")), seconds=_seconds(path),
    )  # fmt: skip


def _seconds(path: Path) -> float | None:
    try:
        return float(json.loads(path.with_suffix(".time.json").read_bytes())["seconds"])
    except (OSError, ValueError):
        return None


def outcome(what: Order, results: Path) -> Reproduction:
    """Return what a target's cells say together; every one of them must be there."""
    target = what.target
    found = _outcomes(what)
    lines = _lines(what, found, results)
    took = [spent(one) for one in what.plans.values()]
    made = {
        "target": target.key,
        "profile": what.profile.name,
        "how": f"{what.profile.text}. Intervals are 95 %, Student's, over runs",
        "protocol": _facts(what),
        "seconds": {column: one.seconds for column, one in zip(what.plans, took, strict=True)},
        "cells": {column: len(one.cells) for column, one in what.plans.items()},
        "machine": {"processor": platform.machine(), "system": platform.system(), "python": platform.python_version()},
        "code": ", ".join(sorted({one.code for several in found.values() for one in several if one.code})),
        "library": __version__,
        "missing": dict(what.missing),
    }
    return Reproduction(target=target, profile=what.profile, lines=tuple(lines), made=made)


def _facts(what: Order) -> list[dict[str, str]]:
    if what.protocol is None:
        return []
    return [{"place": one.place, "value": _said(one.value), "source": one.source} for one in what.protocol.entries]


def _said(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(value_text, value))
    return value_text(value)


def _lines(what: Order, found: Mapping[str, Sequence[CellOutcome]], results: Path) -> list[Line]:
    if what.target.steps:
        return _steps(what, found)
    confidence = Confidence()
    ours = {_key(one.made): one for one in found.get("ours", []) if one.made.asked is not None}
    readings: dict[tuple[Any, ...], list[CellOutcome]] = {}
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
        mine = ours.get(key)
        numbers: list[Printed | None] = [one for one in target.printed if stands(one, several[0].made)]
        for printed in numbers or [None]:
            measure = _measure(several[0], printed)
            if printed is not None:
                used.add((printed.file, printed.row))
            theirs = _interval(chosen, measure, confidence)
            value = None if printed is None else decimal(printed.value)
            lines.append(
                Line(
                    dataset=cell.dataset, row=asked.label, place=axes_text(cell.axes), epsilon=cell.epsilon,
                    metric=measure.name, printed="" if printed is None else printed.value,
                    spread="" if printed is None else printed.spread, theirs=theirs,
                    ours=None if mine is None else _interval(mine, measure, confidence),
                    floor=_reference(references, cell, Role.FLOOR, measure, confidence),
                    ceiling=_reference(references, cell, Role.CEILING, measure, confidence),
                    to_printed=None if value is None else theirs.less(value),
                    apart=None if mine is None else paired_difference(
                        chosen.scores[measure.name], mine.scores[measure.name], confidence
                    ).scaled(measure.factor),
                    mean_epsilon=chosen.mean_epsilon,
                    readings=tuple(
                        (one.made.reading, _interval(one, measure, confidence))
                        for one in several if one.made.reading
                    ),
                    reading=chosen.made.reading,
                    remark="; ".join(filter(None, [
                        _under("their protocol", chosen.remark), _under("ours", "" if mine is None else mine.remark)
                    ])),
                    number=None if printed is None else printed.row, digits=measure.digits,
                    theirs_seconds=_together(several), ours_seconds=None if mine is None else mine.seconds,
                )
            )  # fmt: skip
    lines += _gains(what, readings, ours, used, confidence)
    lines += _measured(target, results, used)
    lines += [_without(one, what) for one in target.printed if (one.file, one.row) not in used]
    return completed(lines, target)


def _together(several: Sequence[CellOutcome]) -> float | None:
    known = [one.seconds for one in several if one.seconds is not None]
    return sum(known) if known else None


def _under(protocol: str, remark: str) -> str:
    return f"{remark} under {protocol}" if remark else ""


def _nearest(what: Order, readings: Mapping[tuple[Any, ...], Sequence[CellOutcome]]) -> str:
    """Return the reading whose numbers lie nearest to the printed ones, by the mean distance over all of them."""
    distances: dict[str, list[float]] = {}
    for several in readings.values():
        for one in several:
            for printed in what.target.printed:
                value = decimal(printed.value)
                if value is None or not stands(printed, one.made):
                    continue
                measure = _measure(one, printed)
                mean = measure.factor * float(one.scores[measure.name].mean())
                distances.setdefault(one.made.reading, []).append(abs(mean - value))
    return min(distances, key=lambda name: float(np.mean(distances[name]))) if distances else ""


def _gains(
    what: Order, readings: Mapping[Any, Sequence[CellOutcome]], ours: Mapping[Any, CellOutcome], used: set[Any],
    confidence: Confidence,
) -> list[Line]:  # fmt: skip
    """Return what rows gain over others, where a target compares them, and the printed gains beside.

    A printed mean over the budgets stands beside the mean of ours, run by run.
    """
    lines = []
    for label, other in what.target.gains.items():
        own = {key: several[0] for key, several in readings.items() if key[1] == label}
        pairs = [(one, readings[key[0], other, *key[2:]][0], ours.get(key), ours.get((key[0], other, *key[2:])))
                 for key, one in own.items()]  # fmt: skip
        for printed, several in [
            *((_gain(what.target, label, pair[0].made.cell), [pair]) for pair in pairs),
            *((one, [pair for pair in pairs if pair[0].made.cell.dataset == one.dataset])
              for one in what.target.printed if (one.label, one.epsilon) == (label, None)),
        ]:  # fmt: skip
            if not several:
                continue
            if printed is not None:
                used.add((printed.file, printed.row))
            first = several[0][0]
            measure, cell = _measure(first, None), first.made.cell
            theirs, mine = (
                _gained([pair[place] for pair in several], [pair[place + 1] for pair in several], measure, confidence)
                for place in (0, 2)
            )
            assert theirs is not None
            value = None if printed is None else decimal(printed.value)
            mean = printed is not None and printed.epsilon is None
            lines.append(
                Line(
                    dataset=cell.dataset, row=f"{label} less {other}", place="mean" if mean else axes_text(cell.axes),
                    epsilon=None if mean else cell.epsilon, metric=f"{measure.name} gain",
                    printed="" if printed is None else printed.value, spread="", theirs=theirs, ours=mine, floor=None,
                    ceiling=None, to_printed=None if value is None else theirs.less(value), apart=None,
                    mean_epsilon=None if mean else first.mean_epsilon,
                    number=None if printed is None else printed.row, digits=measure.digits,
                )
            )  # fmt: skip
    return lines


def _gained(
    ones: Sequence[CellOutcome | None], others: Sequence[CellOutcome | None], measure: Measure, confidence: Confidence
) -> Interval | None:
    """Return what some rows gain over others on average, run by run; None where one of them was not run."""
    means = []
    for rows in (ones, others):
        scores = [one.scores[measure.name] for one in rows if one is not None]
        if len(scores) < len(rows):
            return None
        means.append(np.mean(scores, axis=0))
    return paired_difference(means[0], means[1], confidence).scaled(measure.factor)


def _gain(target: PaperTarget, label: str, cell: Cell) -> Printed | None:
    """Return the printed gain of a row at a cell's data set and budget, if there is one."""
    for one in target.printed:
        same = one.metric.endswith("_gain") and (one.label, one.dataset) == (label, cell.dataset)
        if same and one.epsilon is not None and _same(one.epsilon, cell.epsilon):
            return one
    return None


def _without(one: Printed, what: Order) -> Line:
    """Return the line of a printed number that has no row, with the reason."""
    return dataclasses.replace(bare(one), why=reason(one, what.target, what.missing))


def reason(one: Printed, target: PaperTarget, missing: Mapping[str, str]) -> str:
    """Return why a printed number has no row of ours here; empty where nothing says so."""
    left = missing.get(one.dataset or "", "")
    found = one.why or left if one.dataset not in dataset_names() else left or one.why
    source = next((where for where in target.source if is_of(where, one)), None)
    if not found and source is not None:
        found = f"not measured here; `{source.command or target.measured.command}`"
    return found


def _steps(what: Order, found: Mapping[str, Sequence[CellOutcome]]) -> list[Line]:
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
        value = decimal(printed.value)
        lines.append(
            Line(
                dataset=cell.dataset, row=printed.label, place=one.made.reading, epsilon=cell.epsilon,
                metric=measure.name, printed=printed.value, spread=printed.spread, theirs=score, ours=None, floor=None,
                ceiling=None, to_printed=None if value is None else score.less(value),
                apart=None if change is None else change.scaled(measure.factor), mean_epsilon=one.mean_epsilon,
                remark=_under("it", one.remark).removesuffix(" under it"), number=printed.row, digits=measure.digits,
                theirs_seconds=one.seconds,
            )
        )  # fmt: skip
        before = one
    return lines


def _measured(target: PaperTarget, results: Path, used: set[Any]) -> list[Line]:
    """Return the lines of what is measured without training, from the file that its command wrote."""
    lines = []
    for one in target.source:
        file = one.file or target.measured.file
        rows = rows_of(results / file) if file else []
        where = {"dataset": one.dataset, **one.where}
        fits = [row for row in rows if all(row.get(key) == value for key, value in where.items())]
        number_ = next(printed for printed in target.printed if is_of(one, printed))
        if not fits:
            continue
        used.add((number_.file, number_.row))
        mean = one.factor * float(fits[0][one.column])
        error = fits[0].get(f"{one.column}_error")
        ours = Interval.of_error(mean, one.factor * float(error) if error else math.nan)
        lines.append(
            dataclasses.replace(
                bare(number_), ours=ours, why="", digits=3 if abs(mean) < 1 else 1,
                to_printed=ours.less(float(number_.value)), remark=f"column {one.column}",
            )
        )  # fmt: skip
    return lines + _curves(target, results)


def missing_measurement(target: PaperTarget, results: Path) -> tuple[str, ...]:
    """Return the words of the command that measures what a target without rows shows; empty where its file is there."""
    file, (program, *words) = target.measured.file, shlex.split(target.measured.command or "-")
    if target.trains or not file or program != "ldp" or (results / file).is_file():
        return ()
    folder = words.index("--output") + 1
    return (*words[:folder], str(results / Path(words[folder]).relative_to("results")), *words[folder + 1 :])


def _curves(target: PaperTarget, results: Path) -> list[Line]:
    """Return the lines of a figure that is measured without training.

    A row of the file is one line, or one for each place `along` an axis, of which each has a column of its own. `rows`
    and `where` say which rows of the file are shown.
    """
    shown = target.measured.shows
    if shown is None:
        return []
    lines, columns = [], shown.along or {"": shown.column}
    for row in rows_of(results / target.measured.file):
        there, name = all(row[key] == value for key, value in shown.where.items()), row[shown.key]
        if not there or (shown.rows and name not in shown.rows):
            continue
        for place, column in columns.items():
            mean, error = (shown.factor * float(row.get(key) or math.nan) for key in (column, f"{column}_error"))
            lines.append(
                Line(
                    dataset=row["dataset"], row=name, place=place, epsilon=float(row["epsilon"]),
                    metric=shown.metric, printed="", spread="", theirs=None,
                    ours=Interval.of_error(mean, error), floor=None, ceiling=None, to_printed=None, apart=None,
                    mean_epsilon=None, remark=f"column {column}", digits=shown.digits,
                )
            )  # fmt: skip
    return lines


def is_of(source: MeasuredNumber, one: Printed) -> bool:
    """Return whether an entry of `from` is about a printed number."""
    same = (one.label, one.metric, one.dataset) == (source.printed, source.metric, source.dataset)
    return same and source.csv in (None, one.row)


def _key(made: TargetCell) -> tuple[Any, ...]:
    assert made.asked is not None
    return made.cell.dataset, made.asked.label, made.cell.epsilon, axes_text(made.cell.axes)


def _same(one: float, other: float) -> bool:
    return one == other or math.isclose(one, other, rel_tol=1e-9)


def _measure(one: CellOutcome, printed: Printed | None) -> Measure:
    task = measures_of(one.made.cell.places.get("train.task", "")) if "train.task" in one.made.cell.places else None
    known = [measure for name in one.scores for measure in _ALL if measure.name == name]
    if printed is not None:
        found = [measure for measure in known if measure.name == printed.metric]
        if not found:
            raise DataError(f"{printed.file}, row {printed.row}: {printed.metric} is nothing that a run measures")
        return found[0]
    return task.headline if task else known[0]


_ALL = {measure.name: measure for name in tasks() for measure in measures_of(name).measures}.values()


def _interval(one: CellOutcome, measure: Measure, confidence: Confidence) -> Interval:
    return measure.interval(one.scores[measure.name], confidence)


def _reference(
    references: Mapping[tuple[Any, ...], CellOutcome], cell: Cell, role: Role, measure: Measure, confidence: Confidence
) -> Interval | None:
    found = references.get((cell.dataset, cell.setting, role))
    return None if found is None else _interval(found, measure, confidence)


def compare(found: Reproduction, committed: Path) -> list[str]:
    """Return which numbers have moved against a committed table, beyond the interval that is committed beside them."""
    path = folder_of(found.target, found.profile.name, committed) / "table.csv"
    if not path.is_file():
        raise ArtifactError(f"{path} does not exist: nothing to compare with")
    keys = ("dataset", "row", "place", "epsilon", "metric", "number")
    before = {tuple(row[key] for key in keys): row for row in rows_of(path)}
    moved = []
    for row in csv.DictReader(io.StringIO(csv_text(found))):
        key = tuple(row[name] for name in keys)
        old = before.pop(key, None)
        words = " ".join(filter(None, key[:4]))
        if old is None:
            moved.append(f"{words}: is new")
            continue
        for column in ("theirs", "ours"):
            if old[column] == row[column]:
                continue
            now = decimal(row[column])
            low, high = (decimal(old[f"{column}_{end}"]) for end in ("low", "high"))
            if now is None or low is None or high is None or not low <= now <= high:
                moved.append(f"{words}: {column} was {old[column] or 'empty'}, is {row[column] or 'empty'}")
        if old["printed"] != row["printed"]:
            moved.append(f"{words}: printed was {old['printed']}, is {row['printed']}")
    return moved + [f"{' '.join(filter(None, key[:4]))}: is gone" for key in before]
