"""Anybody's randomiser as a black box: a function (x, epsilon, rng) -> report, audited from its reports alone.

Inputs are given, or are the ends and the middle of a range and ordinary values between. A small sample of reports from
each finds the pair of inputs and the event that tell them apart best; a large fresh sample of that pair bounds the loss
from below. Beside it every call is watched for a report that holds its own input. What is convicted here has been
caught; what is not has only not been caught by this many samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphldp.audit.budget import CONFIDENCE, CONVICTION_ALPHA, FALSE_ALARMS, TABLE_ROWS, check_samples
from graphldp.audit.empirical import Bound, bound_of_counts
from graphldp.audit.reports import (
    Raised,
    ReportNumber,
    Table,
    bit_measures,
    flatten,
    measures,
    pair_measures,
    read,
    table,
    widen,
)
from graphldp.audit.wager import loss_shown, pair_counts
from graphldp.errors import OptionError
from graphldp.progress import Progress
from graphldp.randomness import generator

__all__ = ["BlackBox", "BlackBoxOptions", "Finding", "audit_function", "choose_event", "draw", "inputs_of"]

Floats: TypeAlias = NDArray[np.float64]
BlackBox: TypeAlias = Callable[[Any, float, np.random.Generator], Any]

_GRID = 5  # values of a scalar range
_ORDINARY = 9  # values between them
_RECORDS = 3  # vectors of such values
_GOLDEN = (math.sqrt(5) - 1) / 2
_BINS = 24
_PAIRS = 3  # candidates that get a sample of their own
_TRAINING = 8  # the large sample is so many times that
_LEAST_TRAINING = 2_000
_BLOCK = 5_000  # reports of an input that are kept at a time
_FEWEST_HITS = 20  # in an event that is called impossible under the other input
_FUNCTIONS = 100  # that may be audited together before one honest one is accused in FALSE_ALARMS of the cases
_QUESTIONS = 3  # asked of each: an event of values, one of bits, and whether a report holds its input
_ALPHA = FALSE_ALARMS / _FUNCTIONS / _QUESTIONS
_PRINTED = (1 - CONFIDENCE) / TABLE_ROWS


@dataclass(frozen=True, slots=True, kw_only=True)
class BlackBoxOptions:
    """How a black box is audited.

    Attributes:
        samples: reports of each of the two inputs of the final pair.
        search: reports of every input when pairs are looked for.
        low, high, dimensions: the range of the inputs, where none are given.
        people: how many people's records one call is given, a row each, where no inputs are given; pairs of calls
            differ in one person's.
        inputs: the inputs to try; empty tries the ends, the middle and ordinary values of the range.
        seed: the root of the audit's randomness.
    """

    samples: int = 40_000
    search: int = 2_000
    low: float = -1.0
    high: float = 1.0
    dimensions: int = 1
    people: int = 1
    inputs: tuple[Any, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("samples", 400), ("search", 100), ("dimensions", 1), ("people", 1), ("seed", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise OptionError(f"audit: {name} must be a whole number of at least {least}, got {value!r}")
        check_samples(self.samples)
        if not -math.inf < self.low < self.high < math.inf:
            raise OptionError(f"audit: needs finite low < high, got {self.low} and {self.high}")
        if len(self.inputs) == 1:
            raise OptionError("audit: a loss is between two inputs; give at least two of them, got one")
        if self.inputs and self.people > 1:
            raise OptionError(
                f"audit: people is for inputs that the audit makes itself, got {self.people} and {len(self.inputs)} "
                "inputs; leave one of the two out"
            )


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
    """Return the inputs to try: those given; else the ends, the middle and ordinary values, the two ends outermost.

    For vectors also corners that differ in one place or in every other, and vectors of ordinary values.
    """
    return [x for group in _groups(options) for x in group]


def _groups(options: BlackBoxOptions) -> list[list[Any]]:
    """Return the inputs in groups, any two of which may be compared."""
    if options.inputs:
        return [list(options.inputs)]
    records = _records(options)
    if options.people == 1:
        return [records]
    rows = [np.atleast_1d(record) for record in records]
    # Who stands beside: one at the low end after, one at an ordinary value before.
    beside = np.full_like(rows[0], options.low), np.full_like(rows[0], _ordinary(options, 1)[0])
    after, before = (np.tile(other, (options.people - 1, 1)) for other in beside)
    return [[np.vstack([row, after]) for row in rows], [np.vstack([before, row]) for row in rows]]


def _records(options: BlackBoxOptions) -> list[Any]:
    low, high, d = options.low, options.high, options.dimensions
    inner = [float(x) for x in np.linspace(low, high, _GRID)[1:-1]]
    if d == 1:
        return list(dict.fromkeys([low, *inner, *_ordinary(options, _ORDINARY), high]))
    corners = [np.where(np.arange(d) == place, high, low) for place in (0, d - 1)]
    corners += [low + high - corner for corner in corners] + [np.where(np.arange(d) % 2 == 0, high, low)]
    values = np.resize(_ordinary(options, 4 * _ORDINARY), _RECORDS * d).reshape(_RECORDS, d)
    found = [np.full(d, low), *(np.full(d, x) for x in inner), *corners, *values, np.full(d, high)]
    return [x for k, x in enumerate(found) if not any((x == other).all() for other in found[:k])]


def _ordinary(options: BlackBoxOptions, count: int) -> list[float]:
    """Return values of no particular kind, spread over the range; 0.123 is the first if it is one of them."""
    width = options.high - options.low
    digits = 3 - math.floor(math.log10(width))
    spread = [round(options.low + width * ((k * _GOLDEN) % 1.0), digits) for k in range(1, count + 1)]
    first = [0.123] if options.low < 0.123 < options.high else []
    return [x for x in (*first, *spread) if options.low < x < options.high][:count]


def draw(function: BlackBox, x: Any, epsilon: float, count: int, rng: np.random.Generator) -> Table:
    """Return `count` reports about one input; an error is a report, too.

    The input is copied: a function that changes it cannot hide that.
    """
    readings = []
    for _ in range(count):
        value = x.copy() if isinstance(x, np.ndarray) else x
        try:
            report = function(value, epsilon, rng)
        except Exception as error:
            report = Raised(type(error).__name__, str(error))
        readings.append(read(report))
    return table(readings)


@dataclass(slots=True, kw_only=True, eq=False)
class _Calls:
    """The calls of one function, and how often a report held its own input, beside another's.

    Attributes:
        holding: units of two reports, of x and of x', by how many of them hold a number that only the own input has
            (row), and how many one that only the other has (column).
        made: how many calls.
    """

    function: BlackBox
    epsilon: float
    seed: int
    name: str
    progress: Progress | None
    total: int
    holding: NDArray[np.int64] = field(default_factory=lambda: np.zeros((3, 3), dtype=np.int64))
    made: int = 0

    def reports(self, x: Any, count: int, *place: Any) -> Table:
        if self.progress:
            self.progress(min(self.made, self.total - 1), self.total, f"input {_text(x)}")
        self.made += count
        return draw(self.function, x, self.epsilon, count, generator(self.seed, "audit", self.name, *place))

    def pair(self, x: Any, other: Any, count: int, *place: Any) -> tuple[Table, Table]:
        one, two = self.reports(x, count, *place, "first"), self.reports(other, count, *place, "second")
        self.watch(x, other, one, two)
        return one, two

    def watch(self, x: Any, other: Any, one: Table, two: Table) -> None:
        """Count who holds what. Where the first quarter shows the other's number by chance, it says nothing."""
        mine, theirs = np.unique(flatten(x)), np.unique(flatten(other))
        only, others = np.setdiff1d(mine, theirs), np.setdiff1d(theirs, mine)
        own = _holds(one, only).astype(int) + _holds(two, others)
        foreign = _holds(two, only).astype(int) + _holds(one, others)
        start = len(own) // 4
        if not foreign[:start].any():
            np.add.at(self.holding, (own[start:], foreign[start:]), 1)


def _holds(reports: Table, numbers: Floats) -> NDArray[np.bool_]:
    """Return which reports hold one of these numbers, in float64 or float32."""
    with np.errstate(over="ignore"):
        sought = np.concatenate([numbers, numbers.astype(np.float32).astype(np.float64)])
    return np.asarray(np.isin(reports.rows, sought[np.isfinite(sought)]).any(axis=1))


def audit_function(
    function: BlackBox,
    epsilon: float,
    options: BlackBoxOptions,
    *,
    name: str = "function",
    progress: Progress | None = None,
) -> Finding:
    """Return whether reports of the function break the claim of epsilon-LDP."""
    if not 0 <= epsilon < math.inf:
        raise OptionError(f"audit: the claimed epsilon must be finite and at least 0, got {epsilon}")
    groups = _groups(options)
    training = min(options.samples, max(_LEAST_TRAINING, options.samples // _TRAINING))
    total = sum(map(len, groups)) * options.search + 2 * (_PAIRS * training + options.samples)
    calls = _Calls(function=function, epsilon=epsilon, seed=options.seed, name=name, progress=progress, total=total)
    found = [
        [calls.reports(x, options.search, "search", g, k) for k, x in enumerate(group)]
        for g, group in enumerate(groups)
    ]
    _refuse_silence(name, groups, found)
    for group, reports in zip(groups, found, strict=True):
        for k in range(len(group)):
            calls.watch(group[k - 1], group[k], reports[k - 1], reports[k])
    best: tuple[float, Any, Any, Event] | None = None
    for place, (g, i, j) in enumerate(best_pairs(found)):
        x, other = groups[g][i], groups[g][j]
        one, two = calls.pair(x, other, training, "training", place)
        value, event = choose_event(one, two, measures([one, two]) + pair_measures([one, two]))
        if best is None or value > best[0]:
            best = (value, x, other, event)
    assert best is not None  # there are two inputs
    _, x, other, event = best
    finding = _judge(calls, x, other, options.samples, event, "final")
    if finding.keeps:
        finding = _by_input(calls, finding)
    if finding.keeps:
        finding = _by_bits(calls, groups, found, training, options.samples, finding)
    return finding


def _refuse_silence(name: str, groups: Sequence[Sequence[Any]], found: Sequence[Sequence[Table]]) -> None:
    """Refuse a function that fails whatever it is given: it is no mechanism that could be audited."""
    kinds = [t.words[float(code)] for tables in found for t in tables for code in np.unique(t.codes["kind of report"])]
    if all(kind.startswith("fails with ") for kind in kinds):
        raise OptionError(
            f"audit: {name} gives no report for any input: for {_text(groups[0][0])} it {kinds[0]}; it must accept "
            "(x, epsilon, rng)"
        )


def _bound(pairs: NDArray[np.int64], text: str) -> Bound:
    """Return the bounds that units of two reports show: row hits, column misses."""
    k = len(pairs) - 1
    times, units = np.arange(k + 1), int(pairs.sum())
    return Bound(
        value=loss_shown(pairs, _PRINTED),
        convicting=loss_shown(pairs, _ALPHA),
        hits=int(times @ pairs.sum(axis=1)),
        samples=k * units,
        other=int(times @ pairs.sum(axis=0)),
        other_samples=k * units,
        event=text,
    )


def _judge(calls: _Calls, x: Any, other: Any, samples: int, event: Event, *place: Any) -> Finding:
    """Return the finding about an event that was chosen before these reports were drawn."""
    pairs = np.zeros((2, 2), dtype=np.int64)
    for block in range(0, samples, _BLOCK):
        one, two = calls.pair(x, other, min(_BLOCK, samples - block), *place, block)
        first, second = (two, one) if event.swapped else (one, two)
        pairs += pair_counts(event.there(first), event.there(second))
    x, other = (other, x) if event.swapped else (x, other)
    return _finding(calls, _bound(pairs, event.text()), _text(x), _text(other))


def _finding(calls: _Calls, bound: Bound, x: str, other: str, why: str = "") -> Finding:
    epsilon, keeps = calls.epsilon, not bound.convicting > calls.epsilon
    infinite = bound.other == 0 and bound.hits >= _FEWEST_HITS and not keeps
    common, rare = bound.hits / max(1, bound.samples), bound.other / max(1, bound.other_samples)
    shares = f"{bound.event}: {common:.3g} of the reports of {x} and {rare:.3g} of those of {other}"
    if keeps:
        verdict = (
            f"nothing found against epsilon {epsilon:g} in {calls.made} calls: lower bound {bound.value:.4g} ({shares})"
        )
    else:
        verdict = f"does not keep its claim of epsilon {epsilon:g}: at least {bound.convicting:.4g}; {shares}{why}"
        if infinite:
            verdict += "; never seen under the second input, as if the loss were infinite"
    return Finding(
        name=calls.name,
        property="privacy",
        claimed=f"epsilon {epsilon:g}",
        keeps=keeps,
        verdict=verdict,
        bound=bound,
        first=x,
        second=other,
        infinite=infinite,
    )


def _by_input(calls: _Calls, fine: Finding) -> Finding:
    """Return the finding about reports that hold their own input, over all calls; the other one if there is none."""
    bound = _bound(calls.holding, "a number of the input itself")
    if not bound.convicting > calls.epsilon:
        return fine
    return _finding(calls, bound, "an input", "another")


def _by_bits(
    calls: _Calls,
    groups: Sequence[Sequence[Any]],
    found: Sequence[Sequence[Table]],
    training: int,
    samples: int,
    fine: Finding,
) -> Finding:
    """Return the finding about the last bits of numbers, if a small sample gives reason to look; else the other one."""
    seen = bit_measures([reports for tables in found for reports in tables])
    if not seen:
        return fine
    (g, i, j), *_ = best_pairs(found, seen)
    x, other = groups[g][i], groups[g][j]
    _, event = choose_event(*calls.pair(x, other, training, "bits"), seen)
    first, second = (found[g][j], found[g][i]) if event.swapped else (found[g][i], found[g][j])
    counts = pair_counts(event.there(first), event.there(second))
    (_, misses), (hits, both) = counts.tolist()
    if hits < _FEWEST_HITS or (misses + both and not loss_shown(counts, 0.01) > calls.epsilon):
        return fine  # nothing that more reports could prove
    finding = _judge(calls, x, other, samples, event, "last bits")
    if finding.keeps:
        return fine
    return replace(
        finding, verdict=f"{finding.verdict}. Sums of floating-point numbers keep bits of both: round to a public grid"
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Event:
    """A set of reports: those of which a measure lies inside [low, high].

    Attributes:
        measure: what is looked at.
        low, high: the ends.
        swapped: whether the second input's reports are the ones that are in it more often.
        words: what a number of the measure stands for.
    """

    measure: ReportNumber
    low: float
    high: float
    swapped: bool = False
    words: dict[float, str] = field(default_factory=dict)

    def there(self, reports: Table) -> NDArray[np.bool_]:
        """Return which reports are in the event."""
        values = self.measure.of(reports)
        return np.asarray((values >= self.low) & (values <= self.high))

    def hits(self, reports: Table) -> int:
        """Return how many reports are in the event."""
        return int(self.there(reports).sum())

    def text(self) -> str:
        """Return the event in words."""
        name = self.measure.name
        if self.low == self.high:
            if name == "whole report":
                return "one certain report"
            return f"{name} = {self.words.get(self.low) or f'{self.low:.6g}'}"
        if math.isinf(self.high):
            return f"{name} >= {self.low:.6g}"
        if math.isinf(self.low):
            return f"{name} <= {self.high:.6g}"
        return f"{self.low:.6g} <= {name} <= {self.high:.6g}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Score:
    """The sum over entries of the log ratio of two histograms: what independent entries say together."""

    edges: tuple[Floats, ...]
    ratios: tuple[Floats, ...]

    def of(self, reports: Table) -> Floats:
        total = np.zeros(len(reports))
        rows = widen(reports, len(self.edges)).rows
        for j, (edges, ratio) in enumerate(zip(self.edges, self.ratios, strict=True)):
            total += ratio[np.searchsorted(edges, np.nan_to_num(rows[:, j], nan=-1e300), side="right")]
        return total


def _events(columns: Sequence[Floats], *, ordered: bool = True) -> tuple[Floats, Floats]:
    """Return low and high ends of events over a measure: single values that repeat, bins, and both tails."""
    pooled = np.concatenate(columns)
    pooled = pooled[~np.isnan(pooled)]
    if not pooled.size:
        return np.empty(0), np.empty(0)
    values, counts = np.unique(pooled, return_counts=True)
    atoms = values[counts >= max(5, len(pooled) // 2000)]
    if len(atoms) > 200:
        atoms = atoms[np.argsort(-counts[counts >= max(5, len(pooled) // 2000)])[:200]]
    if not ordered:
        return atoms, atoms
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


def best_pairs(
    groups: Sequence[Sequence[Table]], seen: Sequence[ReportNumber] | None = None
) -> list[tuple[int, int, int]]:
    """Return the pairs that some event tells apart best, by the bound on the small samples: group, and two of it."""
    from scipy.stats import beta

    every = [reports for tables in groups for reports in tables]
    group = np.repeat(np.arange(len(groups)), [len(tables) for tables in groups])
    within = np.concatenate([np.arange(len(tables)) for tables in groups])
    best = np.full((len(every), len(every)), -np.inf)
    n = np.array([len(reports) for reports in every], dtype=np.float64)[:, None]
    alpha = (1 - CONFIDENCE) / 2
    for measure in measures(every) + pair_measures(every) if seen is None else seen:
        columns = [measure.of(reports) for reports in every]
        low, high = _events(columns, ordered=measure.ordered)
        if not low.size:
            continue
        hits = np.array([_counts(column, low, high) for column in columns], dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            lower = np.log(np.where(hits > 0, beta.ppf(alpha, hits, n - hits + 1), 0.0))
            upper = np.log(np.where(hits < n, beta.ppf(1 - alpha, hits + 1, np.maximum(n - hits, 1)), 1.0))
        for i in range(len(every)):
            best[i] = np.maximum(best[i], (lower[i][None, :] - upper).max(axis=1))
    best = np.maximum(best, best.T)
    best[group[:, None] != group] = -np.inf
    rows, columns_ = np.triu_indices(len(every), 1)
    order = np.argsort(-best[rows, columns_], kind="stable")
    order = order[group[rows[order]] == group[columns_[order]]][:_PAIRS]
    chosen = [(int(group[rows[k]]), int(within[rows[k]]), int(within[columns_[k]])) for k in order]
    # What adds up over many entries shows in no single one: the two most different inputs are always among them.
    ends = (0, 0, len(groups[0]) - 1)
    if ends not in chosen and seen is None:
        chosen[-1:] = [ends]
    return chosen


def choose_event(one: Table, two: Table, seen: Sequence[ReportNumber] | None = None) -> tuple[float, Event]:
    """Return the event with the largest bound on these reports, and the bound.

    The bound is the one that convicts: it prefers an event that is seen often enough to prove something. Without
    measures it looks at each coordinate and the report as a whole.
    """
    best: tuple[float, Event] | None = None
    width = max(one.rows.shape[1], two.rows.shape[1])
    one, two = widen(one, width), widen(two, width)
    words = {**two.words, **one.words}
    looked = [(m, m.of(one), m.of(two)) for m in (measures([one, two]) if seen is None else seen)]
    score = _train(one.take(slice(0, None, 2)), two.take(slice(0, None, 2)))
    if score is not None:
        fresh = slice(1, None, 2)
        measure = ReportNumber(name="score of all entries", of=score.of)
        looked.append((measure, score.of(one.take(fresh)), score.of(two.take(fresh))))
    for measure, a, b in looked:
        low, high = _events([a, b], ordered=measure.ordered)
        if not low.size:
            continue
        # Of two events that say as much, an error is the one to be told of.
        failing = 1e-9 * np.array([words.get(float(x), "").startswith("fails with ") for x in low])
        for swapped in (False, True):
            first, second = (b, a) if swapped else (a, b)
            values = bound_of_counts(
                _counts(first, low, high), len(first), _counts(second, low, high), len(second), CONVICTION_ALPHA
            )
            values = values + failing
            k = int(np.argmax(values))
            if best is None or values[k] > best[0]:
                best = (
                    float(values[k]),
                    Event(measure=measure, low=float(low[k]), high=float(high[k]), swapped=swapped, words=words),
                )
    assert best is not None  # every report has a kind
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


def _text(x: Any) -> str:
    if isinstance(x, np.ndarray):
        return "(" + ", ".join(f"{float(v):.6g}" for v in x.reshape(-1)[:12]) + (", ...)" if x.size > 12 else ")")
    if isinstance(x, tuple | list):
        return "(" + ", ".join(_text(v) for v in x) + ")"
    return f"{x:.6g}" if isinstance(x, float) else str(x)
