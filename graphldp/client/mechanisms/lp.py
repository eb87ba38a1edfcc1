"""Laplace: the value plus two-sided exponential noise, in every dimension."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from graphldp.client.laws.additive import Additive
from graphldp.client.randomiser import Floats
from graphldp.client.registry import register

__all__ = ["Laplace"]


@register("lp")
@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace(Additive):
    r"""The value plus Laplace noise of scale (high - low)/epsilon; a vector gets epsilon/d in each dimension.

    Formula: density epsilon/4 exp(-epsilon/2 |y - z|) on the unit scale.
    Claim: epsilon-LDP for one value: |y - z| changes by at most 2.
    Estimator: the report itself is unbiased; variance 8/epsilon^2 on the unit scale.
    Reference: Dwork et al., Calibrating Noise to Sensitivity in Private Data Analysis, TCC 2006; the papers' LP rows
        (TOGL Eq. 34).
    Deviations: the scale is (high - low)/epsilon on any range, not 2/epsilon; rounded to a public grid and bounded at
        40 scales beyond the range.
    """

    every_dimension: ClassVar[bool] = True

    @property
    def _spread(self) -> float:
        return float(2 / self.epsilon)

    @property
    def _reach(self) -> float:
        return 1 + 40 * self._spread

    def _size(self, larger: Floats) -> Floats:
        np.log(larger, out=larger)
        return np.negative(larger, out=larger)

    def _log_law(self, y: Floats, z: Floats) -> Floats:
        return np.asarray(np.log(self.epsilon / 4) - self.epsilon / 2 * np.abs(y - z))

    def _breaks(self, z: Floats) -> Floats:
        # The density has a corner at z; it is smooth, with a constant ratio for two values, beyond the range.
        return np.stack([np.full_like(z, -2.0), z, np.full_like(z, 2.0)], axis=-1)

    def _cdf(self, y: Floats, z: Floats) -> Floats:
        t = (y - z) / self._spread
        tail = np.exp(-np.abs(t)) / 2
        return np.where(t < 0, tail, 1 - tail)

    def _log_cell(self, left: Floats, right: Floats, z: Floats) -> Floats:
        rate = self.epsilon / 2
        left, right, z = np.broadcast_arrays(left, right, z)
        # Outermost cells hold the whole tail, whose logarithm is linear in z.
        first, last = np.isinf(left), np.isinf(right)
        left, right = np.where(first, right - self.step, left), np.where(last, left + self.step, right)
        outside = -rate * np.abs((left + right) / 2 - z)
        below, above = np.clip(z - left, 0.0, self.step), np.clip(right - z, 0.0, self.step)
        inside = -(np.expm1(-rate * below) + np.expm1(-rate * above)) / 2
        inside = np.log(np.maximum(inside / np.sinh(rate * self.step / 2), np.finfo(np.float64).tiny))
        log = np.where((left < z) & (z < right), inside, outside)
        return np.where(first, -rate * z, np.where(last, rate * z, log))

    def _variance(self, z: Floats) -> Floats:
        return np.full_like(z, 8 / self.epsilon**2)
