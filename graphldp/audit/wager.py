"""A bet against a claim of epsilon-LDP, from paired reports of two inputs: who wins it has shown that the claim fails.

Of one report each of x and x', a is whether the first is in an event A, b whether the second is. If the claim holds,
P[A | x] <= e^epsilon P[A | x'], so a stake that is multiplied by 1 + f (a e^-epsilon - b) grows by no more than a fair
game's does, for every f from 0 to 1 and however rare A is. A stake that has grown to 1/alpha is therefore seen with a
probability of at most alpha (Markov's inequality). Several f share the stake, since the best is not known beforehand.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["log_stake", "loss_shown", "pair_counts"]

Counts: TypeAlias = NDArray[np.int64]

_SHARES = 0.95 * 0.5 ** np.arange(9)
_MOST = 60.0  # no number of reports shows a larger loss


def pair_counts(one: NDArray[np.bool_], two: NDArray[np.bool_]) -> Counts:
    """Return how many pairs of reports there are of each kind: row a, column b."""
    return np.asarray(np.bincount(2 * one.astype(int) + two.astype(int), minlength=4).reshape(2, 2), dtype=np.int64)


def log_stake(pairs: Counts, epsilon: float) -> float:
    """Return the logarithm of what a stake of 1 has become, against the claim of epsilon.

    `pairs` counts units of k pairs of reports, of which a happened in `row` pairs and b in `column` pairs: k is 1 for
    a table of 2 x 2.
    """
    k = len(pairs) - 1
    won = (np.arange(k + 1)[:, None] * math.exp(-epsilon) - np.arange(k + 1)) / k
    logs = np.log1p(_SHARES[:, None, None] * won)
    return float(np.logaddexp.reduce((logs * pairs).sum(axis=(1, 2)))) - math.log(len(_SHARES))


def loss_shown(pairs: Counts, alpha: float) -> float:
    """Return the largest epsilon against which the bet is won: a lower bound, wrong with a chance of at most alpha."""
    if log_stake(pairs, 0.0) < -math.log(alpha):
        return 0.0
    low, high = 0.0, _MOST
    for _ in range(60):  # the stake falls with epsilon
        middle = (low + high) / 2
        low, high = (middle, high) if log_stake(pairs, middle) >= -math.log(alpha) else (low, middle)
    return low
