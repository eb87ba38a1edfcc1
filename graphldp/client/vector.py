"""The vector mechanism: one node's features in, one report out, with the exact loss of everything that leaves."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphldp.client.randomiser import Floats, Randomiser, check_budget, check_number
from graphldp.client.registry import Claim
from graphldp.client.reports import Reports
from graphldp.client.sampling import check_features
from graphldp.errors import OptionError
from graphldp.randomness import UniformSource, drawn_from

if TYPE_CHECKING:
    from graphldp.client.protocol import Sampled

__all__ = ["FILLS", "VectorMechanism", "check_dimensions", "fill_of", "log_sets", "spread_of"]

FILLS = ("mid", "zero")
_ESTIMATES = 2**20  # values that are estimated at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorMechanism(ABC):
    """A local randomiser of one node's feature vector.

    Attributes:
        epsilon: the nominal budget of the whole report; for personalised mechanisms that of the lowest level.
        dimensions: how many features a node has (public).
        m: how many of them are reported (public); the most, where that depends on a level.
        low, high: the public range of a feature.
        fill: what an unreported dimension counts as: `mid` of the range, or `zero`.
    """

    epsilon: float
    dimensions: int
    m: int
    low: float = -1.0
    high: float = 1.0
    fill: str = "mid"

    name: ClassVar[str]
    kind: ClassVar[str] = "vector"
    option_names: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for number in ("epsilon", "low", "high"):
            object.__setattr__(self, number, check_number(self.name, number, getattr(self, number)))
        if 0 < self.epsilon < math.inf:  # `null` and `identity` have none
            check_budget(self.name, self.epsilon)

    @property
    @abstractmethod
    def base(self) -> Randomiser:
        """The law of one reported value; where users or features differ, that of the lowest level or an even share.

        It suffices for what all of them have in common. Estimates and variances of such mechanisms come from
        `estimate`, `bias` and `variance`.
        """

    @property
    def parts(self) -> tuple[Sampled, ...]:
        """The m-of-d mechanism of each public level, lowest first; a single one where everybody has the same.

        None where a level is hidden, and where the dimensions are not chosen apart from their values.
        """
        return ()

    def scalars(self) -> list[tuple[Randomiser | None, NDArray[np.int64]]]:
        """Return the scalars that everybody's values go through, each with its places in a report.

        A scalar of None draws at random. Of a mechanism whose values hang together, or differ by level, none.
        """
        return []

    def boundary(self) -> float:
        """Return B, the largest deviation from the fill that a rectified report can have, from the law.

        It is d/m times the farthest point of the law's support at the budget epsilon/m of one coordinate (not epsilon);
        where users or levels differ, the largest of theirs.
        """
        raise OptionError(f"{self.name} has no single law of a reported value; give the threshold itself, not tau")

    @property
    def deterministic(self) -> bool:
        """Whether the report is the data itself."""
        return self.base.deterministic

    @property
    def fill_value(self) -> float:
        """What an unreported dimension counts as, on the data's scale."""
        return self.low / 2 + self.high / 2 if self.fill == "mid" else 0.0

    @property
    def delta(self) -> float:
        """The delta of the claim; 0 for pure local differential privacy."""
        return 0.0

    @property
    def budgets(self) -> tuple[float, ...]:
        """The budgets of the privacy levels, lowest first; one where everybody has the same."""
        return (self.epsilon,)

    @property
    def mean_epsilon(self) -> float:
        """The users' mean budget, under the public distribution of the levels."""
        return self.epsilon

    @property
    @abstractmethod
    def claim(self) -> Claim:
        """What the mechanism promises for the whole report."""

    @property
    def keeps_claim(self) -> bool:
        """Whether the exact loss of the law stays within the claim."""
        return self.claim.keeps

    @abstractmethod
    def privacy_loss(self) -> float:
        """Return the exact loss of everything that leaves the device, computed from the law (at `delta`)."""

    def perturb(self, features: Any, rng: UniformSource | None = None, level: ArrayLike | None = None) -> Reports:
        """Return one report per node. `features` is n x d, dense or CSR; values are clamped to the range.

        Args:
            features: the nodes' feature vectors; what a CSR matrix stores twice for a place is summed.
            rng: a numpy Generator, or the secure source for real people's data.
            level: each node's privacy level, 1 to the number of levels, for personalised mechanisms; None draws them
                from the mechanism's public distribution.
        """
        rng = drawn_from(rng)
        features = check_features(features, self.dimensions)
        return self._perturb(features, int(features.shape[0]), rng, level)

    @abstractmethod
    def _perturb(self, features: Any, nodes: int, rng: UniformSource, level: ArrayLike | None) -> Reports: ...

    def unfold(self, reports: Reports) -> Reports:
        """Return the reports by dimension, as a server reads them: what was sent, for all mechanisms but hashes."""
        return reports

    def estimate(self, reports: Reports) -> NDArray[np.float32]:
        """Return the server's estimate at the reported coordinates, n x m; unused places hold the fill.

        Reports are those by dimension, as `unfold` gives them.
        """
        out = np.empty(reports.value.shape, dtype=np.float32)
        step = max(1, _ESTIMATES // max(1, reports.m))
        for start in range(0, reports.nodes, step):
            part = slice(start, start + step)
            index = None if reports.index is None else reports.index[part]
            level = None if reports.level is None else reports.level[part]
            out[part] = self._estimate(np.asarray(reports.value[part]), index, level)
        if reports.index is not None:
            out[np.asarray(reports.index) < 0] = self.fill_value
        return out

    @abstractmethod
    def _estimate(self, value: NDArray[Any], index: NDArray[Any] | None, level: NDArray[Any] | None) -> Floats: ...

    @abstractmethod
    def bias(self, x: ArrayLike) -> Floats:
        """Return the mean of one coordinate's estimate minus its value x."""

    @abstractmethod
    def variance(self, x: ArrayLike) -> Floats:
        """Return the variance of one coordinate's estimate given its value x, over sampling and noise."""

    @abstractmethod
    def report_bits(self) -> float:
        """Return how many bits one report takes when its indices and values are coded without waste (at most)."""

    @abstractmethod
    def options(self) -> dict[str, Any]:
        """Return the options from which `protocol` builds an equal mechanism, as JSON-able values."""

    def meta(self) -> dict[str, Any]:
        """Return the public facts from which `from_meta` builds an equal mechanism."""
        out = {
            "mechanism": self.name,
            "options": self.options(),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "dimensions": self.dimensions,
            "m": self.m,
            "low": self.low,
            "high": self.high,
            "claim": asdict(self.claim),
        }
        if len(self.budgets) > 1:
            out |= {"budgets": list(self.budgets), "epsilon_mean": self.mean_epsilon, "epsilon_max": self.claim.epsilon}
        return out


def log_sets(dimensions: int, m: int) -> float:
    """Return the base-2 logarithm of the number of m-sets of the dimensions."""
    log = math.lgamma(dimensions + 1) - math.lgamma(m + 1) - math.lgamma(dimensions - m + 1)
    return max(0.0, log / math.log(2))


def check_dimensions(dimensions: Any) -> int:
    """Refuse anything but a whole number of at least 1."""
    if isinstance(dimensions, bool) or not isinstance(dimensions, int | np.integer) or dimensions < 1:
        raise OptionError(f"dimensions must be a whole number of at least 1, got {dimensions!r}")
    return int(dimensions)


def fill_of(fill: Any) -> str:
    """Refuse an unknown fill."""
    if fill not in FILLS:
        raise OptionError(f"fill must be one of {', '.join(FILLS)}; got {fill!r}")
    return str(fill)


def spread_of(mean: Floats, variance: Floats, fill: float, share: float, weight: float) -> tuple[Floats, Floats]:
    """Return mean and variance of fill + weight (estimate - fill) where reported (probability share), fill elsewhere.

    Args:
        mean: the mean of the estimate of a reported coordinate.
        variance: its variance.
        fill: what an unreported coordinate counts as.
        share: the probability of being reported.
        weight: what a reported deviation is multiplied by.
    """
    square = variance + (mean - fill) ** 2
    centre = weight * share * (mean - fill)
    return fill + centre, weight**2 * share * square - centre**2
