"""Mechanisms for sets: a person's present features are a set, padded with dummies so that its size stays hidden.

Multi-hot vectors are nearly all zero, so a mechanism that samples dimensions reports zeros. Here the device starts from
what is there. Whatever is sent amounts to a set of features that it supports; the server counts those.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphldp.client.laws.coded import check_count
from graphldp.client.laws.finite import Finite
from graphldp.client.randomiser import Floats, Randomiser
from graphldp.client.registry import Claim
from graphldp.client.reports import Reports
from graphldp.client.sampling import choose, is_sparse, sorted_rows
from graphldp.client.vector import VectorMechanism
from graphldp.errors import DataError, OptionError
from graphldp.randomness import UniformSource
from graphldp.registry import check_options

__all__ = [
    "PAD",
    "Meeting",
    "Membership",
    "OneItem",
    "SetValued",
    "SupportLaw",
    "best_size",
    "every_dimension",
    "items",
    "random_subsets",
    "sent_sets",
    "support_law",
    "total_variance",
]

PAD = 20
_BLOCK = 2**20  # drawn at a time: nodes x what each of them draws


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership(Finite):
    """Whether a report supports one feature, which it does with probability `present` or `absent`.

    Attributes:
        present: the probability if the person has the feature.
        absent: the probability if not.
        missed: one minus either, where that is too small to be had by subtracting.
    """

    present: float
    absent: float
    missed: tuple[float, float] | None = None

    name: ClassVar[str] = "membership"
    scaled: ClassVar[bool] = False
    dtype: ClassVar[Any] = np.int8

    def _share(self, z: Floats) -> Floats:
        return np.asarray(self.absent + (self.present - self.absent) * (z + 1) / 2)

    def _rest(self, z: Floats) -> Floats:
        if self.missed is None:
            return np.asarray(1 - self._share(z))
        present, absent = self.missed
        return np.asarray(absent + (present - absent) * (z + 1) / 2)

    def _log_law(self, y: Floats, z: Floats) -> Floats:
        share = self._share(z)
        with np.errstate(divide="ignore"):
            rest = np.log1p(-share) if self.missed is None else np.log(self._rest(z))
            return np.where(y == 1, np.log(share), np.where(y == 0, rest, -np.inf))

    def _support(self, z: Floats) -> Floats:
        return np.broadcast_to(np.array([0.0, 1.0]), (*z.shape, 2))

    def _mean(self, z: Floats) -> Floats:
        return self._share(z)

    def _variance(self, z: Floats) -> Floats:
        return np.asarray(self._share(z) * self._rest(z))

    def _invert(self, z: Floats, u: Floats) -> Floats:
        share, rest = self._share(z), self._rest(z)
        # The rarer outcome takes the small u, which are uniform however small they are.
        return np.where(share <= rest, u < share, u >= rest).astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Meeting(Finite):
    """In how many items a random set meets the person's own: a number 0, 1, ... with these probabilities.

    Attributes:
        log_mass: the logarithm of each number's probability; whatever the value is.
    """

    log_mass: tuple[float, ...]

    name: ClassVar[str] = "meeting"
    scaled: ClassVar[bool] = False
    dtype: ClassVar[Any] = np.int32

    def _log_law(self, y: Floats, z: Floats) -> Floats:
        known = (y >= 0) & (y < len(self.log_mass)) & (np.rint(y) == y)
        return np.where(known, np.array(self.log_mass)[np.where(known, y, 0).astype(np.int64)], -np.inf)

    def _support(self, z: Floats) -> Floats:
        return np.broadcast_to(np.arange(float(len(self.log_mass))), (*z.shape, len(self.log_mass)))

    def _mean(self, z: Floats) -> Floats:
        return np.full(z.shape, np.exp(self.log_mass) @ np.arange(len(self.log_mass)))

    def _variance(self, z: Floats) -> Floats:
        away = np.arange(len(self.log_mass)) - self._mean(z)[..., None]
        return np.asarray(away**2 @ np.exp(self.log_mass))

    def _invert(self, z: Floats, u: Floats) -> Floats:
        order = np.argsort(self.log_mass, kind="stable")
        edges = np.cumsum(np.exp(self.log_mass)[order])[:-1]
        return order[np.searchsorted(edges, np.broadcast_to(u, z.shape), side="right")].astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetValued(VectorMechanism):
    """A randomiser of the set of features that a person has: those at the high end of the range.

    Attributes:
        pad: how many items every set is made to have (public, at most d): dummies fill a smaller one, a larger one is
            sampled.
    """

    pad: int = PAD

    own_options: ClassVar[tuple[str, ...]] = ("pad",)

    @classmethod
    def build(
        cls, epsilon: float, dimensions: int, low: float, high: float, m: int | None, options: dict[str, Any]
    ) -> VectorMechanism:
        """Return the mechanism from its options; what an unsupported feature counts as follows from the law."""
        options = {key: value for key, value in options.items() if key != "fill"}
        check_options(cls.name, options, list(cls.own_options))
        Membership(epsilon=epsilon, low=low, high=high, present=1.0, absent=0.0)  # epsilon and range are checked here
        pad = options.get("pad", PAD)
        check_count(cls.name, "pad", pad, 1)
        shared = {"epsilon": float(epsilon), "dimensions": dimensions, "low": float(low), "high": float(high)}
        return cls._chosen(m, {**shared, **options, "pad": min(pad, dimensions)})

    @classmethod
    @abstractmethod
    def _chosen(cls, m: int | None, given: dict[str, Any]) -> VectorMechanism:
        """Return the mechanism with its free numbers chosen where they are not given."""

    @property
    def domain(self) -> int:
        """How many items there are: the features and the dummies."""
        return self.dimensions + self.pad

    @abstractmethod
    def support_chances(self) -> tuple[float, float]:
        """Return the probabilities that a report supports an item that is in the padded set, and one that is not."""

    @property
    @abstractmethod
    def choice(self) -> Randomiser:
        """The law of what the budget decides about, which is drawn through it: all else is drawn uniformly."""

    @property
    def base(self) -> Membership:
        """The law of one feature's bit: does the report support it?"""
        present, absent = self.support_chances()
        return Membership(epsilon=self.epsilon, low=self.low, high=self.high, present=present, absent=absent)

    @property
    def fill_value(self) -> float:
        """What a feature counts as that a report does not support: below the range, so that the mean is right."""
        return float(self.base.estimate(0.0))

    def boundary(self) -> float:
        """Return how far a supported feature's estimate is from an unsupported one's."""
        return float(self.base.estimate(1.0)) - self.fill_value

    @property
    def claim(self) -> Claim:
        """What the mechanism promises for the whole report."""
        return Claim(
            epsilon=self.epsilon,
            neighbours="any two sets of features, of whatever sizes",
            arithmetic="float64 probabilities; reports are whole numbers",
            outside="values are clamped to [low, high] first; a value between the ends, and NaN, are refused",
        )

    def _perturb(self, features: Any, nodes: int, rng: UniformSource, level: ArrayLike | None) -> Reports:
        if level is not None:
            raise OptionError(f"{self.name} has no privacy levels: leave level out, or use ppm-public or ppm-safe")
        indptr, owned = items(features, self.low, self.high, self.name)
        step = max(1, _BLOCK // max(1, self.m, self.pad))
        parts = []
        for start in range(0, nodes, step):
            stop = min(nodes, start + step)
            block = _padded(indptr[start : stop + 1], owned, self.pad, self.dimensions, rng)
            parts.append(self._report(block, rng))
        return self._joined(parts)

    @abstractmethod
    def _report(self, padded: NDArray[np.int32], rng: UniformSource) -> Any:
        """Return what the owners of these padded sets send; an item from `dimensions` on is a dummy."""

    @abstractmethod
    def _joined(self, parts: list[Any]) -> Reports:
        """Return the blocks' reports as one."""

    def _estimate(self, value: NDArray[Any], index: NDArray[Any] | None, level: NDArray[Any] | None) -> Floats:
        return self.base.estimate(value)

    def bias(self, x: ArrayLike) -> Floats:
        """Return 0: the estimate is unbiased for everybody with at most `pad` features.

        Of s > pad features each is kept with probability pad/s, and its estimate has that mean.
        """
        return np.zeros(np.shape(x))

    def variance(self, x: ArrayLike) -> Floats:
        """Return the variance of one feature's estimate given its value x."""
        return self.base.estimate_variance(x)

    def options(self) -> dict[str, Any]:
        """Return the options from which `protocol` builds an equal mechanism, as JSON-able values."""
        return {key: getattr(self, key) for key in self.own_options}


@dataclass(frozen=True, slots=True, kw_only=True)
class OneItem(SetValued):
    """A randomiser of one item of the padded set, drawn uniformly: padding and sampling."""

    @abstractmethod
    def item_chances(self) -> tuple[float, float]:
        """Return the probabilities that a report supports the drawn item, and another one."""

    def support_chances(self) -> tuple[float, float]:
        """Return the probabilities that a report supports an item of the padded set, and another one."""
        drawn, other = self.item_chances()
        return other + (drawn - other) / self.pad, other

    def _report(self, padded: NDArray[np.int32], rng: UniformSource) -> Any:
        which = rng.integers(0, self.pad, len(padded))
        return self._send(padded[np.arange(len(padded)), which], rng)

    @abstractmethod
    def _send(self, drawn: NDArray[Any], rng: UniformSource) -> Any:
        """Return what people send who drew these items; one from `dimensions` on is a dummy."""


def items(features: Any, low: float, high: float, name: str) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return everybody's present features, as the offsets and the indices of a CSR matrix.

    A value at `high` or above is present, one at `low` or below is absent, and anything between is refused.
    """
    if is_sparse(features):
        if low != 0:
            raise DataError(
                f"{name} takes sparse features whose absent value is 0, and the range begins at {low:g}; give a dense "
                "matrix, or declare the range 0 to 1"
            )
        features = sorted_rows(features)
        nodes, values = int(features.shape[0]), np.asarray(features.data)
        owners = np.repeat(np.arange(nodes), np.diff(features.indptr))
        columns = np.asarray(features.indices)
    else:
        dense = np.asarray(features)
        nodes, values = len(dense), dense.reshape(-1)
        owners = np.repeat(np.arange(nodes), dense.shape[1])
        columns = np.tile(np.arange(dense.shape[1]), nodes)
    there = values >= high
    between = ~there & (values > low)
    if between.any():
        raise DataError(
            f"{name} is for features that are there or not: {len(np.unique(owners[between]))} node(s) have values "
            f"between {low:g} and {high:g}; use pm or mb for numbers"
        )
    owners, columns = owners[there], columns[there]
    order = np.argsort(owners * np.int64(features.shape[1]) + columns, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=nodes))])
    return offsets.astype(np.int64), columns[order].astype(np.int32)


def _padded(
    indptr: NDArray[np.int64], owned: NDArray[np.int32], pad: int, dimensions: int, rng: UniformSource
) -> NDArray[np.int32]:
    """Return n x pad different items: the person's own, at random where there are more, and dummies for the rest.

    Everybody draws as many numbers and takes the same steps whatever she has (Floyd's sampling of `pad` of so many), so
    that neither anybody else's draws nor the time tell of it.
    """
    nodes, lengths = len(indptr) - 1, np.diff(indptr)[:, None]
    u = rng.random((nodes, pad))
    ranks = np.empty((nodes, pad), dtype=np.int64)
    for k in range(pad):
        last = np.maximum(lengths[:, 0], pad) - pad + k
        pick = (u[:, k] * (last + 1)).astype(np.int64)
        ranks[:, k] = np.where((ranks[:, :k] == pick[:, None]).any(axis=1), last, pick)
    own = ranks < lengths
    place = np.where(own, indptr[:-1, None] + ranks, 0)
    mine = owned[place] if len(owned) else np.zeros_like(place)
    return np.where(own, mine, dimensions + ranks).astype(np.int32)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SupportLaw:
    """The law of a random k-set that is likelier where it meets a secret set of `size` items in at least `overlap`.

    P[S] is proportional to e^epsilon if |S and set| >= overlap, else to 1.

    Attributes:
        meeting: the law of |S and set|.
        present, absent: the probability that S has an item of the set, and another one.
        loss: the log ratio of the two weights, from the probabilities that are used.
    """

    meeting: Meeting
    present: float
    absent: float
    loss: float


@lru_cache(maxsize=16)
def _log_factorials(most: int) -> NDArray[np.float64]:
    """Return log k! of k from 0 to `most`."""
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, most + 1)))])


def support_law(epsilon: float, domain: int, size: int, k: int, overlap: int) -> SupportLaw | None:
    """Return the law, or None where the event is certain or impossible."""
    logs = _log_factorials(domain)
    j = np.arange(size + 1)
    fits = (j <= k) & (k - j <= domain - size)
    here, there = np.where(fits, j, 0), np.where(fits, k - j, 0)
    plain = np.where(
        fits,
        logs[size] - logs[here] - logs[size - here] + logs[domain - size] - logs[there] - logs[domain - size - there]
        - (logs[domain] - logs[k] - logs[domain - k]),
        -np.inf,
    )  # fmt: skip
    hit, miss = plain[overlap:], plain[:overlap]
    if np.isneginf(hit).all() or np.isneginf(miss).all():
        return None
    log_hit, log_miss = float(np.logaddexp.reduce(hit)), float(np.logaddexp.reduce(miss))
    odds = epsilon + log_hit - log_miss
    weight_hit = -np.logaddexp(0.0, -odds) - log_hit
    weight_miss = -np.logaddexp(0.0, odds) - log_miss
    log_mass = plain + np.where(j >= overlap, weight_hit, weight_miss)
    mass = np.exp(log_mass)
    return SupportLaw(
        meeting=Meeting(epsilon=epsilon, log_mass=tuple(log_mass.tolist())),
        present=float(mass @ j) / size,
        # Not k minus the mean: at a large budget the two are alike to the last bit.
        absent=float(mass @ (k - j)) / (domain - size),
        loss=float(weight_hit - weight_miss),
    )


def random_subsets(
    secret: NDArray[np.int32], domain: int, k: int, meet: NDArray[Any], rng: UniformSource
) -> NDArray[np.int32]:
    """Return n x k different items of the domain: `meet` of each row of `secret`, the rest others, uniformly."""
    nodes, size = secret.shape
    own = np.take_along_axis(secret, np.argsort(rng.random((nodes, size)), axis=1), axis=1)
    ranks = choose(nodes, domain - size, k, rng)
    ranks = np.take_along_axis(ranks, np.argsort(rng.random((nodes, k)), axis=1), axis=1).astype(np.int64)
    # The item with that rank among those outside of the set: as many further on as there are items of the set before.
    gaps = np.sort(secret, axis=1) - np.arange(size)
    rows = np.arange(nodes)[:, None] * np.int64(domain + 1)
    before = np.searchsorted((gaps + rows).reshape(-1), (ranks + rows).reshape(-1), side="right").reshape(ranks.shape)
    out: NDArray[np.int32] = (ranks + before - np.arange(nodes)[:, None] * size).astype(np.int32)
    width = min(k, size)
    out[:, :width] = np.where(np.arange(width) < meet[:, None], own[:, :width], out[:, :width])
    return out


def every_dimension(name: str, m: Any, dimensions: int) -> int:
    """Return the number of dimensions, which is the only m of a mechanism that reports them all."""
    if m not in (None, dimensions):
        raise OptionError(f"{name} reports every dimension: m must be left out, or be {dimensions}; got {m}")
    return dimensions


def sent_sets(chosen: list[NDArray[np.int32]], dimensions: int, k: int) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
    """Return the features among the chosen items, increasing, and a 1 for each; dummies are not sent."""
    every = np.concatenate(chosen) if chosen else np.empty((0, k), dtype=np.int32)
    index = np.sort(np.minimum(every, dimensions), axis=1)
    real = index < dimensions
    return np.where(real, index, -1).astype(np.int32), real.astype(np.int8)


def total_variance(epsilon: float, domain: int, size: int, k: int, overlap: int) -> float:
    """Return the sum of the variances of all items' estimates; infinite where a report would say nothing."""
    law = support_law(epsilon, domain, size, k, overlap)
    if law is None or law.present <= law.absent:
        return math.inf
    noise = size * law.present * (1 - law.present) + (domain - size) * law.absent * (1 - law.absent)
    return noise / (law.present - law.absent) ** 2


def best_size(epsilon: float, domain: int, size: int, overlap: int, most: int) -> tuple[float, int]:
    """Return the smallest total variance over k from `overlap` to `most`, and that k: it has one minimum."""

    def cost(k: int) -> tuple[float, int]:
        return total_variance(epsilon, domain, size, k, overlap), k

    tried = sorted({overlap, *np.geomspace(overlap, max(overlap, most), 25).astype(int).tolist()})
    place = tried.index(min(cost(k) for k in tried)[1])
    left, right = tried[max(0, place - 1)], tried[min(len(tried) - 1, place + 1)]
    while right - left > 2:
        third = (right - left) // 3
        one, two = left + max(1, third), right - max(1, third)
        left, right = (left, two) if cost(one) <= cost(two) else (one, right)
    return min(cost(k) for k in range(left, right + 1))
