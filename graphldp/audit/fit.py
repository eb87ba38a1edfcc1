"""Does the shipped sampler follow the law? Tested cell by cell and position by position, with its power shown."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphldp.audit.budget import ALPHA, MIN_EXPECTED, QUANTILE_TOLERANCE, QUANTILES, RARE_TOLERANCE
from graphldp.audit.law import cdf, nodes
from graphldp.client import Randomiser, Reports, VectorMechanism

__all__ = ["Fit", "Power", "Sampler", "fit", "map_distance", "power", "probe_vectors", "untouched_last"]

Floats: TypeAlias = NDArray[np.float64]
Sampler: TypeAlias = Callable[[Floats, np.random.Generator], Reports]

_WRONG_BUDGET = 1.5  # the factor on epsilon that every test of a sampler must notice
_RARE = 2.0**-10  # uniform numbers below this are taken in octaves: each has as many as the next
_OCTAVES = 160  # down to 2^-170, far below e^-100
_PER_OCTAVE = 64
_NEAREST_ONE = 40  # octaves towards 1, where float64 has no finer numbers than 2^-53


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """How well a sampler fits a law. Each p-value is already multiplied by the number of its tests.

    Attributes:
        cells: smallest exact binomial p-value of an output at a position (finite laws).
        chi_square: smallest chi-square p-value of a position (finite laws).
        ks: smallest Kolmogorov-Smirnov p-value of a position (densities).
        indices: smallest p-value of how often a position, or a pair of them, is reported.
        distance: largest distance between the law and what evenly spaced uniform numbers give.
        allowed: what the distance may be for a right sampler.
        where: the position and input of the worst of these.
    """

    cells: float = 1.0
    chi_square: float = 1.0
    ks: float = 1.0
    indices: float = 1.0
    distance: float = 0.0
    allowed: float = QUANTILE_TOLERANCE
    where: str = ""

    @property
    def p(self) -> float:
        """The smallest p-value."""
        return min(self.cells, self.chi_square, self.ks, self.indices)

    @property
    def follows(self) -> bool:
        """Whether nothing speaks against the sampler."""
        return self.p >= ALPHA and self.distance <= self.allowed


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """Whether the same tests reject samplers that are wrong on purpose."""

    wrong_budget: bool
    untouched_last: bool

    @property
    def shown(self) -> bool:
        """Whether both were rejected."""
        return self.wrong_budget and self.untouched_last


def probe_vectors(base: Randomiser, dimensions: int) -> list[Floats]:
    """Return two records with the ends, the middle, other places and values outside of the range.

    The second is the first turned round, so that the last position too has been at both ends.
    """
    low, high = base.low, base.high
    span = high - low
    values = [high, low, (low + high) / 2, low + 0.3 * span, high + span, low - 2 * span, low + 0.83 * span]
    first = np.array([values[i % len(values)] for i in range(dimensions)])
    first[-1] = high if dimensions > 1 else first[-1]
    second = low + high - first if dimensions > 1 else np.array([low])
    return [first, second]


def fit(device: VectorMechanism, sampler: Sampler, samples: int, rng: np.random.Generator) -> Fit:
    """Test the reports of `samples` users with equal records against the law, position by position."""
    found = Fit(distance=map_distance(device.base, device.base))
    for record in probe_vectors(device.base, device.dimensions):
        reports = sampler(np.tile(record, (samples, 1)), rng)
        found = _worse(found, _fit_values(device, reports, record))
        if reports.index is not None:
            found = replace(found, indices=min(found.indices, _fit_indices(device, reports)))
    if device.base.deterministic:
        return found
    tests = 2 * device.dimensions
    return replace(
        found,
        cells=min(1.0, found.cells * tests),
        chi_square=min(1.0, found.chi_square * tests),
        ks=min(1.0, found.ks * tests),
        indices=min(1.0, found.indices * 2),
    )


def power(device: VectorMechanism, sampler: Sampler, samples: int, rng: np.random.Generator) -> Power:
    """Return whether `fit` rejects a sampler with 1.5 times the budget, and one that skips the last coordinate."""
    wrong = replace(device.base, epsilon=device.base.epsilon * _WRONG_BUDGET)
    skipped = fit(device, untouched_last(device, sampler), samples, rng)
    return Power(wrong_budget=map_distance(device.base, wrong) > QUANTILE_TOLERANCE, untouched_last=skipped.p < ALPHA)


def untouched_last(device: VectorMechanism, sampler: Sampler) -> Sampler:
    """Return the sampler with its last coordinate left as it was: the off-by-one that a proof does not see."""
    last = device.dimensions - 1

    def broken(features: Floats, rng: np.random.Generator) -> Reports:
        reports = sampler(features, rng)
        clear = _clear(device.base, features[:, last]).astype(reports.value.dtype)
        value = reports.value.copy()
        if reports.index is None:
            value[:, last] = clear
        else:
            value = np.where(reports.index == last, clear[:, None], value)
        return Reports(index=reports.index, value=value, level=reports.level, meta=reports.meta)

    return broken


def _clear(base: Randomiser, x: Floats) -> Floats:
    """Return the report closest to the value itself."""
    inside = np.clip(x, base.low, base.high)
    if not base.finite:
        return inside
    support = np.unique(base.support(np.array([base.low, base.high])))
    estimates = base.estimate(support)
    return np.asarray(support[np.argmin(np.abs(estimates[None, :] - inside[:, None]), axis=1)])


def _worse(a: Fit, b: Fit) -> Fit:
    return replace(
        a,
        cells=min(a.cells, b.cells),
        chi_square=min(a.chi_square, b.chi_square),
        ks=min(a.ks, b.ks),
        where=a.where if a.p <= b.p and a.where else b.where,
    )


def _fit_values(device: VectorMechanism, reports: Reports, record: Floats) -> Fit:
    found = Fit()
    for position, x in enumerate(record):
        value = reports.value[:, position] if reports.index is None else reports.value[reports.index == position]
        value = np.asarray(value, dtype=np.float64)
        if not value.size:
            continue
        if device.base.finite:
            cells, chi = fit_cells(*_count(device.base, value, float(x)))
            one = Fit(cells=cells, chi_square=chi, where=f"position {position}, input {x:.6g}")
        else:
            one = Fit(ks=_ks(device.base, value, float(x)), where=f"position {position}, input {x:.6g}")
        found = _worse(found, one)
    return found


def _count(base: Randomiser, value: Floats, x: float) -> tuple[NDArray[np.int64], Floats]:
    """Return how often each output occurred, and the law's probabilities; a report outside all outputs is a last one."""
    outputs = np.unique(base.support(np.array(x)))
    tolerance = 1e-6 * (1 + np.abs(outputs).max())
    nearest = (
        np.clip(np.searchsorted(outputs, value), 1, len(outputs) - 1) if len(outputs) > 1 else np.zeros(len(value), int)
    )
    if len(outputs) > 1:
        nearest = np.where(
            np.abs(value - outputs[nearest - 1]) <= np.abs(value - outputs[nearest]), nearest - 1, nearest
        )
    stray = np.abs(value - outputs[nearest]) > tolerance
    counts = np.bincount(nearest[~stray], minlength=len(outputs))
    return np.append(counts, stray.sum()), np.append(base.pmf(outputs, x), 0.0)


def fit_cells(counts: NDArray[np.int64], probabilities: Floats) -> tuple[float, float]:
    """Return the smallest exact binomial p-value of a cell (times their number) and the chi-square p-value."""
    from scipy.stats import binom, chi2

    n = int(counts.sum())
    p = np.clip(probabilities, 0.0, 1.0)
    if (counts[p == 0] > 0).any():
        return 0.0, 0.0
    tail = np.minimum(binom.cdf(counts, n, p), binom.sf(counts - 1, n, p))
    cells = min(1.0, float(2 * tail.min() * len(counts)))
    expected = n * p
    order = np.argsort(expected)
    groups = np.cumsum(expected[order]) // MIN_EXPECTED
    observed = np.bincount(groups.astype(int), counts[order])
    wanted = np.bincount(groups.astype(int), expected[order])
    observed, wanted = observed[wanted > 0], wanted[wanted > 0]
    if len(wanted) > 1 and wanted[-1] < MIN_EXPECTED:
        observed, wanted = _merge_last(observed), _merge_last(wanted)
    if len(wanted) > 1 and wanted[0] < MIN_EXPECTED:
        observed, wanted = _merge_last(observed[::-1])[::-1], _merge_last(wanted[::-1])[::-1]
    if len(wanted) < 2:
        return cells, 1.0
    statistic = float(((observed - wanted) ** 2 / wanted).sum())
    return cells, float(chi2.sf(statistic, len(wanted) - 1))


def _merge_last(values: NDArray[Any]) -> NDArray[Any]:
    return np.append(values[:-2], values[-2] + values[-1])


def _ks(base: Randomiser, value: Floats, x: float) -> float:
    from scipy.stats import kstwobign

    law = nodes(base, x)
    ordered = np.sort(value)
    outside = (ordered < law.edges[0] - _slack(base, x)) | (ordered > law.edges[-1] + _slack(base, x))
    if np.isfinite(base.support(np.array(x))).all() and outside.any():
        return 0.0
    return float(
        kstwobign.sf(_distance(law.below[-1], cdf(law, ordered), _slack(base, x), base, x) * math.sqrt(len(value)))
    )


def _distance(total: float, below: Floats, slack: float, base: Randomiser, x: float) -> float:
    """Return the Kolmogorov-Smirnov distance of sorted samples, less what rounding the reports may add to it."""
    n = len(below)
    upper = np.max(np.arange(1, n + 1) / n - below / total)
    lower = np.max(below / total - np.arange(n) / n)
    return max(0.0, float(max(upper, lower)) - _rounding_mass(base, x, slack))


def _slack(base: Randomiser, x: float) -> float:
    """Return how far rounding may move a report: half a step of the public grid, or of float32."""
    step = float(getattr(base, "grid_step", 0.0) or 0.0)
    reach = np.abs(base.support(np.array(x)))
    largest = float(reach.max()) if np.isfinite(reach).all() else 50 * math.sqrt(float(base.variance(x))) + 1
    return max(step / 2, largest * 2.0**-24 if base.dtype == np.float32 else 0.0)


def _rounding_mass(base: Randomiser, x: float, slack: float) -> float:
    law = nodes(base, x)
    width = np.diff(law.edges)
    densest = float(np.max(np.diff(law.below) / np.where(width > 0, width, np.inf)))
    return min(1.0, densest * slack)


def _fit_indices(device: VectorMechanism, reports: Reports) -> float:
    """Return the smallest p-value of how often each position, and each pair of positions, was reported."""
    from scipy.stats import binom

    index = reports.index
    if index is None or device.base.deterministic:
        return 1.0
    n, d, m = len(index), device.dimensions, index.shape[1]
    if (np.diff(index, axis=1) <= 0).any() or index.min() < 0 or index.max() >= d:
        return 0.0
    counts = np.bincount(index.reshape(-1), minlength=d)
    share = m / d
    tails = [_two_sided(counts, n, share)]
    if 2 <= m <= d and d <= 64:
        pairs = np.zeros((d, d), dtype=np.int64)
        for a, b in itertools.combinations(range(m), 2):
            np.add.at(pairs, (index[:, a], index[:, b]), 1)
        own = pairs[np.triu_indices(d, 1)]
        tails.append(_two_sided(own, n, m * (m - 1) / (d * (d - 1))))
    if m == d:
        return 1.0 if (counts == n).all() else 0.0
    del binom
    return min(1.0, len(tails) * min(tails))


def _two_sided(counts: NDArray[np.int64], n: int, p: float) -> float:
    from scipy.stats import binom

    tail = np.minimum(binom.cdf(counts, n, p), binom.sf(counts - 1, n, p))
    return float(min(1.0, 2 * tail.min() * len(counts)))


def _quantiles() -> tuple[Floats, Floats]:
    """Return uniform numbers and weights that add up to 1: even ones, and octaves towards 0 and 1."""
    top = _RARE
    even = top + (1 - 2 * top) * (np.arange(QUANTILES) + 0.5) / QUANTILES
    points, weights = [even], [np.full(QUANTILES, (1 - 2 * top) / QUANTILES)]
    inner = (np.arange(_PER_OCTAVE) + 0.5) / _PER_OCTAVE
    for octave in range(_OCTAVES):
        upper = top * 2.0**-octave
        points.append(upper / 2 * (1 + inner))
        weights.append(np.full(_PER_OCTAVE, upper / 2 / _PER_OCTAVE))
    for octave in range(_NEAREST_ONE):
        upper = top * 2.0**-octave
        points.append(1 - upper / 2 * (1 + inner))
        weights.append(np.full(_PER_OCTAVE, upper / 2 / _PER_OCTAVE))
    return np.concatenate(points), np.concatenate(weights)


def map_distance(law: Randomiser, sampler: Randomiser) -> float:
    """Return how far the sampler's map from uniform numbers to reports is from the law.

    The map is fed evenly spaced numbers instead of random ones, so there is no noise: what is seen is the sampler's
    own law, up to 8 / 2^18. For finite laws it is the largest error of a cell, where a cell rarer than 2^-10 counts
    with its relative error (scaled so that RARE_TOLERANCE maps to the same limit); for densities it is the largest
    error of the distribution function, less what rounding to the public grid may add.
    """
    if law.deterministic:
        return 0.0
    points, weights = _quantiles()
    inputs = (law.low, (law.low + law.high) / 2, law.low + 0.3 * (law.high - law.low), law.high)
    return max(_map_error(law, np.asarray(sampler.invert(x, points), dtype=np.float64), weights, x) for x in inputs)


def _map_error(law: Randomiser, value: Floats, weights: Floats, x: float) -> float:
    if law.finite:
        outputs = np.unique(law.support(np.array(x)))
        p = law.pmf(outputs, x)
        tolerance = 1e-6 * (1 + np.abs(outputs).max())
        got = np.array([weights[np.abs(value - y) <= tolerance].sum() for y in outputs])
        error = np.abs(got - p)
        rare = (p > 2.0**-150) & (p < _RARE)
        scaled = np.where(rare, error / np.maximum(p, 1e-300) * (QUANTILE_TOLERANCE / RARE_TOLERANCE), error)
        return float(max(scaled.max(), abs(1 - got.sum())))
    table = nodes(law, x)
    slack = _slack(law, x)
    order = np.argsort(value, kind="stable")
    above = np.cumsum(weights[order])
    below = cdf(table, value[order]) / table.below[-1]
    gap = max(float(np.max(above - below)), float(np.max(below - (above - weights[order]))))
    return max(0.0, gap - _rounding_mass(law, x, slack))
