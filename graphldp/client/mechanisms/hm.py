"""Hybrid: piecewise or two-valued, by a coin that does not look at the value."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from graphldp.client.laws.density import Density
from graphldp.client.laws.finite import two_signs
from graphldp.client.mechanisms.duchi import Duchi
from graphldp.client.mechanisms.pm import Piecewise
from graphldp.client.randomiser import Floats
from graphldp.client.registry import register

__all__ = ["Hybrid"]

SWITCH = 0.609353  # below this budget the two-valued law alone has the smaller worst variance


@register("hm")
@dataclass(frozen=True, slots=True, kw_only=True)
class Hybrid(Density):
    r"""The report of `pm` with probability 1 - e^(-epsilon/2), else that of `duchi`, each with the full budget.

    Formula: the mix of both laws; `duchi` alone up to epsilon = 0.609353.
    Claim: epsilon-LDP for one value: the coin is independent of it and either report is epsilon-LDP.
    Estimator: the report itself is unbiased; variance (s+3)/(3s(s-1)) + (e+1)^2/(s(e-1)^2) with s = e^(epsilon/2),
        the same for every value, above the switch; that of `duchi` below it.
    Reference: Wang et al., Collecting and Analyzing Multidimensional Data with Local Differential Privacy, ICDE 2019,
        Section III-C; compared with in HeteroRR, Figure 10.
    Deviations: mapped from [-1, 1] to the declared range; rounded to a public grid on which the two values of `duchi`
        lie, so that the rounding does not move them.
    """

    @property
    def _pm(self) -> Piecewise:
        return Piecewise(epsilon=self.epsilon)

    @property
    def _duchi(self) -> Duchi:
        return Duchi(epsilon=self.epsilon)

    @property
    def _share(self) -> float:
        return -math.expm1(-self.epsilon / 2) if self.epsilon > SWITCH else 0.0

    @property
    def _log_two(self) -> float:
        """The log of the probability of the two-valued report."""
        return -float(self.epsilon) / 2 if self.epsilon > SWITCH else 0.0

    @property
    def _reach(self) -> float:
        return self._pm._reach if self._share else self._duchi._size

    @property
    def step(self) -> float:
        """The spacing of the unit reports: a fraction 2^-j of the two-valued report's size."""
        size = self._duchi._size
        return float(size * 2.0 ** -max(0, math.ceil(math.log2(size / self._wanted_step()))))

    def _atom(self, y: Floats, z: Floats) -> Floats:
        """Return the log of the probability of the two-valued report at y, -inf elsewhere."""
        hit = np.isclose(np.abs(y), self._duchi._size, rtol=1e-9, atol=0.0)
        with np.errstate(divide="ignore"):
            return np.where(hit, self._log_two + two_signs(np.sign(y), z, self.epsilon), -np.inf)

    def atoms(self, x: ArrayLike) -> tuple[Floats, Floats]:
        """Return the ideal report's two isolated values and their probabilities, along a new last axis."""
        size = self._duchi._size
        places = np.array([-size, size])
        z = self._unit(x)[..., None]
        return self._shift + self._scale * places, np.exp(self._atom(*np.broadcast_arrays(places, z)))

    def _log_law(self, y: Floats, z: Floats) -> Floats:
        # The density, without the two isolated values, which have none.
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self._share) + self._pm._log_law(y, z))

    def _support(self, z: Floats) -> Floats:
        return np.broadcast_to(np.array([-self._reach, self._reach]), (*z.shape, 2))

    def _breaks(self, z: Floats) -> Floats:
        size = np.full_like(z, self._duchi._size)
        return np.concatenate([self._pm._breaks(z), np.stack([-size, size], axis=-1)], axis=-1)

    def _cdf(self, y: Floats, z: Floats) -> Floats:
        size = self._duchi._size * (1 - 1e-9)
        low, high = (np.exp(two_signs(np.full_like(z, s), z, self.epsilon)) for s in (-1.0, 1.0))
        steps = np.where(y >= -size, low, 0.0) + np.where(y >= size, high, 0.0)
        return self._share * self._pm._cdf(y, z) + math.exp(self._log_two) * steps

    def _log_cell(self, left: Floats, right: Floats, z: Floats) -> Floats:
        left, right, z = np.broadcast_arrays(left, right, z)
        size = self._duchi._size
        side = np.where((left < size) & (size <= right), size, np.where((left < -size) & (-size <= right), -size, 0.0))
        atom = np.where(side != 0, self._atom(np.where(side == 0, size, side), z), -np.inf)
        if not self._share:
            return atom
        pm = self._pm
        low = pm._log_rest - np.log(2 * pm._reach)
        length = np.minimum(right, pm._reach) - np.maximum(left, -pm._reach)
        with np.errstate(divide="ignore"):
            thin = low + np.log(np.maximum(length, 0.0))
            return np.asarray(np.logaddexp(np.log(self._share) + thin + pm._log_cell(left, right, z), atom))

    def _mean(self, z: Floats) -> Floats:
        return z + 0.0

    def _variance(self, z: Floats) -> Floats:
        return self._share * self._pm._variance(z) + math.exp(self._log_two) * self._duchi._variance(z)

    def _invert(self, z: Floats, u: Floats) -> Floats:
        rest = max(math.exp(self._log_two), np.finfo(np.float64).tiny)
        # A large budget hardly ever takes the two-valued branch; its share is exact in the small u.
        two = self._duchi._invert(z, np.minimum(u / rest, 1.0))
        if not self._share:
            return two
        return np.where(u < rest, two, self._pm._invert(z, np.clip((u - rest) / self._share, 0.0, 1.0)))
