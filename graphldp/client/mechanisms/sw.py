"""Square wave: the value plus noise that is dense on a window of fixed width around it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from graphldp.client.laws.density import Window
from graphldp.client.registry import register

__all__ = ["SquareWave"]


@register("sw")
@dataclass(frozen=True, slots=True, kw_only=True)
class SquareWave(Window):
    r"""A number in [-1-b, 1+b]: dense within b of the value, thin elsewhere.

    Formula: with e = e^epsilon: b = (epsilon e - e + 1)/(e(e - 1 - epsilon)), density e/(2(be+1)) on [z-b, z+b] and
        1/(2(be+1)) elsewhere in [-1-b, 1+b].
    Claim: epsilon-LDP for one value; the two densities' ratio is e^epsilon.
    Estimator: the report's mean is Cz, C = b(e-1)/(be+1); the server divides by C, which is unbiased with variance
        ((b^3 e + 3b^2 + 3b + 1)/(3(be+1)) + (C - C^2) z^2)/C^2, never below that of `pm`.
    Reference: Li et al., Estimating Numerical Distributions under Local Differential Privacy, SIGMOD 2020, Section 5;
        on [-1, 1]: LDP-GE, Algorithm 1 and Eq. 9.
    Deviations: rectified by the server (`hds` is not); b by its series below epsilon = 0.5, where the printed form is
        0/0; rounded to a public grid.
    """

    @property
    def _be(self) -> float:
        """B e^epsilon, finite for every budget; 1 at epsilon = 0 and about epsilon - 1 for a large one."""
        epsilon = float(self.epsilon)
        if epsilon >= 0.5:
            return (epsilon + math.expm1(-epsilon)) / (-math.expm1(-epsilon) - epsilon * math.exp(-epsilon))
        terms = [epsilon ** (k - 2) / math.factorial(k) for k in range(2, 20)]
        signed = math.fsum(term if k % 2 == 0 else -term for k, term in enumerate(terms))
        return signed / (math.exp(-epsilon) * math.fsum(terms))

    @property
    def _half_width(self) -> float:
        return self._be * math.exp(-self.epsilon)

    @property
    def _reach(self) -> float:
        return 1 + self._half_width

    @property
    def _slope(self) -> float:
        return 1.0

    @property
    def _rest(self) -> float:
        return float((1 + self._half_width) / (1 + self._be))

    @property
    def _contrast(self) -> float:
        return float(-self._be * np.expm1(-self.epsilon) / (1 + self._be))
