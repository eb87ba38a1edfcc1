"""Personalised budgets as public policy: PPM with public levels, and personalised LDP."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphldp.client.levels import Personalised, padded, probabilities, refuse_m
from graphldp.client.m_rules import choose_m
from graphldp.client.mechanisms.mlr import scalar_base
from graphldp.client.protocol import Sampled, sampled
from graphldp.client.randomiser import Floats, Randomiser
from graphldp.client.registry import Claim, lookup, register
from graphldp.client.reports import Reports
from graphldp.client.sampling import choose, gather
from graphldp.client.vector import VectorMechanism, fill_of, log_sets
from graphldp.errors import OptionError
from graphldp.randomness import UniformSource
from graphldp.registry import check_options

__all__ = ["PersonalisedLDP", "PublicLevels"]


@register("ppm-public")
@dataclass(frozen=True, slots=True, kw_only=True)
class PublicLevels(Personalised):
    r"""The m-of-d protocol with the user's own budget, her level being public.

    Formula: a user of level t reports m(t) of d dimensions through the scalar `base` with epsilon 2^(t-1)/m(t) each.
    Claim: a user of level t has (epsilon 2^(t-1))-LDP for her features; levels are public policy and not protected.
    Estimator: unbiased for every user: fill + d/m(t) (estimate - fill), by the law of her level.
    Reference: PPGNN, Algorithms 2 and 3, without the extended square wave.
    Deviations: no budget goes to the level, which the paper means to hide and does not (`ppm`); budgets are
        epsilon 2^(t-1) for t = 1..h; m is the best for the base, the paper's rule is m_rule 1/2.2.

    Attributes:
        parts: the mechanism of each level.
        scalar: the name of the scalar randomiser (option base).
    """

    parts: tuple[Sampled, ...] = ()
    scalar: str = "mb"
    m_rule: str = "optimal"

    default_base: ClassVar[str] = "mb"
    option_names: ClassVar[tuple[str, ...]] = ("base", "levels", "distribution", "fill", "m_rule")

    @classmethod
    def build(
        cls, epsilon: float, dimensions: int, low: float, high: float, m: int | None, options: dict[str, Any]
    ) -> VectorMechanism:
        """Return the mechanism from the options levels, distribution, base, fill and m_rule."""
        check_options(cls.name, options, cls.option_names)
        base = options.get("base", cls.default_base)
        fill, rule = fill_of(options.get("fill", "mid")), options.get("m_rule", "optimal")
        if lookup(str(base)).every_dimension:
            raise OptionError(f"{cls.name}: base must be a scalar that is sampled, got {base!r}; try 'mb' or 'pm'")
        scalar_base(cls.name, base, epsilon, low, high, {})
        empty = cls(
            epsilon=float(epsilon),
            dimensions=dimensions,
            m=1,
            levels=options.get("levels", 5),
            distribution=options.get("distribution", "uniform"),
        )
        empty.check()
        parts = []
        for budget in empty.budgets:
            whole = scalar_base(cls.name, base, budget, low, high, {})
            parts.append(sampled(base, whole, dimensions, choose_m(whole, dimensions, None, rule), fill, {}))
        widest = max(part.m for part in parts)
        refuse_m(cls.name, m, widest)
        return cls(
            epsilon=float(epsilon),
            dimensions=dimensions,
            m=widest,
            low=low,
            high=high,
            fill=fill,
            levels=empty.levels,
            distribution=empty.distribution,
            parts=tuple(part for part in parts if isinstance(part, Sampled)),
            scalar=str(base),
            m_rule=rule,
        )

    @property
    def base(self) -> Randomiser:
        """The law of one value of a user of the lowest level."""
        return self.parts[0].base

    @property
    def claim(self) -> Claim:
        """What the mechanism promises: the highest level's budget bounds everybody's."""
        return Claim(
            epsilon=max(self.budgets),
            neighbours="any two feature vectors of a user; a user of level t has epsilon 2^(t-1)",
            unprotected="the privacy level (public policy), edges, labels, the number of nodes",
        )

    def boundary(self) -> float:
        """Return the largest deviation from the fill that a rectified report can have, of any level."""
        return max(part.boundary() for part in self.parts)

    def level_variances(self) -> Floats:
        """Return the variance of the report of each level, lowest first, at the middle of the range."""
        middle = self.low / 2 + self.high / 2
        return np.array([float(part.variance(middle)) for part in self.parts])

    def level_loss(self, level: int) -> float:
        """Return the exact loss of a user of that level."""
        return self.parts[level - 1].privacy_loss()

    def privacy_loss(self) -> float:
        """Return the exact loss of the user with the largest one."""
        return max(self.level_loss(level) for level in range(1, self.levels + 1))

    def m_of(self, level: int) -> int:
        """Return how many dimensions a user of that level reports."""
        return self.parts[level - 1].m

    def _perturb(self, features: Any, nodes: int, rng: UniformSource, level: ArrayLike | None) -> Reports:
        true = self.assign(nodes, rng, level)
        found = []
        for number, part in enumerate(self.parts, start=1):
            members = np.flatnonzero(true == number)
            chosen = choose(len(members), self.dimensions, part.m, rng)
            found.append((members, chosen, part.base.sample(gather(features, chosen, members), rng)))
        index, value = padded(nodes, self.m, found, self.parts[0].base.dtype)
        return Reports(index=index, value=value, level=true, meta=self.meta())

    def _estimate(self, value: NDArray[Any], index: NDArray[Any] | None, level: NDArray[Any] | None) -> Floats:
        out = np.empty(value.shape)
        for number, part in enumerate(self.parts, start=1):
            members = np.asarray(level) == number
            deviations = part.base.estimate(value[members]) - self.fill_value
            out[members] = self.fill_value + part.weight * deviations
        return out

    def bias(self, x: ArrayLike) -> Floats:
        """Return the bias at the value x, averaged over the distribution of the levels."""
        share = probabilities(self.distribution, self.levels)
        return np.asarray(sum(p * part.bias(x) for p, part in zip(share, self.parts, strict=True)))

    def variance(self, x: ArrayLike) -> Floats:
        """Return the variance of the estimate at the value x, averaged over the distribution of the levels."""
        share = probabilities(self.distribution, self.levels)
        return np.asarray(sum(p * part.variance(x) for p, part in zip(share, self.parts, strict=True)))

    def report_bits(self) -> float:
        """Return how many bits the longest report takes; the level is public and takes none."""
        return max(log_sets(self.dimensions, part.m) + part.m * math.log2(part.base.outputs) for part in self.parts)

    def options(self) -> dict[str, Any]:
        """Return the options from which `protocol` builds an equal mechanism, as JSON-able values."""
        own = ("levels", "distribution", "fill", "m_rule")
        return {"base": self.scalar} | {key: getattr(self, key) for key in own}


@register("pldp")
@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalisedLDP(PublicLevels):
    r"""Personalised LDP: everybody's own budget is public, and the piecewise mechanism spends it.

    Formula: a user of level t reports m(t) of d dimensions through `pm` with epsilon 2^(t-1)/m(t) each.
    Claim: given the public level, any two feature vectors of a user of level t are within epsilon 2^(t-1).
    Estimator: unbiased for every user, as for `ppm-public`.
    Reference: TOGL, Table 12 (row PLDP, baseline PM).
    Deviations: TOGL prints no set of levels; here it is PPGNN's, epsilon 2^(t-1) for t = 1..levels. Another notion of
        the same name (Chen et al., ICDE 2016) protects only pairs inside a user's safe region.
    """

    default_base: ClassVar[str] = "pm"
