"""What an untrusted server computes from the reports and the public graph. All of it is post-processing."""

from __future__ import annotations

from graphldp.server.adjacency import NORMALIZATIONS, normalised, shift
from graphldp.server.attributes import AttributeScores, score_attributes, scorer_names
from graphldp.server.calibration import Calibration
from graphldp.server.estimate import Estimate, rectify
from graphldp.server.filtered import Filtered, apply, vanishes
from graphldp.server.filters import (
    filter_entry,
    filter_names,
    flexprop,
    hoa,
    kprop,
    make_filter,
    none,
    ppr,
    push,
    residual,
)
from graphldp.server.measures import clean_aggregate, decay_rate, dirichlet_energy, energy_ratio, estimation_error
from graphldp.server.selection import (
    attribute_accuracy,
    combine_rounds,
    degree_correlation,
    mean_jaccard,
    rectify_directed,
)
from graphldp.server.thresholds import nfr_after, nfr_before, shrink, soft
from graphldp.server.weights import decode_levels, node_weights

__all__ = [
    "NORMALIZATIONS",
    "AttributeScores",
    "Calibration",
    "Estimate",
    "Filtered",
    "apply",
    "attribute_accuracy",
    "clean_aggregate",
    "combine_rounds",
    "decay_rate",
    "decode_levels",
    "degree_correlation",
    "dirichlet_energy",
    "energy_ratio",
    "estimation_error",
    "filter_entry",
    "filter_names",
    "flexprop",
    "hoa",
    "kprop",
    "make_filter",
    "mean_jaccard",
    "nfr_after",
    "nfr_before",
    "node_weights",
    "none",
    "normalised",
    "ppr",
    "push",
    "rectify",
    "rectify_directed",
    "residual",
    "score_attributes",
    "scorer_names",
    "shift",
    "shrink",
    "soft",
    "vanishes",
]
