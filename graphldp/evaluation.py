"""How sure a table is of its numbers: intervals of means, and of differences within the same runs.

Every method of a table is measured on the same splits, so two methods are compared run by run: the difference of a
pair does not carry what the split itself did to both. A mean whose interval overlaps another's says little; a paired
difference whose interval excludes zero says that one is above the other on these splits.

The interval is Student's. It covers the mean as often as it says, whichever number of runs there is
(`bench/intervals.py` measures it), while resampling a few runs cannot know what they leave out: of two, a percentile
bootstrap covers half.
It knows only the runs it is given, and says nothing of other graphs or other searches. Below five runs it is so wide
that no verdict is taken from it, and there is none where so few runs happen to agree: they say nothing of their spread.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphldp.errors import DataError, OptionError

__all__ = ["FEW", "MANY", "Confidence", "Interval", "mean_interval", "mean_intervals", "paired_difference"]

MANY = sys.maxsize  # runs of what was measured so often that its standard error is known
FEW = 5  # runs from which on an interval decides whether one method is above another
_COVERS = (93.5, 95.2)  # percent, at 95: the least and the most that bench/intervals.py has measured from FEW runs on


@dataclass(frozen=True, slots=True, kw_only=True)
class Confidence:
    """How often an interval is to cover its mean."""

    level: float = 0.95

    def __post_init__(self) -> None:
        if not 0.0 < self.level < 1.0:
            raise OptionError(f"confidence must lie strictly between 0 and 1, got {self.level}; 0.95 is usual")

    @property
    def words(self) -> str:
        """What a table says of its intervals: their law, and how often they do cover where that was measured."""
        truly = f", in simulations {_COVERS[0]} to {_COVERS[1]} %" if self.level == 0.95 else ""
        return f"{100 * self.level:g} % (Student's{truly})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A mean and the ends of its interval; `runs` is how many there are.

    The ends are NaN of one run, and of fewer than `FEW` that are all equal.
    """

    mean: float
    low: float
    high: float
    runs: int

    @classmethod
    def of_error(cls, mean: float, error: float) -> Interval:
        """Return the 95 % interval of a mean over so many draws that its standard error is known; NaN where unknown."""
        return cls(mean=mean, low=mean - 1.96 * error, high=mean + 1.96 * error, runs=MANY)

    @property
    def known(self) -> bool:
        """Whether there is an interval at all."""
        return not (math.isnan(self.low) or math.isnan(self.high))

    def contains(self, value: float) -> bool:
        """Whether `value` lies in the interval, its ends included. Never without an interval."""
        return self.low <= value <= self.high

    def against(self, value: float) -> Literal["above", "below", "same", "unknown"]:
        """Say on which side of `value` the whole interval lies; 'same' if it contains it; 'unknown' of few runs."""
        if not self.known or self.runs < FEW:
            return "unknown"
        if self.low > value:
            return "above"
        return "below" if self.high < value else "same"

    def less(self, value: float) -> Interval:
        """Return the interval of the difference to a known number."""
        return replace(self, mean=self.mean - value, low=self.low - value, high=self.high - value)

    def within(self, low: float, high: float) -> Interval:
        """Return the part of the interval in which a mean can lie that is between `low` and `high`."""
        if not self.known:
            return self
        return replace(self, low=min(max(self.low, low), high), high=max(min(self.high, high), low))

    def scaled(self, factor: float) -> Interval:
        """Return the interval in another unit (100 for percent, -1 to turn a difference round)."""
        ends = sorted((self.low * factor, self.high * factor)) if self.known else [math.nan, math.nan]
        return Interval(mean=self.mean * factor, low=ends[0], high=ends[1], runs=self.runs)


def mean_intervals(values: ArrayLike, options: Confidence) -> list[Interval]:
    """Return the interval of each row's mean (values: rows x runs)."""
    from scipy.special import stdtrit

    table = _checked(values)
    runs = table.shape[1]
    means = table.mean(axis=1)
    if runs == 1:
        return [Interval(mean=float(mean), low=math.nan, high=math.nan, runs=1) for mean in means]
    half = float(stdtrit(runs - 1, 0.5 + 0.5 * options.level)) * table.std(axis=1, ddof=1) / math.sqrt(runs)
    if runs < FEW:
        half = np.where(np.ptp(table, axis=1) > 0, half, math.nan)
    return [
        Interval(mean=float(mean), low=float(mean - one), high=float(mean + one), runs=runs)
        for mean, one in zip(means, half, strict=True)
    ]


def mean_interval(values: ArrayLike, options: Confidence) -> Interval:
    """Return Student's interval of the mean over runs."""
    return mean_intervals(np.atleast_2d(np.asarray(values, dtype=np.float64)), options)[0]


def paired_difference(values: ArrayLike, baseline: ArrayLike, options: Confidence) -> Interval:
    """Return the interval of the mean of `values - baseline`, run by run; run i of both must share its split."""
    first = np.asarray(values, dtype=np.float64)
    second = np.asarray(baseline, dtype=np.float64)
    if first.shape != second.shape:
        raise DataError(
            f"a paired difference needs as many runs on both sides, got {first.shape} and {second.shape}; "
            "train both with the same seeds"
        )
    return mean_interval(first - second, options)


def _checked(values: ArrayLike) -> NDArray[np.float64]:
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] == 0:
        raise DataError(f"a mean needs at least one run per row, got values of shape {table.shape}")
    if not np.isfinite(table).all():
        raise DataError("a run's value is NaN or infinite; an interval needs finite values, so mend or drop that run")
    return table
