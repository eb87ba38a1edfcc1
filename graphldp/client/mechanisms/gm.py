"""Gaussian, classical: the value plus normal noise, with the textbook's standard deviation."""

from __future__ import annotations

import math
from dataclasses import dataclass

from graphldp.client.laws.gaussian import Gaussian, epsilon_of
from graphldp.client.registry import register
from graphldp.errors import OptionError

__all__ = ["ClassicalGaussian"]


@register("gm")
@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicalGaussian(Gaussian):
    r"""The value plus normal noise of deviation D sqrt(2 ln(1.25/delta))/epsilon, D the sensitivity.

    Formula: y = z + N(0, s^2), s = 2 sqrt(k) sqrt(2 ln(1.25/delta))/epsilon on the unit scale, for k coordinates.
    Claim: (epsilon, delta)-LDP. The formula's proof needs epsilon < 1; here the exact delta of the very noise is
        computed, and a budget at which it exceeds the claim (above about 8.4 for delta 1e-5) is refused.
    Estimator: the report itself is unbiased; variance s^2.
    Reference: Dwork & Roth, The Algorithmic Foundations of Differential Privacy, 2014, Theorem A.1; PPGNN II-D2,
        TOGL Eq. 36.
    Deviations: the papers print s without the sensitivity D = high - low; without it epsilon = 1 at delta = 1e-5 is
        truly 1.61. A vector's d coordinates get the budget jointly, with sensitivity D sqrt(d) (`composition`).
        Rounded to a public grid and bounded 9 deviations beyond the range.
    """

    @property
    def _spread(self) -> float:
        return 2 * math.sqrt(self.coordinates) * math.sqrt(2 * math.log(1.25 / self.delta)) / self.epsilon

    def _check_formula(self) -> None:
        exact = epsilon_of(self.delta, 2 * math.sqrt(self.coordinates) / self._spread)
        if exact > self.epsilon:
            raise OptionError(
                f"gm: its formula is not valid at epsilon {self.epsilon} and delta {self.delta}, where the noise truly "
                f"has epsilon {exact:.4g}; use 'ag', whose noise is exact for every budget"
            )
