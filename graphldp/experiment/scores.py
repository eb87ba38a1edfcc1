"""A row's intervals from its final runs' scores: the same wherever the row is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphldp.evaluation import Confidence, Interval, paired_difference
from graphldp.tasks import TaskEntry

__all__ = ["Measured", "measured"]

_Scores = Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A row's intervals: its headline, the task's other measures, and the differences to floor and ceiling."""

    score: Interval
    others: Mapping[str, Interval]
    gain: Interval | None
    gap: Interval | None


def measured(
    scores: _Scores,
    floor: _Scores | None,
    ceiling: _Scores | None,
    measures: TaskEntry,
    confidence: Confidence,
) -> Measured:
    """Return a row's intervals from its final runs' scores: the same wherever the row is shown.

    `floor` and `ceiling` are those rows' scores on the same splits; None for themselves, or where they were not run. No
    end is where no value can be.
    """
    head, *others = measures.measures

    def against(other: _Scores | None) -> Interval | None:
        if other is None:
            return None
        pair = (scores[head.name], other[head.name])
        most = head.high - head.low
        return paired_difference(*pair, confidence).within(-most, most).scaled(head.sign * head.factor)

    return Measured(
        score=head.interval(scores[head.name], confidence),
        others={other.name: other.interval(scores[other.name], confidence) for other in others},
        gain=against(floor),
        gap=against(ceiling),
    )
