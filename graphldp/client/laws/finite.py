"""Laws with a few outputs, the same for every value: how to draw from any of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from graphldp.client.randomiser import Floats, Randomiser

__all__ = ["Finite", "Signs", "two_signs"]


def two_signs(y: Floats, z: Floats, epsilon: float) -> Floats:
    """Return log P[sign y] = log(1/2 + y z tanh(epsilon/2)/2), for y = -1 or 1, accurate for every budget.

    The probability is a convex mix of two logistic values, so nothing cancels where it is small.
    """
    rare = np.exp(-epsilon)
    with np.errstate(divide="ignore"):
        agrees = np.log1p(y * z) - np.log(2.0) - np.log1p(rare)
        opposes = np.log1p(-y * z) - np.log(2.0) - epsilon - np.log1p(rare)
    return np.asarray(np.logaddexp(agrees, opposes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Finite(Randomiser):
    """A randomiser with finitely many outputs, drawn from its pmf, rarest output first.

    The rarest outputs take the smallest u, which are uniform however small they are.
    """

    finite: ClassVar[bool] = True

    def _invert(self, z: Floats, u: Floats) -> Floats:
        z, u = np.broadcast_arrays(z, u)
        places = self._support(z)
        with np.errstate(divide="ignore"):
            mass = np.exp(self._log_law(places, z[..., None]))
        order = np.argsort(mass, axis=-1, kind="stable")
        edges = np.cumsum(np.take_along_axis(mass, order, axis=-1), axis=-1)[..., :-1]
        # The last output takes what is left, so that rounding of the sum leaves no gap.
        pick = (u[..., None] >= edges).sum(axis=-1)[..., None]
        return np.take_along_axis(places, np.take_along_axis(order, pick, axis=-1), axis=-1)[..., 0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs(Finite):
    """One sign whose probability leans with the value: P[+] = 1/2 + z/2 tanh(epsilon/2)."""

    @property
    def _size(self) -> float:
        """What the unit report's absolute value is."""
        return 1.0

    def _log_law(self, y: Floats, z: Floats) -> Floats:
        sign = np.sign(y)
        hit = np.isclose(np.abs(y), self._size, rtol=1e-6, atol=0.0)
        return np.where(hit, two_signs(sign, z, self.epsilon), -np.inf)

    def _support(self, z: Floats) -> Floats:
        return np.broadcast_to(np.array([-self._size, self._size]), (*z.shape, 2))

    def _mean(self, z: Floats) -> Floats:
        return np.asarray(self._size * z * np.tanh(self.epsilon / 2))

    def _variance(self, z: Floats) -> Floats:
        # 1 - (zT)^2 with 1 - T^2 = 1/cosh^2: exact where T is close to 1.
        t = np.tanh(self.epsilon / 2)
        decay = np.exp(-self.epsilon)
        return np.asarray(self._size**2 * (t**2 * (1 - z**2) + 4 * decay / (1 + decay) ** 2))

    def _invert(self, z: Floats, u: Floats) -> Floats:
        # P[the sign against the value], at most 1/2, as a sum of two terms that are both positive.
        t = np.abs(z)
        rare = math.exp(-self.epsilon)
        flip = (1 - t + (1 + t) * rare) / (2 * (1 + rare))
        side = np.where(z < 0, -self._size, self._size)
        return np.where(u < flip, -side, side)
