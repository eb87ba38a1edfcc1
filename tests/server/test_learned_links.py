"""Solitude: the gradient by differences, an objective that never rises, links that help where reports are poor."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from graphldp.client.links import LinkReports, Neighbours, link_mechanism
from graphldp.errors import DataError, OptionError
from graphldp.randomness import generator
from graphldp.server.links_learned import LearnOptions, _Problem, choose_links, learn_links

NODES = 60


def clustered(epsilon: float = 3.0) -> tuple[LinkReports, np.ndarray, np.ndarray, np.ndarray]:
    """Return reports on a graph of two classes that link within, features that hint at them, labels, who trains."""
    rng = generator(0, "clustered")
    labels = np.arange(NODES) % 2
    pairs = np.array(list(itertools.combinations(range(NODES), 2)))
    inside = labels[pairs[:, 0]] == labels[pairs[:, 1]]
    edges = pairs[rng.random(len(pairs)) < np.where(inside, 0.2, 0.01)].T
    features = rng.normal(size=(NODES, 5)) + labels[:, None]
    sent = link_mechanism("rr", epsilon, NODES).perturb(Neighbours.of_edges(edges, NODES), generator(1, "clustered"))
    return sent, features, labels, np.arange(0, NODES, 3)


def test_the_gradient_is_that_of_differences() -> None:
    rng = generator(0, "gradient")
    i, j = np.array([0, 0, 1, 2, 3]), np.array([1, 4, 2, 3, 5])
    problem = _Problem(i, j, np.ones(5), rng.normal(size=(6, 3)), np.arange(6) % 2, np.array([0, 1, 4]), LearnOptions())
    a, weights = rng.uniform(0.2, 0.9, 5), rng.normal(size=(3, 2))
    found = problem.links_gradient(a, weights)

    def loss(values: np.ndarray) -> float:
        s, _ = problem.normalised(values)
        return problem.task(s @ (s @ (problem.features @ weights)))[0]

    for k in range(5):
        step = np.zeros(5)
        step[k] = 1e-6
        assert found[k] == pytest.approx((loss(a + step) - loss(a - step)) / 2e-6, rel=1e-5, abs=1e-9)


def test_the_objective_never_rises_and_falls() -> None:
    sent, features, labels, train = clustered()
    found = learn_links(sent, features, labels, train)
    path = np.array(found.objective)
    assert (np.diff(path) <= 1e-12).all()
    assert path[-1] < 0.9 * path[0]
    assert found.estimate.facts["turns"] == len(path) - 1
    reported = {tuple(p) for p in np.sort(np.stack([sent.owners[sent.rows()], sent.indices]), axis=0).T.tolist()}
    edges, weights = found.estimate.edges()
    assert {tuple(p) for p in edges.T.tolist()} <= reported
    assert 0 < weights.min() <= weights.max() <= 1
    assert not found.estimate.adjacency.diagonal().any()
    assert found.scores.shape == (NODES, 2)


def test_links_between_classes_lose_more_weight_than_those_within() -> None:
    sent, _, labels, train = clustered(epsilon=2.0)
    sure = np.eye(2)[labels]
    edges, weights = learn_links(sent, sure, labels, train, options=LearnOptions(rounds=150)).estimate.edges()
    seen = np.isin(edges, train).any(axis=0)
    within = labels[edges[0]] == labels[edges[1]]
    before = np.stack([sent.owners[sent.rows()], sent.indices])
    crossing = np.isin(before, train).any(axis=0) & (labels[before[0]] != labels[before[1]])
    assert crossing.sum() > 20
    assert weights[seen & ~within].sum() < 0.1 * crossing.sum()
    assert weights[seen & within].mean() > 0.5


def test_labels_outside_of_training_and_the_form_of_features_change_nothing() -> None:
    sent, features, labels, train = clustered()
    options = LearnOptions(rounds=5)
    one = learn_links(sent, features, labels, train, options=options)
    other = labels.copy()
    other[np.setdiff1d(np.arange(NODES), train)] = -1
    two = learn_links(sent, sp.csr_array(features), other, train, options=options)
    np.testing.assert_allclose(one.objective, two.objective)


def test_of_several_the_one_that_others_labels_speak_for_is_kept() -> None:
    sent, features, labels, train = clustered()
    validation = np.arange(1, NODES, 3)
    options = LearnOptions(rounds=20)
    fits = (1e-4, 1e-3, 1e-1)

    def loss(scores: np.ndarray) -> float:
        own = scores[validation]
        return float(
            -np.log(np.exp(own) / np.exp(own).sum(axis=1, keepdims=True))[range(20), labels[validation]].mean()
        )

    each = [learn_links(sent, features, labels, train, options=LearnOptions(rounds=20, fit=fit)) for fit in fits]
    losses = [loss(one.scores) for one in each]
    assert len(set(losses)) == 3
    found = choose_links(sent, features, labels, train, validation, fits=fits, options=options)
    assert found.estimate.facts["fit"] == fits[int(np.argmin(losses))]
    np.testing.assert_array_equal(found.scores, each[int(np.argmin(losses))].scores)
    # The labels of nobody else are read: not those of the test part, and not a class that nobody trains on.
    other = labels.copy()
    other[2::3] = -1
    again = choose_links(sent, features, other, train, validation, fits=fits, options=options)
    np.testing.assert_array_equal(again.scores, found.scores)
    other[1] = 5
    assert choose_links(sent, features, other, train, validation, fits=fits, options=options).scores.shape[1] == 2
    with pytest.raises(DataError, match="takes validation labels"):
        choose_links(sent, features, labels, train, [], options=options)


def test_weight_that_costs_much_goes_and_an_empty_graph_still_learns() -> None:
    sent, features, labels, train = clustered()
    none = learn_links(sent, features, labels, train, options=LearnOptions(sparse=10.0))
    assert none.estimate.links == 0
    assert none.estimate.adjacency.shape == (NODES, NODES)
    assert np.isfinite(none.scores).all()


def test_bad_input_is_one_line() -> None:
    sent, features, labels, train = clustered()
    for call, error, text in (
        (lambda: learn_links(sent, features[:5], labels, train), DataError, "as many rows"),
        (lambda: learn_links(sent, features, labels, []), DataError, "there is none"),
        (lambda: learn_links(sent, features, labels - 1, train), DataError, "has no class"),
        (lambda: learn_links(sent, features, labels, train, max_memory=1e4), OptionError, "raise --max-memory"),
        (lambda: LearnOptions(rounds=0), OptionError, "rounds must be at least 1"),
        (lambda: LearnOptions(fit=-1.0), OptionError, "fit must be at least 0"),
    ):
        with pytest.raises(error, match=text):
            call()
