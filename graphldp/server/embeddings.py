r"""Coordinates of nodes that are made of the public graph alone: nobody's features, nobody's labels.

    spectral    the leading eigenvectors of D_t^-1/2 (A + t/n 11^T) D_t^-1/2,  D_t = D + t I
    pagerank    the leading eigenvectors of the logarithm of personalised PageRank, each times sqrt |eigenvalue|
    links       the same of A itself, whose rows say to whom a node is linked and not only where it lies

"Leading" is by absolute value: where neighbours differ, it is the negative eigenvalues that tell the classes.
The uniform t/n is the regularised Laplacian of Amini et al. (2013) and Qin & Rohe (2013): without it the first vectors
of a graph with many small components say which component a node is in, and nothing else.

All three are deterministic: the start of the iteration has a fixed address, the largest entry of each vector is
positive, and dense products run on one thread, so that sums have one order (on a busy machine this is also many times
faster: threads that wait for each other do not compute). The last results are kept, as the runs of a table ask for the
same coordinates again and again.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from graphldp.errors import OptionError
from graphldp.randomness import generator
from graphldp.server.adjacency import degree_power, normalised

__all__ = ["Embedding", "links", "pagerank", "pagerank_matrix", "spectral"]

_OVERSAMPLING = 16
_NEGLIGIBLE = 1e-5  # of the leading eigenvalue: below, a vector is rounding and no coordinate
_KEPT = 2**28  # bytes of results that are kept


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Embedding:
    """The leading eigenvectors of a symmetric matrix.

    Attributes:
        vectors: n x p, orthonormal columns, by falling absolute eigenvalue; as many as asked for, or as there are.
        values: the eigenvalues.
    """

    vectors: NDArray[np.float32]
    values: NDArray[np.float32]

    def scaled(self, power: float) -> NDArray[np.float32]:
        """Return the vectors times |eigenvalue|^power, as long as if each entry were of the order of 1 at power 0."""
        weights = np.sqrt(len(self.vectors)) * np.abs(self.values.astype(np.float64)) ** power
        return np.asarray(self.vectors * weights, dtype=np.float32)


def spectral(adjacency: sp.csr_array, width: int, *, regularization: float = 1.0) -> Embedding:
    """Return the leading eigenvectors of the regularised normalised adjacency.

    Args:
        adjacency: n x n, symmetric, entries >= 0.
        width: how many vectors.
        regularization: t as a multiple of the mean degree; at 0 it is the plain normalised adjacency.
    """
    _check_width(width)
    if not 0 <= regularization < np.inf:
        raise OptionError(f"regularization must be a number of at least 0, got {regularization}")

    def make() -> Embedding:
        matrix = sp.csr_array(adjacency, dtype=np.float32)
        degree = np.asarray(matrix.sum(axis=1), dtype=np.float64).reshape(-1)
        uniform = regularization * float(degree.mean()) if degree.size else 0.0
        scale = degree_power(degree + uniform, -0.5).astype(np.float32)[:, None]
        share = np.float32(uniform / max(1, degree.size))

        def multiply(block: NDArray[np.float32]) -> NDArray[np.float32]:
            scaled = scale * block
            return np.asarray(scale * (matrix @ scaled + share * scaled.sum(axis=0)), dtype=np.float32)

        return _leading(multiply, degree.size, width, "spectral")

    return _remembered(adjacency, ("spectral", width, float(regularization)), make)


def links(adjacency: sp.csr_array, width: int) -> Embedding:
    """Return the leading eigenvectors of the adjacency matrix: the best approximation of its rows at that width."""
    _check_width(width)

    def make() -> Embedding:
        matrix = sp.csr_array(adjacency, dtype=np.float32)
        return _leading(lambda block: np.asarray(matrix @ block), matrix.shape[0], width, "links")

    return _remembered(adjacency, ("links", width), make)


def pagerank(adjacency: sp.csr_array, width: int, *, decay: float = 0.15, cut: float = 1e-3) -> Embedding:
    """Return the leading eigenvectors of log(1 + P / cut) made symmetric, P being personalised PageRank."""
    _check_width(width)

    def make() -> Embedding:
        matrix = pagerank_matrix(adjacency, decay=decay, cut=cut)
        matrix.data = np.log1p(matrix.data / np.float32(cut)).astype(np.float32)
        both = sp.csr_array(matrix + matrix.T)
        return _leading(lambda block: np.asarray(both @ block), both.shape[0], width, "pagerank")

    return _remembered(adjacency, ("pagerank", width, float(decay), float(cut)), make)


def pagerank_matrix(
    adjacency: sp.csr_array, *, decay: float = 0.15, cut: float = 1e-3, tolerance: float = 0.2, block: int = 2048
) -> sp.csr_array:
    """Return sum_k decay (1 - decay)^k P^k with P = D^-1 A, where shares of a walk below `cut` end there: sparse.

    Entries are at most the exact ones. The sum ends once what is left of all walks, (1 - decay)^k, is at most
    `tolerance`; far nodes have fallen below `cut` by then.
    """
    if not 0 < decay < 1:
        raise OptionError(f"decay (the share of a walk that ends at each step) must be between 0 and 1, got {decay}")
    if not 0 < cut < 1:
        raise OptionError(f"cut (the smallest share of a walk that goes on) must be between 0 and 1, got {cut}")
    walk = normalised(adjacency, convolution=0.0)
    nodes = walk.shape[0]
    steps = int(np.ceil(np.log(tolerance) / np.log1p(-decay)))
    start = sp.eye_array(nodes, format="csr", dtype=np.float32)
    parts = []
    for first in range(0, max(1, nodes), block):
        here = sp.csr_array(start[first : first + block])
        total = here * np.float32(decay)
        for _ in range(steps):
            here = sp.csr_array(here @ walk)
            here.data *= np.float32(1 - decay)
            here.data[here.data < cut] = 0
            here.eliminate_zeros()
            total = total + here * np.float32(decay)
        parts.append(sp.csr_array(total))
    out = sp.csr_array(sp.vstack(parts, format="csr"))
    out.sort_indices()
    return out


def _check_width(width: Any) -> None:
    if isinstance(width, bool) or not isinstance(width, int | np.integer) or width < 1:
        raise OptionError(f"width must be a whole number of at least 1, got {width!r}")


def _leading(
    multiply: Callable[[NDArray[np.float32]], NDArray[np.float32]], nodes: int, width: int, name: str
) -> Embedding:
    """Return leading eigenvectors of a symmetric matrix by subspace iteration (Halko, Martinsson & Tropp 2011)."""
    if not nodes:
        return Embedding(vectors=np.zeros((0, width), np.float32), values=np.zeros(width, np.float32))
    wide = min(nodes, width + _OVERSAMPLING)
    # The more vectors, the less the last of them matter, and the dearer is each round.
    rounds = 12 if width <= 128 else 6
    basis = generator(0, "embedding", name, nodes, wide).standard_normal((nodes, wide), dtype=np.float32)
    basis = np.linalg.qr(basis)[0]
    for _ in range(rounds):
        basis = np.linalg.qr(multiply(basis))[0]
    small = basis.T.astype(np.float64) @ multiply(basis)
    values, inner = np.linalg.eigh((small + small.T) / 2)
    # Stable, so that equal ones stay in the order of the solver.
    order = np.argsort(-np.abs(values), kind="stable")[: min(width, nodes)]
    values = values[order]
    vectors = basis @ inner[:, order].astype(np.float32)
    vectors *= np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])])
    empty = np.abs(values) <= _NEGLIGIBLE * max(1e-30, float(np.abs(values).max(initial=0.0)))
    values[empty] = 0.0
    vectors[:, empty] = 0.0
    return Embedding(vectors=np.ascontiguousarray(vectors, dtype=np.float32), values=values.astype(np.float32))


_MEMORY: OrderedDict[tuple[Any, ...], Embedding] = OrderedDict()


def _remembered(adjacency: sp.csr_array, options: tuple[Any, ...], make: Callable[[], Embedding]) -> Embedding:
    """Return what `make` returns, which depends on the adjacency's content and the options alone."""
    digest = hashlib.blake2b(digest_size=16)
    for part in (adjacency.indptr, adjacency.indices, adjacency.data):
        digest.update(np.ascontiguousarray(part).tobytes())
    key = (digest.digest(), adjacency.shape, *options)
    if key not in _MEMORY:
        with threadpool_limits(1, user_api="blas"):
            made = make()
        for array in (made.vectors, made.values):
            array.setflags(write=False)
        _MEMORY[key] = made
        while len(_MEMORY) > 1 and sum(one.vectors.nbytes for one in _MEMORY.values()) > _KEPT:
            _MEMORY.popitem(last=False)
    _MEMORY.move_to_end(key)
    return _MEMORY[key]
