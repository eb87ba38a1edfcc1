"""R3, PrivGE: every column is scaled by its own private minimum and maximum, and reports are scaled back by them.

What leaves is then a function of two people's exact values: when one person's value moves from below the largest to
above it, everybody's reports move. A constant column is released as it is.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

OTHERS = (0.1, 0.3, 0.5)

AUDIT: dict[str, dict[str, Any]] = {"scaled_by_data": {"property": "privacy", "inputs": [0.2, 0.49, 0.9]}}


def scaled_by_data(x: float, epsilon: float, rng: Any) -> Any:
    """Return the reports of four people, one of whom has the value x."""
    column = np.array([x, *OTHERS])
    low, high = column.min(), column.max()
    z = 2 * (column - low) / (high - low) - 1
    sign = np.where(rng.random(len(z)) < 0.5 + z / 2 * math.tanh(epsilon / 2), 1.0, -1.0)
    estimate = sign / math.tanh(epsilon / 2)
    return low + (estimate + 1) / 2 * (high - low)
