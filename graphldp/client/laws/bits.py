"""Encodings that randomise the bits of a fixed-point number, with the budget accounted over all bits."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphldp.client.laws.coded import check_count
from graphldp.client.randomiser import Floats, Randomiser, check_number
from graphldp.errors import OptionError

__all__ = ["Bits"]


def log_logistic(x: Floats) -> Floats:
    """Return log(1/(1 + e^-x))."""
    return np.asarray(-np.logaddexp(0.0, -np.asarray(x, dtype=np.float64)))


@lru_cache(maxsize=1024)
def solve(mechanism: Bits) -> float:
    """Return the largest budget a of the formulas at which the bits together cost at most the mechanism's epsilon.

    The worst pair of values differs in every bit, so the largest losses of all bits add up. Bisection, rounded down
    by more than the error of the sum.
    """

    def loss(a: float) -> float:
        one, zero = mechanism._odds(a)
        sent_one = log_logistic(one) - log_logistic(-zero)
        sent_zero = log_logistic(zero) - log_logistic(-one)
        return float(np.sum(np.maximum(sent_one, sent_zero)))

    target = mechanism.epsilon * (1 - 1e-12) - 4e-15
    low, high = 0.0, 1.0
    while loss(high) <= target:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if loss(middle) <= target else (low, middle)
    return low


@dataclass(frozen=True, slots=True, kw_only=True)
class Bits(Randomiser):
    """The value as a whole number of `bits` bits, each sent as it is or flipped, independently.

    Attributes:
        bits: length of the encoding; the range has 2^bits evenly spaced values, both ends among them.
        tilt: how much likelier a 0 is kept than a 1, in [0, 1/2).
    """

    bits: int = 8
    tilt: float = 0.25

    finite: ClassVar[bool] = True
    scaled: ClassVar[bool] = False
    every_dimension: ClassVar[bool] = True
    unbiased: ClassVar[bool] = False
    dtype: ClassVar[Any] = np.int16

    def __post_init__(self) -> None:
        Randomiser.__post_init__(self)
        check_count(self.name, "bits", self.bits, 1, 14)
        object.__setattr__(self, "tilt", check_number(self.name, "tilt", self.tilt))
        if not 0 <= self.tilt < 0.5:
            raise OptionError(f"{self.name}: tilt must be at least 0 and below 1/2, got {self.tilt}")

    @abstractmethod
    def _odds(self, a: float) -> tuple[Floats, Floats]:
        """Return, per bit from the highest, the log-odds of a 1 sent as 1 and of a 0 sent as 0, at the budget a."""

    def _lean(self, a: float) -> float:
        """Return the log of the published free parameter: it follows a small budget, and stops where it has cost."""
        return self.tilt * min(a, 1.0)

    def _exponents(self) -> tuple[Floats, Floats]:
        return self._odds(solve(self))

    @property
    def draws(self) -> int:
        """How many uniform numbers one report takes: one a bit."""
        return self.bits

    @property
    def _weights(self) -> NDArray[np.int64]:
        return np.array([1 << place for place in range(self.bits - 1, -1, -1)], dtype=np.int64)

    def _code(self, z: Floats) -> NDArray[np.int64]:
        return np.rint((z + 1) / 2 * ((1 << self.bits) - 1)).astype(np.int64)

    def _spell(self, code: Any) -> NDArray[np.bool_]:
        return np.asarray((np.asarray(code, dtype=np.int64)[..., None] & self._weights) > 0)

    def _log_law(self, y: Floats, z: Floats) -> Floats:
        one, zero = self._exponents()
        known = (np.rint(y) == y) & (y >= 0) & (y < (1 << self.bits))
        sent, true = self._spell(np.where(known, y, 0)), self._spell(self._code(z))
        as_one = np.where(true, log_logistic(one), log_logistic(-zero))
        as_zero = np.where(true, log_logistic(-one), log_logistic(zero))
        return np.where(known, np.where(sent, as_one, as_zero).sum(axis=-1), -np.inf)

    def _support(self, z: Floats) -> Floats:
        return np.broadcast_to(np.arange(float(1 << self.bits)), (*z.shape, (1 << self.bits)))

    def _loss_inputs(self) -> Floats:
        # A bit's loss may be larger one way than the other, so the worst pair is some value and its complement.
        return np.linspace(-1.0, 1.0, (1 << self.bits))

    def _of_one(self, z: Floats) -> Floats:
        one, zero = self._exponents()
        return np.exp(np.where(self._spell(self._code(z)), log_logistic(one), log_logistic(-zero)))

    def _mean(self, z: Floats) -> Floats:
        return np.asarray(self._of_one(z) @ self._weights.astype(np.float64))

    def _variance(self, z: Floats) -> Floats:
        p = self._of_one(z)
        return np.asarray((p * (1 - p)) @ self._weights.astype(np.float64) ** 2)

    def _invert(self, z: Floats, u: Floats) -> Floats:
        one, zero = self._exponents()
        true = self._spell(self._code(z))
        as_one = np.exp(np.where(true, log_logistic(one), log_logistic(-zero)))
        as_zero = np.exp(np.where(true, log_logistic(-one), log_logistic(zero)))
        # The rarer outcome takes the small u, which are uniform however small they are.
        sent = np.where(as_one <= as_zero, u < as_one, u >= as_zero)
        return np.asarray(sent @ self._weights, dtype=np.float64)

    # The server undoes each bit by itself: the value is linear in its bits.

    def _gains(self) -> tuple[Floats, Floats]:
        one, zero = self._exponents()
        floor = np.exp(log_logistic(-zero))
        # logistic(one) - logistic(-zero), without the cancellation at small budgets.
        return floor, -np.expm1(-(one + zero)) * np.exp(log_logistic(one) + log_logistic(zero))

    def estimate(self, report: ArrayLike) -> Floats:
        """Return the estimate of the value: every bit rectified by its own probabilities."""
        floor, gain = self._gains()
        code = ((self._spell(report) - floor) / gain) @ self._weights.astype(np.float64)
        return np.asarray(self.low + (self.high - self.low) * (code / ((1 << self.bits) - 1)))

    def estimate_mean(self, x: ArrayLike) -> Floats:
        """Return the mean of `estimate`: the encoded value, at most half a step from x."""
        return np.asarray(self.low + (self.high - self.low) * (self._code(self._unit(x)) / ((1 << self.bits) - 1)))

    def estimate_variance(self, x: ArrayLike) -> Floats:
        """Return the variance of `estimate` of the report given the value x."""
        p = self._of_one(self._unit(x))
        size = (self.high - self.low) / ((1 << self.bits) - 1)
        return np.asarray((p * (1 - p) / self._gains()[1] ** 2) @ self._weights.astype(np.float64) ** 2 * size**2)
