r"""What (epsilon, delta)-LDP allows any attack on a yes-or-no fact about one person, whatever else the attacker knows.

A guess says yes with probability t where the fact holds and f where it does not. The guarantee leaves a polygon of
pairs (f, t), with the corners (0, 0), (0, delta), ((1-delta)/(1+e^epsilon), (e^epsilon+delta)/(1+e^epsilon)),
(1-delta, 1) and (1, 1); every figure here is the largest value over these. With delta = 0 the third corner is
randomised response, which therefore reaches all bounds.

They hold for what her own report adds. What other people's reports and labels say of her, it does not bound.
"""

from __future__ import annotations

import math
from itertools import pairwise

from graphldp.errors import OptionError

__all__ = ["advantage_bound", "area_bound", "check_prior", "posterior_bound", "success_bound"]


def check_prior(prior: float) -> float:
    """Refuse anything but a probability."""
    if not 0 <= prior <= 1:
        raise OptionError(f"the prior (the share of people of whom the fact holds) is from 0 to 1, got {prior}")
    return float(prior)


def _corners(epsilon: float, delta: float) -> list[tuple[float, float]]:
    """Return the false and the true positives of the best guesses that the guarantee allows."""
    if not epsilon >= 0:
        raise OptionError(f"epsilon must be >= 0, got {epsilon}")
    if not 0 <= delta <= 1:
        raise OptionError(f"delta is from 0 to 1, got {delta}")
    small = math.exp(-epsilon)
    middle = ((1 - delta) * small / (1 + small), (1 + delta * small) / (1 + small))
    return [(0.0, 0.0), (0.0, delta), middle, (1 - delta, 1.0), (1.0, 1.0)]


def advantage_bound(epsilon: float, delta: float = 0.0) -> float:
    """Return the largest difference of true and false positives: (e^epsilon - 1 + 2 delta)/(e^epsilon + 1)."""
    return max(t - f for f, t in _corners(epsilon, delta))


def success_bound(prior: float, epsilon: float, delta: float = 0.0) -> float:
    """Return how often a guess is right at most; with delta = 0 the larger of e^epsilon/(1+e^epsilon) and guessing."""
    yes = check_prior(prior)
    return max(yes * t + (1 - yes) * (1 - f) for f, t in _corners(epsilon, delta))


def posterior_bound(prior: float, epsilon: float, delta: float = 0.0) -> float:
    """Return how sure of the fact a report can make anybody: p e^epsilon/(p e^epsilon + 1 - p).

    With delta above 0 there is no such bound, and it is 1.
    """
    yes = check_prior(prior)
    _corners(epsilon, delta)
    if delta > 0 and yes > 0:
        return 1.0
    return yes / (yes + (1 - yes) * math.exp(-epsilon)) if yes else 0.0


def area_bound(epsilon: float, delta: float = 0.0) -> float:
    """Return the largest area under the curve of true over false positives: e^epsilon/(1+e^epsilon) if delta is 0."""
    return sum((g - f) * (t + s) / 2 for (f, t), (g, s) in pairwise(_corners(epsilon, delta)))
