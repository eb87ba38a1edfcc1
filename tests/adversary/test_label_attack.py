"""The best guess of a label: what it reaches, and that it fits the claimed epsilon."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from graphldp.adversary.labels import attack_labels, most_right
from graphldp.client.mechanisms.krr import LabelQuestion
from graphldp.errors import DataError
from graphldp.randomness import generator

EVEN, UNEVEN = np.repeat(np.arange(4), 5000), np.repeat([0, 1, 2], [15000, 4000, 1000])


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("labels", [EVEN, UNEVEN])
def test_the_best_guess_fits_the_claimed_epsilon(epsilon: float, labels: np.ndarray) -> None:
    question = LabelQuestion(epsilon=epsilon, classes=int(labels.max()) + 1)
    sent = question.perturb(labels, generator(0, "labels", epsilon)).value
    found = attack_labels(question, sent, labels)
    spread = np.sqrt(found.expected * (1 - found.expected) / len(labels))
    assert abs(found.right - found.expected) < 5 * spread + 1e-12
    assert found.without - 1e-12 <= found.expected <= found.bound * (1 + 1e-12)
    if labels is EVEN:  # all labels equally common: randomised response reaches what epsilon allows
        assert found.expected == pytest.approx(found.bound)
        assert found.bound == pytest.approx(question.law.chances[0])


def test_a_mechanism_that_spends_twice_what_it_claims_is_beyond_the_bound() -> None:
    twice, claimed = (LabelQuestion(epsilon=epsilon, classes=4) for epsilon in (2.0, 1.0))
    sent = twice.perturb(EVEN, generator(0, "twice")).value
    found = attack_labels(claimed, sent, EVEN)
    assert found.right > found.bound + 0.1


def test_no_guess_is_better() -> None:
    question, labels = LabelQuestion(epsilon=0.7, classes=3), np.array([0, 0, 0, 1, 1, 2])
    keep, stray = question.law.chances
    found = attack_labels(question, labels, labels)
    prior = np.bincount(labels) / len(labels)
    every = [
        sum(prior[label] * (keep if answer == label else stray) for answer, label in enumerate(guess))
        for guess in itertools.product(range(3), repeat=3)
    ]
    assert found.expected == pytest.approx(max(every))
    assert most_right(0.25, 0.0) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("sent", "labels", "said"), [([0, 1], [0], "need as many"), ([3], [0], "an answer is none"), ([0], [-1], "a label")]
)
def test_bad_input_is_one_line(sent: list[int], labels: list[int], said: str) -> None:
    with pytest.raises(DataError, match=said):
        attack_labels(LabelQuestion(epsilon=1.0, classes=3), sent, labels)
