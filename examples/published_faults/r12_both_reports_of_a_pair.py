"""R12, code of BLINK: the triangle that is kept includes one diagonal too many.

Each pair of people should be reported by one of the two. With the first upper diagonal kept as well, both report for
the pairs (i, i+1), and their bits are joined by OR: the relationship is seen twice and costs 2 epsilon.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

PEOPLE = 4

AUDIT: dict[str, dict[str, Any]] = {"symmetric_response": {"property": "privacy", "inputs": [0, 1]}}


def symmetric_response(x: int, epsilon: float, rng: Any) -> Any:
    """Return the reported links of four people, of whom 1 and 2 are linked if x is 1."""
    links = np.zeros((PEOPLE, PEOPLE), dtype=bool)
    links[0, 3] = links[3, 0] = True
    links[1, 2] = links[2, 1] = bool(x)
    flips = rng.random((PEOPLE, PEOPLE)) < 1 / (1 + math.exp(epsilon))
    kept = np.tril(links ^ flips, k=1)  # k=-1 keeps one report of each pair
    joined = kept | kept.T
    np.fill_diagonal(joined, False)
    return joined
