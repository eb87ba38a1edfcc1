from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from graphldp.errors import DataError, OptionError
from graphldp.evaluation import Bootstrap, Interval, mean_interval, mean_intervals, paired_difference
from graphldp.randomness import generator

OPTIONS = Bootstrap()


def test_constant_values_leave_nothing_to_doubt() -> None:
    interval = mean_interval([0.75] * 10, OPTIONS, "constant")
    assert (interval.mean, interval.low, interval.high) == (0.75, 0.75, 0.75)


def test_two_runs_have_a_known_resampling_law() -> None:
    # Resamples of {0, 1} of size 2 have means 0, 1/2, 1 with probabilities 1/4, 1/2, 1/4.
    interval = mean_interval([0.0, 1.0], Bootstrap(resamples=4000, confidence=0.4), "two")
    assert (interval.mean, interval.low, interval.high) == (0.5, 0.5, 0.5)
    interval = mean_interval([0.0, 1.0], Bootstrap(resamples=4000, confidence=0.6), "two")
    assert (interval.mean, interval.low, interval.high) == (0.5, 0.0, 1.0)


def test_large_sample_agrees_with_the_normal_interval() -> None:
    values = generator(1, "normal").normal(3.0, 2.0, size=2000)
    interval = mean_interval(values, Bootstrap(resamples=4000), "large")
    half = 1.959964 * values.std() / math.sqrt(values.size)
    assert interval.low == pytest.approx(values.mean() - half, abs=0.05 * half)
    assert interval.high == pytest.approx(values.mean() + half, abs=0.05 * half)


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_equals_scipys_percentile_bootstrap_on_the_same_draws(confidence: float) -> None:
    values = generator(2, "beta").beta(40, 8, size=10)
    ours = mean_interval(values, Bootstrap(confidence=confidence, seed=5), "cora", "lpgnn", 1.0)
    theirs = stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=1000,
        confidence_level=confidence,
        method="percentile",
        rng=generator(5, "bootstrap", "cora", "lpgnn", 1.0),
    ).confidence_interval
    assert ours.low == pytest.approx(theirs.low, abs=1e-12)
    assert ours.high == pytest.approx(theirs.high, abs=1e-12)


def _coverage(runs: int, trials: int) -> float:
    values = generator(3, "coverage", runs).normal(0.84, 0.01, size=(trials, runs))
    return float(np.mean([interval.contains(0.84) for interval in mean_intervals(values, OPTIONS, "coverage")]))


def test_coverage_is_near_the_claim_with_many_runs_and_known_to_be_lower_with_ten() -> None:
    trials = 1500
    error = 4 * math.sqrt(0.95 * 0.05 / trials)
    assert _coverage(60, trials) == pytest.approx(0.945, abs=error)
    # What the module's text says of ten runs, so that it stays true.
    assert _coverage(10, trials) == pytest.approx(0.90, abs=0.025)


def test_rows_share_draws_and_equal_the_single_call() -> None:
    values = generator(4, "rows").normal(size=(5, 12))
    together = mean_intervals(values, OPTIONS, "x")
    assert together == [mean_interval(row, OPTIONS, "x") for row in values]


def test_blocks_do_not_change_the_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    values = generator(6, "blocks").normal(size=(3, 20))
    whole = mean_intervals(values, OPTIONS, "b")
    monkeypatch.setattr("graphldp.evaluation._BLOCK", 999)
    assert mean_intervals(values, OPTIONS, "b") == whole


def test_draws_are_addressed() -> None:
    values = generator(5, "values").normal(size=10)
    first = mean_interval(values, OPTIONS, "cora", 1.0)
    assert first == mean_interval(values, OPTIONS, "cora", 1.0)
    assert first != mean_interval(values, OPTIONS, "cora", 3.0)
    assert first != mean_interval(values, Bootstrap(seed=1), "cora", 1.0)


def test_pairing_removes_what_the_split_does_to_both() -> None:
    split = generator(7, "split").normal(0.8, 0.05, size=10)
    noise = generator(7, "noise").normal(0.0, 0.001, size=10)
    gain = paired_difference(split + 0.01 + noise, split, OPTIONS, "gain")
    assert gain.mean == pytest.approx(0.01 + noise.mean())
    assert gain.against(0.0) == "above"
    # Against the same runs in another order the split's spread comes back and hides the gain.
    assert paired_difference(split + 0.01 + noise, split[::-1], OPTIONS, "gain").against(0.0) == "same"


def test_one_run_has_no_interval() -> None:
    interval = mean_interval([0.8], OPTIONS, "one")
    assert interval.mean == 0.8
    assert not interval.known
    assert not interval.contains(0.8)
    assert interval.against(0.0) == "unknown"
    assert not interval.scaled(100.0).known


def test_sides_and_units() -> None:
    interval = Interval(mean=0.02, low=0.01, high=0.03)
    assert [interval.against(value) for value in (0.0, 0.01, 0.02, 0.04)] == ["above", "same", "same", "below"]
    turned = interval.scaled(-100.0)
    assert (turned.mean, turned.low, turned.high) == (-2.0, -3.0, -1.0)


@pytest.mark.parametrize("values", [[0.1, math.nan], [0.1, math.inf], []])
def test_values_that_have_no_mean_are_refused(values: list[float]) -> None:
    with pytest.raises(DataError):
        mean_interval(values, OPTIONS, "bad")


def test_unequal_numbers_of_runs_are_refused() -> None:
    with pytest.raises(DataError, match="same seeds"):
        paired_difference([0.1, 0.2], [0.1], OPTIONS, "bad")


@pytest.mark.parametrize("options", [{"resamples": 99}, {"confidence": 0.0}, {"confidence": math.nan}])
def test_options_that_make_no_interval_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(OptionError):
        Bootstrap(**options)  # type: ignore[arg-type]
