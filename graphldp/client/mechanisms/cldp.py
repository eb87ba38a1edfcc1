"""Condensed local differential privacy: close values are harder to tell apart than distant ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphldp.client.laws.coded import Geometric
from graphldp.client.randomiser import Floats
from graphldp.client.registry import register

__all__ = ["Condensed"]


@register("cldp")
@dataclass(frozen=True, slots=True, kw_only=True)
class Condensed(Geometric):
    r"""One of n points of the range, likelier the closer it is to the value.

    Formula: the value goes to the nearest of n = bins evenly spaced points v; P[y | v] proportional to
        exp(-alpha |v - y|/2) over the points 1..n, with alpha = 2 epsilon/(n-1) per point.
    Claim: epsilon-LDP for one value, and alpha-CLDP for the public metric |v - v'| on the n points:
        P[y|v] <= e^(alpha |v - v'|) P[y|v']. alpha without the number of points says nothing.
    Estimator: the line through the means at both ends of the range; exact there and in the middle, biased by the
        curve of the mean and by half a point's distance elsewhere.
    Reference: Gursoy et al., Secure and Utility-Aware Data Collection with Condensed Local Differential Privacy, IEEE
        TDSC 2019, Section III; TOGL, Table 12.
    Deviations: TOGL prints no metric, points or alpha; here the points are a public option and alpha follows from
        epsilon, so that its row compares with the others at equal LDP.
    """

    @property
    def alpha(self) -> float:
        """The parameter of condensed LDP, per distance of one point."""
        return 2 * self.epsilon / (self.bins - 1)

    def _bin(self, z: Floats) -> NDArray[np.int64]:
        return np.rint((z + 1) / 2 * (self.bins - 1)).astype(np.int64)

    def _loss_inputs(self) -> Floats:
        return np.linspace(-1.0, 1.0, self.bins)
