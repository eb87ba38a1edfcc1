"""Lower bounds from counts: below the truth, close to it, and right as often as they say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from graphldp.audit.budget import CONFIDENCE
from graphldp.audit.empirical import (
    bound_of_counts,
    bound_of_scores,
    deterministic_gaussian_scores,
    log_likelihood_ratio,
)
from graphldp.client import protocol


def test_clopper_pearson_against_its_closed_form() -> None:
    # 0 of n: the upper bound is 1 - (alpha/2)^(1/n); n of n: the lower one is (alpha/2)^(1/n).
    n, alpha = 1000, 0.05
    got = float(bound_of_counts(np.array([n]), n, np.array([0]), n, alpha)[0])
    edge = (alpha / 2) ** (1 / n)
    assert got == pytest.approx(math.log(edge) - math.log(1 - edge))
    assert float(bound_of_counts(np.array([0]), n, np.array([5]), n, alpha)[0]) == 0.0


def test_bounds_are_wrong_no_more_often_than_they_say(rng: np.random.Generator) -> None:
    n, p, q, trials = 2000, 0.3, 0.12, 2000
    bounds = bound_of_counts(rng.binomial(n, p, trials), n, rng.binomial(n, q, trials), n, 1 - CONFIDENCE)
    assert (bounds > math.log(p / q)).mean() <= 1 - CONFIDENCE
    assert np.median(bounds) > 0.75 * math.log(p / q)


def test_a_known_gaussian_within_20_percent() -> None:
    # Two normals one deviation apart; of the thresholds t the ratio P[N(1,1) >= t]/P[N(0,1) >= t] grows with t.
    count = 400_000
    bound = bound_of_scores(deterministic_gaussian_scores(count, 1.0), deterministic_gaussian_scores(count, 0.0))
    threshold = float(bound.event.rsplit(" ", 1)[1])
    from scipy.stats import norm

    truth = float(norm.logsf(threshold - 1) - norm.logsf(threshold)) if ">=" in bound.event else math.nan
    if "<=" in bound.event:
        truth = float(norm.logcdf(threshold) - norm.logcdf(threshold - 1))
    assert 0.8 * truth < bound.value < truth


@pytest.mark.parametrize("name", ["mb", "pm", "duchi", "sw"])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_close_to_the_budget_and_below_it(name: str, epsilon: float, rng: np.random.Generator) -> None:
    device = protocol(name, epsilon, 6)
    bases = (device.base,) * 6
    high, low = np.ones(6), -np.ones(6)
    scores = [log_likelihood_ratio(bases, device.perturb(np.tile(x, (80_000, 1)), rng), high, low) for x in (high, low)]
    bound = bound_of_scores(*scores)
    assert 0.8 * epsilon < bound.value < epsilon
    assert bound.convicting < bound.value


def test_no_information_gives_no_bound(rng: np.random.Generator) -> None:
    bound = bound_of_scores(rng.random(20_000), rng.random(20_000))
    assert bound.convicting == 0.0
    assert bound.value < 0.01


def test_the_event_is_chosen_on_one_half_and_counted_on_the_other() -> None:
    first, second = np.zeros(4000), np.zeros(4000)
    first[::2] = 1.0  # what the chosen event sees is gone on the other half
    bound = bound_of_scores(first, second)
    assert bound.event.startswith("score >=")
    assert (bound.hits, bound.samples, bound.value) == (0, 2000, 0.0)
