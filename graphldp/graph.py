"""The public graph, the features that people hold, and the labels: one frozen object."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphldp.errors import DataError

__all__ = ["WITHOUT_LABELS", "WITHOUT_LINKS", "Graph"]

# What the provenance of a graph says whose links, or labels, are on people's devices alone.
WITHOUT_LINKS, WITHOUT_LABELS = "without_links", "without_labels"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Graph:
    """An undirected graph with sparse node features.

    Attributes:
        name: the dataset's name.
        features: n x d, CSR, float32, sorted indices, no explicit zeros.
        edges: 2 x E, int32, each undirected edge once with edges[0] < edges[1], sorted; no self-loops.
        self_loops: int32, the nodes that the source gives a self-loop, sorted.
        labels: n, int32, the class of each node, -1 where it has none.
        label_sets: n x k, bool: which of k yes/no labels hold for each node, where nodes have a set of labels and no
            class; else None.
        parts: n, int8: which nodes the data set's own files train on (0), select by (1) and test on (2); None where
            they say nothing of it.
        classes: how many classes there are.
        low, high: the PUBLIC range of a feature value. It is declared, never computed from the features.
        provenance: where it came from (sources, commits, hashes, options), as JSON-able values.
        node_ids: the source's own names of the nodes, where they are not 0..n-1.
        feature_names: the source's own names of the features, where they have any.
        weights: of the edges, E, float32, above 0, of a graph that was estimated; None where each of them is there.
    """

    name: str
    features: sp.csr_array
    edges: NDArray[np.int32]
    labels: NDArray[np.int32]
    classes: int
    low: float
    high: float
    self_loops: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    provenance: Mapping[str, Any] = field(default_factory=dict)
    node_ids: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None
    weights: NDArray[np.float32] | None = None
    label_sets: NDArray[np.bool_] | None = None
    parts: NDArray[np.int8] | None = None

    def __post_init__(self) -> None:
        n = self.nodes
        if not self.low < self.high:
            raise DataError(f"{self.name}: the value range needs low < high, got low {self.low} and high {self.high}")
        if self.edges.ndim != 2 or self.edges.shape[0] != 2:
            raise DataError(f"{self.name}: edges need the shape 2 x E, got {self.edges.shape}")
        if self.edges.size and not (self.edges.min() >= 0 and self.edges.max() < n):
            raise DataError(f"{self.name}: an edge names a node outside 0..{n - 1}")
        if self.edges.size and not (self.edges[0] < self.edges[1]).all():
            raise DataError(f"{self.name}: edges must stand once each, smaller node first, self-loops apart")
        if not (np.diff(self.edges[0].astype(np.int64) * n + self.edges[1]) > 0).all():
            raise DataError(f"{self.name}: edges must stand once each, in the order of their nodes")
        if self.weights is not None:
            if self.weights.shape != (self.edges.shape[1],):
                raise DataError(
                    f"{self.name}: {self.edges.shape[1]} edges need as many weights, got {self.weights.shape}"
                )
            if not (np.isfinite(self.weights).all() and (self.weights > 0).all()):
                raise DataError(f"{self.name}: an edge's weight must be finite and above 0")
        if self.labels.shape != (n,):
            raise DataError(f"{self.name}: {n} nodes need {n} labels, got {self.labels.shape}")
        if self.labels.size and not (self.labels.min() >= -1 and self.labels.max() < self.classes):
            raise DataError(f"{self.name}: labels must be -1 (none) or a class in 0..{self.classes - 1}")
        if self.label_sets is not None:
            sets = self.label_sets
            if sets.ndim != 2 or sets.shape[0] != n or not sets.shape[1] or sets.dtype != bool:
                raise DataError(f"{self.name}: sets of labels are a {n} x k matrix of yes and no, got {sets.shape}")
            if self.classes:
                raise DataError(f"{self.name}: a node has a class or a set of labels, not both")
        if self.parts is not None and (self.parts.shape != (n,) or not np.isin(self.parts, (0, 1, 2)).all()):
            raise DataError(f"{self.name}: each of {n} nodes is in part 0, 1 or 2, or nothing is said of parts")

    @property
    def nodes(self) -> int:
        """How many nodes."""
        return int(self.features.shape[0])

    @property
    def dimensions(self) -> int:
        """How many features."""
        return int(self.features.shape[1])

    def content_hash(self) -> str:
        """Return a hash of everything that methods can see of it: its name, features, range, edges and labels."""
        digest = hashlib.sha256(repr((self.name, self.low, self.high, self.classes, self.features.shape)).encode())
        matrix = self.features
        for part in (matrix.indptr, matrix.indices, matrix.data, self.edges, self.self_loops, self.labels):
            digest.update(np.ascontiguousarray(part).tobytes())
        if self.weights is not None:
            digest.update(np.ascontiguousarray(self.weights).tobytes())
        if self.label_sets is not None:
            digest.update(repr(self.label_sets.shape).encode() + np.packbits(self.label_sets).tobytes())
        if self.parts is not None:
            digest.update(b"parts" + self.parts.astype(np.int8).tobytes())
        for name in (*(self.node_ids or ()), *(self.feature_names or ())):
            digest.update(b"\0" + name.encode())
        return "sha256:" + digest.hexdigest()

    def linked(self, edges: NDArray[np.int32], weights: NDArray[np.float32]) -> Graph:
        """Return the same people with these links between them, of these weights."""
        return replace(self, edges=edges, weights=None if (weights == 1).all() else weights)

    def adjacency(self) -> sp.csr_array:
        """Return the symmetric adjacency matrix without self-loops: 0 or 1, or an estimated graph's weights."""
        u, v = self.edges
        ones = np.ones(2 * len(u), dtype=np.float32) if self.weights is None else np.tile(self.weights, 2)
        index = (np.concatenate([u, v]), np.concatenate([v, u]))
        out = sp.coo_array((ones, index), shape=(self.nodes, self.nodes)).tocsr()
        out.sort_indices()
        return out
