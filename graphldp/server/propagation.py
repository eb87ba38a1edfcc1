r"""Labels of training nodes, spread over the public graph; no model, and nobody's features.

    F = sum_k alpha (1 - alpha)^k S^k Y,  k = 0..T      label propagation with decay alpha (Zhou et al. 2004)
    H_k = P^k Y                                         where a walk of k steps ends, by class; P = D^-1 A

Y has a row of one-hot labels for each training node and zeros elsewhere. Shares of classes become evidence about a
node's own class as logarithms, against what is known without the graph:

    log((F_ic + w p_c) / (sum_c F_ic + w)) - log p_c,   p_c the share of class c among the training labels.

A training node must not find its own label in its own row, or whoever learns from the rows takes them for the truth.
`cross_fitted` therefore deals the training nodes out to folds and spreads, for each fold, the labels of the others;
other nodes are given what all training labels say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphldp.errors import DataError, OptionError

__all__ = ["class_shares", "cross_fitted", "fitted_power", "fold_of", "log_evidence", "spread", "walks"]

Spread = Callable[[NDArray[np.float32]], list[NDArray[np.float32]]]


def spread(operator: sp.csr_array, start: NDArray[np.float32], *, decay: float, steps: int) -> NDArray[np.float32]:
    """Return sum_k decay (1 - decay)^k S^k Y up to k = steps; the last power has all that is left of the weight."""
    if not 0 < decay < 1:
        raise OptionError(f"decay (the weight of a node's own label) must be between 0 and 1, got {decay}")
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 1:
        raise OptionError(f"steps of label propagation must be a whole number of at least 1, got {steps!r}")
    base = np.asarray(start, dtype=np.float32)
    out = base
    for _ in range(steps):
        out = np.float32(1 - decay) * (operator @ out) + np.float32(decay) * base
    return np.asarray(out, dtype=np.float32)


def walks(operator: sp.csr_array, start: NDArray[np.float32], hops: int) -> list[NDArray[np.float32]]:
    """Return S Y, S^2 Y, ..., S^hops Y."""
    out = [np.asarray(start, dtype=np.float32)]
    for _ in range(hops):
        out.append(np.asarray(operator @ out[-1], dtype=np.float32))
    return out[1:]


def class_shares(
    labels: NDArray[np.integer[Any]], train: NDArray[np.integer[Any]], classes: int
) -> NDArray[np.float64]:
    """Return each class's share of the training labels, as if each class had been seen once more."""
    counts = np.bincount(_visible(labels, train), minlength=classes) + 1.0
    return np.asarray(counts / counts.sum(), dtype=np.float64)


def log_evidence(
    mass: NDArray[np.floating[Any]], prior: NDArray[np.float64], *, weight: float = 0.02
) -> NDArray[np.float32]:
    """Return the log of each class's share of a node's mass against its share without the graph, [n, classes].

    Args:
        mass: n x classes, >= 0.
        prior: share of each class.
        weight: how much of the average node's mass the prior counts for; a node that no label has reached gets zeros.
    """
    total = mass.sum(axis=1, keepdims=True, dtype=np.float64)
    own = weight * float(total.mean()) if len(total) else 0.0
    if own <= 0:
        return np.zeros(mass.shape, dtype=np.float32)
    return np.asarray(np.log((mass / prior + own) / (total + own)), dtype=np.float32)


def fold_of(train: NDArray[np.integer[Any]], nodes: int, folds: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the fold of each training node, and for everybody else a number beyond: how many folds there are.

    With fewer training nodes than folds each has one of its own.
    """
    if isinstance(folds, bool) or not isinstance(folds, int | np.integer) or folds < 2:
        raise OptionError(f"folds must be a whole number of at least 2, got {folds!r}")
    count = min(int(folds), len(train))
    out = np.full(nodes, count, dtype=np.int64)
    out[rng.permutation(np.asarray(train, dtype=np.int64))] = np.arange(len(train)) % max(1, count)
    return out


def cross_fitted(
    spreading: Spread,
    labels: NDArray[np.integer[Any]],
    train: NDArray[np.integer[Any]],
    classes: int,
    folds: NDArray[np.int64],
) -> list[NDArray[np.float32]]:
    """Return what `spreading` makes of the labels, for each training node without those of its own fold.

    Args:
        spreading: takes n x p starts, returns matrices of that shape; a column must depend on its own start alone.
        labels: classes of the training nodes; what stands elsewhere is not read.
        train: the training nodes.
        classes: how many classes.
        folds: as `fold_of` returns them.
    """
    nodes, seen = np.asarray(train, dtype=np.int64), _visible(labels, train)
    # The last block belongs to everybody who is not trained on: nothing is left out for them.
    last = int(folds.max(initial=0))
    start = np.zeros((len(folds), last + 1, classes), dtype=np.float32)
    start[nodes, :, seen] = 1.0
    start[nodes, folds[nodes], :] = 0.0
    rows = np.arange(len(folds))
    made = spreading(start.reshape(len(folds), -1))
    return [one.reshape(start.shape)[rows, folds] for one in made]


def fitted_power(
    evidence: NDArray[np.floating[Any]],
    prior: NDArray[np.float64],
    labels: NDArray[np.integer[Any]],
    train: NDArray[np.integer[Any]],
) -> float:
    """Return the power at which cross-fitted evidence, times the prior, says the most of the training labels.

    Neighbours that repeat each other make evidence too sure of itself; one number, fitted where the own label was left
    out, makes probabilities of it that can be compared with a model's.
    """
    nodes, seen = np.asarray(train, dtype=np.int64), _visible(labels, train)
    rows = np.asarray(evidence, dtype=np.float64)[nodes]
    powers = np.geomspace(0.05, 5.0, 41)
    losses = []
    for power in powers:
        logits = power * rows + np.log(prior)
        logits -= logits.max(axis=1, keepdims=True)
        chance = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(nodes)), seen]
        losses.append(chance.mean())
    return float(powers[int(np.argmin(losses))])


def _visible(labels: NDArray[np.integer[Any]], train: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    seen = np.asarray(labels, dtype=np.int64)[np.asarray(train, dtype=np.int64)]
    if not len(seen) or (seen < 0).any():
        raise DataError("label propagation needs training nodes that all have labels")
    return seen
