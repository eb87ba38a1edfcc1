"""The whole chain in memory, for one cell between its floor and its ceiling; nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphldp import methods
from graphldp.client import VectorMechanism
from graphldp.errors import OptionError
from graphldp.graph import Graph
from graphldp.server import Estimate
from graphldp.stages.graphs import read_graph
from graphldp.stages.inputs import Filters, average_degree, estimate_of
from graphldp.stages.learning import CellResult, learn_cell, learn_majority
from graphldp.stages.params import Params
from graphldp.stages.paths import graph_dir
from graphldp.stages.perturb import device_for, reports_meta, source_of
from graphldp.stages.resources import Resources
from graphldp.stages.rounds import TwoRounds

__all__ = ["Outcome", "Prepared", "prepare", "run"]

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """One row: what it is called, what it spent, and its final runs' accuracies."""

    name: str
    mechanism: str
    epsilon: float
    m: int | None
    chosen: dict[str, Any]
    accuracy: np.ndarray[Any, np.dtype[np.float64]]


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
    cells = [prepare(graph, one, name, budget, extra, params) for one, name, budget, extra in wanted]
    out = [_row("majority", "none", 0.0, None, learn_majority(graph, params))] if references else []
    for count, cell in enumerate(cells):
        result = learn_cell(
            graph,
            cell.estimate,
            cell.recipe,
            params,
            filters=cell.filters,
            device=device,
            resources=resources,
            progress=_part(progress, count, len(cells)),
        )
        name = cell.recipe.cell_name(cell.mechanism)
        out.append(_row(name, cell.mechanism, cell.epsilon, cell.m, result))
    return out


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prepared:
    """One cell up to the point where it is learned from."""

    graph: Graph
    recipe: methods.Method
    mechanism: str
    epsilon: float
    params: Params
    client: VectorMechanism
    rounds: TwoRounds | None
    filters: Filters
    estimate: Callable[[int], Estimate]

    @property
    def m(self) -> int:
        """How many features a device reports, in the second round where there are two."""
        return self.client.m if self.rounds is None else self.rounds.m

    def meta(self, folder: Path, seeds: Sequence[int]) -> dict[str, Any]:
        """Return what the artifacts that the stages would make of these reports say of themselves."""
        if self.rounds is not None:
            return self.rounds.meta(folder, seeds)
        return reports_meta(self.graph, folder, self.client, seeds=seeds, root=self.params.seed)


def prepare(
    graph: Graph,
    recipe: methods.Method,
    mechanism: str,
    epsilon: float,
    options: Mapping[str, Any],
    params: Params,
) -> Prepared:
    """Return a cell with everything that can be wrong in it checked; nothing is drawn yet."""
    rounds = None
    if recipe.rounds is not None:
        rounds = TwoRounds.of(graph, recipe.rounds, mechanism, epsilon, params, options)
    client = device_for(graph, mechanism, epsilon, options) if rounds is None else rounds.device
    filters = {k: recipe.calibration(k, client, average_degree(graph)) for k in recipe.steps(params.search.steps)}
    first = next(iter(filters.values()))

    def estimate(seed: int) -> Estimate:
        if rounds is not None:
            return rounds.estimate(seed, first)
        return estimate_of(client.perturb(graph.features, source_of(params.seed, graph.name, client, seed)), first)

    return Prepared(
        graph=graph,
        recipe=recipe,
        mechanism=mechanism,
        epsilon=epsilon,
        params=params,
        client=client,
        rounds=rounds,
        filters=filters,
        estimate=estimate,
    )


def _row(name: str, mechanism: str, epsilon: float, m: int | None, result: CellResult) -> Outcome:
    accuracy = np.array([row["test_accuracy"] for row in result.rows if row["role"] == "final"])
    return Outcome(name=name, mechanism=mechanism, epsilon=epsilon, m=m, chosen=result.chosen, accuracy=accuracy)


def _part(progress: Progress | None, count: int, parts: int) -> Progress | None:
    if progress is None:
        return None
    return lambda done, total, text: progress(count * total + done, parts * total, text)
