"""What two people have in common: H_u * H_v of pairs, attribute by attribute, as the scores of attributes take it.

Where links are learned the pairs are what nodes are elsewhere, and whether a pair is linked is its class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphldp.errors import OptionError
from graphldp.server.filtered import BLOCK_MEMORY, Filtered

__all__ = ["PairProducts"]

Floats: TypeAlias = NDArray[np.float64]
MOST_MEMORY = 4e9  # bytes of products that a score may hold at once


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairProducts:
    """The products of the calibrated attributes of both people of each pair, a row for each.

    Attributes:
        filtered: the calibrated estimate H.
        pairs: 2 x K, who they are.
    """

    filtered: Filtered
    pairs: NDArray[np.int64]

    @property
    def nodes(self) -> int:
        """How many rows: one for each pair."""
        return int(self.pairs.shape[1])

    @property
    def dimensions(self) -> int:
        """How many attributes."""
        return self.filtered.dimensions

    def blocks(self, max_memory: float = BLOCK_MEMORY) -> Iterator[tuple[slice, NDArray[np.float32]]]:
        """Yield the products in blocks of columns, within max_memory bytes of working memory."""
        first, second = self.pairs
        share = max(1.0, self.nodes / max(1, self.filtered.nodes))
        for columns, block in self.filtered.blocks(max(max_memory / share, 12.0 * self.filtered.nodes)):
            yield columns, block[first] * block[second]

    def dense(self) -> NDArray[np.float32]:
        """Return all products at once; where they would take more than 4 GB, that is an error."""
        need = 4.0 * self.nodes * self.dimensions
        if need > MOST_MEMORY:
            raise OptionError(
                f"this score needs the products of {self.nodes:,} pairs in {self.dimensions:,} attributes at once, "
                f"{need / 1e9:.3g} GB; score_by fda, mi and chi-square take them in blocks"
            )
        out = np.empty((self.nodes, self.dimensions), dtype=np.float32)
        for columns, block in self.blocks():
            out[:, columns] = block
        return out

    def rows(self, chosen: NDArray[np.int64]) -> tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]:
        """Return what multiplies the chosen rows, and their transpose, by something."""
        found = self.dense()[chosen]
        turned = np.ascontiguousarray(found.T)

        def times(weight: Floats) -> Floats:
            return np.asarray(found @ weight.astype(np.float32), dtype=np.float64)

        def back(columns: Floats) -> Floats:
            return np.asarray(turned @ columns.astype(np.float32), dtype=np.float64)

        return times, back

    def project(self, weight: NDArray[Any]) -> NDArray[Any]:
        """Return the products times a weight matrix."""
        return np.asarray(sum(block @ weight[columns] for columns, block in self.blocks()))

    def adjoint(self, columns: NDArray[Any]) -> NDArray[Any]:
        """Return the products, transposed, times some columns."""
        return np.concatenate([block.T @ columns for _, block in self.blocks()])
