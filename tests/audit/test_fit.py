"""The tests of samplers accept the right one and reject wrong ones, within their false-alarm budget."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from graphldp.audit import ALPHA, FALSE_ALARMS
from graphldp.audit.budget import CHI_SQUARE_INFLATION, FAMILIES, MAX_ROWS, PROBES
from graphldp.audit.conduct import Conduct, edges
from graphldp.audit.fit import fit, fit_counts, power, probe_records, two_sided, untouched_last
from graphldp.audit.quantiles import map_distance
from graphldp.client import Reports, mechanism, names, protocol
from graphldp.client.mechanisms.mb import MultiBit

SCALARS = [name for name in names("scalar") if name not in ("null", "identity")]


def test_an_honest_program_is_hardly_ever_accused() -> None:
    assert len(FAMILIES) * MAX_ROWS * ALPHA * CHI_SQUARE_INFLATION < FALSE_ALARMS


@pytest.mark.parametrize("name", ["mb", "pm", "lp", "hm", "cldp"])
def test_the_shipped_sampler_passes_and_wrong_ones_do_not(name: str, rng: np.random.Generator) -> None:
    device = protocol(name, 1.0, 5)
    bases = (device.base,) * 5
    good = fit(bases, device.perturb, 20_000, rng)
    assert good.follows, good
    assert good.p > 1e-4
    assert power(bases, device.perturb, 20_000, rng).shown


@pytest.mark.parametrize("name", SCALARS)
@pytest.mark.parametrize("epsilon", [1e-2, 1.0, 8.0])
def test_the_map_of_every_sampler_is_its_law_and_no_other(name: str, epsilon: float) -> None:
    base = mechanism(name, epsilon)
    assert map_distance(base, base) <= 1.0
    assert map_distance(base, replace(base, epsilon=epsilon / 1.5)) > 1.0


def test_a_rare_event_that_never_happens_is_seen() -> None:
    base = MultiBit(epsilon=50.0)
    assert map_distance(base, base) <= 1.0
    assert map_distance(base, Rounded(epsilon=50.0)) > 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounded(MultiBit):
    """A sampler whose probabilities are rounded to float32: at epsilon 50 it never lies."""

    def _invert(self, z: np.ndarray, u: np.ndarray) -> np.ndarray:
        return np.where(u < np.float32(np.tanh(self.epsilon / 2) * z / 2 + 0.5), 1.0, -1.0)


def test_chosen_dimensions_that_prefer_some_are_seen(rng: np.random.Generator) -> None:
    device = protocol("mb", 1.0, 6, m=2)

    def biased(features: np.ndarray, source: Any) -> Reports:
        reports = device.perturb(features, source)
        index = reports.index.copy()
        index[:300] = (0, 1)
        return Reports(index=index, value=reports.value)

    assert fit((device.base,) * 6, device.perturb, 10_000, rng).follows
    assert not fit((device.base,) * 6, biased, 10_000, rng).follows


def test_one_dimension_that_is_preferred_is_seen(rng: np.random.Generator) -> None:
    device = protocol("mb", 1.0, 6, m=1)

    def biased(features: np.ndarray, source: Any) -> Reports:
        reports = device.perturb(features, source)
        index = reports.index.copy()
        index[:300] = 5
        return Reports(index=index, value=reports.value)

    assert not fit((device.base,) * 6, biased, 10_000, rng).follows


def test_an_untouched_last_coordinate_is_seen_at_every_budget(rng: np.random.Generator) -> None:
    for epsilon in (0.01, 10.0):
        device = protocol("mb", epsilon, 4)
        bases = (device.base,) * 4
        broken = untouched_last(bases, device.perturb)
        record = [np.append(probe_records(bases)[0][:-1], -0.4)]
        assert fit(bases, broken, 20_000, rng, record).p < ALPHA


def test_reports_outside_the_outputs_are_impossible() -> None:
    counts, p = np.array([500, 499, 1]), np.array([0.5, 0.5, 0.0])
    assert fit_counts(counts, p, ordered=False).p == 0.0
    assert fit_counts(np.array([500, 500, 0]), p, ordered=False).p > 0.5
    assert fit_counts(counts, p, ordered=True).p == 0.0


def test_one_large_outcome_among_rare_ones_is_pooled() -> None:
    # The tail after it is expected too seldom for a group of its own, and partly never.
    law = np.array([0.0, 0.001, 0.99, 0.009, 0.0])
    for ordered in (True, False):
        good = fit_counts(np.array([0, 20, 19_800, 180, 0]), law, ordered=ordered)
        assert good.chi_square > 0.5
        bad = fit_counts(np.array([0, 900, 18_200, 900, 0]), law, ordered=ordered)
        assert bad.chi_square < ALPHA or bad.p < ALPHA


def test_exact_binomial_tail() -> None:
    # P[Binomial(10, 1/2) <= 0] = 2^-10, two-sided 2^-9, one test.
    assert two_sided(np.array([0]), 10, np.array([0.5])) == pytest.approx(2.0**-9)


def test_p_values_of_honest_counts_are_not_small_too_often(rng: np.random.Generator) -> None:
    law = np.array([0.5, 0.3, 0.19, 0.01, 0.0])
    lows = 0
    for _ in range(400):
        one = fit_counts(rng.multinomial(20_000, law), law, ordered=False)
        lows += one.chi_square < 0.05
    assert 5 <= lows <= 40  # 20 expected


def test_uniform_numbers_of_right_calls_are_hardly_ever_accused() -> None:
    # What the conduct of calls counts, with honest uniform numbers: its smallest p-value is no smaller than it says.
    lows = 0
    for trial in range(200):
        found = Conduct()
        found.count(*edges(np.random.default_rng(trial).random(4000)), str)
        lows += found.p < 0.05 * PROBES
    assert lows <= 25  # at most 10 expected; the counts depend on each other
