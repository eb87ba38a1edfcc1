"""Budgets: which ones are taken, what happens at both ends of them, and that no loss is stated above its claim."""

from __future__ import annotations

import json
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from client_cases import CASES
from client_laws import built

from graphldp.client import Randomiser, lookup, mechanism, names, protocol
from graphldp.client.laws.sets import SetValued
from graphldp.client.mechanisms.ag import calibrate
from graphldp.client.randomiser import HIGHEST, LOWEST
from graphldp.client.registry import NO_FEATURE
from graphldp.client.vote import Vote
from graphldp.errors import OptionError

WITH_BUDGET = [name for name in names() if lookup(name).kind not in NO_FEATURE and name not in ("identity", "null")]
PURE = [name for name in WITH_BUDGET if name not in ("gm", "ag")]
FINITE = ["mb", "1b", "duchi", "to", "cldp", "esw", "krr", "featurerr"]
DENSITIES = [name for name in names("scalar") if not lookup(name).finite and name not in ("gm", "ag")]
LARGE = (20.0, 50.0, 100.0, HIGHEST)


def device(name: str, epsilon: object, dimensions: int):
    return protocol(name, epsilon, dimensions, 0.0, 1.0, **CASES[name].options)


@pytest.mark.parametrize("name", WITH_BUDGET)
@pytest.mark.parametrize("epsilon", [1e-17, 5e-324, LOWEST * 0.99, np.float32(1e-11)])
def test_a_budget_below_what_float64_keeps_is_refused(name: str, epsilon: float) -> None:
    with pytest.raises(OptionError, match=r"epsilon must be at least 1e-10.*'null' \(epsilon 0\)$") as caught:
        device(name, epsilon, 1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["1b", "lp", "ppm", "ppm-safe", "oue"])
def test_the_lowest_budget_is_that_of_each_reported_value(name: str) -> None:
    if name == "oue":  # one item is drawn: the budget is not shared
        assert device(name, LOWEST, 5000).privacy_loss() <= LOWEST
        return
    for dimensions in (1, 5000):
        share = 0.5 if name.startswith("ppm") else 1 / dimensions
        with pytest.raises(OptionError, match="epsilon must be at least 1e-10"):
            device(name, LOWEST / share * 0.99, dimensions)
        kept = device(name, LOWEST / share * 1.01, dimensions)
        assert name == "ppm" or kept.privacy_loss() <= kept.claim.epsilon


@pytest.mark.parametrize("name", [name for name in PURE if name != "featurerr"])
@pytest.mark.parametrize("epsilon", [HIGHEST * 1.01, 1e300, 10**400])
def test_a_budget_above_what_float64_draws_is_refused(name: str, epsilon: float) -> None:
    with pytest.raises(OptionError, match=r"at most 500|float64 can hold") as caught:
        device(name, epsilon, 1)
    assert "\n" not in str(caught.value)


def test_a_votes_budget_has_the_same_ends() -> None:
    weights = np.zeros((3, 4))
    for epsilon in (1e-17, 501.0):
        with pytest.raises(OptionError, match="vote: epsilon must be at"):
            Vote.of(epsilon, weights, weights[0], 0.0, 1.0)
    for epsilon in (LOWEST, 1.0, HIGHEST):
        assert Vote.of(epsilon, weights, weights[0], 0.0, 1.0).privacy_loss() <= epsilon


@pytest.mark.parametrize("name", PURE)
@pytest.mark.parametrize("epsilon", [1e-6, 0.001, 0.1, 1.0, 3.0, 30.0])
@pytest.mark.parametrize("dimensions", [3, 1433])
def test_no_loss_is_stated_above_the_claim(name: str, epsilon: float, dimensions: int) -> None:
    one = device(name, epsilon, dimensions)
    if name != "ppm":
        assert 0 < one.privacy_loss() <= one.claim.epsilon


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int8])
@pytest.mark.parametrize("name", WITH_BUDGET)
def test_a_short_numpy_number_is_taken_at_its_own_value(name: str, kind: type) -> None:
    epsilon = kind(3.3)
    short, plain = device(name, epsilon, 9), device(name, float(epsilon), 9)
    assert type(short.epsilon) is float
    assert name == "ppm" or short.privacy_loss() <= short.claim.epsilon
    assert short.privacy_loss() == plain.privacy_loss()
    assert json.dumps(short.meta()) == json.dumps(plain.meta())
    if lookup(name).kind == "scalar":
        assert mechanism(name, epsilon).privacy_loss() <= float(epsilon)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ag", {"delta": 1e-4}),
        ("gm", {"delta": 1e-4}),
        ("pm", {"grid": 0.1}),
        ("ome", {"tilt": 0.3, "bits": 5}),
        ("ppm-safe", {"gamma": 0.3}),
        ("mlr", {"m": 2, "base": "pm", "grid": 0.1}),
    ],
)
def test_short_options_are_computed_with_in_float64(name: str, options: dict) -> None:
    short = {
        key: np.float16(value) if isinstance(value, float) else np.int8(value) if isinstance(value, int) else value
        for key, value in options.items()
    }
    same = {key: value.item() if isinstance(value, np.generic) else value for key, value in short.items()}
    one = protocol(name, 1.0, 7, np.float16(0.1), np.float16(0.3), **short)
    two = protocol(name, 1.0, 7, float(np.float16(0.1)), float(np.float16(0.3)), **same)
    assert json.dumps(one.meta()) == json.dumps(two.meta())
    assert one.base == two.base


# the rarest report ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", LARGE)
@pytest.mark.parametrize("name", FINITE)
def test_the_rarest_report_has_its_own_probability(name: str, epsilon: float) -> None:
    law = protocol(name, epsilon, 1, bins=4)._feature(1.0) if name == "featurerr" else built(name, epsilon)
    for x in (law.low, law.high):
        places = law.support(x)
        mass = law.pmf(places, x)
        rarest = int(np.argmin(np.where(mass > 0, mass, 2.0)))
        sent = law.invert(np.full(2, x), mass[rarest] * np.array([1 - 1e-9, 1 + 1e-9]))
        assert (sent == places[rarest].astype(law.dtype)).tolist() == [True, False]


@pytest.mark.parametrize("epsilon", LARGE)
@pytest.mark.parametrize("name", ["ome", "latent"])
def test_the_rarest_bit_has_its_own_probability(name: str, epsilon: float) -> None:
    law = built(name, epsilon)
    for odds in np.concatenate(law._exponents()):
        assert 1 / (1 + math.exp(abs(odds))) > 1e-300
    assert law.privacy_loss() == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("epsilon", LARGE)
@pytest.mark.parametrize("name", DENSITIES)
def test_the_far_side_of_a_density_has_its_own_probability(name: str, epsilon: float) -> None:
    law = built(name, epsilon)
    place = -0.5
    # The u that give a report at or below -0.5 for the value 1: an interval from 0, and for `hm` a second one.
    starts = [0.0] if name != "hm" else [0.0, math.exp(law._log_two)]
    total = 0.0
    for start in starts:
        inside, outside = -660.0, math.log(0.5)
        if law.invert(1.0, start + math.exp(inside)) > place:
            continue
        for _ in range(100):
            middle = (inside + outside) / 2
            found = law.invert(1.0, start + math.exp(middle)) <= place
            inside, outside = (middle, outside) if found else (inside, middle)
        total += math.exp(inside)
    below = float(law._cdf(np.array((round(place / law.step) + 0.5) * law.step), np.array(1.0)))
    assert total == pytest.approx(below, rel=1e-9, abs=0)


# Gaussian noise -------------------------------------------------------------------------------------------------------


def normal_cdf(x: Decimal) -> Decimal:
    """Return P[N <= x] to about 70 digits, by the series around 0."""
    pi = Decimal(
        "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798"
    )
    term = total = x
    n = 1
    while abs(term) > Decimal(10) ** -110:
        n += 2
        term *= x * x / n
        total += term
    return Decimal("0.5") + total * (-x * x / 2).exp() / (2 * pi).sqrt()


@pytest.mark.parametrize("delta", [0.1, 1e-5, 1e-9, 1e-12])
@pytest.mark.parametrize("epsilon", [1e-10, 1e-8, 1e-6, 1e-3, 1.0, 20.0])
def test_analytic_noise_is_within_its_claim_to_many_digits(epsilon: float, delta: float) -> None:
    with localcontext() as context:
        context.prec = 110
        ratio, budget = 1 / Decimal(calibrate(epsilon, delta)), Decimal(epsilon)
        true = normal_cdf(ratio / 2 - budget / ratio) - budget.exp() * normal_cdf(-ratio / 2 - budget / ratio)
        assert true <= Decimal(delta)
        assert true >= Decimal(delta) * (1 - Decimal("1e-2"))
    for count in (1, 7, 1433):
        assert protocol("ag", epsilon, count, delta=delta).privacy_loss() <= epsilon


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 5.0, 20.0, 30.0, 50.0, 100.0, HIGHEST])
def test_three_outputs_have_their_variance_at_every_budget(epsilon: float) -> None:
    law = mechanism("to", epsilon)
    with localcontext() as context:
        context.prec = 600
        e, a = Decimal(epsilon).exp(), Decimal(law._a)
        if epsilon >= 5.0:
            a = e / (e + 2)
        size = e * (e + 1) / ((e - 1) * (e - a))
        for z in (0.0, 0.25, -0.5, 1.0):
            t = abs(Decimal(z))
            true = size**2 * (1 - a + a * (1 - 1 / e) * t) - t**2
            assert float(law.variance(z)) == pytest.approx(float(true), rel=1e-12, abs=0)


# ranges ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WITH_BUDGET)
@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        (1e6, 1e6 + 1, "the range 1000000.0 to 1000001.0 has only 16 float32 numbers.*; shift your values to"),
        (1e8, 1e8 + 1, "only 1 float32 numbers"),
        (3.0, 3.0001, "only 419 float32 numbers"),
        (0.0, 1e-42, "only 713 float32 numbers"),
        (0.0, 1e30, r"goes beyond 1e\+20"),
    ],
)
def test_a_range_that_float32_does_not_tell_is_refused(name: str, low: float, high: float, message: str) -> None:
    with pytest.raises(OptionError, match=message) as caught:
        protocol(name, 1.0, 3, low, high)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("ends", [(-1.0, 1.0), (0.0, 1.0), (1000.0, 1001.0), (-5.0, 2.0), (0.0, 1e20), (0.0, 1e-30)])
@pytest.mark.parametrize("name", [name for name in names("scalar") if lookup(name).scaled and name != "identity"])
@pytest.mark.parametrize("epsilon", [2 * LOWEST, 1.0, 8.0])
def test_what_is_sent_is_the_laws_report_in_float32(name: str, ends: tuple[float, float], epsilon: float) -> None:
    law = mechanism(name, epsilon, *ends)
    steps = 0 if law.finite else min(law.steps, 5000)
    ideal = law.support(ends[0]) if law.finite else law._shift + law._scale * law.step * np.arange(-steps, steps + 1.0)
    sent = ideal.astype(law.dtype).astype(np.float64)
    # Within 2^-15 of the range, or of the report where that is farther out than the range: never at the noise's scale.
    allowed = 2.0**-15 * (ends[1] - ends[0]) + 2.0**-24 * np.abs(ideal)
    assert (np.abs(sent - ideal) <= allowed).all()
    assert len(np.unique(sent)) == len(ideal) or not law.finite
    farthest = law._shift + law._scale * (law._size if law.finite else law.steps * law.step)
    assert np.isfinite(np.float32(farthest))


def test_a_set_of_the_largest_budget_is_told() -> None:
    for name in (name for name in names() if issubclass(lookup(name), SetValued)):
        assert protocol(name, HIGHEST, 12, 0.0, 1.0).privacy_loss() <= HIGHEST
        assert isinstance(protocol(name, HIGHEST, 12, 0.0, 1.0).choice, Randomiser)
