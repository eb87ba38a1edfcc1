"""A sampler without luck: it is fed evenly spaced numbers instead of random ones, and its own law shows."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphldp.audit.budget import QUANTILE_TOLERANCE, QUANTILES, RARE_TOLERANCE, SEVERAL_DRAWS_TOLERANCE
from graphldp.audit.law import Outcomes, outcomes
from graphldp.client import Randomiser
from graphldp.client.registry import NO_FEATURE

__all__ = ["EvenSource", "map_differs", "map_distance"]

Floats: TypeAlias = NDArray[np.float64]

_RARE = 2.0**-10  # uniform numbers below this are taken in octaves: each has as many as the next
_OCTAVES = 160  # down to 2^-170, far below e^-100
_PER_OCTAVE = 64
_NEAREST_ONE = 40  # octaves towards 1, where float64 has no finer numbers than 2^-53
_ALTERNATING = 0x55555555  # bits 0, 1, 0, 1, ...: every second number gets the other sign


class EvenSource:
    """A source of evenly spaced `uniform` numbers, for a sampler that draws for many equal inputs at once."""

    def random(self, size: int | tuple[int, ...]) -> Floats:
        """Return evenly spaced numbers in (0, 1), in order; for several per report, a low-discrepancy set."""
        if isinstance(size, tuple) and len(size) == 2 and size[1] > 1:
            return _low_discrepancy(size[0], size[1])
        count = int(np.prod(size))
        return ((np.arange(count) + 0.5) / count).reshape(size)

    def integers(self, low: int, high: int, size: int | tuple[int, ...]) -> NDArray[np.int64]:
        """Return words whose bits alternate, for signs; evenly spaced numbers in any other range."""
        if (low, high) == (0, 2**32):
            return np.full(size, _ALTERNATING, dtype=np.int64)
        count = int(np.prod(size))
        return (low + (np.arange(count) * (high - low)) // max(1, count)).reshape(size)


def map_distance(law: Randomiser, sampler: Randomiser, *, few: bool = False) -> float:
    """Return how far the sampler's map from uniform numbers to reports is from the law; at most 1 for a right one.

    What is compared are the probabilities of outputs, or on a grid the distribution function; the unit is what 8
    intervals of uniform numbers can be off by. An output rarer than 2^-10 also counts with its relative error, in
    units of RARE_TOLERANCE. Both ways of drawing are examined: `sample` with an even source, and `invert`. With `few`,
    for one input alone.
    """
    inputs = _inputs(law)
    return max((_distance(law, sampler, x) for x in (inputs[-1:] if few else inputs)), default=0.0)


def map_differs(law: Randomiser, sampler: Randomiser) -> bool:
    """Return whether `map_distance` is above 1; the first input that shows it is enough."""
    return any(_distance(law, sampler, x) > 1.0 for x in _inputs(law))


def _inputs(law: Randomiser) -> list[float]:
    """Return the inputs whose maps are compared: none where nothing is drawn."""
    if law.deterministic or law.epsilon == 0:
        return []
    if law.kind in NO_FEATURE:
        return [float(x) for x in np.arange(law.low, law.high + 1)]
    return [law.low, law.low + 0.3 * (law.high - law.low), law.high]


def _distance(law: Randomiser, sampler: Randomiser, x: float) -> float:
    table = outcomes(law, x)
    if law.draws > 1:
        return _several_draws(law, sampler, table, x)
    even = np.asarray(sampler.sample(np.full(QUANTILES, x), EvenSource()), dtype=np.float64)
    bulk = _error(law, table, _renamed(law, sampler, x, even), np.full(QUANTILES, 1 / QUANTILES))
    points, weights = _with_tails()
    mapped = np.asarray(sampler.invert(np.full(len(points), x), points), dtype=np.float64)
    return max(bulk, _error(law, table, _renamed(law, sampler, x, mapped), weights, rare=True))


def _renamed(law: Randomiser, sampler: Randomiser, x: float, values: Floats) -> Floats:
    """Return another sampler's outputs by their rank: that its numbers have other sizes does not give it away."""
    if sampler is law or not law.finite:
        return values
    own, other = np.unique(law.support(x)), np.unique(sampler.support(x))
    if len(own) != len(other) or (own == other).all():
        return values
    return np.asarray(own[np.argmin(np.abs(values[:, None] - other), axis=1)])


def _error(law: Randomiser, table: Outcomes, values: Floats, weights: Floats, *, rare: bool = False) -> float:
    got = np.bincount(table.place(values), weights, minlength=len(table.y) + 1)
    p = np.append(table.mass[0], 0.0)
    if got[-1] > 0 and (law.finite or len(table.y) == law.outputs):
        return np.inf
    if not law.finite:
        return float(np.max(np.abs(np.cumsum(got) - np.cumsum(p)))) / QUANTILE_TOLERANCE
    error = np.abs(got - p)
    worst = float(error.max()) / QUANTILE_TOLERANCE
    few = (p > 2.0**-150) & (p < _RARE) & (len(p) < 64)
    if rare and few.any():
        worst = max(worst, float((error[few] / p[few]).max()) / RARE_TOLERANCE)
    return worst


def _several_draws(law: Randomiser, sampler: Randomiser, table: Outcomes, x: float) -> float:
    """Return the distance for a sampler that takes several uniform numbers: by the mean of the estimates.

    Cells are boxes in the unit cube, whose volume a low-discrepancy set knows to about SEVERAL_DRAWS_TOLERANCE. The
    mean of the estimates is finer: it is a sum over the draws, and each draw alone is evenly spaced.
    """
    values = np.asarray(sampler.sample(np.full(QUANTILES, x), EvenSource()), dtype=np.float64)
    got = np.bincount(table.place(values), minlength=len(table.y) + 1) / QUANTILES
    cells = float(np.max(np.abs(got - np.append(table.mass[0], 0.0)))) / SEVERAL_DRAWS_TOLERANCE
    if got[-1] > 0:
        return np.inf
    guess = np.asarray(law.estimate(table.y))
    means = abs(float(got[:-1] @ guess) - float(table.mass[0] @ guess))
    allowed = float(guess.max() - guess.min()) * QUANTILE_TOLERANCE / 4
    return max(cells, means / allowed)


def _low_discrepancy(count: int, draws: int) -> Floats:
    from scipy.stats import qmc

    engine: Any = qmc.Sobol(draws, scramble=False)
    bits = int(count).bit_length() - 1
    if 2**bits != count:
        raise ValueError(f"a low-discrepancy set has a power of two points, got {count}")
    return np.asarray(engine.random_base2(bits) + 0.5 / count, dtype=np.float64)


@cache
def _with_tails() -> tuple[Floats, Floats]:
    """Return uniform numbers and weights that add up to 1: even ones, and octaves towards 0 and 1."""
    even = _RARE + (1 - 2 * _RARE) * (np.arange(QUANTILES) + 0.5) / QUANTILES
    points, weights = [even], [np.full(QUANTILES, (1 - 2 * _RARE) / QUANTILES)]
    inner = (np.arange(_PER_OCTAVE) + 0.5) / _PER_OCTAVE
    for octave in range(_OCTAVES):
        upper = _RARE * 2.0**-octave
        part = np.full(_PER_OCTAVE, upper / 2 / _PER_OCTAVE)
        points.append(upper / 2 * (1 + inner))
        weights.append(part)
        if octave < _NEAREST_ONE:
            points.append(1 - upper / 2 * (1 + inner))
            weights.append(part)
    return np.concatenate(points), np.concatenate(weights)
