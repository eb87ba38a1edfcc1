"""The beta-model of a graph: the chance of each link from the degrees of its two ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphldp.errors import DataError, OptionError

__all__ = ["BetaModel", "fit_beta"]

Floats: TypeAlias = NDArray[np.float64]

ROUNDS, TOLERANCE = 200, 1e-6
_BLOCK = 2**22  # entries of a table of levels at a time
_FARTHEST = 40.0  # a node's beta: beyond, no chance changes that float64 tells from 0 or 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BetaModel:
    """Links are independent, with the log-odds beta_i + beta_j; nodes of one degree have one beta.

    Attributes:
        level: n, which of the distinct degrees a node has.
        degree: the distinct degrees, increasing.
        count: how many nodes have each of them.
        beta: one number for each of them.
        rounds: how many rounds the fit took.
        residual: the largest change of a beta in the last round.
    """

    level: NDArray[np.int64]
    degree: Floats
    count: NDArray[np.int64]
    beta: Floats
    rounds: int
    residual: float

    @property
    def nodes(self) -> int:
        """How many nodes."""
        return len(self.level)

    def chances(self) -> Floats:
        """Return the n x n chances, the diagonal 0. Only for small graphs."""
        own = self.beta[self.level]
        out = logistic(own[:, None] + own)
        np.fill_diagonal(out, 0.0)
        return out

    def expected_degrees(self) -> Floats:
        """Return the expected degree at each distinct degree."""
        out = np.empty(len(self.beta))
        for part, table in self._tables():
            chance = logistic(table)
            out[part] = chance @ self.count - np.take_along_axis(chance, np.arange(len(self.beta))[part, None], 1)[:, 0]
        return out

    def pairs(self, shift: float = 0.0) -> Iterator[tuple[slice, Floats, NDArray[np.int64]]]:
        """Yield blocks of (levels a, log-odds + shift of a with every level b, how many pairs of nodes with a <= b)."""
        levels = np.arange(len(self.beta))
        for part, table in self._tables():
            many = self.count[part, None] * self.count
            own = levels[part]
            many[np.arange(len(own)), own] = self.count[part] * (self.count[part] - 1) // 2
            yield part, table + shift, np.where(own[:, None] <= levels, many, 0)

    def _tables(self) -> Iterator[tuple[slice, Floats]]:
        for part in _parts(len(self.beta)):
            yield part, self.beta[part, None] + self.beta


def logistic(score: Floats) -> Floats:
    """Return 1/(1 + e^-score)."""
    return np.asarray(np.exp(-np.logaddexp(0.0, -score)))


def _parts(levels: int) -> Iterator[slice]:
    step = max(1, _BLOCK // max(1, levels))
    for start in range(0, levels, step):
        yield slice(start, min(levels, start + step))


def fit_beta(degrees: ArrayLike, *, rounds: int = ROUNDS, tolerance: float = TOLERANCE) -> BetaModel:
    """Return the beta-model whose expected degrees are these, by its fixed point.

    Degrees are clipped to [1, n-2] first, since the model has no finite fit for a node with none or all. Noisy degrees
    need not have an exact fit at all; `rounds` ends the search, and `residual` says how far it came.

    Args:
        degrees: one number for each node.
        rounds: how many rounds at most.
        tolerance: how little a beta has to move for the fit to end.
    """
    given = np.asarray(degrees, dtype=np.float64)
    nodes = len(given)
    if given.ndim != 1 or nodes < 2 or not np.isfinite(given).all():
        raise DataError(f"the beta-model needs a finite degree for each of at least 2 nodes, got shape {given.shape}")
    if rounds < 1 or not tolerance > 0:
        raise OptionError(f"the beta-model needs rounds >= 1 and tolerance > 0, got {rounds} and {tolerance}")
    degree, level, count = np.unique(np.clip(given, 1, max(1, nodes - 2)), return_inverse=True, return_counts=True)
    beta = np.log(degree) - 0.5 * np.log(max(1.0, float(degree @ count)))
    taken, residual = 0, np.inf
    while taken < rounds and residual > tolerance:
        taken += 1
        total = np.empty(len(beta))
        up, down = np.exp(beta), np.exp(-beta)
        for part in _parts(len(beta)):
            total[part] = (1 / (down + up[part, None])) @ count - 1 / (down[part] + up[part])
        fresh = np.clip(np.log(degree) - np.log(np.maximum(total, 1e-300)), -_FARTHEST, _FARTHEST)
        residual = float(np.abs(fresh - beta).max())
        beta = fresh
    return BetaModel(
        level=level.astype(np.int64),
        degree=degree,
        count=count.astype(np.int64),
        beta=beta,
        rounds=taken,
        residual=residual,
    )
