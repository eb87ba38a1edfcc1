"""What a report says of its sender's class, against the plain sum over everything that can be drawn."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from graphldp.audit.information import (
    _estimated,
    _symbols,
    class_entropy,
    class_information,
    feature_information,
    information_bound,
)
from graphldp.client import protocol
from graphldp.errors import DataError, OptionError

CHANCES = np.array([[0.1, 0.7, 0.4], [0.5, 0.2, 0.4]])
PRIOR = np.array([0.3, 0.7])


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def mutual(joint: np.ndarray) -> float:
    """I(row; column) of a joint table, in bits."""
    rows, columns = joint.sum(axis=1, keepdims=True), joint.sum(axis=0, keepdims=True)
    seen = joint > 0
    return float((joint[seen] * np.log2(joint[seen] / (rows * columns)[seen])).sum())


def brute_force(name: str, epsilon: float, m: int, chances: np.ndarray, prior: np.ndarray) -> float:
    """Sum over every feature vector, every set of dimensions and every symbol, with the scalar law alone."""
    d = chances.shape[1]
    device = protocol(name, epsilon, d, 0.0, 1.0, m=m)
    symbols = np.unique(device.base.support(np.array([0.0, 1.0])))
    sets = list(itertools.combinations(range(d), m))
    reports = list(itertools.product(range(len(sets)), itertools.product(range(len(symbols)), repeat=m)))
    joint = np.zeros((len(prior), len(reports)))
    for k, share in enumerate(prior):
        for vector in itertools.product((0, 1), repeat=d):
            chance = np.prod([chances[k, j] if vector[j] else 1 - chances[k, j] for j in range(d)])
            for place, (chosen, sent) in enumerate(reports):
                law = [
                    float(device.base.pmf(symbols[s], float(vector[j])))
                    for j, s in zip(sets[chosen], sent, strict=True)
                ]
                joint[k, place] += share * chance * np.prod(law) / len(sets)
    assert joint.sum() == pytest.approx(1)
    return mutual(joint)


@pytest.mark.parametrize("name", ["mb", "to", "mlr"])
@pytest.mark.parametrize(("epsilon", "m"), [(0.3, 1), (2.0, 1), (2.0, 2), (6.0, 3)])
def test_the_sum_is_that_over_all_vectors_and_reports(name: str, epsilon: float, m: int) -> None:
    device = protocol(name, epsilon, 3, 0.0, 1.0, m=m)
    found = class_information(device, CHANCES, PRIOR, rng=rng())
    assert found.error == 0
    assert found.bits == pytest.approx(brute_force(name, epsilon, m, CHANCES, PRIOR), abs=1e-12)
    assert 0 < found.bits <= found.bound <= found.entropy


def test_one_sign_about_a_feature_that_is_the_class() -> None:
    """The closed form: one bit through a symmetric channel that flips with probability 1 / (1 + e^epsilon)."""
    chances = np.array([[0.0], [1.0]])
    for epsilon in (0.01, 1.0, 5.0):
        flip = 1 / (1 + math.exp(epsilon))
        expected = 1 + flip * math.log2(flip) + (1 - flip) * math.log2(1 - flip)
        found = class_information(protocol("mb", epsilon, 1, 0.0, 1.0), chances, rng=rng())
        assert found.bits == pytest.approx(expected, rel=1e-9)


def test_all_features_without_noise() -> None:
    joint = np.array(
        [
            [
                share * np.prod([row[j] if v[j] else 1 - row[j] for j in range(3)])
                for v in itertools.product((0, 1), repeat=3)
            ]
            for share, row in zip(PRIOR, CHANCES, strict=True)
        ]
    )
    assert feature_information(CHANCES, PRIOR, rng=rng()).bits == pytest.approx(mutual(joint), abs=1e-12)


@pytest.mark.parametrize("m", [1, 2, 3])
def test_the_estimate_covers_the_sum(m: int) -> None:
    device = protocol("mb", 4.0, 3, 0.0, 1.0, m=m)
    exact = class_information(device, CHANCES, PRIOR, rng=rng()).bits
    bits, error = _estimated(_symbols(device.base, CHANCES), PRIOR, m, 20_000, rng())
    assert error < 0.1 * exact
    assert abs(bits - exact) < 4 * error
    # It would notice another epsilon.
    other = class_information(protocol("mb", 2.5, 3, 0.0, 1.0, m=m), CHANCES, PRIOR, rng=rng()).bits
    assert abs(bits - other) > 4 * error


def test_many_dimensions_are_estimated_and_say_so() -> None:
    chances = np.clip(np.random.default_rng(1).random((3, 40)), 0.05, 0.95)
    device = protocol("mb", 12.0, 40, 0.0, 1.0, m=5)
    found = class_information(device, chances, draws=2000, rng=rng())
    assert found.error > 0
    assert found.bits < 5 * max(
        class_information(protocol("mb", 2.4, 40, 0.0, 1.0, m=1), chances, rng=rng()).bits, 0.01
    )
    assert found == class_information(device, chances, draws=2000, rng=rng())


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_bounds_hold_and_are_met_where_they_can_be(epsilon: float) -> None:
    for seed in range(20):
        draw = np.random.default_rng(seed)
        chances, prior = draw.random((3, 3)), draw.dirichlet(np.ones(3))
        features = feature_information(chances, prior, rng=rng()).bits
        found = class_information(protocol("mb", epsilon, 3, 0.0, 1.0), chances, prior, rng=rng())
        assert found.bound == pytest.approx(information_bound(epsilon, class_entropy(prior), features))
        assert found.bits <= found.bound + 1e-12
    # A feature that is the class, at a small budget: the contraction is met up to higher orders.
    sure = class_information(protocol("mb", 0.01, 1, 0.0, 1.0), np.array([[0.0], [1.0]]), rng=rng())
    lean = math.tanh(0.005)
    assert sure.bits == pytest.approx(lean**2 / 2 / math.log(2), rel=1e-3)
    assert sure.bits < sure.bound == pytest.approx(lean**2)


def test_nothing_says_nothing() -> None:
    same = np.tile(CHANCES[:1], (2, 1))
    assert class_information(protocol("mb", 1.0, 3, 0.0, 1.0), same, rng=rng()).bits == pytest.approx(0, abs=1e-15)
    assert class_information(protocol("null", 0.0, 3, 0.0, 1.0), CHANCES, rng=rng()).bits == pytest.approx(0, abs=1e-15)
    assert information_bound(0.0, 1.0, 1.0) == 0
    assert information_bound(math.inf, 2.0, 1.5) == 1.5


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: class_information(protocol("pm", 1.0, 3, 0.0, 1.0), CHANCES, rng=rng()), OptionError, "pm is none"),
        (lambda: class_information(protocol("mb", 1.0, 4, 0.0, 1.0), CHANCES, rng=rng()), DataError, "4 dimensions"),
        (lambda: feature_information(CHANCES + 1, rng=rng()), DataError, "probabilities"),
        (lambda: feature_information(CHANCES, [0.5, 0.6], rng=rng()), DataError, "add up to 1"),
        (lambda: information_bound(float("nan"), 1.0, 1.0), OptionError, "epsilon"),
    ],
)
def test_bad_input(call, error: type[Exception], words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=words):
        call()
