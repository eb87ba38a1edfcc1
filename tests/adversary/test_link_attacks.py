"""Attacks on links: the best guess stays within the claimed epsilon; a model gives its own graph away."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from graphldp.adversary.links import area, attack_reports, influence_attack, link_log_odds, pairs_to_guess
from graphldp.client.links import Neighbours, link_mechanism, link_names
from graphldp.errors import DataError
from graphldp.randomness import generator
from graphldp.server.links import estimate_links

NODES = 400
WAYS = [(name, report) for name in link_names() for report in ("lower", "both")]


def ring(nodes: int = NODES, reach: int = 4) -> np.ndarray:
    start = np.repeat(np.arange(nodes), reach)
    return np.stack([start, (start + np.tile(np.arange(1, reach + 1), nodes)) % nodes])


@pytest.mark.parametrize(("name", "report"), WAYS)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_best_guess_fits_the_claimed_epsilon(name: str, report: str, epsilon: float) -> None:
    built, lists = link_mechanism(name, epsilon, NODES, report), Neighbours.of_edges(ring(), NODES)
    sent = built.perturb(lists, generator(0, name, report, epsilon))
    pairs, truth = pairs_to_guess(lists, generator(0, "pairs"))
    odds = link_log_odds(sent, lists, pairs)
    assert np.abs(odds).max() <= built.relationship_epsilon * (1 + 1e-6)
    found = attack_reports(sent, lists, pairs, truth)
    slack = 5 / math.sqrt(found.links)
    assert found.advantage <= found.advantage_bound + slack
    assert found.area <= found.area_bound + slack
    if name == "rr" and report == "lower":  # randomised response reaches what its epsilon allows
        assert found.advantage == pytest.approx(found.advantage_bound, abs=slack)
        assert found.area == pytest.approx(found.area_bound, abs=slack)
    if name != "dprr":
        assert found.advantage > 0.3 * found.advantage_bound


@pytest.mark.parametrize("name", ["blink", "dprr", "rr"])
def test_the_odds_are_those_of_both_reports_laws(name: str) -> None:
    """Against the mechanism's own law of both ends' reports, with the pair linked and not."""
    nodes, edges = 6, np.array([[0, 1, 2, 0], [1, 2, 4, 5]])
    for report, pair in itertools.product(("lower", "both"), ((4, 2), (3, 1))):
        built = link_mechanism(name, 1.7, nodes, report)
        linked = {tuple(sorted(p)) for p in edges.T.tolist()} | {tuple(sorted(pair))}
        graphs = [
            Neighbours.of_edges(np.array(sorted(one)).T, nodes) for one in (linked, linked - {tuple(sorted(pair))})
        ]
        truth = Neighbours.of_edges(edges, nodes)
        sent = built.perturb(truth, generator(3, name, report))
        laws = [built.log_law(sent, graph).sum() for graph in graphs]
        assert link_log_odds(sent, truth, np.array([[pair[0]], [pair[1]]]))[0] == pytest.approx(laws[0] - laws[1])


def test_pairs_are_half_links_and_none_stands_twice() -> None:
    lists = Neighbours.of_edges(ring(30, 3), 30)
    pairs, truth = pairs_to_guess(lists, generator(0, "half"), 40)
    codes = pairs[0] * 30 + pairs[1]
    true = lists.rows() * 30 + lists.indices
    assert truth.sum() == 40
    assert len(truth) == 80
    assert len(np.unique(codes)) == 80
    assert (np.isin(codes, true) == truth).all()
    assert (pairs[0] > pairs[1]).all()
    with pytest.raises(DataError, match="needs a graph that has one"):
        pairs_to_guess(Neighbours.of_edges(np.empty((2, 0), int), 9), generator(0, "none"))


def test_the_area_counts_ties_half() -> None:
    rng = generator(0, "area")
    scores, truth = rng.integers(0, 5, 60).astype(float), rng.random(60) < 0.4
    expected = stats.mannwhitneyu(scores[truth], scores[~truth]).statistic / (truth.sum() * (~truth).sum())
    assert area(scores, truth) == pytest.approx(expected)


def test_influence_tells_the_links_that_the_model_uses() -> None:
    nodes, edges = 40, ring(40, 2)
    lists, rng = Neighbours.of_edges(edges, nodes), generator(0, "model")
    weights, features = rng.normal(size=(5, 3)), rng.normal(size=(nodes, 5))
    dense = np.zeros((nodes, nodes))
    dense[lists.rows(), lists.indices] = 1
    people = np.arange(0, nodes, 1)
    open_model = influence_attack(lambda x: np.tanh((dense + np.eye(nodes)) @ x @ weights / 5), features, lists, people)
    assert open_model.area == 1.0
    assert open_model.precision == 1.0
    assert open_model.advantage == 1.0
    alone = influence_attack(lambda x: np.tanh(x @ weights), features, lists, people)
    assert alone.area == pytest.approx(0.5)
    # On a graph that was estimated from reports, it tells as much as that graph does.
    sent = link_mechanism("rr", 2.0, nodes).perturb(lists, generator(1, "model"))
    noisy = estimate_links(sent).adjacency.toarray()
    private = influence_attack(lambda x: (noisy + np.eye(nodes)) @ x @ weights, features, lists, people)
    assert private.advantage < 0.9
    with pytest.raises(DataError, match="choose others"):
        influence_attack(lambda x: x, features, lists, [0, 10, 20])
