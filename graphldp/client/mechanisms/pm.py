"""Piecewise: a value near the true one with high density, anywhere else with low density."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphldp.client.laws.density import Window
from graphldp.client.registry import register

__all__ = ["Piecewise"]


@register("pm")
@dataclass(frozen=True, slots=True, kw_only=True)
class Piecewise(Window):
    r"""A number in [-C, C]: dense on a window around the value, thin elsewhere.

    Formula: with q = e^(-epsilon/2): C = (1+q)/(1-q), window [(z-q)/(1-q), (z+q)/(1-q)], density
        (1-q)/(2q(1+q)) inside and q(1-q)/(2(1+q)) elsewhere in [-C, C].
    Claim: epsilon-LDP for one value; the two densities' ratio is e^epsilon.
    Estimator: the report itself is unbiased; variance z^2 q/(1-q) + q(1+3q)/(3(1-q)^2).
    Reference: Wang et al., Collecting and Analyzing Multidimensional Data with Local Differential Privacy, ICDE 2019,
        Algorithm 2; PPGNN, TOGL (Eq. 2) and UPGNet use it.
    Deviations: written in q, so that no budget overflows; mapped from [-1, 1] to the declared range; rounded to a
        public grid.
    """

    @property
    def _q(self) -> float:
        return float(np.exp(-self.epsilon / 2))

    @property
    def _contrast(self) -> float:
        return float(-np.expm1(-self.epsilon / 2))

    @property
    def _rest(self) -> float:
        return self._q

    @property
    def _log_rest(self) -> float:
        return -float(self.epsilon) / 2

    @property
    def _reach(self) -> float:
        return (1 + self._q) / self._contrast

    @property
    def _half_width(self) -> float:
        return self._q / self._contrast

    @property
    def _slope(self) -> float:
        return 1 / self._contrast
