"""PrivHRG and EdgeRR: new links by the noisy chances of a dendrogram that was sampled from the true graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphldp.client.draws import uniform
from graphldp.client.links import MOST_LINKS, Neighbours, allow_more
from graphldp.client.links.draws import discrete_laplace, places
from graphldp.client.randomiser import check_budget, check_number
from graphldp.errors import DataError, OptionError
from graphldp.randomness import Source
from graphldp.server.links import LinkEstimate, symmetric
from graphldp.trusted.dendrogram import Dendrogram, sample_dendrogram, sensitivity
from graphldp.trusted.noise import facts_of

__all__ = ["CAVEAT", "STEPS", "edge_rr", "noisy_chances", "priv_hrg", "private_people"]

Whole: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

CAVEAT = (
    "the dendrogram's budget holds for the stationary law of its Markov chain; a chain of finitely many steps is close "
    "to it, and that is no proof of pure differential privacy"
)
STEPS = 200  # moves per person, unless the caller says otherwise
_LEAST_NOISE = (0.05, 0.01)  # relative noise at a node, and in the subtree below, from which on a subtree is one
_SURE = 1 - 2.0**-50


def private_people(edges: ArrayLike, nodes: int, rho: float, rng: Source) -> NDArray[np.bool_]:
    """Return who is private: people in a random order, until a share rho of the links is among them."""
    share = check_number("edgerr", "rho", rho)
    if not 0 < share <= 1:
        raise OptionError(f"edgerr: rho must be above 0 and at most 1, got {share}")
    lists = Neighbours.of_edges(edges, nodes)
    rank = np.argsort(np.argsort(uniform(rng, nodes), kind="stable"), kind="stable")
    rows = lists.rows()
    below = lists.indices < rows
    later = np.sort(np.maximum(rank[rows[below]], rank[lists.indices[below]]))
    if share == 1 or not len(later):
        return np.ones(nodes, dtype=bool)
    return np.asarray(rank <= later[max(1, round(share * len(later))) - 1])


def priv_hrg(
    edges: ArrayLike,
    nodes: int,
    epsilon: float,
    rng: Source,
    *,
    tree_share: float = 0.5,
    steps: int | None = None,
    most: float = MOST_LINKS,
) -> LinkEstimate:
    r"""Return a graph drawn from a dendrogram of the true one.

    Formula: a dendrogram with chance proportional to e^(epsilon_1 L/(2 Delta)), L its log-likelihood, Delta what a link
        moves it by; p~_r = clip((e_r + noise)/(L_r R_r), 0, 1) with epsilon_2; links are drawn with p~_r.
    Claim: epsilon_1 + epsilon_2 for one link, centrally, if the chain were at its stationary law.
    Reference: Xiao, Chen, Tan, Differentially Private Network Data Release via Structural Inference, KDD 2014.
    Deviations: noise on the counts is whole-numbered; a fixed number of steps, told with the acceptance rate.

    Args:
        edges: 2 x E, each link once.
        nodes: how many people.
        epsilon: the whole budget.
        rng: a numpy Generator, or the secure source.
        tree_share: the dendrogram's share of it.
        steps: how many moves; None takes 200 for each person.
        most: refuse if more links than this were to be expected.
    """
    spend = _Spend(name="privhrg", epsilon=epsilon, tree_share=tree_share)
    lists, everybody = Neighbours.of_edges(edges, nodes), np.ones(nodes, dtype=bool)
    return _drawn(spend, lists, everybody, rng, steps, 0, most)


def edge_rr(
    edges: ArrayLike,
    nodes: int,
    epsilon: float,
    rng: Source,
    *,
    private: ArrayLike,
    tree_share: float = 0.5,
    steps: int | None = None,
    public_steps: int = 1,
    most: float = MOST_LINKS,
) -> LinkEstimate:
    r"""Return the graph with the links among private people drawn anew, and all others as they are.

    Formula: as `priv_hrg` with the private pairs' counts and likelihood; between private moves, `public_steps` moves
        follow the public links' likelihood, which costs nothing.
    Claim: epsilon for one link between two private people, centrally; who is private is public. The stationary law of
        mixed moves is not the exponential mechanism's, so that for `public_steps` > 0 even this is not proved.
    Reference: HeteroRR, Algorithms 2 and 3.
    Deviations: the 2 of the exponential mechanism stands where it has to; noise is drawn once for a node and reused
        below it; chances are clipped to [0, 1] on both sides. A pair is private if both its ends are declared private:
        as printed, private people are those with a private link, which tells who has one.

    Args:
        edges: 2 x E, each link once.
        nodes: how many people.
        epsilon: the whole budget.
        rng: a numpy Generator, or the secure source.
        private: who is private, see `private_people`; that is public.
        tree_share: the dendrogram's share of the budget.
        steps: how many private moves; None takes 200 for each person.
        public_steps: how many public ones before each.
        most: refuse if more links than this were to be expected.
    """
    who = np.asarray(private, dtype=bool)
    if who.shape != (nodes,):
        raise DataError(f"edgerr: {nodes} people need {nodes} marks of who is private, got the shape {who.shape}")
    public = 0 if who.all() else public_steps
    spend = _Spend(name="edgerr", epsilon=epsilon, tree_share=tree_share)
    return _drawn(spend, Neighbours.of_edges(edges, nodes), who, rng, steps, public, most)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spend:
    """A curator's budget: a share of it is the dendrogram's, the rest that of the counts at its nodes."""

    name: str
    epsilon: float
    tree_share: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_budget(self.name, self.epsilon))
        share = check_number(self.name, "tree_share", self.tree_share)
        if not 0 < share < 1:
            raise OptionError(f"{self.name}: tree_share must be between 0 and 1, got {share}")
        object.__setattr__(self, "tree_share", share)

    @property
    def tree(self) -> float:
        return self.tree_share * self.epsilon

    @property
    def counts(self) -> float:
        return (1 - self.tree_share) * self.epsilon


def _drawn(
    spend: _Spend,
    lists: Neighbours,
    private: NDArray[np.bool_],
    rng: Source,
    steps: int | None,
    public_steps: int,
    most: float,
) -> LinkEstimate:
    nodes = lists.nodes
    count = STEPS * nodes if steps is None else steps
    scale = spend.tree / (2 * sensitivity(max(3, int(private.sum()))))
    chain = sample_dendrogram(lists, private, rng, steps=count, scale=scale, public_steps=public_steps)
    drawn = _links(chain.dendrogram, private, spend, rng, most)
    rows = lists.rows()
    below = (lists.indices < rows) & ~(private[rows] & private[lists.indices])
    pairs = np.sort(np.concatenate([drawn, (rows * nodes + lists.indices)[below]]))
    facts = facts_of(
        spend.name,
        spend.epsilon,
        epsilon_tree=spend.tree,
        epsilon_counts=spend.counts,
        private_people=int(private.sum()),
        links=len(pairs),
        steps=chain.steps,
        accepted=chain.accepted,
        trace=list(chain.trace),
        caveat=CAVEAT,
    )
    return LinkEstimate(adjacency=symmetric(pairs, np.ones(len(pairs)), nodes), facts=facts)


def noisy_chances(tree: Dendrogram, epsilon: float, rng: Source) -> tuple[Floats, NDArray[np.bool_]]:
    """Return p~ of each internal node, and which of them are the tops of subtrees that share one p~.

    A subtree is one where noise would swamp the counts inside it: 1/(epsilon N) is at least 0.05 at its top and
    1/(epsilon m (m-1)) at least 0.01, of N private pairs there and m private people below. The tree alone decides that.
    A link counts at one node, or in one such subtree, so that all counts together cost epsilon.
    """
    people = tree.people
    many, inside = tree.pairs()[:, 1], tree.private[people:]
    with np.errstate(divide="ignore"):
        swamped = (1 / (epsilon * many) >= _LEAST_NOISE[0]) & (1 / (epsilon * inside * (inside - 1)) >= _LEAST_NOISE[1])
    chance = np.zeros(people - 1)
    tops = np.zeros(people - 1, dtype=bool)
    noise = discrete_laplace(epsilon, people - 1, rng)
    below = _links_below(tree)
    waiting = [tree.root]
    while waiting:
        node = waiting.pop()
        if node < people:
            continue
        at = node - people
        if swamped[at]:
            tops[at] = True
            pairs, there = inside[at] * (inside[at] - 1) // 2, below[at]
        else:
            pairs, there = many[at], tree.links[at, 1]
            waiting += [int(tree.left[at]), int(tree.right[at])]
        if pairs:
            chance[at] = min(1.0, max(0.0, (there + noise[at]) / pairs))
    return chance, tops


def _links_below(tree: Dendrogram) -> Whole:
    """Return how many private links are inside the subtree of each internal node."""
    people = tree.people
    total = tree.links[:, 1].copy()
    order, waiting = [], [tree.root]
    while waiting:
        node = waiting.pop()
        if node >= people:
            order.append(node)
            waiting += [int(tree.left[node - people]), int(tree.right[node - people])]
    for node in reversed(order):
        if tree.parent[node] >= 0:
            total[tree.parent[node] - people] += total[node - people]
    return np.asarray(total)


def _links(tree: Dendrogram, private: NDArray[np.bool_], spend: _Spend, rng: Source, most: float) -> Whole:
    """Return the private links that are drawn, as codes larger * people + smaller."""
    people = tree.people
    chance, tops = noisy_chances(tree, spend.counts, rng)
    order, start = tree.order()
    # Private people alone, in the order of the leaves, and how many of them come before each leaf.
    own = order[private[order]]
    before = np.concatenate([[0], np.cumsum(private[order])])
    across = np.flatnonzero((chance > 0) & ~tops)
    sizes = tree.pairs()[across, 1]
    within = np.flatnonzero((chance > 0) & tops)
    first = before[start[within + people]]
    count = tree.private[within + people]
    expected = float(sizes @ chance[across] + (count * (count - 1) // 2) @ chance[within])
    if expected > most:
        raise OptionError(
            f"{spend.name}: about {expected:,.0f} links would be drawn at epsilon {spend.counts:g} of the counts, more "
            f"than the {most:,.0f} that are allowed; spend more, or {allow_more(expected)}"
        )
    row, place = places(sizes, np.minimum(chance[across], _SURE), rng)
    one, two = tree.left[across[row]], tree.right[across[row]]
    width = tree.private[two]
    left = own[before[start[one]] + place // np.maximum(width, 1)]
    right = own[before[start[two]] + place % np.maximum(width, 1)]
    # Inside a subtree, each private person with those before her.
    rank = np.concatenate([np.arange(n) for n in count]) if len(count) else np.empty(0, np.int64)
    base, each = np.repeat(first, count), np.repeat(chance[within], count)
    more, where = places(rank, np.minimum(each, _SURE), rng)
    ends = (np.concatenate([left, own[base[more] + rank[more]]]), np.concatenate([right, own[base[more] + where]]))
    return np.asarray(np.maximum(*ends) * np.int64(people) + np.minimum(*ends))
