"""Dendrograms: the likelihood by its formula, the chain's law against all trees over five people."""

from __future__ import annotations

import itertools
import math
import sys
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from graphldp.client.links import Neighbours
from graphldp.errors import DataError, MissingExtraError, OptionError
from graphldp.randomness import generator
from graphldp.trusted import dendrogram
from graphldp.trusted.dendrogram import Dendrogram, random_dendrogram, sample_dendrogram, sensitivity, steps_of

EDGES = np.array([[0, 0, 1, 3], [1, 2, 2, 4]])
Clades = frozenset[frozenset[int]]


def clades(tree: Dendrogram) -> Clades:
    """Return the tree as the sets of people below its internal nodes."""
    out = []

    def below(node: int) -> frozenset[int]:
        if node < tree.people:
            return frozenset([node])
        both = below(int(tree.left[node - tree.people])) | below(int(tree.right[node - tree.people]))
        out.append(both)
        return both

    below(tree.root)
    return frozenset(out)


def every_tree(people: frozenset[int]) -> list[tuple[Clades, list[tuple[frozenset[int], frozenset[int]]]]]:
    """Return all binary trees over people: their clades, and the two sides of each internal node."""
    if len(people) == 1:
        return [(frozenset(), [])]
    first, *rest = sorted(people)
    out = []
    for size in range(len(rest)):
        for chosen in itertools.combinations(rest, size):
            one = frozenset([first, *chosen])
            two = people - one
            for a, b in itertools.product(every_tree(one), every_tree(two)):
                out.append((a[0] | b[0] | {people}, [*a[1], *b[1], (one, two)]))
    return out


def direct(sides: list[tuple[frozenset[int], frozenset[int]]], edges: np.ndarray, pairs: set[frozenset[int]]) -> float:
    """Return the log-likelihood of the links among these pairs by its formula."""
    total = 0.0
    for one, two in sides:
        across = [frozenset(p) for p in itertools.product(one, two) if frozenset(p) in pairs]
        there = sum(frozenset(p) in across for p in edges.T.tolist())
        if 0 < there < len(across):
            p = there / len(across)
            total += there * math.log(p) + (len(across) - there) * math.log(1 - p)
    return total


def sides_of(tree: Dendrogram) -> list[tuple[frozenset[int], frozenset[int]]]:
    order, start = tree.order()

    def people(node: int) -> frozenset[int]:
        return frozenset(order[start[node] : start[node] + tree.leaves[node]].tolist())

    return [(people(int(a)), people(int(b))) for a, b in zip(tree.left, tree.right, strict=True)]


def random_edges(nodes: int, chance: float, seed: int) -> np.ndarray:
    pairs = np.array(list(itertools.combinations(range(nodes), 2)))
    return pairs[generator(seed, "tree", nodes).random(len(pairs)) < chance].T


@pytest.mark.parametrize("public_steps", [0, 2])
def test_counts_and_likelihood_after_many_moves_are_those_of_the_tree_written_out(public_steps: int) -> None:
    nodes, edges = 17, random_edges(17, 0.3, 0)
    private = np.arange(nodes) % 3 > 0
    run = sample_dendrogram(
        Neighbours.of_edges(edges, nodes),
        private,
        generator(0, "moves"),
        steps=400,
        scale=0.3,
        public_steps=public_steps,
    )
    tree, sides = run.dendrogram, sides_of(run.dendrogram)
    pairs = {frozenset(p) for p in itertools.combinations(range(nodes), 2)}
    hidden = {p for p in pairs if all(private[k] for k in p)}
    for k, (one, two) in enumerate(sides):
        across = {frozenset(p) for p in itertools.product(one, two)}
        there = {frozenset(p) for p in edges.T.tolist()} & across
        assert tree.links[k].tolist() == [len(there - hidden), len(there & hidden)]
        assert tree.pairs()[k].tolist() == [len(across - hidden), len(across & hidden)]
        assert tree.leaves[k + nodes] == len(one | two)
        assert tree.private[k + nodes] == sum(private[p] for p in one | two)
    for kind, those in enumerate((pairs - hidden, hidden)):
        assert tree.likelihood()[kind] == pytest.approx(direct(sides, edges, those))
    assert run.trace[-1] == pytest.approx(sum(tree.likelihood()))
    assert run.steps == 400 * (1 + public_steps)
    assert 0 < run.accepted < 1


def test_a_random_dendrogram_is_whole_and_counts_its_links() -> None:
    edges = random_edges(9, 0.4, 1)
    tree = random_dendrogram(Neighbours.of_edges(edges, 9), np.ones(9, bool), generator(0, "start"))
    pairs = {frozenset(p) for p in itertools.combinations(range(9), 2)}
    assert len(clades(tree)) == 8
    assert tree.links.sum() == edges.shape[1]
    assert tree.likelihood()[1] == pytest.approx(direct(sides_of(tree), edges, pairs))
    with pytest.raises(DataError, match="at least 3 people"):
        random_dendrogram(Neighbours.of_edges([[0], [1]], 2), np.ones(2, bool), generator(0, "few"))


def test_the_chain_visits_every_tree_over_five_people_as_often_as_its_law_says() -> None:
    trees, scale = every_tree(frozenset(range(5))), 1.5
    assert len(trees) == 105
    pairs = {frozenset(p) for p in itertools.combinations(range(5), 2)}
    logs = np.array([direct(sides, EDGES, pairs) for _, sides in trees])
    weight = np.exp(scale * (logs - logs.max()))
    law = dict(zip((tree for tree, _ in trees), weight / weight.sum(), strict=True))
    lists, rng, private = Neighbours.of_edges(EDGES, 5), generator(0, "chain", scale), np.ones(5, bool)
    tree = sample_dendrogram(lists, private, rng, steps=200, scale=scale).dendrogram
    parts = [tree.left, tree.right, tree.parent, tree.leaves, tree.private, tree.links]
    rest = (lists.indptr, lists.indices.astype(np.int64), private, np.empty(10, np.int64))
    seen: Counter[Clades] = Counter()
    visits = 6000
    for _ in range(visits):
        steps_of()(*parts, *rest, rng.random((30, 3)), scale, 1, 0)
        seen[clades(tree)] += 1
    assert set(seen) <= set(law)
    expected = np.array([law[tree] * visits for tree in law])
    counts = np.array([seen[tree] for tree in law])
    many = expected > 5
    fit = stats.chisquare(
        np.append(counts[many], counts[~many].sum() + 1e-9), np.append(expected[many], expected[~many].sum() + 1e-9)
    )
    assert fit.pvalue > 1e-4
    flat = stats.chisquare(counts, np.full(105, visits / 105))
    assert flat.pvalue < 1e-9


def test_compiled_and_plain_moves_are_the_same() -> None:
    edges = random_edges(12, 0.3, 2)
    lists, private = Neighbours.of_edges(edges, 12), np.arange(12) > 3
    tree = random_dendrogram(lists, private, generator(0, "same"))
    draws = generator(1, "same").random((300, 3))
    found = []
    for move in (steps_of(), plain_moves()):
        parts = [part.copy() for part in (tree.left, tree.right, tree.parent, tree.leaves, tree.private, tree.links)]
        taken = move(
            *parts, lists.indptr, lists.indices.astype(np.int64), private, np.empty(24, np.int64), draws, 0.4, 2, 0
        )
        found.append([taken, *parts])
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)


def plain_moves() -> object:
    return steps_of().py_func


def test_one_link_moves_the_likelihood_by_no_more_than_the_sensitivity() -> None:
    """Over all trees and graphs of four people, and by the formula at one node of many."""
    trees = every_tree(frozenset(range(4)))
    pairs = [frozenset(p) for p in itertools.combinations(range(4), 2)]
    largest = 0.0
    for there in itertools.product((0, 1), repeat=5):
        base = [sorted(p) for p, t in zip(pairs[1:], there, strict=True) if t]
        for _, sides in trees:
            values = [
                direct(sides, np.array(edges).reshape(-1, 2).T, set(pairs))
                for edges in (base, [*base, sorted(pairs[0])])
            ]
            largest = max(largest, abs(values[0] - values[1]))
    assert largest == pytest.approx(sensitivity(4))
    many = 500 * 500
    assert sensitivity(1000) == pytest.approx(math.log(many) + (many - 1) * math.log(many / (many - 1)))
    assert sensitivity(3) == pytest.approx(2 * math.log(2))


def test_bad_options_and_a_missing_extra_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    lists = Neighbours.of_edges(EDGES, 5)
    with pytest.raises(OptionError, match="steps >= 1"):
        sample_dendrogram(lists, np.ones(5, bool), generator(0, "x"), steps=0, scale=1.0)
    monkeypatch.setitem(sys.modules, "numba", None)
    dendrogram.steps_of.cache_clear()
    with pytest.raises(MissingExtraError, match=r"graphldp\[fast\]"):
        sample_dendrogram(lists, np.ones(5, bool), generator(0, "x"), steps=5, scale=1.0)
