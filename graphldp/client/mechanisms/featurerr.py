"""FeatureRR: every feature with its own share of the budget, by its importance and sensitivity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphldp.client.laws.coded import Geometric
from graphldp.client.randomiser import LOWEST, Floats, Randomiser, check_number, settled
from graphldp.client.registry import Claim, register
from graphldp.client.reports import Reports
from graphldp.client.sampling import rows
from graphldp.client.vector import VectorMechanism
from graphldp.errors import OptionError
from graphldp.randomness import UniformSource
from graphldp.registry import check_options

__all__ = ["FeatureRR", "FeatureResponse", "shares"]

_BLOCK = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureResponse(Geometric):
    """One feature's randomised response: P[bin u | bin t] proportional to r^|u-t|, bins ceil(k (z+1)/2)."""

    name: ClassVar[str] = "featurerr"

    def _bin(self, z: Floats) -> NDArray[np.int64]:
        return np.clip(np.ceil(self.bins * (z + 1) / 2), 1, self.bins).astype(np.int64) - 1

    def _loss_inputs(self) -> Floats:
        return (2 * np.arange(self.bins) + 1.0) / self.bins - 1


def _floats(name: str, values: Any) -> Floats:
    """Return a list of numbers as an array; anything else is refused with its name."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError(f"featurerr: {name} needs one number for each dimension, got {values!r}") from None


def shares(
    dimensions: int,
    importance: Sequence[float] | None = None,
    sensitivity: Sequence[float] | None = None,
    gamma: float = 0.5,
) -> Floats:
    """Return each feature's share of the budget: at least 0, summing to at most 1.

    theta_i = gamma importance_i + (1-gamma) (min + max - sensitivity_i), below 0 set to 0, then normalised. The scores
    must be public: from public labels, or from an earlier round whose budget is counted.
    """
    check_number("featurerr", "gamma", gamma)
    if not 0 <= gamma <= 1:
        raise OptionError(f"featurerr: gamma must be from 0 to 1, got {gamma}")
    theta = np.zeros(dimensions)
    for name, scores in (("importance", importance), ("sensitivity", sensitivity)):
        if scores is None:
            continue
        values = _floats(name, scores)
        if values.shape != (dimensions,) or not np.isfinite(values).all():
            raise OptionError(f"featurerr: {name} needs {dimensions} finite scores, got the shape {values.shape}")
        theta += gamma * values if name == "importance" else (1 - gamma) * (values.min() + values.max() - values)
    if importance is None and sensitivity is None:
        theta += 1.0
    theta = np.maximum(theta, 0.0)
    if not theta.any():
        raise OptionError("featurerr: the scores leave no feature a share above 0; give at least one a positive score")
    theta /= math.fsum(theta)
    # Rounded down, so that the shares never add up to more than the budget.
    return np.asarray(theta * (1 - 4 * np.finfo(np.float64).eps))


@register("featurerr")
@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureRR(VectorMechanism):
    r"""Every feature's bin through a randomised response whose budget is the feature's share of epsilon.

    Formula: t = clip(ceil(k z'), 1, k), z' the value on [0, 1]; P[u | t] = r^|u-t|/Z_t, r = e^(-epsilon_i/(k-1)),
        Z_t = (1 + r - r^t - r^(k-t+1))/(1-r); epsilon_i = theta_i epsilon with public shares theta_i.
    Claim: epsilon-LDP for the vector: the shares are public, at least 0 and sum to at most 1, and a feature's exact
        loss is its epsilon_i.
    Estimator: the line through the means at both ends of the range: exact at the ends (so for features that are
        present or absent) and in the middle, else biased by the curve of the mean and by the width of a bin.
    Reference: HeteroRR, Algorithm 1 and Appendix A.
    Deviations: the value is put into its bin once (as printed, closed bins in a loop send every value to the last
        one); shares are clipped at 0 and normalised; the range is public; rectified, where the paper uses u/k.

    Attributes:
        theta: each feature's share of the budget.
        bins: how many bins a feature has, the paper's k.
    """

    theta: tuple[float, ...]
    bins: int = 10

    option_names: ClassVar[tuple[str, ...]] = ("importance", "sensitivity", "gamma", "theta", "bins")

    @classmethod
    def build(
        cls, epsilon: float, dimensions: int, low: float, high: float, m: int | None, options: dict[str, Any]
    ) -> VectorMechanism:
        """Return the mechanism from the options importance, sensitivity and gamma, or the shares theta, and bins."""
        options = {key: value for key, value in options.items() if key != "fill"}
        check_options("featurerr", options, cls.option_names)
        if m not in (None, dimensions):
            raise OptionError(f"featurerr reports every dimension: m must be left out, or be {dimensions}; got {m}")
        bins = options.pop("bins", 10)
        FeatureResponse(epsilon=epsilon, low=low, high=high, bins=bins)  # all checks before anything is computed
        given = options.pop("theta", None)
        if given is not None and options:
            raise OptionError(f"featurerr: give either theta or the scores, got theta and {', '.join(sorted(options))}")
        theta = shares(dimensions, **options) if given is None else _floats("theta", given)
        if theta.shape != (dimensions,) or not (theta >= 0).all() or not math.fsum(theta) <= 1 + 1e-12:
            raise OptionError(f"featurerr: theta needs {dimensions} shares of at least 0 that sum to at most 1")
        return cls(
            theta=tuple(float(v) for v in theta),
            bins=bins,
            epsilon=float(epsilon),
            dimensions=dimensions,
            m=dimensions,
            low=low,
            high=high,
        )

    @property
    def base(self) -> FeatureResponse:
        """The law of a feature with an even share of the budget."""
        return FeatureResponse(epsilon=self.epsilon / self.dimensions, low=self.low, high=self.high, bins=self.bins)

    def _feature(self, share: float) -> FeatureResponse | None:
        epsilon = share * self.epsilon
        if epsilon < LOWEST:  # a feature with so small a share is reported at random
            return None
        return FeatureResponse(epsilon=epsilon, low=self.low, high=self.high, bins=self.bins)

    def scalars(self) -> list[tuple[Randomiser | None, NDArray[np.int64]]]:
        """Return each share's response, with the features that have it."""
        distinct, which = np.unique(np.array(self.theta), return_inverse=True)
        order = np.argsort(which, kind="stable")
        groups = np.split(order, np.cumsum(np.bincount(which))[:-1])
        return [(self._feature(float(share)), columns) for share, columns in zip(distinct, groups, strict=True)]

    @property
    def claim(self) -> Claim:
        """What the mechanism promises for the whole report."""
        return Claim(epsilon=self.epsilon)

    def privacy_loss(self) -> float:
        """Return the exact loss of the whole report: the sum of all features' exact losses."""
        parts = [(part, len(columns)) for part, columns in self.scalars() if part is not None]
        return settled(math.fsum(part.vector_loss(count) for part, count in parts), self.epsilon)

    def _perturb(self, features: Any, nodes: int, rng: UniformSource, level: ArrayLike | None) -> Reports:
        if level is not None:
            raise OptionError("featurerr has no privacy levels: leave level out, or use ppm-public or ppm-safe")
        out = np.empty((nodes, self.dimensions), dtype=np.int16)
        groups = self.scalars()
        step = max(1, _BLOCK // self.dimensions)
        for start in range(0, nodes, step):
            stop = min(nodes, start + step)
            block = rows(features, start, stop)
            for part, columns in groups:
                if part is None:
                    out[start:stop, columns] = rng.integers(1, self.bins + 1, (stop - start, len(columns)))
                else:
                    out[start:stop, columns] = part.sample(block[:, columns], rng)
        return Reports(value=out, meta=self.meta())

    def _estimate(self, value: NDArray[Any], index: NDArray[Any] | None, level: NDArray[Any] | None) -> Floats:
        out = np.empty(value.shape)
        for part, columns in self.scalars():
            out[:, columns] = self.fill_value if part is None else part.estimate(value[:, columns])
        return out

    def bias(self, x: ArrayLike) -> Floats:
        """Return the bias at the value x, averaged over the features."""
        x = np.asarray(x, dtype=np.float64)
        total = sum(
            len(columns) * ((self.fill_value if part is None else part.estimate_mean(x)) - x)
            for part, columns in self.scalars()
        )
        return np.asarray(total / self.dimensions)

    def variance(self, x: ArrayLike) -> Floats:
        """Return the variance of the estimate at the value x, averaged over the features."""
        parts = [(part, len(columns)) for part, columns in self.scalars() if part is not None]
        total = sum(count * part.estimate_variance(x) for part, count in parts)
        return np.asarray(total / self.dimensions)

    def report_bits(self) -> float:
        """Return how many bits one report takes when its values are coded without waste."""
        return self.dimensions * math.log2(self.bins)

    def options(self) -> dict[str, Any]:
        """Return the options from which `protocol` builds an equal mechanism, as JSON-able values."""
        return {"theta": list(self.theta), "bins": self.bins}
