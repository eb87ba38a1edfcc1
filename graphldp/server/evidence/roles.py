"""What kind of place a node has in a graph, as evidence that means the same in any graph: degrees, triangles, means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphldp.errors import OptionError
from graphldp.server.evidence.base import Evidence, EvidenceSetting
from graphldp.server.evidence.registry import register

__all__ = ["Roles", "triangles"]

_BLOCK = 2**22  # entries of a block of the squared adjacency, at most


def triangles(adjacency: sp.csr_array) -> NDArray[np.float64]:
    """Return in how many triangles each node is."""
    nodes = adjacency.shape[0]
    degree = np.diff(adjacency.indptr)
    # Two-step walks from a node, at most n ends: what a row of the square may hold.
    walks = np.minimum(np.asarray(adjacency @ degree.astype(np.float64)), nodes)
    block = np.floor(np.cumsum(walks) / _BLOCK).astype(np.int64)
    out = np.zeros(nodes)
    for number in np.unique(block):
        rows = np.flatnonzero(block == number)
        own = adjacency[rows]
        out[rows] = np.asarray((own @ adjacency).multiply(own).sum(axis=1), dtype=np.float64).ravel() / 2
    return out


@register("roles")
@dataclass(frozen=True, slots=True, kw_only=True)
class Roles(Evidence):
    """The logarithms of a node's degree and triangles, how close its neighbours stand, and the means of all that.

    With each hop the columns so far stand once more, as means over the neighbours. No column depends on the size of
    the graph, on a node's number, or on anybody in another component.

    Attributes:
        hops: how often means over neighbours are taken.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = "Degree, triangles, closeness of the neighbours, and their means over neighbours."
    reads: ClassVar[bool] = False
    transfers: ClassVar[bool] = True

    hops: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.hops, bool) or not isinstance(self.hops, int) or self.hops < 0:
            raise OptionError(f"hops must be a whole number of at least 0, got {self.hops!r}")

    def build(self, setting: EvidenceSetting) -> NDArray[np.float32]:
        """Return n x 3 * 2^hops numbers; which nodes are trained on makes no difference."""
        adjacency = setting.graph.adjacency()
        degree = np.diff(adjacency.indptr).astype(np.float64)
        closed = triangles(adjacency)
        pairs = degree * (degree - 1) / 2
        close = np.divide(closed, pairs, out=np.zeros_like(closed), where=pairs > 0)
        out: NDArray[Any] = np.stack([np.log1p(degree), np.log1p(closed), close], axis=1)
        for _ in range(self.hops):
            mean = np.asarray(adjacency @ out) / np.maximum(degree, 1.0)[:, None]
            out = np.hstack([out, mean])
        return out.astype(np.float32)
