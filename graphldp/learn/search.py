"""The same search for every method: equally many points, the same seeds, chosen by mean validation loss.

Nothing here is ever given a test label: runs hold `split.visible(labels)`, and what is chosen is chosen by validation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from graphldp.errors import DataError
from graphldp.learn.engine import Progress
from graphldp.learn.fitting import fit
from graphldp.learn.problem import NO_NODES, Options, Outcome, Problem, Run, no_labels
from graphldp.learn.state import State
from graphldp.learn.tasks.base import Targets
from graphldp.points import Point, Space, points
from graphldp.splits import Split

__all__ = [
    "Found",
    "Point",
    "Replica",
    "Space",
    "chosen_point",
    "final",
    "points",
    "runs_of",
    "search",
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """What a search has found.

    Attributes:
        candidates: the points that were tried.
        chosen: index of the chosen one.
        mean_loss: validation loss of each point, averaged over the replicas; infinite where one failed.
        runs, outcome: everything that was tried.
    """

    candidates: tuple[Point, ...]
    chosen: int
    mean_loss: NDArray[np.float64]
    runs: tuple[Run, ...]
    outcome: Outcome

    @property
    def point(self) -> Point:
        """The chosen point."""
        return self.candidates[self.chosen]


def search(
    problem: Problem,
    candidates: Sequence[Point],
    replicas: Sequence[Replica],
    options: Options | None = None,
    *,
    coefficients: Callable[[int], tuple[float, ...]] = unit_filter,
    device: str | torch.device = "auto",
    progress: Progress | None = None,
    state: State | None = None,
) -> Found:
    """Train every point on every replica as one batch and choose a point by its mean validation loss.

    Args:
        problem: the graph and the inputs.
        candidates: the points to try.
        replicas: the search seeds.
        options: the backbone and how it is trained.
        coefficients: the filter's coefficients for a number of steps.
        device: as for `fit`.
        progress: as for `fit`.
        state: as for `fit`.
    """
    runs = runs_of(candidates, replicas, coefficients)
    outcome = fit(problem, runs, options, device=device, progress=progress, state=state)
    shape = (len(candidates), len(replicas))
    losses, failed = outcome.validation_loss.reshape(shape), outcome.failed.reshape(shape)
    return Found(
        candidates=tuple(candidates),
        chosen=chosen_point(losses, failed),
        mean_loss=np.where(failed.any(axis=1), np.inf, losses.mean(axis=1)),
        runs=tuple(runs),
        outcome=outcome,
    )


def final(
    problem: Problem,
    point: Point,
    replicas: Sequence[Replica],
    options: Options | None = None,
    *,
    coefficients: Callable[[int], tuple[float, ...]] = unit_filter,
    device: str | torch.device = "auto",
    progress: Progress | None = None,
    state: State | None = None,
) -> tuple[tuple[Run, ...], Outcome]:
    """Train the chosen point on fresh seeds; arguments as for `search`."""
    runs = runs_of([point], replicas, coefficients)
    return tuple(runs), fit(problem, runs, options, device=device, progress=progress, state=state)
