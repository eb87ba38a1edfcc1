"""PrivSet: a random set of features, likelier where it meets the person's own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from graphldp.client.laws.coded import check_count
from graphldp.client.laws.sets import (
    SetValued,
    SupportLaw,
    best_size,
    random_subsets,
    sent_sets,
    support_law,
    total_variance,
)
from graphldp.client.randomiser import Randomiser, settled
from graphldp.client.registry import register
from graphldp.client.reports import Reports
from graphldp.client.vector import VectorMechanism, log_sets
from graphldp.randomness import UniformSource

__all__ = ["PrivSet"]


@lru_cache(maxsize=1024)
def _law(epsilon: float, domain: int, size: int, k: int, overlap: int) -> SupportLaw | None:
    return support_law(epsilon, domain, size, k, overlap)


@lru_cache(maxsize=1024)
def _best(epsilon: float, domain: int, size: int, overlaps: range, most: int) -> tuple[int, int]:
    """Return the k and the overlap with the smallest total variance."""
    _, k, overlap = min((*best_size(epsilon, domain, size, overlap, most), overlap) for overlap in overlaps)
    return k, overlap


@register("privset")
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivSet(SetValued):
    r"""A random set of m features, likelier where it meets the person's own set: all present features at once.

    Formula: the set is padded to `pad` of d + pad items; P[S] is proportional to e^epsilon if S, of m items, has at
        least `overlap` of the set, else to 1. Sent: the features in S. m and overlap minimise the estimate's variance.
    Claim: epsilon-LDP for the set: the two weights differ by e^epsilon, and padded sets all have the same normaliser.
    Estimator: (1[j in S] - b)/(a - b), a and b the probabilities that S has an item of the set and another one:
        unbiased for sets of at most `pad`, variance P(1-P)/(a-b)^2 with P = a or b.
    Reference: Wang, Huang, Nie, Wang, Xu, Yang, PrivSet, INFOCOM 2018 (overlap 1).
    Deviations: any overlap; m by minimising the variance itself; dummies in S are not sent.

    Attributes:
        overlap: in how many items S must meet the set to be likelier; the best if left out.
    """

    overlap: int = 1

    own_options: ClassVar[tuple[str, ...]] = ("pad", "overlap")

    @classmethod
    def _chosen(cls, m: int | None, given: dict[str, Any]) -> VectorMechanism:
        whole = cls(m=1, **{**given, "overlap": 1})
        domain, size = whole.domain, whole.pad
        most = whole.dimensions
        if m is not None:
            check_count(cls.name, "m", m, 1, most)
        overlap = given.get("overlap")
        if overlap is not None:
            check_count(cls.name, "overlap", overlap, 1, min(size, most if m is None else m))
        overlaps = range(1, min(size, m or most) + 1) if overlap is None else range(overlap, overlap + 1)
        if m is None:
            m, overlap = _best(whole.epsilon, domain, size, overlaps, most)
        else:
            costs = [(total_variance(whole.epsilon, domain, size, m, overlap), overlap) for overlap in overlaps]
            overlap = min(costs)[1]
        return cls(m=m, **{**given, "overlap": overlap})

    @property
    def _support(self) -> SupportLaw:
        law = _law(self.epsilon, self.domain, self.pad, self.m, self.overlap)
        assert law is not None
        return law

    def support_chances(self) -> tuple[float, float]:
        """Return the probabilities that a report supports an item of the padded set, and another one."""
        return self._support.present, self._support.absent

    @property
    def choice(self) -> Randomiser:
        """The law of how many items of its own a set has."""
        return self._support.meeting

    def privacy_loss(self) -> float:
        """Return the exact loss of the whole report: the log ratio of the two weights."""
        return settled(self._support.loss, self.epsilon)

    def _report(self, padded: NDArray[np.int32], rng: UniformSource) -> Any:
        meet = self.choice.sample(np.zeros(len(padded)), rng)
        return random_subsets(padded, self.domain, self.m, meet, rng)

    def _joined(self, parts: list[Any]) -> Reports:
        index, value = sent_sets(parts, self.dimensions, self.m)
        return Reports(index=index, value=value, meta=self.meta())

    def report_bits(self) -> float:
        """Return how many bits one report takes when its set is coded without waste (at most)."""
        return log_sets(self.domain, self.m)
