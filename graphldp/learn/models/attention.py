"""Attention over the edges of a graph, for many heads of many runs at once.

A head of a run is a matrix with the structure of the graph and values of its own. Its product with the hidden units is
a sparse product like any other, and the gradient of its values is a product sampled at the edges: no message is ever
written down, which would be edges x heads x width numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from graphldp.learn.sparse import Csr, SparseMatrix

__all__ = ["CHUNK", "Edges", "attend", "edges_of"]

# Edges times heads whose scores are worked on together: fewer waste the gathers, more leave the caches.
CHUNK = 2**22
# Numbers that a processor works on at once.
REGISTER = 8


@dataclass(frozen=True, slots=True, eq=False)
class _Half:
    """One direction of the edges, sorted by the node that collects.

    Attributes:
        pointers: where each collecting node's edges begin, int32; None where the device has no CSR product.
        collectors, givers: the two ends of each edge.
        places: which numbers of a list of edges stand here, in this order; None if it is this direction's own list.
    """

    nodes: int
    pointers: Tensor | None
    collectors: Tensor
    givers: Tensor
    places: Tensor | None

    def total(self, values: Tensor) -> Tensor:
        """Return the sum over the edges of each node: [edges, heads] gives [nodes, heads]."""
        out = values.new_empty(self.nodes, values.shape[1])
        if self.pointers is None:
            ordered = values if self.places is None else values.index_select(0, self.places)
            return out.zero_().index_add_(0, self.collectors, ordered)
        edges = values.shape[0]
        places = torch.arange(edges, dtype=torch.int32, device=values.device) if self.places is None else self.places
        matrix = self._csr(places, values.new_ones(edges), edges)
        return torch.addmm(out, matrix, values, beta=0, out=out)

    def highest(self, values: Tensor) -> Tensor:
        """Return the highest value of each node's edges, of which it has at least one: [nodes, heads]."""
        if self.pointers is None:
            out = values.new_empty(self.nodes, values.shape[1])
            index = self.collectors.unsqueeze(1).expand_as(values)
            return out.scatter_reduce_(0, index, values, "amax", include_self=False)
        return torch.segment_reduce(values, "max", offsets=self.pointers, axis=0, unsafe=True)

    def collect(self, weights: Tensor, hidden: Tensor, out: Tensor) -> None:
        """Write each head's weighted sums to [nodes, heads, width]; [heads, edges] and [heads, nodes, width] given."""
        if self.places is not None:
            weights = weights.index_select(1, self.places)
        for head, values in enumerate(weights):
            target = out[:, head]
            if self.pointers is None:
                messages = hidden[head].index_select(0, self.givers) * values.unsqueeze(1)
                target.zero_().index_add_(0, self.collectors, messages)
            else:
                torch.addmm(target, self._csr(self.givers, values, self.nodes), hidden[head], beta=0, out=target)

    def dots(self, left: Tensor, right: Tensor) -> Tensor:
        """Return <left of the collector, right of the giver> for each head and edge: [heads, edges].

        Both are [heads, nodes, width].
        """
        if self.pointers is None:
            pairs = (
                (one.index_select(0, self.collectors) * other.index_select(0, self.givers)).sum(1)
                for one, other in zip(left, right, strict=True)
            )
            return torch.stack(list(pairs))
        out = left.new_empty(left.shape[0], len(self.givers))
        structure = self._csr(self.givers, left.new_zeros(len(self.givers)), self.nodes)
        for row, one, other in zip(out, left, right, strict=True):
            row.copy_(torch.sparse.sampled_addmm(structure, one, other.t(), beta=0).values())
        return out

    def _csr(self, columns: Tensor, values: Tensor, width: int) -> Tensor:
        assert self.pointers is not None
        return torch.sparse_csr_tensor(self.pointers, columns, values, size=(self.nodes, width), check_invariants=False)


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """The edges of a matrix in both directions; the list of edges is sorted by rows.

    Attributes:
        forward: rows collect from columns.
        backward: columns collect from rows, for the gradient.
        log_weights: the logarithms of the edges' weights, of an estimated graph; None where every edge is there.
    """

    forward: _Half
    backward: _Half
    log_weights: Tensor | None = None

    @property
    def count(self) -> int:
        """How many edges."""
        return len(self.forward.givers)


def _half(matrix: Csr, places: Tensor | None) -> _Half:
    nodes = matrix.shape[0]
    if matrix.tensor is None:
        assert matrix.rows is not None
        assert matrix.columns is not None
        return _Half(nodes, None, matrix.rows, matrix.columns, places)
    pointers, columns = matrix.tensor.crow_indices(), matrix.tensor.col_indices()
    count = torch.diff(pointers)
    rows = torch.repeat_interleave(torch.arange(nodes, dtype=torch.int32, device=columns.device), count)
    return _Half(nodes, pointers, rows, columns, places)


# Found once per graph, and forgotten with it.
_KNOWN: Any = WeakTensorKeyDictionary()


def edges_of(matrix: SparseMatrix) -> Edges:
    """Return the edges of an operator, whose values are their weights."""
    key = matrix.forward.tensor if matrix.forward.tensor is not None else matrix.forward.values
    found: Edges | None = _KNOWN.get(key)
    if found is None:
        values = matrix.forward.values if matrix.forward.tensor is None else matrix.forward.tensor.values()
        assert values is not None
        logs = None if bool((values == 1).all()) else values.log()
        forward = _half(matrix.forward, None)
        # Sorted by columns and within them by rows: the order of the transpose.
        places = torch.argsort(forward.givers, stable=True).to(forward.givers.dtype)
        found = _KNOWN[key] = Edges(forward, _half(matrix.backward, places), logs)
    return found


def _chunks(heads: int, edges: int) -> Iterator[slice]:
    """Yield the heads in slices whose edges stay in the caches."""
    size = max(1, CHUNK // max(edges, 1))
    for start in range(0, heads, size):
        yield slice(start, start + size)


def _by_heads(hidden: Tensor) -> Tensor:
    """Return [nodes, heads, width] as [heads, nodes, width]: a head's units lie side by side, as products read them.

    The width is filled up with zeros to whole registers, without which a sampled product takes several times as long.
    """
    nodes, heads, width = hidden.shape
    filled = -width % REGISTER
    if not filled:
        return hidden.transpose(0, 1).contiguous()
    out = hidden.new_zeros(heads, nodes, width + filled)
    out[:, :, :width] = hidden.transpose(0, 1)
    return out


def _scores(own: Tensor, other: Tensor, rows: _Half, heads: slice) -> Tensor:
    """Return own_i + other_j, [edges, heads]."""
    collectors = own[:, heads].contiguous().index_select(0, rows.collectors)
    return collectors.add_(other[:, heads].contiguous().index_select(0, rows.givers))


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, own: Tensor, other: Tensor, edges: Edges, slope: float, keep: Tensor | None
    ) -> Tensor:
        rows, out, width = edges.forward, torch.empty_like(hidden), hidden.shape[2]
        hidden = _by_heads(hidden)
        shares = hidden.new_empty(own.shape[1], edges.count)
        for heads in _chunks(*shares.shape):
            share = torch.nn.functional.leaky_relu_(_scores(own, other, rows, heads), slope)
            if edges.log_weights is not None:  # the softmax's gradient by the scores has no term of these
                share.add_(edges.log_weights.to(share.dtype).unsqueeze(1))
            # Less the highest of each node: no exponential overflows, and one of them is 1.
            share.sub_(rows.highest(share).index_select(0, rows.collectors)).exp_()
            shares[heads] = share.div_(rows.total(share).index_select(0, rows.collectors)).t()
            weights = shares[heads] if keep is None else shares[heads] * keep[:, heads].t().contiguous()
            rows.collect(weights, hidden[heads, :, :width], out[:, heads])
        ctx.save_for_backward(hidden, own, other, shares, keep)
        ctx.edges, ctx.slope = edges, slope
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        hidden, own, other, shares, keep = ctx.saved_tensors
        edges: Edges = ctx.edges
        rows, columns, width = edges.forward, edges.backward, gradients[0].shape[2]
        whole = _by_heads(gradients[0])
        found = [
            hidden.new_empty(hidden.shape[1], hidden.shape[0], width),
            torch.empty_like(own),
            torch.empty_like(other),
        ]
        for heads in _chunks(*shares.shape):
            gradient, share = whole[heads], shares[heads]
            struck = None if keep is None else keep[:, heads].t().contiguous()
            weights = share if struck is None else share * struck
            columns.collect(weights, gradient[:, :, :width], found[0][:, heads])
            slope = rows.dots(gradient, hidden[heads])
            if struck is not None:
                slope *= struck
            slope, share = slope.t().contiguous(), share.t().contiguous()
            # The softmax's gradient. The mean of the slopes is taken over the edges (it is also <gradient, output>), so
            # that a node with a single edge gets exactly 0: Adam makes whole steps of what rounding leaves.
            slope.sub_(rows.total(slope * share).index_select(0, rows.collectors)).mul_(share)
            slope = torch.ops.aten.leaky_relu_backward(slope, _scores(own, other, rows, heads), ctx.slope, False)
            found[1][:, heads], found[2][:, heads] = rows.total(slope), columns.total(slope)
        return *found, None, None, None


def attend(
    hidden: Tensor, own: Tensor, other: Tensor, edges: Edges, *, slope: float, keep: Tensor | None = None
) -> Tensor:
    """Return sum_j share_ij hidden_j for each node and head, share_ij the softmax over i's edges of LeakyReLU scores.

    An edge of weight w has w times the share that it would have: its log is added to the score.

    Args:
        hidden: [nodes, heads, width]; the heads of all runs.
        own: [nodes, heads], the node's part of the score own_i + other_j.
        other: [nodes, heads], the neighbour's part.
        edges: at least one per node (a self-loop).
        slope: of LeakyReLU below 0.
        keep: [edges, heads], by which the shares are multiplied after the softmax (their dropout).
    """
    out: Tensor = _Attention.apply(  # type: ignore[no-untyped-call]
        hidden.contiguous(), own.contiguous(), other.contiguous(), edges, slope, keep
    )
    return out
