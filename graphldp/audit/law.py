"""What follows from a scalar law by summing or integrating it, without the mechanism's own closed forms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphldp.client import Randomiser

__all__ = ["Moments", "Nodes", "cdf", "grid_inputs", "moments", "nodes", "outputs"]

Floats: TypeAlias = NDArray[np.float64]

_PIECES = 2048  # parts of each smooth segment of a density
_REACH = 40.0  # standard deviations after which an unbounded density ends; the mass beyond is below 1e-20
# Gauss-Legendre with 4 nodes on [-1, 1]: exact for polynomials up to degree 7.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(4)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Nodes:
    """A law for one input as points with masses: the outputs themselves, or quadrature nodes.

    Attributes:
        y: reports, on the report's own scale.
        mass: their probabilities; they add up to 1 if the law is one.
        edges: ends of the parts over which a density was integrated; empty for finite laws.
        below: probability of a report below each edge.
    """

    y: Floats
    mass: Floats
    edges: Floats
    below: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Mass, mean and variance of a report, and the mean and variance of what the server makes of it."""

    mass: float
    mean: float
    variance: float
    estimate_mean: float
    estimate_variance: float


def grid_inputs(base: Randomiser, count: int = 41) -> Floats:
    """Return inputs that cover the range: evenly spaced with both ends, and uneven ones between them."""
    even = np.linspace(base.low, base.high, count)
    uneven = base.low + (base.high - base.low) * np.modf(np.arange(1, 8) * 0.6180339887498949)[0]
    return np.unique(np.concatenate([even, uneven]))


def outputs(base: Randomiser, inputs: Floats) -> Floats:
    """Return outputs over which a loss is maximised.

    All of them for finite laws. For densities: a dense grid of the support, and what the shipped sampler sends for a
    ladder of uniform numbers at every input, so that a window narrower than the grid is hit as well.
    """
    if base.finite:
        return np.unique(base.support(inputs))
    ends = base.support(inputs)
    low, high = _finite_ends(base, inputs, ends)
    ladder = np.concatenate([np.geomspace(1e-9, 0.2, 12), np.linspace(0.25, 0.75, 9), 1 - np.geomspace(1e-9, 0.2, 12)])
    drawn = np.asarray(base.invert(inputs[:, None], ladder[None, :]), dtype=np.float64).reshape(-1)
    return np.unique(np.concatenate([np.linspace(low, high, 4001), drawn]))


def nodes(base: Randomiser, x: float) -> Nodes:
    """Return the law of one input as points with masses."""
    if base.finite:
        y = np.unique(base.support(np.array(x)))
        return Nodes(y=y, mass=base.pmf(y, x), edges=np.empty(0), below=np.empty(0))
    at = np.array(x, dtype=np.float64)
    low, high = _finite_ends(base, at, base.support(at))
    z = base._unit(at)
    inner = base._shift + base._scale * base._breaks(z).reshape(-1)
    corners = np.unique(np.clip(np.concatenate([[low, high], inner]), low, high))
    corners = corners[np.concatenate([[True], np.diff(corners) > 0])]
    parts = [np.linspace(a, b, _PIECES + 1)[:-1] for a, b in zip(corners[:-1], corners[1:], strict=True)]
    edges = np.concatenate([*parts, corners[-1:]])
    half = np.diff(edges)[:, None] / 2
    y = (edges[:-1, None] + half) + half * _NODES[None, :]
    mass = base.pdf(y, x) * half * _WEIGHTS[None, :]
    below = np.concatenate([[0.0], np.cumsum(mass.sum(axis=1))])
    return Nodes(y=y.reshape(-1), mass=mass.reshape(-1), edges=edges, below=below)


def cdf(law: Nodes, y: Floats) -> Floats:
    """Return the probability of a report of at most y, for a density's nodes."""
    return np.interp(y, law.edges, law.below)


def moments(base: Randomiser, x: float) -> Moments:
    """Return the moments of the law for one input by summation, not from the mechanism's formulas."""
    law = nodes(base, x)
    total = float(law.mass.sum())
    mean = float((law.mass * law.y).sum())
    guess = base.estimate(law.y)
    estimate_mean = float((law.mass * guess).sum())
    return Moments(
        mass=total,
        mean=mean,
        variance=float((law.mass * (law.y - mean) ** 2).sum()),
        estimate_mean=estimate_mean,
        estimate_variance=float((law.mass * (guess - estimate_mean) ** 2).sum()),
    )


def _finite_ends(base: Randomiser, inputs: Floats, ends: Floats) -> tuple[float, float]:
    """Return the hull of the supports; an unbounded one is cut where hardly any mass is left."""
    low, high = float(np.min(ends)), float(np.max(ends))
    if np.isfinite(low) and np.isfinite(high):
        return low, high
    reach = _REACH * np.sqrt(base.variance(inputs))
    mean = base.mean(inputs)
    return float(np.min(mean - reach)), float(np.max(mean + reach))
