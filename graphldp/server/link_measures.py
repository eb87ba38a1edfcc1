"""How near an estimated graph is to the true one: for tables, since no server has the true links."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from graphldp.client.links import Neighbours
from graphldp.errors import DataError
from graphldp.server.links import LinkEstimate

__all__ = ["adjacency_error", "degree_distance", "density", "link_measures", "walk_distances"]

Floats: TypeAlias = NDArray[np.float64]

HOPS = 4
_BLOCK = 2**24  # entries of a block of walks
_FULL = 0.02  # share of pairs from which on a graph counts as full


def _true(estimate: LinkEstimate, edges: ArrayLike) -> sp.csr_array:
    lists = Neighbours.of_edges(edges, estimate.nodes)
    ones = np.ones(len(lists.indices))
    return sp.csr_array((ones, lists.indices, lists.indptr), shape=(lists.nodes, lists.nodes))


def adjacency_error(estimate: LinkEstimate, edges: ArrayLike) -> float:
    """Return the mean absolute difference of weight and link over all pairs of people."""
    nodes = estimate.nodes
    away = abs(sp.csr_array(estimate.adjacency.astype(np.float64) - _true(estimate, edges)))
    return float(away.sum()) / (nodes * (nodes - 1))


def density(estimate: LinkEstimate) -> float:
    """Return the share of all pairs that the weights come to."""
    return float(estimate.adjacency.astype(np.float64).sum()) / (estimate.nodes * (estimate.nodes - 1))


def degree_distance(estimate: LinkEstimate, edges: ArrayLike) -> float:
    """Return how far the distribution of degrees has to be moved, in links per person (Wasserstein's distance)."""
    one = np.sort(np.asarray(estimate.adjacency.astype(np.float64).sum(axis=1)).ravel())
    two = np.sort(np.asarray(_true(estimate, edges).sum(axis=1)).ravel())
    return float(np.abs(one - two).mean())


def walk_distances(
    estimate: LinkEstimate, edges: ArrayLike, *, hops: int = HOPS, people: ArrayLike | None = None
) -> tuple[float, ...]:
    """Return the root mean square difference of the random walks' chances after 1 to `hops` steps.

    A walk goes to a neighbour by weight; where there is none, it ends.

    Args:
        estimate: the estimated graph.
        edges: the true links.
        hops: how many steps.
        people: where walks begin; everybody unless given. Time grows with people times links.
    """
    if hops < 1:
        raise DataError(f"a walk has at least 1 step, got {hops}")
    nodes = estimate.nodes
    walks: list[Any] = [_walk(estimate.adjacency.astype(np.float64)), _walk(_true(estimate, edges))]
    # A graph that is nearly full is multiplied faster as what it is.
    full = nodes * nodes <= _BLOCK
    walks = [matrix.toarray() if full and matrix.nnz > _FULL * nodes * nodes else matrix for matrix in walks]
    who = np.arange(nodes) if people is None else np.asarray(people, dtype=np.int64)
    total = np.zeros(hops)
    step = max(1, _BLOCK // nodes)
    for start in range(0, len(who), step):
        part = who[start : start + step]
        first = [np.asarray(m[part].toarray() if sp.issparse(m) else m[part]) for m in walks]
        for hop in range(hops):
            total[hop] += float(((first[0] - first[1]) ** 2).sum())
            first = [np.asarray(rows @ matrix) for rows, matrix in zip(first, walks, strict=True)]
    return tuple(float(v) for v in np.sqrt(total / (len(who) * nodes)))


def _walk(matrix: sp.csr_array) -> sp.csr_array:
    degree = np.asarray(matrix.sum(axis=1)).ravel()
    scale = np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0)
    return sp.csr_array(sp.diags_array(scale) @ matrix)


def link_measures(
    estimate: LinkEstimate, edges: ArrayLike, *, hops: int = HOPS, people: ArrayLike | None = None
) -> dict[str, float]:
    """Return all of them by name, with how many of the true links were found and how many of the found are true."""
    true = _true(estimate, edges)
    both = int(true.multiply(estimate.adjacency > 0).sum()) // 2
    out = {
        "adjacency_error": adjacency_error(estimate, edges),
        "density": density(estimate),
        "degree_distance": degree_distance(estimate, edges),
        "recall": both / (true.nnz // 2) if true.nnz else float("nan"),
        "precision": both / estimate.links if estimate.links else float("nan"),
    }
    walked = walk_distances(estimate, edges, hops=hops, people=people)
    return out | {f"walk_{hop}": value for hop, value in enumerate(walked, start=1)}
