"""Trusted curators' graphs: laws on small graphs, budgets, and that public links stay as they are."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy import stats

from graphldp.client.links import Neighbours
from graphldp.errors import DataError, OptionError
from graphldp.randomness import generator
from graphldp.server.links import LinkEstimate
from graphldp.trusted import edge_rr, edgerand, lapgraph, noisy_chances, priv_hrg, private_people, random_dendrogram
from graphldp.trusted.hrg import _links, _links_below, _Spend

EDGES = np.array([[0, 1, 1, 4], [1, 2, 3, 5]])  # of 8 people, of whom 6 and 7 know nobody
EVERY: list[Any] = [edgerand, lapgraph, lambda *a, **k: priv_hrg(*a, steps=200, **k)]


def links(found: LinkEstimate) -> frozenset[tuple[int, int]]:
    return frozenset((int(u), int(v)) for u, v in found.edges()[0].T)


def ring(nodes: int) -> np.ndarray:
    return np.stack([np.arange(nodes), (np.arange(nodes) + 1) % nodes])


@pytest.mark.slow
@pytest.mark.parametrize("make", EVERY)
def test_a_curators_graph_has_no_loop_keeps_everybody_and_says_whom_to_trust(make: Any) -> None:
    for epsilon in (0.5, 20.0):
        found = make(EDGES, 8, epsilon, generator(0, "graph", epsilon))
        assert found.adjacency.shape == (8, 8)
        assert not found.adjacency.diagonal().any()
        assert abs(found.adjacency - found.adjacency.T).sum() == 0
        assert found.links == found.facts["links"] == len(links(found))
        assert found.facts["epsilon"] == epsilon
        assert "sees every link" in found.facts["trust"]


def test_a_large_budget_leaves_the_links_as_they_are() -> None:
    true = {(0, 1), (1, 2), (1, 3), (4, 5)}
    assert links(edgerand(EDGES, 8, 200.0, generator(0, "all"))) == true
    assert links(lapgraph(EDGES, 8, 200.0, generator(0, "all"), count_share=0.5)) == true


def test_noise_on_every_pair_and_only_on_those_that_matter_give_the_same_graphs() -> None:
    """LapGraph by its definition, on all ten pairs of five people, against the shortcut."""
    edges, runs, epsilon, share = np.array([[0, 1, 2], [1, 2, 4]]), 1200, 2.0, 0.3
    pairs = list(itertools.combinations(range(5), 2))
    there = np.array([p in {(0, 1), (1, 2), (2, 4)} for p in pairs], dtype=float)
    rng = generator(0, "lapgraph")
    plain, ours = Counter[frozenset[tuple[int, int]]](), Counter[frozenset[tuple[int, int]]]()
    r = np.exp(-share * epsilon)
    for _ in range(runs):
        count = int(np.clip(3 + rng.geometric(1 - r) - rng.geometric(1 - r), 0, 10))
        scores = there + rng.laplace(0, 1 / ((1 - share) * epsilon), 10)
        plain[frozenset(pairs[k] for k in np.argsort(-scores)[:count])] += 1
        ours[links(lapgraph(edges, 5, epsilon, rng, count_share=share))] += 1
    sizes = np.array([[sum(v for k, v in c.items() if len(k) == n) for n in range(11)] for c in (plain, ours)])
    assert stats.chi2_contingency(sizes[:, sizes.sum(axis=0) > 20]).pvalue > 1e-6
    often = np.array([[sum(v for k, v in c.items() if p in k) for p in pairs] for c in (plain, ours)])
    for one, two in often.T:
        assert stats.chi2_contingency([[one, runs - one], [two, runs - two]]).pvalue > 1e-6
    both = [k for k in plain if plain[k] + ours[k] > 30]
    assert stats.chi2_contingency([[plain[k] for k in both], [ours[k] for k in both]]).pvalue > 1e-6


def test_the_shortcut_reaches_as_many_pairs_as_the_noisy_number_says_even_all_of_them() -> None:
    rng = generator(3, "many")
    found = {lapgraph(EDGES, 8, 0.02, rng, count_share=0.5).links for _ in range(60)}
    assert {0, 28} <= found


@pytest.mark.slow
def test_public_links_stay_and_private_ones_are_drawn_anew() -> None:
    edges = ring(60)
    private = private_people(edges, 60, 0.3, generator(0, "who"))
    found = links(edge_rr(edges, 60, 0.5, generator(0, "edgerr"), private=private, steps=500))
    true = {(min(u, v), max(u, v)) for u, v in edges.T.tolist()}
    inside = {p for p in true if private[p[0]] and private[p[1]]}
    assert len(inside) / 60 == pytest.approx(0.3, abs=0.05)
    assert true - inside <= found
    drawn = found - true
    assert drawn
    assert all(private[u] and private[v] for u, v in drawn)
    again = edge_rr(edges, 60, 0.5, generator(0, "edgerr"), private=private, steps=500)
    assert links(again) == found
    assert "no proof of pure differential privacy" in again.facts["caveat"]
    assert len(again.facts["trace"]) > 2
    assert 0 < again.facts["accepted"] <= 1


def test_everybody_private_is_the_mechanism_without_public_links() -> None:
    everybody = np.ones(30, bool)
    one = edge_rr(ring(30), 30, 1.0, generator(0, "same"), private=everybody, steps=300)
    two = priv_hrg(ring(30), 30, 1.0, generator(0, "same"), steps=300)
    assert links(one) == links(two)
    assert private_people(ring(30), 30, 1.0, generator(0, "who")).all()


def test_chances_are_within_0_and_1_and_every_link_counts_once() -> None:
    """The counts behind the chances add up to the links: a link moves one count by one, which is what epsilon buys."""
    edges = ring(40)
    lists, private = Neighbours.of_edges(edges, 40), np.arange(40) % 4 > 0
    tree = random_dendrogram(lists, private, generator(0, "tree"))
    inside = sum(bool(private[u] and private[v]) for u, v in edges.T)
    for epsilon in (0.05, 1.0, 50.0):
        chance, tops = noisy_chances(tree, epsilon, generator(0, "noise", epsilon))
        assert 0 <= chance.min() <= chance.max() <= 1
        under = np.zeros(39, bool)  # inside a subtree that has one chance
        waiting = [(tree.root, False)]
        while waiting:
            node, hidden = waiting.pop()
            if node >= 40:
                under[node - 40] = hidden
                down = hidden or bool(tops[node - 40])
                waiting += [(int(tree.left[node - 40]), down), (int(tree.right[node - 40]), down)]
        assert not (tops & under).any()
        assert not chance[under].any()
        counted = tree.links[~tops & ~under, 1].sum() + _links_below(tree)[tops].sum()
        assert counted == inside
    assert tops.any()


def test_links_are_drawn_with_the_chance_of_the_node_that_separates_the_pair() -> None:
    """A tiny budget: one chance for everybody; a large one: the share of links at each node."""
    lists, private = Neighbours.of_edges(ring(12), 12), np.arange(12) != 5
    tree = random_dendrogram(lists, private, generator(1, "tree"))
    hits = np.zeros((12, 12))
    spend = _Spend(name="x", epsilon=120.0, tree_share=0.5)  # 60 for the counts
    runs = 800
    for run in range(runs):
        drawn = _links(tree, private, spend, generator(run, "draw"), 1e6)
        assert len(set(drawn.tolist())) == len(drawn)
        hits[drawn // 12, drawn % 12] += 1
    chance, tops = noisy_chances(tree, 60.0, generator(0, "exact"))
    order, start = tree.order()
    for k, (a, b) in enumerate(zip(tree.left, tree.right, strict=True)):
        if tops[k]:
            continue
        for u, v in itertools.product(
            order[start[a] : start[a] + tree.leaves[a]], order[start[b] : start[b] + tree.leaves[b]]
        ):
            if private[u] and private[v]:
                count = int(hits[max(u, v), min(u, v)])
                assert stats.binomtest(count, runs, float(chance[k])).pvalue > 1e-7 or chance[k] == 1
            else:
                assert hits[max(u, v), min(u, v)] == 0


def test_bad_options_are_one_line() -> None:
    rng = generator(0, "bad")
    for call, error, text in (
        (lambda: lapgraph(EDGES, 8, 1.0, rng, count_share=0.0), OptionError, "count_share must be between 0 and 1"),
        (lambda: lapgraph(EDGES, 8, -1.0, rng), OptionError, "epsilon must be finite and > 0"),
        (
            lambda: lapgraph(EDGES, 8, 90.0, rng, count_share=0.5, most=1),
            OptionError,
            "more than the 1 that are allowed",
        ),
        (lambda: priv_hrg(EDGES, 8, 1.0, rng, tree_share=1.0), OptionError, "tree_share must be between 0 and 1"),
        (lambda: priv_hrg(EDGES, 8, 50.0, rng, most=0.001), OptionError, "links would be drawn"),
        (lambda: edge_rr(EDGES, 8, 1.0, rng, private=[True]), DataError, "8 marks of who is private"),
        (lambda: private_people(EDGES, 8, 0.0, rng), OptionError, "rho must be above 0"),
        (lambda: edgerand([[0, 1], [1, 0]], 8, 1.0, rng), DataError, "more than once"),
    ):
        with pytest.raises(error, match=text):
            call()
