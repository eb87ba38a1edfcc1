"""Laws with a density: their reports are rounded to a public grid before they leave.

A floating-point number drawn from a density gives its input away through its last bits (Mironov, CCS 2012), so no
such number is sent. What is sent is a whole number of grid steps, inside public bounds; the exact privacy loss is
that of these whole numbers.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphldp.client.randomiser import Floats, Randomiser, check_number
from graphldp.errors import OptionError

__all__ = ["Density", "Window"]

_FINE = 256  # default grid steps per standard deviation: rounding adds a millionth of the variance
_FINEST = 2.0**-10  # no default grid assumes a smaller deviation, in units of half the range


@dataclass(frozen=True, slots=True, kw_only=True)
class Density(Randomiser):
    """A randomiser whose ideal report has a density, symmetric: the law of -y given -z is that of y given z.

    Attributes:
        grid: the spacing of the reports in units of half the range, (high-low)/2. None chooses a power of two that is
            at most 1/256 of the ideal report's standard deviation.
    """

    grid: float | None = None

    finite: ClassVar[bool] = False

    def __post_init__(self) -> None:
        # The bare form super() does not work in a dataclass with slots, which replaces the class.
        Randomiser.__post_init__(self)
        if self.grid is not None:
            object.__setattr__(self, "grid", check_number(self.name, "grid", self.grid))
            if not 0 < self.grid < math.inf:
                raise OptionError(
                    f"{self.name}: grid must be finite and > 0, got {self.grid}; leave it out for a spacing that costs "
                    "no utility"
                )
            if self._reach / self.grid > 2**53:
                raise OptionError(f"{self.name}: grid {self.grid} is finer than float64 can count; leave it out")

    @property
    @abstractmethod
    def _reach(self) -> float:
        """The public bound of a unit report."""

    @abstractmethod
    def _breaks(self, z: Floats) -> Floats:
        """Return the unit reports between which the ideal density is smooth, along a new last axis."""

    @abstractmethod
    def _cdf(self, y: Floats, z: Floats) -> Floats:
        """Return P[ideal unit report <= y] given the unit value z, accurate in its lower tail."""

    @abstractmethod
    def _log_cell(self, left: Floats, right: Floats, z: Floats) -> Floats:
        """Return log P[left < ideal unit report <= right] up to a constant that is the same for every z."""

    def _noise(self) -> float:
        return float(np.sqrt(self._variance(np.zeros(()))))

    def _wanted_step(self) -> float:
        if self.grid is not None:
            return float(self.grid)
        return 2.0 ** math.floor(math.log2(max(self._noise(), _FINEST))) / _FINE

    @property
    def step(self) -> float:
        """The spacing of the unit reports."""
        return self._wanted_step()

    @property
    def steps(self) -> int:
        """The largest whole number of steps that is ever sent, either way."""
        return math.ceil(self._reach / self.step)

    @property
    def outputs(self) -> float:
        """How many different reports there are."""
        return 2.0 * self.steps + 1.0

    def _round(self, y: Floats) -> Floats:
        # In place: a dense report makes this pass over every value.
        step, steps = self.step, self.steps
        y /= step
        np.rint(y, out=y)
        np.clip(y, -steps, steps, out=y)
        y *= step
        return y

    def invert(self, x: ArrayLike, u: ArrayLike) -> NDArray[Any]:
        """Return the report on the grid that the uniform number u in (0, 1) selects for the value x."""
        return self._send(self._round(np.array(self._invert(self._unit(x), np.asarray(u, dtype=np.float64)))))

    def pdf(self, y: ArrayLike, x: ArrayLike) -> Floats:
        """Return the ideal density at y given the value x, before rounding to the grid."""
        return np.exp(self.log_law(y, x))

    def cdf(self, y: ArrayLike, x: ArrayLike) -> Floats:
        """Return the probability that the ideal report, before rounding, is at most y given the value x."""
        unit = (np.asarray(y, dtype=np.float64) - self._shift) / self._scale
        return np.asarray(self._cdf(*np.broadcast_arrays(unit, self._unit(x))))

    def cells(self) -> Floats:
        """Return every report that can be sent, increasing."""
        if self.outputs > 2**24:
            raise OptionError(f"{self.name} has {self.outputs:.0f} reports; choose a coarser grid to list them")
        return np.asarray(self._shift + self._scale * self.step * np.arange(-self.steps, self.steps + 1.0))

    def pmf(self, y: ArrayLike, x: ArrayLike) -> Floats:
        """Return the probability of sending the report on the grid that is nearest to y, given the value x."""
        unit = (np.asarray(y, dtype=np.float64) - self._shift) / self._scale
        left, right = self._cell_of(unit)
        left, right, z = np.broadcast_arrays(left, right, self._unit(x))
        below = np.asarray(self._cdf(right, z) - self._cdf(left, z))
        above = np.asarray(self._cdf(-left, -z) - self._cdf(-right, -z))
        return np.where(left + right < 2 * z, below, above)

    def _cell_of(self, y: Floats) -> tuple[Floats, Floats]:
        k = np.clip(np.rint(y / self.step), -self.steps, self.steps)
        left = np.where(k == -self.steps, -np.inf, (k - 0.5) * self.step)
        right = np.where(k == self.steps, np.inf, (k + 0.5) * self.step)
        return left, right

    def _loss_table(self) -> tuple[Floats, Floats, Floats]:
        """Return unit values, grid points and the log of the points' probabilities, up to a constant of each point.

        Of the grid's cells, those that hold a break of the density of some input, their neighbours, the outermost two
        and those halfway between are examined: between breaks the ratio is monotone, so it is largest at one of them.
        """
        z = self._loss_inputs()
        edges = np.unique(np.clip(self._breaks(z).reshape(-1), -self._reach, self._reach))
        k = np.rint(np.concatenate([edges, (edges[1:] + edges[:-1]) / 2]) / self.step)
        k = np.unique(np.concatenate([k - 1, k, k + 1, [-self.steps, self.steps]]))
        k = k[np.abs(k) <= self.steps]
        left, right = self._cell_of(k * self.step)
        return z, k * self.step, self._log_cell(left[None, :], right[None, :], z[:, None])


@dataclass(frozen=True, slots=True, kw_only=True)
class Window(Density):
    """A density with two levels in the ratio e^epsilon: high on a window around a multiple of the value, low elsewhere.

    It is the mix of a uniform number on the window, with probability 1 - rest, and one on the whole support. A
    subclass states the four numbers that fix the law.
    """

    @property
    @abstractmethod
    def _half_width(self) -> float:
        """Half the width of the window."""

    @property
    @abstractmethod
    def _slope(self) -> float:
        """The window's centre is this times the unit value."""

    @property
    @abstractmethod
    def _rest(self) -> float:
        """The probability of drawing from the whole support instead of from the window."""

    @property
    def _log_rest(self) -> float:
        return math.log(self._rest)

    @property
    @abstractmethod
    def _contrast(self) -> float:
        """1 - rest, accurate where that is small."""

    def _log_law(self, y: Floats, z: Floats) -> Floats:
        centre = self._slope * z
        with np.errstate(divide="ignore"):
            low = self._log_rest - np.log(2 * self._reach)
            high = low + self.epsilon
        level = np.where(np.abs(y - centre) <= self._half_width, high, low)
        return np.where(np.abs(y) <= self._reach * (1 + 1e-15), level, -np.inf)

    def _support(self, z: Floats) -> Floats:
        return np.broadcast_to(np.array([-self._reach, self._reach]), (*z.shape, 2))

    def _breaks(self, z: Floats) -> Floats:
        return np.stack([self._slope * z - self._half_width, self._slope * z + self._half_width], axis=-1)

    def _share(self, y: Floats, z: Floats) -> Floats:
        """Return which part of the window lies below y."""
        y = np.clip(y, -2 * self._reach, 2 * self._reach)
        width = max(2 * self._half_width, np.finfo(np.float64).tiny)
        with np.errstate(over="ignore"):
            return np.clip((y - (self._slope * z - self._half_width)) / width, 0.0, 1.0)

    def _cdf(self, y: Floats, z: Floats) -> Floats:
        inside = np.clip((y + self._reach) / (2 * self._reach), 0.0, 1.0)
        return self._rest * inside + self._contrast * self._share(y, z)

    def _log_cell(self, left: Floats, right: Floats, z: Floats) -> Floats:
        left, right = np.maximum(left, -self._reach), np.minimum(right, self._reach)
        length = np.maximum(right - left, 0.0)
        first, last = self._slope * z - self._half_width, self._slope * z + self._half_width
        width = max(2 * self._half_width, np.finfo(np.float64).tiny)
        # Where the cell lies in the window this is its length, to the last bit, so that the ratio of two cells is.
        shared = np.maximum(np.minimum(right, last) - np.maximum(left, first), 0.0)
        shared = np.where((left < first) & (last <= right), width, shared)
        # An outermost cell that only touches the end of the support is never sent.
        solid = length > 4 * np.spacing(self._reach)
        # Relative to what the thin level alone would give the cell; in logarithms, since budgets go up to 1000.
        with np.errstate(divide="ignore"):
            share = np.log(shared) - np.log(np.where(solid, length, 1.0))
            surplus = np.log(self._contrast) - self._log_rest + np.log(2 * self._reach) - np.log(width)
            log = np.logaddexp(0.0, surplus + share)
        return np.where(solid, log, -np.inf)

    def _mean(self, z: Floats) -> Floats:
        return self._contrast * self._slope * z

    def _variance(self, z: Floats) -> Floats:
        # Between and within the two parts of the mix.
        centre = self._slope * z
        within = self._rest * self._reach**2 / 3 + self._contrast * self._half_width**2 / 3
        return within + self._rest * self._contrast * centre**2

    def _invert(self, z: Floats, u: Floats) -> Floats:
        # The rarer part, drawn from the whole support, takes the small u, which are uniform however small they are.
        rest = max(self._rest, np.finfo(np.float64).tiny)
        whole = (2 * np.minimum(u / rest, 1.0) - 1) * self._reach
        window = self._slope * z + self._half_width * (2 * (u - rest) / self._contrast - 1)
        return np.where(u < rest, whole, window)
