"""R5, code of PPGNN: a privacy level is randomised by independent coins, and the largest level that wins is sent.

The window's half-width is floored to 0, and a person's own level always wins its coin. So no report is ever below the
true level, and the highest level always reports itself: the loss is infinite.
"""

from __future__ import annotations

import math
from typing import Any

LEVELS = 5

AUDIT: dict[str, dict[str, Any]] = {"square_wave_level": {"property": "privacy", "inputs": [1, 2, 3, 4, 5]}}


def square_wave_level(x: int, epsilon: float, rng: Any) -> int:
    """Return a report about the level x in 1..5."""
    other = 1 / (math.exp(epsilon) + LEVELS - 1)
    coins = rng.random(LEVELS) < other
    coins[x - 1] = True
    return max(level for level in range(1, LEVELS + 1) if coins[level - 1])
