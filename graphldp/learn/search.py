"""The same search for every method: equally many points, the same seeds, chosen by mean validation loss.

Nothing here is ever given a test label: runs hold `split.visible(labels)`, and what is chosen is chosen by validation.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from graphldp.errors import DataError, OptionError
from graphldp.learn.engine import Progress, fit
from graphldp.learn.problem import NO_NODES, Options, Outcome, Problem, Run, no_labels
from graphldp.learn.state import State
from graphldp.learn.tasks.base import Targets
from graphldp.randomness import generator
from graphldp.splits import Split

__all__ = ["Found", "Point", "Replica", "Space", "chosen_point", "final", "points", "runs_of", "search", "unit_filter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One choice of hyper-parameters.

    Attributes:
        learning_rate, weight_decay, dropout: of the training.
        steps: the K of the filter.
        options: whatever else was searched, as (name, value) pairs sorted by name.
    """

    learning_rate: float
    weight_decay: float
    dropout: float
    steps: int
    options: tuple[tuple[str, Any], ...] = ()

    def values(self) -> dict[str, Any]:
        """Return the choice as JSON-able values; `options` is there where something else was searched."""
        out: dict[str, Any] = {name: getattr(self, name) for name in AXES}
        return out | ({"options": dict(self.options)} if self.options else {})


AXES = ("learning_rate", "weight_decay", "dropout", "steps")
MOST = 10**6  # points of a space that are looked at one by one


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """The values that are searched over; the space is their product.

    `options` are further axes as (name, values) pairs, for whoever trains to give them their meaning.
    """

    learning_rate: tuple[float, ...] = (0.01,)
    weight_decay: tuple[float, ...] = (0.0,)
    dropout: tuple[float, ...] = (0.0,)
    steps: tuple[int, ...] = (0,)
    options: tuple[tuple[str, tuple[Any, ...]], ...] = ()

    def __post_init__(self) -> None:
        for name in AXES:
            object.__setattr__(self, name, _distinct(name, getattr(self, name)))
        pairs = ((name, _distinct(name, values)) for name, values in self.options)
        object.__setattr__(self, "options", tuple(sorted(pairs, key=lambda pair: pair[0])))
        names = [name for name, _ in self.options]
        if len({*names, *AXES}) < len(names) + len(AXES):
            raise OptionError(f"each axis of the search space has one name, got {', '.join((*AXES, *names))}")
        if min(self.steps) < 0:
            raise OptionError(f"steps must be >= 0, got {min(self.steps)}")

    @property
    def axes(self) -> tuple[tuple[Any, ...], ...]:
        """The values of each axis: the common ones, then the further ones."""
        return (*(getattr(self, name) for name in AXES), *(values for _, values in self.options))

    @property
    def size(self) -> int:
        """How many points the product has."""
        return math.prod(len(values) for values in self.axes)

    def point(self, index: int) -> Point:
        """Return one point of the product, in the order of `itertools.product`."""
        places = np.unravel_index(index, [len(values) for values in self.axes])
        rate, decay, dropout, steps, *more = (
            values[int(place)] for values, place in zip(self.axes, places, strict=True)
        )
        options = tuple((name, value) for (name, _), value in zip(self.options, more, strict=True))
        return Point(
            learning_rate=float(rate),
            weight_decay=float(decay),
            dropout=float(dropout),
            steps=int(steps),
            options=options,
        )


def _distinct(name: str, values: Sequence[Any]) -> tuple[Any, ...]:
    if not values:
        raise OptionError(f"the search space needs at least one {name}, got none")
    if len({json.dumps(value) for value in values}) != len(values) or (name in AXES and len(set(values)) < len(values)):
        raise OptionError(f"the search space's values of {name} must be distinct, got {list(values)}")
    return tuple(values)


def points(
    space: Space, budget: int, seed: int, settle: Callable[[Point], Point | None] | None = None
) -> tuple[Point, ...]:
    """Return `budget` distinct points of the space, drawn with the seed and in the space's order.

    The draw is balanced: each next point is one whose values have been taken least so far, so that a small budget
    still tries every depth and every rate, and as often as the others. `settle` returns a point without the options
    that mean nothing beside its others, or None for one that cannot be; points that settle as one count as one.
    """
    if budget < 1:
        raise OptionError(f"the search budget must be >= 1 point, got {budget}")
    if space.size > MOST:
        raise OptionError(f"the search space has {space.size} points, more than {MOST}; leave some values out")
    order = generator(seed, "search points").permutation(space.size)
    picked = _balanced(space, order, budget, settle or (lambda point: point))
    if len(picked) < budget:
        raise OptionError(
            f"the search space has {len(picked)} points, fewer than the budget of {budget} that every method gets; "
            "add values or lower the budget"
        )
    return tuple(point for _, point in sorted(picked.items(), key=lambda pair: pair[0]))


def _balanced(
    space: Space, order: NDArray[np.int64], budget: int, settle: Callable[[Point], Point | None]
) -> dict[int, Point]:
    """Return points by index into the space's product: greedily those whose values are the rarest among the taken."""
    sizes = [len(values) for values in space.axes]
    places = np.array(np.unravel_index(order, sizes))
    taken = [np.zeros(size) for size in sizes]
    left = np.ones(len(order), dtype=bool)
    picked: dict[int, Point] = {}
    seen: set[str] = set()
    while len(picked) < budget and left.any():
        # A value's count is weighed by how many values it competes with: all of them stay at their fair share.
        crowd = sum(count[place] * len(count) for count, place in zip(taken, places, strict=True))
        best = int(np.argmin(np.where(left, crowd, np.inf)))
        left[best] = False
        point = settle(space.point(int(order[best])))
        if point is None or repr(point) in seen:
            continue
        seen.add(repr(point))
        picked[int(order[best])] = point
        for count, place in zip(taken, places[:, best], strict=True):
            count[place] += 1
    return picked


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
