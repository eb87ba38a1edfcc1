"""OUE: one of a person's features, as a bit vector whose ones are kept half of the time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphldp.client.laws.sets import Membership, OneItem, every_dimension
from graphldp.client.randomiser import settled
from graphldp.client.registry import register
from graphldp.client.reports import Reports
from graphldp.client.vector import VectorMechanism
from graphldp.randomness import UniformSource

__all__ = ["OptimizedUnaryEncoding"]


@register("oue")
@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizedUnaryEncoding(OneItem):
    r"""One present feature, drawn from the padded set, as d bits of which every one is randomised by itself.

    Formula: the set is padded to `pad` of d + pad items and one of them, v, is drawn; the bit of v is sent as 1 with
        probability 1/2, every other bit with probability 1/(e^epsilon + 1). Sent: the bits of the d features.
    Claim: epsilon-LDP for the set: two items differ in two bits, whose losses add up to epsilon; that of the drawn item
        holds for every mixture over draws. With d < 2 pad any two sets have items in common, and the exact loss is
        smaller.
    Estimator: (bit - b)/(a - b), a and b the probabilities of a 1 for an item of the set and for another one: unbiased
        for sets of at most `pad`; a - b is 1/pad of what it would be for a single item.
    Reference: Wang, Blocki, Li, Jha, Locally Differentially Private Protocols for Frequency Estimation, USENIX
        Security 2017 (OUE); Qin et al., CCS 2016, and Wang, Li, Jha, S&P 2018 (padding and sampling).
    Deviations: the dummies' bits are not sent.
    """

    @classmethod
    def _chosen(cls, m: int | None, given: dict[str, Any]) -> VectorMechanism:
        return cls(m=every_dimension(cls.name, m, given["dimensions"]), **given)

    def item_chances(self) -> tuple[float, float]:
        """Return the probabilities that a report supports the drawn item, and another one."""
        return 0.5, 1 / (1 + math.exp(min(self.epsilon, 700.0)))

    @property
    def choice(self) -> Membership:
        """The law of one bit: of the drawn item, or of another one."""
        own, other = self.item_chances()
        return Membership(epsilon=self.epsilon, present=own, absent=other)

    def privacy_loss(self) -> float:
        """Return the exact loss of the whole report: all ones in one set's places, all zeros in another's.

        Relative to a dummy, a drawn item whose bit is 1 is own/other times as likely, and (1-own)/(1-other) where it is
        0. Of d features r are in the one set, and at most d - r in the other.
        """
        own, other = self.item_chances()
        size = np.arange(self.pad + 1)
        rest = np.minimum(self.pad, self.dimensions - size)
        most = np.log((size * (own / other) + (self.pad - size)) / self.pad)
        least = np.log((rest * ((1 - own) / (1 - other)) + (self.pad - rest)) / self.pad)
        return settled(float((most - least).max()), self.epsilon)

    def _send(self, drawn: NDArray[Any], rng: UniformSource) -> Any:
        return self.choice.sample(np.where(drawn[:, None] == np.arange(self.dimensions), 1.0, -1.0), rng)

    def _joined(self, parts: list[Any]) -> Reports:
        value = np.concatenate(parts) if parts else np.empty((0, self.dimensions), dtype=np.int8)
        return Reports(value=value, meta=self.meta())

    def report_bits(self) -> float:
        """Return how many bits one report has."""
        return float(self.dimensions)
