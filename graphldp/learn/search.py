"""The same search for every method: equally many points, the same seeds, chosen by mean validation loss.

Nothing here is ever given a test label: runs hold `split.visible(labels)`, and what is chosen is chosen by validation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphldp.errors import DataError
from graphldp.learn.problem import NO_NODES, Run, no_labels
from graphldp.learn.tasks.base import Targets
from graphldp.points import Point
from graphldp.splits import Split

__all__ = [
    "Replica",
    "chosen_point",
    "runs_of",
    "unit_filter",
]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replica:
    """One seed of an experiment: its reports, its split with what is visible of the labels, its training seed.

    `targets` and `graph` are as in `Run`, for tasks that have more than labels.
    """

    inputs: int
    seed: int
    split: Split = NO_NODES
    labels: NDArray[np.integer[Any]] = field(default_factory=no_labels)
    targets: Targets | None = None
    graph: int = 0


def unit_filter(steps: int) -> tuple[float, ...]:
    """Return the coefficients of S^steps, which is KProp."""
    return (0.0,) * steps + (1.0,)


def runs_of(
    candidates: Sequence[Point],
    replicas: Sequence[Replica],
    coefficients: Callable[[int], tuple[float, ...]] = unit_filter,
) -> list[Run]:
    """Return the runs of all points and replicas: run p * len(replicas) + s is point p on replica s."""
    return [
        Run(
            inputs=replica.inputs,
            split=replica.split,
            labels=replica.labels,
            targets=replica.targets,
            graph=replica.graph,
            seed=replica.seed,
            learning_rate=point.learning_rate,
            weight_decay=point.weight_decay,
            dropout=point.dropout,
            coefficients=coefficients(point.steps),
        )
        for point in candidates
        for replica in replicas
    ]


def chosen_point(losses: NDArray[np.float64], failed: NDArray[np.bool_] | None = None) -> int:
    """Return the point with the lowest mean validation loss ([points, replicas]); of equal ones the first.

    A point of which a replica failed is not chosen.
    """
    mean = np.asarray(losses, dtype=np.float64).mean(axis=1)
    if failed is not None:
        mean = np.where(np.asarray(failed).any(axis=1), np.inf, mean)
    if not np.isfinite(mean).any():
        raise DataError("no point of the search has a finite validation loss; search lower learning rates")
    return int(np.where(np.isfinite(mean), mean, np.inf).argmin())
