"""Who is linked to whom: the best guess from the reports, and what a trained model's answers give away.

The first attacker knows the mechanism and every other link, and asks of one pair whether it is linked: the odds of all
that both ends sent. Nobody can do better from the reports, and epsilon of the relationship bounds it (`bounds`).

The second one (LinkTeller) may ask a model, and change one person's features: whose answers move are her neighbours.
Nothing bounds that one but what the model saw: trained and asked on an estimated graph, it tells of that graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphldp.adversary.bounds import advantage_bound, area_bound
from graphldp.client.links import LinkReports, Neighbours, link_mechanism_of
from graphldp.client.links.draws import log_discrete_laplace
from graphldp.client.links.rr import flip_chance
from graphldp.errors import DataError
from graphldp.randomness import Source

__all__ = ["LinkAttack", "area", "attack_reports", "influence", "influence_attack", "link_log_odds", "pairs_to_guess"]

Floats: TypeAlias = NDArray[np.float64]
Whole: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkAttack:
    """How well links were guessed.

    Attributes:
        pairs, links: how many pairs were guessed, and how many of them are links.
        advantage: true less false positives.
        area: under the curve of true over false positives.
        precision: of as many of the surest guesses as there are links among the pairs.
        advantage_bound, area_bound: what the relationship's epsilon allows; 1 where nothing is claimed.
    """

    pairs: int
    links: int
    advantage: float
    area: float
    precision: float
    advantage_bound: float = 1.0
    area_bound: float = 1.0


def pairs_to_guess(neighbours: Neighbours, rng: Source, count: int | None = None) -> tuple[Whole, NDArray[np.bool_]]:
    """Return 2 x k pairs, as many links as pairs without one, and which are links; `count` links at most."""
    rows = neighbours.rows()
    below = neighbours.indices < rows
    codes = (rows * neighbours.nodes + neighbours.indices)[below]
    if not len(codes):
        raise DataError("an attack on links needs a graph that has one")
    chosen = codes
    if count is not None and count < len(codes):
        chosen = codes[np.sort(np.argsort(rng.random(len(codes)))[:count])]
    free = neighbours.nodes * (neighbours.nodes - 1) // 2 - len(codes)
    wanted, none = min(len(chosen), free), np.empty(0, np.int64)
    while len(none) < wanted:
        ends = rng.integers(0, neighbours.nodes, (2, 4 * wanted + 16))
        fresh = np.maximum(*ends) * neighbours.nodes + np.minimum(*ends)
        fresh = fresh[(ends[0] != ends[1]) & ~np.isin(fresh, codes)]
        _, first = np.unique(np.concatenate([none, fresh]), return_index=True)
        none = np.concatenate([none, fresh])[np.sort(first)][:wanted]
    pairs = np.concatenate([chosen, none])
    truth = np.arange(len(pairs)) < len(chosen)
    return np.stack(np.divmod(pairs, neighbours.nodes)), truth


def link_log_odds(reports: LinkReports, neighbours: Neighbours, pairs: ArrayLike) -> Floats:
    """Return, of each pair, the log ratio of what both ends sent if they are linked and if not, all else as it is."""
    device: Any = link_mechanism_of(dict(reports.meta))
    ends = np.asarray(pairs, dtype=np.int64)
    nodes = reports.nodes
    sent = reports.rows() * nodes + reports.indices
    true = neighbours.rows() * nodes + neighbours.indices
    linked = np.isin(ends[0] * nodes + ends[1], true)
    total = np.zeros(ends.shape[1])
    for own, other in (ends, ends[::-1]):
        if reports.degree is not None:
            rest = neighbours.degrees[own] - linked
            noisy = reports.degree[own]
            total += log_discrete_laplace(device.degree_epsilon, noisy - rest - 1)
            total -= log_discrete_laplace(device.degree_epsilon, noisy - rest)
        asked = np.ones(len(own), bool) if device.ends == 2 else other < own
        codes = own * nodes + other
        if reports.value is not None:
            place = np.minimum(np.searchsorted(sent, codes), len(sent) - 1)
            values = reports.value[place].astype(np.float64)
            law = np.log(device.noise.pmf(values, 1.0)) - np.log(device.noise.pmf(values, 0.0))
        else:
            one = np.isin(codes, sent)
            zero = np.full(len(own), -device.bit_epsilon)
            if hasattr(device, "keeping"):
                assert reports.degree is not None
                keep, flip = device.keeping(reports.degree[own]), flip_chance(device.bit_epsilon)
                zero = np.log((1 - keep) + keep * flip) - np.log1p(-flip * keep)
            law = np.where(one, device.bit_epsilon, zero)
        total += np.where(asked, law, 0.0)
    return total


def attack_reports(reports: LinkReports, neighbours: Neighbours, pairs: ArrayLike, truth: ArrayLike) -> LinkAttack:
    """Return how well the best guess from the reports does on these pairs, beside what epsilon allows."""
    device = link_mechanism_of(dict(reports.meta))
    odds = link_log_odds(reports, neighbours, pairs)
    epsilon = device.relationship_epsilon
    return _tally(odds, np.asarray(truth, dtype=bool), odds > 0, advantage_bound(epsilon), area_bound(epsilon))


def _tally(
    scores: Floats, truth: NDArray[np.bool_], guess: NDArray[np.bool_], most: float = 1.0, largest: float = 1.0
) -> LinkAttack:
    if truth.all() or not truth.any():
        raise DataError("an attack on links needs pairs that are linked and pairs that are not")
    links = int(truth.sum())
    # Of equally sure guesses each counts by the share that would be taken.
    limit = np.sort(scores)[::-1][links - 1]
    above, equal = scores > limit, scores == limit
    hits = truth[above].sum() + truth[equal].sum() * (links - above.sum()) / equal.sum()
    return LinkAttack(
        pairs=len(truth),
        links=links,
        advantage=float(guess[truth].mean() - guess[~truth].mean()),
        area=area(scores, truth),
        precision=float(hits) / links,
        advantage_bound=most,
        area_bound=largest,
    )


def area(scores: Floats, truth: NDArray[np.bool_]) -> float:
    """Return how often a link has a higher score than a pair without one; equal ones count half."""
    _, which, counts = np.unique(scores, return_inverse=True, return_counts=True)
    rank = np.cumsum(counts) - (counts - 1) / 2
    yes, no = int(truth.sum()), int((~truth).sum())
    return float((rank[which][truth].sum() - yes * (yes + 1) / 2) / (yes * no))


def influence(
    answers: Callable[[Floats], Floats], features: ArrayLike, people: ArrayLike, *, delta: float = 1e-3
) -> Floats:
    """Return how far each of these people's answers move when another's features grow by a factor 1 + delta.

    Args:
        answers: the model: n x d features in, n x classes scores out.
        features: what the attacker sends.
        people: k of them, whom the attacker may change and see.
        delta: the factor.
    """
    x, who = np.array(features, dtype=np.float64), np.asarray(people, dtype=np.int64)
    before = np.asarray(answers(x), dtype=np.float64)[who]
    out = np.zeros((len(who), len(who)))
    for k, person in enumerate(who):
        own = x[person].copy()
        x[person] = own * (1 + delta)
        out[k] = np.linalg.norm(np.asarray(answers(x), dtype=np.float64)[who] - before, axis=1) / delta
        x[person] = own
    return out


def influence_attack(
    answers: Callable[[Floats], Floats],
    features: ArrayLike,
    neighbours: Neighbours,
    people: ArrayLike,
    *,
    delta: float = 1e-3,
) -> LinkAttack:
    """Return how well the influence of people on each other's answers tells who is linked, by the true links.

    The guess takes as many pairs as there are links among these people: the attacker is given the density.
    """
    who = np.asarray(people, dtype=np.int64)
    moved = influence(answers, features, who, delta=delta)
    moved = np.maximum(moved, moved.T)
    one, two = np.triu_indices(len(who), 1)
    true = neighbours.rows() * neighbours.nodes + neighbours.indices
    truth = np.isin(who[one] * neighbours.nodes + who[two], true)
    scores = moved[one, two]
    if truth.all() or not truth.any():
        raise DataError("an attack on links needs people of whom some are linked and some are not; choose others")
    limit = np.sort(scores)[::-1][int(truth.sum()) - 1]
    return _tally(scores, truth, scores >= limit)
