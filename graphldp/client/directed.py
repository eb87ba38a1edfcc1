"""The second round of task-oriented perturbation: some dimensions that everybody reports, and some at random.

The server has ranked the dimensions by the first round's reports and published the ranking; a device reports the best
of them and draws others itself, without looking at its data.

first_round(...)    a share of the budget, m random dimensions
second_round(...)   the rest of the budget, m* = floor(rho m) dimensions of the ranking and m - m* random others
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphldp.client.levels import Personalised, padded
from graphldp.client.protocol import Sampled, protocol
from graphldp.client.randomiser import Floats, check_number
from graphldp.client.registry import Claim
from graphldp.client.reports import Reports
from graphldp.client.sampling import check_features, choose, gather
from graphldp.client.vector import VectorMechanism
from graphldp.errors import OptionError
from graphldp.randomness import UniformSource, drawn_from

__all__ = ["M_FROM", "DirectedMechanism", "directed_from_meta", "first_round", "second_round"]

M_FROM = ("round", "total")


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectedMechanism:
    r"""A local randomiser that reports ranked dimensions and random others.

    Formula: S = the first m* = floor(rho m) of the ranking, and m - m* of the other dimensions, uniformly; each of the
        m values goes through the device's scalar with epsilon/m.
    Claim: that of the device: epsilon-LDP for one node's feature vector. S depends on the ranking, which is public, on
        the public level where there are levels, and on chance, and never on the data.
    Estimator: Horvitz-Thompson: fill + (estimate - fill) / P[j in S], 1 for ranked dimensions and (m-m*)/(d-m*) for
        the others; unbiased where that is not 0. `graphldp.server.rectify_directed` computes it.
    Reference: TOGL, Eq. 8. Deviations: the paper's RECT multiplies by d/m, which is wrong here.

    Attributes:
        device: the protocol whose m values are reported, with this round's budget: an m-of-d one, or `ppm-public` and
            `pldp`, whose users report as many as their public levels allow.
        ranking: the dimensions by what the server makes of them, the best first.
        rho: the share of the reported dimensions that is taken from the ranking.
    """

    device: VectorMechanism
    ranking: tuple[int, ...]
    rho: float

    def __post_init__(self) -> None:
        d = self.device.dimensions
        if not self.device.parts:
            why = (
                "users of a known level do not choose dimensions alike"
                if isinstance(self.device, Personalised)
                else "which dimensions it reports is not chosen apart from their values"
            )
            raise OptionError(
                f"{self.device.name} cannot be directed: {why}; take an m-of-d mechanism such as pm, mb, sw or "
                "cldp, or ppm-public or pldp"
            )
        if self.device.base.every_dimension:
            raise OptionError(f"{self.device.name} reports every dimension: there is nothing to direct; take pm or mb")
        check_number("second round", "rho", self.rho)
        if not 0 <= self.rho <= 1:
            raise OptionError(f"rho (the share of ranked dimensions) must be from 0 to 1, got {self.rho}")
        if any(isinstance(j, bool) or not isinstance(j, int | np.integer) or not 0 <= j < d for j in self.ranking):
            raise OptionError(f"a ranking must hold whole numbers from 0 to {d - 1}, got {self.ranking}")
        if len(set(self.ranking)) != len(self.ranking):
            raise OptionError(f"a ranking must name no dimension twice, got {self.ranking}")
        need = max(self.fixed_count(level) for level in range(1, len(self.parts) + 1))
        if len(self.ranking) < need:
            raise OptionError(f"the ranking names {len(self.ranking)} dimensions, {need} are needed")

    @property
    def parts(self) -> tuple[Sampled, ...]:
        """The m-of-d mechanism of each level, lowest first; one where everybody has the same."""
        return self.device.parts

    @property
    def epsilon(self) -> float:
        """The budget of this round; of the lowest level where there are levels."""
        return self.device.epsilon

    @property
    def claim(self) -> Claim:
        """What the mechanism promises for the whole report."""
        return self.device.claim

    def privacy_loss(self) -> float:
        """Return the exact loss of the whole report, computed from the law of its independent values."""
        return self.device.privacy_loss()

    def fixed_count(self, level: int = 1) -> int:
        """Return m* = floor(rho m) of a level."""
        return math.floor(self.rho * self.parts[level - 1].m + 1e-12)

    def fixed(self, level: int = 1) -> tuple[int, ...]:
        """Return the dimensions that everybody of a level reports, increasing."""
        return tuple(sorted(int(j) for j in self.ranking[: self.fixed_count(level)]))

    def inclusion(self, level: int = 1) -> Floats:
        """Return each dimension's probability of being reported: 1 if fixed, (m - m*)/(d - m*) else."""
        d, m, fixed = self.device.dimensions, self.parts[level - 1].m, self.fixed(level)
        out = np.full(d, (m - len(fixed)) / max(1, d - len(fixed)))
        out[list(fixed)] = 1.0
        return out

    def index(self, nodes: int, rng: UniformSource, level: int = 1) -> NDArray[np.int32]:
        """Return the dimensions that each node of a level reports, increasing; they depend on no data."""
        fixed = np.asarray(self.fixed(level), dtype=np.int32)
        others = np.setdiff1d(np.arange(self.device.dimensions, dtype=np.int32), fixed)
        drawn = self.parts[level - 1].m - len(fixed)
        random = others[choose(nodes, len(others), drawn, rng)] if drawn else np.empty((nodes, 0), np.int32)
        both = np.concatenate([np.broadcast_to(fixed, (nodes, len(fixed))), random], axis=1)
        return np.sort(both, axis=1)

    def perturb(self, features: Any, rng: UniformSource | None = None, level: ArrayLike | None = None) -> Reports:
        """Return one report per node. `features` is n x d, dense or CSR; values are clamped to the range.

        `level` is each node's public privacy level, for devices that have levels: the same as in the first round.
        """
        rng = drawn_from(rng)
        features = check_features(features, self.device.dimensions)
        nodes = int(features.shape[0])
        if isinstance(self.device, Personalised):
            if level is None:
                raise OptionError("the second round needs the levels of the first: give them as level")
            true = self.device.assign(nodes, rng, level)
        elif level is not None:
            raise OptionError(f"{self.device.name} has no privacy levels: leave level out")
        else:
            true = np.ones(nodes, dtype=np.int32)
        found = []
        for number, part in enumerate(self.parts, start=1):
            members = np.flatnonzero(true == number)
            chosen = self.index(len(members), rng, number)
            found.append((members, chosen, part.base.sample(gather(features, chosen, members), rng)))
        index, value = padded(nodes, self.device.m, found, self.device.base.dtype)
        sent = true if isinstance(self.device, Personalised) else None
        return Reports(index=index, value=value, level=sent, meta=self.meta())

    def meta(self) -> dict[str, Any]:
        """Return the public facts from which `directed_from_meta` builds an equal mechanism.

        The ranking stands among the mechanism's options, so that a server which does not know of directed reports
        refuses them, rather than rectifying all of them by d/m.
        """
        meta = self.device.meta()
        most = max(self.fixed_count(level) for level in range(1, len(self.parts) + 1))
        used = [int(j) for j in self.ranking[:most]]
        return {**meta, "options": {**meta["options"], "ranking": used, "rho": float(self.rho)}}


def directed_from_meta(meta: Mapping[str, Any]) -> DirectedMechanism:
    """Return the mechanism that a directed report's metadata describes."""
    options = dict(meta["options"])
    if "ranking" not in options:
        raise OptionError("these reports name no ranking: they are a first round's, not a directed one's")
    ranking, rho = tuple(int(j) for j in options.pop("ranking")), float(options.pop("rho"))
    device = protocol(
        meta["mechanism"],
        float(meta["epsilon"]),
        meta["dimensions"],
        meta["low"],
        meta["high"],
        m=meta["m"],
        **options,
    )
    return DirectedMechanism(device=device, ranking=ranking, rho=rho)


def _shares(epsilon: float, first: float) -> tuple[float, float]:
    check_number("two rounds", "epsilon", epsilon)
    if not 0 < epsilon < math.inf:
        raise OptionError(f"two rounds need a finite budget above 0, got {epsilon}")
    if not 0 < first < 1:
        raise OptionError(f"first (the first round's share of the budget) must be between 0 and 1, got {first}")
    return first * epsilon, epsilon - first * epsilon


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    name: str
    dimensions: int
    low: float
    high: float
    options: Mapping[str, Any]

    def device(self, budget: float, epsilon: float, m_from: str) -> VectorMechanism:
        """Return the protocol with the round's budget; m is chosen from it, or from the total."""
        if m_from not in M_FROM:
            raise OptionError(f"m_from must be one of {', '.join(M_FROM)}; got {m_from!r}")
        options = dict(self.options)
        if m_from == "total" and options.get("m") is None:
            whole = protocol(self.name, epsilon, self.dimensions, self.low, self.high, **options)
            if isinstance(whole, Personalised):
                raise OptionError(f"{self.name}: m follows from each level's budget; use m_from 'round'")
            options["m"] = whole.m
        return protocol(self.name, budget, self.dimensions, self.low, self.high, **options)


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
    budget, _ = _shares(epsilon, first)
    return _Request(name=name, dimensions=dimensions, low=low, high=high, options=options).device(
        budget, epsilon, m_from
    )


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
    """Return the second round's mechanism: m* = floor(rho m) dimensions of the ranking, and m - m* others at random.

    Its budget is what the first round left. Where m is 1 and rho below 1, m* is 0 and nothing is directed.
    """
    _, budget = _shares(epsilon, first)
    request = _Request(name=name, dimensions=dimensions, low=low, high=high, options=options)
    return DirectedMechanism(
        device=request.device(budget, epsilon, m_from), ranking=tuple(int(j) for j in ranking), rho=rho
    )
