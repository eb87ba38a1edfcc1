"""Exact losses: of values, of whole reports, of Gaussian noise; and that a wrong law is seen."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from graphldp.audit import gaussian_delta, gaussian_epsilon, gaussian_sigma, joint_loss, scalar_loss
from graphldp.audit.gaussian import classical_sigma, loss_distribution, numerical_epsilon
from graphldp.audit.law import moments, outcomes
from graphldp.client import lookup, mechanism, names, protocol
from graphldp.client.mechanisms.mb import MultiBit

SCALARS = [name for name in names("scalar") if name not in ("null", "identity", "gm", "ag")]


@pytest.mark.parametrize("name", SCALARS)
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 8.0])
def test_the_scalar_loss_is_the_budget(name: str, epsilon: float) -> None:
    base = mechanism(name, epsilon)
    found = scalar_loss(base)
    assert found.value == pytest.approx(epsilon, rel=1e-6, abs=1e-9)
    assert found.value == pytest.approx(base.privacy_loss(), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("name", SCALARS)
@pytest.mark.parametrize("x", [-1.0, 0.3, 1.0])
def test_laws_have_mass_1_and_the_stated_moments(name: str, x: float) -> None:
    base = mechanism(name, 1.3)
    found = moments(base, x)
    assert found.mass == pytest.approx(1, abs=1e-9)
    assert found.mean == pytest.approx(float(base.mean(x)), rel=1e-4, abs=1e-4)
    assert found.variance == pytest.approx(float(base.variance(x)), rel=2e-4)
    assert found.estimate_variance == pytest.approx(float(base.estimate_variance(x)), rel=2e-4)


@pytest.mark.parametrize("name", ["pm", "sw", "hm", "lp", "ag", "pm-sub"])
def test_integrated_cells_are_the_stated_ones(name: str) -> None:
    base = mechanism(name, 1.0)
    law = outcomes(base, [-1.0, 0.37])
    stated = base.pmf(law.y[None, :], law.inputs[:, None])
    assert np.abs(law.mass - stated).max() < 1e-12


@pytest.mark.parametrize(
    ("name", "dimensions", "m"), [("mb", 3, 2), ("mb", 4, 3), ("pm", 3, 2), ("sw", 2, 2), ("lp", 3, 3)]
)
def test_the_enumerated_joint_loss_is_the_whole_budget(name: str, dimensions: int, m: int) -> None:
    device = protocol(name, 1.7, dimensions, m=m)
    found = joint_loss((device.base,) * dimensions, m)
    assert found.value == pytest.approx(1.7, rel=1e-6)
    assert found.value == pytest.approx(device.privacy_loss(), rel=1e-6)


def test_a_budget_that_is_not_shared_is_seen_in_the_joint_report() -> None:
    whole = MultiBit(epsilon=1.0)  # two dimensions with the whole budget each
    assert joint_loss((whole,) * 3, 2).value == pytest.approx(2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Certain(MultiBit):
    """A multi-bit mechanism that tells the truth at one end of the range."""

    def _log_law(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        honest = MultiBit(epsilon=self.epsilon)._log_law(y, z)
        return np.where(z == 1.0, np.where(y == 1.0, 0.0, -np.inf), honest)


def test_disjoint_supports_are_an_infinite_loss_with_its_witness() -> None:
    found = scalar_loss(Certain(epsilon=1.0))
    assert found.value == math.inf
    assert found.text() == "output -1 is possible under -1 and impossible under 1"


def test_gaussian_numbers_of_the_errata() -> None:
    printed = classical_sigma(1.0, 1e-5, 1.0)  # without the sensitivity 2 of [-1, 1]
    assert gaussian_delta(1.0, printed, 2.0) == pytest.approx(1.70e-3, rel=1e-3)
    assert gaussian_epsilon(1e-5, printed, 2.0) == pytest.approx(1.610, abs=1e-3)
    for epsilon, keeps in ((8.41, True), (8.43, False)):
        assert (gaussian_delta(epsilon, classical_sigma(epsilon, 1e-5, 2.0), 2.0) <= 1e-5) is keeps


@pytest.mark.parametrize("delta", [1e-3, 1e-10, 1e-13])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 14.0])
def test_the_calibrated_sigma_gives_its_delta(epsilon: float, delta: float) -> None:
    sigma = gaussian_sigma(epsilon, delta, 2.0)
    assert gaussian_delta(epsilon, sigma, 2.0) == pytest.approx(delta, rel=1e-9)
    assert gaussian_delta(epsilon, sigma, 2.0) <= delta
    assert gaussian_epsilon(delta, sigma, 2.0) == pytest.approx(epsilon, rel=1e-9)


def test_the_numerical_distribution_agrees_with_the_closed_form() -> None:
    base = mechanism("ag", 1.0)
    law = outcomes(base, [-1.0, 1.0])
    sigma = math.sqrt(float(base.variance(0.0)))
    for count in (1, 5):
        got = numerical_epsilon(*loss_distribution(law.mass[1], law.mass[0], count), 1e-5)
        assert got == pytest.approx(gaussian_epsilon(1e-5, sigma, 2 * math.sqrt(count)), rel=1e-3)


def test_a_level_mechanism_is_exact_over_its_levels() -> None:
    assert lookup("esw").kind == "level"
    base = mechanism("esw", 2.0, 1, 6)
    assert scalar_loss(base).value == pytest.approx(2.0, rel=1e-9)
    assert scalar_loss(replace(base, epsilon=3.0)).value == pytest.approx(3.0, rel=1e-9)


@pytest.mark.parametrize("name", ["mb", "pm", "lp", "null"])
def test_a_report_is_found_at_its_outcome_or_nowhere(name: str) -> None:
    law = outcomes(mechanism(name, 0.0 if name == "null" else 1.0), [-1.0, 0.5])
    everywhere = np.arange(len(law.y))
    assert law.place(law.y).tolist() == law.place(law.y.astype(np.float32).astype(np.float64)).tolist()
    assert (law.place(law.y) == everywhere).all()
    between = (law.y[:-1] + law.y[1:]) / 2
    nowhere = np.concatenate([between[:3], between[-3:], law.y[-1:] + 0.5, law.y[:1] - 0.5, [np.nan, np.inf, -np.inf]])
    assert (law.place(nowhere) == len(law.y)).all()
