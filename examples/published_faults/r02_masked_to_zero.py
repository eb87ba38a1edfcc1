"""R2, PrivGE: unreported dimensions are set to 0 after the values were moved back to their raw range.

The reports are rectified around the middle of the range. Setting the others to 0 afterwards, in a range whose middle is
not 0, shifts every coordinate by -(1 - m/d) times the middle.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

AUDIT: dict[str, dict[str, Any]] = {
    "multi_bit": {
        "property": "unbiased",
        "inputs": [np.array([0.0, 0.2, 0.5, 1.0]), np.array([1.0, 1.0, 1.0, 0.0])],
    }
}


def multi_bit(x: Any, epsilon: float, rng: Any) -> Any:
    """Return the estimate of a vector with values in [0, 1], one dimension of which is reported."""
    d = len(x)
    chosen = rng.integers(d)
    z = 2 * x[chosen] - 1  # to [-1, 1]
    sign = 1.0 if rng.random() < 0.5 + z / 2 * math.tanh(epsilon / 2) else -1.0
    estimate = np.zeros(d)
    estimate[chosen] = d * sign / math.tanh(epsilon / 2)
    recovered = 0.5 + estimate / 2  # back to [0, 1]: right for all dimensions
    recovered[np.arange(d) != chosen] = 0.0  # and undone for those that were not reported
    return recovered
