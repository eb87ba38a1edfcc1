"""The second round of task-oriented perturbation: some dimensions that everybody reports, and some at random.

The server has named the dimensions that matter (from the first round's reports, so naming them is public); a device
reports those and draws the others itself, without looking at its data.

    first_round(...)    half the budget, m random dimensions
    second_round(...)   the other half, m* fixed dimensions and m - m* random ones
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphldp.client.protocol import VectorMechanism, best_m, protocol
from graphldp.client.reports import Reports
from graphldp.client.sampling import check_features, choose, gather
from graphldp.errors import OptionError
from graphldp.randomness import UniformSource

__all__ = ["M_FROM", "DirectedMechanism", "directed_from_meta", "first_round", "fixed_count", "second_round"]

M_FROM = ("round", "total")


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectedMechanism:
    """A local randomiser that reports named dimensions and random others.

    Claim: epsilon-LDP for one node's whole feature vector, epsilon being `device.epsilon`: m coordinates with
        epsilon/m each; which ones depends on the names, which are public, and on chance, and never on the data.
    Estimator: Horvitz-Thompson, each value by its own inclusion probability; the reports' d/m is wrong here.
    Reference: TOGL, Eq. 8. Deviations: the paper rectifies by d/m.

    Attributes:
        device: the m-of-d protocol whose m values are reported, with this round's budget.
        fixed: the dimensions that everybody reports, increasing.
    """

    device: VectorMechanism
    fixed: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        d, m = self.device.dimensions, self.device.m
        if self.device.base.every_dimension:
            raise OptionError(f"{self.device.name} reports every dimension: there is nothing to direct; choose another")
        if any(isinstance(j, bool) or not isinstance(j, int | np.integer) or not 0 <= j < d for j in self.fixed):
            raise OptionError(f"fixed dimensions must be whole numbers from 0 to {d - 1}, got {self.fixed}")
        if list(self.fixed) != sorted(set(self.fixed)):
            raise OptionError(f"fixed dimensions must be increasing and distinct, got {self.fixed}")
        if len(self.fixed) > m:
            raise OptionError(f"{len(self.fixed)} fixed dimensions do not fit into the m = {m} that a device reports")

    @property
    def epsilon(self) -> float:
        """The budget of this round."""
        return self.device.epsilon

    def inclusion(self) -> NDArray[np.float64]:
        """Return each dimension's probability of being reported: 1 if fixed, (m - m*)/(d - m*) else."""
        d, m, fixed = self.device.dimensions, self.device.m, len(self.fixed)
        out = np.full(d, (m - fixed) / max(1, d - fixed))
        out[list(self.fixed)] = 1.0
        return out

    def privacy_loss(self) -> float:
        """Return the exact loss of the whole report, computed from the law of its m independent values."""
        return self.device.privacy_loss()

    def index(self, nodes: int, rng: UniformSource) -> NDArray[np.int32]:
        """Return the dimensions that each node reports, increasing; they depend on no data."""
        fixed = np.asarray(self.fixed, dtype=np.int32)
        others = np.setdiff1d(np.arange(self.device.dimensions, dtype=np.int32), fixed)
        drawn = self.device.m - len(fixed)
        random = others[choose(nodes, len(others), drawn, rng)] if drawn else np.empty((nodes, 0), np.int32)
        both = np.concatenate([np.broadcast_to(fixed, (nodes, len(fixed))), random], axis=1)
        return np.sort(both, axis=1)

    def perturb(self, features: Any, rng: UniformSource) -> Reports:
        """Return one report per node. `features` is n x d, dense or CSR; values are clamped to the range."""
        nodes, _ = check_features(features, self.device.dimensions)
        index = self.index(nodes, rng)
        return Reports(index=index, value=self.device.base.sample(gather(features, index), rng), meta=self.meta())

    def meta(self) -> dict[str, Any]:
        """Return the public facts from which `directed_from_meta` builds an equal mechanism.

        The fixed dimensions stand among the mechanism's options, so that a server which does not know of directed
        reports refuses them, rather than rectifying all of them by d/m.
        """
        meta = self.device.meta()
        options = {**meta["options"], "fixed": [int(j) for j in self.fixed]}
        return {**meta, "options": options, "claim": asdict(self.device.claim)}


def directed_from_meta(meta: Mapping[str, Any]) -> DirectedMechanism:
    """Return the mechanism that a directed report's metadata describes."""
    options = dict(meta["options"])
    if "fixed" not in options:
        raise OptionError("these reports name no fixed dimensions: they are a first round's, not a directed one's")
    fixed = tuple(int(j) for j in options.pop("fixed"))
    device = protocol(
        meta["mechanism"],
        float(meta["epsilon"]),
        meta["dimensions"],
        meta["low"],
        meta["high"],
        m=meta["m"],
        **options,
    )
    return DirectedMechanism(device=device, fixed=fixed)


def fixed_count(rho: float, m: int) -> int:
    """Return m* = floor(rho m): how many dimensions are fixed."""
    if not 0 <= rho <= 1:
        raise OptionError(f"rho (the share of fixed dimensions) must be from 0 to 1, got {rho}")
    return math.floor(rho * m + 1e-12)


def _halves(epsilon: float, first: float) -> tuple[float, float]:
    if not 0 < epsilon < math.inf:
        raise OptionError(f"two rounds need a finite budget above 0, got {epsilon}")
    if not 0 < first < 1:
        raise OptionError(f"first (the first round's share of the budget) must be between 0 and 1, got {first}")
    return first * epsilon, epsilon - first * epsilon


def _round(
    name: str,
    budget: float,
    epsilon: float,
    dimensions: int,
    low: float,
    high: float,
    m_from: str,
    options: Mapping[str, Any],
) -> VectorMechanism:
    if m_from not in M_FROM:
        raise OptionError(f"m_from must be one of {', '.join(M_FROM)}; got {m_from!r}")
    rest = {key: value for key, value in options.items() if key != "m"}
    m = options.get("m")
    if m is None and m_from == "total":
        scalar = {key: value for key, value in rest.items() if key not in ("fill", "m_rule")}
        m = best_m(name, epsilon, dimensions, rest.get("m_rule", "optimal"), **scalar)
    return protocol(name, budget, dimensions, low, high, m=m, **rest)


def first_round(
    name: str,
    epsilon: float,
    dimensions: int,
    low: float = -1.0,
    high: float = 1.0,
    *,
    first: float = 0.5,
    m_from: str = "round",
    **options: Any,
) -> VectorMechanism:
    """Return the first round's mechanism: the m-of-d protocol with the share `first` of the budget.

    `m_from` says which budget m is chosen from: this `round`'s, which has the smaller variance, or the `total`, as in
    the paper's experiments (a device then reports more dimensions, each with a smaller share; the budget is the same).
    """
    budget, _ = _halves(epsilon, first)
    return _round(name, budget, epsilon, dimensions, low, high, m_from, options)


def second_round(
    name: str,
    epsilon: float,
    dimensions: int,
    low: float = -1.0,
    high: float = 1.0,
    *,
    ranking: Sequence[int],
    rho: float = 0.5,
    first: float = 0.5,
    m_from: str = "round",
    **options: Any,
) -> DirectedMechanism:
    """Return the second round's mechanism: the best m* = floor(rho m) of the ranking, and m - m* others at random."""
    _, budget = _halves(epsilon, first)
    device = _round(name, budget, epsilon, dimensions, low, high, m_from, options)
    count = fixed_count(rho, device.m)
    if len(ranking) < count:
        raise OptionError(f"the ranking names {len(ranking)} dimensions, {count} are needed")
    return DirectedMechanism(device=device, fixed=tuple(sorted(int(j) for j in ranking[:count])))
