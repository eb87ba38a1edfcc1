"""Gaussian, analytic: the value plus the least normal noise that the claim allows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from graphldp.client.laws.gaussian import Gaussian, most_log_delta
from graphldp.client.registry import register

__all__ = ["AnalyticGaussian", "calibrate"]


@lru_cache(maxsize=1024)
def calibrate(epsilon: float, delta: float) -> float:
    """Return the smallest deviation, per unit of sensitivity, that has at most delta at epsilon, rounded up.

    Bisection on the log of delta as a function of the log of the deviation.
    """
    target = math.log(delta)
    errors = 2.0  # one more than the loss of this noise is stated with, which then stays within the claim
    low = high = 0.0
    while most_log_delta(epsilon, math.exp(-low), errors) <= target:
        low -= 1.0
    while most_log_delta(epsilon, math.exp(-high), errors) > target:
        high += 1.0
    while high - low > 1e-14 * max(1.0, abs(high)):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if most_log_delta(epsilon, math.exp(-middle), errors) > target else (low, middle)
    # A last step up, larger than the error of the logarithms, so that noise is never rounded down.
    return math.exp(high) * (1 + 1e-10)


@register("ag")
@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyticGaussian(Gaussian):
    r"""The value plus normal noise whose deviation solves the exact condition for (epsilon, delta).

    Formula: y = z + N(0, s^2) with Phi(D/(2s) - epsilon s/D) - e^epsilon Phi(-D/(2s) - epsilon s/D) = delta and
        D = 2 sqrt(k) on the unit scale, for k coordinates.
    Claim: (epsilon, delta)-LDP, for every epsilon, with the smallest s.
    Estimator: the report itself is unbiased; variance s^2.
    Reference: Balle & Wang, Improving the Gaussian Mechanism for Differential Privacy, ICML 2018, Theorem 8 and
        Algorithm 1; TOGL Eq. 36 names it and prints the classical formula.
    Deviations: bisected on log delta with accurate logarithms of normal tails, not on delta to an absolute tolerance.
        A vector's d coordinates get the budget jointly, with sensitivity D sqrt(d) (`composition`). Rounded to a
        public grid and bounded 9 deviations beyond the range.
    """

    @property
    def _spread(self) -> float:
        return 2 * math.sqrt(self.coordinates) * calibrate(float(self.epsilon), float(self.delta))
