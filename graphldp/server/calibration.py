"""Calibration: threshold, filter, threshold.

    shrink(., before)  ->  sum_k theta_k S^k  ->  shrink(., after)

with S a normalised adjacency of the public graph. A calibration is only described here; `graphldp.server.filters` has
the papers' ones by name, and `graphldp.server.filtered` applies them in whichever form the caller needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from graphldp.errors import ArtifactError, OptionError
from graphldp.graph import Graph
from graphldp.server.adjacency import check_convolution, shift

__all__ = ["SHRINKAGES", "WEIGHTINGS", "Calibration"]

SHRINKAGES = ("soft", "group", "dropout")
WEIGHTINGS = ("none", "level", "variance")


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What the server does with the estimates before it learns from them.

    Attributes:
        coefficients: theta_0, theta_1, ...: the filter is sum_k theta_k S^k. (1,) leaves the estimates as they are.
        normalization: of the adjacency: `symmetric`, D^-1/2 A D^-1/2, or `mean`, D^-1 A.
        convolution: r of D^(r-1) A D^(-r), where it is neither of the two (it overrides `normalization`).
        self_loops: whether every node is also its own neighbour.
        weighting: what a node's column counts by: `none`, its reported `level`, or its report's inverse `variance`.
        before: the shrinkage's amount, on the estimates' deviations from the fill.
        after: the same on the filtered values' deviations from the filtered fill.
        shrinkage: `soft` (NFR), or UPGNet's comparisons: `group` lasso over each attribute, or `dropout`, whose amount
            is a rate.
        decay: alpha of a personalised PageRank, where the filter is one; 0 elsewhere.
        r_max: threshold of the backward push; 0 applies the coefficients themselves.
    """

    coefficients: tuple[float, ...] = (1.0,)
    normalization: str = "symmetric"
    convolution: float | None = None
    self_loops: bool = False
    weighting: str = "none"
    before: float = 0.0
    after: float = 0.0
    shrinkage: str = "soft"
    decay: float = 0.0
    r_max: float = 0.0

    def __post_init__(self) -> None:
        if not self.coefficients or not all(np.isfinite(self.coefficients)):
            raise OptionError(f"coefficients must be at least one finite number, got {self.coefficients}")
        r = check_convolution(self.normalization, self.convolution)
        if self.weighting not in WEIGHTINGS:
            raise OptionError(f"weighting must be one of {', '.join(WEIGHTINGS)}; got {self.weighting!r}")
        if self.weighting != "none" and r != 0:
            raise OptionError(f"weighting {self.weighting!r} is a weighted mean: it needs normalization 'mean'")
        if self.shrinkage not in SHRINKAGES:
            raise OptionError(f"shrinkage must be one of {', '.join(SHRINKAGES)}; got {self.shrinkage!r}")
        for name in ("before", "after", "r_max"):
            if not 0 <= getattr(self, name) < np.inf:
                raise OptionError(f"{name} must be a threshold of at least 0, got {getattr(self, name)}")
        if self.shrinkage == "dropout" and (self.before >= 1 or self.after > 0):
            raise OptionError(
                f"dropout takes a rate below 1 in `before` and nothing in `after`, got {self.before} and {self.after}"
            )
        if not 0 <= self.decay < 1:
            raise OptionError(f"decay (alpha of personalised PageRank) must be from 0 to below 1, got {self.decay}")
        if self.r_max > 0 and self.decay == 0:
            raise OptionError("r_max is the threshold of a personalised PageRank's push: it needs a decay above 0")

    @property
    def steps(self) -> int:
        """How many steps of the graph the filter reaches."""
        return max((k for k, theta in enumerate(self.coefficients) if theta != 0), default=0)

    @property
    def r(self) -> float:
        """The convolution coefficient of S = D^(r-1) A D^(-r)."""
        return check_convolution(self.normalization, self.convolution)

    @property
    def linear(self) -> bool:
        """Whether everything after `before` is the polynomial alone, so that it commutes with a weight matrix."""
        return self.after == 0 and self.r_max == 0

    def operator(self, graph: Graph, weights: ArrayLike | None = None) -> sp.csr_array:
        """Return the S that this calibration means. `weights` are one per node, and needed exactly if it weights."""
        if (weights is None) != (self.weighting == "none"):
            need = "takes no node weights" if self.weighting == "none" else "needs one weight per node"
            raise OptionError(f"weighting {self.weighting!r} {need}; see level_weights and variance_weights")
        return shift(graph, self.normalization, self.self_loops, convolution=self.convolution, weights=weights)

    def but(self, **changes: Any) -> Calibration:
        """Return this calibration with some of its parts changed."""
        return replace(self, **changes)

    def meta(self) -> dict[str, Any]:
        """Return the description as JSON-able values."""
        return {**asdict(self), "coefficients": list(self.coefficients)}

    @classmethod
    def from_meta(cls, meta: Mapping[str, Any]) -> Calibration:
        """Return the calibration that `meta()` described; a part that this version does not know is refused."""
        known = {field.name for field in fields(cls)}
        strange = sorted(set(meta) - known)
        if strange:
            raise ArtifactError(f"the artifact's filter has {', '.join(strange)}, which this version does not know")
        values = dict(meta)
        if "coefficients" in values:
            values["coefficients"] = tuple(float(theta) for theta in values["coefficients"])
        return cls(**values)
