"""PM-SUB: the piecewise law with the window that minimises the worst variance among simple closed forms."""

from __future__ import annotations

import math
from dataclasses import dataclass

from graphldp.client.laws.density import Window
from graphldp.client.registry import register

__all__ = ["PiecewiseSub"]


@register("pm-sub")
@dataclass(frozen=True, slots=True, kw_only=True)
class PiecewiseSub(Window):
    r"""A number in [-h(s+1), h(s+1)]: dense on a window around hsz, thin elsewhere.

    Formula: with e = e^epsilon, s = e^(epsilon/3), h = (e+s)/(s(e-1)): window [h(zs-1), h(zs+1)], low density
        s(e-1)/(2(e+s)^2), high density e times that. With s = e^(epsilon/2) it is `pm`.
    Claim: epsilon-LDP for one value; the two densities' ratio is e^epsilon.
    Estimator: the report itself is unbiased; variance z^2 (s+1)/(e-1) + (s+e)((s+1)^3+e-1)/(3 s^2 (e-1)^2).
    Reference: Zhao et al., Local Differential Privacy based Federated Learning for Internet of Things, IEEE IoT-J
        2020 (PM-SUB); compared with in HeteroRR, Figure 10.
    Deviations: written in a = e^(-epsilon/3), so that no budget overflows; mapped from [-1, 1] to the declared range;
        the right tail is drawn (published code returns it as a function of the value); rounded to a public grid.
    """

    @property
    def _a(self) -> float:
        return math.exp(-self.epsilon / 3)

    @property
    def _left_over(self) -> float:
        return -math.expm1(-self.epsilon)

    @property
    def _half_width(self) -> float:
        return self._a * (1 + self._a**2) / self._left_over

    @property
    def _reach(self) -> float:
        return (1 + self._a) * (1 + self._a**2) / self._left_over

    @property
    def _slope(self) -> float:
        return (1 + self._a**2) / self._left_over

    @property
    def _rest(self) -> float:
        return self._a**2 * (1 + self._a) / (1 + self._a**2)

    @property
    def _contrast(self) -> float:
        return self._left_over / (1 + self._a**2)

    @property
    def _log_rest(self) -> float:
        return -2 * float(self.epsilon) / 3 + math.log((1 + self._a) / (1 + self._a**2))
