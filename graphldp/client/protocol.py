"""From one value to a vector: which dimensions are reported, with which share of the budget.

`sampled` mechanisms report m of d dimensions, chosen without looking at the data, each with epsilon/m; the server
scales by d/m. `every-dimension` mechanisms report all d with epsilon/d each. Every vector mechanism is this protocol
around a scalar randomiser.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphldp.client.randomiser import Claim, Randomiser, build, lookup
from graphldp.client.reports import Reports
from graphldp.client.sampling import check_features, choose, gather, is_sparse, rows
from graphldp.errors import OptionError
from graphldp.randomness import UniformSource

__all__ = ["FILLS", "M_RULES", "VectorMechanism", "best_m", "from_meta", "mechanism", "protocol"]

FILLS = ("mid", "zero")
# The papers' floor rules, as the share of epsilon: LPGNN and UPGNet, PPGNN, TOGL (two of them).
M_RULES = {"optimal": None, "1/2.18": 1 / 2.18, "1/2.2": 1 / 2.2, "2/5": 2 / 5, "5/11": 5 / 11}
_BLOCK = 2**22  # values of a dense report that are drawn at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorMechanism:
    """A local randomiser of one node's feature vector.

    Attributes:
        base: the scalar randomiser that each reported dimension goes through, with its share of the budget.
        epsilon: the budget of the whole report.
        dimensions: how many features a node has (public).
        m: how many of them are reported (public).
        fill: what an unreported dimension counts as: `mid` of the range, or `zero`.
    """

    base: Randomiser
    epsilon: float
    dimensions: int
    m: int
    fill: str = "mid"

    @property
    def name(self) -> str:
        """The registered name."""
        return self.base.name

    @property
    def fill_value(self) -> float:
        """What an unreported dimension counts as, on the data's scale."""
        return (self.base.low + self.base.high) / 2 if self.fill == "mid" else 0.0

    @property
    def claim(self) -> Claim:
        """What the mechanism promises for the whole report."""
        return Claim(epsilon=self.epsilon)

    def privacy_loss(self) -> float:
        """Return the exact loss of the whole report, computed from the law.

        The indices are drawn without looking at the data and m is public, so they and the unreported dimensions cost
        nothing; the m values are independent and a worst case of all of them is one vector, so their losses add up.
        """
        return self.m * self.base.privacy_loss()

    def perturb(self, features: Any, rng: UniformSource) -> Reports:
        """Return one report per node. `features` is n x d, dense or CSR; values are clamped to the range."""
        nodes, _ = check_features(features, self.dimensions)
        if self.base.deterministic:
            index, value = _present(features, self.base, rng)
        elif self.m == self.dimensions:
            index, value = None, self._every_dimension(features, nodes, rng)
        else:
            index = choose(nodes, self.dimensions, self.m, rng)
            value = self.base.sample(gather(features, index), rng)
        return Reports(index=index, value=value, meta=self.meta())

    def _every_dimension(self, features: Any, nodes: int, rng: UniformSource) -> NDArray[Any]:
        out = np.empty((nodes, self.dimensions), dtype=self.base.dtype)
        step = max(1, _BLOCK // max(1, self.dimensions))
        for start in range(0, nodes, step):
            stop = min(nodes, start + step)
            out[start:stop] = self.base.sample(rows(features, start, stop), rng)
        return out

    def meta(self) -> dict[str, Any]:
        """Return the public facts from which `from_meta` builds an equal mechanism."""
        return {
            "mechanism": self.name,
            "options": {**self.base.options(), "fill": self.fill},
            "epsilon": self.epsilon,
            "delta": 0.0,
            "dimensions": self.dimensions,
            "m": self.m,
            "low": self.base.low,
            "high": self.base.high,
            "claim": asdict(self.claim),
        }


def _present(features: Any, base: Randomiser, rng: UniformSource) -> tuple[NDArray[np.int32] | None, NDArray[Any]]:
    """Report the values as they are: all dimensions, or, of sparse features, as many as the fullest node has.

    A node with fewer is filled up with dimensions in which it truly has 0, so that the rows have one length.
    """
    if not is_sparse(features):
        return None, base.sample(features, rng)
    nodes, dimensions = features.shape
    counts = np.diff(features.indptr)
    width = int(counts.max(initial=0))
    if 2 * width > dimensions:
        return None, base.sample(rows(features, 0, nodes), rng)
    index = np.empty((nodes, width), dtype=np.int32)
    for node in range(nodes):
        own = features.indices[features.indptr[node] : features.indptr[node + 1]]
        spare = np.setdiff1d(np.arange(min(dimensions, width + len(own))), own)[: width - len(own)]
        index[node] = np.sort(np.concatenate([own, spare]))
    return index, base.sample(gather(features, index), rng)


def mechanism(name: str, epsilon: float, low: float = -1.0, high: float = 1.0, **options: Any) -> Randomiser:
    """Return the scalar randomiser of that name for values in [low, high]."""
    return build(name, epsilon, low, high, options)


def best_m(name: str, epsilon: float, dimensions: int, rule: str = "optimal", **options: Any) -> int:
    """Return how many dimensions to report.

    `optimal` minimises the worst variance of a coordinate, computed from the scalar law: over m it is
    d/m E[estimate^2 at the end of the range; epsilon/m] up to a constant. The other rules are the papers' floors.
    """
    if rule not in M_RULES:
        raise OptionError(f"m_rule must be one of {', '.join(M_RULES)}; got {rule!r}")
    share = M_RULES[rule]
    if share is not None:
        return max(1, min(dimensions, math.floor(epsilon * share + 1e-12)))
    # The best share epsilon/m of every law here lies above 1/2, and the variance has one minimum.
    most = max(1, min(dimensions, math.ceil(2 * epsilon)))

    def cost(m: int) -> float:
        scalar = build(name, epsilon / m, -1.0, 1.0, options)
        return float(scalar.estimate_variance(1.0) + 1.0) / m

    left, right = 1, most
    while left < right:
        middle = (left + right) // 2
        if cost(middle) <= cost(middle + 1):
            right = middle
        else:
            left = middle + 1
    return left


def protocol(
    name: str, epsilon: float, dimensions: int, low: float = -1.0, high: float = 1.0, m: int | None = None, **options: Any
) -> VectorMechanism:
    """Return the vector mechanism of that name.

    Args:
        name: a registered mechanism.
        epsilon: the budget of one node's whole vector.
        dimensions: how many features a node has.
        low: the public lower end of a feature's range.
        high: the public upper end.
        m: how many dimensions to report; None chooses by `m_rule`.
        options: `fill` (`mid` or `zero`), `m_rule`, and the scalar randomiser's own options.
    """
    fill = options.pop("fill", "mid")
    rule = options.pop("m_rule", "optimal")
    if fill not in FILLS:
        raise OptionError(f"fill must be one of {', '.join(FILLS)}; got {fill!r}")
    if isinstance(dimensions, bool) or not isinstance(dimensions, int | np.integer) or dimensions < 1:
        raise OptionError(f"dimensions must be a whole number of at least 1, got {dimensions!r}")
    cls = lookup(name)
    # One scalar with the whole budget: all options are checked before anything else is computed from them.
    whole = build(name, epsilon, low, high, options)
    if cls.every_dimension:
        if m not in (None, dimensions):
            raise OptionError(f"{name} reports every dimension: m must be left out, or be {dimensions}; got {m}")
        m = dimensions
    elif m is None:
        m = best_m(name, epsilon, dimensions, rule, **options) if 0 < whole.epsilon < math.inf else 1
    if isinstance(m, bool) or not isinstance(m, int | np.integer) or not 1 <= m <= dimensions:
        raise OptionError(f"m must be a whole number from 1 to the {dimensions} dimensions, got {m!r}")
    share = whole.epsilon / m if math.isfinite(whole.epsilon) else whole.epsilon
    if cls.deterministic:
        fill = "zero"
    return VectorMechanism(
        base=build(name, share, low, high, options),
        epsilon=float(whole.epsilon),
        dimensions=int(dimensions),
        m=int(m),
        fill=fill,
    )


def from_meta(meta: dict[str, Any]) -> VectorMechanism:
    """Return the mechanism that a report's metadata describes."""
    return protocol(
        meta["mechanism"],
        float(meta["epsilon"]),
        meta["dimensions"],
        meta["low"],
        meta["high"],
        m=meta["m"],
        **meta["options"],
    )
