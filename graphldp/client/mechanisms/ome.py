"""OME: the bits of a value, ones kept often at even places and seldom at odd ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphldp.client.laws.bits import Bits
from graphldp.client.randomiser import Floats
from graphldp.client.registry import register

__all__ = ["OptimizedMultipleEncoding"]


@register("ome")
@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizedMultipleEncoding(Bits):
    r"""The value's bits, each sent through a randomised response that favours zeros, in two alternating kinds.

    Formula: a 1 is sent as 1 with probability L/(1+L) at even places (the highest is even) and 1/(1+L^3) at odd ones;
        a 0 is sent as 1 with probability 1/(1 + L e^a). L = e^(tilt min(a, 1)); a solves: the bits' losses sum to
        epsilon.
    Claim: epsilon-LDP for one value: two values may differ in every bit, so the losses of all bits are added.
    Estimator: every bit rectified by its own probabilities, unbiased for the encoded value, which is at most half a
        step of (high-low)/(2^bits - 1) from the true one.
    Reference: Lyu et al., Differentially Private Representation for NLP, Findings of EMNLP 2020, and Towards
        Differentially Private Text Representations, SIGIR 2020 (OME); compared with, corrected, in HeteroRR App. C.
    Deviations: the corrected form. As published a stands for epsilon/(number of bits) although a bit then costs more,
        and L is free: L = 100 costs 4.6 per even bit whatever the budget. The number is written without a sign bit,
        so that it is linear in its bits.
    """

    def _odds(self, a: float) -> tuple[Floats, Floats]:
        lean = self._lean(a)
        ones = np.where(np.arange(self.bits) % 2 == 0, lean, -3 * lean)
        return ones, np.full(self.bits, a + lean)
