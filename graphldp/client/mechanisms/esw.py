"""Extended square wave: randomise a privacy level."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphldp.client.laws.coded import WholeNumber
from graphldp.client.mechanisms.sw import SquareWave
from graphldp.client.randomiser import Floats
from graphldp.client.registry import register

__all__ = ["ExtendedSquareWave"]


@register("esw")
@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendedSquareWave(WholeNumber):
    r"""A level g in low..high becomes one of f + 2b numbers, f = high - low + 1, likelier within a window around it.

    Formula: with e = e^epsilon, b = floor(f b_sw(epsilon)/2), b_sw that of `sw`: outputs 1..f+2b;
        P[g'] = e/((2b+1)e + f - 1) for g' in {g, ..., g+2b} (levels counted from 1), else 1/((2b+1)e + f - 1).
    Claim: epsilon-LDP for the level, among the levels low..high.
    Estimator: `decode`, clip(g' - b, 1, f), is biased towards the middle level; `estimate` inverts the line of the
        mean through both end levels.
    Reference: PPGNN, Section III-B2, Eq. 6.
    Deviations: the window is g..g+2b; printed as |g - g'| <= b the probabilities sum to less than 1 for g <= b and the
        top b outputs are never likely.
    """

    kind: ClassVar[str] = "level"
    word: ClassVar[str] = "privacy level"

    @property
    def levels(self) -> int:
        """How many levels there are."""
        return self.values

    @property
    def radius(self) -> int:
        """The b of the formula: how far the likely window reaches either way."""
        return math.floor(self.levels * SquareWave(epsilon=self.epsilon)._half_width / 2)

    def _table(self) -> Floats:
        f, b = self.levels, self.radius
        g, out = np.arange(f)[:, None], np.arange(f + 2 * b)[None, :]
        # Relative to the likely outputs' e^epsilon, so that no budget overflows.
        total = math.log(2 * b + 1 + (f - 1) * math.exp(-self.epsilon))
        return np.where((out >= g) & (out <= g + 2 * b), 0.0, -self.epsilon) - total

    def decode(self, report: ArrayLike) -> NDArray[np.int64]:
        """Return the level low..high that a report stands for."""
        shifted = np.asarray(report, dtype=np.int64) - self.radius
        return np.clip(shifted, 1, self.levels) + int(self.low) - 1
