"""How good predictions are: the usual metrics, as scikit-learn defines them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "average_precision",
    "macro_f1",
    "mean_absolute_error",
    "number_scores",
    "r_squared",
    "roc_auc",
    "root_mean_squared_error",
    "set_macro_f1",
    "set_micro_f1",
]


def macro_f1(truth: NDArray[np.integer[Any]], guess: NDArray[np.integer[Any]]) -> float:
    """Return the mean F1 over the classes that occur in the truth or in the guess."""
    classes = int(max(truth.max(), guess.max())) + 1
    right = np.bincount(truth[truth == guess], minlength=classes)
    taken = np.bincount(truth, minlength=classes) + np.bincount(guess, minlength=classes)
    there = taken > 0
    return float((2.0 * right[there] / taken[there]).mean())


def set_micro_f1(truth: NDArray[np.bool_], guess: NDArray[np.bool_]) -> float:
    """Return the F1 of all yes/no labels together, [nodes, labels]; 0 where there is none to find and none was said."""
    taken = int(truth.sum()) + int(guess.sum())
    return 2.0 * int((truth & guess).sum()) / taken if taken else 0.0


def set_macro_f1(truth: NDArray[np.bool_], guess: NDArray[np.bool_]) -> float:
    """Return the mean F1 over the yes/no labels that occur in the truth or in the guess; 0 where none does."""
    taken = truth.sum(axis=0) + guess.sum(axis=0)
    there = taken > 0
    return float((2.0 * (truth & guess).sum(axis=0)[there] / taken[there]).mean()) if there.any() else 0.0


def roc_auc(positive: ArrayLike, negative: ArrayLike) -> float:
    """Return the probability that a positive's score is above a negative's; a tie counts half."""
    above, below = np.asarray(positive, dtype=np.float64), np.asarray(negative, dtype=np.float64)
    ordered = np.sort(below)
    lower = np.searchsorted(ordered, above, side="left") + np.searchsorted(ordered, above, side="right")
    return float(lower.sum() / 2 / (len(above) * len(below)))


def average_precision(positive: ArrayLike, negative: ArrayLike) -> float:
    """Return the precision at each threshold, weighted by the recall that is gained there; ties share a threshold."""
    above, below = np.asarray(positive, dtype=np.float64), np.asarray(negative, dtype=np.float64)
    scores = np.concatenate([above, below])
    truth = np.concatenate([np.ones(len(above)), np.zeros(len(below))])
    order = np.argsort(-scores, kind="stable")
    # A threshold stands behind the last of equal scores.
    last = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)
    hits = np.cumsum(truth[order])[last]
    return float((np.diff(hits, prepend=0.0) * hits / (last + 1)).sum() / len(above))


def mean_absolute_error(truth: NDArray[np.floating[Any]], guess: NDArray[np.floating[Any]]) -> float:
    """Return the mean distance."""
    return float(np.abs(truth - guess).mean())


def root_mean_squared_error(truth: NDArray[np.floating[Any]], guess: NDArray[np.floating[Any]]) -> float:
    """Return the root of the mean squared distance."""
    return float(np.sqrt(np.square(truth - guess).mean()))


def r_squared(truth: NDArray[np.floating[Any]], guess: NDArray[np.floating[Any]]) -> float:
    """Return the share of variance that is explained; of equal truths 1 if all are met, else 0; NaN for one node."""
    if len(truth) < 2:
        return float("nan")
    missed = float(((truth - guess) ** 2).sum())
    total = float(((truth - truth.mean()) ** 2).sum())
    if total == 0:
        return 1.0 if missed == 0 else 0.0
    return 1.0 - missed / total


def number_scores(truth: NDArray[np.floating[Any]], guess: NDArray[np.floating[Any]]) -> dict[str, float]:
    """Return MAE, RMSE and R2."""
    return {
        "mae": mean_absolute_error(truth, guess),
        "rmse": root_mean_squared_error(truth, guess),
        "r2": r_squared(truth, guess),
    }
