"""A yes-or-no fact seen through noise: the law of what is seen where it holds, and where it does not.

Nothing but the ratio of the two matters to a guess, so outcomes of equal ratio are one: a channel is a short list.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphldp.adversary.bounds import check_prior
from graphldp.errors import DataError

__all__ = ["BLIND", "OPEN", "Channel"]

Floats: TypeAlias = NDArray[np.float64]

_MOST = 2_000  # outcomes of either factor of a product; adjacent ones are joined beyond that
_NEVER = 1e-290  # an outcome that is rounding under both


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Channel:
    """The two laws, over outcomes in the order in which they speak for the fact.

    Attributes:
        no: probability of each outcome where the fact does not hold.
        yes: where it does.
    """

    no: Floats
    yes: Floats

    @classmethod
    def of(cls, no: ArrayLike, yes: ArrayLike) -> Channel:
        """Return the channel of two laws over the same outcomes, in any order."""
        one, two = np.asarray(no, dtype=np.float64), np.asarray(yes, dtype=np.float64)
        for law in (one, two):
            if law.shape != one.shape or (law < 0).any() or not math.isclose(law.sum(), 1, abs_tol=1e-6):
                raise DataError(
                    f"a channel needs two laws over the same outcomes, each adding up to 1; got {law.sum():g}"
                )
        kept = np.maximum(one, two) > _NEVER
        one, two = one[kept], two[kept]
        with np.errstate(divide="ignore"):
            ratio = np.round(np.log(two) - np.log(one), 9)
        _, group = np.unique(ratio, return_inverse=True)
        return cls(no=_sums(group, one), yes=_sums(group, two))

    def then(self, other: Channel) -> Channel:
        """Return the channel of two looks at the same fact, independent given it.

        Long laws are first shortened by joining neighbours, which can only take from what they say: below one part in
        a thousand of the advantage.
        """
        one, two = self._short(), other._short()
        return Channel.of(np.outer(one.no, two.no).ravel(), np.outer(one.yes, two.yes).ravel())

    def _short(self) -> Channel:
        if len(self.no) <= _MOST:
            return self
        group = (np.cumsum(self.no + self.yes) / (self.no.sum() + self.yes.sum()) * _MOST).astype(np.int64)
        return Channel(no=_sums(group, self.no), yes=_sums(group, self.yes))

    @staticmethod
    def either(parts: Iterable[tuple[float, Channel]]) -> Channel:
        """Return the channel of which one is drawn, with these probabilities; whoever looks sees which."""
        shares = [(share, channel) for share, channel in parts if share > 0]
        return Channel.of(
            np.concatenate([share * channel.no for share, channel in shares]),
            np.concatenate([share * channel.yes for share, channel in shares]),
        )

    def rates(self) -> tuple[float, float]:
        """Return false and true positives of the guess that says yes where the fact looks likelier than not before."""
        says = self.yes > self.no
        return float(self.no[says].sum()), float(self.yes[says].sum())

    def advantage(self) -> float:
        """Return the largest difference of true and false positives: the distance in total variation of the laws."""
        return float(np.abs(self.yes - self.no).sum() / 2)

    def success(self, prior: float) -> float:
        """Return how often the best guess is right, of people of whom a share `prior` has the fact."""
        yes = check_prior(prior)
        return float(np.maximum(yes * self.yes, (1 - yes) * self.no).sum())

    def posterior(self, prior: float) -> float:
        """Return how sure of the fact the most telling outcome makes who knew only its share before."""
        yes = check_prior(prior)
        joint = yes * self.yes
        return float(np.max(joint / (joint + (1 - yes) * self.no)))

    def loss(self) -> float:
        """Return the largest log ratio between the two laws, either way."""
        with np.errstate(divide="ignore"):
            return float(np.abs(np.log(self.yes) - np.log(self.no)).max())

    def area(self) -> float:
        """Return the area under the curve: how often a person with the fact looks more like it than one without."""
        above = np.concatenate([np.cumsum(self.yes[::-1])[::-1][1:], [0.0]])
        return float(self.no @ (above + self.yes / 2))


def _sums(group: NDArray[np.int64], mass: Floats) -> Floats:
    return np.asarray(np.bincount(group, mass), dtype=np.float64)


BLIND = Channel.of([1.0], [1.0])  # nothing is seen
OPEN = Channel.of([1.0, 0.0], [0.0, 1.0])  # the fact itself is seen
