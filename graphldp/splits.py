"""Which nodes are trained on, selected by, and tested on; and what may be seen of their labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphldp.errors import DataError, OptionError

__all__ = ["Split", "majority", "random_split", "score"]


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
