"""How well guesses came out, in figures that can be compared between a rare attribute and a common one."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphldp.adversary.facts import Fact

__all__ = ["Rate", "Tally", "ratio"]

Floats: TypeAlias = NDArray[np.float64]
Yes: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A share, and its standard error: people are independent, the attributes of one person need not be."""

    value: float
    error: float


@dataclass(slots=True, eq=False)
class Tally:
    """Guesses about many attributes of the same people, counted for each person.

    Attributes:
        nodes: how many people.
    """

    nodes: int
    right: Floats = field(init=False)
    guessed: Floats = field(init=False)
    blind: Floats = field(init=False)
    hits: Floats = field(init=False)
    having: Floats = field(init=False)
    alarms: Floats = field(init=False)
    lacking: Floats = field(init=False)

    def __post_init__(self) -> None:
        for name in ("right", "guessed", "blind", "hits", "having", "alarms", "lacking"):
            setattr(self, name, np.zeros(self.nodes))

    def add(self, fact: Fact, likely: Yes, telling: Yes, people: NDArray[np.int64] | None = None) -> None:
        """Count the guesses about one attribute.

        Args:
            fact: the truth.
            likely: the guess that is right most often: yes where the fact is likelier than not.
            telling: the guess of an attacker to whom both mistakes matter alike: yes where it is likelier than before.
            people: whom the guesses are about; everybody unless given.
        """
        chosen = np.arange(self.nodes) if people is None else people
        truth = fact.holds[chosen]
        self.right[chosen] += likely == truth
        self.blind[chosen] += truth == (fact.prior > 0.5)
        self.guessed[chosen] += 1
        self.hits[chosen] += truth & telling
        self.having[chosen] += truth
        self.alarms[chosen] += ~truth & telling
        self.lacking[chosen] += ~truth

    @property
    def accuracy(self) -> Rate:
        """How often the guess is right."""
        return ratio(self.right, self.guessed)

    @property
    def commonest(self) -> Rate:
        """How often a guess of the commonest value is right, which looks at nothing."""
        return ratio(self.blind, self.guessed)

    @property
    def gain(self) -> Rate:
        """The difference of the two."""
        return ratio(self.right - self.blind, self.guessed)

    @property
    def advantage(self) -> Rate:
        """True minus false positives: 0 for any guess that looks at nothing, 1 for one that knows."""
        one, two = ratio(self.hits, self.having), ratio(self.alarms, self.lacking)
        return Rate(value=one.value - two.value, error=math.hypot(one.error, two.error))

    def together(self, other: Tally) -> Tally:
        """Return both tallies of the same people as one."""
        out = Tally(self.nodes)
        for name in ("right", "guessed", "blind", "hits", "having", "alarms", "lacking"):
            setattr(out, name, getattr(self, name) + getattr(other, name))
        return out


def ratio(parts: Floats, wholes: Floats) -> Rate:
    """Return the share that the people's parts have of their wholes."""
    total = float(wholes.sum())
    if total == 0:
        return Rate(value=math.nan, error=math.nan)
    value = float(parts.sum()) / total
    return Rate(value=value, error=float(np.sqrt(((parts - value * wholes) ** 2).sum())) / total)
