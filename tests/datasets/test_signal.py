"""The dials on the scale of the theory, against what the drawn graphs show."""

from __future__ import annotations

import numpy as np
import pytest

from graphldp.client import protocol
from graphldp.datasets.options import Synthetic
from graphldp.datasets.signal import class_distance, signal
from graphldp.datasets.synthetic import synthetic, word_chances
from graphldp.errors import DataError, OptionError


@pytest.mark.parametrize("structure", [-1.0, -0.4, 0.0, 0.3, 1.0])
@pytest.mark.parametrize("classes", [2, 4])
def test_lambda_is_that_of_the_drawn_edges(structure: float, classes: int) -> None:
    options = Synthetic(nodes=20_000, classes=classes, structure=structure, degree=12)
    graph = synthetic(**options.values())
    a, b = graph.labels[graph.edges[0]], graph.labels[graph.edges[1]]
    neighbours = np.zeros((classes, classes))
    np.add.at(neighbours, (a, b), 1)
    neighbours += neighbours.T
    chance = neighbours / neighbours.sum(axis=1, keepdims=True)
    # The second eigenvalue by absolute value; the first belongs to the uniform vector.
    second = np.linalg.eigvals(chance - 1 / classes).real
    second = second[np.abs(second).argmax()]
    assert signal(options).structure == pytest.approx(second * np.sqrt(12), abs=0.08)
    if classes == 2:  # the theory's own words: (k_in - k_out) / (2 sqrt k)
        inside, outside = 2 * 12 * chance[0, 0], 2 * 12 * chance[0, 1]
        assert signal(options).structure == pytest.approx((inside - outside) / (2 * np.sqrt(12)), abs=0.08)


def test_below_zero_edges_leave_their_class() -> None:
    for dial in (-1.0, -0.5):
        graph = synthetic(nodes=20_000, structure=dial)
        inside = (graph.labels[graph.edges[0]] == graph.labels[graph.edges[1]]).mean()
        assert inside == pytest.approx((1 + dial) / 4, abs=0.008)
        pairs = graph.labels[graph.edges[0]] * 4 + graph.labels[graph.edges[1]]
        counts = np.bincount(pairs, minlength=16).reshape(4, 4)
        counts = (counts + counts.T)[~np.eye(4, dtype=bool)]
        assert counts.std() < 0.05 * counts.mean()  # each of the other classes alike


def test_unequal_classes_are_left_alike_too() -> None:
    graph = synthetic(nodes=20, classes=3, degree=2, structure=-1.0)
    assert (graph.labels[graph.edges[0]] != graph.labels[graph.edges[1]]).all()
    with pytest.raises(OptionError, match=r"at least 2 classes, got -0\.5"):
        synthetic(classes=1, structure=-0.5)
    with pytest.raises(OptionError, match=r"structure must be in -1\.\.1, got -1.5"):
        synthetic(structure=-1.5)


@pytest.mark.parametrize("features", [0.0, 0.6, 1.0])
def test_word_chances_are_the_law_of_the_drawn_words(features: float) -> None:
    options = Synthetic(nodes=40_000, classes=3, dimensions=32, words=6, features=features)
    graph = synthetic(**options.values())
    chances = word_chances(options)
    for label in range(3):
        rows = graph.features[graph.labels == label]
        count = rows.shape[0]
        error = np.sqrt(chances[label] * (1 - chances[label]) / count) + 1e-9
        assert (np.abs(rows.mean(axis=0) - chances[label]) < 5 * error).all()
    # Words are independent given the class: a pair of them is there as often as the product says.
    rows = graph.features[graph.labels == 0].toarray()
    both = (rows.T @ rows / len(rows))[np.triu_indices(32, 1)]
    expected = np.outer(chances[0], chances[0])[np.triu_indices(32, 1)]
    error = np.sqrt(expected * (1 - expected) / len(rows)) + 1e-9
    assert (np.abs(both - expected) < 5.5 * error).all()


def test_two_classes_are_mu_by_hand() -> None:
    chances = np.array([[0.2, 0.5], [0.4, 0.5]])
    within = (0.2 * 0.8 + 0.4 * 0.6) / 2
    assert class_distance(chances) == pytest.approx(0.1**2 / within)
    options = Synthetic(nodes=500, classes=2, dimensions=50)
    found = signal(options)
    assert found.gamma == 10
    assert found.features == pytest.approx(10 * class_distance(word_chances(options)))
    assert found.strength == pytest.approx(found.structure**2 + found.features**2 / 10)


def test_without_signal_there_is_none() -> None:
    found = signal(Synthetic(structure=0.0, features=0.0))
    assert (found.structure, found.features) == (0.0, pytest.approx(0.0, abs=1e-20))
    assert class_distance(np.array([[0.3, 0.4]])) == 0.0


@pytest.mark.parametrize("name", ["mb", "pm", "hds"])
def test_what_reports_leave_is_measured_on_drawn_reports(name: str) -> None:
    options = Synthetic(nodes=30_000, classes=2, dimensions=8, words=4, features=0.8)
    graph = synthetic(**options.values())
    device = protocol(name, 3.0, 8, 0.0, 1.0)
    reports = device.perturb(graph.features, np.random.default_rng(0))
    estimate = np.full((graph.nodes, 8), device.fill_value)
    index = np.tile(np.arange(8), (graph.nodes, 1)) if reports.index is None else reports.index
    np.put_along_axis(estimate, index, device.estimate(reports), axis=1)
    means = np.stack([estimate[graph.labels == k].mean(axis=0) for k in range(2)])
    within = np.mean([estimate[graph.labels == k].var(axis=0) for k in range(2)], axis=0)
    measured = (((means - means.mean(axis=0)) ** 2).mean(axis=0) / within).sum()
    expected = class_distance(word_chances(options), device)
    assert expected == pytest.approx(measured, rel=0.2)
    assert expected < 0.2 * class_distance(word_chances(options))


def test_bad_chances() -> None:
    with pytest.raises(DataError, match="probabilities"):
        class_distance(np.array([[1.2]]))
    with pytest.raises(DataError, match="3 dimensions"):
        class_distance(np.array([[0.2], [0.3]]), protocol("mb", 1.0, 3))
