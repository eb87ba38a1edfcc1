"""Multi-bit: one random sign for each sampled dimension."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from graphldp.client.laws.finite import Signs
from graphldp.client.registry import register

__all__ = ["MultiBit"]


@register("mb")
@dataclass(frozen=True, slots=True, kw_only=True)
class MultiBit(Signs):
    r"""One sign whose probability leans with the value; with the m-of-d protocol, LPGNN's multi-bit mechanism.

    Formula: P[+1] = (1+z)/2 e^epsilon/(e^epsilon+1) + (1-z)/2 1/(e^epsilon+1) = 1/2 + z/2 tanh(epsilon/2).
    Claim: epsilon-LDP for one value; both signs are possible for every value, and their odds are within e^epsilon.
    Estimator: report / tanh(epsilon/2) on the unit scale, unbiased, variance 1/tanh(epsilon/2)^2 - z^2.
    Reference: Sajadmanesh & Gatica-Perez, Locally Private Graph Neural Networks, CCS 2021, Algorithm 1.
    Deviations: the sign itself is sent; rectifying is the server's work. The probability is a convex mix of two
        logistic values and the draw decides the rarer sign, so nothing cancels at large epsilon.
    """

    scaled: ClassVar[bool] = False
    dtype: ClassVar[Any] = np.int8
