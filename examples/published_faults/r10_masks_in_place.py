"""R10, UPGNet: the soft threshold is written as two masks in place, and the second sees what the first has done.

Values above C are moved down by C; those that end up below C are then taken for small ones and set to 0. So
everything between C and 2C is lost, and the function jumps at 2C.
"""

from __future__ import annotations

from typing import Any

THRESHOLD = 1.0

AUDIT: dict[str, dict[str, Any]] = {"soft_threshold": {"property": "soft-threshold"}}


def soft_threshold(x: Any, epsilon: float, rng: Any) -> Any:
    """Return the thresholded values. It is the server's work: epsilon and rng play no part."""
    values = x.copy()
    values[values > THRESHOLD] -= THRESHOLD
    values[values < -THRESHOLD] += THRESHOLD
    values[abs(values) <= THRESHOLD] = 0.0  # a mask of the values as they are by now
    return values
