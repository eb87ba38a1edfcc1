"""F_r(X_r) W_r for many runs at once, with a hand-written gradient.

X_r = fill_r 1 1^T + D_r. The fill is a term of rank one, fill_r F_r(1) (1^T W_r), so that no sparse input is made dense
for it. The deviations of all runs are one block-diagonal CSR matrix whose rows stand in (node, run) order, so that
its product has the layout in which the runs are propagated together; its transpose gives the gradient of W.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from graphldp.learn.chain import filtered, filtered_ones, trimmed
from graphldp.learn.dense import product
from graphldp.learn.problem import NodeInputs, Problem, Run
from graphldp.learn.sparse import SparseMatrix

__all__ = ["Projection"]


def stacked(matrices: Sequence[sp.csr_array]) -> sp.csr_array:
    """Return the (node * R + run) x (run * d + column) matrix that holds matrix r in the rows and columns of run r."""
    count = len(matrices)
    nodes, dimensions = matrices[0].shape
    lengths = np.stack([np.diff(matrix.indptr) for matrix in matrices], axis=1)
    pointers = np.concatenate([[0], np.cumsum(lengths.ravel())])
    columns = np.empty(pointers[-1], dtype=np.int64)
    values = np.empty(pointers[-1], dtype=np.float32)
    for run, matrix in enumerate(matrices):
        starts = pointers[:-1].reshape(nodes, count)[:, run]
        place = np.arange(matrix.nnz) + np.repeat(starts - matrix.indptr[:-1], lengths[:, run])
        columns[place] = matrix.indices + run * dimensions
        values[place] = matrix.data
    return sp.csr_array((values, columns, pointers), shape=(nodes * count, count * dimensions))


@dataclass(frozen=True, slots=True, eq=False)
class SparsePart:
    """The deviations of consecutive runs whose inputs are sparse, in all columns or some."""

    runs: slice
    matrix: SparseMatrix
    columns: slice

    def forward(self, weight: Tensor, out: Tensor) -> None:
        """Write D_r W_r to out[:, runs]."""
        part = weight[self.runs, self.columns]
        target = out[:, self.runs]
        whole = target.is_contiguous()
        flat = self.matrix.forward.multiply(
            part.reshape(-1, part.shape[2]), out=target.view(-1, part.shape[2]) if whole else None
        )
        if not whole:
            target.copy_(flat.view(target.shape))

    def backward(self, gradient: Tensor, out: Tensor) -> None:
        """Add D_r^T G_r to out[runs]."""
        target = out[self.runs, self.columns]
        source = gradient[:, self.runs].reshape(-1, out.shape[2])
        if target.is_contiguous():
            flat = target.view(-1, out.shape[2])
            self.matrix.backward.multiply(source, out=flat, add=flat)
        else:
            target += self.matrix.backward.multiply(source).view(target.shape)


@dataclass(frozen=True, slots=True, eq=False)
class DensePart:
    """One dense matrix that consecutive runs share: their weights stand side by side in one product.

    Attributes:
        runs: which they are.
        matrix: M, of all columns or some.
        columns: which these are.
        adds: whether other columns of these runs have been written before.
    """

    runs: slice
    matrix: Tensor
    columns: slice
    adds: bool = False

    def forward(self, weight: Tensor, out: Tensor) -> None:
        """Write M W_r to out[:, runs], or add it there."""
        part = weight[self.runs, self.columns]
        wide = part.transpose(0, 1).reshape(part.shape[1], -1)
        found = product(self.matrix, wide).view(-1, part.shape[0], part.shape[2])
        if self.adds:
            out[:, self.runs] += found
        else:
            out[:, self.runs] = found

    def backward(self, gradient: Tensor, out: Tensor) -> None:
        """Add M^T G_r to out[runs]."""
        part = gradient[:, self.runs]
        # (G^T M)^T instead of M^T G: the longer side as columns.
        wide = product(part.reshape(part.shape[0], -1).t(), self.matrix)
        out[self.runs, self.columns] += wide.view(part.shape[1], part.shape[2], -1).transpose(1, 2)


def dense_part(
    one: NodeInputs,
    coefficients: tuple[float, ...],
    shift: SparseMatrix,
    runs: slice,
    *,
    apply: bool,
    device: torch.device,
) -> DensePart:
    """Return the part of one dense matrix; with `apply` it is filtered here, once."""
    filters = apply and not one.filtered
    # Filtering works in place, so it gets a copy of its own; otherwise the caller's array is shared.
    values = np.require(one.dense(), dtype=np.float32, requirements=["C", "W"])
    if filters and values is one.deviations:
        values = values.copy()
    matrix = torch.from_numpy(values).to(device)
    made = filtered(shift.forward, matrix, coefficients, out=matrix) if filters else matrix
    return DensePart(runs, made, slice(None))


def _sparse_parts(
    inputs: Sequence[NodeInputs], places: Sequence[int], span: slice, full: int, device: torch.device
) -> list[SparsePart | DensePart]:
    """Return the parts of consecutive runs whose inputs are sparse behind their first columns, which are full."""
    matrices = {place: sp.csr_array(inputs[place].deviations) for place in places}
    few = {place: sp.csr_array(matrix[:, full:]) if full else matrix for place, matrix in matrices.items()}
    sparse = SparseMatrix.of(stacked([few[place] for place in places]), device)
    out: list[SparsePart | DensePart] = [SparsePart(span, sparse, slice(full, None))]
    start = span.start
    for place, group in groupby(places if full else ()):
        stop = start + len(list(group))
        dense = torch.from_numpy(np.ascontiguousarray(matrices[place][:, :full].toarray())).to(device)
        out.append(DensePart(slice(start, stop), dense, slice(0, full), adds=True))
        start = stop
    return out


class Projection:
    """W -> F(X) W for a batch of runs, in one of the two orders of the chain."""

    def __init__(self, problem: Problem, runs: Sequence[Run], shift: SparseMatrix, order: str, device: torch.device):
        inputs = problem.inputs
        self.runs, self.nodes, self.dimensions = len(runs), problem.nodes, problem.dimensions
        self.shift = shift
        theta = [(1.0,) if inputs[run.inputs].filtered else trimmed(run.coefficients) for run in runs]
        first = order == "materialise"
        self.parts: list[SparsePart | DensePart] = []
        # Consecutive runs that can share a part: all sparse ones, or those of the same dense matrix.
        keys: list[tuple[int, tuple[float, ...]]] = [
            (-1 - inputs[run.inputs].full, ())
            if inputs[run.inputs].sparse and not first
            else (run.inputs, theta[r] if first else (1.0,))
            for r, run in enumerate(runs)
        ]
        for key, group in groupby(range(len(runs)), key=lambda r: keys[r]):
            index = list(group)
            span = slice(index[0], index[-1] + 1)
            if key[0] < 0:
                self.parts += _sparse_parts(inputs, [runs[r].inputs for r in index], span, -1 - key[0], device)
            else:
                self.parts.append(dense_part(inputs[key[0]], theta[index[0]], shift, span, apply=first, device=device))
        # After the parts: consecutive runs with the same filter are propagated together.
        self.filters: list[tuple[slice, tuple[float, ...]]] = []
        if not first:
            for coefficients, group in groupby(range(len(runs)), key=lambda r: theta[r]):
                index = list(group)
                if coefficients != (1.0,):
                    self.filters.append((slice(index[0], index[-1] + 1), coefficients))
        self.fill = self._fill(problem, runs, theta, device)

    def _fill(
        self, problem: Problem, runs: Sequence[Run], theta: list[tuple[float, ...]], device: torch.device
    ) -> Tensor | None:
        """Return fill_r F_r(1) as [nodes, runs, 1], or None if no run has a fill."""
        fills = [problem.inputs[run.inputs].fill for run in runs]
        if not any(fills):
            return None
        ones = {one: filtered_ones(problem.shift, one) for one in set(theta)}
        columns = np.stack([fill * ones[one] for fill, one in zip(fills, theta, strict=True)], axis=1)
        return torch.from_numpy(columns.astype(np.float32)).to(device).unsqueeze(2)

    def _filter(self, matrix: Tensor, *, transposed: bool) -> None:
        """Apply the filters in place to [nodes, runs, width]; a polynomial's transpose is that of the transpose."""
        width = matrix.shape[2]
        flat = matrix.view(self.nodes, -1)
        shift = self.shift.backward if transposed else self.shift.forward
        for runs, coefficients in self.filters:
            columns = flat[:, runs.start * width : runs.stop * width]
            filtered(shift, columns, coefficients, out=columns)

    def forward(self, weight: Tensor) -> Tensor:
        """Return F(X) W as [nodes, runs, width]."""
        out = torch.empty(self.nodes, self.runs, weight.shape[2], dtype=weight.dtype, device=weight.device)
        for part in self.parts:
            part.forward(weight, out)
        self._filter(out, transposed=False)
        if self.fill is not None:
            out.addcmul_(self.fill, weight.sum(dim=1))
        return out

    def backward(self, gradient: Tensor) -> Tensor:
        """Return the gradient of W, [runs, d, width]."""
        shape = (self.runs, self.dimensions, gradient.shape[2])
        gradient = gradient.contiguous()
        out = torch.empty(shape, dtype=gradient.dtype, device=gradient.device)
        if self.fill is None:
            out.zero_()
        else:
            out.copy_(torch.bmm(self.fill.permute(1, 2, 0), gradient.transpose(0, 1)).expand(shape))
        if self.filters:
            gradient = gradient.clone()
            self._filter(gradient, transposed=True)
        for part in self.parts:
            part.backward(gradient, out)
        return out

    def __call__(self, weight: Tensor) -> Tensor:
        """Return F(X) W with its gradient."""
        out: Tensor = _Project.apply(weight, self)  # type: ignore[no-untyped-call]
        return out


class _Project(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, projection: Projection) -> Tensor:
        ctx.projection = projection
        return projection.forward(weight.contiguous())

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return ctx.projection.backward(gradients[0]), None
