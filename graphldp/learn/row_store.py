"""Filtered inputs as a store of rows: written once in blocks of columns, read in batches of nodes.

A filter needs all nodes of a column at once, a batch all columns of some nodes. So the powers of the filter are
computed block by block of columns, within a bound of memory, and a store turns them into rows. The store here keeps
them in memory; one that keeps them in files is for whoever has files (`graphldp.stages.files.filtered_inputs`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphldp.errors import OptionError
from graphldp.learn.chain import trimmed
from graphldp.learn.problem import NodeInputs
from graphldp.learn.sparse import Csr

__all__ = ["Chain", "RowStore", "RowWriter", "Stores", "filtered_columns", "in_memory"]

# What the blocks of columns that are worked on at a time may take, where nobody sets a limit.
BLOCK_MEMORY = 2**28
# The sparse product is fastest where a row of the block is a whole number of cache lines.
LINE = 16


class RowStore(Protocol):
    """An n x d matrix of float32 that gives rows."""

    @property
    def shape(self) -> tuple[int, int]:
        """Nodes and dimensions."""
        ...

    def take(self, nodes: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the rows of these nodes, in their order."""
        ...

    def close(self) -> None:
        """Let go of everything; nothing is read any more."""
        ...


class RowWriter(Protocol):
    """Takes the blocks of columns, in their order, and becomes a store."""

    def write(self, columns: slice, block: NDArray[np.float32]) -> None:
        """Take in a block, n x b."""
        ...

    def finish(self) -> RowStore:
        """Return the store: all columns are there."""
        ...


Stores: TypeAlias = Callable[[int, int], RowWriter]


class _Array:
    """Both in one, in memory."""

    def __init__(self, nodes: int, dimensions: int):
        self._rows = np.empty((nodes, dimensions), dtype=np.float32)

    @property
    def shape(self) -> tuple[int, int]:
        """Nodes and dimensions."""
        nodes, dimensions = self._rows.shape
        return nodes, dimensions

    def write(self, columns: slice, block: NDArray[np.float32]) -> None:
        """Take in a block."""
        self._rows[:, columns] = block

    def finish(self) -> _Array:
        """Return itself."""
        return self

    def take(self, nodes: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return rows."""
        return self._rows[nodes]

    def close(self) -> None:
        """Let go of the array."""
        self._rows = np.empty((0, 0), dtype=np.float32)


def in_memory(nodes: int, dimensions: int) -> RowWriter:
    """Return a store that keeps its rows in memory."""
    return _Array(nodes, dimensions)


# One matrix to compute from given inputs: the filter's coefficients, and those of the backbone's own walk after it.
Chain: TypeAlias = tuple[tuple[float, ...], tuple[float, ...]]


def filtered_columns(
    inputs: NodeInputs,
    shift: Csr | None,
    walk: Csr | None,
    chains: Sequence[Chain],
    *,
    device: torch.device,
    max_memory: int | None = None,
) -> Iterator[tuple[slice, list[NDArray[np.float32]]]]:
    """Yield W_p(F_p(X)) in blocks of columns, one n x b array for each chain p; powers of S are computed once for all.

    Args:
        inputs: X.
        shift: S of the filters F_p; None if none of them has a step.
        walk: the operator of the walks W_p; None if none of them has a step.
        chains: the coefficients of each F_p and W_p.
        device: where to compute.
        max_memory: bytes that the blocks may take.
    """
    nodes, dimensions = inputs.deviations.shape
    # A power and the product that replaces it, and each chain's sum.
    need = 4 * nodes * (2 + len(chains))
    limit = BLOCK_MEMORY if max_memory is None else max_memory
    width = min(dimensions, limit // max(need, 1))
    if width < 1:
        raise OptionError(
            f"a single column of {nodes} nodes takes {need} bytes with its powers, max_memory leaves {limit}; raise it"
        )
    width = width // LINE * LINE if width >= LINE else width
    given: Any = sp.csc_array(inputs.deviations) if inputs.sparse else inputs.dense()
    for start in range(0, dimensions, width):
        columns = slice(start, min(start + width, dimensions))
        # Powers are computed in it: of a dense matrix, the block is a view, and has to be copied.
        dense = given[:, columns].toarray(order="C") if inputs.sparse else np.array(given[:, columns], order="C")
        block = torch.from_numpy(np.asarray(dense, dtype=np.float32)).to(device)
        if inputs.fill:
            block += inputs.fill
        done = _polynomials(shift, block, [one for one, _ in chains])
        del block, dense
        for place, (_, after) in enumerate(chains):
            if trimmed(after) != (1.0,):
                (done[place],) = _polynomials(walk, done[place], [after])
        yield columns, [one.cpu().numpy() for one in done]


def _polynomials(matrix: Csr | None, block: Tensor, several: Sequence[tuple[float, ...]]) -> list[Tensor]:
    """Return sum_k c_k A^k block for several lists of coefficients; powers are computed once, and in the block."""
    wanted = [trimmed(coefficients) for coefficients in several]
    degree = max(len(one) for one in wanted) - 1
    buffers = [block, torch.empty_like(block) if degree else block]
    sums: list[Tensor | None] = [None] * len(wanted)
    for k in range(degree + 1):
        power = buffers[k % 2]
        if k:
            assert matrix is not None
            matrix.multiply(buffers[(k - 1) % 2], out=power)
        for place, coefficients in enumerate(wanted):
            if k < len(coefficients) and coefficients[k]:
                known = sums[place]
                sums[place] = power * coefficients[k] if known is None else known.add_(power, alpha=coefficients[k])
    return [torch.zeros_like(block) if one is None else one for one in sums]
