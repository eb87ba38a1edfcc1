"""BLINK's device: a noisy degree, and randomised response of every bit, which share the budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from graphldp.client.links.base import MOST_LINKS, LinkReports, Neighbours, WithDegree, register_link
from graphldp.client.links.draws import discrete_laplace, log_discrete_laplace
from graphldp.client.links.rr import flip_chance, flipped, log_law_of_bits, loss_of_bits
from graphldp.client.randomiser import Floats
from graphldp.randomness import UniformSource, drawn_from

__all__ = ["Blink"]


@register_link("blink")
@dataclass(frozen=True, slots=True, kw_only=True)
class Blink(WithDegree):
    r"""A noisy degree with a share of the budget, and randomised response of every bit with the rest.

    Formula: d + k, P[k] = (1-r)/(1+r) r^|k|, r = e^-epsilon_d, epsilon_d = degree_share epsilon; every bit as in `rr`
        with epsilon - epsilon_d.
    Claim: epsilon-edge-LDP: a bit moves the degree by 1, and both releases add up. A relationship is in both ends'
        degrees whatever `report` says: 2 epsilon_d + epsilon_b with `lower`, 2 epsilon with `both`.
    Estimator: the server fits the beta-model to the degrees and takes the links' posterior (`graphldp.server.links`).
    Reference: Zhu, Tan, Xiao, BLINK: Link Local Differential Privacy in Graph Neural Networks via Bayesian Estimation,
        CCS 2023.
    Deviations: the degree's noise is whole-numbered, so that no rounding weakens it. A share of 0.1 unless given; the
        published one is searched for each data set.
    """

    estimators: ClassVar[tuple[str, ...]] = ("hybrid", "hard", "soft", "reported")
    sends_bits: ClassVar[bool] = True

    def bit_loss(self) -> float:
        """Return the exact loss of one bit's randomised response."""
        return loss_of_bits(self.bit_epsilon)

    @property
    def flip(self) -> float:
        """The probability that a bit is sent as its opposite."""
        return flip_chance(self.bit_epsilon)

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
        degree = neighbours.degrees + discrete_laplace(self.degree_epsilon, len(neighbours.owners), rng)
        return self._sent(neighbours, flipped(self, neighbours, rng), degree=degree)

    def log_law(self, reports: LinkReports, neighbours: Neighbours) -> Floats:
        """Return the log probability of each report given its owner's list."""
        keep, turn = np.log1p(-self.flip), np.log(self.flip)
        bits = log_law_of_bits(self, reports, neighbours, (keep, turn), (turn, keep))
        assert reports.degree is not None
        return np.asarray(bits + log_discrete_laplace(self.degree_epsilon, reports.degree - neighbours.degrees))
