"""A stage of the pipeline over a whole grid on one graph: what is missing, or was made of something else, is made.

One process works through the rows. Beside each artifact stands a stamp: a hash of all that it was made of (parameters,
code, what it was read from). An artifact whose stamp is the one that is due stays as it is.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphldp import __version__, methods
from graphldp.errors import ArtifactError, OptionError
from graphldp.experiment.options import split_facts
from graphldp.graph import Graph
from graphldp.jsonable import plain
from graphldp.ledger import epsilon_text
from graphldp.progress import Progress
from graphldp.stages.code import code_hash
from graphldp.stages.denoise import denoise
from graphldp.stages.files.answers import AnswersFile
from graphldp.stages.files.artifacts import file_hash, write_json
from graphldp.stages.files.graphs import graph_hash
from graphldp.stages.files.paths import answers_of, calibrated_of, graph_dir
from graphldp.stages.files.reports import CalibratedFile
from graphldp.stages.grids.cell import Cell
from graphldp.stages.grids.params import Params
from graphldp.stages.perturb import perturb_method

# Asking and denoising need no torch, which takes seconds to start: only training imports it.
if TYPE_CHECKING:
    from graphldp.experiment.plan import Source

__all__ = ["Artifacts", "Made", "denoise_grid", "perturb_grid", "train_grid"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What a stage has done: the artifacts that the grid needs on a graph, and which of them were there."""

    paths: tuple[Path, ...]
    there: tuple[Path, ...]

    @property
    def text(self) -> str:
        """One line for people."""
        new = len(self.paths) - len(self.there)
        return f"{len(self.paths)} artifacts: {new} made, {len(self.there)} there already"


def perturb_grid(params: Params, dataset: str, data: Path, progress: Progress | None = None) -> Made:
    """Write what people send for every row of a grid; rows that are sent the same share it."""
    todo = {answers_of(data, cell): cell for cell in _cells(params, dataset)}

    def make(cell: Cell, path: Path) -> None:
        perturb_method(cell, data=data, settings=params.of(cell), output=path)

    return _make(todo, lambda cell: _asked(params, cell, data), make, progress)


def denoise_grid(params: Params, dataset: str, data: Path, progress: Progress | None = None) -> Made:
    """Write what the server makes of the answers, for every row that calibrates them."""
    todo = {calibrated_of(data, cell): cell for cell in _cells(params, dataset) if cell.recipe.calibrates}

    def make(cell: Cell, path: Path) -> None:
        steps = params.of(cell).search.steps
        denoise(cell, data=data, steps=steps, reports=answers_of(data, cell), output=path)

    return _make(todo, lambda cell: _calibrated(params, cell, data), make, progress)


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifacts:
    """What `perturb_grid` and `denoise_grid` have written, where it is what they would write now."""

    params: Params
    data: Path

    def of(self, graph: Graph, recipe: methods.Method, cell: Cell, params: Params) -> Source:
        """Return the artifact that a cell learns from; one that other code or parameters made is refused."""
        from graphldp.stages.files.cell_sources import Answered, StoredEstimates

        kind = "denoise" if recipe.calibrates else "perturb"
        path = calibrated_of(self.data, cell) if recipe.calibrates else answers_of(self.data, cell)
        make = f"ldp {kind} --grid FILE --dataset {cell.dataset}"
        due = (_calibrated if recipe.calibrates else _asked)(self.params, cell, self.data)
        if path.exists() and not _stamped(path, _mark(due)):
            raise ArtifactError(f"{path} is not what this grid and this code make; make it again with `{make}`")
        if recipe.calibrates:
            beside = AnswersFile(answers_of(self.data, cell), make) if cell.further.asked else None
            return StoredEstimates(
                graph=graph, file=CalibratedFile(path, make), params=params, made=True, answers=beside
            )
        return Answered(graph=graph, file=AnswersFile(path, make), params=params, made=True)


def train_grid(
    params: Params,
    dataset: str,
    data: Path,
    *,
    device: str = "auto",
    jobs: int = 1,
    progress: Progress | None = None,
    note: Callable[[str], None] | None = None,
) -> Made:
    """Search, choose and train every row of a grid, from what `denoise_grid` and `perturb_grid` have written."""
    from graphldp.stages.experiment import plan as plan_cells
    from graphldp.stages.experiment import run_cells

    own = dataclasses.replace(params, datasets=(dataset,))
    what = plan_cells(own, data, fetch=False, sources=Artifacts(params=own, data=data), device=device)
    run_cells(what, data, device, progress, jobs=jobs, note=note)
    there = tuple(path for path, done in zip(what.paths, what.done, strict=True) if done)
    return Made(paths=what.paths, there=there)


def _cells(params: Params, dataset: str) -> list[Cell]:
    """Return the cells of a data set for which people are asked."""
    if dataset not in params.datasets:
        raise OptionError(f"{dataset!r} is no data set of this grid: {', '.join(params.datasets)}")
    cells = [cell for cell in params.cells() if cell.dataset == dataset and methods.method(cell.method).model]
    other = next((cell for cell in cells if cell.data), None)
    if other is not None:
        raise OptionError(f"data: {other.graph} is drawn for an experiment; run it with `ldp experiment`")
    return cells


def _asked(params: Params, cell: Cell, data: Path) -> Any:
    """Return all that decides what people answer for a cell."""
    own, asking = params.of(cell), cell.recipe.asking
    directed = None if asking is None else [cell.method, plain(asking.shaping()), split_facts(own)]
    told = [cell.further.facts()] if cell.further.asked else []
    return [
        *told,
        *(cell.mechanism, plain(cell.epsilon), dict(cell.options), directed, own.seed, own.draws),
        *(graph_hash(graph_dir(data, cell.graph)), code_hash("perturb"), __version__),
    ]


def _calibrated(params: Params, cell: Cell, data: Path) -> Any:
    """Return all that decides what is made of the answers for a cell."""
    steps = params.of(cell).search.steps
    return [_asked(params, cell, data), cell.method, cell.changes, steps, code_hash("denoise")]


def _mark(due: Any) -> str:
    return hashlib.sha256(json.dumps(plain(due), sort_keys=True, default=str).encode()).hexdigest()


def _make(
    todo: dict[Path, Cell],
    due: Callable[[Cell], Any],
    make: Callable[[Cell, Path], None],
    progress: Progress | None,
) -> Made:
    """Make what has not the stamp that is due."""
    there = []
    for count, (path, cell) in enumerate(todo.items(), start=1):
        mark = _mark(due(cell))
        if _stamped(path, mark):
            there.append(path)
        else:
            make(cell, path)
            write_json(_stamp(path), {"made_of": mark, "sha256": file_hash(path)})
        if progress is not None:
            progress(count, len(todo), f"{cell.name} at epsilon {epsilon_text(cell.epsilon)}")
    return Made(paths=tuple(todo), there=tuple(there))


def _stamp(path: Path) -> Path:
    return path.with_suffix(".stamp.json")


def _stamped(path: Path, mark: str) -> bool:
    """Return whether an artifact is there, whole, and made of what is due."""
    try:
        facts = json.loads(_stamp(path).read_bytes())
        return bool(facts == {"made_of": mark, "sha256": file_hash(path)})
    except (OSError, ValueError):
        return False
