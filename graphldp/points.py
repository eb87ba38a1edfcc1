"""The points that a search tries: a number of them that depends on nothing a method has, equal for a table's rows."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphldp.errors import OptionError
from graphldp.randomness import generator

__all__ = ["AXES", "Point", "Space", "grid", "points"]


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
    still tries every depth and every rate, and as often as the others. Where there are further axes, of points that are
    as rare by their values one is taken whose pairs of values on these are the rarest: two axes of two values would
    else be tried in two of their four combinations. `settle` returns a point without the options that mean nothing
    beside its others, or None for one that cannot be; points that settle as one count as one.
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


def grid(space: Space, settle: Callable[[Point], Point | None] | None = None) -> tuple[Point, ...]:
    """Return every point of the space, in its order; `settle` as for `points`."""
    if space.size > MOST:
        raise OptionError(f"the search space has {space.size} points, more than {MOST}; leave some values out")
    found = (space.point(index) for index in range(space.size))
    settled = found if settle is None else map(settle, found)
    return tuple({repr(point): point for point in settled if point is not None}.values())


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
    chosen: list[NDArray[np.int64]] = []
    paired = any(len(values) > 1 for _, values in space.options)
    while len(picked) < budget and left.any():
        # A value's count is weighed by how many values it competes with: all of them stay at their fair share.
        crowd = sum(count[place] * len(count) for count, place in zip(taken, places, strict=True))
        open_crowd = np.where(left, crowd, np.inf)
        best = int(np.argmin(open_crowd))
        if paired:
            tied = np.flatnonzero(open_crowd == open_crowd[best])
            common = len(AXES)
            pairs = _pair_crowd(places[common:, tied], [one[common:] for one in chosen], sizes[common:])
            best = int(tied[np.argmin(pairs)])
        left[best] = False
        point = settle(space.point(int(order[best])))
        if point is None or repr(point) in seen:
            continue
        seen.add(repr(point))
        chosen.append(places[:, best])
        picked[int(order[best])] = point
        for count, place in zip(taken, places[:, best], strict=True):
            count[place] += 1
    return picked


def _pair_crowd(
    places: NDArray[np.int64], chosen: Sequence[NDArray[np.int64]], sizes: Sequence[int]
) -> NDArray[np.float64]:
    """Return how often the pairs of values of points have been taken, weighed by how many pairs there are."""
    out = np.zeros(places.shape[1])
    for one in chosen:
        same = places == one[:, None]
        for a, b in combinations(range(len(sizes)), 2):
            out += (same[a] & same[b]) * float(sizes[a] * sizes[b])
    return out
