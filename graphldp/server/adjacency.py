"""S: the normalised adjacency that the filters are polynomials of.

    S = D^(r-1) A D^(-r),  D = diag(A 1)

r is the convolution coefficient: 1/2 is the symmetric normalisation, 0 the mean over the neighbours, 1 spreads every
node's value evenly over its neighbours. With node weights w (FlexProp) it is the weighted mean,
w_j A_ij / sum_j w_j A_ij.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from graphldp.errors import DataError, OptionError
from graphldp.graph import Graph

__all__ = ["NORMALIZATIONS", "check_convolution", "degree_power", "normalised", "shift"]

NORMALIZATIONS = ("symmetric", "mean")
_COEFFICIENT = {"symmetric": 0.5, "mean": 0.0}


def check_convolution(normalization: str, convolution: float | None) -> float:
    """Return r: `convolution` where it is given, else that of the named normalisation."""
    if normalization not in NORMALIZATIONS:
        raise OptionError(f"normalization must be one of {', '.join(NORMALIZATIONS)}; got {normalization!r}")
    if convolution is None:
        return _COEFFICIENT[normalization]
    if not 0 <= convolution <= 1:
        raise OptionError(f"convolution (r of D^(r-1) A D^(-r)) must be from 0 to 1, got {convolution}")
    return float(convolution)


def degree_power(degree: NDArray[np.float64], power: float) -> NDArray[np.float64]:
    """Return degree^power, and 0 for a node without neighbours whatever the power."""
    inverse = np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0)
    if power == 0:
        return np.asarray(degree > 0, dtype=np.float64)
    if power == -0.5:
        return np.sqrt(inverse)
    if power == -1:
        return inverse
    return np.power(degree, power, out=np.zeros_like(degree), where=degree > 0)


def normalised(
    adjacency: Any, *, convolution: float = 0.5, self_loops: bool = False, weights: ArrayLike | None = None
) -> sp.csr_array:
    """Return S, float32, of any adjacency: weighted, directed, with self-loops or without.

    A node without neighbours has an empty row: nothing reaches it.

    Args:
        adjacency: n x n sparse, entries >= 0; entry (i, j) lets i hear j.
        convolution: r.
        self_loops: add one self-loop of weight 1 to every node.
        weights: one number >= 0 per node, by which its column counts; for r = 0 only.
    """
    check_convolution("symmetric", convolution)
    matrix = sp.csr_array(adjacency, dtype=np.float64, copy=True)
    if matrix.shape[0] != matrix.shape[1]:
        raise DataError(f"an adjacency matrix must be square, got {matrix.shape[0]} x {matrix.shape[1]}")
    if matrix.nnz and not (np.isfinite(matrix.data).all() and matrix.data.min() >= 0):
        raise DataError("edge weights must be finite numbers >= 0; an adjacency entry is negative, NaN or infinite")
    if self_loops:
        matrix = sp.csr_array(matrix + sp.eye_array(matrix.shape[0], format="csr"))
    matrix.sum_duplicates()
    if weights is not None:
        matrix.data *= _column_weights(weights, matrix.shape[0], convolution)[matrix.indices]
    degree = np.asarray(matrix.sum(axis=1), dtype=np.float64).reshape(-1)
    owners = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    left, right = degree_power(degree, convolution - 1), degree_power(degree, -convolution)
    if convolution == 0:
        # A directed edge may point to a node that hears nobody itself; the mean counts it all the same.
        right = np.ones_like(degree)
    values = matrix.data * left[owners] * right[matrix.indices]
    out = sp.csr_array((values.astype(np.float32), matrix.indices, matrix.indptr), shape=matrix.shape)
    out.sort_indices()
    return out


def _column_weights(weights: ArrayLike, nodes: int, convolution: float) -> NDArray[np.float64]:
    if convolution != 0:
        raise OptionError(f"node weights are for the weighted mean (convolution 0), got convolution {convolution}")
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (nodes,):
        raise DataError(f"{nodes} nodes need {nodes} weights, got the shape {values.shape}")
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise DataError("node weights must be finite numbers >= 0")
    return values


def shift(
    graph: Graph,
    normalization: str = "symmetric",
    self_loops: bool = False,
    *,
    convolution: float | None = None,
    weights: ArrayLike | None = None,
) -> sp.csr_array:
    """Return S of a graph, float32. Loops of the source are left out; `self_loops` gives every node one."""
    r = check_convolution(normalization, convolution)
    return normalised(graph.adjacency(), convolution=r, self_loops=self_loops, weights=weights)
