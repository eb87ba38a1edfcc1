"""R7, code of PPGNN: values are drawn with the true level's budget and rectified with the reported level's.

Whenever the reported level is another one, the estimate is stretched or shrunk. Nothing caps m by the number of
dimensions either, so a large budget asks for more dimensions than there are.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

LEVELS = 5
LEVEL = 4  # the true level of the person whose reports these are

AUDIT: dict[str, dict[str, Any]] = {
    "personalised_estimate": {
        "property": "unbiased",
        "inputs": [np.array([1.0, 0.0, -1.0]), np.array([-1.0, 1.0, 1.0])],
    }
}


def personalised_estimate(x: Any, epsilon: float, rng: Any) -> Any:
    """Return the estimate of a vector with values in [-1, 1]."""
    keep = math.exp(epsilon) / (math.exp(epsilon) + LEVELS - 1)
    others = [level for level in range(1, LEVELS + 1) if level != LEVEL]
    sent = LEVEL if rng.random() < keep else others[rng.integers(len(others))]
    drawn, assumed = (epsilon * 2 ** (level - 1) for level in (LEVEL, sent))
    chosen = rng.integers(len(x))
    sign = 1.0 if rng.random() < 0.5 + x[chosen] / 2 * math.tanh(drawn / 2) else -1.0
    estimate = np.zeros(len(x))
    estimate[chosen] = len(x) * sign / math.tanh(assumed / 2)
    return estimate
