"""A whole grid in one process, without DVC: every cell's runs are an artifact, and what is there is not made again.

A cell is computed as `ldp run` does it, in memory, with the numbers that the pipeline gives for the same parameters.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphldp import __version__, methods
from graphldp.errors import ArtifactError, OptionError, unknown_name
from graphldp.experiment.cell import learn_cell, learn_majority
from graphldp.experiment.options import report_seeds
from graphldp.experiment.plan import Devices, plan_of
from graphldp.experiment.plan import Plan as Points
from graphldp.experiment.resources import Resources
from graphldp.graph import Graph
from graphldp.jsonable import plain
from graphldp.ledger import epsilon_text
from graphldp.stages.artifacts import read_meta, write_json
from graphldp.stages.backgrounds import backgrounds_of
from graphldp.stages.code import code_hash
from graphldp.stages.download import obtain
from graphldp.stages.evaluate import measure, write
from graphldp.stages.floors import Floors
from graphldp.stages.graphs import graph_hash, read_graph, read_graph_meta
from graphldp.stages.grids import Experiment
from graphldp.stages.params import Cell, Params, value_text
from graphldp.stages.paths import graph_dir
from graphldp.stages.tables import Result
from graphldp.stages.train import found_meta, runs_meta, write_runs

__all__ = [
    "Plan",
    "Spent",
    "cell_path",
    "cell_title",
    "choose",
    "home",
    "plan",
    "results_of",
    "run_cells",
    "spent",
    "write_results",
]

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be done: every chosen cell, where its runs are to stand, and whether they are there."""

    experiment: Experiment
    cells: tuple[Cell, ...]
    paths: tuple[Path, ...]
    done: tuple[bool, ...]

    @property
    def todo(self) -> tuple[Cell, ...]:
        """The cells that have to be computed."""
        return tuple(cell for cell, done in zip(self.cells, self.done, strict=True) if not done)


def home(data: Path, experiment: Experiment) -> Path:
    """Return the folder of an experiment's runs; below it they stand as the pipeline's do below `data`."""
    return data / "experiments" / experiment.name


def cell_path(folder: Path, cell: Cell) -> Path:
    """Return the file of a cell's runs."""
    place = [*(f"{name}={value_text(value)}" for name, value in cell.axes), f"eps={epsilon_text(cell.epsilon)}"]
    return folder / "runs" / cell.graph / cell.name / f"{','.join(place)}.parquet"


def choose(experiment: Experiment, only: Sequence[str]) -> tuple[Cell, ...]:
    """Return the cells that `only` leaves: each is KEY=VALUE[,VALUE...], KEY a dataset, an arm, epsilon or an axis.

    What compares, the floor and the ceiling of every table that is left, stays.
    """
    cells = experiment.cells()
    for text in only:
        key, equals, wanted = text.partition("=")
        if not (equals and wanted):
            raise OptionError(f"--only takes KEY=VALUE, got {text!r}")
        keys = {"dataset", "arm", "epsilon", *experiment.vary, *(_short(name) for name in experiment.vary)}
        if key not in keys:
            raise unknown_name("key of --only", key, keys)
        there = {value for cell in experiment.cells() if (value := _value(cell, key)) is not None}
        values = wanted.split(",")
        for value in values:
            if value not in there:
                raise unknown_name(key, value, there)
        cells = [cell for cell in cells if _value(cell, key) in {None, *values}]
    if only and not any(_is_arm(cell) for cell in cells):
        raise OptionError(f"--only {' --only '.join(only)} leaves no arm")
    return tuple(cells)


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _is_arm(cell: Cell) -> bool:
    return cell.method not in ("majority", "structure", "nonpriv")


def _value(cell: Cell, key: str) -> str | None:
    """Return what a cell has for a key of `--only`; None where the key cannot leave it out."""
    if key == "dataset":
        return cell.dataset
    if key in ("arm", "epsilon"):
        if not _is_arm(cell):
            return None
        return cell.name if key == "arm" else epsilon_text(cell.epsilon)
    for name, value in cell.axes:
        if key in (name, _short(name)):
            return value_text(value)
    return None


def plan(
    experiment: Experiment,
    data: Path,
    only: Sequence[str] = (),
    progress: Progress | None = None,
    *,
    fetch: bool = True,
) -> Plan:
    """Return what is to be done. With `fetch`, graphs that are not there are downloaded first."""
    cells = choose(experiment, only)
    folder = home(data, experiment)
    if fetch:
        for cell in {cell.graph: cell for cell in cells}.values():
            if cell.data or not graph_dir(data, cell.graph).exists():
                name = cell.graph if cell.data else None
                obtain(cell.dataset, data, settings=cell.data, name=name, progress=progress)
    paths = [cell_path(folder, cell) for cell in cells]
    done = [
        graph_dir(data, cell.graph).exists() and _is_there(path, _mark(experiment, cell, data))
        for cell, path in zip(cells, paths, strict=True)
    ]
    return Plan(experiment=experiment, cells=cells, paths=tuple(paths), done=tuple(done))


def _is_there(path: Path, mark: str) -> bool:
    """Whether a file holds what this code makes of these parameters; anything else is made anew."""
    if not path.exists():
        return False
    try:
        return read_meta(path, "ldp experiment").get("fingerprint") == mark
    except ArtifactError:
        return False


def run_cells(what: Plan, data: Path, device: str = "auto", progress: Progress | None = None) -> None:
    """Compute every cell that is not there. Stopped, it goes on with the cell that it was in.

    Progress is counted in runs' epochs, weighted by the size of the graph, so that the time left is a fair guess.
    """
    folder = home(data, what.experiment)
    weights = [_weight(data, cell) for cell in what.todo]
    total, before = sum(weights), 0
    _check(what, data)  # whatever is wrong with a cell shows before the first one is trained
    graphs: dict[str, Graph] = {}
    resources = Resources(memo=Floors(data))
    for number, (cell, weight) in enumerate(zip(what.todo, weights, strict=True), start=1):
        if cell.graph not in graphs:
            graphs = {cell.graph: read_graph(graph_dir(data, cell.graph))}
        words = f"{number} of {len(what.todo)}: {cell_title(cell)}"
        _compute(
            what.experiment, cell, graphs[cell.graph], data, cell_path(folder, cell), device, resources,
            _part(progress, before, weight, total, words),
        )  # fmt: skip
        before += weight


def _weight(data: Path, cell: Cell) -> int:
    meta = read_graph_meta(graph_dir(data, cell.graph))
    return 1 if cell.method == "majority" else int(meta["n"]) + int(meta["edges"])


def cell_title(cell: Cell) -> str:
    """Return what a person calls a cell."""
    place = [*(f"{_short(name)} {value_text(value)}" for name, value in cell.axes)]
    return ", ".join([cell.dataset, cell.name, *place, f"epsilon {epsilon_text(cell.epsilon)}"])


def _part(progress: Progress | None, before: int, weight: int, total: int, words: str) -> Progress | None:
    if progress is None:
        return None
    return lambda done, whole, _: progress(before + int(weight * done / max(whole, 1)), total, words)


def _check(what: Plan, data: Path) -> None:
    graphs: dict[str, Graph] = {}
    for cell in what.todo:
        if cell.graph not in graphs:
            graphs = {cell.graph: read_graph(graph_dir(data, cell.graph))}
        _points(what.experiment, cell, graphs[cell.graph])


def _points(experiment: Experiment, cell: Cell, graph: Graph) -> Points | None:
    """Return what a cell is to try; None for one of which nothing is learned."""
    recipe = methods.method(cell.method).but(cell.changes)
    if not recipe.model:
        return None
    params = experiment.of(cell)
    devices = Devices(
        graph=graph,
        recipe=recipe,
        mechanism=cell.mechanism,
        epsilon=cell.epsilon,
        options=cell.options,
        params=params,
    )
    try:
        return plan_of(devices, params)
    except OptionError as error:
        raise OptionError(f"{experiment.name}: {cell_title(cell)}: {error}") from None


def _compute(
    experiment: Experiment,
    cell: Cell,
    graph: Graph,
    data: Path,
    path: Path,
    device: str,
    resources: Resources,
    progress: Progress | None,
) -> None:
    folder, params = graph_dir(data, cell.graph), experiment.of(cell)
    start = time.perf_counter()
    points = _points(experiment, cell, graph)
    if points is None:
        result = learn_majority(graph, params)
        meta = runs_meta(graph, folder, methods.method(cell.method), "none", 0.0, cell.name, params)
    else:
        result = learn_cell(graph, points, params, device=device, resources=resources, progress=progress)
        assert result.setup is not None
        reports = result.setup.meta(graph_hash(folder), report_seeds(params.seeds, params.search.seeds))
        own = methods.method(cell.method)
        recipe = own if own.learners else result.setup.recipe  # the row is not the learner that was chosen for it
        meta = runs_meta(graph, folder, recipe, cell.mechanism, cell.epsilon, cell.name, params, reports)
        meta |= found_meta(points, result, meta["search"])
    meta |= {
        "experiment": experiment.name,
        "axes": dict(cell.axes),
        "changes": dict(cell.changes),
        "fingerprint": _mark(experiment, cell, data),
    }
    write_runs(path, result, meta)
    seconds = round(time.perf_counter() - start, 3)
    write_json(path.with_suffix(".time.json"), {"seconds": seconds, "device": device, "threads": _threads()})


def _threads() -> int:
    import torch

    return torch.get_num_threads()


def _mark(experiment: Experiment, cell: Cell, data: Path) -> str:
    """Return a hash of all that decides a cell's numbers: its parameters, its graph, and the library's code."""
    params = experiment.of(cell)
    facts = [
        {key: getattr(cell, key) for key in ("graph", "name", "method", "mechanism", "epsilon", "options", "changes")},
        {"seed": params.seed, "seeds": params.seeds, **_asdict(params, "search", "train")},
        list(cell.axes),
        graph_hash(graph_dir(data, cell.graph)),
        code_hash("train"),
        __version__,
    ]
    return hashlib.sha256(json.dumps(plain(facts), sort_keys=True).encode()).hexdigest()


def _asdict(params: Params, *parts: str) -> dict[str, Any]:
    return {part: dataclasses.asdict(getattr(params, part)) for part in parts}


def results_of(what: Plan, data: Path, papers: Path, progress: Progress | None = None) -> Result:
    """Return what the cells say together; every one of them must be there."""
    experiment = what.experiment
    make = f"ldp experiment {experiment.name}"
    found = measure(experiment, home(data, experiment), papers, progress, cells=what.cells, make=make)
    notes = (*found.notes, spent(what).text)
    return dataclasses.replace(
        found,
        title=experiment.title,
        about=" ".join(experiment.about.split()),
        experiment=experiment.name,
        notes=notes,
        backgrounds=backgrounds_of(what.cells, experiment.seed),
    )


def write_results(what: Plan, found: Result, results: Path) -> list[Path]:
    """Write the tables, figures, page and metrics of the whole experiment, and the time it took, below its folder."""
    folder = results / what.experiment.name
    files = write(found, folder)
    write_json(folder / "time.json", dataclasses.asdict(spent(what)))
    return [*files, folder / "time.json"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The time that an experiment's cells took, on whatever machine they were computed."""

    cells: int
    seconds: float
    threads: tuple[int, ...]
    by_dataset: Mapping[str, float]

    @property
    def text(self) -> str:
        """One line for people."""
        units = ((5400.0, 3600.0, "hours"), (90.0, 60.0, "minutes"), (0.0, 1.0, "seconds"))
        unit, word = next((unit, word) for least, unit, word in units if self.seconds >= least)
        whole = f"{self.seconds / unit:.1f} {word}"
        threads = "/".join(map(str, self.threads))
        return f"The {self.cells} cells took {whole} in all, on {threads} {'thread' if threads == '1' else 'threads'}."


def spent(what: Plan) -> Spent:
    """Return what is recorded beside the cells."""
    seconds: dict[str, float] = {}
    threads: set[int] = set()
    for cell, path in zip(what.cells, what.paths, strict=True):
        try:
            facts = json.loads(path.with_suffix(".time.json").read_bytes())
        except (OSError, ValueError):
            continue
        seconds[cell.dataset] = seconds.get(cell.dataset, 0.0) + float(facts["seconds"])
        threads.add(int(facts["threads"]))
    return Spent(
        cells=len(what.cells),
        seconds=round(sum(seconds.values()), 1),
        threads=tuple(sorted(threads)),
        by_dataset={name: round(value, 1) for name, value in seconds.items()},
    )
