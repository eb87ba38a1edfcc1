"""A vote: its law by brute force, its sampler, and that nothing but the hidden class leaves the device."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

from graphldp.client.vote import Vote
from graphldp.errors import DataError, OptionError
from graphldp.randomness import SecureSource, generator


def vote(epsilon: float = 1.0, classes: int = 4, dimensions: int = 6, m: int | None = None) -> Vote:
    rng = generator(0, "vote", classes, dimensions)
    return Vote.of(epsilon, rng.normal(size=(dimensions, classes)), rng.normal(size=classes), 0.0, 1.0, m)


def law(built: Vote, own: int) -> dict[tuple[int, ...], float]:
    sets = list(itertools.combinations(range(built.classes), built.m))
    weight = [math.exp(built.epsilon) if own in chosen else 1.0 for chosen in sets]
    return {chosen: w / sum(weight) for chosen, w in zip(sets, weight, strict=True)}


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 3.0, 50.0])
@pytest.mark.parametrize(("classes", "m"), [(2, 1), (3, 1), (5, 2), (7, 3), (7, None)])
def test_the_exact_loss_and_the_chances_are_those_of_the_law_written_out(
    epsilon: float, classes: int, m: int | None
) -> None:
    built = vote(epsilon, classes, m=m)
    laws = [law(built, own) for own in range(classes)]
    largest = max(math.log(a[s] / b[s]) for a in laws for b in laws for s in a)
    assert largest == pytest.approx(epsilon, rel=1e-9)
    assert built.privacy_loss() == pytest.approx(epsilon, rel=1e-9)
    assert built.privacy_loss() <= epsilon * (1 + 1e-9)
    present, absent = built.chances()
    assert present == pytest.approx(sum(p for s, p in laws[0].items() if 0 in s))
    assert absent == pytest.approx(sum(p for s, p in laws[0].items() if 1 in s))


def test_two_classes_are_randomised_response() -> None:
    built = vote(1.0, 2)
    assert built.m == 1
    assert built.chances() == pytest.approx((math.e / (1 + math.e), 1 / (1 + math.e)))


def test_small_budgets_name_several_classes_and_large_ones_one() -> None:
    assert vote(0.1, 10).m > 1
    assert vote(5.0, 10).m == 1
    assert vote(5.0, 10).report_bits() == pytest.approx(math.log2(10))


@pytest.mark.parametrize(("epsilon", "m"), [(0.7, 1), (0.7, 2), (3.0, 1)])
def test_answers_follow_the_law(epsilon: float, m: int) -> None:
    built, count = vote(epsilon, 4, m=m), 60_000
    features = np.tile(np.array([1, 0, 0, 1, 0, 1.0]), (count, 1))
    (own,) = set(built.chosen(features[:1]).tolist())
    answers = built.perturb(features, generator(1, epsilon, m)).value
    assert answers.dtype == np.int16
    assert (np.diff(answers, axis=1) > 0).all()
    found = {tuple(row): n for row, n in zip(*np.unique(answers, axis=0, return_counts=True), strict=True)}
    expected = law(built, own)
    assert set(found) == set(expected)
    counts = np.array([found[s] for s in expected])
    assert stats.chisquare(counts, count * np.array(list(expected.values()))).pvalue > 1e-7
    wrong = law(vote(1.5 * epsilon, 4, m=m), own)
    assert stats.chisquare(counts, count * np.array(list(wrong.values()))).pvalue < 1e-7


def test_the_class_is_the_one_with_the_highest_score_and_the_first_of_equal_ones() -> None:
    built = vote()
    x = generator(0, "x").random((200, 6))
    scores = x @ built.weights - built.offsets
    np.testing.assert_array_equal(built.chosen(x), scores.argmax(axis=1))
    np.testing.assert_array_equal(built.chosen(sp.csr_array(x)), scores.argmax(axis=1))
    np.testing.assert_array_equal(
        built.chosen(3 * x - 1), (np.clip(3 * x - 1, 0, 1) @ built.weights - built.offsets).argmax(1)
    )
    flat = Vote.of(1.0, np.zeros((6, 3)), np.zeros(3), 0.0, 1.0)
    assert set(flat.chosen(x).tolist()) == {0}


def test_answers_depend_on_features_through_the_class_alone() -> None:
    built = vote()
    x = generator(0, "many").random((4000, 6))
    classes = built.chosen(x)
    one = x[np.argmax(classes[:, None] == np.arange(4), axis=0)[classes]]  # for each person another of her class
    assert not np.array_equal(one, x)
    a, b = (built.perturb(part, generator(5)).value for part in (x, one))
    np.testing.assert_array_equal(a, b)
    assert built.perturb(x, SecureSource()).value.shape == (4000, built.m)
    assert built.perturb(x[:0], generator(0)).value.shape == (0, built.m)


def test_metadata_say_what_was_asked_and_hold_no_weights() -> None:
    meta = vote(2.0).meta()
    assert meta["epsilon"] == 2.0
    assert meta["claim"]["epsilon"] == 2.0
    assert meta["weights"].startswith("sha256:")
    other = Vote.of(2.0, vote().weights + 1e-9, vote().offsets, 0.0, 1.0)
    assert other.meta()["weights"] != meta["weights"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be finite and > 0"),
        ({"epsilon": math.nan}, "epsilon must be finite and > 0"),
        ({"epsilon": "one"}, "epsilon must be a number"),
        ({"weights": np.zeros((6, 1)), "offsets": np.zeros(1)}, "at least 2 classes"),
        ({"offsets": np.zeros(3)}, "an offset for each"),
        ({"weights": np.full((6, 4), np.nan)}, "must be finite"),
        ({"m": 4}, "m must be a whole number from 1 to 3"),
    ],
)
def test_bad_questions_are_refused(change: dict[str, object], message: str) -> None:
    given = {"epsilon": 1.0, "weights": np.zeros((6, 4)), "offsets": np.zeros(4), "low": 0.0, "high": 1.0, **change}
    with pytest.raises(OptionError, match=message):
        Vote.of(**given)


def test_features_that_are_none_are_refused() -> None:
    with pytest.raises(DataError, match="hold NaN"):
        vote().perturb(np.full((2, 6), np.nan), generator(0))
    with pytest.raises(DataError, match="have 5 dimensions"):
        vote().perturb(np.zeros((2, 5)), generator(0))
