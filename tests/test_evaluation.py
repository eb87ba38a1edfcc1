from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from graphldp.errors import DataError, OptionError
from graphldp.evaluation import FEW, Confidence, Interval, mean_interval, mean_intervals, paired_difference
from graphldp.experiment.scores import measured
from graphldp.measures import measures_of
from graphldp.randomness import generator

OPTIONS = Confidence()


def test_constant_values_leave_nothing_to_doubt() -> None:
    interval = mean_interval([0.75] * 10, OPTIONS)
    assert (interval.mean, interval.low, interval.high) == (0.75, 0.75, 0.75)


def test_two_runs_have_a_known_interval() -> None:
    # Half the distance times the tangent of 0.95 * 90 degrees: the law of Student with one degree of freedom.
    interval = mean_interval([0.0, 1.0], OPTIONS)
    half = 0.5 * math.tan(0.95 * math.pi / 2)
    assert (interval.mean, interval.runs) == (0.5, 2)
    assert (interval.low, interval.high) == pytest.approx((0.5 - half, 0.5 + half))


def test_large_sample_agrees_with_the_normal_interval() -> None:
    values = generator(1, "normal").normal(3.0, 2.0, size=2000)
    interval = mean_interval(values, OPTIONS)
    half = 1.959964 * values.std() / math.sqrt(values.size)
    assert interval.low == pytest.approx(values.mean() - half, abs=0.002 * half)
    assert interval.high == pytest.approx(values.mean() + half, abs=0.002 * half)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_equals_scipys_interval(level: float) -> None:
    values = generator(2, "beta").beta(40, 8, size=10)
    ours = mean_interval(values, Confidence(level=level))
    theirs = stats.ttest_1samp(values, 0.0).confidence_interval(level)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


@pytest.mark.parametrize("runs", [2, 3, 5, 10])
@pytest.mark.parametrize("nodes", [None, 1000])
def test_it_covers_as_often_as_it_says_with_few_runs(runs: int, nodes: int | None) -> None:
    """A percentile bootstrap has 50, 75, 83 and 91 % here."""
    trials, rng = 4000, generator(3, "coverage", runs)
    shape = (trials, runs)
    values = rng.normal(0.84, 0.01, shape) if nodes is None else rng.binomial(nodes, 0.84, shape) / nodes
    covers = np.mean([interval.contains(0.84) for interval in mean_intervals(values, OPTIONS)])
    assert covers > 0.93
    assert covers == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize("runs", [2, 3, 4, 5, 10])
def test_methods_that_are_worth_nothing_are_rarely_said_to_be_better(runs: int) -> None:
    """Guesses of random labels against other guesses: 'above' at most as often as 2.5 % and luck allow."""
    trials, rng = 2000, generator(8, "guesses", runs)
    ours, floor = (rng.binomial(300, 1 / 3, (trials, runs)) / 300 for _ in range(2))
    found = [interval.against(0.0) for interval in mean_intervals(ours - floor, OPTIONS)]
    share = found.count("above") / trials
    assert share <= 0.025 + 4 * math.sqrt(0.025 * 0.975 / trials)
    assert set(found) == ({"unknown"} if runs < FEW else {"above", "same", "below"})


def test_two_runs_that_agree_decide_nothing() -> None:
    assert mean_interval([2.1, 2.1], OPTIONS).against(0.0) == "unknown"


def test_rows_equal_the_single_call() -> None:
    values = generator(4, "rows").normal(size=(5, 12))
    assert mean_intervals(values, OPTIONS) == [mean_interval(row, OPTIONS) for row in values]


def test_pair_scorer_removes_what_the_split_does_to_both() -> None:
    split = generator(7, "split").normal(0.8, 0.05, size=10)
    noise = generator(7, "noise").normal(0.0, 0.001, size=10)
    gain = paired_difference(split + 0.01 + noise, split, OPTIONS)
    assert gain.mean == pytest.approx(0.01 + noise.mean())
    assert gain.against(0.0) == "above"
    # Against the same runs in another order the split's spread comes back and hides the gain.
    assert paired_difference(split + 0.01 + noise, split[::-1], OPTIONS).against(0.0) == "same"


def test_one_run_has_no_interval() -> None:
    interval = mean_interval([0.8], OPTIONS)
    assert interval.mean == 0.8
    assert not interval.known
    assert not interval.contains(0.8)
    assert interval.against(0.0) == "unknown"
    assert not interval.scaled(100.0).known


def test_no_end_is_where_no_value_can_be() -> None:
    wide = mean_interval([0.8, 1.0, 1.0], OPTIONS)
    assert wide.high > 1
    shown = measures_of("node-classification").headline.interval([0.8, 1.0, 1.0], OPTIONS)
    assert (shown.mean, shown.high, shown.runs) == (pytest.approx(100 * wide.mean), 100.0, 3)
    assert shown.low == pytest.approx(100 * wide.low)
    error = measures_of("regression").headline
    assert error.interval([0.1, 0.9], OPTIONS).low == 0.0
    assert error.interval([0.1, 0.9], OPTIONS).high > 1
    assert not mean_interval([0.8], OPTIONS).within(0.0, 1.0).known


def test_sides_and_units() -> None:
    interval = Interval(mean=0.02, low=0.01, high=0.03, runs=5)
    assert [interval.against(value) for value in (0.0, 0.01, 0.02, 0.04)] == ["above", "same", "same", "below"]
    turned = interval.scaled(-100.0)
    assert (turned.mean, turned.low, turned.high) == (-2.0, -3.0, -1.0)


@pytest.mark.parametrize("values", [[0.1, math.nan], [0.1, math.inf], []])
def test_values_that_have_no_mean_are_refused(values: list[float]) -> None:
    with pytest.raises(DataError):
        mean_interval(values, OPTIONS)


def test_unequal_numbers_of_runs_are_refused() -> None:
    with pytest.raises(DataError, match="same seeds"):
        paired_difference([0.1, 0.2], [0.1], OPTIONS)


@pytest.mark.parametrize("options", [{"level": 0.0}, {"level": math.nan}])
def test_options_that_make_no_interval_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(OptionError):
        Confidence(**options)


def test_the_coverage_that_tables_tell_is_the_measured_one() -> None:
    path = Path(__file__).resolve().parents[1] / "docs" / "coverage.csv"
    with path.open(encoding="utf-8") as handle:
        covers = [100 * float(row["covers"]) for row in csv.DictReader(handle) if int(row["runs"]) >= FEW]
    assert f"in simulations {min(covers):.1f} to {max(covers):.1f} %" in Confidence().words
    assert Confidence(level=0.9).words == "90 % (Student's)"


def test_few_runs_that_agree_have_no_interval() -> None:
    assert not mean_interval([0.5] * (FEW - 1), Confidence()).known
    assert mean_interval([0.5] * FEW, Confidence()).known
    assert mean_interval([0.5, 0.5, 0.6], Confidence()).known


def test_no_end_of_a_gain_is_where_no_difference_can_be() -> None:
    measures = measures_of("node-classification")
    scores = {one.name: np.array([0.0, 1.0]) for one in measures.measures}
    floor = {one.name: np.array([1.0, 0.5]) for one in measures.measures}
    gain = measured(scores, floor, None, measures, Confidence()).gain
    assert gain is not None
    assert (gain.low, gain.high) == (-100.0, 100.0)
