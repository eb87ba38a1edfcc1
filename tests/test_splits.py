from __future__ import annotations

import numpy as np
import pytest

from graphldp.errors import DataError, OptionError
from graphldp.learn import Split, majority, random_split, score


@pytest.mark.parametrize(("nodes", "sizes"), [(2, (1, 1, 0)), (3, (1, 1, 1)), (4, (2, 1, 1)), (2708, (1354, 677, 677))])
def test_sizes(nodes: int, sizes: tuple[int, int, int]) -> None:
    split = random_split(np.arange(nodes), np.random.default_rng(0))
    assert (len(split.train), len(split.validation), len(split.test)) == sizes
    everything = np.concatenate([split.train, split.validation, split.test])
    assert sorted(everything.tolist()) == list(range(nodes))


def test_only_labelled_nodes_and_the_same_for_the_same_generator() -> None:
    pool = np.arange(3, 300, 7)
    one, two, other = (random_split(pool, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert set(one.train) | set(one.validation) | set(one.test) == set(pool)
    np.testing.assert_array_equal(one.train, two.train)
    assert not np.array_equal(one.train, other.train)
    few = random_split(pool, np.random.default_rng(0), train=0.05, validation=0.05)
    assert (len(few.train), len(few.validation)) == (2, 2)


def test_test_labels_are_hidden() -> None:
    labels = np.arange(10) % 3
    split = random_split(np.arange(9), np.random.default_rng(0))
    seen = split.visible(labels)
    assert (seen[split.test] == -1).all()
    assert seen[9] == -1
    np.testing.assert_array_equal(seen[split.train], labels[split.train])
    np.testing.assert_array_equal(seen[split.validation], labels[split.validation])
    assert (labels >= 0).all(), "the caller's labels were changed"


def test_score_and_majority() -> None:
    labels = np.array([0, 1, 1, 2, 2, 0])
    split = Split(train=np.array([0, 1, 2]), validation=np.array([3]), test=np.array([4, 5]))
    guess = majority(split.visible(labels), split)
    assert guess.tolist() == [1] * 6
    assert score(guess, labels, np.array([1, 2, 3])) == pytest.approx(2 / 3)
    both = score(np.array([[0, 1, 1, 2, 2, 2], [0] * 6]), labels, split.test)
    np.testing.assert_allclose(both, [0.5, 0.5])
    tied = Split(train=np.array([3, 5]), validation=np.array([1]), test=np.array([0]))
    assert majority(labels, tied)[0] == 0


def test_what_cannot_be_split_or_scored_is_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(DataError, match="at least 2 labelled nodes, got 1"):
        random_split([4], rng)
    for train, validation in [(0.0, 0.5), (0.8, 0.3), (0.5, 0.0), (float("nan"), 0.2)]:
        with pytest.raises(OptionError, match="train \\+ validation <= 1"):
            random_split([1, 2, 3], rng, train=train, validation=validation)
    with pytest.raises(DataError, match="must be distinct"):
        Split(train=np.array([1, 2]), validation=np.array([2]), test=np.array([3]))
    with pytest.raises(DataError, match="no nodes to score"):
        score(np.zeros(3, int), np.zeros(3, int), np.array([], dtype=int))
    with pytest.raises(DataError, match="without a label"):
        score(np.zeros(3, int), np.array([0, -1, 0]), np.array([0, 1]))
