"""PPM as printed: personalised budgets, a perturbed level, and magnitudes that give the level away."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphldp.client.levels import Personalised, padded, probabilities, refuse_m
from graphldp.client.m_rules import best_m
from graphldp.client.mechanisms.duchi import Duchi
from graphldp.client.mechanisms.esw import ExtendedSquareWave
from graphldp.client.randomiser import Floats, check_number
from graphldp.client.registry import Claim, register
from graphldp.client.reports import Reports
from graphldp.client.sampling import choose, gather
from graphldp.client.vector import VectorMechanism
from graphldp.errors import OptionError
from graphldp.randomness import UniformSource
from graphldp.registry import check_options

__all__ = ["PersonalisedPerturbation", "check_gamma", "level_randomiser"]


def check_gamma(name: str, gamma: Any) -> float:
    """Refuse a share of the budget for the level that leaves the level or the features none."""
    check_number(name, "gamma", gamma)
    if not 0 < gamma < 1:
        raise OptionError(f"{name}: gamma must be > 0 and < 1, got {gamma}; to protect no level use 'ppm-public'")
    return float(gamma)


def level_randomiser(epsilon: float, levels: int) -> ExtendedSquareWave | None:
    """Return the randomiser of levels 1..levels; None where there is one level and nothing to hide."""
    return ExtendedSquareWave(epsilon=epsilon, low=1, high=levels) if levels > 1 else None


@register("ppm")
@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalisedPerturbation(Personalised):
    r"""A level t through the extended square wave with gamma e_t, the features through MLR with (1-gamma) e_t.

    Formula: e_t = epsilon 2^(t-1); t' = ESW(t, gamma e_t); m(t) = max(1, min(d, floor((1-gamma) e_t/2.2))) of d
        dimensions report (d/m) c or -(d/m) c, c = 1/tanh((1-gamma) e_t/(2m)), P[+] as for `mb`; 0 elsewhere.
    Claim: printed: e_t-LDP for the pair of features and level. It does not hold: between two levels the loss is
        infinite. What holds is (1-gamma) e_t for the features of a user whose level is known.
    Estimator: the report itself is unbiased for every user's features; variance (d/m) c^2 - z^2.
    Reference: PPGNN, Algorithms 2 and 3, Theorem 5, Eq. 6.
    Deviations: the window of the extended square wave is g..g+2b, since as printed its probabilities do not sum to 1;
        budgets are e_t = epsilon 2^(t-1) for t = 1..h (printed with h+1 values). Otherwise as printed, for comparison
        with `ppm-public` and `ppm-safe`, whose claims hold.

    Attributes:
        gamma: the share of the budget that goes to the level.
        m_rule: how m follows from (1-gamma) e_t; the paper's floor unless given.
    """

    gamma: float = 0.5
    m_rule: str = "1/2.2"

    option_names: ClassVar[tuple[str, ...]] = ("levels", "distribution", "gamma", "m_rule")

    @classmethod
    def build(
        cls, epsilon: float, dimensions: int, low: float, high: float, m: int | None, options: dict[str, Any]
    ) -> VectorMechanism:
        """Return the mechanism from the options levels, distribution, gamma and m_rule."""
        check_options("ppm", options, cls.option_names)
        Duchi(epsilon=epsilon, low=low, high=high)
        check_gamma("ppm", options.get("gamma", 0.5))
        out = cls(epsilon=float(epsilon), dimensions=dimensions, m=1, low=low, high=high, **options)
        out.check()
        out._esw(1)  # the smallest budget is checked
        widest = max(out.m_of(level) for level in range(1, out.levels + 1))
        refuse_m("ppm", m, widest)
        return cls(epsilon=float(epsilon), dimensions=dimensions, m=widest, low=low, high=high, **options)

    def m_of(self, level: int) -> int:
        """Return how many dimensions a user of that level reports."""
        return best_m("duchi", self._features(level), self.dimensions, self.m_rule)

    def _features(self, level: int) -> float:
        return (1 - self.gamma) * self.budgets[level - 1]

    @property
    def base(self) -> Duchi:
        """The law of one value of a user of the lowest level, before the factor d/m."""
        return self._base(1)

    def _base(self, level: int) -> Duchi:
        return Duchi(epsilon=self._features(level) / self.m_of(level), low=self.low, high=self.high)

    def _esw(self, level: int) -> ExtendedSquareWave | None:
        return level_randomiser(self.gamma * self.budgets[level - 1], self.levels)

    def magnitude(self, level: int) -> float:
        """Return the size, in units of half the range, of what a user of that level reports."""
        return self.dimensions / self.m_of(level) * self._base(level)._size

    def boundary(self) -> float:
        """Return the largest size of a reported value, of any level."""
        half = self.high / 2 - self.low / 2
        return half * max(self.magnitude(level) for level in range(1, self.levels + 1))

    def level_variances(self) -> Floats:
        """Return the variance of the report of each level, lowest first, at the middle of the range."""
        sizes = [self.m_of(t) / self.dimensions * self.magnitude(t) ** 2 for t in range(1, self.levels + 1)]
        return np.asarray((self.high / 2 - self.low / 2) ** 2 * np.array(sizes))

    @property
    def level_offset(self) -> int:
        """How many codes lie below the one that stands for level 1 at its centre, at the lowest level."""
        randomiser = level_randomiser(self.gamma * self.epsilon, self.levels)
        return randomiser.radius if randomiser else 0

    @property
    def claim(self) -> Claim:
        """What the paper claims for the whole report, and why it fails."""
        loss = self.privacy_loss()
        reason = ""
        if loss > max(self.budgets) * (1 + 1e-9):
            reason = (
                f"the size of a reported value names the level: {self.magnitude(1):.6g} half-ranges at level 1, "
                f"{self.magnitude(self.levels):.6g} at level {self.levels}; so do m and the support of the level"
            )
        return Claim(
            epsilon=max(self.budgets),
            keeps=not reason,
            reason=reason,
            neighbours="any two pairs of features and level; a user of level t is promised epsilon 2^(t-1)",
        )

    def level_loss(self, level: int) -> float:
        """Return the exact loss of the features of a user whose level is known: (1-gamma) of her budget."""
        return self._base(level).vector_loss(self.m_of(level))

    def _looks(self, level: int) -> tuple[int, float, float]:
        """Return what every report of a level shows of it: how many values there are, and which two they can be."""
        base, size = self._base(level), self.dimensions / self.m_of(level) * self._base(level)._size
        low, high = (float(np.float32(base._shift + side * base._scale * size)) for side in (-1, 1))
        return self.m_of(level), low, high

    def pair_loss(self, one: int, other: int) -> float:
        """Return the exact loss between users of two levels, over any features: infinite where a report tells."""
        first, second = self._esw(one), self._esw(other)
        if one == other or first is None or second is None:
            return self.level_loss(one)
        tables = first._table()[one - 1], second._table()[other - 1]
        if self._looks(one) != self._looks(other) or len(tables[0]) > len(tables[1]):
            return math.inf
        m = self.m_of(one)
        signs = m * (np.logaddexp(0.0, self._features(other) / m) - np.logaddexp(0.0, -self._features(one) / m))
        return float(np.max(tables[0] - tables[1][: len(tables[0])]) + signs)

    def privacy_loss(self) -> float:
        """Return the exact loss of level, indices and values together, over all pairs of levels."""
        levels = range(1, self.levels + 1)
        return max(self.pair_loss(one, other) for one in levels for other in levels)

    def _perturb(self, features: Any, nodes: int, rng: UniformSource, level: ArrayLike | None) -> Reports:
        true = self.assign(nodes, rng, level)
        sent = np.ones(nodes, dtype=np.int32)
        found = []
        for number in range(1, self.levels + 1):
            members = np.flatnonzero(true == number)
            m, base, esw = self.m_of(number), self._base(number), self._esw(number)
            if esw is not None:
                sent[members] = esw.sample(true[members], rng)
            chosen = choose(len(members), self.dimensions, m, rng)
            unit = (base.sample(gather(features, chosen, members), rng) - base._shift) / base._scale
            found.append((members, chosen, base._shift + base._scale * (self.dimensions / m) * unit))
        index, value = padded(nodes, self.m, found, np.float32)
        return Reports(index=index, value=value, level=sent, meta=self.meta())

    def _estimate(self, value: NDArray[Any], index: NDArray[Any] | None, level: NDArray[Any] | None) -> Floats:
        return np.asarray(value, dtype=np.float64)

    def bias(self, x: ArrayLike) -> Floats:
        """Return the bias: none at any level."""
        return np.zeros_like(np.asarray(x, dtype=np.float64))

    def variance(self, x: ArrayLike) -> Floats:
        """Return the variance of the estimate at the value x, averaged over the distribution of the levels."""
        share = probabilities(self.distribution, self.levels)
        z = self._base(1)._unit(x)
        sizes = [self.m_of(t) / self.dimensions * self.magnitude(t) ** 2 for t in range(1, self.levels + 1)]
        return np.asarray(((self.high - self.low) / 2) ** 2 * (float(share @ np.array(sizes)) - z**2))

    def _level_bits(self) -> float:
        found = [self._esw(level) for level in range(1, self.levels + 1)]
        return max(math.log2(esw.outputs) if esw else 0.0 for esw in found)

    def options(self) -> dict[str, Any]:
        """Return the options from which `protocol` builds an equal mechanism, as JSON-able values."""
        return {key: getattr(self, key) for key in ("levels", "distribution", "gamma", "m_rule")}
