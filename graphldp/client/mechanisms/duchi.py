"""Duchi: one of two opposite values, unbiased by itself."""

from __future__ import annotations

import math
from dataclasses import dataclass

from graphldp.client.laws.finite import Signs
from graphldp.client.registry import register

__all__ = ["Duchi"]


@register("duchi")
@dataclass(frozen=True, slots=True, kw_only=True)
class Duchi(Signs):
    r"""The value -c or c with c = 1/tanh(epsilon/2): PPGNN's local randomizer.

    Formula: P[c] = 1/2 + z/2 tanh(epsilon/2), P[-c] = 1/2 - z/2 tanh(epsilon/2).
    Claim: epsilon-LDP for one value; both outputs are possible for every value, and their odds are within e^epsilon.
    Estimator: the report itself is unbiased; variance c^2 - z^2. It is `mb` with the rectification done by the device.
    Reference: Duchi, Jordan & Wainwright, Minimax Optimal Procedures for Locally Private Estimation, JASA 2018,
        Section 3.2 for one dimension; PPGNN, Algorithm 1.
    Deviations: mapped from [-1, 1] to the declared range.
    """

    @property
    def _size(self) -> float:
        return 1 / math.tanh(self.epsilon / 2)
