"""Random numbers for lists of neighbours, in time and memory proportional to what is drawn."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphldp.client.draws import uniform
from graphldp.client.randomiser import Floats
from graphldp.randomness import UniformSource

__all__ = ["discrete_laplace", "discrete_laplace_variance", "log_discrete_laplace", "places"]

Whole: TypeAlias = NDArray[np.int64]

_AT_A_TIME = 2.0**21  # arrivals expected in a block; their times are summed within it


def places(sizes: Whole, chances: Floats, rng: UniformSource) -> tuple[Whole, Whole]:
    """Return (row, place) of every coin that shows heads, in order: row r has sizes[r] coins of chance chances[r] < 1.

    Arrivals of a Poisson process fall on the coins' intervals, of the length -log(1 - chance) each; a coin shows heads
    if one falls on it. How many numbers are drawn depends on sizes and chances alone.
    """
    rates = -np.log1p(-np.asarray(chances, dtype=np.float64))
    ends = np.cumsum(sizes * rates)
    row_parts: list[Whole] = []
    place_parts: list[Whole] = []
    first, rows = 0, len(sizes)
    while first < rows:
        before = float(ends[first - 1]) if first else 0.0
        last = max(first + 1, int(np.searchsorted(ends, before + _AT_A_TIME, side="right")))
        # Sums within the block alone, so that they are as exact as they can be.
        limits = np.cumsum(sizes[first:last] * rates[first:last])
        times = _arrivals(float(limits[-1]), rng)
        row = np.minimum(np.searchsorted(limits, times, side="right"), last - first - 1)
        start = np.where(row > 0, limits[row - 1], 0.0)
        place = np.minimum((times - start) / np.maximum(rates[first + row], 1e-300), sizes[first + row] - 1)
        place = np.maximum(place, 0.0).astype(np.int64)
        fresh = np.ones(len(times), dtype=bool)
        fresh[1:] = (row[1:] != row[:-1]) | (place[1:] != place[:-1])
        row_parts.append(first + row[fresh])
        place_parts.append(place[fresh])
        first = last
    if not row_parts:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return np.concatenate(row_parts), np.concatenate(place_parts)


def _arrivals(end: float, rng: UniformSource) -> Floats:
    """Return the times before `end` of a Poisson process with rate 1, in order."""
    parts: list[Floats] = []
    at = 0.0
    while at < end:
        left = end - at
        gaps = uniform(rng, int(left + 6 * math.sqrt(left)) + 8)
        # Of a small number its logarithm keeps all digits: a first arrival may be due at 1e-200.
        np.negative(gaps, out=gaps)
        np.log1p(gaps, out=gaps)
        np.negative(gaps, out=gaps)
        times = at + np.cumsum(gaps)
        parts.append(times[: int(np.searchsorted(times, end))])
        at = float(times[-1])
    return np.concatenate(parts) if parts else np.empty(0)


def discrete_laplace(epsilon: float, count: int, rng: UniformSource) -> Whole:
    """Return whole numbers k with probability (1-r)/(1+r) r^|k|, r = e^-epsilon: two geometric ones' difference."""
    sizes = np.floor(np.minimum(-np.log(uniform(rng, (2, count))) / epsilon, 2.0**60)).astype(np.int64)
    return np.asarray(sizes[0] - sizes[1])


def log_discrete_laplace(epsilon: float, k: Whole) -> Floats:
    """Return the log probability of these numbers."""
    r = math.exp(-epsilon)
    return np.asarray(math.log(-math.expm1(-epsilon)) - math.log1p(r) - epsilon * np.abs(k))


def discrete_laplace_variance(rate: float) -> float:
    """Return the variance of that noise, 2 r/(1 - r)^2 with r = exp(-rate)."""
    return 2 * math.exp(-rate) / math.expm1(-rate) ** 2
