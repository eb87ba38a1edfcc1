"""Which edges are trained on, selected by, and tested on; what may be seen of them; and leaks of the others."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from graphldp.errors import DataError, OptionError
from graphldp.graph import Graph
from graphldp.learn.tasks.base import Targets

__all__ = ["EdgeSplit", "Links", "edge_split", "leaks"]

PARTS = ("train", "validation", "test")
LEAST_EDGES = 3


def _canonical(name: str, nodes: int, pairs: ArrayLike) -> NDArray[np.int64]:
    """Return pairs as int64 2 x K, the smaller node first, sorted."""
    found = np.asarray(pairs, dtype=np.int64)
    if found.ndim != 2 or found.shape[0] != 2:
        raise DataError(f"{name} edges need the shape 2 x K, got {found.shape}")
    if found.size and not (found.min() >= 0 and found.max() < nodes):
        raise DataError(f"{name} edges name a node outside 0..{nodes - 1}")
    if (found[0] == found[1]).any():
        raise DataError(f"{name} edges hold a self-loop: a link is between two nodes")
    return pairs_of(np.sort(codes(found, nodes)), nodes)


def codes(pairs: NDArray[np.int64], nodes: int) -> NDArray[np.int64]:
    """Return one number per undirected pair."""
    return np.asarray(pairs.min(axis=0) * nodes + pairs.max(axis=0), dtype=np.int64)


def pairs_of(numbers: NDArray[np.int64], nodes: int) -> NDArray[np.int64]:
    """Return the pairs, 2 x K."""
    return np.stack([numbers // nodes, numbers % nodes]) if len(numbers) else np.empty((2, 0), np.int64)


def _paired(part: str, linked: NDArray[np.int64], others: NDArray[np.int64]) -> None:
    if not linked.shape[1] or linked.shape != others.shape:
        raise DataError(
            f"an edge split needs {part} edges and as many non-edges, got {linked.shape[1]} and {others.shape[1]}"
        )


def _distinct(nodes: int, parts: list[NDArray[np.int64]]) -> None:
    everything = codes(np.concatenate(parts, axis=1), nodes)
    if len(np.unique(everything)) != len(everything):
        raise DataError("an edge split's edges and non-edges must be distinct: some pair is in it twice")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Links(Targets):
    """What a run may see of an edge split: everything but its test part.

    Attributes:
        nodes: how many nodes the graph has.
        train, validation: edges, 2 x K int64, each once with the smaller node first, sorted.
        train_negative, validation_negative: as many pairs that are no edges, in random order.
    """

    nodes: int
    train: NDArray[np.int64]
    train_negative: NDArray[np.int64]
    validation: NDArray[np.int64]
    validation_negative: NDArray[np.int64]
    _digest: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        parts = []
        for part in PARTS[:2]:
            linked, others = getattr(self, part), getattr(self, f"{part}_negative")
            _paired(part, linked, others)
            parts += [linked, others]
        _distinct(self.nodes, parts)
        digest = hashlib.sha256(f"links {self.nodes}".encode())
        for part in parts:
            digest.update(repr(part.shape).encode() + np.ascontiguousarray(part, dtype=np.int64).tobytes())
        object.__setattr__(self, "_digest", digest.digest())

    def check(self, hidden: NDArray[np.bool_]) -> None:
        """Refuse a split of another graph."""
        if len(hidden) != self.nodes:
            raise DataError(f"the edge split is of {self.nodes} nodes, the problem has {len(hidden)}")

    def digest(self) -> bytes:
        """Return a hash of all pairs."""
        return self._digest


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EdgeSplit:
    """Disjoint sets of edges, and as many pairs that are no edges for each; `edge_split` makes one.

    Attributes:
        nodes: how many nodes the graph has.
        train, validation, test: edges, 2 x K int64.
        train_negative, validation_negative, test_negative: pairs that are no edges of the graph, 2 x K int64.
    """

    nodes: int
    train: NDArray[np.int64]
    train_negative: NDArray[np.int64]
    validation: NDArray[np.int64]
    validation_negative: NDArray[np.int64]
    test: NDArray[np.int64]
    test_negative: NDArray[np.int64]

    def __post_init__(self) -> None:
        every = []
        for part in PARTS:
            sets = []
            for name in (part, f"{part}_negative"):
                given = np.asarray(getattr(self, name), dtype=np.int64)
                pairs = _canonical(name, self.nodes, given)
                # Negatives keep their order: the pairwise objective sets one against each edge.
                kept = pairs if name == part else np.stack([given.min(axis=0), given.max(axis=0)])
                object.__setattr__(self, name, kept)
                sets.append(pairs)
            _paired(part, *sets)
            every += sets
        _distinct(self.nodes, every)

    def visible(self) -> Links:
        """Return what a run may see: nothing of the test part."""
        return Links(
            nodes=self.nodes,
            train=self.train,
            train_negative=self.train_negative,
            validation=self.validation,
            validation_negative=self.validation_negative,
        )

    def graph(self, graph: Graph) -> Graph:
        """Return the graph with the training edges alone: everything that looks at edges is computed from this."""
        if graph.nodes != self.nodes:
            raise DataError(f"the split is of {self.nodes} nodes, the graph {graph.name} has {graph.nodes}")
        return dataclasses.replace(graph, edges=self.train.astype(np.int32))


def edge_split(
    edges: NDArray[np.integer[Any]],
    nodes: int,
    rng: np.random.Generator,
    *,
    validation: float = 0.05,
    test: float = 0.10,
) -> EdgeSplit:
    """Split undirected edges at random and draw as many non-edges for each part, all of them distinct.

    Args:
        edges: 2 x E, each edge once (`Graph.edges`).
        nodes: how many nodes the graph has.
        rng: the source of randomness; the same state gives the same split.
        validation: share of the edges, rounded down but at least one edge.
        test: likewise; the other edges are trained on.

    Raises:
        DataError: with fewer than 3 edges, or fewer non-edges than edges.
    """
    if not (validation > 0 and test > 0 and validation + test < 1):
        raise OptionError(
            f"an edge split needs validation > 0, test > 0 and validation + test < 1, got {validation} and {test}"
        )
    every = codes(_canonical("the graph's", nodes, edges), nodes)
    count = len(every)
    if count < LEAST_EDGES:
        raise DataError(f"link prediction needs at least {LEAST_EDGES} edges, one for each part; the graph has {count}")
    if len(np.unique(every)) != count:
        raise DataError("the graph's edges must stand once each: some edge is there twice")
    free = nodes * (nodes - 1) // 2 - count
    if free < count:
        raise DataError(
            f"link prediction needs as many non-edges as edges; the graph has {count} edges and {free} non-edges"
        )
    held, hidden = max(1, int(count * validation)), max(1, int(count * test))
    order = rng.permutation(every)
    negative = _non_edges(every, nodes, count, free, rng)
    cuts = {"validation": slice(0, held), "test": slice(held, held + hidden), "train": slice(held + hidden, None)}
    parts = {name: pairs_of(order[cut], nodes) for name, cut in cuts.items()}
    others = {f"{name}_negative": pairs_of(negative[cut], nodes) for name, cut in cuts.items()}
    return EdgeSplit(nodes=nodes, **parts, **others)


def _non_edges(
    edges: NDArray[np.int64], nodes: int, count: int, free: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return distinct pairs that are no edges, uniformly drawn and in random order; edges are sorted numbers."""
    if free <= 4 * count:
        # A dense graph: list them. There are few, as many as a few times the edges.
        first, second = np.triu_indices(nodes, 1)
        every = first.astype(np.int64) * nodes + second
        return rng.permutation(every[~np.isin(every, edges)])[:count]
    found = np.empty(0, np.int64)
    while len(found) < count:
        pairs = rng.integers(0, nodes, (2, 2 * count + 16))
        drawn = codes(pairs[:, pairs[0] != pairs[1]], nodes)
        drawn = np.concatenate([found, drawn[~np.isin(drawn, edges)]])
        # The first of equal ones stays where it is.
        found = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
    return found[:count]


def leaks(split: EdgeSplit | Links, adjacency: sp.csr_array) -> NDArray[np.int64]:
    """Return the pairs, 2 x K, over which the matrix passes messages though they are no training edges.

    Entries that are stored count even if they are 0, as attention looks at the structure alone. The diagonal is not
    an edge. Without a leak, K is 0.
    """
    if adjacency.shape != (split.nodes, split.nodes):
        raise DataError(f"the split is of {split.nodes} nodes, the matrix has the shape {adjacency.shape}")
    entries = sp.coo_array(adjacency)
    pairs = np.stack([entries.row, entries.col]).astype(np.int64)
    stored = np.unique(codes(pairs[:, pairs[0] != pairs[1]], split.nodes))
    return pairs_of(stored[~np.isin(stored, codes(split.train, split.nodes))], split.nodes)
