"""Multi-bit: one random sign for each sampled dimension."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from graphldp.client.randomiser import Floats, Randomiser, register

__all__ = ["MultiBit"]


@register("mb")
@dataclass(frozen=True, slots=True, kw_only=True)
class MultiBit(Randomiser):
    r"""One sign whose probability leans with the value; with the m-of-d protocol, LPGNN's multi-bit mechanism.

    Formula: P[+1] = (1+z)/2 e^epsilon/(e^epsilon+1) + (1-z)/2 1/(e^epsilon+1) = 1/2 + z/2 tanh(epsilon/2).
    Claim: epsilon-LDP for one value; both signs are possible for every value, and their odds are within e^epsilon.
    Estimator: report / tanh(epsilon/2) on the unit scale, unbiased, variance 1/tanh(epsilon/2)^2 - z^2.
    Reference: Sajadmanesh & Gatica-Perez, Locally Private Graph Neural Networks, CCS 2021, Algorithm 1.
    Deviations: the sign itself is sent; rectifying is the server's work. The probability is a convex mix of two
        logistic values and the draw decides the rarer sign, so nothing cancels at large epsilon.
    """

    finite: ClassVar[bool] = True
    scaled: ClassVar[bool] = False
    dtype: ClassVar[Any] = np.int8

    def _log_law(self, y: Floats, z: Floats) -> Floats:
        agrees = np.log1p(y * z) - np.log(2.0) - np.log1p(np.exp(-self.epsilon))
        opposes = np.log1p(-y * z) - np.log(2.0) - self.epsilon - np.log1p(np.exp(-self.epsilon))
        return np.where(np.abs(y) == 1.0, np.logaddexp(agrees, opposes), -np.inf)

    def _support(self, z: Floats) -> Floats:
        return np.broadcast_to(np.array([-1.0, 1.0]), (*z.shape, 2))

    def _breaks(self, z: Floats) -> Floats:
        return self._support(z)

    def _mean(self, z: Floats) -> Floats:
        return z * np.tanh(self.epsilon / 2)

    def _variance(self, z: Floats) -> Floats:
        # 1 - (zT)^2 with 1 - T^2 = 1/cosh^2: exact where T is close to 1.
        t = np.tanh(self.epsilon / 2)
        decay = np.exp(-self.epsilon)
        return t**2 * (1 - z**2) + 4 * decay / (1 + decay) ** 2

    def _invert(self, z: Floats, u: Floats) -> Floats:
        side = np.where(z < 0, -1.0, 1.0)
        with np.errstate(divide="ignore"):
            flip = np.exp(self._log_law(-side, z))  # at most 1/2
        return np.where(u < flip, -side, side)
