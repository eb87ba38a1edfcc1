"""The linear chain F(X) W: the filter, and the choice of the order in which the chain is multiplied.

F(X) W with F = sum_k theta_k S^k can be computed as F(X W), which propagates at the width of the hidden layer and keeps
X as sparse as the reports, or as (F X) W, which filters the inputs once, and then multiplies a dense n x d matrix in
each epoch. Both are exact. Which one is cheaper is decided here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphldp.errors import OptionError
from graphldp.learn.problem import NodeInputs, Problem, Run
from graphldp.learn.sparse import Csr

__all__ = ["OrderChoice", "choose_order", "filtered", "filtered_ones", "trimmed", "walked"]

# What two cores of a current processor reach, in operations and bytes per second. Only the ratios matter, and they
# are constants so that the same work is always done in the same order, to the same bits.
SPARSE_RATE = 30e9
SPARSE_RATE_WIDE = 10e9  # wider than the caches hold: each product comes from memory
DENSE_RATE = 120e9
BANDWIDTH = 15e9
# Columns that are propagated together through all powers: the vendor's product is fastest at this width, and the two
# buffers stay in the caches. In which order a column is summed may depend on how many stand beside it (MKL on Intel
# adds 4 to 24 columns otherwise than 32), so a column in another block is the same up to rounding, not to the last bit.
BLOCK = 32
# Buffers of more bytes leave a core's own cache; a product narrower than half a block then costs as much as a block.
CACHE_BYTES = 2**20
# So few columns would cost nearly as much as half a block: they even out with the block before them.
FEW = 4


def trimmed(coefficients: Sequence[float]) -> tuple[float, ...]:
    """Return the coefficients without trailing zeros (at least one)."""
    last = max((k for k, theta in enumerate(coefficients) if theta != 0), default=0)
    return tuple(float(theta) for theta in coefficients[: last + 1])


def blocks(nodes: int, width: int) -> Iterator[slice]:
    """Yield the columns in blocks; what is left in the end is a block of its own, or joins or shares the last one."""
    least = BLOCK // 2 if 4 * nodes * BLOCK > CACHE_BYTES else 1
    start = 0
    while start < width:
        left = width - start
        if least == 1 and BLOCK < left <= BLOCK + FEW:
            stop = start + (left + 1) // 2
        else:
            stop = start + BLOCK if BLOCK + least <= left else width
        yield slice(start, stop)
        start = stop


def filtered(shift: Csr, matrix: Tensor, coefficients: Sequence[float], out: Tensor | None = None) -> Tensor:
    """Return sum_k theta_k S^k matrix by Horner's rule, in column blocks; `out` may be a view or `matrix` itself."""
    theta = trimmed(coefficients)
    degree = len(theta) - 1
    if out is None:
        out = torch.empty_like(matrix)
    if degree == 0:
        return torch.mul(matrix, theta[0], out=out) if theta[0] != 1 else out.copy_(matrix)
    nodes, width = matrix.shape
    # Other devices have caches and launches of another size.
    some = list(blocks(nodes, width)) if matrix.device.type == "cpu" else [slice(0, width)]
    widest = max((one.stop - one.start for one in some), default=0)
    buffers = [torch.empty(nodes * widest, dtype=matrix.dtype, device=matrix.device) for _ in range(2)]
    for columns in some:
        source, last = matrix[:, columns], out[:, columns]
        targets = [buffer[: source.numel()].view(source.shape) for buffer in buffers]
        power = source if theta[degree] == 1 else torch.mul(source, theta[degree])
        for k in range(degree - 1, -1, -1):
            # The last product may go straight to `out`, unless it still reads what it would overwrite.
            target = targets[k % 2] if k or (degree == 1 and out is matrix) else last
            power = shift.multiply(power, out=target, add=source if theta[k] else None, scale=theta[k])
        if power is not last:
            last.copy_(power)
    return out


def walked(shift: Csr, matrix: Tensor, coefficients: Sequence[float]) -> Tensor:
    """Return `filtered` for a backbone's own walk: equal up to rounding, and sooner where all hops weigh the same.

    sum_{k=1..2m} S^k X is T + S^m T with T = sum_{k=1..m} S^k X. Doubling takes as many products as Horner's rule and
    adds something to a few of them instead of to each one.
    """
    theta = trimmed(coefficients)
    steps = len(theta) - 1
    if steps < 2 or any(share != theta[1] for share in theta[2:]):
        return filtered(shift, matrix, theta)
    out = torch.empty_like(matrix)
    nodes, width = matrix.shape
    for columns in blocks(nodes, width) if matrix.device.type == "cpu" else [slice(0, width)]:
        source = matrix[:, columns]
        hops = _hops(shift, source, steps)
        torch.add(hops.mul_(theta[1]), source, alpha=theta[0], out=out[:, columns])
    return out


def _hops(shift: Csr, source: Tensor, steps: int) -> Tensor:
    """Return sum_{k=1..steps} S^k source, a new tensor."""
    spare = [torch.empty(source.shape, dtype=source.dtype, device=source.device) for _ in range(4)]
    first = total = shift.multiply(source, out=spare[0])
    done = 1
    # From the number of steps' second binary digit on: twice as many, and one more if it is 1.
    for digit in f"{steps:b}"[1:]:
        power = total
        for k in range(1, done + 1):
            target = next(one for one in spare if one is not first and one is not total and one is not power)
            power = shift.multiply(power, out=target, add=total if k == done else None)
        total, done = power, 2 * done
        if digit == "1":
            target = next(one for one in spare if one is not first and one is not total)
            total, done = shift.multiply(total, out=target, add=first), done + 1
    return total


def filtered_ones(shift: sp.csr_array, coefficients: Sequence[float]) -> NDArray[np.float64]:
    """Return F(1), the filtered constant: what a fill of 1 becomes at each node. In float64."""
    theta = trimmed(coefficients)
    ones = np.ones(shift.shape[0])
    power = theta[-1] * ones
    for value in theta[-2::-1]:
        power = shift @ power + value * ones
    return np.asarray(power)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderChoice:
    """What was chosen, why, and what each order was estimated to cost over the whole training.

    Attributes:
        order: `propagate` or `materialise`.
        reason: why.
        propagate_seconds, materialise_seconds: what each of them would take, by the rates that the estimate assumes.
        materialised_bytes: what the filtered inputs would take.
        limit: how many bytes they were allowed to take; None where nothing limits them.
    """

    order: str
    reason: str
    propagate_seconds: float
    materialise_seconds: float
    materialised_bytes: int
    limit: int | None = None

    def record(self) -> dict[str, Any]:
        """Return it as JSON-able values."""
        return asdict(self)


def distinct(inputs: Sequence[NodeInputs], runs: Sequence[Run]) -> list[tuple[int, int, tuple[float, ...]]]:
    """Return what needs a matrix of its own when the inputs are filtered first: (graph, inputs, coefficients)."""
    found = {
        (run.graph, run.inputs, (1.0,) if inputs[run.inputs].filtered else trimmed(run.coefficients)) for run in runs
    }
    return sorted(found)


def choose_order(
    problem: Problem, runs: Sequence[Run], *, width: int, epochs: int, order: str = "auto", limit: int | None = None
) -> OrderChoice:
    """Return the cheaper order of the chain for these runs.

    Args:
        problem: the graph and the inputs.
        runs: the runs of the batch.
        width: columns of the first weight matrix.
        epochs: how often the chain is multiplied, forward and backward.
        order: `auto`, or the order to take whatever the estimate says.
        limit: bytes that the filtered inputs may take; above it the inputs are never filtered first.
    """
    nodes, dimensions = problem.nodes, problem.dimensions
    # Of equal graphs, or of splits of one graph: as good as the same number.
    edges = problem.shift.nnz
    pairs = distinct(problem.inputs, runs)
    dense_pass = max(
        2.0 * nodes * dimensions * width * len(runs) / DENSE_RATE, 4.0 * nodes * dimensions * len(pairs) / BANDWIDTH
    )
    propagate = 0.0
    for run in runs:
        one = problem.inputs[run.inputs]
        few, full = one.multiplied
        product = 2.0 * few * width / SPARSE_RATE + 2.0 * full * width / DENSE_RATE
        powers = 0 if one.filtered else len(trimmed(run.coefficients)) - 1
        propagate += 2 * epochs * (product + 2.0 * powers * edges * width / SPARSE_RATE)
    powers = sum(len(theta) - 1 for *_, theta in pairs)
    once = 2.0 * powers * edges * dimensions / SPARSE_RATE_WIDE + 4.0 * nodes * dimensions * len(pairs) / BANDWIDTH
    materialise = once + 2 * epochs * dense_pass
    size = 4 * nodes * dimensions * len(pairs)
    if all(problem.inputs[run.inputs].filtered and not problem.inputs[run.inputs].sparse for run in runs):
        order, reason = "materialise", "the inputs are already filtered"
    elif order == "auto":
        if limit is not None and size > limit:
            order, reason = "propagate", "the filtered inputs would not fit into the memory limit"
        else:
            order = "propagate" if propagate <= materialise else "materialise"
            reason = "cheaper by the estimate"
    else:
        if order == "materialise" and limit is not None and size > limit:
            raise OptionError(
                f"order 'materialise' needs {size} bytes for the filtered inputs, more than max_memory {limit}; "
                "use order 'auto' or raise max_memory"
            )
        reason = "asked for"
    return OrderChoice(
        order=order,
        reason=reason,
        propagate_seconds=propagate,
        materialise_seconds=materialise,
        materialised_bytes=size,
        limit=limit,
    )
