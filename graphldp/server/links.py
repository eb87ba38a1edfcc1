r"""From reports on links to an estimated graph, which takes the public graph's place.

estimate_links(reports, estimator)     a `LinkEstimate` from `graphldp.client.links`' reports
link_estimators(mechanism)             which estimators there are for a mechanism; the first is its own

A `LinkEstimate` holds a symmetric sparse adjacency with weights in (0, 1], without loops; a node that nobody links to
stays, isolated. Filters, message passing and thresholds use it, and its weights, as they use a public graph.

| estimator | of | what |
| --- | --- | --- |
| `reported` | rr, dprr, blink | the links that were reported; with both ends' reports, half a weight for each |
| `hard` | blink, rr | links with a posterior above 1/2 |
| `soft` | blink, rr | every pair, weighed by its posterior: for small graphs |
| `hybrid` | blink, rr | the round(sum of posteriors) likeliest pairs, weighed by their posteriors |
| `top-k` | laplace-bits | the round(sum of noisy bits) pairs with the largest noisy bits |

The posterior of a pair: prior log-odds beta_i + beta_j of the beta-model that is fitted to the noisy degrees (of `rr`,
to unbiased row sums), plus epsilon_b for each reported 1 and minus epsilon_b for each reported 0. Pairs that nobody
reported differ by their ends' degrees alone: they are counted by degree, never one by one.

All of it is post-processing of the reports: it costs no budget.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphldp.client.links import (
    MOST_LINKS,
    LinkMechanism,
    LinkReports,
    allow_more,
    link_mechanism_of,
    link_names,
    lookup_link,
)
from graphldp.client.links.rr import flip_chance
from graphldp.errors import DataError, OptionError, unknown_name
from graphldp.server.links_beta import BetaModel, fit_beta, logistic

__all__ = [
    "BITS",
    "MAX_MEMORY",
    "MORE_MEMORY",
    "LinkEstimate",
    "check_memory",
    "degrees_of_bits",
    "estimate_links",
    "link_estimators",
    "memory_for",
    "pair_log_odds",
    "prior_of_pairs",
    "reported_pairs",
    "symmetric",
]

Floats: TypeAlias = NDArray[np.float64]
Whole: TypeAlias = NDArray[np.int64]

BITS = tuple(name for name in link_names() if lookup_link(name).sends_bits)
MORE_MEMORY = "spend more on links, or raise --max-memory"  # where that is the limit
_PER_PAIR = 60  # bytes, with working copies


def memory_for(links: float) -> float:
    """Return the bytes that an estimate may take where so many false links may be reported: true ones come beside."""
    return 2 * _PER_PAIR * links


MAX_MEMORY = memory_for(MOST_LINKS)  # bytes that an estimate may take, unless the caller says otherwise


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinkEstimate:
    """What the server makes of everybody's reports on links.

    Attributes:
        adjacency: n x n, CSR, float32, symmetric, weights in (0, 1], no loops, sorted indices.
        facts: how it was estimated, as JSON-able values: estimator, links kept, links expected, the fit's rounds.
    """

    adjacency: sp.csr_array
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def nodes(self) -> int:
        """How many people."""
        return int(self.adjacency.shape[0])

    @property
    def links(self) -> int:
        """How many pairs have a weight."""
        return int(self.adjacency.nnz) // 2

    def edges(self) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return 2 x E, each link once with the smaller number first, in order, and the weights."""
        upper = sp.coo_array(sp.triu(self.adjacency, 1, format="csr"))
        return np.stack([upper.row, upper.col]).astype(np.int32), np.asarray(upper.data, dtype=np.float32)


def estimate_links(
    reports: LinkReports, estimator: str | None = None, *, max_memory: float = MAX_MEMORY
) -> LinkEstimate:
    """Return the estimated graph.

    Args:
        reports: everybody's.
        estimator: one of `link_estimators`; None takes the mechanism's own.
        max_memory: bytes; what would need more is refused before anything is allocated.
    """
    mechanism = link_mechanism_of(dict(reports.meta))
    known = link_estimators(mechanism.name)
    name = known[0] if estimator is None else estimator
    if name not in known:
        raise unknown_name(f"estimator of links reported by {mechanism.name}", name, known)
    if len(reports.owners) != reports.nodes:
        raise DataError(f"links are estimated from everybody's reports: {len(reports.owners)} of {reports.nodes} came")
    return ESTIMATORS[name](reports, mechanism, max_memory)


def link_estimators(mechanism: str) -> tuple[str, ...]:
    """Return the names of the estimators for a mechanism's reports, its own first."""
    return lookup_link(mechanism).estimators


def symmetric(pairs: Whole, weights: Floats, nodes: int) -> sp.csr_array:
    """Return the adjacency of pairs with codes larger * nodes + smaller, each once."""
    high, low = (part.astype(np.int32) for part in np.divmod(pairs, nodes))
    values = np.asarray(weights, dtype=np.float32)
    both = (np.concatenate([values, values]), (np.concatenate([high, low]), np.concatenate([low, high])))
    out = sp.coo_array(both, shape=(nodes, nodes)).tocsr()
    out.sort_indices()
    return out


def reported_pairs(reports: LinkReports) -> tuple[Whole, Whole]:
    """Return the pairs that at least one end reported, as codes larger * nodes + smaller in order, and how many did."""
    owner, other = reports.owners[reports.rows()].astype(np.int64), reports.indices.astype(np.int64)
    codes = np.maximum(owner, other) * reports.nodes + np.minimum(owner, other)
    codes.sort(kind="stable")
    fresh = np.ones(len(codes), dtype=bool)
    fresh[1:] = codes[1:] != codes[:-1]
    first = np.flatnonzero(fresh)
    return codes[first], np.diff(np.append(first, len(codes)))


def degrees_of_bits(pairs: Whole, ones: Whole, mechanism: LinkMechanism) -> Floats:
    """Return everybody's degree without bias, from the bits on her pairs, whoever sent them."""
    nodes, flip = mechanism.nodes, flip_chance(mechanism.bit_epsilon)
    each = mechanism.ends
    total = sum(np.bincount(end, weights=ones, minlength=nodes) for end in np.divmod(pairs, nodes))
    return np.asarray((total / each - (nodes - 1) * flip) / (1 - 2 * flip))


def _reported(reports: LinkReports, mechanism: LinkMechanism, max_memory: float) -> LinkEstimate:
    """Every reported pair is a link; of two ends that both report, the weight is the share that did."""
    pairs, ones = reported_pairs(reports)
    check_memory(len(pairs), reports.nodes, max_memory, "reported")
    weights = ones / mechanism.ends
    return LinkEstimate(
        adjacency=symmetric(pairs, weights, reports.nodes), facts={"estimator": "reported", "links": len(pairs)}
    )


def _top_k(reports: LinkReports, mechanism: LinkMechanism, max_memory: float) -> LinkEstimate:
    """The pairs with the largest reported numbers, as many links as all numbers add up to."""
    nodes, values = reports.nodes, reports.value
    assert values is not None
    check_memory(len(values), nodes, max_memory, "top-k")
    owner, other = reports.owners[reports.rows()].astype(np.int64), reports.indices.astype(np.int64)
    codes = np.maximum(owner, other) * nodes + np.minimum(owner, other)
    scores = values.astype(np.float64)
    if mechanism.ends == 2:
        order = np.argsort(codes, kind="stable")
        codes, scores = codes[order][::2], (scores[order][::2] + scores[order][1::2]) / 2
    wanted = int(np.clip(np.rint(scores.sum()), 0, len(scores)))
    chosen = np.sort(np.argpartition(-scores, wanted - 1)[:wanted]) if wanted else np.empty(0, np.int64)
    pairs = np.sort(codes[chosen])
    return LinkEstimate(
        adjacency=symmetric(pairs, np.ones(wanted), nodes), facts={"estimator": "top-k", "links": wanted}
    )


# The posterior ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Posterior:
    """Log-odds of all pairs: those that somebody reported one by one, the others by their ends' levels."""

    model: BetaModel
    pairs: Whole
    odds: Floats
    step: float  # epsilon_b times the number of reports on a pair: what their zeros take off the prior
    expected: float


def _prior(reports: LinkReports, mechanism: LinkMechanism, pairs: Whole, ones: Whole) -> BetaModel:
    if reports.degree is not None:
        return fit_beta(reports.degree)
    return fit_beta(np.rint(degrees_of_bits(pairs, ones, mechanism)))  # whole numbers: few are distinct


def pair_log_odds(model: BetaModel, pairs: Whole, ones: Whole, mechanism: LinkMechanism) -> Floats:
    """Return the posterior log-odds of pairs of which so many ends reported a link."""
    high, low = np.divmod(pairs, model.nodes)
    each = mechanism.ends
    prior = model.beta[model.level[high]] + model.beta[model.level[low]]
    return np.asarray(prior + mechanism.bit_epsilon * (2 * ones - each))


def prior_of_pairs(reports: LinkReports, mechanism: LinkMechanism, pairs: Whole, ones: Whole) -> Floats:
    """Return the log-odds of pairs of which so many ends reported a link, by the degrees and the reports."""
    return pair_log_odds(_prior(reports, mechanism, pairs, ones), pairs, ones, mechanism)


def _posterior(reports: LinkReports, mechanism: LinkMechanism) -> _Posterior:
    pairs, ones = reported_pairs(reports)
    model = _prior(reports, mechanism, pairs, ones)
    odds = pair_log_odds(model, pairs, ones, mechanism)
    step = mechanism.bit_epsilon * mechanism.ends
    silent = pair_log_odds(model, pairs, np.zeros_like(ones), mechanism)
    every = sum(float((many * logistic(table)).sum()) for _, table, many in model.pairs(-step))
    expected = every + float((logistic(odds) - logistic(silent)).sum())
    return _Posterior(model=model, pairs=pairs, odds=odds, step=step, expected=expected)


def _facts(name: str, found: _Posterior, kept: int) -> dict[str, Any]:
    return {
        "estimator": name,
        "links": kept,
        "expected_links": found.expected,
        "rounds": found.model.rounds,
        "residual": found.model.residual,
    }


def _hard(reports: LinkReports, mechanism: LinkMechanism, max_memory: float) -> LinkEstimate:
    """Pairs whose posterior is above one half are links (BLINK-Hard)."""
    found = _posterior(reports, mechanism)
    pairs, _ = _above(found, 0.0, reports.nodes, max_memory, "hard")
    adjacency = symmetric(pairs, np.ones(len(pairs)), reports.nodes)
    return LinkEstimate(adjacency=adjacency, facts=_facts("hard", found, len(pairs)))


def _hybrid(reports: LinkReports, mechanism: LinkMechanism, max_memory: float) -> LinkEstimate:
    """The likeliest pairs, as many as links are expected, weighted by their posterior (BLINK-Hybrid)."""
    found, nodes = _posterior(reports, mechanism), reports.nodes
    wanted = round(found.expected)
    check_memory(wanted, nodes, max_memory, "hybrid")
    limit = _limit(found, wanted)
    pairs, odds = _above(found, limit, nodes, max_memory, "hybrid")
    if len(pairs) < wanted:
        more, more_odds = _above(found, limit, nodes, max_memory, "hybrid", equal=True)
        # Of pairs that are equally likely some are taken, evenly over all of them: no number is better than another.
        places = ((np.arange(wanted - len(pairs)) + 0.5) * len(more) / (wanted - len(pairs))).astype(np.int64)
        pairs, odds = np.concatenate([pairs, more[places]]), np.concatenate([odds, more_odds[places]])
    weights = np.maximum(logistic(odds), np.finfo(np.float32).tiny)
    return LinkEstimate(adjacency=symmetric(pairs, weights, nodes), facts=_facts("hybrid", found, len(pairs)))


def _soft(reports: LinkReports, mechanism: LinkMechanism, max_memory: float) -> LinkEstimate:
    """Every pair, weighted by its posterior (BLINK-Soft)."""
    nodes = reports.nodes
    need = nodes * (nodes - 1) // 2
    check_memory(need, nodes, max_memory, "soft", "use hybrid, which keeps the likeliest pairs with their weights")
    found = _posterior(reports, mechanism)
    pairs, odds = _above(found, -np.inf, nodes, max_memory, "soft")
    weights = np.maximum(logistic(odds), np.finfo(np.float32).tiny)
    return LinkEstimate(adjacency=symmetric(pairs, weights, nodes), facts=_facts("soft", found, len(pairs)))


def _silent_counts(found: _Posterior) -> tuple[Floats, Whole]:
    """Return the log-odds of pairs that nobody reported, by levels a <= b, and how many there are of each."""
    model = found.model
    levels = len(model.beta)
    first, second = (model.level[end] for end in np.divmod(found.pairs, model.nodes))
    told = np.bincount(np.minimum(first, second) * levels + np.maximum(first, second), minlength=levels**2)
    odds, counts = [], []
    for part, table, many in model.pairs(-found.step):
        left = many.reshape(-1) - told[part.start * levels : part.stop * levels]
        odds.append(table.reshape(-1)[left > 0])
        counts.append(left[left > 0])
    return np.concatenate(odds), np.concatenate(counts)


def _limit(found: _Posterior, wanted: int) -> float:
    """Return the log-odds of the pair that comes `wanted`-th."""
    if wanted == 0:
        return np.inf
    odds, counts = _silent_counts(found)
    every, many = np.concatenate([found.odds, odds]), np.concatenate([np.ones(len(found.odds), np.int64), counts])
    order = np.argsort(-every, kind="stable")
    place = int(np.searchsorted(np.cumsum(many[order]), wanted))
    return float(every[order[min(place, len(order) - 1)]])


def _above(
    found: _Posterior, limit: float, nodes: int, max_memory: float, name: str, *, equal: bool = False
) -> tuple[Whole, Floats]:
    """Return the pairs whose log-odds are above the limit, or equal to it, in order, and their log-odds."""
    told = found.odds == limit if equal else found.odds > limit
    groups: list[tuple[int, int, float]] = []
    total = int(told.sum())
    for part, table, many in found.model.pairs(-found.step):
        chosen = ((table == limit) if equal else (table > limit)) & (many > 0)
        total += int(many[chosen].sum())
        rows, columns = np.nonzero(chosen)
        groups += zip((rows + part.start).tolist(), columns.tolist(), table[rows, columns].tolist(), strict=True)
    check_memory(total, nodes, max_memory, name)
    order = np.argsort(found.model.level, kind="stable")
    members = np.split(order, np.cumsum(found.model.count)[:-1])
    parts, odds = [found.pairs[told]], [found.odds[told]]
    for a, b, value in groups:
        one, two = members[a], members[b]
        if a == b:
            left, right = (one[place] for place in np.triu_indices(len(one), 1))
        else:
            left, right = np.repeat(one, len(two)), np.tile(two, len(one))
        codes = np.maximum(left, right) * np.int64(nodes) + np.minimum(left, right)
        codes = codes[~_among(codes, found.pairs)]
        parts.append(codes)
        odds.append(np.full(len(codes), value))
    pairs, values = np.concatenate(parts), np.concatenate(odds)
    order = np.argsort(pairs, kind="stable")
    return pairs[order], values[order]


def _among(codes: Whole, known: Whole) -> NDArray[np.bool_]:
    """Say which of the codes are among the known ones, which are in order."""
    if not len(known):
        return np.zeros(len(codes), dtype=bool)
    place = np.minimum(np.searchsorted(known, codes), len(known) - 1)
    return np.asarray(known[place] == codes)


def check_memory(
    pairs: int, nodes: int, max_memory: float, name: str, instead: str = "", *, per_pair: int = _PER_PAIR
) -> None:
    """Refuse what so many pairs would need more memory for than there may be."""
    need = per_pair * pairs + 64 * nodes
    if need > max_memory:
        raise OptionError(
            f"{name}: {pairs:,} pairs of {nodes:,} people would take about {need / 1e9:.3g} GB, the limit is "
            f"{max_memory / 1e9:.3g} GB; {instead or f'spend more on links, or {allow_more(need / memory_for(1))}'}"
        )


ESTIMATORS: dict[str, Callable[[LinkReports, LinkMechanism, float], LinkEstimate]] = {
    "reported": _reported,
    "top-k": _top_k,
    "hard": _hard,
    "soft": _soft,
    "hybrid": _hybrid,
}
