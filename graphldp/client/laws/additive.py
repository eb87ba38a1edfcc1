"""The value plus noise whose law does not depend on it."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphldp.client.laws.density import Density
from graphldp.client.randomiser import Floats, uniform
from graphldp.randomness import UniformSource

__all__ = ["Additive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Additive(Density):
    """The value plus symmetric noise of a fixed scale, in every dimension; reports end at a public bound.

    The bound leaves out less than e^-40 of the noise, which moves no estimate by a measurable amount. A subclass
    states the scale and the size of the noise as a function of the probability of a larger one.
    """

    @property
    @abstractmethod
    def _spread(self) -> float:
        """The scale of the noise on the unit scale."""

    @abstractmethod
    def _size(self, larger: Floats) -> Floats:
        """Return the size of standard noise that a larger one exceeds with the given probability; may reuse memory."""

    def _mean(self, z: Floats) -> Floats:
        return z + 0.0

    def _support(self, z: Floats) -> Floats:
        return np.broadcast_to(np.array([-np.inf, np.inf]), (*z.shape, 2))

    def _invert(self, z: Floats, u: Floats) -> Floats:
        tail = np.minimum(u, 1 - u)
        noise = self._spread * self._size(np.array(np.maximum(2 * tail, np.finfo(np.float64).tiny)))
        return np.where(u < 0.5, z - noise, z + noise)

    def sample(self, x: ArrayLike, rng: UniformSource) -> NDArray[Any]:
        """Return one report for each value: the size of the noise from a uniform number, its sign from one bit.

        With a bit for the sign, both tails are as fine as the lower tail of `uniform`.
        """
        z = self._unit(x)
        shape = z.shape
        count = z.size
        noise = self._size(uniform(rng, count))
        noise *= self._spread
        noise *= _signs(count, rng)
        noise += z.reshape(-1)
        y = self._round(noise)
        y *= self._scale
        y += self._shift
        return y.astype(self.dtype).reshape(shape)


def _signs(count: int, rng: UniformSource) -> NDArray[np.int8]:
    words = rng.integers(0, 2**32, (count + 31) // 32).astype(np.uint32)
    bits = np.unpackbits(words.view(np.uint8))[:count].view(np.int8)
    bits <<= 1
    bits -= 1
    return bits
