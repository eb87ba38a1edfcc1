"""Anybody's randomiser as a black box: a function (x, epsilon, rng) -> report, audited from its reports alone.

Inputs are given, or are the ends and a grid of a range. A small sample of reports from each finds the pair of inputs
and the event that tell them apart best; a large fresh sample of that pair bounds the loss from below. What is
convicted here has been caught; what is not has only not been caught by this many samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphldp.audit.budget import CONFIDENCE, CONVICTION_ALPHA
from graphldp.audit.empirical import Bound, bound_from, bound_of_counts
from graphldp.audit.reports import Table, flatten, statistics, table
from graphldp.errors import OptionError
from graphldp.randomness import generator

__all__ = ["BlackBox", "BlackBoxOptions", "Finding", "audit_function", "draw", "inputs_of"]

Floats: TypeAlias = NDArray[np.float64]
BlackBox: TypeAlias = Callable[[Any, float, np.random.Generator], Any]

_GRID = 5  # values of a scalar range
_BINS = 24
_PAIRS = 3  # candidates that get a large sample
_FEWEST_HITS = 20  # in an event that is called impossible under the other input


@dataclass(frozen=True, slots=True, kw_only=True)
class BlackBoxOptions:
    """How a black box is audited.

    Attributes:
        samples: reports of each of the two inputs of the final pair.
        search: reports of every input when pairs are looked for.
        low, high, dimensions: the range of the inputs, where none are given.
        inputs: the inputs to try; empty tries the ends and a grid of the range.
        seed: the root of the audit's randomness.
    """

    samples: int = 20_000
    search: int = 2_000
    low: float = -1.0
    high: float = 1.0
    dimensions: int = 1
    inputs: tuple[Any, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("samples", 400), ("search", 100), ("dimensions", 1), ("seed", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise OptionError(f"audit: {name} must be a whole number of at least {least}, got {value!r}")
        if not -math.inf < self.low < self.high < math.inf:
            raise OptionError(f"audit: needs finite low < high, got {self.low} and {self.high}")
        if len(self.inputs) == 1:
            raise OptionError("audit: a loss is between two inputs; give at least two of them, got one")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What the audit found about a function.

    Attributes:
        name: of the function.
        property: what was audited: `privacy`, `unbiased`, `same-law`, `gaussian` or `soft-threshold`.
        claimed: the claim in words.
        keeps: whether nothing speaks against it.
        verdict: the finding in one sentence, with the inputs and the report that show it.
        bound: lower bound on epsilon, for `privacy`.
        first, second: the two inputs that it was found for.
        infinite: whether the event never happened under the second input.
        measured: the number that decided other properties (a bias, an exact delta, a p-value).
    """

    name: str
    property: str
    claimed: str
    keeps: bool
    verdict: str
    bound: Bound | None = None
    first: str = ""
    second: str = ""
    infinite: bool = False
    measured: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the finding as nested JSON-able values."""
        return asdict(self)


def inputs_of(options: BlackBoxOptions) -> list[Any]:
    """Return the inputs to try: those given; else the ends and a grid, for vectors the corners that differ most."""
    if options.inputs:
        return list(options.inputs)
    grid = np.linspace(options.low, options.high, _GRID)
    if options.dimensions == 1:
        return [float(x) for x in grid]
    d = options.dimensions
    high, low = np.full(d, options.high), np.full(d, options.low)
    found = [np.full(d, x) for x in grid]
    for place in (0, d - 1):
        one = low.copy()
        one[place] = options.high
        found.extend([one, options.low + options.high - one])
    found.append(np.where(np.arange(d) % 2 == 0, high, low))
    return found


def draw(function: BlackBox, x: Any, epsilon: float, count: int, rng: np.random.Generator) -> Table:
    """Return `count` reports about one input. The input is copied: a function that changes it cannot hide that."""
    reports = []
    for _ in range(count):
        value = x.copy() if isinstance(x, np.ndarray) else x
        reports.append(flatten(function(value, epsilon, rng)))
    return table(reports)


def audit_function(
    function: BlackBox,
    epsilon: float,
    options: BlackBoxOptions,
    *,
    name: str = "function",
    progress: Callable[[int, int, str], None] | None = None,
) -> Finding:
    """Return whether reports of the function break the claim of epsilon-LDP."""
    if not 0 <= epsilon < math.inf:
        raise OptionError(f"audit: the claimed epsilon must be finite and at least 0, got {epsilon}")
    inputs = inputs_of(options)
    total = len(inputs) + 2 * _PAIRS
    tables: list[Table | None] = []
    error = ""
    for done, x in enumerate(inputs):
        if progress:
            progress(done, total, f"search, input {_text(x)}")
        try:
            tables.append(
                draw(function, x, epsilon, options.search, generator(options.seed, "audit", name, "search", done))
            )
        except Exception as raised:
            error = f"{type(raised).__name__} for input {_text(x)}: {' '.join(str(raised).split())}"
            tables.append(None)
    if error:
        return _raised(name, epsilon, inputs, tables, error)
    pairs = best_pairs([t for t in tables if t is not None])
    best: tuple[float, tuple[int, int], Table, Table, Event] | None = None
    for place, (i, j) in enumerate(pairs):
        if progress:
            progress(len(inputs) + 2 * place, total, f"inputs {_text(inputs[i])} and {_text(inputs[j])}")
        one, two = (
            draw(function, inputs[k], epsilon, options.samples, generator(options.seed, "audit", name, side, place))
            for k, side in ((i, "first"), (j, "second"))
        )
        one, two = same_width(one, two)
        value, event = choose_event(one.take(slice(0, None, 2)), two.take(slice(0, None, 2)))
        if best is None or value > best[0]:
            best = (value, (i, j), one, two, event)
    if best is None:
        raise OptionError("audit: no two inputs to compare")
    _, (i, j), one, two, event = best
    return _judge(name, epsilon, inputs[i], inputs[j], one.take(slice(1, None, 2)), two.take(slice(1, None, 2)), event)


def _judge(name: str, epsilon: float, x: Any, other: Any, one: Table, two: Table, event: Event) -> Finding:
    first, second = (two, one) if event.swapped else (one, two)
    x, other = (other, x) if event.swapped else (x, other)
    hits, misses = event.hits(first), event.hits(second)
    bound = bound_from(np.array([hits]), len(first), np.array([misses]), len(second), event.text())
    keeps = not bound.convicting > epsilon
    infinite = misses == 0 and hits >= _FEWEST_HITS and not keeps
    common, rare = hits / len(first), misses / len(second)
    shares = f"{common:.3g} of the reports of {_text(x)} and {rare:.3g} of those of {_text(other)}"
    if keeps:
        verdict = f"nothing found against epsilon {epsilon:g}: lower bound {bound.value:.4g} ({event.text()}: {shares})"
    else:
        verdict = (
            f"does not keep its claim of epsilon {epsilon:g}: at least {bound.convicting:.4g}; {event.text()}: {shares}"
        )
        if infinite:
            verdict += "; never seen under the second input, as if the loss were infinite"
    return Finding(
        name=name,
        property="privacy",
        claimed=f"epsilon {epsilon:g}",
        keeps=keeps,
        verdict=verdict,
        bound=bound,
        first=_text(x),
        second=_text(other),
        infinite=infinite,
    )


def _raised(name: str, epsilon: float, inputs: Sequence[Any], tables: Sequence[Table | None], error: str) -> Finding:
    fine = [_text(x) for x, t in zip(inputs, tables, strict=True) if t is not None]
    if not fine:
        raise OptionError(f"audit: {name} gives no report for any input: {error}; it must accept (x, epsilon, rng)")
    return Finding(
        name=name,
        property="privacy",
        claimed=f"epsilon {epsilon:g}",
        keeps=False,
        verdict=f"does not keep its claim: it fails with {error}, but reports {fine[0]}: the failure tells them apart",
        first=error.partition(" for input ")[2].partition(":")[0],
        second=fine[0],
        infinite=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Event:
    """A set of reports: a statistic inside [low, high], or a score of likelihood ratios above a threshold."""

    statistic: str
    low: float
    high: float
    swapped: bool = False
    score: _Score | None = None

    def hits(self, reports: Table) -> int:
        values = self.score.of(reports) if self.score is not None else statistics(reports)[self.statistic]
        return int(((values >= self.low) & (values <= self.high)).sum())

    def text(self) -> str:
        if self.low == self.high:
            return f"{self.statistic} = {self.low:.6g}" if self.statistic != "whole report" else "one certain report"
        if math.isinf(self.high):
            return f"{self.statistic} >= {self.low:.6g}"
        if math.isinf(self.low):
            return f"{self.statistic} <= {self.high:.6g}"
        return f"{self.low:.6g} <= {self.statistic} <= {self.high:.6g}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Score:
    """The sum over entries of the log ratio of two histograms: what independent entries say together."""

    edges: tuple[Floats, ...]
    ratios: tuple[Floats, ...]

    def of(self, reports: Table) -> Floats:
        total = np.zeros(len(reports))
        for j, (edges, ratio) in enumerate(zip(self.edges, self.ratios, strict=True)):
            total += ratio[np.searchsorted(edges, np.nan_to_num(reports.rows[:, j], nan=-1e300), side="right")]
        return total


def _events(columns: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Return low and high ends of events over a statistic: single values that repeat, bins, and both tails."""
    pooled = np.concatenate(columns)
    pooled = pooled[~np.isnan(pooled)]
    if not pooled.size:
        return np.empty(0), np.empty(0)
    values, counts = np.unique(pooled, return_counts=True)
    atoms = values[counts >= max(5, len(pooled) // 2000)]
    if len(atoms) > 200:
        atoms = atoms[np.argsort(-counts[counts >= max(5, len(pooled) // 2000)])[:200]]
    edges = np.unique(np.quantile(pooled, np.linspace(0, 1, _BINS + 1)))
    # Bins of equal width see a window that equal shares of the pooled reports would cut in two.
    finite = pooled[np.abs(pooled) < 1e100]
    even = np.linspace(finite.min(), finite.max(), _BINS + 1) if finite.size else np.empty(0)
    low = np.concatenate([atoms, edges[:-1], even[:-1], edges, np.full(len(edges), -np.inf)])
    high = np.concatenate([atoms, np.nextafter(edges[1:], -np.inf), even[1:], np.full(len(edges), np.inf), edges])
    return low, high


def _counts(column: Floats, low: Floats, high: Floats) -> NDArray[np.int64]:
    ordered = np.sort(column[~np.isnan(column)])
    inside = np.searchsorted(ordered, high, side="right") - np.searchsorted(ordered, low, side="left")
    return np.asarray(inside, dtype=np.int64)


def best_pairs(tables: list[Table]) -> list[tuple[int, int]]:
    """Return the pairs of inputs that some event tells apart best, by the bound on the small samples."""
    from scipy.stats import beta

    width = max(t.rows.shape[1] for t in tables)
    every = [statistics(_widen(t, width)) for t in tables]
    best = np.full((len(tables), len(tables)), -np.inf)
    for name in set.intersection(*(set(s) for s in every)):
        columns = [s[name] for s in every]
        low, high = _events(columns)
        if not low.size:
            continue
        hits = np.array([_counts(column, low, high) for column in columns], dtype=np.float64)
        n = np.array([len(column) for column in columns], dtype=np.float64)[:, None]
        alpha = (1 - CONFIDENCE) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            lower = np.log(np.where(hits > 0, beta.ppf(alpha, hits, n - hits + 1), 0.0))
            upper = np.log(np.where(hits < n, beta.ppf(1 - alpha, hits + 1, np.maximum(n - hits, 1)), 1.0))
        for i in range(len(tables)):
            best[i] = np.maximum(best[i], (lower[i][None, :] - upper).max(axis=1))
    best = np.maximum(best, best.T)
    rows, columns_ = np.triu_indices(len(tables), 1)
    order = np.argsort(-best[rows, columns_], kind="stable")
    chosen = [(int(rows[k]), int(columns_[k])) for k in order[:_PAIRS]]
    # What adds up over many entries shows in no single one: the two most different inputs are always among them.
    ends = (0, len(tables) - 1)
    if ends not in chosen:
        chosen[-1:] = [ends]
    return chosen


def choose_event(one: Table, two: Table) -> tuple[float, Event]:
    """Return the event with the largest bound on these reports, and the bound.

    The bound is the one that convicts: it prefers an event that is seen often enough to prove something.
    """
    best: tuple[float, Event] | None = None
    mine, theirs = statistics(one), statistics(two)
    score = _train(one.take(slice(0, None, 2)), two.take(slice(0, None, 2)))
    pool = {name: (mine[name], theirs[name], None) for name in mine if name in theirs}
    scored: dict[str, tuple[Floats, Floats, _Score | None]] = {**pool}
    if score is not None:
        name = "score of all entries"
        scored[name] = (score.of(one.take(slice(1, None, 2))), score.of(two.take(slice(1, None, 2))), score)
    for name, (a, b, maker) in scored.items():
        low, high = _events([a, b])
        if not low.size:
            continue
        for swapped in (False, True):
            first, second = (b, a) if swapped else (a, b)
            values = bound_of_counts(
                _counts(first, low, high), len(first), _counts(second, low, high), len(second), CONVICTION_ALPHA
            )
            k = int(np.argmax(values))
            if best is None or values[k] > best[0]:
                event = Event(statistic=name, low=float(low[k]), high=float(high[k]), swapped=swapped, score=maker)
                best = (float(values[k]), event)
    if best is None:
        raise OptionError("audit: the reports hold no numbers to compare")
    return best


def _train(one: Table, two: Table) -> _Score | None:
    width = one.rows.shape[1]
    if width < 2:
        return None
    edges_of, ratios = [], []
    for j in range(width):
        a, b = (np.nan_to_num(t.rows[:, j], nan=-1e300) for t in (one, two))
        pooled = np.concatenate([a, b])
        values = np.unique(pooled)
        edges = values if len(values) <= _BINS else np.unique(np.quantile(pooled, np.linspace(0, 1, _BINS + 1)))
        bins = len(edges) + 1
        counts = [np.bincount(np.searchsorted(edges, c, side="right"), minlength=bins) + 0.5 for c in (a, b)]
        ratio = np.log(counts[0] / counts[0].sum()) - np.log(counts[1] / counts[1].sum())
        # An empty bin says nothing.
        edges_of.append(edges)
        ratios.append(np.where(counts[0] + counts[1] <= 1.0, 0.0, ratio))
    return _Score(edges=tuple(edges_of), ratios=tuple(ratios))


def same_width(one: Table, two: Table) -> tuple[Table, Table]:
    width = max(one.rows.shape[1], two.rows.shape[1])
    return _widen(one, width), _widen(two, width)


def _widen(reports: Table, width: int) -> Table:
    missing = width - reports.rows.shape[1]
    if missing == 0:
        return reports
    rows = np.pad(reports.rows, ((0, 0), (0, missing)), constant_values=np.nan)
    return Table(rows=rows, lengths=reports.lengths)


def _text(x: Any) -> str:
    if isinstance(x, np.ndarray):
        return "(" + ", ".join(f"{float(v):.6g}" for v in x.reshape(-1)[:12]) + (", ...)" if x.size > 12 else ")")
    if isinstance(x, tuple | list):
        return "(" + ", ".join(_text(v) for v in x) + ")"
    return f"{x:.6g}" if isinstance(x, float) else str(x)
