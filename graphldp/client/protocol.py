"""From one value to a vector: which dimensions are reported, with which share of the budget.

`sampled` mechanisms report m of d dimensions, chosen without looking at the data, each with epsilon/m; the server
scales by d/m. `every-dimension` mechanisms report all d with epsilon/d each (Gaussian ones: the budget jointly).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphldp.client.laws.density import Density
from graphldp.client.laws.gaussian import Gaussian
from graphldp.client.m_rules import M_RULES, best_m, choose_m
from graphldp.client.randomiser import Floats, Randomiser, build, check_budget, check_number, plain, settled
from graphldp.client.registry import Claim, lookup, own_options
from graphldp.client.reports import Reports
from graphldp.client.sampling import choose, gather, present, rows
from graphldp.client.vector import VectorMechanism, check_dimensions, fill_of, log_sets, spread_of
from graphldp.errors import OptionError
from graphldp.randomness import UniformSource
from graphldp.registry import check_options

__all__ = [
    "COMPOSITIONS",
    "M_RULES",
    "Sampled",
    "VectorMechanism",
    "best_m",
    "choose_m",
    "from_meta",
    "mechanism",
    "option_names",
    "protocol",
    "sampled",
]

# How a Gaussian vector spends its budget: all coordinates together, or epsilon/d and delta/d each as the papers do.
COMPOSITIONS = ("joint", "split")
_BLOCK = 2**16  # values of a dense report that are drawn at a time: they stay in the processor's cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled(VectorMechanism):
    """m of d dimensions, or all of them, each through a scalar randomiser with its share of the budget.

    Attributes:
        inner: the scalar randomiser with its share of the budget, also called `base`.
        label: the registered name of the whole.
        given: the options it was built with, from which it can be built again.
    """

    inner: Randomiser
    label: str
    given: tuple[tuple[str, Any], ...] = ()

    @property
    def base(self) -> Randomiser:
        """The law of one reported value, with its share of the budget."""
        return self.inner

    @property
    def parts(self) -> tuple[Sampled, ...]:
        """Itself: everybody has the same."""
        return (self,)

    def scalars(self) -> list[tuple[Randomiser | None, NDArray[np.int64]]]:
        """Return the scalar of all reported values."""
        return [(self.base, np.arange(self.m))]

    def boundary(self) -> float:
        """Return the largest deviation from the fill that a rectified report can have, from the law."""
        ends = self.base.support(np.array([self.low, self.high]))
        if isinstance(self.base, Density) and np.isfinite(ends).all():
            # Reports are rounded to a grid, and the outermost may be rounded outwards.
            middle, half = self.low / 2 + self.high / 2, self.high / 2 - self.low / 2
            spacing = half * self.base.step
            ends = middle + np.sign(ends - middle) * spacing * np.ceil(np.abs(ends - middle) / spacing - 1e-9)
        reach = float(np.max(np.abs(self.base.estimate(ends) - self.fill_value)))
        if not np.isfinite(reach):
            raise OptionError(
                f"{self.name} reports have no bound, so tau has no boundary to be a share of; give the threshold itself"
            )
        return self.weight * reach

    @property
    def name(self) -> str:  # type: ignore[override]
        """The registered name."""
        return self.label

    @property
    def delta(self) -> float:
        """The delta of the claim; 0 for pure local differential privacy."""
        return float(dict(self.given).get("delta", self.base.delta))

    @property
    def claim(self) -> Claim:
        """What the mechanism promises for the whole report."""
        if self.base.deterministic:
            return Claim(epsilon=math.inf, unprotected="everything: the report is the data")
        return Claim(epsilon=self.epsilon, delta=self.delta)

    def privacy_loss(self) -> float:
        """Return the exact loss of the whole report, computed from the law (at `delta`).

        The indices are drawn without looking at the data and m is public, so they and the unreported dimensions cost
        nothing; the m values are independent and a worst case of all of them is one vector, so their losses add up.
        """
        if isinstance(self.base, Gaussian):
            return self.base.vector_loss(self.m, self.delta)
        return settled(self.base.vector_loss(self.m), self.epsilon)

    def _perturb(self, features: Any, nodes: int, rng: UniformSource, level: ArrayLike | None) -> Reports:
        if level is not None:
            raise OptionError(f"{self.name} has no privacy levels: leave level out, or use ppm-public or ppm-safe")
        if self.base.deterministic:
            index = present(features)
            known = rows(features, 0, nodes) if index is None else gather(features, index)
            value = self.base.sample(known, rng)
        elif self.m == self.dimensions:
            index, value = None, self._every_dimension(features, nodes, rng)
        else:
            index = choose(nodes, self.dimensions, self.m, rng)
            value = self.base.sample(gather(features, index), rng)
        return Reports(index=index, value=value, meta=self.meta())

    def _every_dimension(self, features: Any, nodes: int, rng: UniformSource) -> NDArray[Any]:
        out = np.empty((nodes, self.dimensions), dtype=self.base.dtype)
        step = max(1, _BLOCK // max(1, self.dimensions))
        for start in range(0, nodes, step):
            stop = min(nodes, start + step)
            out[start:stop] = self.base.sample(rows(features, start, stop), rng)
        return out

    @property
    def weight(self) -> float:
        """What a reported deviation from the fill counts: d/m, or 1 where reports are taken as they are."""
        plain = self.m == self.dimensions or not self.base.rectified or math.isinf(self.base.epsilon)
        return 1.0 if plain else self.dimensions / self.m

    def _estimate(self, value: NDArray[Any], index: NDArray[Any] | None, level: NDArray[Any] | None) -> Floats:
        weight = 1.0 if index is None else self.weight
        return self.fill_value + weight * (self.base.estimate(value) - self.fill_value)

    def _moments(self, x: ArrayLike) -> tuple[Floats, Floats]:
        mean, variance = self.base.estimate_mean(x), self.base.estimate_variance(x)
        return spread_of(mean, variance, self.fill_value, self.m / self.dimensions, self.weight)

    def bias(self, x: ArrayLike) -> Floats:
        """Return the mean of one coordinate's estimate minus its value x."""
        return self._moments(x)[0] - np.asarray(x, dtype=np.float64)

    def variance(self, x: ArrayLike) -> Floats:
        """Return the variance of one coordinate's estimate given its value x, over sampling and noise."""
        return self._moments(x)[1]

    def report_bits(self) -> float:
        """Return how many bits one report takes when its indices and values are coded without waste (at most)."""
        if self.base.deterministic:
            return 32.0 * self.dimensions
        return log_sets(self.dimensions, self.m) + self.m * math.log2(self.base.outputs)

    def options(self) -> dict[str, Any]:
        """Return the options from which `protocol` builds an equal mechanism, as JSON-able values."""
        return {**dict(self.given), "fill": self.fill}


def mechanism(name: str, epsilon: float, low: float = -1.0, high: float = 1.0, **options: Any) -> Randomiser:
    """Return the scalar randomiser of that name for values in [low, high]."""
    return build(name, epsilon, low, high, options)


def sampled(
    label: str, whole: Randomiser, dimensions: int, m: int, fill: str, given: dict[str, Any]
) -> VectorMechanism:
    """Return m reports of a scalar randomiser with equal shares of its budget."""
    share = whole.epsilon / m if math.isfinite(whole.epsilon) else whole.epsilon
    return Sampled(
        inner=build(whole.name, share, whole.low, whole.high, whole.options()),
        label=label,
        given=tuple(sorted(given.items())),
        epsilon=float(whole.epsilon),
        dimensions=dimensions,
        m=m,
        low=whole.low,
        high=whole.high,
        fill="zero" if whole.deterministic else fill,
    )


def _gaussian(
    name: str, epsilon: float, dimensions: int, low: float, high: float, fill: str, options: dict[str, Any]
) -> VectorMechanism:
    """Return a Gaussian mechanism for all dimensions: their budget jointly, or epsilon/d and delta/d each."""
    composition = options.pop("composition", "joint")
    if composition not in COMPOSITIONS:
        raise OptionError(f"composition must be one of {', '.join(COMPOSITIONS)}; got {composition!r}")
    epsilon = check_budget(name, epsilon)
    if "coordinates" in options:
        raise OptionError(f"{name}: coordinates is fixed by the dimensions here; leave it out")
    if composition == "joint":
        base = build(name, epsilon, low, high, {**options, "coordinates": dimensions})
        delta = base.delta
    else:
        delta = options.get("delta", 1e-5)
        check_number(name, "delta", delta)
        base = build(name, epsilon / dimensions, low, high, {**options, "delta": delta / dimensions})
    given = {"grid": base.options()["grid"], "delta": delta, "composition": composition}
    return Sampled(
        inner=base,
        label=name,
        given=tuple(sorted(given.items())),
        epsilon=float(epsilon),
        dimensions=dimensions,
        m=dimensions,
        low=base.low,
        high=base.high,
        fill=fill,
    )


def protocol(
    name: str,
    epsilon: float,
    dimensions: int,
    low: float = -1.0,
    high: float = 1.0,
    m: int | None = None,
    **options: Any,
) -> VectorMechanism:
    """Return the vector mechanism of that name.

    Args:
        name: a registered mechanism.
        epsilon: the budget of one node's whole vector.
        dimensions: how many features a node has.
        low: the public lower end of a feature's range.
        high: the public upper end.
        m: how many dimensions to report; None chooses by `m_rule`.
        options: `fill` (`mid` or `zero`), `m_rule`, `composition` (Gaussian mechanisms: `joint` or `split`), and the
            mechanism's own options.
    """
    dimensions = check_dimensions(dimensions)
    epsilon, low, high, m = plain(epsilon), plain(low), plain(high), plain(m)
    options = {key: plain(value) for key, value in options.items()}
    cls = lookup(name)
    if cls.kind == "vector":
        built: VectorMechanism = cls.build(epsilon, dimensions, low, high, m, options)
        return built
    if cls.kind == "level":
        raise OptionError(f"{name} randomises privacy levels, not features: use ppm or ppm-safe, which contain it")
    if cls.kind == "label":
        raise OptionError(f"{name} randomises labels, not features: ask for them beside the features, --labels {name}")
    fill = fill_of(options.pop("fill", "mid"))
    rule = options.pop("m_rule", "optimal")
    # Of whole vectors more can be said than of one value, whose own options are checked where it is built.
    check_options(name, (one for one in options if one not in own_options(cls, Randomiser)), option_names(name))
    if cls.every_dimension and m not in (None, dimensions):
        raise OptionError(f"{name} reports every dimension: m must be left out, or be {dimensions}; got {m}")
    if issubclass(cls, Gaussian):
        return _gaussian(name, epsilon, dimensions, low, high, fill, options)
    # One scalar with the whole budget: all options are checked before anything else is computed from them.
    whole = build(name, epsilon, low, high, options)
    if cls.every_dimension:
        return sampled(name, whole, dimensions, dimensions, fill, whole.options())
    return sampled(name, whole, dimensions, choose_m(whole, dimensions, m, rule), fill, whole.options())


def option_names(name: str) -> tuple[str, ...]:
    """Return the names of the options that `protocol` takes for a mechanism, beside budget, dimensions and range."""
    cls = lookup(name)
    if cls.kind == "vector":
        return tuple(cls.option_names)
    own = tuple(option for option in own_options(cls, Randomiser) if option != "coordinates")
    if issubclass(cls, Gaussian):
        return ("composition", "fill", *own)
    return ("fill", *own) if cls.every_dimension else ("m", "fill", "m_rule", *own)


def from_meta(meta: dict[str, Any]) -> VectorMechanism:
    """Return the mechanism that a report's metadata describes."""
    return protocol(
        meta["mechanism"],
        float(meta["epsilon"]),
        meta["dimensions"],
        meta["low"],
        meta["high"],
        m=meta["m"],
        **meta["options"],
    )
