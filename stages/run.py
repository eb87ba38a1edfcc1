"""The whole chain in memory, for one cell between its floor and its ceiling; nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphldp import methods
from graphldp.errors import OptionError
from graphldp.measures import measures_of
from graphldp.stages.graphs import read_graph
from graphldp.stages.learning import CellResult, learn_cell, learn_majority
from graphldp.stages.params import Params
from graphldp.stages.paths import graph_dir
from graphldp.stages.resources import Resources
from graphldp.stages.setups import Devices, Plan, plan_of
from graphldp.stages.space import check_axes, check_grids

__all__ = ["Outcome", "run"]

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """One row: what it is called, what it spent, and its final runs' test scores by measure, the headline first.

    `search` says what was tried, as artifacts of runs do; it is empty where nothing is learned.
    """

    name: str
    mechanism: str
    epsilon: float
    m: int | None
    chosen: dict[str, Any]
    scores: Mapping[str, NDArray[np.float64]]
    search: Mapping[str, Any] = field(default_factory=dict)

    @property
    def headline(self) -> NDArray[np.float64]:
        """The final runs' scores in the task's first measure."""
        return next(iter(self.scores.values()))

    @property
    def accuracy(self) -> NDArray[np.float64]:
        """The final runs' accuracies, of a task that has classes."""
        return self.scores["accuracy"]


def run(
    dataset: str,
    method: str,
    mechanism: str | None,
    epsilon: float,
    *,
    data: Path,
    params: Params,
    device: str = "auto",
    resources: Resources | None = None,
    options: Mapping[str, Any] | None = None,
    changes: Mapping[str, Any] | None = None,
    references: bool = True,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Perturb, calibrate, search, train and score one cell, and with `references` its floor and ceiling as well.

    `options` are the mechanism's; `changes` replace parts of the method's calibration, as `Method.but` takes them.
    `epsilon` is all that a person spends: a method of two rounds shares it out between them.
    """
    recipe = methods.method(method)
    if not recipe.model:
        raise OptionError(f"method {method!r} is a row of every table by itself; choose another to run")
    recipe = recipe.but(changes or {})
    graph = read_graph(graph_dir(data, dataset))
    wanted = [(recipe, recipe.choose(mechanism), epsilon, dict(options or {}))]
    if references:
        floor, ceiling = methods.method("structure"), methods.method("nonpriv")
        wanted = [
            *([(floor, floor.mechanism, 0.0, {})] if recipe.name != floor.name else []),
            *wanted,
            *([(ceiling, ceiling.mechanism, np.inf, {})] if recipe.name != ceiling.name else []),
        ]
    # Whatever is wrong with a cell shows before the first one is trained.
    cells = [
        Devices(graph=graph, recipe=one, mechanism=name, epsilon=float(budget), options=extra, params=params)
        for one, name, budget, extra in wanted
    ]
    check_axes(params.search, [cell.row for cell in cells])
    # First what was asked for: what is wrong with it is not the floor's fault.
    order = sorted(range(len(cells)), key=lambda place: cells[place].recipe.name != recipe.name)
    planned = {place: _plan(cells[place], params, asked=recipe.name) for place in order}
    plans = [planned[place] for place in range(len(cells))]
    if params.search.strategy == "grid":
        names = [cell.recipe.cell_name(cell.mechanism) for cell in cells]
        check_grids({name: plan.points[: plan.learners[0].stop] for name, plan in zip(names, plans, strict=True)})
    measures = measures_of(params.train.task).names
    out = [_row("majority", "none", 0.0, None, learn_majority(graph, params), measures)] if references else []
    for count, (cell, plan) in enumerate(zip(cells, plans, strict=True)):
        part = _part(progress, count, len(cells))
        result = learn_cell(graph, plan, params, device=device, resources=resources, progress=part)
        assert result.setup is not None
        name = cell.recipe.cell_name(cell.mechanism)
        row = _row(name, cell.mechanism, cell.epsilon, result.setup.m, result, measures)
        out.append(replace(row, search={**asdict(params.search), **plan.facts()}))
    return out


def _plan(cell: Devices, params: Params, asked: str) -> Plan:
    """Return a cell's plan; where it cannot be, and was not asked for by name, say how to leave it out."""
    try:
        return plan_of(cell, params)
    except OptionError as error:
        if cell.recipe.name == asked:
            raise
        raise OptionError(f"{error}; or leave floor and ceiling out with --no-references") from error


def _row(
    name: str, mechanism: str, epsilon: float, m: int | None, result: CellResult, measures: Sequence[str]
) -> Outcome:
    final = [row for row in result.rows if row["role"] == "final"]
    scores = {one: np.array([row[f"test_{one}"] for row in final], dtype=np.float64) for one in measures}
    return Outcome(name=name, mechanism=mechanism, epsilon=epsilon, m=m, chosen=result.chosen, scores=scores)


def _part(progress: Progress | None, count: int, parts: int) -> Progress | None:
    if progress is None:
        return None
    return lambda done, total, text: progress(count * total + done, parts * total, text)
