"""How many dimensions to report: the best number for a law, and the papers' rules of thumb."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphldp.client.randomiser import Randomiser, build
from graphldp.errors import OptionError

__all__ = ["M_RULES", "best_m", "choose_m"]

# The papers' floor rules, as the share of epsilon: LPGNN and UPGNet, PPGNN, TOGL (two of them).
M_RULES = {"optimal": None, "1/2.18": 1 / 2.18, "1/2.2": 1 / 2.2, "2/5": 2 / 5, "5/11": 5 / 11}


def best_m(name: str, epsilon: float, dimensions: int, rule: str = "optimal", **options: Any) -> int:
    """Return how many dimensions to report.

    `optimal` minimises the worst variance of a coordinate, computed from the scalar law: over m it is
    d/m E[estimate^2 at the end of the range; epsilon/m] up to a constant. The other rules are the papers' floors.
    """
    if rule not in tuple(M_RULES):
        raise OptionError(f"m_rule must be one of {', '.join(M_RULES)}; got {rule!r}")
    share = M_RULES[rule]
    if share is not None:
        return max(1, min(dimensions, math.floor(epsilon * share + 1e-12)))
    # The best share epsilon/m of every law here lies above 1/2, and the variance has one minimum.
    most = max(1, min(dimensions, math.ceil(2 * epsilon)))

    def cost(m: int) -> float:
        scalar = build(name, epsilon / m, -1.0, 1.0, options)
        return float(scalar.estimate_variance(1.0) + 1.0) / m

    left, right = 1, most
    while left < right:
        middle = (left + right) // 2
        if cost(middle) <= cost(middle + 1):
            right = middle
        else:
            left = middle + 1
    return left


def choose_m(base: Randomiser, dimensions: int, m: Any, rule: str) -> int:
    """Return m where it is given and fits, else what the rule says for a scalar with the whole budget."""
    name, options = base.name, base.options()
    if rule not in tuple(M_RULES):
        raise OptionError(f"m_rule must be one of {', '.join(M_RULES)}; got {rule!r}")
    if m is None:
        default = getattr(type(base), "default_m", None)
        if not 0 < base.epsilon < math.inf:
            m = 1
        elif default is not None and rule == "optimal":
            m = min(default, dimensions)
        else:
            m = best_m(name, base.epsilon, dimensions, rule, **options)
    if isinstance(m, bool) or not isinstance(m, int | np.integer) or not 1 <= m <= dimensions:
        raise OptionError(f"m must be a whole number from 1 to the {dimensions} dimensions, got {m!r}")
    return int(m)
