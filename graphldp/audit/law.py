"""What leaves the device, as a table of outcomes and their probabilities, summed up or integrated here.

A real-valued report is a whole number of grid steps; its probability is the ideal density's integral over the cell
that rounds to it, and that integral is computed here by quadrature, not by the mechanism's own closed form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphldp.client import Randomiser
from graphldp.client.laws.density import Window
from graphldp.client.registry import NO_FEATURE

__all__ = ["Moments", "Outcomes", "grid_inputs", "loss_outcomes", "moments", "outcomes"]

Floats: TypeAlias = NDArray[np.float64]

_MOST_ENTRIES = 2**25  # of a table of inputs x outcomes
_LOSS_CELLS = 1000  # evenly spaced cells of a grid, and those around the breaks, when only the loss is wanted
_FEW_INPUTS = 11  # of a density, evenly spaced; plus some between them
_NARROW = 2**20  # spacings of float64: a window of fewer cannot be integrated, and holds what is missing to 1
_TAIL = 40.0  # standard deviations beyond the outermost cell until nothing is left
# Gauss-Legendre with 4 nodes on [-1, 1]: exact for polynomials up to degree 7; a cell is 1/256 deviation wide.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(4)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcomes:
    """A law as a table.

    Attributes:
        inputs: the values it was made for.
        y: the reports, increasing, on their own scale.
        mass: probability of each report, one row for each input.
        log_mass: its logarithm, exact where the probability underflows (finite laws).
    """

    inputs: Floats
    y: Floats
    mass: Floats
    log_mass: Floats

    def place(self, values: Floats) -> NDArray[np.int64]:
        """Return which outcome each report is; len(y) for a report that is none of them."""
        # Reports may be stored as float32; grid steps and symbols are much farther apart than that.
        slack = 1e-6 * np.abs(self.y) + 1e-9
        nearest = np.searchsorted(self.y[:-1] + np.diff(self.y) / 2, values)
        return np.asarray(np.where(np.abs(values - self.y[nearest]) <= slack[nearest], nearest, len(self.y)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Mass, mean and variance of a report, and the mean and variance of what the server makes of it."""

    mass: float
    mean: float
    variance: float
    estimate_mean: float
    estimate_variance: float


def grid_inputs(base: Randomiser, count: int = 41) -> Floats:
    """Return inputs that cover the range: evenly spaced with both ends, and uneven ones between them.

    For laws that look at a level or a code, those that differ among themselves are all there.
    """
    if base.kind in NO_FEATURE:
        return np.arange(base.low, base.high + 1)
    if not base.finite:
        count = min(count, _FEW_INPUTS)
    unit = [np.linspace(-1.0, 1.0, count), 2 * np.modf(np.arange(1, 5) * 0.6180339887498949)[0] - 1]
    if base.finite:
        unit.append(base._loss_inputs())
    return _on_scale(base, np.unique(np.concatenate(unit)))


def _on_scale(base: Randomiser, z: Floats) -> Floats:
    return np.clip(base.low / 2 + base.high / 2 + (base.high / 2 - base.low / 2) * z, base.low, base.high)


def outcomes(base: Randomiser, inputs: Any) -> Outcomes:
    """Return the law's table for these inputs."""
    x = np.atleast_1d(np.asarray(inputs, dtype=np.float64))
    if base.finite:
        y = np.unique(base.support(x))
        with np.errstate(divide="ignore"):
            logs = np.asarray(base.log_law(y[None, :], x[:, None]))
        return Outcomes(inputs=x, y=y, mass=np.exp(logs), log_mass=logs)
    steps, step = int(base.steps), float(base.step)  # type: ignore[attr-defined]
    most = max(1000, _MOST_ENTRIES // (4 * len(x)))
    return _cells(base, x, np.arange(-steps, steps + 1) if 2 * steps + 1 <= most else _some_cells(base, x, step, most))


def loss_outcomes(base: Randomiser) -> Outcomes:
    """Return the law for every value that the mechanism itself takes the worst pair from, and some more.

    Of a grid, the cells around each of these values' breaks, and evenly spaced ones: between breaks the ratio of two
    densities is monotone.
    """
    x = np.unique(np.concatenate([grid_inputs(base), _on_scale(base, base._loss_inputs())]))
    if base.finite:
        return outcomes(base, x)
    return _cells(base, x, _some_cells(base, x, float(base.step), _LOSS_CELLS))  # type: ignore[attr-defined]


def _cells(base: Any, x: Floats, k: NDArray[np.int64]) -> Outcomes:
    mass = np.array([_cell_masses(base, k, value) for value in x])
    with np.errstate(divide="ignore"):
        logs = np.log(mass)
    y = np.asarray(base._shift + base._scale * float(base.step) * k, dtype=np.float64)
    return Outcomes(inputs=x, y=y, mass=mass, log_mass=logs)


def moments(base: Randomiser, x: float) -> Moments:
    """Return the moments of what is sent about one input by summation, not from the mechanism's formulas."""
    law = outcomes(base, x)
    p = law.mass[0]
    total, mean = float(p.sum()), float(p @ law.y)
    guess = np.asarray(base.estimate(law.y))
    estimate_mean = float(p @ guess)
    return Moments(
        mass=total,
        mean=mean,
        variance=float(p @ (law.y - mean) ** 2),
        estimate_mean=estimate_mean,
        estimate_variance=float(p @ (guess - estimate_mean) ** 2),
    )


def _some_cells(base: Any, x: Floats, step: float, most: int) -> NDArray[np.int64]:
    """Return some cells of a grid: those around every break, and evenly spaced ones between."""
    steps = int(base.steps)
    breaks = np.rint(np.clip(base._breaks(base._unit(x)).reshape(-1) / step, -steps, steps)).astype(np.int64)
    around = (breaks[:, None] + np.arange(-2, 3)).reshape(-1)
    even = np.linspace(-steps, steps, most // 2).astype(np.int64)
    every = np.concatenate([around, even, [-steps, steps]])
    return np.unique(np.clip(every, -steps, steps))


def _cell_masses(base: Any, k: NDArray[np.int64], x: float) -> Floats:
    """Return the probability of each grid cell for one input: the ideal density integrated, and its isolated values."""
    step, steps = float(base.step), int(base.steps)
    z = base._unit(np.array(x))
    ends = np.asarray(base._support(z), dtype=np.float64).reshape(-1)
    far = _TAIL * float(np.sqrt(base._variance(z)))
    low, high = (
        float(end) if np.isfinite(end) else side * (steps * step + far)
        for end, side in zip(ends[[0, -1]], (-1, 1), strict=True)
    )
    left = np.where(k == -steps, low, np.clip((k - 0.5) * step, low, high))
    right = np.where(k == steps, high, np.clip((k + 0.5) * step, low, high))
    narrow = _narrow(base, z, low, high)
    if narrow is not None:
        # What the thin level leaves to 1 lies in the cell that holds the window.
        mass = np.maximum(right - left, 0.0) * narrow[1]
        mass[k == int(np.clip(np.rint(narrow[0] / step), -steps, steps))] += 1 - narrow[1] * (high - low)
        return np.asarray(mass)
    mass = _integrate(base, left, right, z)
    corners = np.unique(np.clip(base._breaks(z).reshape(-1), low, high))
    split = [i for c in corners for i in np.flatnonzero((left < c) & (c < right))]
    for i in sorted(set(split)):
        inner = corners[(left[i] < corners) & (corners < right[i])]
        edges = np.concatenate([[left[i]], inner, [right[i]]])
        mass[i] = _integrate(base, edges[:-1], edges[1:], z).sum()
    for i in np.flatnonzero(right - left > 4 * step):  # an outermost cell with a whole tail in it
        edges = np.linspace(left[i], right[i], 2000)
        mass[i] = _integrate(base, edges[:-1], edges[1:], z).sum()
    if hasattr(base, "atoms"):
        places, weights = base.atoms(x)
        cells = np.rint((np.ravel(places) - base._shift) / base._scale / step).astype(np.int64)
        for cell, weight in zip(cells, np.ravel(weights), strict=True):
            mass[k == cell] += weight
    return np.asarray(mass, dtype=np.float64)


def _narrow(base: Any, z: Floats, low: float, high: float) -> tuple[float, float] | None:
    """Return where a window is that float64 hardly tells from a point, and the density elsewhere; None if it is wide.

    Evaluated at its ends, such a window has no width, and a quadrature finds nothing in it.
    """
    if not isinstance(base, Window):
        return None
    left, right = (float(end) for end in np.ravel(base._breaks(z)))
    centre = (left + right) / 2
    if right - left > _NARROW * np.spacing(max(abs(left), abs(right), 1.0)):
        return None
    away = low if centre - low > high - centre else high
    return centre, float(np.exp(base._log_law(np.array(away), z)))


def _integrate(base: Any, left: Floats, right: Floats, z: Floats) -> Floats:
    half = (right - left) / 2
    y = (left + half)[:, None] + half[:, None] * _NODES
    with np.errstate(divide="ignore", over="ignore"):
        density = np.exp(base._log_law(*np.broadcast_arrays(y, z)))
    return np.asarray((density * _WEIGHTS).sum(axis=1) * half)
