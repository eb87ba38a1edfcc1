"""What both Gaussian mechanisms share: the law, and its exact epsilon and delta."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from graphldp.client.laws import normal
from graphldp.client.laws.additive import Additive
from graphldp.client.randomiser import Floats, check_number
from graphldp.errors import OptionError

__all__ = ["Gaussian", "delta_of", "epsilon_of"]

_ROUNDING = 4e-15  # the error of the logarithm of a normal tail, relative to 1 plus its size


def log_delta_of(epsilon: float, ratio: float) -> float:
    """Return the log of the exact delta at epsilon; ratio is the sensitivity over the standard deviation.

    delta = Phi(r/2 - epsilon/r) - e^epsilon Phi(-r/2 - epsilon/r): Balle & Wang, ICML 2018, Theorem 8.
    """
    first, gap = _parts(epsilon, ratio)
    return first + math.log(-math.expm1(gap)) if gap < 0 else -math.inf


def _parts(epsilon: float, ratio: float) -> tuple[float, float]:
    """Return the log of the first term, and that of the second minus it."""
    first = normal.log_cdf(ratio / 2 - epsilon / ratio)
    return first, epsilon + normal.log_cdf(-ratio / 2 - epsilon / ratio) - first


def most_log_delta(epsilon: float, ratio: float, errors: float = 1.0) -> float:
    """Return the log of delta at its largest within so many times the arithmetic's error: what a promise is made from.

    The two terms are nearly alike at a small budget, and what is left of their difference has lost digits.
    """
    first, gap = _parts(epsilon, ratio)
    error = errors * _ROUNDING * (1 + abs(first) + epsilon)
    return first + error + math.log(-math.expm1(min(gap, 0.0) - error))


def delta_of(epsilon: float, ratio: float) -> float:
    """Return the exact delta of Gaussian noise at epsilon; ratio is the sensitivity over the standard deviation."""
    return math.exp(log_delta_of(epsilon, ratio))


def epsilon_of(delta: float, ratio: float) -> float:
    """Return the smallest epsilon at which Gaussian noise has at most this delta, rounded up."""
    target = math.log(delta)
    if most_log_delta(0.0, ratio) <= target:
        return 0.0
    low, high = 0.0, 1.0
    while most_log_delta(high, ratio) > target:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if most_log_delta(middle, ratio) > target else (low, middle)
    return high


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian(Additive):
    """The value plus normal noise.

    Attributes:
        delta: the delta of the claim, in (0, 1).
        coordinates: how many coordinates the budget covers together: their joint sensitivity is (high - low) times
            the square root of it.
    """

    delta: float = 1e-5
    coordinates: int = 1

    every_dimension: ClassVar[bool] = True

    def __post_init__(self) -> None:
        Additive.__post_init__(self)
        object.__setattr__(self, "delta", check_number(self.name, "delta", self.delta))
        if not 0 < self.delta < 1:
            raise OptionError(f"{self.name}: delta must be > 0 and < 1, got {self.delta}; without a delta use 'lp'")
        if isinstance(self.coordinates, bool) or not isinstance(self.coordinates, int) or self.coordinates < 1:
            raise OptionError(f"{self.name}: coordinates must be a whole number of at least 1, got {self.coordinates}")
        self._check_formula()

    def _check_formula(self) -> None:
        """Refuse a budget for which the formula of the standard deviation does not keep the claim."""

    @property
    @abstractmethod
    def _spread(self) -> float: ...

    @property
    def _reach(self) -> float:
        return 1 + 9 * self._spread

    def _size(self, larger: Floats) -> Floats:
        larger /= 2
        return normal.upper_quantile(larger)

    def _log_law(self, y: Floats, z: Floats) -> Floats:
        t = (y - z) / self._spread
        return np.asarray(-(t**2) / 2 - np.log(self._spread) - np.log(2 * np.pi) / 2)

    def _breaks(self, z: Floats) -> Floats:
        return z[..., None] + self._spread * np.array([-3.0, 0.0, 3.0])

    def _cdf(self, y: Floats, z: Floats) -> Floats:
        return normal.cdf((y - z) / self._spread)

    def _log_cell(self, left: Floats, right: Floats, z: Floats) -> Floats:
        left, right, z = np.broadcast_arrays(left, right, z)
        below = self._cdf(right, z) - self._cdf(left, z)
        above = self._cdf(-left, -z) - self._cdf(-right, -z)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.where(left + right < 2 * z, below, above)))

    def _variance(self, z: Floats) -> Floats:
        return np.full_like(z, self._spread**2)

    def privacy_loss(self) -> float:
        """Return the smallest epsilon that the ideal law of one report has at `delta`; rounding cannot raise it.

        For a single coordinate: with `coordinates` above 1 the budget is theirs together, see `vector_loss`.
        """
        return epsilon_of(self.delta, 2 / self._spread)

    def vector_loss(self, count: int, delta: float | None = None) -> float:
        """Return the exact epsilon, at `delta`, of independent reports about `count` values of one record."""
        return epsilon_of(self.delta if delta is None else delta, 2 * math.sqrt(count) / self._spread)

    def exact_delta(self, epsilon: float, count: int = 1) -> float:
        """Return the exact delta at epsilon of independent reports about `count` values of one record."""
        return delta_of(epsilon, 2 * math.sqrt(count) / self._spread)

    def rounded_delta(self, epsilon: float) -> float:
        """Return the delta at epsilon of one rounded and bounded report, summed over all of the grid's cells."""
        y = self.cells()
        at_low, at_high = self.pmf(y, self.low), self.pmf(y, self.high)
        return float(np.sum(np.maximum(at_high - math.exp(epsilon) * at_low, 0.0)))
