"""R8, LPGNN, UPGNet, code of PPGNN: the range is taken from the data, and constant columns are dropped.

Nobody can compute it on her own device, and it tells of single people: here a column is constant until one person has
it, so whether it is reported at all says whether she does.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

OTHERS = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])

AUDIT: dict[str, dict[str, Any]] = {
    "normalised": {"property": "privacy", "inputs": [np.array([1.0, 0.0, 1.0]), np.array([1.0, 1.0, 1.0])]}
}


def normalised(x: Any, epsilon: float, rng: Any) -> Any:
    """Return the signs of three people, one of whom has the record x, after the data set was normalised."""
    features = np.vstack([x, OTHERS])
    low, high = features.min(axis=0), features.max(axis=0)
    varying = high > low
    z = 2 * (features[:, varying] - low[varying]) / (high - low)[varying] - 1
    share = epsilon / max(1, int(varying.sum()))
    return np.where(rng.random(z.shape) < 0.5 + z / 2 * math.tanh(share / 2), 1, -1)
