"""Subset selection: one of a person's features, hidden in a random set of others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphldp.client.laws.coded import check_count
from graphldp.client.laws.sets import OneItem, SupportLaw, best_size, random_subsets, sent_sets, support_law
from graphldp.client.randomiser import Randomiser, settled
from graphldp.client.registry import register
from graphldp.client.reports import Reports
from graphldp.client.vector import VectorMechanism, log_sets
from graphldp.randomness import UniformSource

__all__ = ["SubsetSelection"]


@lru_cache(maxsize=1024)
def _law(epsilon: float, domain: int, k: int) -> SupportLaw:
    law = support_law(epsilon, domain, 1, k, 1)
    assert law is not None
    return law


@register("subset")
@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetSelection(OneItem):
    r"""One present feature, drawn from the padded set, in a random set of m features that has it more often than not.

    Formula: the set is padded to `pad` of D = d + pad items and one of them, v, is drawn; P[S] is proportional to
        e^epsilon if v is in S, of m items, else to 1. Sent: the features in S. m = D/(e^epsilon + 1), to the best
        whole number.
    Claim: epsilon-LDP for the set: that of the drawn item holds for every mixture over draws. Where m < pad, no S
        shows more than m of the set's items, and the exact loss is smaller: log(1 + (e^epsilon - 1) m/pad).
    Estimator: (1[j in S] - b)/(a - b), a and b the probabilities that S has an item of the set and another one:
        unbiased for sets of at most `pad`; a - b is 1/pad of what it would be for a single item.
    Reference: Ye and Barg, Optimal Schemes for Discrete Distribution Estimation under LDP, 2018 (subset selection);
        Qin et al., CCS 2016, and Wang, Li, Jha, S&P 2018 (padding and sampling).
    Deviations: dummies in S are not sent.
    """

    @classmethod
    def _chosen(cls, m: int | None, given: dict[str, Any]) -> VectorMechanism:
        whole = cls(m=1, **given)
        if m is None:
            m = best_size(whole.epsilon, whole.domain, 1, 1, whole.dimensions)[1]
        check_count(cls.name, "m", m, 1, whole.dimensions)
        return cls(m=m, **given)

    @property
    def _support(self) -> SupportLaw:
        return _law(self.epsilon, self.domain, self.m)

    def item_chances(self) -> tuple[float, float]:
        """Return the probabilities that a report supports the drawn item, and another one."""
        return self._support.present, self._support.absent

    @property
    def choice(self) -> Randomiser:
        """The law of how many items of its own a set has."""
        return self._support.meeting

    def privacy_loss(self) -> float:
        """Return the exact loss of the whole report: that of a set with as many of S as there can be, and none."""
        share = min(self.m, self.pad) / self.pad
        if share == 1:
            return settled(self._support.loss, self.epsilon)
        return float(np.logaddexp(math.log(share) + self._support.loss, math.log1p(-share)))

    def _send(self, drawn: NDArray[Any], rng: UniformSource) -> Any:
        meet = self.choice.sample(np.zeros(len(drawn)), rng)
        return random_subsets(drawn[:, None], self.domain, self.m, meet, rng)

    def _joined(self, parts: list[Any]) -> Reports:
        index, value = sent_sets(parts, self.dimensions, self.m)
        return Reports(index=index, value=value, meta=self.meta())

    def report_bits(self) -> float:
        """Return how many bits one report takes when its set is coded without waste (at most)."""
        return log_sets(self.domain, self.m)
