"""Laws of whole numbers: the value is put into one of k bins, the report is one of a few numbers."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphldp.client.laws.finite import Finite
from graphldp.client.randomiser import Floats
from graphldp.errors import DataError, OptionError

__all__ = ["Coded", "Geometric", "WholeNumber", "check_count"]


def check_count(name: str, option: str, value: Any, least: int, most: int = 2**15 - 1) -> None:
    """Refuse anything but a whole number in a range."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        raise OptionError(f"{name}: {option} must be a whole number from {least} to {most}, got {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Coded(Finite):
    """A randomiser whose law depends on the value through its bin 1..k alone, and whose reports are 1, 2, ...

    A subclass states the bins and the table of log probabilities, one row for each bin.
    """

    scaled: ClassVar[bool] = False
    unbiased: ClassVar[bool] = False
    dtype: ClassVar[Any] = np.int16

    @abstractmethod
    def _bin(self, z: Floats) -> NDArray[np.int64]:
        """Return the bin, from 0, of each unit value."""

    @abstractmethod
    def _table(self) -> Floats:
        """Return log P[report j+1 | bin t] as a matrix, t by j."""

    def _log_law(self, y: Floats, z: Floats) -> Floats:
        table = self._table()
        column = np.asarray(np.clip(np.rint(y), 1, table.shape[1]), dtype=np.int64) - 1
        return np.where(np.rint(y) == column + 1, table[self._bin(z), column], -np.inf)

    def _support(self, z: Floats) -> Floats:
        count = self._table().shape[1]
        return np.broadcast_to(np.arange(1.0, count + 1), (*z.shape, count))

    def _moments(self) -> tuple[Floats, Floats]:
        mass = np.exp(self._table())
        places = np.arange(1.0, mass.shape[1] + 1)
        mean = mass @ places
        return mean, np.sum(mass * (places - mean[:, None]) ** 2, axis=1)

    def _mean(self, z: Floats) -> Floats:
        return np.asarray(self._moments()[0][self._bin(z)])

    def _variance(self, z: Floats) -> Floats:
        return np.asarray(self._moments()[1][self._bin(z)])

    def _invert(self, z: Floats, u: Floats) -> Floats:
        mass = np.exp(self._table())
        order = np.argsort(mass, axis=1, kind="stable")
        edges = np.cumsum(np.take_along_axis(mass, order, axis=1), axis=1)
        t, u = np.broadcast_arrays(self._bin(z), u)
        pick = np.zeros(t.shape, dtype=np.intp)
        # The last output takes what is left, so that rounding of the sum leaves no gap.
        for column in range(mass.shape[1] - 1):
            pick += u >= edges[t, column]
        return np.asarray(order[t, pick] + 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeNumber(Coded):
    """A randomiser of one of the whole numbers low..high; any other is refused.

    Attributes:
        word: what such a number is, for messages.
    """

    word: ClassVar[str] = "number"

    def __post_init__(self) -> None:
        Coded.__post_init__(self)
        if self.low != int(self.low) or self.high != int(self.high):
            raise OptionError(
                f"{self.name}: low and high must be whole {self.word}s, got low {self.low} and high {self.high}"
            )

    @property
    def values(self) -> int:
        """How many numbers there are."""
        return int(self.high - self.low) + 1

    def _unit(self, x: ArrayLike) -> Floats:
        numbers = np.asarray(x)
        if not np.isin(numbers, np.arange(self.low, self.high + 1)).all():
            raise DataError(f"a {self.word} lies outside {self.low:.0f}..{self.high:.0f}; give one of these")
        # The bare form super() does not work in a dataclass with slots, which replaces the class.
        return Coded._unit(self, numbers)

    def _bin(self, z: Floats) -> NDArray[np.int64]:
        return np.rint((z + 1) / 2 * (self.values - 1)).astype(np.int64)

    def _loss_inputs(self) -> Floats:
        return np.linspace(-1.0, 1.0, self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometric(Coded):
    """P[u | t] proportional to r^|u-t| with r = e^(-epsilon/(bins-1)).

    Attributes:
        bins: how many bins the range has, and how many different reports there are.
    """

    bins: int = 10

    def __post_init__(self) -> None:
        Coded.__post_init__(self)
        check_count(self.name, "bins", self.bins, 2, 4096)

    def _table(self) -> Floats:
        place = np.arange(self.bins)
        log = -self.epsilon / (self.bins - 1) * np.abs(place[:, None] - place)
        return np.asarray(log - np.log(np.exp(log).sum(axis=1, keepdims=True)))
