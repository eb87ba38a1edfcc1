"""R4, PrivGE and UPGNet: a call divides the object's budget by m, and leaves it divided.

The second call on the same object spends epsilon/m, the third epsilon/m^2. Nobody's privacy suffers, but a table that
perturbs ten times with one object compares ten different mechanisms, and none has the stated budget.
"""

from __future__ import annotations

import math
from typing import Any

DIMENSIONS = 4  # m = d = 4 values are reported with a quarter of the budget each


class Mechanism:
    """Piecewise reports of one coordinate of a vector; the object remembers more than it should."""

    def __init__(self, epsilon: float) -> None:
        self.epsilon = epsilon

    def __call__(self, x: float, rng: Any) -> float:
        """Return a report about x in [-1, 1]."""
        self.epsilon /= DIMENSIONS  # on the object, not in a variable of the call
        s = math.exp(self.epsilon / 2)
        reach = (s + 1) / (s - 1)
        left = (reach + 1) / 2 * x - (reach - 1) / 2
        if rng.random() < s / (s + 1):
            return float(rng.uniform(left, left + reach - 1))
        u = rng.uniform(-reach, reach - (reach - 1))
        return float(u if u < left else u + reach - 1)


def first_call(x: float, epsilon: float, rng: Any) -> float:
    """Return what a fresh object reports."""
    return Mechanism(epsilon)(x, rng)


def second_call(x: float, epsilon: float, rng: Any) -> float:
    """Return what the same object reports when it is used once more."""
    mechanism = Mechanism(epsilon)
    mechanism(x, rng)
    return mechanism(x, rng)


AUDIT: dict[str, dict[str, Any]] = {"second_call": {"property": "same-law", "reference": first_call}}
