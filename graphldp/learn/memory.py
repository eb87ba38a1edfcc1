"""A bound on memory: a batch that would take more is trained in waves, one after the other."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

from graphldp.errors import OptionError
from graphldp.learn.chain import distinct
from graphldp.learn.deferred import Deferred
from graphldp.learn.models.base import Backbone
from graphldp.learn.problem import Problem, Run

__all__ = ["MemoryLimitError", "estimate_memory", "waves"]

# Arrays alive at once in an epoch, counted in the profile of the two-layer GCN: trunk, its gradient and temporaries.
NODE_ARRAYS, CLASS_ARRAYS, PARAMETER_ARRAYS = 9, 6, 8
# Arrays that a hidden unit of each further layer takes; counted in the profile of deeper GCNs.
LAYER_ARRAYS = 7


class MemoryLimitError(OptionError):
    """Not even a single run fits into the memory limit."""


def estimate_memory(
    problem: Problem,
    runs: Sequence[Run],
    *,
    width: int,
    parameters: int,
    materialised: bool,
    outputs: int | None = None,
    model: Backbone | None = None,
) -> int:
    """Return the bytes that training these runs together takes, beside the problem itself; an estimate.

    Args:
        problem: the graph and the inputs.
        runs: the runs of the batch.
        width: columns of the first weight matrix.
        parameters: numbers in one run's parameters.
        materialised: whether the inputs are filtered first.
        outputs: how many outputs a node has; the number of classes if not given.
        model: the backbone, which may have further layers, and keep something for each edge.
    """
    last = problem.classes if outputs is None else outputs
    nodes, dimensions = problem.nodes, problem.dimensions
    per_run = 4 * (NODE_ARRAYS * nodes * width + CLASS_ARRAYS * nodes * last + PARAMETER_ARRAYS * parameters)
    graphs = [problem.graph(index) for index in {run.graph for run in runs}]
    total: int = per_run * len(runs) + sum(16 * (2 * one.shift.nnz + 2 * one.adjacency.nnz) for one in graphs)
    if model is not None:
        total += 4 * LAYER_ARRAYS * nodes * model.deeper() * len(runs)
        for index, count in Counter(run.graph for run in runs).items():
            edges = problem.graph(index).adjacency.nnz + nodes
            total += count * model.memory(edges, last) + model.working_memory(edges, last, count)
    if materialised:
        return total + 4 * nodes * dimensions * len(distinct(problem.inputs, runs))
    for run in runs:
        one = problem.inputs[run.inputs]
        # Index and value, forward and transposed, and as much again while they are put together.
        few, full = one.multiplied
        total += 32 * few + 4 * full + 8 * (nodes + dimensions) if one.sparse else 0
    made = {run.inputs for run in runs if isinstance(problem.inputs[run.inputs].deviations, Deferred)}
    return total + 4 * nodes * dimensions * len(made)


def waves(runs: Sequence[int], estimate: Callable[[list[int]], int], limit: int | None) -> list[list[int]]:
    """Split runs, in their order, into the fewest consecutive waves whose estimate stays below the limit."""
    out: list[list[int]] = []
    for run in runs:
        if out and (limit is None or estimate([*out[-1], run]) <= limit):
            out[-1].append(run)
            continue
        if limit is not None and (need := estimate([run])) > limit:
            raise MemoryLimitError(
                f"max_memory {limit} bytes is too little for a single run; raise it to {need} or more "
                f"({math.ceil(need / 1e6) / 1e3:g} GB)"
            )
        out.append([run])
    return out
