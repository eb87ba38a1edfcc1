"""R6, code of PPGNN: everybody reports as many dimensions as the person with the most, each with her own share.

A person of the lowest level should report m' = 1 dimension with her whole feature budget. The matrix operation reports
M dimensions for everybody, each with that whole budget, so she spends M times as much as she was promised.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

DIMENSIONS = 16
LEVELS = 5
GAMMA = 0.5  # the share of the budget that the level itself takes

AUDIT: dict[str, dict[str, Any]] = {
    "personalised": {
        "property": "privacy",
        "inputs": [np.full(DIMENSIONS, -1.0), np.zeros(DIMENSIONS), np.full(DIMENSIONS, 1.0)],
    }
}


def personalised(x: Any, epsilon: float, rng: Any) -> Any:
    """Return the report of a person of level 1, whose whole budget is epsilon."""
    budgets = [epsilon * 2**level for level in range(LEVELS)]
    own = max(1, math.floor(budgets[0] / 2.2))
    most = max(max(1, math.floor(budget / 2.2)) for budget in budgets)
    share = (1 - GAMMA) * budgets[0] / own  # of one dimension, when `own` of them are sent ...
    chosen = rng.permutation(len(x))[:most]  # ... but `most` are
    lean = 0.5 + x[chosen] / 2 * math.tanh(share / 2)
    report = np.zeros(len(x))
    report[chosen] = np.where(rng.random(most) < lean, 1.0, -1.0) * len(x) / own / math.tanh(share / 2)
    return report
