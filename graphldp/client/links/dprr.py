"""Degree-preserving randomised response: what randomised response reports is thinned to the noisy degree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from graphldp.client.draws import uniform
from graphldp.client.links.base import MOST_LINKS, LinkReports, Neighbours, WithDegree, register_link
from graphldp.client.links.draws import discrete_laplace, log_discrete_laplace, places
from graphldp.client.links.rr import flip_chance, log_law_of_bits, loss_of_bits
from graphldp.client.randomiser import Floats
from graphldp.randomness import UniformSource, drawn_from

__all__ = ["DegreePreserving"]

_FAR = 2**20  # a noisy degree farther off than this is not looked at where a mean is taken


@register_link("dprr")
@dataclass(frozen=True, slots=True, kw_only=True)
class DegreePreserving(WithDegree):
    r"""A noisy degree, and randomised response whose ones are thinned so that as many links are reported as it says.

    Formula: d~ = d + k as in `blink`; q = clip(d~/(d~ (2p-1) + (n-1)(1-p)), 0, 1), p = e^epsilon_b/(1 + e^epsilon_b);
        a bit is sent as 1 with probability p q where it is 1, and (1-p) q where it is 0.
    Claim: epsilon-edge-LDP: given the noisy degree, of budget epsilon_d, thinning is post-processing of `rr` with
        epsilon_b. A relationship loses 2 epsilon_d + epsilon_b with `lower`, 2 epsilon with `both`.
    Estimator: the reported links as a graph: the mean number that a person reports, of n - 1 bits, is d~ for d = d~.
    Reference: Hidano and Murakami, Degree-Preserving Randomized Response for Graph Neural Networks under Local
        Differential Privacy, 2022; budget split 0.1 and 0.9.
    Deviations: the degree's noise is whole-numbered, and the noisy degree is sent, too: its budget is spent either way,
        and the loss of what is sent is exact.
    """

    estimators: ClassVar[tuple[str, ...]] = ("reported",)

    def bit_loss(self) -> float:
        """Return the exact loss of one bit given the degree: that of a 1, which thinning leaves as it is."""
        return loss_of_bits(self.bit_epsilon)

    def keeping(self, degree: NDArray[np.int64]) -> Floats:
        """Return q for these noisy degrees: the probability that a reported 1 is kept."""
        flip = flip_chance(self.bit_epsilon)
        d = np.clip(np.asarray(degree, dtype=np.float64), 0, None)
        return np.asarray(np.clip(d / (d * (1 - 2 * flip) + (self.nodes - 1) * flip), 0.0, 1.0))

    def expected_links(self, links: int = 0) -> float:
        """Return how many links are reported on average by everybody, of a graph with so many, all degrees alike."""
        flip, degree = flip_chance(self.bit_epsilon), round(2 * links / self.nodes)
        reach = min(_FAR, int(40 / self.degree_epsilon) + 1)
        noise = np.arange(-reach, reach + 1)
        chance = np.exp(log_discrete_laplace(self.degree_epsilon, noise))
        each = float(chance @ self.keeping(degree + noise)) * (degree * (1 - flip) + (self.nodes - 1 - degree) * flip)
        return each * self.nodes * self.ends / 2

    def perturb(
        self, neighbours: Neighbours, rng: UniformSource | None = None, *, most: float = MOST_LINKS
    ) -> LinkReports:
        """Return one report for each owner of a list."""
        rng = drawn_from(rng)
        flip, owners = flip_chance(self.bit_epsilon), np.asarray(neighbours.owners, dtype=np.int64)
        self._check(neighbours, 0.0, most)
        degree = neighbours.degrees + discrete_laplace(self.degree_epsilon, len(owners), rng)
        keep, sizes = self.keeping(degree), self.sizes(owners)
        self._check(neighbours, float(sizes @ (keep * flip)), most)
        rows, where = places(sizes, keep * flip, rng)
        false = self._codes(rows, where, owners)
        true = self._true_codes(neighbours)
        # Drawn for everybody alike above; what falls on a true link is replaced by that link's own draw.
        place = np.searchsorted(true, false)
        off = np.ones(len(false), dtype=bool)
        inside = place < len(true)
        off[inside] = true[place[inside]] != false[inside]
        kept = true[uniform(rng, len(true)) < (1 - flip) * keep[true // self.nodes]]
        codes = np.concatenate([kept, false[off]])
        codes.sort(kind="stable")
        return self._sent(neighbours, codes, degree=degree)

    def log_law(self, reports: LinkReports, neighbours: Neighbours) -> Floats:
        """Return the log probability of each report given its owner's list."""
        assert reports.degree is not None
        flip, keep = flip_chance(self.bit_epsilon), self.keeping(reports.degree)
        with np.errstate(divide="ignore"):
            one = (np.log1p(-flip) + np.log(keep), np.log(flip) + np.log(keep))
        # 1 - p q without the difference of two numbers next to 1.
        zero = (np.log((1 - keep) + keep * flip), np.log1p(-flip * keep))
        bits = log_law_of_bits(self, reports, neighbours, one, zero)
        return np.asarray(bits + log_discrete_laplace(self.degree_epsilon, reports.degree - neighbours.degrees))
