"""R1, PrivGE (code of LDP-GE): the square wave forgets the value before it uses it.

The three pieces of the output are drawn one after the other into the variable that also holds the input. Once the left
piece is written, the input is gone, so the middle and the right piece are the same for everybody. Left of the window,
reports then exist for some inputs and not for others: the loss is infinite, and the mean falls where it should rise.
"""

from __future__ import annotations

import math
from typing import Any

AUDIT: dict[str, dict[str, Any]] = {"square_wave": {"property": "privacy"}}


def square_wave(x: float, epsilon: float, rng: Any) -> float:
    """Return a report about x in [-1, 1]."""
    e = math.exp(epsilon)
    b = (epsilon * e - e + 1) / (e * (e - epsilon - 1))
    q = 1 / (2 * b * e + 2)
    left, middle = q * (1 + x), 2 * b * q * e
    u = rng.random()
    x = rng.uniform(-1 - b, x - b) if u < left else 0.0  # the input is overwritten here ...
    if left <= u < left + middle:
        return float(rng.uniform(x - b, x + b))  # ... and used here
    if u >= left + middle:
        return float(rng.uniform(x + b, 1 + b))
    return float(x)
