"""k-ary randomised response: its law by enumeration, its loss, and the question for a label."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphldp.client import mechanism
from graphldp.client.mechanisms.krr import LabelQuestion
from graphldp.errors import DataError, OptionError
from graphldp.randomness import generator

GRID = 20_000  # even uniform numbers: each answer is selected by its share of them, to the last one or two


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_answers_follow_the_formula_for_every_label(classes: int, epsilon: float) -> None:
    law = mechanism("krr", epsilon, 0, classes - 1)
    even = (np.arange(GRID) + 0.5) / GRID
    p, q = (math.exp(epsilon) / (math.exp(epsilon) + classes - 1), 1 / (math.exp(epsilon) + classes - 1))
    assert law.chances == pytest.approx((p, q), rel=1e-12)
    for label in range(classes):
        sent = law.decode(law.invert(np.full(GRID, label), even))
        shares = np.bincount(sent, minlength=classes) / GRID
        assert np.abs(shares - np.where(np.arange(classes) == label, p, q)).max() <= 2 / GRID


@given(st.integers(2, 60), st.floats(1e-3, 30.0))
def test_the_loss_is_epsilon_and_the_law_a_law(classes: int, epsilon: float) -> None:
    law = mechanism("krr", epsilon, 0, classes - 1)
    labels = np.arange(classes)
    pmf = law.pmf(labels[None, :] + 1, labels[:, None])
    np.testing.assert_allclose(pmf.sum(axis=1), 1.0, rtol=1e-12)
    assert np.log(pmf.max(axis=0) / pmf.min(axis=0)).max() == pytest.approx(epsilon, rel=1e-9)
    assert LabelQuestion(epsilon=epsilon, classes=classes).privacy_loss() <= epsilon
    # Both shares undone: 1 for the label, 0 for every other one.
    p, q = law.chances
    np.testing.assert_allclose((pmf - q) / (p - q), np.eye(classes), atol=1e-9)
    np.testing.assert_allclose(law.estimate_mean(labels), labels, atol=1e-6)


def test_a_question_is_answered_by_everybody_with_a_class() -> None:
    question = LabelQuestion(epsilon=30.0, classes=4)
    own = np.array([3, 0, 2, 1, 1])
    answers = question.perturb(own, generator(0))
    assert answers.value.tolist() == [[3], [0], [2], [1], [1]]
    assert answers.value.dtype == np.int16
    assert answers.meta["claim"]["unit"] == "one node's label"
    noisy = LabelQuestion(epsilon=1.0, classes=4).perturb(np.zeros(20_000, dtype=int), generator(1)).value[:, 0]
    assert np.mean(noisy == 0) == pytest.approx(math.e / (math.e + 3), abs=0.02)


@pytest.mark.parametrize("labels", [[-1, 0], [0, 4], [7, 1]])
def test_a_label_outside_the_classes_is_one_line_without_it(labels: list[int]) -> None:
    with pytest.raises(DataError, match=r"^a label lies outside 0\.\.3; give one of these$"):
        LabelQuestion(epsilon=1.0, classes=4).perturb(np.array(labels), generator(0))


def test_what_is_no_question_is_refused() -> None:
    with pytest.raises(OptionError, match="the number of classes must be a whole number from 2"):
        LabelQuestion(epsilon=1.0, classes=1)
    with pytest.raises(OptionError, match="epsilon must be finite and > 0"):
        LabelQuestion(epsilon=0.0, classes=3)
    with pytest.raises(DataError, match="one whole number per person"):
        LabelQuestion(epsilon=1.0, classes=3).perturb(np.array([0.5]), generator(0))
