"""The shipped samplers follow their laws: on a grid of u without statistics, then by goodness of fit with its power."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from client_cases import CASES
from client_laws import ALPHA, LAWS, RANDOM_LAWS, Z, built, distribution, fit, inputs, moment

from graphldp.client import lookup, mechanism, names
from graphldp.client.randomiser import uniform
from graphldp.randomness import SecureSource, generator

N = 20_000


@pytest.mark.parametrize(("name", "epsilon"), RANDOM_LAWS)
def test_the_inverse_maps_an_even_grid_of_u_onto_the_law(name: str, epsilon: float) -> None:
    law = built(name, epsilon)
    if law.draws > 1:
        pytest.skip("one u a bit: see the test of the bits")
    u = (np.arange(N) + 0.5) / N
    for x in inputs(name):
        y = law.invert(x, u).astype(np.float64)
        if law.finite:
            places = law.support(x)
            counts = np.array([(y == place).sum() for place in places.astype(law.dtype)])
            assert counts.sum() == N
            np.testing.assert_allclose(counts / N, law.pmf(places, x), atol=1.5 / N)
        elif epsilon <= 10:
            step = law.step * law._scale
            edges = np.unique(
                law._shift + (np.round((np.quantile(y, np.linspace(0.01, 0.99, 50))) / step) + 0.5) * step
            )
            below = (y[:, None] <= edges).mean(axis=0)
            np.testing.assert_allclose(below, distribution(law, x, edges), atol=4 / N)


@pytest.mark.parametrize("name", ["ome", "latent"])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0, 100.0])
def test_each_bit_is_the_inverse_of_its_own_law(name: str, epsilon: float) -> None:
    law = built(name, epsilon)
    u = (np.arange(N) + 0.5) / N
    one, zero = law._exponents()
    for bit in range(law.bits):
        grid = np.full((N, law.bits), 0.5)
        grid[:, bit] = u
        for x, odds in ((1.0, one[bit]), (-1.0, -zero[bit])):  # all bits 1, all bits 0
            sent = (law.invert(np.full(N, x), grid).astype(int) >> (law.bits - 1 - bit)) & 1
            assert sent.mean() == pytest.approx(1 / (1 + np.exp(-odds)), abs=1.5 / N)
            # The rarer outcome takes the small u, down to its exact probability.
            rare = 1 / (1 + np.exp(abs(odds)))
            edge = np.full((2, law.bits), 0.5)
            edge[:, bit] = rare * np.array([0.999, 1.001])
            sent = (law.invert(np.full(2, x), edge).astype(int) >> (law.bits - 1 - bit)) & 1
            assert sent.tolist() == ([0, 1] if odds > 0 else [1, 0])


@pytest.mark.parametrize(("name", "epsilon"), RANDOM_LAWS)
def test_samples_fit_their_law_and_its_moments(name: str, epsilon: float) -> None:
    law = built(name, epsilon)
    rng = generator(1, "fit", name, epsilon)
    for x in inputs(name)[[0, 1, 2, -1]]:
        draws = law.sample(np.full(N, x), rng)
        assert draws.dtype == law.dtype
        if law.finite or epsilon <= 10:
            assert fit(law, x, draws) > ALPHA
        draws = draws.astype(np.float64)
        error = max(float(np.sqrt(law.variance(x) / N)), 1e-6 * law._scale)
        resolution = 0.0 if law.finite else law.step * law._scale / 100
        assert abs(draws.mean() - float(law.mean(x))) < Z * error + resolution
        guess = law.estimate(draws.astype(law.dtype))
        error = max(float(np.sqrt(law.estimate_variance(x) / N)), 1e-6 * (law.high - law.low))
        assert abs(guess.mean() - float(law.estimate_mean(x))) < Z * error + resolution
        if law.finite or epsilon <= 10:
            mean, variance = float(law.mean(x)), float(law.variance(x))
            fourth = moment(law, x, lambda y, m=mean: (y - m) ** 4)
            spread = np.sqrt(max(fourth - variance**2, 0) / N)
            assert abs(np.mean((draws - mean) ** 2) - variance) < Z * spread + 1e-4 * variance + 1e-12


@pytest.mark.parametrize("name", [n for n in names() if lookup(n).kind != "vector" and n not in ("identity", "null")])
def test_the_first_and_the_last_value_of_a_call_follow_the_law_too(name: str) -> None:
    law = built(name, CASES[name].power_at)
    x = np.full(3, inputs(name)[-1])
    rng = generator(9, name)
    draws = np.array([law.sample(x, rng) for _ in range(2500)])
    for position in (0, -1):
        assert fit(law, float(x[0]), draws[:, position]) > ALPHA


@pytest.mark.parametrize("name", [n for n in names() if lookup(n).kind != "vector" and n not in ("identity", "null")])
def test_the_fit_has_power_it_rejects_another_budget(name: str) -> None:
    case = CASES[name]
    law, wrong = built(name, case.power_at), built(name, case.wrong * case.power_at)
    ends = inputs(name)[[0, -1]]
    assert min(fit(law, x, wrong.sample(np.full(N, x), generator(2, name))) for x in ends) < ALPHA


@pytest.mark.parametrize("name", [n for n in names() if lookup(n).kind != "vector" and n not in ("identity", "null")])
def test_the_fit_has_power_it_rejects_the_mirrored_value(name: str) -> None:
    law = built(name, CASES[name].power_at * 2)
    values = inputs(name)
    draws = law.sample(np.full(N, values[0]), generator(3, name))
    assert fit(law, values[-1], draws) < ALPHA


@pytest.mark.parametrize("share", [5.0, 50.0])
@pytest.mark.parametrize("name", ["mb", "duchi", "to", "cldp", "esw"])
def test_the_rarest_report_keeps_its_probability_at_a_large_share(name: str, share: float) -> None:
    # The inverse sends the rarest output exactly for u below its probability, however small that is.
    law = built(name, share)
    x = inputs(name)[-1]
    places = law.support(x)
    mass = law.pmf(places, x)
    rarest = int(np.argmin(mass))
    sent = law.invert(np.full(2, x), mass[rarest] * np.array([0.999, 1.001]))
    assert (sent == places[rarest].astype(law.dtype)).tolist() == [True, False]


@pytest.mark.parametrize("name", [n for n in names("scalar") if not lookup(n).finite])
def test_no_report_lies_outside_the_public_bound(name: str) -> None:
    # A report farther out could only come from one side of the range, and would tell which.
    law = built(name, 1.0)
    for x in (-1.0, 1.0):
        sent = law.invert(np.full(4, x), [1e-280, 1e-30, 0.5, 1 - 2**-53]).astype(float)
        assert np.abs(sent).max() <= law.steps * law.step * law._scale * (1 + 1e-6)
    if name in ("lp", "gm", "ag"):
        outermost = law.cells()[[0, -1]].astype(np.float32)
        assert law.invert(-1.0, 1e-280) == law.invert(1.0, 1e-280) == outermost[0]


def test_uniform_numbers_are_uniform_in_their_small_tail() -> None:
    class Scripted:
        """Draws that fall below 2^-12 three times in a row."""

        def __init__(self) -> None:
            self.left = [0.5, 2.0**-13, 2.0**-14, 2.0**-13, 0.25]

        def random(self, size):
            count = int(np.prod(size))
            out, self.left = self.left[:count], self.left[count:]
            return np.array(out).reshape(size)

    source = Scripted()
    draws = uniform(source, 2)
    assert draws[0] == 0.5
    assert draws[1] == pytest.approx(0.25 * 2.0**-36, rel=1e-15)
    many = uniform(generator(0, "tail"), 2**21)
    assert many.min() > 0
    assert np.mean(many < 2**-13) == pytest.approx(2**-13, rel=0.3)
    assert np.unique(many).size == many.size


@pytest.mark.parametrize(("name", "epsilon"), LAWS)
def test_values_outside_the_range_are_clamped(name: str, epsilon: float) -> None:
    if name in ("esw", "krr"):
        pytest.skip("a level or label outside its range is an error")
    law = built(name, epsilon)
    ends = law.invert(np.array([-1.0, 1.0, -1.0, 1.0]), np.full((4, law.draws) if law.draws > 1 else 4, 0.3))
    far = law.invert(np.array([-1e300, 7.0, -np.inf, np.inf]), np.full((4, law.draws) if law.draws > 1 else 4, 0.3))
    np.testing.assert_array_equal(far, ends)
    np.testing.assert_array_equal(law.mean([-5.0, 5.0]), law.mean([-1.0, 1.0]))


@pytest.mark.parametrize(("name", "epsilon"), RANDOM_LAWS)
def test_the_same_seed_gives_the_same_bytes_and_the_global_state_is_left_alone(name: str, epsilon: float) -> None:
    law = built(name, epsilon)
    x = np.resize(inputs(name), 400)
    before = np.random.get_state()  # noqa: NPY002
    one, two, three = (law.sample(x, generator(seed, name)) for seed in (5, 5, 6))
    after = np.random.get_state()  # noqa: NPY002
    assert one.tobytes() == two.tobytes()
    assert np.array_equal(before[1], after[1])
    assert before[2:] == after[2:]
    if float(np.min(law.variance(x))) > 1e-3:
        assert one.tobytes() != three.tobytes()


@pytest.mark.parametrize("name", [n for n in names() if lookup(n).kind != "vector"])
def test_the_secure_source_serves_every_mechanism(name: str) -> None:
    epsilon = 1.0 if 1.0 in CASES[name].budgets else CASES[name].budgets[0]
    law = built(name, epsilon)
    x = np.resize(inputs(name)[[0]], 3000)
    one, two = law.sample(x, SecureSource()), law.sample(x, SecureSource())
    if name != "identity":
        assert one.tobytes() != two.tobytes()
        assert fit(law, float(x[0]), one) > 1e-9


@pytest.mark.parametrize("name", [n for n in names() if lookup(n).kind != "vector" and n != "identity"])
def test_shapes_and_memory_layout_do_not_matter(name: str) -> None:
    law = built(name, 1.0 if name != "null" else 0.0)
    x = np.resize(inputs(name), (6, 4))
    flat = law.sample(x.reshape(-1), generator(0, "layout"))
    np.testing.assert_array_equal(law.sample(x, generator(0, "layout")).reshape(-1), flat)
    np.testing.assert_array_equal(law.sample(np.asfortranarray(x), generator(0, "layout")).reshape(-1), flat)
    assert law.sample(np.zeros((0, 3)) + inputs(name)[0], generator(0)).shape == (0, 3)
    assert law.sample(float(inputs(name)[0]), generator(0)).shape == ()
    one = np.full(law.draws, 0.3) if law.draws > 1 else 0.3
    assert law.invert(float(inputs(name)[0]), one).shape == ()


def test_numpy_is_all_that_a_device_needs() -> None:
    program = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"scipy", "torch", "pandas", "pyarrow", "typer", "rich", "yaml"}:
            raise ImportError(f"{name} is not there")
sys.meta_path.insert(0, Refuse())
import math, numpy as np
from graphldp.client import lookup, names, protocol
for name in names():
    if lookup(name).kind not in ("level", "label"):
        epsilon = {"null": 0.0, "identity": math.inf}.get(name, 1.0)
        device = protocol(name, epsilon, 7)
        reports = device.unfold(device.perturb(np.full((3, 7), -1.0), np.random.default_rng(0)))
        assert device.estimate(reports).shape == reports.value.shape
        device.privacy_loss()
assert "scipy" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_second_call_on_the_same_object_follows_the_same_law() -> None:
    for name in ("mb", "pm", "hds", "lp"):
        law = mechanism(name, 12.0)
        first = law.sample(np.full(N, 0.6), generator(4, name, "first"))
        second = law.sample(np.full(N, 0.6), generator(4, name, "second"))
        assert fit(law, 0.6, first) > ALPHA
        assert fit(law, 0.6, second) > ALPHA
        assert law == mechanism(name, 12.0)
