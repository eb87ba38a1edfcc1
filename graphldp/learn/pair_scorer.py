"""Scores of pairs of nodes from a link predictor's outputs: of given pairs, and the highest of all without an edge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphldp.errors import DataError, OptionError

__all__ = ["PairScorer"]

BLOCK_BYTES = 2**26  # scores of so many pairs are held at a time


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairScorer:
    """What a trained link predictor says of pairs: w . (z_u * z_v) + b.

    Attributes:
        outputs: z, nodes x width.
        weight: w, the width.
        bias: b; 0 for a model of the pairwise loss, whose scores have an order and no level.
    """

    outputs: NDArray[np.float32]
    weight: NDArray[np.float32]
    bias: float = 0.0

    @property
    def nodes(self) -> int:
        """How many nodes."""
        return len(self.outputs)

    def scores(self, pairs: NDArray[np.integer]) -> NDArray[np.float32]:
        """Return the score of each pair (2 x K): the higher, the more likely linked."""
        found = np.asarray(pairs)
        if found.ndim != 2 or found.shape[0] != 2:
            raise DataError(f"pairs need the shape 2 x K, got {found.shape}")
        if found.size and not (found.min() >= 0 and found.max() < self.nodes):
            raise DataError(f"a pair names a node outside 0..{self.nodes - 1}")
        first, second = self.outputs[found[0]], self.outputs[found[1]]
        return np.asarray(np.einsum("ij,ij,j->i", first, second, self.weight) + np.float32(self.bias), np.float32)

    def highest(self, count: int, adjacency: sp.csr_array) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the `count` pairs (2 x count) without an edge that score highest, best first, and their scores.

        Of equal scores the pair with the smaller nodes stands first. All pairs are looked at, in blocks of rows.
        """
        nodes = self.nodes
        if adjacency.shape != (nodes, nodes):
            raise DataError(f"the adjacency must be {nodes} x {nodes}, got {adjacency.shape}")
        free = nodes * (nodes - 1) // 2 - sp.triu(adjacency, 1).nnz
        if not 1 <= count <= free:
            raise OptionError(
                f"there are {free} pairs without an edge, so from 1 to {free} can be asked for, not {count}"
            )
        kept = np.empty((2, 0), np.int64)
        best = np.empty(0, np.float32)
        weighted = self.outputs * self.weight
        step = max(1, BLOCK_BYTES // (4 * max(nodes, 1)))
        for start in range(0, nodes, step):
            rows = np.arange(start, min(start + step, nodes))
            block = np.asarray(weighted[rows] @ self.outputs.T + np.float32(self.bias), np.float32)
            block[np.arange(nodes)[None, :] <= rows[:, None]] = -np.inf
            block[adjacency[rows].nonzero()] = -np.inf
            flat = block.ravel()
            some = _largest(flat, count)
            some = some[np.isfinite(flat[some])]
            pairs = np.stack([rows[some // nodes], some % nodes])
            kept, best = np.concatenate([kept, pairs], axis=1), np.concatenate([best, flat[some]])
            order = np.lexsort((kept[1], kept[0], -best))[:count]
            kept, best = kept[:, order], best[order]
        return kept, best


def _largest(values: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """Return where the `count` largest values stand, and with them all that equal the smallest of these."""
    if count >= len(values):
        return np.arange(len(values))
    least = np.partition(values, len(values) - count)[len(values) - count]
    return np.flatnonzero(values >= least)
