from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from learn_factory import small_problem

from graphldp.errors import DataError, OptionError
from graphldp.learn import (
    Options,
    Replica,
    chosen_point,
    fit,
    random_split,
    runs_of,
    unit_filter,
)
from graphldp.points import AXES, Space, points

SPACE = Space(learning_rate=(0.1, 0.01), weight_decay=(0.0, 0.01), dropout=(0.0, 0.5), steps=(0, 1, 2))


def replicas(count: int, nodes: int, labels: np.ndarray, start: int = 0) -> list[Replica]:
    out = []
    for seed in range(start, start + count):
        split = random_split(np.arange(nodes), np.random.default_rng(seed))
        out.append(Replica(inputs=seed % 2, split=split, labels=split.visible(labels), seed=seed))
    return out


def test_points_are_distinct_members_of_the_space_and_depend_on_the_seed() -> None:
    drawn = points(SPACE, 10, seed=0)
    assert len(set(drawn)) == 10
    for one in drawn:
        for name in AXES:
            assert getattr(one, name) in getattr(SPACE, name)
        assert one.options == ()
    assert drawn == points(SPACE, 10, seed=0)
    assert drawn != points(SPACE, 10, seed=1)
    assert len(set(points(SPACE, SPACE.size, seed=0))) == SPACE.size == 24


def test_every_point_is_drawn_equally_often() -> None:
    counts = dict.fromkeys(points(SPACE, 24, 0), 0)
    for seed in range(600):
        for one in points(SPACE, 6, seed):
            counts[one] += 1
    # Binomial(600, 1/4): mean 150, standard deviation 10.6; 6 of them.
    assert max(abs(count - 150) for count in counts.values()) < 64


def test_a_space_smaller_than_the_budget_is_refused() -> None:
    with pytest.raises(OptionError, match="has 24 points, fewer than the budget of 25"):
        points(SPACE, 25, 0)
    with pytest.raises(OptionError, match="must be >= 1 point, got 0"):
        points(SPACE, 0, 0)
    with pytest.raises(OptionError, match="at least one dropout"):
        Space(dropout=())
    with pytest.raises(OptionError, match="must be distinct"):
        Space(steps=(1, 1))
    with pytest.raises(OptionError, match="steps must be >= 0, got -1"):
        Space(steps=(0, -1))


def test_the_lowest_mean_loss_is_chosen() -> None:
    losses = np.array([[1.0, 3.0], [2.5, 1.0], [1.0, 2.5], [0.1, np.inf]])
    assert chosen_point(losses) == 1
    assert chosen_point(losses, np.array([[False, False], [True, False], [False, False], [False, False]])) == 2
    with pytest.raises(DataError, match="no point of the search has a finite validation loss"):
        chosen_point(np.full((2, 2), np.inf))


def test_every_point_is_trained_on_every_replica_and_chosen_by_validation() -> None:
    problem, labels = small_problem()
    seeds = replicas(2, problem.nodes, labels)
    candidates = points(SPACE, 5, 0)
    options = Options(epochs=15)
    runs = runs_of(candidates, seeds)
    assert [(run.learning_rate, run.seed) for run in runs] == [
        (point.learning_rate, replica.seed) for point in candidates for replica in seeds
    ]
    assert [run.coefficients for run in runs[::2]] == [unit_filter(point.steps) for point in candidates]
    losses = fit(problem, runs, options, device="cpu").validation_loss.reshape(5, 2)
    by_hand = [
        np.mean([fit(problem, [run], options, device="cpu").validation_loss[0] for run in runs_of([point], seeds)])
        for point in candidates
    ]
    np.testing.assert_allclose(losses.mean(axis=1), by_hand, rtol=1e-4)
    assert chosen_point(losses) == int(np.argmin(by_hand))


def test_test_labels_cannot_steer_the_search() -> None:
    """Whatever the test labels are, search sees the same, since it is never given them."""
    problem, labels = small_problem()
    split = random_split(np.arange(problem.nodes), np.random.default_rng(0))
    other = labels.copy()
    other[split.test] = (other[split.test] + 1) % problem.classes
    runs = [
        runs_of(points(SPACE, 4, 0), [Replica(inputs=0, split=split, labels=split.visible(truth), seed=0)])
        for truth in (labels, other)
    ]
    found = [fit(problem, one, Options(epochs=5), device="cpu") for one in runs]
    np.testing.assert_array_equal(found[0].validation_loss, found[1].validation_loss)
    np.testing.assert_array_equal(found[0].predictions, found[1].predictions)
    # Unhidden labels are refused by the engine itself.
    shown = runs_of(points(SPACE, 1, 0), [Replica(inputs=0, split=split, labels=labels, seed=0)])
    with pytest.raises(DataError, match="must be hidden"):
        fit(problem, shown, Options(epochs=1), device="cpu")


def test_unit_filter() -> None:
    assert unit_filter(0) == (1.0,)
    assert unit_filter(2) == (0.0, 0.0, 1.0)


def test_a_small_budget_tries_every_value_as_often_as_the_others() -> None:
    """A draw without balance can leave a depth of the filter untried, and then decides the table."""
    space = Space(
        learning_rate=(0.01, 0.03), weight_decay=(0.001, 0.01, 0.03, 0.1), dropout=(0.25, 0.75), steps=(0, 2, 4, 8, 16)
    )
    for seed in range(20):
        drawn = points(space, 16, seed)
        for name in ("learning_rate", "weight_decay", "dropout", "steps"):
            counts = Counter(getattr(point, name) for point in drawn)
            assert set(counts) == set(getattr(space, name))
            assert max(counts.values()) - min(counts.values()) <= 1
