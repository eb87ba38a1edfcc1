"""Soft thresholds and their comparisons; the boundary from the law; what they do to multi-bit reports."""

from __future__ import annotations

import numpy as np
import pytest
from small_graphs import adjacency, estimate

from graphldp.client import lookup, names, protocol
from graphldp.client.laws.sets import SetValued
from graphldp.client.registry import NO_FEATURE
from graphldp.errors import OptionError
from graphldp.randomness import generator
from graphldp.server import (
    Filtered,
    apply,
    hoa,
    kprop,
    nfr_after,
    nfr_before,
    none,
    normalised,
    rectify,
    shrink,
    soft,
)


def test_soft_is_the_minimiser_that_the_theorems_ask_for() -> None:
    values, threshold = np.linspace(-3, 3, 25), 0.7
    grid = np.linspace(-4, 4, 80001)
    cost = 0.5 * (values[:, None] - grid) ** 2 + threshold * np.abs(grid)
    np.testing.assert_allclose(soft(values, threshold), grid[cost.argmin(axis=1)], atol=1e-4)


def test_soft_identities() -> None:
    values = np.random.default_rng(0).normal(size=200)
    assert np.array_equal(soft(values, 0.0), values)
    np.testing.assert_allclose(soft(soft(values, 0.3), 0.4), soft(values, 0.7), atol=1e-12)
    np.testing.assert_allclose(soft(-values, 0.5), -soft(values, 0.5))
    np.testing.assert_allclose(soft(3 * values, 3 * 0.5), 3 * soft(values, 0.5))
    assert not soft(values, np.abs(values).max()).any()
    assert (np.abs(soft(values, 0.5) - values) <= 0.5 + 1e-12).all()
    assert soft(values.astype(np.float32), 0.1).dtype == np.float32


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
@pytest.mark.parametrize("tau", [0.1, 0.5, 0.9])
def test_with_mb_the_threshold_before_the_filter_only_rescales(epsilon: float, tau: float) -> None:
    device = protocol("mb", epsilon, 20, 0.0, 1.0)
    x = np.random.default_rng(0).random((12, 20))
    one = rectify(device.perturb(x, generator(0, "mb", epsilon)))
    calibration = nfr_before(hoa(3), device, tau)
    np.testing.assert_allclose(shrink(one, calibration).data, (1 - tau) * one.deviations().data, rtol=1e-4)
    operator = normalised(adjacency("plain"))
    plain = Filtered.of(one, hoa(3), operator)
    expected = (1 - tau) * np.hstack([b for _, b in plain.deviation_blocks()]) + plain.ground()[:, None]
    np.testing.assert_allclose(apply(one, calibration, operator), expected, rtol=1e-3, atol=1e-3)


def test_with_pm_the_threshold_before_the_filter_selects() -> None:
    device = protocol("pm", 1.0, 20, 0.0, 1.0)
    one = rectify(device.perturb(np.random.default_rng(0).random((300, 20)), generator(0, "pm")))
    kept = shrink(one, nfr_before(none(), device, 0.3)).data != 0
    assert 0.1 < kept.mean() < 0.9
    assert np.array_equal(kept, np.abs(one.deviations().data) > np.float32(0.3 * device.boundary()))


@pytest.mark.parametrize(("name", "fill"), [("mb", "mid"), ("mb", "zero"), ("pm", "mid"), ("pm", "zero")])
def test_the_boundary_holds_and_is_reached(name: str, fill: str) -> None:
    device = protocol(name, 2.0, 30, 0.0, 1.0, m=3, fill=fill)
    x = np.random.default_rng(0).integers(0, 2, (4000, 30)).astype(float)
    largest = float(np.abs(rectify(device.perturb(x, generator(0, name))).deviations().data).max())
    assert largest <= device.boundary() * (1 + 1e-6)
    assert largest >= device.boundary() * 0.99


def test_the_boundary_of_pm_has_the_coordinates_own_budget_in_its_exponent() -> None:
    epsilon, d, m = 3.0, 50, 2
    growth = np.exp(epsilon / (2 * m))
    # Rounded outwards to the grid of the reports, at most 1/256 of their standard deviation.
    ideal = d / m * (growth + 1) / (growth - 1)
    assert ideal <= protocol("pm", epsilon, d, m=m).boundary() <= 1.004 * ideal
    assert protocol("mb", epsilon, d, m=m).boundary() == pytest.approx(d / m / np.tanh(epsilon / m / 2))


def test_a_report_without_bound_needs_the_threshold_itself() -> None:
    with pytest.raises(OptionError, match="lp reports have no bound"):
        protocol("lp", 1.0, 5).boundary()


def test_the_threshold_after_the_filter_acts_on_what_was_filtered() -> None:
    operator, one = normalised(adjacency("plain")), estimate()
    plain = Filtered.of(one, hoa(3), operator)
    expected = soft(np.hstack([b for _, b in plain.deviation_blocks()]), 0.8) + plain.ground()[:, None]
    np.testing.assert_allclose(apply(one, hoa(3, after=0.8), operator), expected, rtol=1e-4, atol=1e-5)
    assert not np.allclose(expected, apply(one, hoa(3, before=0.8), operator), atol=1e-2)


def test_the_amount_after_the_filter_follows_the_theorem_where_the_degree_is_given() -> None:
    device = protocol("pm", 1.0, 20)
    assert nfr_after(hoa(3), device, 0.5).after == pytest.approx(0.5 * device.boundary())
    assert nfr_after(hoa(3), device, 0.5, average_degree=4.0).after == pytest.approx(0.5 * device.boundary() / 4**3)
    assert nfr_before(hoa(3), device, 0.5).before == pytest.approx(0.5 * device.boundary())


def test_dropout_drops_at_its_rate_and_keeps_the_mean() -> None:
    one = estimate(nodes=12, dimensions=7, fill=0.5)
    calibration = none(shrinkage="dropout", before=0.4)
    rng = np.random.default_rng(0)
    draws = np.stack([shrink(one, calibration, rng).data for _ in range(4000)])
    values = one.deviations().data
    assert np.mean(draws == 0) == pytest.approx(0.4, abs=0.01)
    np.testing.assert_allclose(draws.mean(axis=0), values, atol=5 * np.abs(values).max() * 0.82 / 4000**0.5)
    first, again = (shrink(one, calibration, np.random.default_rng(5)).data for _ in range(2))
    assert np.array_equal(first, again)
    with pytest.raises(OptionError, match="random generator"):
        shrink(one, calibration)


def test_group_lasso_is_the_minimiser_over_each_attribute() -> None:
    one, amount = estimate(), 2.0
    columns = one.deviations()
    ours = shrink(one, none(shrinkage="group", before=amount)).toarray()
    for j in range(7):
        v = columns.toarray()[:, j].astype(float)
        size = np.linalg.norm(v)
        count = int((columns.indices == j).sum())
        # The proximal point lies on the ray of v: find its length on a grid.
        lengths = np.linspace(0, 1, 20001)
        cost = 0.5 * size**2 * (1 - lengths) ** 2 + amount * np.sqrt(count) * lengths * size
        np.testing.assert_allclose(ours[:, j], v * lengths[cost.argmin()], atol=2e-3)


def test_group_lasso_after_the_filter_takes_whole_columns_whatever_the_blocks() -> None:
    operator = normalised(adjacency("plain"))
    one = Filtered.of(estimate(), hoa(2, shrinkage="group", after=0.6), operator)
    whole = one.dense()
    narrow = np.hstack([block for _, block in one.blocks(4 * 3 * 12)])
    np.testing.assert_allclose(narrow, whole, rtol=1e-6)
    plain = np.hstack([b for _, b in Filtered.of(estimate(), hoa(2), operator).deviation_blocks()])
    size = np.sqrt((plain.astype(float) ** 2).mean(axis=0))
    expected = plain * np.maximum(0, 1 - 0.6 / size) + one.ground()[:, None]
    np.testing.assert_allclose(whole, expected, rtol=1e-4, atol=1e-5)
    assert (size < 0.6).any()
    assert (size > 0.6).any()


def test_every_mechanism_has_a_boundary_that_holds_or_says_that_it_has_none() -> None:
    x = np.random.default_rng(0).random((3000, 9))
    unbounded = {"lp", "gm", "ag"}
    for name in names():
        if lookup(name).kind in NO_FEATURE:
            continue
        epsilon = {"identity": np.inf, "null": 0.0}.get(name, 1.5)
        device = protocol(name, epsilon, 9, 0.0, 1.0)
        if issubclass(lookup(name), SetValued):
            x = (x > 0.5).astype(float)
        if name in unbounded or name == "featurerr":
            with pytest.raises(OptionError, match="give the threshold itself"):
                device.boundary()
            continue
        seen = np.abs(rectify(device.perturb(x, generator(0, name))).deviations().data).max()
        assert seen <= device.boundary() * (1 + 1e-5), name
        assert seen >= device.boundary() * 0.8, name


@pytest.mark.parametrize("tau", [-0.1, 1.0, float("nan")])
def test_tau_is_a_share(tau: float) -> None:
    device = protocol("mb", 1.0, 20)
    for make in (nfr_before, nfr_after):
        with pytest.raises(OptionError, match="tau"):
            make(kprop(2), device, tau)
