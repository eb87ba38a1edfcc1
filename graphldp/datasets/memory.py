"""A graph that is in memory already: a torch_geometric `Data`, or arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from graphldp.datasets.assemble import undirected
from graphldp.errors import DataError
from graphldp.graph import Graph

__all__ = ["as_graph", "graph_of_arrays"]


def as_graph(value: Any, *, name: str = "", low: float = 0.0, high: float = 1.0) -> Graph:
    """Return a Graph from a Graph, a torch_geometric `Data`, or a triple (features, edges, labels).

    Args:
        value: a Graph is returned as it is. Of a `Data`, `x`, `edge_index` and `y` are read; masks are not, since every
            seed draws a split of its own.
        name: what to call it; splits and noise are drawn for a name. Left out, it follows from what the graph holds, so
            that no two graphs share noise.
        low: the declared public lower bound of a feature value.
        high: the declared public upper bound of a feature value.
    """
    if isinstance(value, Graph):
        return value
    if isinstance(value, tuple | list) and len(value) == 3:
        features, edges, labels = value
    elif all(hasattr(value, part) for part in ("x", "edge_index")):
        features, edges, labels = value.x, value.edge_index, getattr(value, "y", None)
        if features is None or edges is None:
            raise DataError("the Data object has no x or no edge_index; a graph needs features and edges")
    else:
        raise DataError(
            f"a graph is a graphldp Graph, a torch_geometric Data, a data set's name, or (features, edges, labels); "
            f"got {type(value).__name__}"
        )
    graph = graph_of_arrays(features, edges, labels, name=name or "graph", low=low, high=high)
    return graph if name else replace(graph, name=f"graph-{graph.content_hash().partition(':')[2][:12]}")


def graph_of_arrays(
    features: Any, edges: ArrayLike, labels: ArrayLike | None = None, *, name: str, low: float, high: float
) -> Graph:
    """Return the graph of arrays, tensors or sparse matrices.

    Args:
        features: n x d, dense or sparse.
        edges: 2 x E; repeated and reversed edges count once, self-loops are set apart.
        labels: n classes as whole numbers, -1 for a node without one; None where nobody has one.
        name: what to call it.
        low: the declared public lower bound of a feature value.
        high: the declared public upper bound of a feature value.
    """
    matrix = _matrix(features)
    outside = matrix.size and (matrix.data.min(initial=0.0) < low or matrix.data.max(initial=0.0) > high)
    if outside or (low > 0 and matrix.nnz < np.prod(matrix.shape)):
        raise DataError(
            f"{name}: a feature lies outside of the declared range {low:g} to {high:g}; declare the public range of "
            "the features with low and high"
        )
    pairs = _array(edges)
    if pairs.ndim != 2 or pairs.shape[0] != 2:
        raise DataError(f"{name}: edges need the shape 2 x E, got {pairs.shape}")
    if pairs.dtype.kind not in "iu":
        raise DataError(f"{name}: edges are pairs of whole numbers, got {pairs.dtype}")
    kept, self_loops = undirected((pairs[0], pairs[1]), matrix.shape[0])
    classes = _classes(labels, matrix.shape[0], name)
    return Graph(
        name=name,
        features=matrix,
        edges=kept,
        self_loops=self_loops,
        labels=classes,
        classes=int(classes.max(initial=-1)) + 1,
        low=float(low),
        high=float(high),
        provenance={"dataset": "memory"},
    )


def _array(value: Any) -> NDArray[Any]:
    """Return a tensor, wherever it is, or anything like an array as an array."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    return np.asarray(value)


def _matrix(features: Any) -> sp.csr_array:
    if getattr(features, "is_sparse", False) or str(getattr(features, "layout", "")) == "torch.sparse_csr":
        whole = features.detach().cpu().to_sparse_coo().coalesce()
        out = sp.coo_array((whole.values().numpy(), whole.indices().numpy()), shape=tuple(whole.shape)).tocsr()
    else:
        out = sp.csr_array(features if sp.issparse(features) else np.atleast_2d(_array(features)))
    out = sp.csr_array(out, dtype=np.float32)
    if not np.isfinite(out.data).all():
        raise DataError("a feature is no finite number; replace or drop missing values first")
    out.sum_duplicates()
    out.eliminate_zeros()
    out.sort_indices()
    return out


def _classes(labels: ArrayLike | None, nodes: int, name: str) -> NDArray[np.int32]:
    if labels is None:
        return np.full(nodes, -1, dtype=np.int32)
    found = _array(labels)
    found = found.reshape(-1) if found.ndim == 2 and found.shape[1] == 1 else found
    if found.shape != (nodes,):
        raise DataError(
            f"{name}: {nodes} nodes need {nodes} labels, got {found.shape}; several for a node are no classes"
        )
    if found.dtype.kind not in "iub":
        raise DataError(f"{name}: labels are classes as whole numbers, -1 for none; got {found.dtype}")
    return found.astype(np.int32)
