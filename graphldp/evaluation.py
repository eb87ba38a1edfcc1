"""How sure a table is of its numbers: bootstrap intervals of means, and of differences within the same runs.

Every method of a table is measured on the same splits, so two methods are compared run by run: the difference of a
pair does not carry what the split itself did to both. A mean whose interval overlaps another's says little; a paired
difference whose interval excludes zero says that one is above the other on these splits.

The interval is the percentile bootstrap of the mean. It knows only the runs it is given: it says nothing of other
graphs or other searches, and with few runs it is somewhat too narrow (ten normal values: it covers the mean in about
90 % of cases where it claims 95 %; a test measures it).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphldp.errors import DataError, OptionError
from graphldp.randomness import generator

__all__ = ["Bootstrap", "Interval", "mean_interval", "mean_intervals", "paired_difference"]

_BLOCK = 4_000_000  # resampled values held at a time: 32 MB


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    """How an interval is made: the number of resamples, the confidence, and the root of their seeds."""

    resamples: int = 1000
    confidence: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        if self.resamples < 100:
            raise OptionError(
                f"resamples must be at least 100, got {self.resamples}; fewer leave the ends of an interval to chance"
            )
        if not 0.0 < self.confidence < 1.0:
            raise OptionError(f"confidence must lie strictly between 0 and 1, got {self.confidence}; 0.95 is usual")


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A mean and the ends of its interval; the ends are NaN when one run leaves nothing to resample."""

    mean: float
    low: float
    high: float

    @property
    def known(self) -> bool:
        """Whether there is an interval at all."""
        return not (math.isnan(self.low) or math.isnan(self.high))

    def contains(self, value: float) -> bool:
        """Whether `value` lies in the interval, its ends included. Never without an interval."""
        return self.low <= value <= self.high

    def against(self, value: float) -> Literal["above", "below", "same", "unknown"]:
        """Say on which side of `value` the whole interval lies; 'same' if it contains it."""
        if not self.known:
            return "unknown"
        if self.low > value:
            return "above"
        return "below" if self.high < value else "same"

    def scaled(self, factor: float) -> Interval:
        """Return the interval in another unit (100 for percent, -1 to turn a difference round)."""
        ends = sorted((self.low * factor, self.high * factor)) if self.known else [math.nan, math.nan]
        return Interval(mean=self.mean * factor, low=ends[0], high=ends[1])


def mean_intervals(values: ArrayLike, options: Bootstrap, *address: str | int | float) -> list[Interval]:
    """Return the interval of each row's mean (values: rows x runs), all rows resampled by the same draws.

    `address` names the draws: the same root seed, address and number of runs give the same interval anywhere.
    """
    table = _checked(values)
    runs = table.shape[1]
    means = table.mean(axis=1)
    if runs == 1:
        return [Interval(mean=float(mean), low=math.nan, high=math.nan) for mean in means]
    rng = generator(options.seed, "bootstrap", *address)
    resampled = np.empty((table.shape[0], options.resamples))
    step = max(1, _BLOCK // (runs * table.shape[0]))
    for start in range(0, options.resamples, step):
        stop = min(start + step, options.resamples)
        picks = rng.integers(0, runs, size=(stop - start, runs))
        resampled[:, start:stop] = np.take(table, picks, axis=1).mean(axis=2)
    tail = 50.0 * (1.0 - options.confidence)
    lows, highs = np.percentile(resampled, [tail, 100.0 - tail], axis=1)
    return [
        Interval(mean=float(mean), low=float(low), high=float(high))
        for mean, low, high in zip(means, lows, highs, strict=True)
    ]


def mean_interval(values: ArrayLike, options: Bootstrap, *address: str | int | float) -> Interval:
    """Return the percentile bootstrap interval of the mean over runs."""
    return mean_intervals(np.atleast_2d(np.asarray(values, dtype=np.float64)), options, *address)[0]


def paired_difference(
    values: ArrayLike, baseline: ArrayLike, options: Bootstrap, *address: str | int | float
) -> Interval:
    """Return the interval of the mean of `values - baseline`, run by run; run i of both must share its split."""
    first = np.asarray(values, dtype=np.float64)
    second = np.asarray(baseline, dtype=np.float64)
    if first.shape != second.shape:
        raise DataError(
            f"a paired difference needs as many runs on both sides, got {first.shape} and {second.shape}; "
            "train both with the same seeds"
        )
    return mean_interval(first - second, options, *address)


def _checked(values: ArrayLike) -> NDArray[np.float64]:
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] == 0:
        raise DataError(f"a mean needs at least one run per row, got values of shape {table.shape}")
    if not np.isfinite(table).all():
        raise DataError("a run's value is NaN or infinite; an interval needs finite values, so mend or drop that run")
    return table
