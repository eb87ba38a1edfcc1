"""Calibration: threshold, filter, threshold.

    soft(., before)  ->  sum_k theta_k S^k  ->  soft(., after)

with S a normalised adjacency of the public graph. A calibration is only described here; the learner applies it in
the cheapest order that gives the same result, and `apply` materialises it for people who want the embedding itself.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphldp.errors import OptionError
from graphldp.graph import Graph
from graphldp.server.estimate import Estimate

__all__ = ["NORMALIZATIONS", "Calibration", "apply", "kprop", "shift", "soft"]

NORMALIZATIONS = ("symmetric", "mean")


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What the server does with the estimates before it learns from them.

    Attributes:
        coefficients: theta_0, theta_1, ...: the filter is sum_k theta_k S^k. (1,) leaves the estimates as they are.
        normalization: of the adjacency: `symmetric`, D^-1/2 A D^-1/2, or `mean`, D^-1 A.
        self_loops: whether every node is also its own neighbour.
        before: soft threshold on the estimates' deviations from the fill.
        after: soft threshold on the filtered values' deviations from the filtered fill.
    """

    coefficients: tuple[float, ...] = (1.0,)
    normalization: str = "symmetric"
    self_loops: bool = False
    before: float = 0.0
    after: float = 0.0

    def __post_init__(self) -> None:
        if not self.coefficients or not all(np.isfinite(self.coefficients)):
            raise OptionError(f"coefficients must be at least one finite number, got {self.coefficients}")
        if self.normalization not in NORMALIZATIONS:
            raise OptionError(f"normalization must be one of {', '.join(NORMALIZATIONS)}; got {self.normalization!r}")
        for name in ("before", "after"):
            if not 0 <= getattr(self, name) < np.inf:
                raise OptionError(f"{name} must be a threshold of at least 0, got {getattr(self, name)}")

    def meta(self) -> dict[str, Any]:
        """Return the description as JSON-able values."""
        return asdict(self)


def kprop(steps: int, **options: Any) -> Calibration:
    """Return LPGNN's KProp: the sum aggregation S^K, all weight on the last power. K = 0 leaves the estimates alone."""
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 0:
        raise OptionError(f"steps must be a whole number of at least 0, got {steps!r}")
    return Calibration(coefficients=(0.0,) * int(steps) + (1.0,), **options)


def shift(graph: Graph, normalization: str = "symmetric", self_loops: bool = False) -> sp.csr_array:
    """Return S, float32. A node without neighbours has an empty row: nothing reaches it."""
    if normalization not in NORMALIZATIONS:
        raise OptionError(f"normalization must be one of {', '.join(NORMALIZATIONS)}; got {normalization!r}")
    adjacency = graph.adjacency()
    if self_loops:
        adjacency = sp.csr_array(adjacency + sp.eye_array(graph.nodes, dtype=np.float32, format="csr"))
    degree = np.asarray(adjacency.sum(axis=1), dtype=np.float64).reshape(-1)
    inverse = np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0)
    owners = np.repeat(np.arange(graph.nodes), np.diff(adjacency.indptr))
    if normalization == "symmetric":
        root = np.sqrt(inverse)
        weights = root[owners] * root[adjacency.indices]
    else:
        weights = inverse[owners]
    out = sp.csr_array((weights.astype(np.float32), adjacency.indices, adjacency.indptr), shape=adjacency.shape)
    out.sort_indices()
    return out


def soft(values: NDArray[Any], threshold: float) -> NDArray[Any]:
    """Return sign(v) max(|v| - threshold, 0)."""
    return np.asarray(np.sign(values) * np.maximum(np.abs(values) - threshold, 0), dtype=values.dtype)


def apply(estimate: Estimate, calibration: Calibration, operator: sp.csr_array) -> NDArray[np.float32]:
    """Return the calibrated features as a dense n x d array.

    The fill is constant over a row, so it is filtered once as one column; the thresholds act on deviations from it,
    not on the fill itself.
    """
    deviations = estimate.deviations()
    deviations.data = soft(deviations.data, calibration.before)
    power: Any = deviations
    level = np.full(operator.shape[0], estimate.fill, dtype=np.float32)
    total = np.zeros(deviations.shape, dtype=np.float32)
    ground = np.zeros_like(level)
    for order, coefficient in enumerate(calibration.coefficients):
        if order:
            power, level = operator @ power, operator @ level
        if coefficient:
            total += np.float32(coefficient) * (power.toarray() if sp.issparse(power) else power)
            ground += np.float32(coefficient) * level
        if sp.issparse(power) and power.nnz > 0.1 * total.size:
            power = power.toarray()
    return np.asarray(soft(total, calibration.after) + ground[:, None], dtype=np.float32)
