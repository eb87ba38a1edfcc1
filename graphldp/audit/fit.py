"""Does the shipped sampler follow the law? Tested cell by cell and position by position, with its power shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphldp.audit.budget import ALPHA, MIN_EXPECTED
from graphldp.audit.conduct import Conduct, ValueProbe, edges
from graphldp.audit.law import outcomes
from graphldp.audit.quantiles import map_differs, map_distance
from graphldp.client import Randomiser, Reports
from graphldp.client.laws.density import Density
from graphldp.client.registry import NO_FEATURE
from graphldp.errors import OptionError

__all__ = [
    "FEWEST_TOUCHED",
    "WRONG_BUDGET",
    "Fit",
    "Power",
    "Sampler",
    "either_way",
    "fit",
    "moved",
    "pooled",
    "power",
    "probe_records",
    "reports_needed",
    "resolution",
    "scaled",
    "untouched_last",
]

Floats: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]
Sampler: TypeAlias = Callable[[Any, Any], Reports]

WRONG_BUDGET = 1.5  # the factor on epsilon that every test of a sampler must notice
_SMALLEST_FACTOR = 1.001  # below which no factor is asked for
_LARGEST_FACTOR = 1000.0  # on the budget, up to which it is asked which one is noticed
_NOTICED = (6.4 + 1.3) ** 2  # squared deviations: the two-sided quantile of ALPHA over 40 events, and that of 9 in 10
FEWEST_TOUCHED = 60  # reports that differ from the value, for a test at ALPHA to miss them
_MOST_PAIRS = 64  # dimensions up to which pairs of reported positions are counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """How well a sampler fits a law. Each p-value is already multiplied by the number of its tests.

    Attributes:
        cells: smallest exact binomial p-value of an output at a position (laws with few outputs).
        chi_square: smallest chi-square p-value of a position.
        ks: smallest Kolmogorov-Smirnov p-value of a position (laws on a grid).
        indices: smallest p-value of how often a position, or a pair of them, is reported.
        pooled: smallest p-value of all reports about the ends of the range together, whatever their position.
        calls: smallest p-value of how calls behave (`graphldp.audit.conduct`); 0 for what no chance explains.
        distance: distance between the law and what evenly spaced uniform numbers give, in units of what a right
            sampler may have.
        where: the position and input of the worst of these.
    """

    cells: float = 1.0
    chi_square: float = 1.0
    ks: float = 1.0
    indices: float = 1.0
    pooled: float = 1.0
    calls: float = 1.0
    distance: float = 0.0
    where: str = ""

    @property
    def p(self) -> float:
        """The smallest p-value."""
        return min(self.cells, self.chi_square, self.ks, self.indices, self.pooled, self.calls)

    @property
    def follows(self) -> bool:
        """Whether nothing speaks against the sampler."""
        return self.p >= ALPHA and self.distance <= 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """Whether the same tests reject samplers that are wrong on purpose.

    Attributes:
        wrong_budget: one with 1.5 times the budget.
        untouched_last: one that leaves the last coordinate as it was; None where the law itself leaves nearly every
            value as it is (a level at a large budget), so that samples cannot tell.
    """

    wrong_budget: bool
    untouched_last: bool | None

    @property
    def shown(self) -> bool:
        """Whether both were rejected, so far as they can be told from the law at all."""
        return self.wrong_budget and self.untouched_last is not False


def probe_records(bases: Sequence[Randomiser]) -> list[Floats]:
    """Return two records with the ends, the middle, other places and values outside of the range.

    The second is the first turned round, so that the last position too has been at both ends. A level has no outside.
    """
    low, high = bases[0].low, bases[0].high
    if bases[0].kind in NO_FEATURE:
        return [np.array([level]) for level in np.arange(low, high + 1)]
    span = high - low
    values = [high, low, (low + high) / 2, low + 0.3 * span, high + span, low - 2 * span, low + 0.83 * span]
    first = np.array([values[i % len(values)] for i in range(len(bases))])
    first[-1] = high
    return [first, low + high - first]


def fit(
    bases: Sequence[Randomiser],
    sampler: Sampler,
    samples: int,
    rng: np.random.Generator,
    records: Sequence[Floats] | None = None,
    chances: Floats | None = None,
) -> Fit:
    """Test the reports of `samples` users with equal records against the laws of the positions.

    `chances` are those of the positions to be reported, where they are not alike.
    """
    distance = max(map_distance(base, base) for base in _distinct(bases))
    if bases[0].deterministic:
        return Fit(distance=distance)
    records = probe_records(bases) if records is None else records
    return replace(_fit_reports(bases, sampler, samples, rng, records, chances), distance=distance)


def _fit_reports(
    bases: Sequence[Randomiser],
    sampler: Sampler,
    samples: int,
    rng: np.random.Generator,
    records: Sequence[Floats],
    chances: Floats | None,
) -> Fit:
    """Return the fit of reports alone, without what evenly spaced uniform numbers give."""
    found = Fit()
    indices = []
    for record in records:
        reports = sampler(np.broadcast_to(record, (samples, len(record))), rng)
        found = _worse(found, _fit_values(bases, reports, record))
        if reports.index is not None:
            indices.append(np.asarray(reports.index))
    tests = len(records) * len(bases)
    return replace(
        found,
        cells=min(1.0, found.cells * tests),
        chi_square=min(1.0, found.chi_square * tests),
        ks=min(1.0, found.ks * tests),
        indices=min([1.0, *(len(indices) * _fit_indices(index, len(bases), chances) for index in indices)]),
    )


def power(
    bases: Sequence[Randomiser],
    sampler: Sampler,
    samples: int,
    rng: np.random.Generator,
    chances: Floats | None = None,
) -> Power:
    """Return whether `fit` rejects a sampler with 1.5 times the budget, and one that skips the last coordinate."""
    noticed = [map_differs(base, either_way(scaled(base), WRONG_BUDGET)) for base in _distinct(bases)]
    records = probe_records(bases)
    last = bases[-1]
    if last.kind not in NO_FEATURE:
        # A value between the ends is one that even a large budget does not leave alone.
        records = [np.append(records[0][:-1], last.low + 0.3 * (last.high - last.low))]
    if _touched(last, records) * samples < FEWEST_TOUCHED:
        return Power(wrong_budget=all(noticed), untouched_last=None)
    skipped = _fit_reports(bases, untouched_last(bases, sampler), samples, rng, records, chances)
    return Power(wrong_budget=all(noticed), untouched_last=skipped.p < ALPHA)


def scaled(base: Randomiser) -> Callable[[float], Randomiser]:
    """Return the randomiser with a factor on its budget."""
    return lambda factor: replace(base, epsilon=base.epsilon * factor)


def resolution(law_of: Callable[[float], Randomiser], reports: float) -> float:
    """Return from which factor on the budget this many reports about the ends of the range notice it.

    By the event whose probability moves the most, at a level of ALPHA over all events and with a chance of 9 in 10.
    """

    def noticed(factor: float) -> bool:
        return reports * moved(law_of(1.0), law_of(factor)) ** 2 >= _NOTICED

    low, high = 1.0, _LARGEST_FACTOR
    while not _accepted(law_of, high):  # a mechanism may refuse so large a budget
        high = math.sqrt(high)
    if high < _SMALLEST_FACTOR or not noticed(high):
        return math.inf
    while high / low > 1.0001:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if noticed(middle) else (middle, high)
    return high


def _accepted(law_of: Callable[[float], Randomiser], factor: float) -> bool:
    try:
        law_of(factor)
    except OptionError:
        return factor < _SMALLEST_FACTOR
    return True


def reports_needed(law_of: Callable[[float], Randomiser], factor: float = 2.0) -> float:
    """Return about how many reports notice this factor on the budget."""
    shift = moved(law_of(1.0), either_way(law_of, factor))
    return _NOTICED / shift**2 if shift > 0 else math.inf


def either_way(law_of: Callable[[float], Randomiser], factor: float) -> Randomiser:
    """Return the law with a factor on its budget; where that is refused, with the same factor the other way."""
    try:
        return law_of(factor)
    except OptionError:
        return law_of(1 / factor)


def moved(law: Randomiser, other: Randomiser) -> float:
    """Return by how many deviations of a single report an event's probability moves: the most, over all events."""
    if isinstance(law, Density):
        assert isinstance(other, Density)
        reach = max(law._reach, other._reach)
        y = np.concatenate([np.linspace(-reach, reach, 2001), law._breaks(np.ones(())).reshape(-1)])
        pairs = [tuple(np.asarray(one._cdf(y, np.ones_like(y))) for one in (law, other))]
    else:
        ends = [law.low, law.high]
        tables = [outcomes(one, ends).mass for one in (law, other)]
        if tables[0].shape != tables[1].shape:
            return 1.0
        pairs = [tuple(np.concatenate([table[k], np.cumsum(table[k])]) for table in tables) for k in (0, 1)]
    largest = 0.0
    for one, two in pairs:
        one, two = np.clip(one, 0.0, 1.0), np.clip(two, 0.0, 1.0)
        spread = np.sqrt(np.maximum(one * (1 - one), two * (1 - two)))
        seen = spread > 1e-12
        largest = max(largest, float(np.max(np.abs(one - two)[seen] / spread[seen], initial=0.0)))
    return largest


def pooled(probe: ValueProbe, reports: Sequence[tuple[Reports, NDArray[np.int64]]], rng: np.random.Generator) -> float:
    """Return the p-value of all reports about the ends of the range together, whatever their position."""
    found = Conduct()
    parts = []
    for sent, ids in reports:
        u = probe.uniforms(sent, ids, rng)
        if np.isnan(u).any():
            return 0.0
        parts.append(probe.fold(u, sent, ids).reshape(-1))
    found.count(*edges(np.concatenate(parts)), str)
    return found.p


def _touched(base: Randomiser, records: Sequence[Floats]) -> float:
    """Return the largest probability, over the inputs, that a report is not the one closest to the value."""
    shares = []
    for record in records:
        law = outcomes(base, record[-1:])
        shares.append(1 - float(law.mass[0][law.place(_clear(base, record[-1:]))[0]]))
    return max(shares)


def untouched_last(bases: Sequence[Randomiser], sampler: Sampler) -> Sampler:
    """Return the sampler with its last coordinate left as it was: the off-by-one that a proof does not see."""
    last = len(bases) - 1

    def broken(features: Floats, rng: np.random.Generator) -> Reports:
        reports = sampler(features, rng)
        clear = _clear(bases[last], features[:, last]).astype(reports.value.dtype)
        value = reports.value.copy()
        if reports.index is None:
            value[:, last] = clear
        else:
            value = np.where(reports.index == last, clear[:, None], value)
        return Reports(index=reports.index, value=value, level=reports.level, meta=reports.meta)

    return broken


def _distinct(bases: Sequence[Randomiser]) -> list[Randomiser]:
    """Return the different ones among the positions' randomisers; equal options mean equal laws."""
    return list(dict.fromkeys(bases))


def _clear(base: Randomiser, x: Floats) -> Floats:
    """Return the possible report whose estimate is closest to the value itself."""
    law = outcomes(base, [base.low, base.high])
    reports = law.y[law.mass.max(axis=0) > 0]
    estimates = np.asarray(base.estimate(reports))
    inside, which = np.unique(np.clip(x, base.low, base.high), return_inverse=True)
    nearest = np.array([reports[int(np.argmin(np.abs(estimates - value)))] for value in inside])
    return np.asarray(nearest[which])


def _worse(a: Fit, b: Fit) -> Fit:
    return replace(
        a,
        cells=min(a.cells, b.cells),
        chi_square=min(a.chi_square, b.chi_square),
        ks=min(a.ks, b.ks),
        where=a.where if a.p <= b.p and a.where else b.where,
    )


def _fit_values(bases: Sequence[Randomiser], reports: Reports, record: Floats) -> Fit:
    found = Fit()
    laws: dict[Any, Any] = {}
    for position, (base, x) in enumerate(zip(bases, record, strict=True)):
        value = reports.value[:, position] if reports.index is None else reports.value[reports.index == position]
        if not value.size:
            continue
        # What lies outside of the range counts as its end: said here, not left to the mechanism.
        key = (base, min(max(float(x), base.low), base.high))
        if key not in laws:
            laws[key] = outcomes(base, key[1])
        law = laws[key]
        place = law.place(np.asarray(value, dtype=np.float64))
        counts = np.bincount(place, minlength=len(law.y) + 1)
        where = f"position {position}, input {x:.6g}"
        found = _worse(found, fit_counts(counts, np.append(law.mass[0], 0.0), ordered=not base.finite, where=where))
    return found


def fit_counts(counts: Counts, probabilities: Floats, *, ordered: bool, where: str = "") -> Fit:
    """Return how well counts of outcomes fit their probabilities.

    Few outcomes are tested one by one with the exact binomial; outcomes on a grid by their cumulative counts
    (Kolmogorov-Smirnov, which is conservative for a grid). Both also by chi-square over pooled outcomes.
    """
    from scipy.stats import kstwobign

    n = int(counts.sum())
    p = np.clip(probabilities, 0.0, 1.0)
    impossible = (p == 0) if not ordered else (p < 1e-290)
    if counts[impossible].any():
        return Fit(cells=0.0, chi_square=0.0, ks=0.0, where=where)
    chi = _chi_square(counts, p, ordered=ordered)
    if not ordered:
        return Fit(cells=min(1.0, two_sided(counts, n, p)), chi_square=chi, where=where)
    gap = float(np.max(np.abs(np.cumsum(counts) / n - np.cumsum(p) / p.sum())))
    return Fit(ks=float(kstwobign.sf(gap * math.sqrt(n))), chi_square=chi, where=where)


def _chi_square(counts: Counts, p: Floats, *, ordered: bool) -> float:
    """Return the chi-square p-value of outcomes pooled until each group is expected MIN_EXPECTED times."""
    from scipy.stats import chi2

    expected = counts.sum() * p
    order = np.arange(len(p)) if ordered else np.argsort(expected, kind="stable")
    # A group begins where the expected count before it has grown by another MIN_EXPECTED ...
    before = np.cumsum(expected[order]) - expected[order]
    _, group = np.unique(np.floor(before / MIN_EXPECTED), return_inverse=True)
    observed, wanted = _merge_small(np.bincount(group, counts[order]), np.bincount(group, expected[order]))
    if len(wanted) < 2:
        return 1.0
    return float(chi2.sf(float(((observed - wanted) ** 2 / wanted).sum()), len(wanted) - 1))


def _merge_small(observed: NDArray[Any], wanted: NDArray[Any]) -> tuple[Floats, Floats]:
    """Join each group that is expected too seldom (after one large outcome) with the one before it."""
    have: list[float] = []
    want: list[float] = []
    for count, expected in zip(observed.tolist(), wanted.tolist(), strict=True):
        if want and min(expected, want[-1]) < MIN_EXPECTED:
            have[-1] += count
            want[-1] += expected
        else:
            have.append(count)
            want.append(expected)
    return np.array(have), np.array(want)


def _fit_indices(index: NDArray[np.int32], dimensions: int, chances: Floats | None) -> float:
    """Return the smallest p-value of how often each position, and each pair of positions alike, was reported."""
    n, m = index.shape
    if (np.diff(index, axis=1) <= 0).any() or index.min() < 0 or index.max() >= dimensions:
        return 0.0
    counts = np.bincount(index.reshape(-1), minlength=dimensions)
    each = np.full(dimensions, m / dimensions) if chances is None else chances
    tails = [two_sided(counts, n, each)]
    if chances is None and 2 <= m < dimensions <= _MOST_PAIRS:
        chosen = np.zeros((n, dimensions))
        np.put_along_axis(chosen, index, 1.0, axis=1)
        pairs = (chosen.T @ chosen)[np.triu_indices(dimensions, 1)].astype(np.int64)
        tails.append(two_sided(pairs, n, np.full(len(pairs), m * (m - 1) / (dimensions * (dimensions - 1)))))
    return min(1.0, len(tails) * min(tails))


def two_sided(counts: Counts, n: int, p: Floats) -> float:
    """Return the smallest two-sided exact binomial p-value of the counts, times their number."""
    from scipy.stats import binom

    tail = np.minimum(binom.cdf(counts, n, p), binom.sf(counts - 1, n, p))
    return float(2 * tail.min() * len(counts))
