"""Three outputs: two opposite values, or 0."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from graphldp.client.laws.finite import Finite
from graphldp.client.randomiser import Floats
from graphldp.client.registry import register

__all__ = ["ThreeOutputs", "best_zero"]


def _size(a: float, epsilon: float) -> float:
    r = math.exp(-epsilon)
    return (1 + r) / (-math.expm1(-epsilon) * (1 - a * r))


@lru_cache(maxsize=1024)
def best_zero(epsilon: float) -> float:
    """Return the P[0] at the middle of the range that minimises the worst variance, by golden-section search."""

    def worst(a: float) -> float:
        # Var = C^2(1 - a + b t) - t^2 is largest at t = b C^2/2 where that is below 1, else at t = 1.
        square, b = _size(a, epsilon) ** 2, a * -math.expm1(-epsilon)
        t = min(1.0, b * square / 2)
        return square * (1 - a + b * t) - t**2

    left, right = 0.0, 1 / (1 + 2 * math.exp(-epsilon))
    ends = (left, right)
    ratio = (math.sqrt(5) - 1) / 2
    for _ in range(80):
        one, two = right - ratio * (right - left), left + ratio * (right - left)
        if worst(one) <= worst(two):
            right = two
        else:
            left = one
    best = min((*ends, (left + right) / 2), key=worst)
    return best if best > 1e-9 else 0.0  # what the search leaves of 0


@register("to")
@dataclass(frozen=True, slots=True, kw_only=True)
class ThreeOutputs(Finite):
    r"""One of -C, 0 and C.

    Formula: with e = e^epsilon and a = P[0] at z = 0: C = e(e+1)/((e-1)(e-a)); P[0] = a - a(1-1/e)|z|;
        P[C] = (1-a)/2 + (a+1)(e-1)/(2(e+1)) z for z >= 0, and P[C] of z is P[-C] of -z. a is 0 up to e = 2,
        e/(e+2) from e = 5.53 on, and in between the variance-optimal value.
    Claim: epsilon-LDP for one value, for every a in [0, e/(e+2)].
    Estimator: the report itself is unbiased; variance C^2 (1 - a + a(1-1/e)|z|) - z^2.
    Reference: Zhao et al., Local Differential Privacy based Federated Learning for Internet of Things, IEEE IoT-J
        2020 (Three-Outputs); compared with in HeteroRR, Figure 10.
    Deviations: a is found by minimising the worst variance itself instead of the printed root of a cubic (they agree
        to 2e-8); written in 1/e, so that no budget overflows; mapped from [-1, 1] to the declared range.
    """

    @property
    def _decay(self) -> float:
        return math.exp(-self.epsilon)

    @property
    def _a(self) -> float:
        return best_zero(self.epsilon)

    @property
    def _size(self) -> float:
        return _size(self._a, self.epsilon)

    @property
    def _log_half(self) -> float:
        """Log of (1-a)/2, the probability of either end at the middle of the range; e^-epsilon where a is largest."""
        r = self._decay
        if self._a >= 1 / (1 + 2 * r):
            return -float(self.epsilon) - math.log1p(2 * r)
        return math.log((1 - self._a) / 2)

    def _log_law(self, y: Floats, z: Floats) -> Floats:
        # All three probabilities are linear in |z|; each is given by its values at the middle and at the end.
        a, r = self._a, self._decay
        common = math.log1p(-a * r) - math.log1p(r)
        with np.errstate(divide="ignore"):
            at_end = np.log(np.abs(z))
            at_middle = np.log1p(-np.abs(z))
            zero = np.log(a) + np.logaddexp(at_middle, at_end - self.epsilon)
        against = np.logaddexp(self._log_half + at_middle, common - self.epsilon + at_end)
        towards = np.logaddexp(self._log_half + at_middle, common + at_end)
        sign = np.sign(y)
        log = np.where(sign == 0, zero, np.where(sign == np.where(z < 0, -1.0, 1.0), towards, against))
        known = (sign == 0) | np.isclose(np.abs(y), self._size, rtol=1e-6, atol=0.0)
        return np.where(known, log, -np.inf)

    def _support(self, z: Floats) -> Floats:
        return np.broadcast_to(np.array([-self._size, 0.0, self._size]), (*z.shape, 3))

    def _mean(self, z: Floats) -> Floats:
        return z + 0.0

    def _variance(self, z: Floats) -> Floats:
        # C^2 (1 - a) + |z| ((C^2 a (1 - 1/e) - 1) + (1 - |z|)): no part of it is a difference of two numbers near 1.
        a, r, t = self._a, self._decay, np.abs(z)
        rest = 2 * math.exp(self._log_half)
        fall = -math.expm1(-self.epsilon)
        over = 3 * r + r**2 + 2 * a * r - (a * r) ** 2 - 2 * a * r**2 + a**2 * r**3 - rest * (1 + r) ** 2
        return np.asarray(self._size**2 * rest + t * (over / (fall * (1 - a * r) ** 2) + (1 - t)))
