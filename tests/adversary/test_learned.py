from __future__ import annotations

import numpy as np
import pytest

from graphldp.adversary import (
    LearnedView,
    Tally,
    facts_of,
    fit_logistic,
    learned_chances,
    neighbour_votes,
    public_view,
)
from graphldp.client import protocol
from graphldp.datasets import spec
from graphldp.datasets.build import parse
from graphldp.errors import DataError
from graphldp.graph import Graph
from graphldp.server import kprop, rectify


@pytest.fixture(scope="module")
def graph() -> Graph:
    return parse(spec("synthetic"), {})


def test_the_regression_is_scikit_learns() -> None:
    sklearn = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 4)) * [1, 3, 0.2, 1]
    y = rng.random(400) < 1 / (1 + np.exp(-(x @ [1, -0.5, 2, 0] - 3)))
    weights = fit_logistic(x, y, ridge=2.0)
    other = sklearn.LogisticRegression(C=0.5, tol=1e-10, max_iter=10_000).fit(x, y)
    assert weights[1:] == pytest.approx(other.coef_[0], abs=1e-4)
    assert weights[0] == pytest.approx(other.intercept_[0], abs=1e-4)
    assert (fit_logistic(x, y, ridge=2.0) == weights).all()


def test_a_regression_of_separable_people_ends() -> None:
    x = np.linspace(-50, 50, 200)[:, None]
    weights = fit_logistic(x, x[:, 0] > 10)
    assert np.isfinite(weights).all()
    assert ((weights[0] + weights[1] * x[:, 0] > 0) == (x[:, 0] > 10)).mean() > 0.98


def test_a_regression_needs_people_of_both_kinds() -> None:
    with pytest.raises(DataError, match="with the attribute and without: one of the two is missing"):
        fit_logistic(np.zeros((5, 1)), np.ones(5))


def _advantage(graph: Graph, inputs: np.ndarray, attribute: int) -> float:
    (fact,) = facts_of(graph.features, [attribute])
    known, scored = np.arange(0, graph.nodes, 2), np.arange(1, graph.nodes, 2)
    chances = learned_chances(inputs, fact.holds, known, scored)
    tally = Tally(graph.nodes)
    tally.add(fact, chances > 0.5, chances > fact.prior, scored)
    return tally.advantage.value


def test_the_attack_finds_what_was_planted_and_nothing_where_nothing_is(graph: Graph) -> None:
    public = public_view(graph, np.arange(0, graph.nodes, 2))
    found = {}
    for name, epsilon in (("identity", np.inf), ("mb", 500.0), ("mb", 1.0)):
        device = protocol(name, epsilon, graph.dimensions, graph.low, graph.high)
        estimate = rectify(device.perturb(graph.features, np.random.default_rng(0)))
        view = LearnedView.of(graph, estimate, kprop(2), [7])
        found[name, epsilon] = _advantage(graph, np.hstack([public, view.columns(0)]), 7)
    assert found["identity", np.inf] > 0.98
    assert found["mb", 500.0] > 0.9
    floor = _advantage(graph, public, 7)
    assert abs(found["mb", 1.0] - floor) < 0.15
    assert floor < 0.6
    noise = np.random.default_rng(5).normal(size=(graph.nodes, 3))
    assert abs(_advantage(graph, noise, 7)) < 0.15


def test_the_public_view_reads_training_labels_alone_and_nobodys_own(graph: Graph) -> None:
    train = np.arange(0, graph.nodes, 3)
    view = public_view(graph, train)
    labels = graph.labels.copy()
    hidden = np.setdiff1d(np.arange(graph.nodes), train)
    labels[hidden] = (labels[hidden] + 1) % graph.classes
    import dataclasses

    assert (public_view(dataclasses.replace(graph, labels=labels), train) == view).all()
    # Another label of one person changes the rows of others, never her own.
    labels = graph.labels.copy()
    labels[train[4]] = (labels[train[4]] + 1) % graph.classes
    changed = np.flatnonzero((public_view(dataclasses.replace(graph, labels=labels), train) != view).any(axis=1))
    assert changed.size
    assert train[4] not in changed


def test_the_servers_view_is_what_the_filter_gives_and_the_neighbours_mean(graph: Graph) -> None:
    device = protocol("pm", 20.0, graph.dimensions, graph.low, graph.high)
    estimate = rectify(device.perturb(graph.features, np.random.default_rng(0)))
    calibration = kprop(2)
    view = LearnedView.of(graph, estimate, calibration, [3, 90])
    from graphldp.server import apply

    dense = apply(estimate, calibration, calibration.operator(graph))
    assert view.filtered == pytest.approx(dense[:, [3, 90]], abs=1e-4)
    own = estimate.deviations().toarray()[:, [3, 90]]
    assert view.own == pytest.approx(own)
    near = graph.adjacency().toarray()
    assert view.around == pytest.approx((near @ own) / np.maximum(1, near.sum(axis=1))[:, None], abs=1e-4)
    assert view.columns(1)[:, 0] == pytest.approx(own[:, 1])


def test_neighbours_vote_and_she_herself_does_not(graph: Graph) -> None:
    odds = np.random.default_rng(0).normal(size=graph.nodes)
    odds[::7] = 0.0
    votes = neighbour_votes(graph, odds)
    near = graph.adjacency().toarray()
    assert (votes == near @ np.sign(odds)).all()
    assert (near.diagonal() == 0).all()


def test_a_tally_counts_what_a_person_would_count() -> None:
    x = np.array([[1, 0], [1, 1], [0, 0], [0, 0], [0, 1]], dtype=float)
    one, two = facts_of(x, [0, 1])
    tally = Tally(5)
    tally.add(one, np.array([1, 0, 0, 0, 1], bool), np.array([1, 0, 0, 0, 1], bool))
    tally.add(two, np.array([0, 1], bool), np.array([1, 1], bool), np.array([3, 4]))
    assert tally.accuracy.value == pytest.approx((3 + 2) / 7)
    assert tally.commonest.value == pytest.approx((3 + 1) / 7)
    assert tally.gain.value == pytest.approx(1 / 7)
    assert tally.advantage.value == pytest.approx((1 + 1) / (2 + 1) - (1 + 1) / (3 + 1))
    twice = tally.together(tally)
    assert twice.advantage.value == pytest.approx(tally.advantage.value)
    assert np.isnan(Tally(3).advantage.value)


def test_the_error_of_a_tally_is_that_of_repeated_draws() -> None:
    rng = np.random.default_rng(0)
    values, errors = [], []
    for _ in range(300):
        x = (rng.random((400, 3)) < 0.3).astype(float)
        tally = Tally(400)
        person = rng.random(400)  # one person's guesses go wrong together
        for fact in facts_of(x, range(3)):
            guess = np.where(person < 0.3, ~fact.holds, fact.holds)
            tally.add(fact, guess, guess)
        values.append(tally.accuracy.value)
        errors.append(tally.accuracy.error)
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.15)
