"""The laws: they are probability laws, their moments are the printed ones, and their exact loss is the claim."""

from __future__ import annotations

import math

import numpy as np
import pytest
from client_cases import BUDGETS, CASES
from client_laws import LAWS, RANDOM_LAWS, built, distribution, inputs, moment

from graphldp.client import lookup, mechanism, names
from graphldp.client.laws.gaussian import delta_of, epsilon_of
from graphldp.client.mechanisms.ag import calibrate
from graphldp.errors import OptionError
from graphldp.randomness import generator

ROUNDING = 1e-13  # absolute error of a difference of logarithms


@pytest.mark.parametrize(("name", "epsilon"), RANDOM_LAWS)
def test_a_law_sums_to_one_and_has_its_mean_and_variance(name: str, epsilon: float) -> None:
    law = built(name, epsilon)
    if not law.finite and epsilon > 10:
        # A window of width e^-50 lies between two floating-point numbers: sum over the grid instead.
        for x in inputs(name):
            mass, step = law.pmf(law.cells(), x), law.step * law._scale
            assert mass.sum() == pytest.approx(1, abs=1e-9)
            assert mass @ law.cells() == pytest.approx(float(law.mean(x)), abs=step)
        return
    for x in inputs(name):
        mean = float(law.mean(x))
        scale = max(float(np.sqrt(law.variance(x))), 1e-3)
        assert moment(law, x, lambda y: np.ones_like(y)) == pytest.approx(1, abs=1e-9)
        assert moment(law, x, lambda y, m=mean, s=scale: (y - m) / s) == pytest.approx(0, abs=1e-8)
        second = moment(law, x, lambda y, m=mean, s=scale: ((y - m) / s) ** 2)
        assert second == pytest.approx(float(law.variance(x)) / scale**2, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("name", [name for name in names() if lookup(name).kind != "vector"])
@pytest.mark.parametrize("epsilon", [0.3, 0.6, 0.62, 1.0, 1.4, 5.0])
def test_moments_are_the_printed_ones(name: str, epsilon: float) -> None:
    case = CASES[name]
    if name in ("identity", "null"):
        epsilon = case.budgets[0]
    z = np.linspace(-1, 1, 9)
    law = mechanism(name, epsilon, **case.options) if name not in ("esw", "krr") else built(name, epsilon)
    if (mean := case.mean(z, epsilon)) is not None:
        np.testing.assert_allclose(law.mean(z), mean, rtol=1e-9, atol=1e-12)
    if (variance := case.variance(z, epsilon)) is not None:
        np.testing.assert_allclose(law.variance(z), variance, rtol=2e-6 if name == "to" else 1e-9)
    if mean is None and variance is None:
        assert name in ("ome", "latent", "esw", "krr", "identity", "ag"), "add the printed moments to the case class"


@pytest.mark.parametrize(("name", "epsilon"), LAWS)
def test_the_exact_loss_keeps_the_claim_and_is_as_large_as_it(name: str, epsilon: float) -> None:
    law = built(name, epsilon)
    loss = law.privacy_loss()
    assert loss <= epsilon * (1 + 1e-9)
    if CASES[name].tight and epsilon <= 10:
        assert loss >= epsilon * (1 - 1e-9)
    if name in ("ome", "latent", "ag"):
        assert loss >= epsilon * (1 - 1e-7)


@pytest.mark.parametrize("name", [n for n in names() if lookup(n).kind != "vector" and n not in ("identity", "null")])
def test_the_worst_pair_shows_the_loss(name: str) -> None:
    law = built(name, 2.0)
    if law.delta:
        return
    likely, unlikely, report = law.worst_pair()
    ratio = float(np.log(law.pmf(report, likely) / law.pmf(report, unlikely)))
    assert ratio == pytest.approx(law.privacy_loss(), rel=1e-9)


@pytest.mark.parametrize(("name", "epsilon"), RANDOM_LAWS)
def test_the_loss_is_the_maximum_over_all_inputs_and_outputs(name: str, epsilon: float) -> None:
    law = built(name, epsilon)
    if law.delta or (not law.finite and epsilon > 100):
        assert name in ("ag", "gm") or epsilon == 500, (
            "cells are differences of the distribution function, or it has a delta"
        )
        return
    low, high = CASES[name].range
    x = inputs(name) if not CASES[name].plain_inputs else np.linspace(low, high, 33)
    if law.finite:
        y = law.support(low)
    elif law.outputs < 20_000:
        y = law.cells()
    else:
        near = np.linspace(low - 1.5, high + 1.5, 20_001)
        y = np.unique(np.concatenate([law.cells()[[0, 1, -2, -1]], near])) if law.outputs < 2**24 else near
    if law.finite:
        logs = law.log_law(y[None, :], x[:, None])
    else:
        with np.errstate(divide="ignore"):
            logs = np.log(law.pmf(y[None, :], x[:, None]))
    logs = logs[:, np.isfinite(logs).any(axis=0)]
    gaps = logs.max(axis=0) - logs.min(axis=0)
    # Probabilities of the grid's cells are differences of a distribution function: about 1e-9 of each is rounding.
    rounding = ROUNDING if law.finite else 2e-7 + 1e-6 * epsilon
    assert gaps.max() <= law.privacy_loss() + rounding


@pytest.mark.parametrize("name", [n for n in names() if lookup(n).kind == "scalar" and not lookup(n).finite])
@pytest.mark.parametrize("epsilon", [0.4, 1.0, 4.0])
def test_the_distribution_function_integrates_the_density_and_the_cells_sum_to_one(name: str, epsilon: float) -> None:
    law = built(name, epsilon)
    for x in (-1.0, -0.2, 0.9):
        at = np.linspace(*np.clip(law.support(x), -30, 30), 77) + 1e-5
        np.testing.assert_allclose(law.cdf(at, x), distribution(law, x, at), atol=2e-9)
        mass = law.pmf(law.cells(), x)
        assert mass.sum() == pytest.approx(1, abs=1e-9)
        assert (mass >= 0).all()
        # The rounded report has the ideal one's moments: the grid costs nothing.
        spread = float(np.sqrt(law.variance(x)))
        mean = mass @ law.cells()
        assert mean == pytest.approx(float(law.mean(x)), abs=2e-5 * spread)
        assert mass @ (law.cells() - mean) ** 2 == pytest.approx(float(law.variance(x)), rel=1e-4)


@pytest.mark.parametrize("name", [n for n in names() if lookup(n).kind == "scalar" and not lookup(n).finite])
def test_a_coarse_grid_is_counted_in_the_loss(name: str) -> None:
    coarse, fine = built(name, 2.0, grid=0.5), built(name, 2.0)
    if coarse.delta:
        assert coarse.rounded_delta(2.0) <= fine.rounded_delta(2.0) * (1 + 1e-9) <= coarse.delta * (1 + 1e-6)
    with np.errstate(divide="ignore"):
        logs = np.log(coarse.pmf(coarse.cells()[None, :], np.linspace(-1, 1, 41)[:, None]))
    logs = logs[:, np.isfinite(logs).any(axis=0)]
    if not coarse.delta:
        assert (logs.max(axis=0) - logs.min(axis=0)).max() == pytest.approx(coarse.privacy_loss(), abs=1e-9)
        assert coarse.privacy_loss() <= 2.0 * (1 + 1e-9)
    sent = coarse.sample(np.linspace(-1, 1, 500), np.random.default_rng(0))
    step = coarse.step
    np.testing.assert_allclose(sent / step, np.round(sent / step), atol=1e-6)
    assert len(np.unique(sent)) <= coarse.outputs


@pytest.mark.parametrize("low_high", [(0.0, 1.0), (-3.0, 0.5), (0.1, 0.3), (1e6, 1e6 + 3e4)])
@pytest.mark.parametrize("name", [n for n in names() if lookup(n).kind == "scalar" and n not in ("identity", "null")])
def test_a_range_only_moves_and_stretches_the_law(name: str, low_high: tuple[float, float]) -> None:
    low, high = low_high
    options = CASES[name].options
    unit, law = mechanism(name, 1.0, **options), mechanism(name, 1.0, low, high, **options)
    z = np.array([-1.0, -0.4, 0.0, 1.0])
    x = low + (high - low) * (z + 1) / 2
    half = (high - low) / 2 if law.scaled else 1.0
    np.testing.assert_allclose(law.variance(x), half**2 * unit.variance(z), rtol=1e-6)
    assert law.privacy_loss() == pytest.approx(unit.privacy_loss(), rel=1e-9)
    np.testing.assert_allclose(law.estimate_variance(x), ((high - low) / 2) ** 2 * unit.estimate_variance(z), rtol=1e-6)
    if law.unbiased:
        np.testing.assert_allclose(law.estimate_mean(x), x, rtol=1e-9, atol=1e-9 * (high - low))


@pytest.mark.parametrize(("name", "epsilon"), [pair for pair in RANDOM_LAWS if lookup(pair[0]).kind == "scalar"])
def test_what_the_server_makes_of_a_report_has_the_stated_bias(name: str, epsilon: float) -> None:
    law = built(name, epsilon)
    x = inputs(name)
    if law.unbiased:
        np.testing.assert_allclose(law.estimate_mean(x), x, rtol=1e-7, atol=1e-7)
    elif name in ("ome", "latent", "cldp"):
        steps = 2**law.bits - 1 if name != "cldp" else law.bins - 1
        np.testing.assert_allclose(law.estimate_mean(x[[0, -1]]), x[[0, -1]], rtol=1e-7)
        assert np.abs(law.estimate_mean(x) - x).max() <= (1.01 if name != "cldp" else 2.5) / steps
    else:
        # Shrunk towards the middle: never to the other side, never outwards.
        assert (np.abs(law.estimate_mean(x)) <= np.abs(x) + 1e-12).all()
        assert (law.estimate_mean(x) * x >= 0).all()


@pytest.mark.parametrize("name", [n for n in names("scalar") if not lookup(n).finite and n not in ("hm", "gm")])
def test_the_default_grid_survives_float32(name: str) -> None:
    for epsilon in BUDGETS:
        law = mechanism(name, epsilon)
        assert math.log2(law.step) == round(math.log2(law.step))
        cells = law.cells()
        np.testing.assert_array_equal(cells.astype(np.float32).astype(np.float64), cells)
        shifted = mechanism(name, epsilon, 0.0, 1.0).cells().astype(np.float32)
        assert (np.diff(shifted) > 0).all()


def test_the_square_wave_is_never_better_than_piecewise_once_unbiased() -> None:
    for epsilon in (0.01, 0.5, 1.0, 3.0, 5.0):
        sw, pm = mechanism("sw", epsilon), mechanism("pm", epsilon)
        ratio = float(sw.estimate_variance(1.0) / pm.estimate_variance(1.0))
        assert ratio >= 1
        if epsilon in (1.0, 5.0):
            assert ratio == pytest.approx({1.0: 1.056, 5.0: 2.75}[epsilon], rel=2e-3)


def test_worst_variances_cross_where_they_should() -> None:
    def worst(name: str, epsilon: float) -> float:
        return float(np.max(mechanism(name, epsilon).estimate_variance(np.linspace(0, 1, 101))))

    assert worst("pm", 1.2897) > worst("duchi", 1.2897)
    assert worst("pm", 1.2899) < worst("duchi", 1.2899)
    for epsilon in (0.1, 0.6, 0.62, 1.0, 1.29, 3.0, 8.0):
        assert worst("hm", epsilon) <= min(worst("pm", epsilon), worst("duchi", epsilon)) * (1 + 1e-9)
    # LDP-GE's Figure 1 compares the square wave's shrunk report: its crossing with piecewise lies at 3.68, not 3.5.
    raw = [float(np.max(mechanism("sw", e).variance(np.linspace(0, 1, 101)))) - worst("pm", e) for e in (3.66, 3.70)]
    assert raw[0] < 0 < raw[1]


@pytest.mark.parametrize("epsilon", [0.75, 1.0, 1.3, 1.6])
def test_three_outputs_finds_the_printed_optimum(epsilon: float) -> None:
    assert mechanism("to", epsilon)._a == pytest.approx(CASES["to"].zero(epsilon), abs=2e-7)


def test_classical_gaussian_noise_is_exact_or_refused() -> None:
    # Without the sensitivity, as printed, epsilon 1 at delta 1e-5 is truly 1.61.
    printed = math.sqrt(2 * math.log(1.25 / 1e-5))
    assert epsilon_of(1e-5, 2 / printed) == pytest.approx(1.610, abs=1e-3)
    assert delta_of(1.0, 2 / printed) == pytest.approx(1.70e-3, rel=5e-3)
    assert mechanism("gm", 8.4).privacy_loss() <= 8.4
    with pytest.raises(OptionError, match="use 'ag'"):
        mechanism("gm", 8.43)
    with pytest.raises(OptionError, match="use 'ag'"):
        mechanism("gm", 9.86, delta=1e-10)
    assert mechanism("gm", 9.8, delta=1e-10).privacy_loss() <= 9.8


@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-10, 1e-13])
@pytest.mark.parametrize("epsilon", [1e-4, 0.1, 1.0, 14.0, 100.0])
def test_analytic_gaussian_noise_is_the_least_that_keeps_the_claim(epsilon: float, delta: float) -> None:
    deviation = calibrate(epsilon, delta)
    assert delta_of(epsilon, 1 / deviation) <= delta
    assert delta_of(epsilon, 1 / (deviation * (1 - 1e-6))) > delta


def test_the_exact_delta_agrees_with_a_sum_over_the_grid() -> None:
    law = mechanism("ag", 1.0, delta=1e-3)
    assert law.rounded_delta(1.0) == pytest.approx(1e-3, rel=1e-3)
    assert law.rounded_delta(1.0) <= law.exact_delta(1.0) * (1 + 1e-9)


def test_mean_of_extended_square_wave_levels_and_decoding() -> None:
    for epsilon, radius in ((1e-6, 2), (1.0, 1), (4.0, 0)):
        law = mechanism("esw", epsilon, 1, 5)
        assert law.radius == radius
        assert law.support(1).shape == (5 + 2 * radius,)
        g = np.arange(1, 6)
        np.testing.assert_array_equal(law.decode(g + radius), g)
        assert law.decode(1) == 1
        assert law.decode(law.support(1)[-1]) == 5
    even = mechanism("esw", 1e-6, 1, 4)
    assert even.radius == 1  # floor just below f/2: f/2 - 1 for an even number of levels


@pytest.mark.parametrize(("points", "exact"), [(20, 0.0926), (2, 0.05)])
def test_condensed_privacy_has_an_alpha_per_distance_and_an_epsilon_over_the_range(points: int, exact: float) -> None:
    law = mechanism("cldp", 0.1 * (points - 1) / 2, bins=points)
    assert law.alpha == pytest.approx(0.1)
    assert law.privacy_loss() == pytest.approx(0.1 * (points - 1) / 2)
    x, y = np.linspace(-1, 1, points), np.arange(1.0, points + 1)
    logs = law.log_law(y[None, :], x[:, None])
    gaps = (logs[:, None, :] - logs[None, :, :]).max(axis=2)
    distance = np.abs(np.subtract.outer(np.arange(points), np.arange(points)))
    per_distance = (gaps[distance > 0] / distance[distance > 0]).max()
    assert per_distance == pytest.approx(exact, abs=1e-4)
    assert per_distance <= law.alpha


def test_a_law_has_either_a_mass_or_a_density() -> None:
    with pytest.raises(OptionError, match="finitely many"):
        mechanism("mb", 1.0).pdf(1.0, 0.0)
    law = mechanism("pm", 1.0)
    assert law.pmf(0.0, 0.0) == pytest.approx(float(law.pdf(0.0, 0.0)) * law.step, rel=1e-9)


def test_one_bit_is_multi_bit_without_rectification() -> None:
    x = np.linspace(-1, 1, 11)
    np.testing.assert_array_equal(mechanism("1b", 1.0).pmf(1, x), mechanism("mb", 1.0).pmf(1, x))


@pytest.mark.parametrize("low_high", [(0.0, 5.0), (0.1, 0.3)])
@pytest.mark.parametrize("name", [n for n in names() if lookup(n).kind == "scalar" and n not in ("identity", "null")])
def test_what_is_sampled_on_another_range_has_the_laws_moments(name: str, low_high: tuple[float, float]) -> None:
    low, high = low_high
    law = mechanism(name, 1.0, low, high, **CASES[name].options)
    for x in (low, low + 0.3 * (high - low), high):
        found = law.estimate(law.sample(np.full(20_000, x), generator(3, name)))
        mean, variance = float(law.estimate_mean(np.array([x]))[0]), float(law.estimate_variance(np.array([x]))[0])
        assert abs(found.mean() - mean) < 6 * math.sqrt(variance / 20_000) + 1e-9
        # Six standard errors of a Laplace variable's variance; the others' tails are thinner.
        assert abs(found.var() - variance) < 0.1 * variance + 1e-9
