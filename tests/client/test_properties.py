"""Properties that hold for any budget, range, m and input, in or out of the range."""

from __future__ import annotations

import math

import numpy as np
from client_cases import CASES
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from graphldp.client import lookup, mechanism, names, protocol
from graphldp.client.randomiser import HIGHEST
from graphldp.randomness import generator
from graphldp.server import rectify

SCALARS = [n for n in names("scalar") if n not in ("identity", "null", "gm")]
VECTORS = [n for n in SCALARS if not lookup(n).every_dimension]
BUDGETS = st.floats(1e-6, HIGHEST, allow_nan=False)
ENDS = (
    st.tuples(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
    .map(lambda pair: (pair[0], pair[0] + pair[1]))
    .filter(lambda ends: ends[1] - ends[0] > 2e-3 * max(map(abs, ends)))
)
VALUES = st.floats(allow_nan=False, allow_infinity=True, width=32)
CALM = settings(max_examples=120, derandomize=True, deadline=None, database=None)


@CALM
@given(st.sampled_from(SCALARS), BUDGETS, ENDS)
def test_the_loss_never_exceeds_the_budget(name: str, epsilon: float, ends: tuple[float, float]) -> None:
    law = mechanism(name, epsilon, *ends, **CASES[name].options)
    assert law.privacy_loss() <= epsilon


@CALM
@given(st.sampled_from(SCALARS), BUDGETS, ENDS, st.lists(VALUES, min_size=1, max_size=8), st.integers(0, 99))
def test_a_report_lies_in_the_support_and_never_depends_on_how_far_outside_a_value_is(
    name: str, epsilon: float, ends: tuple[float, float], values: list[float], seed: int
) -> None:
    law = mechanism(name, epsilon, *ends, **CASES[name].options)
    x = np.array(values, dtype=np.float64)
    sent = law.sample(x, generator(seed))
    assert np.isfinite(sent).all()
    np.testing.assert_array_equal(sent, law.sample(np.clip(x, *ends), generator(seed)))
    if law.finite:
        assert np.isin(sent, law.support(ends[0]).astype(law.dtype)).all()
    else:
        k = (sent.astype(np.float64) - law._shift) / law._scale / law.step
        slack = float(np.spacing(np.abs(sent).max())) / law._scale / law.step
        assert (np.abs(k) <= law.steps + slack).all()
        # On the grid, as far as float32 can tell.
        if slack < 0.1:
            assert (np.abs(k - np.round(k)) <= slack + 1e-6).all()


@CALM
@given(st.sampled_from(SCALARS), BUDGETS, st.floats(-1, 1))
def test_a_law_is_symmetric_about_the_middle_and_leans_with_the_value(name: str, epsilon: float, z: float) -> None:
    law = mechanism(name, epsilon, **CASES[name].options)
    assert float(law.variance(z)) >= 0
    if law.scaled or name in ("mb", "1b"):
        assert math.isclose(float(law.mean(-z)), -float(law.mean(z)), abs_tol=1e-12)
        assert math.isclose(float(law.variance(-z)), float(law.variance(z)), rel_tol=1e-9, abs_tol=1e-12)
    assert float(law.estimate_mean(1.0)) >= float(law.estimate_mean(z)) - 1e-9


@CALM
@given(st.sampled_from(VECTORS), BUDGETS, st.integers(1, 12), st.data())
def test_any_m_keeps_the_budget_and_reports_m_different_dimensions(
    name: str, epsilon: float, dimensions: int, data: st.DataObject
) -> None:
    m = data.draw(st.integers(1, dimensions))
    built = protocol(name, epsilon, dimensions, m=m, **CASES[name].options)
    assert built.privacy_loss() <= epsilon
    reports = built.perturb(np.zeros((5, dimensions)), generator(1))
    assert reports.value.shape == (5, m)
    if reports.index is not None:
        assert (np.diff(reports.index, axis=1) > 0).all()
    estimate = rectify(reports)
    assert estimate.matrix.nnz == 5 * m
    assert estimate.dense().shape == (5, dimensions)


@CALM
@given(st.sampled_from(VECTORS), BUDGETS, st.integers(1, 60))
def test_the_best_m_is_no_worse_than_its_neighbours(name: str, epsilon: float, dimensions: int) -> None:
    if getattr(lookup(name), "default_m", None):
        return
    options = CASES[name].options
    best = protocol(name, epsilon, dimensions, **options)
    for m in {max(1, best.m - 1), min(dimensions, best.m + 1)}:
        other = protocol(name, epsilon, dimensions, m=m, **options)
        assert float(best.variance(1.0)) <= float(other.variance(1.0)) * (1 + 1e-9) + 1e-12


@settings(max_examples=60, derandomize=True, deadline=None, database=None)
@given(st.floats(1e-4, 100), st.floats(1e-12, 0.5), st.integers(1, 3000))
def test_analytic_noise_never_overshoots_its_claim(epsilon: float, delta: float, dimensions: int) -> None:
    built = protocol("ag", epsilon, dimensions, delta=delta)
    assert built.privacy_loss() <= epsilon
    assert built.base.exact_delta(epsilon, dimensions) <= delta


@settings(max_examples=60, derandomize=True, deadline=None, database=None)
@given(st.sampled_from(["ppm-public", "ppm-safe", "pldp"]), st.floats(1e-3, 20), st.integers(1, 8), st.integers(1, 40))
def test_personalised_claims_hold_for_any_number_of_levels(
    name: str, epsilon: float, levels: int, dimensions: int
) -> None:
    assume(epsilon * 2 ** (levels - 1) <= HIGHEST)
    built = protocol(name, epsilon, dimensions, levels=levels)
    assert built.privacy_loss() <= built.claim.epsilon
    reports = built.perturb(np.zeros((4, dimensions)), generator(0))
    assert rectify(reports).dense().shape == (4, dimensions)
