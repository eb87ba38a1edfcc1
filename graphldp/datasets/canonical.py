"""An order of the nodes that depends on the graph alone, not on the order in which a source lists them."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from graphldp.datasets.assemble import undirected
from graphldp.graph import Graph

__all__ = ["canonical", "canonical_order"]


def canonical(graph: Graph) -> Graph:
    """Return the graph with its nodes in canonical order, without the source's own node names."""
    order = canonical_order(graph)
    number = np.empty_like(order)
    number[order] = np.arange(order.size)
    edges, _ = undirected(number[graph.edges], graph.nodes)
    features = graph.features[order]
    features.sort_indices()
    return dataclasses.replace(
        graph,
        features=features,
        edges=edges,
        self_loops=np.sort(number[graph.self_loops]).astype(np.int32),
        labels=graph.labels[order],
        node_ids=None,
    )


def canonical_order(graph: Graph) -> NDArray[np.int64]:
    """Return the nodes, sorted by a hash of (features, class) that is refined by the neighbours' ranks.

    Nodes that still tie are twins. One of the first tie is set before its twins and the refinement goes on, so that
    the twins' neighbours are numbered along with them; which of the twins it is makes no difference to the result.
    """
    neighbours = _neighbours(graph)
    ranks = _refine(_ranks([_key(graph, node) for node in range(graph.nodes)]), neighbours)
    while (tie := _first_tie(ranks)) is not None:
        # Doubling makes room for one rank just below the twins'.
        split = [2 * rank for rank in ranks]
        split[tie] -= 1
        ranks = _refine(_ranks(split), neighbours)
    return np.argsort(np.array(ranks, dtype=np.int64), kind="stable")


def _key(graph: Graph, node: int) -> bytes:
    start, end = graph.features.indptr[node : node + 2]
    digest = hashlib.sha256(int(graph.labels[node]).to_bytes(4, "little", signed=True))
    digest.update(graph.features.indices[start:end].astype("<i4").tobytes())
    digest.update(graph.features.data[start:end].astype("<f4").tobytes())
    return digest.digest()


def _neighbours(graph: Graph) -> list[list[int]]:
    adjacency = graph.adjacency()
    out = [part.tolist() for part in np.split(adjacency.indices, adjacency.indptr[1:-1])]
    for node in graph.self_loops.tolist():
        out[node].append(node)
    return out


def _ranks(keys: Sequence[Hashable]) -> list[int]:
    """Return for each key how many distinct keys are smaller."""
    place = {key: rank for rank, key in enumerate(sorted(set(keys)))}  # type: ignore[type-var]
    return [place[key] for key in keys]


def _refine(ranks: list[int], neighbours: list[list[int]]) -> list[int]:
    """Split equal ranks by their neighbours' ranks until nothing splits any more."""
    distinct = len(set(ranks))
    while distinct < len(ranks):
        ranks = _ranks([(ranks[n], tuple(sorted([ranks[m] for m in ends]))) for n, ends in enumerate(neighbours)])
        before, distinct = distinct, len(set(ranks))
        if distinct == before:
            break
    return ranks


def _first_tie(ranks: list[int]) -> int | None:
    """Return a node of the smallest rank that several nodes share."""
    counts = np.bincount(ranks)
    shared = np.flatnonzero(counts > 1)
    return None if shared.size == 0 else ranks.index(int(shared[0]))
