"""Laplace noise on every bit of a list of neighbours: a number for everybody else, sent by everybody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from graphldp.client.links.base import MOST_LINKS, LinkMechanism, LinkReports, Neighbours, register_link
from graphldp.client.mechanisms.lp import Laplace
from graphldp.client.randomiser import Floats
from graphldp.randomness import UniformSource, drawn_from

__all__ = ["LaplaceBits"]


@register_link("laplace-bits")
@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceBits(LinkMechanism):
    r"""Every bit plus Laplace noise of scale 1/epsilon: a number for every other person.

    Formula: y = bit + Lap(1/epsilon), rounded to a public grid; numbers are independent.
    Claim: epsilon-edge-LDP: a bit moves one number's mean by 1.
    Estimator: the server keeps the round(sum) pairs with the largest numbers, of the mean of both ends' if both report.
    Reference: L-DPGCN's noise, in a local form; Wu et al., LinkTeller, S&P 2022, name the central one LapGraph.
    Deviations: rounded to a public grid, and bounded, as `lp` is. Of one bit randomised response tells the server more
        at the same epsilon: kept as a comparison. Reports grow with the square of the people, whatever epsilon is.

    Attributes:
        grid: the spacing of the numbers, in halves; None chooses one that costs no utility.
    """

    grid: float | None = None

    option_names: ClassVar[tuple[str, ...]] = ("grid",)
    what: ClassVar[str] = "numbers"
    estimators: ClassVar[tuple[str, ...]] = ("top-k",)

    def __post_init__(self) -> None:
        LinkMechanism.__post_init__(self)
        _ = self.noise  # checks the grid

    @property
    def noise(self) -> Laplace:
        """The law of one number."""
        return Laplace(epsilon=self.epsilon, low=0.0, high=1.0, grid=self.grid)

    @property
    def bit_epsilon(self) -> float:
        """The whole budget."""
        return self.epsilon

    def bit_loss(self) -> float:
        """Return the exact loss of one number on its grid."""
        return self.noise.privacy_loss()

    def degree_loss(self) -> float:
        """Return 0: no degree is sent."""
        return 0.0

    def expected_links(self, links: int = 0) -> float:
        """Return how many numbers are sent by everybody: one for each bit."""
        return float(self.bits)

    def report_bits(self) -> float:
        """Return how many bits a report on everybody else takes: the logarithm of the grid's points for each."""
        return float((self.nodes - 1) * np.log2(self.noise.outputs))

    def perturb(
        self, neighbours: Neighbours, rng: UniformSource | None = None, *, most: float = MOST_LINKS
    ) -> LinkReports:
        """Return one report for each owner of a list."""
        rng = drawn_from(rng)
        owners = np.asarray(neighbours.owners, dtype=np.int64)
        sizes = self.sizes(owners)
        total = int(sizes.sum())
        self._check(neighbours, float(total), most)
        ends = np.concatenate([[0], np.cumsum(sizes)])
        rows = np.repeat(np.arange(len(owners)), sizes)
        codes = self._codes(rows, np.arange(total) - ends[rows], owners)
        bits = np.zeros(total)
        bits[np.searchsorted(codes, self._true_codes(neighbours))] = 1.0
        return self._sent(neighbours, codes, value=self.noise.sample(bits, rng))

    def log_law(self, reports: LinkReports, neighbours: Neighbours) -> Floats:
        """Return the log probability of each report given its owner's list."""
        assert reports.value is not None
        rows = reports.rows()
        codes = rows * self.nodes + reports.indices
        bits = np.isin(codes, self._true_codes(neighbours), assume_unique=True).astype(np.float64)
        with np.errstate(divide="ignore"):
            logs = np.log(self.noise.pmf(reports.value, bits))
        return np.asarray(np.bincount(rows, weights=logs, minlength=len(reports.owners)))
