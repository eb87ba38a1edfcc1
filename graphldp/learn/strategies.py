"""How a search spends its budget: everything on a few points, or a little on many and the rest on the best of them.

The budget is counted in epochs of runs: points x seeds x epochs. It depends on nothing that a method has, so that every
row of a table gets the same one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphldp.errors import OptionError

__all__ = ["STRATEGIES", "Rung", "halving", "run_epochs", "survivors"]

STRATEGIES = ("random", "grid", "halving")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """So many points that are trained for so many epochs in all."""

    points: int
    epochs: int


def halving(points: int, epochs: int, *, eta: int, rungs: int) -> tuple[Rung, ...]:
    """Return the rungs of successive halving that cost as much as `points` trained for `epochs`, or a little less.

    The last rung has all epochs, and each one before it an eta-th of the next one's; of a rung's points an eta-th goes
    on from where it stands. So a rung costs what its points train beyond the rung before.
    """
    if points < 1 or epochs < 1:
        raise OptionError(f"a search needs points and epochs >= 1, got {points} and {epochs}")
    if eta < 2:
        raise OptionError(f"eta (of how many points one goes on) must be at least 2, got {eta}")
    if rungs < 1:
        raise OptionError(f"rungs must be at least 1, got {rungs}")
    ends = [max(1, round(epochs / eta ** (rungs - 1 - rung))) for rung in range(rungs)]
    if len(set(ends)) < rungs:
        raise OptionError(
            f"{epochs} epochs are too few for {rungs} rungs with eta {eta}, which would end after {ends}; take fewer"
        )

    def ladder(first: int) -> tuple[Rung, ...]:
        return tuple(Rung(points=max(1, first // eta**rung), epochs=end) for rung, end in enumerate(ends))

    first = points
    while run_epochs(ladder(first + 1)) <= points * epochs:
        first += 1
    return ladder(first)


def run_epochs(rungs: Sequence[Rung]) -> int:
    """Return how many epochs the points of the rungs train in all, on one seed."""
    before = [0, *(rung.epochs for rung in rungs)]
    return sum(rung.points * (rung.epochs - start) for rung, start in zip(rungs, before, strict=False))


def survivors(losses: NDArray[np.float64], count: int) -> list[int]:
    """Return the `count` points ([points, seeds]) with the lowest mean validation loss, in order; of equals the first.

    A point with an infinite loss goes on only where no other is left.
    """
    mean = np.asarray(losses, dtype=np.float64).mean(axis=1)
    order = np.argsort(np.where(np.isfinite(mean), mean, np.inf), kind="stable")
    return sorted(int(index) for index in order[:count])
