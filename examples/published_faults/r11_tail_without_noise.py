"""R11, DPGNN: the right tail of the sub-optimal piecewise mechanism is a fixed function of the value.

The uniform number that spreads a report over the tail is missing from the formula. A quarter of the reports at x = -0.5
are then one number that belongs to that x alone.
"""

from __future__ import annotations

import math
from typing import Any

AUDIT: dict[str, dict[str, Any]] = {"pm_sub": {"property": "privacy"}}


def pm_sub(x: float, epsilon: float, rng: Any) -> float:
    """Return a report about x in [-1, 1]."""
    e, s = math.exp(epsilon), math.exp(epsilon / 3)
    h = (e + s) / (s * (e - 1))
    reach, left, right = h * (s + 1), h * (x * s - 1), h * (x * s + 1)
    inside, left_tail = e / (e + s), s / (e + s) * (1 + x) / 2
    u = rng.random()
    if u < inside:
        return float(rng.uniform(left, right))
    if u < inside + left_tail:
        return float(rng.uniform(-reach, left))
    return float((reach - right) * 0.5 + right)  # a constant where a uniform number belongs
