"""EdgeRand and LapGraph: noise on every pair of a graph, drawn without looking at every pair."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphldp.client.draws import uniform
from graphldp.client.links import MOST_LINKS, Neighbours, allow_more, link_mechanism
from graphldp.client.links.draws import discrete_laplace, places
from graphldp.client.randomiser import check_budget, check_number
from graphldp.errors import OptionError
from graphldp.randomness import Source
from graphldp.server.links import LinkEstimate, reported_pairs, symmetric

__all__ = ["edgerand", "facts_of", "lapgraph"]

Whole: TypeAlias = NDArray[np.int64]


def facts_of(name: str, epsilon: float, **more: Any) -> dict[str, Any]:
    """Return what a graph of a trusted curator says of itself."""
    return {
        "mechanism": name,
        "trust": "a curator who sees every link",
        "epsilon": epsilon,
        "unit": "one link of the whole graph",
        **more,
    }


def edgerand(edges: ArrayLike, nodes: int, epsilon: float, rng: Source, *, most: float = MOST_LINKS) -> LinkEstimate:
    r"""Return the graph with every pair's bit flipped with probability 1/(1 + e^epsilon).

    Formula: as `rr`, one bit for each pair.
    Claim: epsilon for one link, centrally.
    Reference: Wu et al., LinkTeller, S&P 2022 (EdgeRand); HeteroRR's baseline.
    """
    device = link_mechanism("rr", epsilon, nodes, "lower")
    pairs, _ = reported_pairs(device.perturb(Neighbours.of_edges(edges, nodes), rng, most=most))
    facts = facts_of("edgerand", device.epsilon, links=len(pairs))
    return LinkEstimate(adjacency=symmetric(pairs, np.ones(len(pairs)), nodes), facts=facts)


def lapgraph(
    edges: ArrayLike,
    nodes: int,
    epsilon: float,
    rng: Source,
    *,
    count_share: float = 0.01,
    most: float = MOST_LINKS,
) -> LinkEstimate:
    r"""Return as many pairs as a noisy number of links says: those that are largest after Laplace noise on every pair.

    Formula: k = E + noise with count_share epsilon; every pair's bit + Lap(1/epsilon_2) with the rest; the k largest.
    Claim: epsilon for one link, centrally: it moves the number by 1 and one bit by 1.
    Reference: Wu et al., LinkTeller, S&P 2022 (LapGraph); HeteroRR's baseline.
    Deviations: the number's noise is whole-numbered. Of pairs without a link only those are drawn whose noise exceeds
        a threshold that more than k are expected to exceed; the law is that of noise on all pairs.

    Args:
        edges: 2 x E, each link once.
        nodes: how many people.
        epsilon: the whole budget.
        rng: a numpy Generator, or the secure source.
        count_share: the number's share of the budget.
        most: refuse if more links than this were to be kept.
    """
    epsilon = check_budget("lapgraph", epsilon)
    share = check_number("lapgraph", "count_share", count_share)
    if not 0 < share < 1:
        raise OptionError(f"lapgraph: count_share must be between 0 and 1, got {share}")
    lists = Neighbours.of_edges(edges, nodes)
    rows = lists.rows()
    below = lists.indices < rows
    true = (rows * nodes + lists.indices)[below]
    every = nodes * (nodes - 1) // 2
    kept = int(np.clip(len(true) + discrete_laplace(share * epsilon, 1, rng)[0], 0, every))
    rate = (1 - share) * epsilon
    if kept > most:
        raise OptionError(
            f"lapgraph: the noisy number of links at epsilon {epsilon:g} is {kept:,}, more than the {most:,.0f} that "
            f"are allowed; spend more, or {allow_more(kept)}"
        )
    sizes = np.arange(nodes)
    signs = np.where(uniform(rng, len(true)) < 0.5, -1.0, 1.0)
    codes = [true]
    values = [1.0 + signs * -np.log(uniform(rng, len(true))) / rate]
    known, above, wanted, found = true, 0.0, kept + 6 * math.sqrt(kept) + 50, 0
    while found < kept:
        tail = min(wanted / every, 1.0)
        # Of the pairs that have not exceeded the last threshold, those that exceed the next one.
        chance = min((tail - above) / (1 - above), 1 - 2.0**-53)
        row, place = places(sizes, np.full(nodes, chance), rng)
        fresh = row * nodes + place
        fresh = fresh[~np.isin(fresh, known, assume_unique=True)]
        level = above + (tail - above) * uniform(rng, len(fresh))
        codes.append(fresh)
        values.append(np.where(level < 0.5, -np.log(2 * level), np.log(2 * np.maximum(1 - level, 1e-300))) / rate)
        known = np.concatenate([known, fresh])
        found += len(fresh)
        above, wanted = tail, 4 * wanted
        if above >= 1.0:
            break
    pairs, scores = np.concatenate(codes), np.concatenate(values)
    best = np.argpartition(-scores, kept - 1)[:kept] if 0 < kept < len(scores) else np.arange(min(kept, len(scores)))
    chosen = np.sort(pairs[best])
    facts = facts_of("lapgraph", epsilon, count_share=share, links=len(chosen))
    return LinkEstimate(adjacency=symmetric(chosen, np.ones(len(chosen)), nodes), facts=facts)
