"""Piecewise: a value near the true one with high density, anywhere else with low density."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from graphldp.client.randomiser import Floats, Randomiser, register

__all__ = ["Piecewise"]


@register("pm")
@dataclass(frozen=True, slots=True, kw_only=True)
class Piecewise(Randomiser):
    r"""A number in [-C, C]: dense on a window around the value, thin elsewhere.

    Formula: with q = e^(-epsilon/2): C = (1+q)/(1-q), window [(z-q)/(1-q), (z+q)/(1-q)], density
        (1-q)/(2q(1+q)) inside and q(1-q)/(2(1+q)) elsewhere in [-C, C].
    Claim: epsilon-LDP for one value; the two densities' ratio is e^epsilon.
    Estimator: the report itself is unbiased; variance z^2 q/(1-q) + q(1+3q)/(3(1-q)^2).
    Reference: Wang et al., Collecting and Analyzing Multidimensional Data with Local Differential Privacy, ICDE 2019,
        Algorithm 2; PPGNN, TOGL (Eq. 2) and UPGNet use it.
    Deviations: written in q, so that no budget overflows; mapped from [-1, 1] to the declared range.
    """

    finite: ClassVar[bool] = False

    @property
    def _q(self) -> float:
        return float(np.exp(-self.epsilon / 2))

    @property
    def _one_minus_q(self) -> float:
        return float(-np.expm1(-self.epsilon / 2))

    @property
    def _reach(self) -> float:
        return (1 + self._q) / self._one_minus_q

    def _log_law(self, y: Floats, z: Floats) -> Floats:
        left, right = np.moveaxis(self._breaks(z), -1, 0)
        log_low = -self.epsilon / 2 + np.log(self._one_minus_q) - np.log(2.0) - np.log1p(self._q)
        inside = np.where((y >= left) & (y <= right), log_low + self.epsilon, log_low)
        return np.where(np.abs(y) <= self._reach * (1 + 1e-15), inside, -np.inf)

    def _support(self, z: Floats) -> Floats:
        return np.broadcast_to(np.array([-self._reach, self._reach]), (*z.shape, 2))

    def _breaks(self, z: Floats) -> Floats:
        return np.stack([(z - self._q) / self._one_minus_q, (z + self._q) / self._one_minus_q], axis=-1)

    def _mean(self, z: Floats) -> Floats:
        return z + 0.0

    def _variance(self, z: Floats) -> Floats:
        q, rest = self._q, self._one_minus_q
        return z**2 * q / rest + q * (1 + 3 * q) / (3 * rest**2)

    def _invert(self, z: Floats, u: Floats) -> Floats:
        q, rest = self._q, self._one_minus_q
        outside = q / (1 + q)
        # Outside the window: u/outside is uniform; (1+z)/2 of that mass lies left of the window.
        v = np.minimum(u / max(outside, np.finfo(np.float64).tiny), 1.0)
        step = 2 * v / rest
        thin = np.where(v < (1 + z) / 2, step - self._reach, step + self._reach - 2 / rest)
        thin = np.clip(thin, -self._reach, self._reach)
        w = (u - outside) * (1 + q)
        dense = (z - q + 2 * q * w) / rest
        return np.where(u < outside, thin, dense)
