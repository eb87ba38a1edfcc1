"""Which nodes are trained on, selected by, and tested on; and what may be seen of their labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphldp.errors import DataError, OptionError
from graphldp.graph import Graph

__all__ = ["Apart", "Split", "among", "majority", "random_split", "score", "set_apart"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Split:
    """Disjoint sets of nodes, as sorted int64 indices."""

    train: NDArray[np.int64]
    validation: NDArray[np.int64]
    test: NDArray[np.int64]

    def __post_init__(self) -> None:
        for name in ("train", "validation", "test"):
            object.__setattr__(self, name, np.sort(np.asarray(getattr(self, name), dtype=np.int64)))
        everything = np.concatenate([self.train, self.validation, self.test])
        if len(np.unique(everything)) != len(everything):
            raise DataError("a split's train, validation and test nodes must be distinct: some node is in it twice")

    def visible(self, labels: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Return what a run may see: the labels of train and validation, -1 for everybody else."""
        out = np.full(len(labels), -1, dtype=np.int64)
        for nodes in (self.train, self.validation):
            out[nodes] = labels[nodes]
        return out


def random_split(
    nodes: NDArray[np.integer[Any]] | Sequence[int],
    rng: np.random.Generator,
    *,
    train: float = 0.5,
    validation: float = 0.25,
) -> Split:
    """Split labelled nodes at random; at least one node goes to train and to validation each, the rest to test."""
    if not (train > 0 and validation > 0 and train + validation <= 1):
        raise OptionError(
            f"a split needs train > 0, validation > 0 and train + validation <= 1, got {train} and {validation}"
        )
    pool = np.unique(np.asarray(nodes, dtype=np.int64))
    if len(pool) < 2:
        raise DataError(f"a split needs at least 2 labelled nodes, got {len(pool)}")
    first = min(max(1, int(len(pool) * train)), len(pool) - 1)
    second = min(max(1, int(len(pool) * validation)), len(pool) - first)
    order = rng.permutation(pool)
    return Split(train=order[:first], validation=order[first : first + second], test=order[first + second :])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Apart:
    """Everybody in three groups, each a graph of its own: for learning about people who were not seen in training.

    Attributes:
        train, validation, test: sorted int64 indices; together everybody, also those without a label.
    """

    train: NDArray[np.int64]
    validation: NDArray[np.int64]
    test: NDArray[np.int64]

    def __post_init__(self) -> None:
        everybody = np.sort(np.concatenate(self.groups))
        if not np.array_equal(everybody, np.arange(len(everybody))):
            raise DataError("groups apart must be everybody, each in one group")

    @property
    def groups(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The three groups."""
        return self.train, self.validation, self.test

    def numbers(self) -> NDArray[np.int8]:
        """Return the number of each node's group."""
        out = np.empty(sum(map(len, self.groups)), dtype=np.int8)
        for number, nodes in enumerate(self.groups):
            out[nodes] = number
        return out

    def sever(self, graph: Graph) -> Graph:
        """Return the graph without edges between the groups: a graph for each, on the nodes of the whole."""
        u, v = self.numbers()[graph.edges]
        weights = None if graph.weights is None else graph.weights[u == v]
        return replace(graph, edges=np.ascontiguousarray(graph.edges[:, u == v]), weights=weights)

    def check(self, rows: NDArray[np.integer[Any]], columns: NDArray[np.integer[Any]], what: str) -> None:
        """Refuse pairs of nodes that join two groups."""
        number = self.numbers()
        across = int((number[rows] != number[columns]).sum())
        if across:
            raise DataError(
                f"{what} joins {across} pairs of nodes of different parts, and nothing may pass between people that "
                "are trained on, selected by and tested on; take it from the part's own graph"
            )


def set_apart(split: Split, nodes: int, rng: np.random.Generator) -> Apart:
    """Return a split's three parts with everybody else dealt out among them, in proportion to their sizes."""
    parts = (split.train, split.validation, split.test)
    known = np.concatenate(parts)
    others = np.setdiff1d(np.arange(nodes, dtype=np.int64), known)
    place = np.repeat(np.arange(3), [len(part) for part in parts])[rng.integers(0, len(known), len(others))]
    train, validation, test = (np.sort(np.concatenate([part, others[place == k]])) for k, part in enumerate(parts))
    return Apart(train=train, validation=validation, test=test)


def among(graph: Graph, nodes: NDArray[np.integer[Any]]) -> Graph:
    """Return the graph of these nodes alone, in their order, which must be increasing."""
    chosen = np.asarray(nodes, dtype=np.int64)
    place = np.full(graph.nodes, -1, dtype=np.int32)
    place[chosen] = np.arange(len(chosen), dtype=np.int32)
    edges = place[graph.edges]
    loops = place[graph.self_loops]
    inside = (edges >= 0).all(axis=0)
    return replace(
        graph,
        features=graph.features[chosen],
        edges=np.ascontiguousarray(edges[:, inside]),
        weights=None if graph.weights is None else graph.weights[inside],
        self_loops=loops[loops >= 0],
        labels=graph.labels[chosen],
        label_sets=None if graph.label_sets is None else graph.label_sets[chosen],
        parts=None if graph.parts is None else graph.parts[chosen],
        node_ids=None if graph.node_ids is None else tuple(graph.node_ids[node] for node in chosen),
    )


def score(
    predictions: NDArray[np.integer[Any]], labels: NDArray[np.integer[Any]], nodes: NDArray[np.integer[Any]]
) -> NDArray[np.float64]:
    """Return the accuracy on `nodes`, one number per row of `predictions` ([runs, n], or [n] for one run).

    It is given test labels, as only `graphldp.learn.scores` is beside it; it is called for final runs, when nothing is
    chosen any more.
    """
    if not len(nodes):
        raise DataError("there are no nodes to score: the split has no test nodes")
    truth = np.asarray(labels)[nodes]
    if (truth < 0).any():
        raise DataError("a node without a label cannot be scored")
    return np.asarray((np.asarray(predictions)[..., nodes] == truth).mean(axis=-1), dtype=np.float64)


def majority(labels: NDArray[np.integer[Any]], split: Split) -> NDArray[np.int32]:
    """Predict for every node the most frequent class of the training nodes (of equal ones the first)."""
    seen = np.asarray(labels)[split.train]
    if not len(seen) or (seen < 0).any():
        raise DataError("the majority class needs training nodes that all have labels")
    return np.full(len(labels), int(np.bincount(seen).argmax()), dtype=np.int32)
