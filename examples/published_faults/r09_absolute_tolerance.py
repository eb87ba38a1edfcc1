"""R9, LPGNN: the analytic Gaussian's sigma is searched until delta is right to an absolute 1e-12.

Asked for a delta of 1e-13, the search stops as soon as delta is anywhere below 1.1e-12, and the terms that are
subtracted from each other are computed with erf, which has no digits left there.
"""

from __future__ import annotations

import math
from typing import Any

DELTA = 1e-13
SENSITIVITY = 2.0
_TOLERANCE = 1e-12

AUDIT: dict[str, dict[str, Any]] = {
    "analytic_gaussian": {"property": "gaussian", "epsilon": 10.0, "delta": DELTA, "sensitivity": SENSITIVITY}
}


def _delta(sigma: float, epsilon: float) -> float:
    half, ratio = SENSITIVITY / (2 * sigma), epsilon * sigma / SENSITIVITY
    return _phi(half - ratio) - math.exp(epsilon) * _phi(-half - ratio)


def _phi(t: float) -> float:
    return 0.5 * (1 + math.erf(t / math.sqrt(2)))


def calibrate(epsilon: float, delta: float) -> float:
    """Return the sigma that the search believes to be enough: at epsilon 10 it is 1.5 for 1e-12 and for 1e-13."""
    low, high = 0.0, 1.0
    while _delta(high, epsilon) > delta:
        low, high = high, 2 * high
    middle = (low + high) / 2
    while abs(_delta(middle, epsilon) - delta) > _TOLERANCE:
        if _delta(middle, epsilon) > delta:
            low = middle
        else:
            high = middle
        middle = (low + high) / 2
    return middle


def analytic_gaussian(x: float, epsilon: float, rng: Any) -> float:
    """Return a report about x in [-1, 1]."""
    return float(x + rng.normal(0.0, calibrate(epsilon, DELTA)))
