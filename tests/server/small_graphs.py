"""Small graphs on which every filter is compared with its dense formula."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from graphldp.graph import Graph
from graphldp.server import Estimate


def adjacency(kind: str, nodes: int = 12, seed: int = 0) -> sp.csr_array:
    """Return a symmetric adjacency; node 11 is isolated in each kind, without even a self-loop."""
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((nodes, nodes)) < 0.3, 1).astype(float)
    if kind == "disconnected":
        upper[:6, 6:] = 0
    if kind == "weighted":
        upper *= rng.uniform(0.1, 3, upper.shape)
    dense = upper + upper.T
    if kind == "loops":
        dense[np.arange(0, nodes, 3), np.arange(0, nodes, 3)] = 1
    dense[-1] = dense[:, -1] = 0
    return sp.csr_array(dense)


KINDS = ("plain", "weighted", "disconnected", "loops")


def dense_shift(matrix: np.ndarray, r: float) -> np.ndarray:
    """D^(r-1) A D^(-r), entry by entry."""
    nodes = len(matrix)
    degree = matrix.sum(axis=1)
    out = np.zeros((nodes, nodes))
    for i in range(nodes):
        for j in range(nodes):
            if matrix[i, j] > 0:
                out[i, j] = degree[i] ** (r - 1) * matrix[i, j] * degree[j] ** (-r)
    return out


def estimate(nodes: int = 12, dimensions: int = 7, fill: float = 0.5, seed: int = 1) -> Estimate:
    """Return sparse estimates such as reports give: few coordinates, large values, some of them equal to 0."""
    rng = np.random.default_rng(seed)
    index = np.sort(np.argsort(rng.random((nodes, dimensions)), axis=1)[:, :3], axis=1).astype(np.int32)
    value = rng.normal(fill, 4, index.shape).astype(np.float32)
    value[::4, 0] = 0
    parts = (value.ravel(), index.ravel(), np.arange(0, 3 * nodes + 1, 3, dtype=np.int32))
    return Estimate(matrix=sp.csr_array(parts, shape=(nodes, dimensions)), fill=fill)


def graph(features: np.ndarray, matrix: sp.csr_array, labels: np.ndarray, classes: int) -> Graph:
    """Return a graph object around these parts."""
    upper = sp.coo_array(sp.triu(matrix, 1))
    order = np.lexsort((upper.col, upper.row))
    edges = np.stack([upper.row[order], upper.col[order]]).astype(np.int32)
    return Graph(
        name="small",
        features=sp.csr_array(features.astype(np.float32)),
        edges=edges,
        labels=labels.astype(np.int32),
        classes=classes,
        low=0.0,
        high=1.0,
    )
