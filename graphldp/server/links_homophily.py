r"""Links by Bayes' rule, with how alike people's reported features are as a part of the prior.

Posterior: the log-odds of a reported pair are those of `graphldp.server.links` (the beta-model of the degrees, and
    epsilon_b for each reported 1 less the zeros), plus log P(s | linked) / P(s) for its similarity s: the cosine of the
    two people's estimated features. As many of the likeliest pairs are kept as the posterior expects among the
    reported ones, with their posteriors as weights.
The ratio is learned, in bins of s: P(s) from a sample of all pairs; P(s | linked) from the reported pairs, of which a
    share follows P(s), being flipped bits; it never falls with s. Where features say nothing it is 1 everywhere, and
    what is left is the posterior without them.
Reference: HoGS (Xu et al., 2026), which has the idea: likeness of noisy features as a prior of links.
Deviations: how a similarity becomes a prior is our own, as above; so are the degrees in the prior, and that pairs which
    nobody reported are left out.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphldp.client.links import LinkMechanism, LinkReports, link_mechanism_of
from graphldp.client.links.rr import flip_chance
from graphldp.errors import DataError, OptionError
from graphldp.server.links import (
    BITS,
    MAX_MEMORY,
    MORE_MEMORY,
    LinkEstimate,
    check_memory,
    degrees_of_bits,
    prior_of_pairs,
    reported_pairs,
    symmetric,
)
from graphldp.server.links_beta import logistic

__all__ = ["homophilous_links", "likeness_ratios", "rising"]

Floats: TypeAlias = NDArray[np.float64]
Whole: TypeAlias = NDArray[np.int64]

_BINS = 24
_SAMPLE = 200_000  # pairs by which it is known how alike two people are
_BLOCK = 100_000  # pairs whose similarity is computed at a time
_PER_PAIR = 120  # bytes, with working copies
_LEAST = 1e-3  # of a ratio: no similarity makes a link impossible


def homophilous_links(
    reports: LinkReports, features: Any, rng: np.random.Generator, *, max_memory: float = MAX_MEMORY
) -> LinkEstimate:
    """Return the likeliest of the reported links.

    Args:
        reports: everybody's, of `rr` or `blink`.
        features: n x d, dense or sparse: the server's estimate of them, not filtered, around 0.
        rng: draws the pairs by which it is known how alike two people are.
        max_memory: bytes.
    """
    device = link_mechanism_of(dict(reports.meta))
    if device.name not in BITS:
        raise OptionError(
            f"likeness is weighed against the bits of links reported by {' or '.join(BITS)}, got {device.name}; take "
            "one of these"
        )
    x = _unit(features, reports.nodes)
    pairs, ones = reported_pairs(reports)
    check_memory(len(pairs), reports.nodes, max_memory, "homophily", MORE_MEMORY, per_pair=_PER_PAIR)
    alike, ratios = likeness_ratios(x, pairs, ones, device, rng)
    odds = prior_of_pairs(reports, device, pairs, ones) + np.log(ratios)[alike]
    chance = logistic(odds)
    expected = float(chance.sum())
    order = np.argsort(-odds, kind="stable")[: round(expected)]
    kept = np.sort(order)
    weights = np.maximum(chance[kept], np.finfo(np.float32).tiny)
    facts = {
        "estimator": "homophily",
        "links": len(kept),
        "expected_links": expected,
        "likeness": [float(value) for value in ratios],
    }
    return LinkEstimate(adjacency=symmetric(pairs[kept], weights, reports.nodes), facts=facts)


def likeness_ratios(
    x: sp.csr_array, pairs: Whole, ones: Whole, device: LinkMechanism, rng: np.random.Generator
) -> tuple[Whole, Floats]:
    """Return each pair's bin of similarity, and of each bin how much more often linked people are in it than any two.

    `x` has rows of length 1, or 0; `pairs` are those that `ones` ends reported.
    """
    nodes, each = device.nodes, device.ends
    one = rng.integers(0, nodes, _SAMPLE)
    two = (one + rng.integers(1, nodes, _SAMPLE)) % nodes
    usual = _similarities(x, np.maximum(one, two) * np.int64(nodes) + np.minimum(one, two))
    edges = np.unique(np.quantile(usual, np.arange(1, _BINS) / _BINS))
    bins = len(edges) + 1
    share = np.bincount(np.searchsorted(edges, usual, side="right"), minlength=bins) / len(usual)
    alike = np.searchsorted(edges, _similarities(x, pairs), side="right")
    told = np.bincount(alike, weights=ones, minlength=bins)
    links = degrees_of_bits(pairs, ones, device).sum() / 2  # without bias
    true = each * links * (1 - flip_chance(device.bit_epsilon))  # reported bits of links that are there, expected
    flipped = max(0.0, float(told.sum()) - true)
    linked = np.maximum(told - flipped * share, 0.0)
    if not (true > 0 and linked.sum() > 0):
        return alike, np.ones(bins)
    there = share > 0
    ratios = np.ones(bins)
    ratios[there] = rising(linked[there] / linked.sum() / share[there], share[there])
    return alike, np.maximum(ratios, _LEAST)


def rising(values: Floats, weights: Floats) -> Floats:
    """Return the numbers that never fall and are the nearest to these, by weighted squares."""
    sums: list[list[float]] = []  # mean, weight and count of each level part
    for value, weight in zip(values, weights, strict=True):
        sums.append([float(value), float(weight), 1.0])
        while len(sums) > 1 and sums[-2][0] >= sums[-1][0]:
            mean, heavy, count = sums.pop()
            before = sums[-1]
            before[0] = (before[0] * before[1] + mean * heavy) / (before[1] + heavy)
            before[1] += heavy
            before[2] += count
    return np.concatenate([np.full(int(count), mean) for mean, _, count in sums]) if sums else np.empty(0)


def _unit(features: Any, nodes: int) -> sp.csr_array:
    x = sp.csr_array(features, dtype=np.float64)
    if x.shape[0] != nodes:
        raise DataError(f"{nodes} people need as many rows of features, got {x.shape[0]}")
    length = np.sqrt(np.asarray(x.multiply(x).sum(axis=1)).ravel())
    return sp.csr_array(sp.diags_array(1 / np.where(length > 0, length, 1.0)) @ x)


def _similarities(x: sp.csr_array, pairs: Whole) -> Floats:
    """Return the cosines of pairs with codes larger * nodes + smaller."""
    out = np.empty(len(pairs))
    for start in range(0, len(pairs), _BLOCK):
        high, low = np.divmod(pairs[start : start + _BLOCK], x.shape[0])
        out[start : start + _BLOCK] = np.asarray(x[high].multiply(x[low]).sum(axis=1)).ravel()
    return out
