r"""How much others tell of a person's feature: the share of its variance that her neighbours' values explain.

    beta_i = cov_i / var_i, cut to [0, 1];   cov_i = mean over links (u, v) of (x_ui - mu_i)(x_vi - mu_i)

All from reports: two people's noise is independent, so that the covariance along links is unbiased as it is, and the
variance is the one that a feature of 0 and 1 with that mean has, mu_i (1 - mu_i) on the range from 0 to 1. A feature
that an attacker could read off somebody's friends is the more sensitive one; HeteroRR gives it the smaller share of the
budget. What the paper measures as sensitivity is not among the texts at hand: this is our own reading.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphldp.graph import Graph
from graphldp.server.estimate import Estimate

__all__ = ["feature_sensitivity"]

_LEAST = 1e-3  # of a variance on the range from 0 to 1: below it a feature is nearly the same for everybody


def feature_sensitivity(graph: Graph, estimate: Estimate) -> NDArray[np.float64]:
    """Return each feature's sensitivity, from 0 to 1, by the server's graph and its estimates of the features.

    Links count by their weights; where there is no link every feature is 0.
    """
    spread = graph.high - graph.low
    # Deviations from the fill, which most entries are at: the fill cancels out of every difference.
    away = sp.csr_array(estimate.matrix, dtype=np.float64)
    away.data = (away.data - estimate.fill) / spread
    mean = np.asarray(away.mean(axis=0)).ravel()
    adjacency = graph.adjacency().astype(np.float64)
    total = float(adjacency.sum())
    if not total:
        return np.zeros(graph.dimensions)
    around = adjacency @ away
    both = np.asarray(away.multiply(around).sum(axis=0)).ravel() / total
    ends = np.asarray(adjacency.sum(axis=1)).ravel() / total
    near = ends @ away  # the mean over people by their degrees
    covariance = both - 2 * mean * np.asarray(near).ravel() + mean**2
    share = np.clip(mean + (estimate.fill - graph.low) / spread, 0.0, 1.0)
    variance = np.maximum(share * (1 - share), _LEAST)
    return np.asarray(np.clip(covariance / variance, 0.0, 1.0))
