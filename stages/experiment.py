"""A whole grid without DVC: every cell's runs are an artifact, and what is there is not made again.

A cell is computed as `ldp run` does it, in memory, with the numbers that the pipeline gives for the same parameters.
Several processes share the cells of a grid: each takes one that nobody has claimed. A cell is trained on one thread,
so that its numbers are the same whatever the number of processes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from graphldp import methods
from graphldp.errors import ArtifactError, OptionError, unknown_name
from graphldp.experiment.cell import learn_majority
from graphldp.experiment.options import INDUCTIVE, TrainParams
from graphldp.experiment.plan import CellPlan, Devices, Source, plan_of
from graphldp.experiment.resources import Resources
from graphldp.graph import Graph
from graphldp.ledger import epsilon_text
from graphldp.measures import measures_of
from graphldp.methods import Role
from graphldp.progress import Progress
from graphldp.stages.download import obtain, wished
from graphldp.stages.evaluate import measure, write
from graphldp.stages.files.artifacts import read_meta, write_json
from graphldp.stages.files.cells import Cells, cell_mark, mark_of, not_lost
from graphldp.stages.files.floors import Floors
from graphldp.stages.files.graphs import graph_hash, read_graph, read_graph_meta
from graphldp.stages.files.paths import cell_path, graph_dir
from graphldp.stages.files.runs import found_meta, runs_meta, write_runs
from graphldp.stages.files.shared_work import helpers, helping
from graphldp.stages.grids.cell import Cell, value_text
from graphldp.stages.grids.params import Params
from graphldp.stages.pages.class_information import backgrounds_of
from graphldp.stages.pages.tables import Result
from graphldp.stages.pages.wording import at, counted, short

__all__ = [
    "DevicesInMemory",
    "GridPlan",
    "Sources",
    "Spent",
    "cell_title",
    "check",
    "choose",
    "home",
    "plan",
    "results_of",
    "run_cells",
    "run_plans",
    "spent",
    "write_results",
]

_LEAST, _FEATURES = 0.2, 2300.0  # of a row's work: with no features, and how many of them add a floor's learner
_LOOK_SECONDS = 0.5  # how often a process that has nothing left to claim looks whether the others are done


class Sources(Protocol):
    """Where the rows of a grid learn from."""

    def of(self, graph: Graph, recipe: methods.Method, cell: Cell, params: Params) -> Source:
        """Return a cell's source, for a method as the cell has it."""
        ...


class DevicesInMemory:
    """Devices that report in memory."""

    def of(self, graph: Graph, recipe: methods.Method, cell: Cell, params: Params) -> Source:
        """Return the devices of a cell."""
        return Devices(
            graph=graph,
            recipe=recipe,
            mechanism=cell.mechanism,
            epsilon=cell.epsilon,
            options=cell.options,
            params=params,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GridPlan:
    """What is to be done: every chosen cell, where its runs are to stand, and whether they are there.

    `sources` says where rows learn from.
    """

    experiment: Params
    cells: tuple[Cell, ...]
    paths: tuple[Path, ...]
    done: tuple[bool, ...]
    sources: Sources

    @property
    def todo(self) -> tuple[Cell, ...]:
        """The cells that have to be computed."""
        return tuple(cell for cell, done in zip(self.cells, self.done, strict=True) if not done)


def home(data: Path, experiment: Params) -> Path:
    """Return the folder of an experiment's runs; below it they stand as the pipeline's do below `data`."""
    return data / "experiments" / experiment.name if experiment.name else data


def choose(experiment: Params, only: Sequence[str]) -> tuple[Cell, ...]:
    """Return the cells that `only` leaves: each is KEY=VALUE[,VALUE...], KEY a dataset, a row, epsilon or an axis.

    What compares, the floor and the ceiling of every table that is left, stays.
    """
    cells = experiment.cells()
    for text in only:
        key, equals, wanted = text.partition("=")
        if not (equals and wanted):
            raise OptionError(f"--only takes KEY=VALUE, got {text!r}")
        axes = (*experiment.asked, *experiment.vary)
        keys = {"dataset", "row", "epsilon", *axes, *map(short, axes)}
        if key not in keys:
            raise unknown_name("key of --only", key, keys)
        there = {value for cell in experiment.cells() if (value := _value(cell, key)) is not None}
        values = wanted.split(",")
        for value in values:
            if value not in there:
                raise unknown_name(key, value, there)
        cells = [cell for cell in cells if _value(cell, key) in {None, *values}]
    if only and not any(_is_row(cell) for cell in cells):
        raise OptionError(f"--only {' --only '.join(only)} leaves no row")
    return tuple(cells)


def _is_row(cell: Cell) -> bool:
    return methods.role_of(cell.method) is Role.PRIVATE


def _value(cell: Cell, key: str) -> str | None:
    """Return what a cell has for a key of `--only`; None where the key cannot leave it out."""
    if key == "dataset":
        return cell.dataset
    if key in ("row", "epsilon"):
        if not _is_row(cell):
            return None
        return cell.name if key == "row" else epsilon_text(cell.epsilon)
    for name, value in cell.axes:
        if key in (name, short(name)):
            return value_text(value)
    return None


def plan(
    experiment: Params,
    data: Path,
    only: Sequence[str] = (),
    progress: Progress | None = None,
    *,
    fetch: bool = True,
    sources: Sources | None = None,
    device: str = "auto",
    cells: Sequence[Cell] | None = None,
) -> GridPlan:
    """Return what is to be done. With `fetch`, graphs that are not there are downloaded first.

    `cells` are those to look at, where they are not the grid's own.
    """
    sources = sources or DevicesInMemory()
    cells = choose(experiment, only) if cells is None else tuple(cells)
    folder = home(data, experiment)
    if fetch:
        for cell in {cell.graph: cell for cell in cells}.values():
            if cell.data or not graph_dir(data, cell.graph).exists():
                name = cell.graph if cell.data else None
                obtain(cell.dataset, data, settings=cell.data, name=name, progress=progress)
    work = _Work(experiment, data, sources, device)
    paths = [cell_path(folder, cell) for cell in cells]
    done = [
        graph_dir(data, cell.graph).exists() and path.exists() and _is_there(path, work.mark(cell))
        for cell, path in zip(cells, paths, strict=True)
    ]
    return GridPlan(experiment=experiment, cells=cells, paths=tuple(paths), done=tuple(done), sources=sources)


def _is_there(path: Path, mark: str) -> bool:
    """Whether a file holds what this code makes of these parameters; anything else is made anew."""
    if not path.exists():
        return False
    try:
        return read_meta(path, "ldp experiment").get("fingerprint") == mark
    except ArtifactError:
        return False


class _Work:
    """The cells of a grid, with the graph of the last one and what its floor's learners have made of it."""

    def __init__(
        self, experiment: Params, data: Path, sources: Sources, device: str, note: Callable[[str], None] | None = None
    ) -> None:
        self.experiment, self.data, self.sources, self.device, self._note = experiment, data, sources, device, note
        self._graph: tuple[str, Graph, str, Resources] | None = None
        self._claims: dict[str, str] = {}

    def graph(self, cell: Cell) -> tuple[Graph, str, Resources]:
        """Return a cell's graph, its hash, and what was computed on it."""
        if self._graph is None or self._graph[0] != cell.graph:
            folder = graph_dir(self.data, cell.graph)
            own = Resources(note=self._note, memo=Floors(self.data, self._note))
            self._graph = (cell.graph, read_graph(folder), graph_hash(folder), own)
        return self._graph[1:]

    def points(self, cell: Cell) -> CellPlan | None:
        """Return what a cell is to try; None for one of which nothing is learned."""
        recipe = methods.method(cell.method).but(cell.changes)
        if not recipe.model:
            return None
        params, graph = self.experiment.of(cell), self.graph(cell)[0]
        try:
            return plan_of(self.sources.of(graph, recipe, cell, params), params)
        except OptionError as error:
            raise OptionError(f"{self.experiment.name}: {cell_title(cell)}: {error}") from None

    def claim(self, cell: Cell) -> str:
        """Return a hash of all that decides a cell's numbers; empty for one of which nothing is learned."""
        key = repr(cell)
        if key not in self._claims:
            points, content = self.points(cell), self.graph(cell)[1]
            self._claims[key] = (points and cell_mark(points, self.experiment.of(cell), content, self.device)) or ""
        return self._claims[key]

    def mark(self, cell: Cell) -> str:
        """Return the same together with its name."""
        params, claim = self.experiment.of(cell), self.claim(cell)
        told = [params.further.facts()] if params.further.asked else []
        own = claim or [params.seed, params.seeds, dataclasses.asdict(params.train), *told]
        return mark_of([cell.name, list(cell.axes), own], self.graph(cell)[1])

    def compute(self, cell: Cell, path: Path, progress: Progress | None) -> None:
        """Write a cell's runs."""
        folder, params = graph_dir(self.data, cell.graph), self.experiment.of(cell)
        start, cpu = time.perf_counter(), time.process_time()
        points, own = self.points(cell), methods.method(cell.method)
        graph, content, resources = self.graph(cell)
        if points is None:
            result = learn_majority(graph, params)
            meta = runs_meta(graph, folder, own, "none", 0.0, cell.name, params)
        else:
            result = Cells(self.data).learn(
                graph, points, params, content, device=self.device, resources=resources, progress=progress
            )
            assert result.setup is not None
            reports = result.setup.meta(content, params.draws)
            recipe = own if own.learners else result.setup.recipe  # the row is not the learner that was chosen for it
            meta = runs_meta(graph, folder, recipe, cell.mechanism, cell.epsilon, cell.name, params, reports)
            meta |= found_meta(points, result, meta["search"])
        meta |= {
            "experiment": self.experiment.name,
            "axes": dict(cell.axes),
            "changes": dict(cell.changes),
            "fingerprint": self.mark(cell),
        }
        with not_lost(self.data):
            write_runs(path, result, meta)
        facts = {"seconds": round(time.perf_counter() - start, 3), "device": self.device, "threads": 1}
        write_json(path.with_suffix(".time.json"), facts | {"cpu_seconds": round(time.process_time() - cpu, 3)})


def check(what: GridPlan, data: Path, device: str = "auto") -> list[str]:
    """Raise what is wrong with any cell that is not there, without computing it or fetching its graph.

    Returned are the graphs that are not there: of their cells nothing is checked but names.
    """
    work = _Work(what.experiment, data, what.sources, device)
    for cell in what.todo:
        if graph_dir(data, cell.graph).exists():
            work.points(cell)
        else:
            wished(cell.dataset, data, settings=cell.data, name=cell.graph if cell.data else None)
            methods.method(cell.method).but(cell.changes)
    return list(dict.fromkeys(cell.graph for cell in what.todo if not graph_dir(data, cell.graph).exists()))


def run_cells(
    what: GridPlan,
    data: Path,
    device: str = "auto",
    progress: Progress | None = None,
    *,
    jobs: int = 1,
    note: Callable[[str], None] | None = None,
) -> None:
    """Compute every cell of a plan that is not there, on `jobs` processes; as `run_plans`."""
    for _ in run_plans([what], data, device, progress, jobs=jobs, note=note):
        pass


def run_plans(
    plans: Sequence[GridPlan],
    data: Path,
    device: str = "auto",
    progress: Progress | None = None,
    *,
    jobs: int = 1,
    note: Callable[[str], None] | None = None,
) -> Iterator[int]:
    """Compute every cell that is not there, on `jobs` processes, and yield each plan's place once all of its are there.

    Plans are worked off in their order, and nobody waits for another process as long as any plan has a cell left.
    Stopped, they go on with the cells that they were in.

    Progress is counted in runs' epochs, weighted by the size of the graph and the number of learners, and has what the
    other processes have finished, so that the time left is a fair guess. `note` is told, in whichever process it
    happens, what a full disk keeps less of.
    """
    for what in plans:
        check(what, data, device)  # whatever is wrong with a cell shows before the first one is trained
    if jobs < 1:
        raise OptionError(f"jobs must be at least 1, got {jobs}")
    count = min(jobs, sum(len(what.todo) for what in plans)) - 1
    with helpers(count, _helper, tuple(plans), data, device, note):
        yield from _work_through(plans, data, device, progress, note)


def _helper(plans: Sequence[GridPlan], data: Path, device: str, note: Callable[[str], None] | None) -> None:
    """Work on the cells of plans in another process."""
    with helping():
        for _ in _work_through(plans, data, device, None, note):
            pass


def _work_through(
    plans: Sequence[GridPlan],
    data: Path,
    device: str,
    progress: Progress | None,
    note: Callable[[str], None] | None,
) -> Iterator[int]:
    """Compute the cells that nobody else has claimed, until all are there; yield each plan once it is whole."""
    homes = [home(data, what.experiment) for what in plans]
    weights = {
        cell_path(folder, cell): _weight(data, cell, what.experiment.of(cell).train)
        for what, folder in zip(plans, homes, strict=True)
        for cell in what.todo
    }
    tally, count = _Tally(weights), 0
    left = [list(what.todo) for what in plans]
    works = {place: _Work(what.experiment, data, what.sources, device, note) for place, what in enumerate(plans)}
    whole = 0  # so many plans, from the first on, have been yielded
    while whole < len(plans):
        if not left[whole]:
            works.pop(whole)
            yield whole
            whole += 1
            continue
        found = _unclaimed(left, works, weights)
        if found is None:  # all are claimed by other processes, which may be stopped
            time.sleep(_LOOK_SECONDS)
            continue
        place, cell = found
        path, work = cell_path(homes[place], cell), works[place]
        left[place].remove(cell)
        count += 1
        words = f"{count} of {len(weights)}: {cell_title(cell)}"
        if not _is_there(path, work.mark(cell)):
            with _one_thread():
                work.compute(cell, path, _part(progress, tally, weights[path], words))
        tally.finish(path)
        if progress is not None:
            progress(tally.done(), tally.total, words)


def _unclaimed(
    left: Sequence[Sequence[Cell]],
    works: Mapping[int, _Work],
    weights: Mapping[Path, int],
) -> tuple[int, Cell] | None:
    """Return the first cell that is left and that nobody is computing, with its plan's place; None if there is none."""
    for place, work in works.items():
        folder = home(work.data, work.experiment)
        for cell in _in_turn(left[place], lambda cell: weights[cell_path(folder, cell)]):  # noqa: B023
            claim = work.claim(cell)
            if not claim or Cells(work.data).free(claim):
                return place, cell
    return None


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Train on one thread: other processes have the others."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _in_turn(left: Sequence[Cell], weight: Callable[[Cell], int]) -> list[Cell]:
    """Return the cells in the order to work in, graph by graph.

    The floor comes first. Rows that choose among its learners come last as long as it is not there, so that what one
    process finds out of the floor need not be found by another; then first, as they take longest.
    """
    graphs = list(dict.fromkeys((cell.graph, cell.setting) for cell in left))
    unknown = {(cell.graph, cell.setting) for cell in left if methods.role_of(cell.method) is Role.FLOOR}

    def key(cell: Cell) -> tuple[int, int, int]:
        place = (cell.graph, cell.setting)
        if methods.role_of(cell.method) is Role.FLOOR:
            rank = 0
        elif methods.method(cell.method).learners:
            rank = 3 if place in unknown else 1
        else:
            rank = 2
        return graphs.index(place), rank, -weight(cell)

    return sorted(left, key=key)


class _Tally:
    """What of all cells is finished, by this process or, as their files show, by another one."""

    def __init__(self, weights: Mapping[Path, int]) -> None:
        self.total = sum(weights.values())
        self._left, self._done = dict(weights), 0
        self._begun, self._looked = time.time(), time.monotonic()

    def finish(self, path: Path) -> None:
        """Note a cell that is there."""
        self._done += self._left.pop(path, 0)

    def done(self) -> int:
        """Return the weight of all that is finished; files are looked at now and then."""
        if time.monotonic() - self._looked > _LOOK_SECONDS:
            self._looked = time.monotonic()
            for path in [path for path in self._left if path.is_file() and path.stat().st_mtime > self._begun]:
                self.finish(path)
        return self._done


def _weight(data: Path, cell: Cell, train: TrainParams) -> int:
    """Return how much work a cell is, beside others: the floor's learners are there when others need them.

    A learner that is told features costs more than one of the floor's, the more features there are: in 24 rows of
    Cora, CiteSeer, squirrel and Facebook between 0.8 and 2.3 times as much. The floor's learners are there for whom
    chooses among them, and what is new there costs about as much as one of them.
    """
    recipe = methods.method(cell.method)
    if not recipe.model:
        return 1
    meta = read_graph_meta(graph_dir(data, cell.graph))
    told = _LEAST + meta.d / _FEATURES
    few = len(recipe.unseen) / len(recipe.learners) if recipe.learners and train.split == INDUCTIVE else 1.0
    if recipe.role is Role.FLOOR:
        units = recipe.trained * few
    elif recipe.role is Role.CEILING:
        units = recipe.trained * few * told * measures_of(train.task).longer
    else:
        units = 1.0 if recipe.learners else told
    return max(1, int((meta.n + meta.edges) * units))


def cell_title(cell: Cell) -> str:
    """Return what a person calls a cell."""
    place = [*(at(name, value_text(value)) for name, value in cell.axes)]
    return ", ".join([cell.dataset, cell.name, *place, f"epsilon {epsilon_text(cell.epsilon)}"])


def _part(progress: Progress | None, tally: _Tally, weight: int, words: str) -> Progress | None:
    if progress is None:
        return None
    return lambda done, whole, _: progress(tally.done() + int(weight * done / max(whole, 1)), tally.total, words)


def results_of(what: GridPlan, data: Path, papers: Path, progress: Progress | None = None) -> Result:
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


def write_results(what: GridPlan, found: Result, results: Path) -> list[Path]:
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
        on = f"{threads} {'thread' if threads == '1' else 'threads'}"
        return f"{counted(self.cells, 'cell')} took {whole} in all, on {on}."


def spent(what: GridPlan) -> Spent:
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
