"""Randomised response of every bit of a list of neighbours, drawn without looking at every bit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from graphldp.client.links.base import MOST_LINKS, LinkMechanism, LinkReports, Neighbours, register_link
from graphldp.client.links.draws import places
from graphldp.client.randomiser import Floats, settled
from graphldp.randomness import UniformSource, drawn_from

__all__ = ["LinkRandomisedResponse", "flip_chance", "flipped", "log_law_of_bits", "loss_of_bits"]


def flip_chance(epsilon: float) -> float:
    """Return the probability that a bit is sent as its opposite, 1/(1 + e^epsilon)."""
    return math.exp(-epsilon) / (1 + math.exp(-epsilon))


def loss_of_bits(epsilon: float) -> float:
    """Return the exact loss of one randomised bit: the log ratio of the probabilities that are used."""
    flip = flip_chance(epsilon)
    return settled(math.log1p(-flip) - math.log(flip), epsilon)


def flipped(mechanism: LinkMechanism, neighbours: Neighbours, rng: UniformSource) -> NDArray[np.int64]:
    """Return the codes of the bits that are sent as 1: the true ones, but for a random set of bits that are flipped.

    The set is drawn without looking at any list: nobody's draws depend on what anybody's list holds.
    """
    owners = np.asarray(neighbours.owners, dtype=np.int64)
    chances = np.full(len(owners), flip_chance(mechanism.bit_epsilon))
    rows, where = places(mechanism.sizes(owners), chances, rng)
    # Both are increasing; a code that stands in both is a true link that was flipped.
    both = np.concatenate([mechanism._true_codes(neighbours), mechanism._codes(rows, where, owners)])
    both.sort(kind="stable")
    single = np.ones(len(both), dtype=bool)
    twice = both[1:] == both[:-1]
    single[1:] &= ~twice
    single[:-1] &= ~twice
    return np.asarray(both[single])


def log_law_of_bits(
    mechanism: LinkMechanism, reports: LinkReports, neighbours: Neighbours, log_one: Any, log_zero: Any
) -> Floats:
    """Return, per owner, the log probability of her bits.

    Args:
        mechanism: whose bits these are.
        reports: what was sent.
        neighbours: about which lists.
        log_one: for each owner, the log probabilities that a 1 is sent about a link, and about no link.
        log_zero: the same of a 0.
    """
    true = mechanism._true_codes(neighbours)
    sent = reports.rows() * mechanism.nodes + reports.indices
    count = len(neighbours.owners)

    def per_owner(codes: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.bincount(codes // mechanism.nodes, minlength=count)

    kept = per_owner(np.intersect1d(true, sent, assume_unique=True))
    links, ones = per_owner(true), per_owner(sent)
    empty = mechanism.sizes(neighbours.owners) - links - (ones - kept)
    parts = ((kept, log_one[0]), (ones - kept, log_one[1]), (links - kept, log_zero[0]), (empty, log_zero[1]))
    with np.errstate(invalid="ignore"):
        return np.asarray(sum(np.where(n > 0, n * logs, 0.0) for n, logs in parts))


@register_link("rr")
@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRandomisedResponse(LinkMechanism):
    r"""Every bit of the list is sent as it is with probability e^epsilon/(1 + e^epsilon), and else flipped.

    Formula: P[bit sent | bit] = 1-f if equal, else f, f = 1/(1 + e^epsilon); bits are independent.
    Claim: epsilon-edge-LDP: two lists that differ in one bit give no report more than e^epsilon times as often.
    Estimator: (sent - f)/(1 - 2f) is unbiased for a bit; as a graph, the links that were reported.
    Reference: Warner 1965; on lists of neighbours Qin et al., CCS 2017; Solitude, Lin et al., TIFS 2022.
    Deviations: none in the law. The bits that flip are drawn as a sparse random set, so that time and memory follow
        the reported links and not the square of the people.
    """

    estimators: ClassVar[tuple[str, ...]] = ("reported", "hard", "hybrid", "soft")
    sends_bits: ClassVar[bool] = True

    @property
    def bit_epsilon(self) -> float:
        """The whole budget."""
        return self.epsilon

    @property
    def flip(self) -> float:
        """The probability that a bit is sent as its opposite."""
        return flip_chance(self.bit_epsilon)

    def bit_loss(self) -> float:
        """Return the exact loss of one bit."""
        return loss_of_bits(self.bit_epsilon)

    def degree_loss(self) -> float:
        """Return 0: no degree is sent."""
        return 0.0

    def expected_links(self, links: int = 0) -> float:
        """Return how many links are reported on average by everybody, of a graph with so many."""
        true = links * self.ends
        return true * (1 - self.flip) + (self.bits - true) * self.flip

    def perturb(
        self, neighbours: Neighbours, rng: UniformSource | None = None, *, most: float = MOST_LINKS
    ) -> LinkReports:
        """Return one report for each owner of a list."""
        rng = drawn_from(rng)
        self._check(neighbours, self.flip * float(self.sizes(neighbours.owners).sum()), most)
        return self._sent(neighbours, flipped(self, neighbours, rng))

    def log_law(self, reports: LinkReports, neighbours: Neighbours) -> Floats:
        """Return the log probability of each report given its owner's list."""
        keep, turn = np.log1p(-self.flip), np.log(self.flip)
        return log_law_of_bits(self, reports, neighbours, (keep, turn), (turn, keep))
