"""From runs to what is said of them: the table, the metrics, the figures and the report page.

Runs are chosen by what their files say of themselves, never by their names. A table is only made from a whole grid
in which every row was searched alike and measured on the same splits; anything else is an error of one line.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from graphldp import __version__, methods
from graphldp.errors import ArtifactError, DataError
from graphldp.evaluation import Confidence
from graphldp.experiment.options import INDUCTIVE, Further
from graphldp.experiment.scores import measured
from graphldp.ledger import epsilon_text, ledger_from_meta
from graphldp.measures import DEFAULT_TASK, measures_of
from graphldp.methods import Role
from graphldp.progress import Progress
from graphldp.stages.files.answers import further_in
from graphldp.stages.files.artifacts import read_meta, read_table, write_json, write_text
from graphldp.stages.files.commit import code_commit
from graphldp.stages.files.paths import PUBLIC
from graphldp.stages.files.runs import cell_in
from graphldp.stages.files.traces import FILE, grid_hash
from graphldp.stages.grids.cell import Axes, Cell, value_text
from graphldp.stages.grids.paper_numbers import PaperNumber, PaperNumbers, changes_of, load_papers
from graphldp.stages.grids.params import Params
from graphldp.stages.pages.figures import budget_figure
from graphldp.stages.pages.maps import drawn, map_figure, maps
from graphldp.stages.pages.report import report_page
from graphldp.stages.pages.tables import (
    ClaimMark,
    Result,
    Section,
    TableRow,
    csv_text,
    latex_text,
    markdown_text,
    metrics,
    number,
    plots_text,
)
from graphldp.stages.pages.wording import counted, spoken
from graphldp.tasks import TaskEntry

__all__ = ["evaluate", "measure", "printed_of", "remark_of", "told_apart", "write"]

_Key = tuple[str, str, str, str, float, str, tuple[tuple[str, str], ...]]
_SPLIT = ("root", "input", "train")  # the root seed, the graph and the fractions decide who is in which part
_PARTS = ("train", "validation", "test")
_TASK = "train.task"  # the axis that makes tables, not columns


@dataclass(frozen=True, slots=True, kw_only=True)
class _Runs:
    """One Runs artifact: its cell, its metadata and its final runs in the order of their numbers."""

    cell: Cell
    path: Path
    meta: dict[str, Any]
    measures: TaskEntry
    numbers: tuple[int, ...]
    scores: dict[str, NDArray[np.float64]]
    steps: tuple[int, ...]
    sizes: tuple[tuple[int, ...], ...]

    @property
    def values(self) -> Hashable:
        """What its final runs have reached, in every measure: all that makes one row's runs differ from another's."""
        return tuple(tuple(self.scores[name].tolist()) for name in sorted(self.scores))

    @property
    def trained(self) -> bool:
        """Whether a model was trained for it; only the majority class needs none."""
        return methods.role_of(self.cell.method) is not Role.GUESS


def evaluate(params: Params, data: Path, results: Path, papers: Path, progress: Progress | None = None) -> Result:
    """Read the grid's runs below `data`, write everything below `results`, and return what was said."""
    result = measure(params, data, papers, progress)
    write(result, results)
    return result


def measure(
    params: Params,
    data: Path,
    papers: Path,
    progress: Progress | None = None,
    *,
    cells: Sequence[Cell] | None = None,
    make: str = "",
) -> Result:
    """Read the grid's runs and turn them into rows; write nothing.

    `cells` are those to look at, all of the grid's if left out; `make` is the command that makes them all, where it is
    not the pipeline's.
    """
    cells = params.cells() if cells is None else cells
    confidence = Confidence(level=params.evaluate.confidence)
    printed = load_papers(papers)
    index = _index(data, tuple(dict.fromkeys(cell.graph for cell in cells)))
    sections = []
    done = 0
    tables: dict[tuple[str, str, Axes], list[Cell]] = {}
    for cell in cells:
        tables.setdefault((cell.dataset, params.of(cell).train.task, cell.setting), []).append(cell)
    for (dataset, task, setting), own in tables.items():
        runs = []
        for cell in own:
            runs.append(_read(cell, task, index, params.seeds, make))
            done += 1
            if progress is not None:
                progress(done, len(cells), f"{cell.name} at epsilon {epsilon_text(cell.epsilon)}")
        section = _section(dataset, setting, runs, confidence, printed)
        sections.append(replace(section, labelled=_labelled(params, dataset)))
    notes = []
    if printed.missing:
        notes.append(f"No folder {papers.name!r} of papers was found, so no paper's number stands beside ours.")
    metas = [index[_key(cell, params.of(cell).train.task)][1] for cell in cells]
    made = {
        "code": sorted({str(meta.get("code", "")) for meta in metas}),
        "graphs": {str(meta["dataset"]): meta["input"] for meta in metas},
        "grid": grid_hash(params),
    }
    return Result(
        sections=tuple(sections),
        confidence=confidence,
        seed=params.seed,
        notes=tuple(notes),
        version=__version__,
        made=made,
        commit=code_commit(),
    )


def write(result: Result, results: Path) -> list[Path]:
    """Write tables, metrics, plot data, figures and the page, each atomically; return their paths."""
    texts: dict[str, str] = {}
    for name, part in result.tables.items():
        texts |= {
            f"tables/{name}.csv": csv_text(part),
            f"tables/{name}.md": markdown_text(part),
            f"tables/{name}.tex": latex_text(part),
        }
    texts |= {
        f"plots/{result.measures.headline.name}.csv": plots_text(result.tables["main"]),
        **{f"figures/{one.file}": budget_figure(one) for one in drawn(result)},
        **{f"figures/{one.file}": map_figure(one, width=760) for one in maps(result)},
        "report.html": report_page(result),
    }
    for name, text in texts.items():
        write_text(results / name, text)
    write_json(results / FILE, result.made)
    write_json(results / "metrics.json", metrics(result))
    return [*(results / name for name in texts), results / FILE, results / "metrics.json"]


def _key(cell: Cell, task: str) -> _Key:
    return cell.graph, cell.name, cell.method, cell.mechanism, cell.epsilon, task, _sorted(cell.axes)


def _sorted(axes: Iterable[tuple[str, Any]]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(_axes(axes)))


def _axes(axes: Iterable[tuple[str, Any]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value_text(value)) for name, value in axes if name != _TASK)


def _make(cell: Cell, task: str) -> str:
    option = "" if task == DEFAULT_TASK else f" --task {task}"
    return (
        f"ldp train --dataset {cell.dataset} --method {cell.method} --mechanism {cell.mechanism} "
        f"--epsilon {epsilon_text(cell.epsilon)}{option}"
    )


def _index(data: Path, datasets: tuple[str, ...]) -> dict[_Key, tuple[Path, dict[str, Any]]]:
    """Return every Runs artifact of the data sets under the cell that its metadata names."""
    found: dict[_Key, tuple[Path, dict[str, Any]]] = {}
    for dataset in datasets:
        for path in sorted((data / "runs" / dataset).glob("**/*.parquet")):
            meta = read_meta(path, "ldp train")
            try:
                if meta["kind"] != "runs":
                    raise ArtifactError(f"{path} is of kind {meta['kind']!r}, not runs; move it out of {data / 'runs'}")
                cell = cell_in(meta)
                task = measures_of(str(meta.get("task", DEFAULT_TASK))).task
                axes = _sorted(meta.get("axes", {}).items())
                key = (cell.dataset, cell.name, cell.method, cell.mechanism, cell.epsilon, task, axes)
            except KeyError as error:
                raise ArtifactError(
                    f"{path} does not say its {error.args[0]}; delete it and make it again with `ldp train`"
                ) from error
            if key in found:
                raise ArtifactError(
                    f"{found[key][0]} and {path} both hold {key[1]} on {key[0]} at epsilon {epsilon_text(key[4])}; "
                    "delete the one that is not meant"
                )
            found[key] = path, meta
    return found


def _read(cell: Cell, task: str, index: dict[_Key, tuple[Path, dict[str, Any]]], seeds: int, make: str) -> _Runs:
    name = f"{cell.name} ({cell.method}, {cell.mechanism}) on {cell.dataset} at epsilon {epsilon_text(cell.epsilon)}"
    measures = measures_of(task)
    if task != DEFAULT_TASK:
        name = f"{measures.title}, {name}"
    one = make or _make(cell, task)
    if _key(cell, task) not in index:
        remedy = f"`{make}`" if make else f"`{one}`, or the whole grid with `dvc repro`"
        raise ArtifactError(f"no runs of {name}; make them with {remedy}")
    path, meta = index[_key(cell, task)]
    table = read_table(path, one)
    scored = {f"test_{measure}": measure for measure in measures.names}
    sized = [f"{part}_{measures.parts}" for part in _PARTS]
    missing = {"role", "seed", "steps", *scored, *sized} - set(table.column_names)
    if missing:
        raise ArtifactError(f"{path} has no column {', '.join(sorted(missing))}; make it again with `{one}`")
    final = table.filter(pc.equal(table["role"], "final")).sort_by("seed")
    numbers = tuple(final["seed"].to_pylist())
    if numbers != tuple(range(seeds)):
        raise ArtifactError(
            f"{path} has {counted(len(numbers), 'final run')}, the grid asks for {seeds}; make it again with `{one}`"
        )
    scores = {name: np.array(final[column].to_pylist(), dtype=np.float64) for column, name in scored.items()}
    for measure in measures.measures:
        values = scores[measure.name]
        if not ((values >= measure.low) & (values <= measure.high) & np.isfinite(values)).all():
            raise ArtifactError(
                f"{path} has a final run without a test {measure.label} in [{measure.low:g}, {measure.high:g}]; make "
                f"it again with `{one}`"
            )
    sizes = tuple(zip(*(final[column].to_pylist() for column in sized), strict=True))
    steps = tuple(sorted({step for step in final["steps"].to_pylist() if step is not None}))
    return _Runs(
        cell=cell, path=path, meta=meta, measures=measures, numbers=numbers, scores=scores, steps=steps, sizes=sizes
    )


def _section(dataset: str, setting: Axes, runs: list[_Runs], confidence: Confidence, printed: PaperNumbers) -> Section:
    by_method = {one.cell.method: one for one in runs}
    missing = [one.name for one in methods.references() if one.name not in by_method]
    if missing:
        raise DataError(f"a table of {dataset} needs its floor and ceiling, and lacks {', '.join(missing)}")
    floor, ceiling = (by_method[methods.reference(role).name] for role in (Role.FLOOR, Role.CEILING))
    for one in runs:
        _check_paired(one, floor)
    runs = sorted(runs, key=_order(runs))
    rows = tuple(_row(one, floor, ceiling, confidence, printed) for one in runs)
    points, search_seeds = _budget(floor)
    train, validation, test = floor.sizes[0]
    section = Section(
        dataset=dataset,
        measures=floor.measures,
        setting=_axes(setting),
        rows=rows,
        runs=len(floor.numbers),
        learner=_learner(floor),
        ceiling=_learner(ceiling),
        learners=_learners(floor),
        points=points,
        search_seeds=search_seeds,
        search=spoken(floor.meta["search"]),
        sizes=(train, validation, test),
        **_asked_beside(floor),
    )
    return told_apart(section, [one.values for one in runs])


def _labelled(params: Params, dataset: str) -> str:
    """Return in words which share of a data set's labels is learned from, where only this one has that share."""
    share = params.overrides.get(dataset, {}).get("train.train_fraction")
    return "" if share is None else f"{100 * share:g} % of the labels"


def told_apart(section: Section, runs: Sequence[Hashable]) -> Section:
    """Return the section with every row whose runs are those of a row above it saying so; `runs` are the rows' own.

    The commonest class learns nothing, so that it is nobody's double.
    """
    first: dict[Hashable, TableRow] = {}
    rows = []
    for row, values in zip(section.rows, runs, strict=True):
        twin = None if row.role is Role.GUESS else first.setdefault(values, row)
        if twin is not None and twin is not row:
            private = twin.role is Role.PRIVATE
            budget = f" at epsilon {number(twin.epsilon)}" if private and twin.epsilon != row.epsilon else ""
            row = replace(row, same_as=section.called(twin) + budget, repeats=private)
        rows.append(row)
    return replace(section, rows=tuple(rows))


def _learner(runs: _Runs) -> str:
    """Return which of a row's learners was chosen; empty where its runs say nothing of any."""
    options = (runs.meta.get("chosen_point") or {}).get("options") or {}
    return str(options.get("learner", ""))


_WAY = {False: "reported by", True: "those of the trusted curator"}


def _asked_beside(floor: _Runs) -> dict[str, Any]:
    """Return what a table's people are asked for beside features, and the same in words; empty where it is public."""
    facts = further_in(floor.meta)
    ways = {name: value for name, value in facts.facts().items() if f"epsilon_{name}" in facts.budgets()}
    found = [
        f"{name} are {_WAY[facts.curated and name == 'links']} {how} at epsilon "
        f"{number(facts.budgets()[f'epsilon_{name}'])}"
        for name, how in ways.items()
    ]
    text = " and ".join(found)
    return {"asked": tuple(ways), "asked_beside": text[:1].upper() + text[1:]}


def _learners(floor: _Runs) -> tuple[str, ...]:
    """Return all of them, where the people of each part are a graph of their own: only some have a meaning there."""
    if floor.meta["train"].get("split") != INDUCTIVE:
        return ()
    return tuple(floor.meta["search"]["learners"])


def _as_papers_split(train: Mapping[str, Any]) -> bool:
    """Whether people are split as the papers do: half of them to train, all in one graph."""
    return bool(train.get("train_fraction", 0.5) == 0.5 and train.get("split") != INDUCTIVE)


def _check_paired(one: _Runs, floor: _Runs) -> None:
    """Refuse a row that was not measured as its floor was: other splits, or another search."""
    other = [key for key in _SPLIT if one.meta.get(key) != floor.meta.get(key)]
    if other or one.sizes != floor.sizes:
        reason = f" (they differ in {', '.join(other)})" if other else ""
        raise ArtifactError(
            f"{one.path} was measured on other splits than {floor.path}{reason}; train both again with the same "
            "params.yaml"
        )
    if one.trained and _budget(one) != _budget(floor):
        raise ArtifactError(
            f"{one.path} was searched with {_words(_budget(one))}, the floor with {_words(_budget(floor))}; a table "
            "compares rows of one search budget, so train both again"
        )


def _words(budget: tuple[int, int]) -> str:
    points, seeds = budget
    return f"{counted(points, 'point')} on {counted(seeds, 'seed')}"


def _budget(one: _Runs) -> tuple[int, int]:
    """Return how many points the search tried, and on how many seeds each."""
    search = one.meta.get("search") or {}
    try:
        return int(search["points"]), int(search["seeds"])
    except KeyError as error:
        raise ArtifactError(
            f"{one.path} does not say its search's {error.args[0]}; make it again with "
            f"`{_make(one.cell, one.measures.task)}`"
        ) from error


def _order(runs: list[_Runs]) -> Callable[[_Runs], tuple[float, ...]]:
    """Floor first, ceiling last; between them the methods by budget, in the order of params.yaml."""
    given = {id(one): rank for rank, one in enumerate(runs)}
    return lambda one: (list(Role).index(methods.role_of(one.cell.method)), one.cell.epsilon, given[id(one)])


def printed_of(
    cell: Cell,
    train: Mapping[str, Any],
    model: str,
    measures: TaskEntry,
    printed: PaperNumbers,
    further: Further = PUBLIC,
) -> tuple[PaperNumber, ...]:
    """Return the papers' numbers that may stand beside a cell's row.

    None where people are not split as papers do, and none where they are asked for more than features: what papers
    print beside ours is of public labels and links.
    """
    if not _as_papers_split(train) or further.asked:
        return ()
    found = printed.lookup(
        dataset=cell.dataset, method=cell.method, mechanism=cell.mechanism, model=model, epsilon=cell.epsilon,
        task=measures.task.replace("-", "_"), metric=measures.headline.name, changes=changes_of(cell),
    )  # fmt: skip
    return tuple(found)


def remark_of(meta: Mapping[str, Any]) -> str:
    """Return what the way in which people were asked says of a cell's rows; mostly nothing."""
    asking = methods.method(str(meta["method"])).asking if "rounds" in meta else None
    return "" if asking is None else asking.but(**meta["rounds"]).remark(int(meta["m"]))


def _row(one: _Runs, floor: _Runs, ceiling: _Runs, confidence: Confidence, printed: PaperNumbers) -> TableRow:
    cell = one.cell
    found = measured(
        one.scores, None if one is floor else floor.scores, None if one is ceiling else ceiling.scores, one.measures,
        confidence,
    )  # fmt: skip
    model = str(one.meta.get("model") or "none")
    return TableRow(
        dataset=cell.dataset,
        name=cell.name,
        method=cell.method,
        mechanism=cell.mechanism,
        epsilon=cell.epsilon,
        axes=_axes(cell.axes),
        ledger=ledger_from_meta([one.meta]).once(),
        model=model,
        runs=len(one.numbers),
        steps=one.steps if one.trained else (),
        measures=one.measures,
        score=found.score,
        others=found.others,
        gain=found.gain,
        gap=found.gap,
        papers=printed_of(cell, one.meta["train"], model, one.measures, printed, further_in(one.meta)),
        claim=_claim(one.meta.get("mechanism_claim")),
        degenerate=remark_of(one.meta),
    )


def _claim(claim: dict[str, Any] | None) -> ClaimMark:
    """Read whether the mechanism keeps its claim; the audit's word (`keeps`) counts before the arithmetic."""
    if not claim:
        return ClaimMark(keeps=True, text="")
    text = str(claim.get("text") or "spends more than it claims")
    if "keeps" in claim:
        return ClaimMark(keeps=bool(claim["keeps"]), text=text)
    exact, claimed = claim.get("exact"), claim.get("claimed")
    keeps = exact is None or claimed is None or float(exact) <= float(claimed) * (1 + 1e-9)
    return ClaimMark(keeps=keeps, text=text)
