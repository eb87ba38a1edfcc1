"""OLH: one of a person's features, hashed into few buckets, whose number is randomised."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphldp.client.laws.sets import Membership, OneItem
from graphldp.client.randomiser import Floats, settled
from graphldp.client.registry import register
from graphldp.client.reports import Reports
from graphldp.client.vector import VectorMechanism
from graphldp.errors import OptionError
from graphldp.randomness import UniformSource

__all__ = ["OptimalLocalHashing", "buckets_of"]

_SEEDS = 2**31
_MOST_BUCKETS = 2**16
_BLOCK = 2**20  # hashes that are computed at a time


def buckets_of(seeds: NDArray[Any], item: NDArray[Any], buckets: int) -> NDArray[np.int32]:
    """Return the bucket of each item under the function that each seed names (public; SplitMix64's finaliser)."""
    x = (seeds.astype(np.uint64) << np.uint64(32)) + item.astype(np.uint64) + np.uint64(1)
    x = x * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return np.asarray(((x >> np.uint64(32)) * np.uint64(buckets)) >> np.uint64(32)).astype(np.int32)


@register("olh")
@dataclass(frozen=True, slots=True, kw_only=True)
class OptimalLocalHashing(OneItem):
    r"""One present feature, drawn from the padded set, as its bucket under a random hash function.

    Formula: the set is padded to `pad` of d + pad items and one of them, v, is drawn; H is a random public function
        into g = e^epsilon + 1 buckets; y = H(v) with probability e^epsilon/(e^epsilon + g - 1), else another bucket.
        Sent: the number of H, and y.
    Claim: epsilon-LDP for the set: H is drawn without looking at the data, and y is randomised response over g.
    Estimator: (1[H(j) = y] - b)/(a - b), a and b the probabilities that y is the bucket of an item of the set and of
        another one: unbiased for sets of at most `pad`, over H too; a - b is 1/pad of that for a single item.
    Reference: Wang, Blocki, Li, Jha, Locally Differentially Private Protocols for Frequency Estimation, USENIX
        Security 2017 (OLH); Qin et al., CCS 2016, and Wang, Li, Jha, S&P 2018 (padding and sampling).
    Deviations: H is SplitMix64 of 2^31 seeds, whose buckets are alike to 2^-32; g is a whole number of at most 2^16.
    """

    @classmethod
    def _chosen(cls, m: int | None, given: dict[str, Any]) -> VectorMechanism:
        if m not in (None, 1):
            raise OptionError(f"{cls.name} reports one bucket: m must be left out, or be 1; got {m}")
        return cls(m=1, **given)

    @property
    def buckets(self) -> int:
        """The number g of buckets."""
        return max(2, min(_MOST_BUCKETS, round(math.exp(min(self.epsilon, 20.0))) + 1))

    @property
    def _others(self) -> float:
        """How likely all other buckets together are, relative to the drawn item's."""
        return (self.buckets - 1) * math.exp(-self.epsilon)

    @property
    def _kept(self) -> float:
        return 1 / (1 + self._others)

    def item_chances(self) -> tuple[float, float]:
        """Return the probabilities that a report supports the drawn item, and another one."""
        return self._kept, 1 / self.buckets

    @property
    def choice(self) -> Membership:
        """The law of whether the bucket of the drawn item is told, whatever the item."""
        kept, missed = self._kept, self._others / (1 + self._others)
        return Membership(epsilon=self.epsilon, present=kept, absent=kept, missed=(missed, missed))

    def privacy_loss(self) -> float:
        """Return the exact loss of the whole report: that of the bucket, from the probabilities that are used."""
        kept, missed = self.choice.log_law([1.0, 0.0], 0.0)
        return settled(float(kept - (missed - math.log(self.buckets - 1))), self.epsilon)

    def _send(self, drawn: NDArray[Any], rng: UniformSource) -> Any:
        seeds = rng.integers(0, _SEEDS, len(drawn))
        own = buckets_of(seeds, drawn, self.buckets)
        away = rng.integers(1, self.buckets, len(drawn)).astype(np.int32)
        told = np.where(self.choice.sample(np.zeros(len(drawn)), rng) == 1, own, (own + away) % self.buckets)
        return np.stack([seeds.astype(np.int32), told.astype(np.int32)], axis=1)

    def _joined(self, parts: list[Any]) -> Reports:
        value = np.concatenate(parts) if parts else np.empty((0, 2), dtype=np.int32)
        return Reports(value=value, meta=self.meta())

    def unfold(self, reports: Reports) -> Reports:
        """Return the features that each report supports: those in its bucket."""
        if reports.index is not None:
            return reports
        step = max(1, _BLOCK // self.dimensions)
        every = np.arange(self.dimensions, dtype=np.int64)
        found = []
        for start in range(0, reports.nodes, step):
            sent = np.asarray(reports.value[start : start + step])
            inside = buckets_of(sent[:, :1], every[None, :], self.buckets) == sent[:, 1:]
            found.append((inside.sum(axis=1), np.nonzero(inside)[1].astype(np.int32)))
        lengths = np.concatenate([length for length, _ in found]) if found else np.zeros(0, dtype=np.int64)
        places = np.arange(max(1, int(lengths.max(initial=0)))) < lengths[:, None]
        index = np.full(places.shape, -1, dtype=np.int32)
        index[places] = np.concatenate([columns for _, columns in found]) if found else 0
        return replace(reports, index=index, value=places.astype(np.int8))

    def _estimate(self, value: NDArray[Any], index: NDArray[Any] | None, level: NDArray[Any] | None) -> Floats:
        if index is None:
            raise OptionError(f"{self.name}: what was sent is no feature's; unfold the reports first, as rectify does")
        return OneItem._estimate(self, value, index, level)

    def report_bits(self) -> float:
        """Return how many bits one report takes: the number of the function and the bucket."""
        return math.log2(_SEEDS) + math.log2(self.buckets)
