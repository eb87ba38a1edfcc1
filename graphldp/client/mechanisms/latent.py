"""LATENT: the bits of a value, zeros kept likelier than ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphldp.client.laws.bits import Bits
from graphldp.client.randomiser import Floats
from graphldp.client.registry import register

__all__ = ["Latent"]


@register("latent")
@dataclass(frozen=True, slots=True, kw_only=True)
class Latent(Bits):
    r"""The value's bits, each sent through a randomised response that favours zeros.

    Formula: a 1 is sent as 1 with probability 1/(1+A), a 0 is sent as 0 with probability A e^a/(1 + A e^a).
        A = e^(tilt min(a, 1)); a solves sum over bits of loss(bit) = epsilon.
    Claim: epsilon-LDP for one value: two values may differ in every bit, so the losses of all bits are added.
    Estimator: every bit rectified by its own probabilities, unbiased for the encoded value, which is at most half a
        step of (high-low)/(2^bits - 1) from the true one.
    Reference: Arachchige et al., Local Differential Privacy for Deep Learning (LATENT), IEEE IoT-J 2019, its modified
        optimised unary encoding; compared with, corrected, in HeteroRR App. C.
    Deviations: the corrected form. As published a stands for epsilon/(number of bits), which counts two differing
        bits although all of them may differ. The number is written without a sign bit, so that it is linear in its
        bits; its alternating variant is `ome`.
    """

    def _odds(self, a: float) -> tuple[Floats, Floats]:
        lean = self._lean(a)
        return np.full(self.bits, -lean), np.full(self.bits, a + lean)
