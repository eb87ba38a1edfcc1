"""The numbers behind the docs' figures, from the laws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphldp.audit.law import outcomes
from graphldp.client import lookup, mechanism, protocol
from graphldp.client.levels import Personalised
from graphldp.client.registry import NO_FEATURE
from graphldp.errors import OptionError

__all__ = [
    "DIMENSIONS",
    "coordinate_variance",
    "crossing",
    "crossings",
    "expected_error",
    "law_base",
    "raw_error",
    "raw_variance",
    "scalar_variance",
]

Floats: TypeAlias = NDArray[np.float64]

DIMENSIONS = 1433  # of Cora: the docs' example of a wide vector
_INPUTS = np.linspace(-1.0, 1.0, 9)


def raw_variance(name: str, epsilon: float) -> float:
    """Return the worst variance of what is sent about one value in [-1, 1]."""
    return float(np.max(mechanism(name, epsilon).variance(_INPUTS)))


def raw_error(name: str, epsilon: float) -> float:
    """Return the worst mean squared error of taking what is sent as the value."""
    base = mechanism(name, epsilon)
    return float(np.max(base.variance(_INPUTS) + (base.mean(_INPUTS) - _INPUTS) ** 2))


def scalar_variance(name: str, epsilon: float) -> float:
    """Return the worst variance of the estimate of one value; an option error where the budget is refused."""
    return float(np.max(mechanism(name, epsilon).estimate_variance(_INPUTS)))


def coordinate_variance(name: str, epsilon: float, dimensions: int) -> tuple[float, float, int]:
    """Return the worst variance and bias of a coordinate's estimate in a vector, and how many are reported."""
    device = protocol(name, epsilon, dimensions)
    return float(np.max(device.variance(_INPUTS))), float(np.max(np.abs(device.bias(_INPUTS)))), device.m


def crossing(difference: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function of epsilon changes its sign between low and high."""
    left = difference(low)
    if left * difference(high) > 0:
        raise OptionError(f"no crossing between epsilon {low:g} and {high:g}")
    for _ in range(60):
        middle = (low + high) / 2
        if left * difference(middle) > 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def crossings() -> tuple[float, float, float]:
    """Return where lines of the comparison cross: sw and pm as sent (variance, squared error), sw and lp rectified."""
    return (
        crossing(lambda e: raw_variance("sw", e) - raw_variance("pm", e), 2.0, 6.0),
        crossing(lambda e: raw_error("sw", e) - raw_error("pm", e), 2.0, 6.0),
        crossing(lambda e: scalar_variance("sw", e) - scalar_variance("lp", e), 1.0, 8.0),
    )


def expected_error(name: str, epsilon: float, *, raw: bool = False) -> float:
    """Return the worst expected |estimate - value| of one feature in [0, 1].

    Args:
        name: a mechanism; `featurerr` stands for its response of one feature with the whole budget.
        epsilon: that budget.
        raw: take FeatureRR's bin u as u/k, as its paper does, instead of rectifying it.
    """
    base = law_base(name, epsilon, 0.0, 1.0)
    worst = 0.0
    for x in np.linspace(0.0, 1.0, 11):
        law = outcomes(base, x)
        guess = law.y / base.bins if raw and name == "featurerr" else base.estimate(law.y)
        worst = max(worst, float(law.mass[0] @ np.abs(guess - x)))
    return worst


def law_base(name: str, epsilon: float, low: float = -1.0, high: float = 1.0) -> Any:
    """Return the scalar law that a mechanism's page shows: its own, or that of one value (or level) inside it."""
    kind = lookup(name).kind
    if kind in NO_FEATURE:
        return mechanism(name, epsilon, 1, 5)
    if kind == "scalar":
        return mechanism(name, epsilon, low, high)
    device: Any = protocol(name, epsilon, 1, low, high)
    hidden = isinstance(device, Personalised) and not device.parts
    return mechanism("esw", device.gamma * epsilon, 1, device.levels) if hidden else device.base
