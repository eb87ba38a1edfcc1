"""Laplace: the value plus two-sided exponential noise, in every dimension."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from graphldp.client.randomiser import Floats, Randomiser, register

__all__ = ["Laplace"]


@register("lp")
@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace(Randomiser):
    r"""The value plus Laplace noise of scale (high - low)/epsilon; a vector gets epsilon/d in each dimension.

    Formula: density epsilon/4 exp(-epsilon/2 |y - z|) on the unit scale.
    Claim: epsilon-LDP for one value: |y - z| changes by at most 2.
    Estimator: the report itself is unbiased; variance 8/epsilon^2 on the unit scale.
    Reference: Dwork et al., Calibrating Noise to Sensitivity in Private Data Analysis, TCC 2006; the papers' LP rows.
    Deviations: the scale is (high - low)/epsilon on any range, not 2/epsilon.
    """

    finite: ClassVar[bool] = False
    every_dimension: ClassVar[bool] = True

    def _log_law(self, y: Floats, z: Floats) -> Floats:
        return np.log(self.epsilon / 4) - self.epsilon / 2 * np.abs(y - z)

    def _support(self, z: Floats) -> Floats:
        return np.broadcast_to(np.array([-np.inf, np.inf]), (*z.shape, 2))

    def _breaks(self, z: Floats) -> Floats:
        # The density has a corner at z; three scales around it show both slopes.
        reach = 2 / self.epsilon
        return z[..., None] + reach * np.array([-3.0, 0.0, 3.0])

    def _mean(self, z: Floats) -> Floats:
        return z + 0.0

    def _variance(self, z: Floats) -> Floats:
        return np.full_like(z, 8 / self.epsilon**2)

    def _invert(self, z: Floats, u: Floats) -> Floats:
        tail = np.minimum(u, 1 - u)
        noise = np.log(np.maximum(2 * tail, np.finfo(np.float64).tiny)) * (2 / self.epsilon)
        return np.where(u < 0.5, z + noise, z - noise)
