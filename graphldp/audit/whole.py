"""A report that can only be looked at as a whole: a perturbed privacy level decides about everything else in it.

The law is written out here from the protocol, in two dimensions and for all levels: every report is a perturbed level,
a set of dimensions, and a signed number for each of them. A record is a pair of features and level.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphldp.audit.blackbox import choose_event
from graphldp.audit.budget import ALPHA, LOSS_TOLERANCE
from graphldp.audit.conduct import WholeProbe
from graphldp.audit.empirical import Bound, bound_from
from graphldp.audit.exact import Loss, short, vector, worst
from graphldp.audit.fit import WRONG_BUDGET, Fit, Power, either_way, fit_counts, scaled
from graphldp.audit.quantiles import map_differs
from graphldp.audit.reports import Table
from graphldp.audit.subject import AuditSetting
from graphldp.client import Randomiser, Reports, mechanism, protocol
from graphldp.randomness import generator
from graphldp.registry import Registry

__all__ = [
    "Case",
    "WholeFinding",
    "audit_whole",
    "centre_of",
    "channels_of",
    "level_case",
    "whole_law",
    "whole_problems",
]

Floats: TypeAlias = NDArray[np.float64]
Record: TypeAlias = tuple[tuple[float, ...], int]
Report: TypeAlias = tuple[float, ...]  # perturbed level, then (dimension, value) in increasing order
Law: TypeAlias = dict[Report, float]

_DIMENSIONS = 2
_POWER_SAMPLES = 20_000
_SAME = 3e-7  # relative: what is sent may be a float32
_ABSENT = 1e30  # stands for a dimension that is not reported


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """A small instance of a device, of which every report about every record is written out.

    Attributes:
        device: the instance.
        records: what people have, in words.
        outputs: what they may send, in words.
        features: what the device is given, records x dimensions.
        logs: the log probability of every output, records x outputs; `laws` are the probabilities.
        place: the number of the output that each report is; as many as there are outputs for none of them.
        perturb: the shipped sampler, for features and the numbers of their records.
        sparse: whether it takes CSR features.
        beside: a number of 31 bits that is sent beside and drawn evenly whatever a person has; or None.
    """

    device: Any
    records: list[str]
    outputs: list[str]
    features: Floats
    logs: Floats
    place: Callable[[Reports], NDArray[np.int64]]
    perturb: Callable[[Any, NDArray[np.int64], Any], Reports]
    sparse: bool
    beside: Callable[[Reports], NDArray[np.int64]] | None = None

    @property
    def laws(self) -> Floats:
        """The probability of every output, records x outputs."""
        return np.asarray(np.exp(self.logs))

    @property
    def loss(self) -> Loss:
        """The largest log ratio over all pairs of records and all outputs."""
        value, first, second, output = worst(self.logs)
        return Loss(value=value, first=self.records[first], second=self.records[second], output=self.outputs[output])

    def probe(self, label: str = "") -> WholeProbe:
        """Return the instance for tests of its sampler's calls."""
        return WholeProbe(
            self.features, self.laws, self.place, self.perturb, sparse=self.sparse, beside=self.beside, label=label
        )

    def fit(
        self,
        samples: int,
        rng: np.random.Generator,
        change: Callable[[NDArray[np.int64], Reports], Reports] | None = None,
    ) -> Fit:
        """Test how often every output occurs, for every record; `change` breaks the sampler first."""
        found, share = Fit(), max(2000, samples // 6)
        for number, law in enumerate(self.laws):
            ids = np.full(share, number)
            reports = self.perturb(self.features[ids], ids, rng)
            places = self.place(reports if change is None else change(ids, reports))
            counts = np.bincount(places, minlength=len(law) + 1)
            one = fit_counts(counts, np.append(law, 0.0), ordered=False, where=self.records[number])
            if one.p < found.p:
                found = one
        tests = len(self.laws)
        return Fit(
            cells=min(1.0, found.cells * tests), chi_square=min(1.0, found.chi_square * tests), where=found.where
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeFinding:
    """What was found about a report as a whole; the fields are those of a row.

    `laws_of` are the randomisers that the budget goes to, with a factor on it.
    """

    bound: Bound
    fit: Fit
    power: Power
    enumerated: float
    stated: float
    worst: Loss
    variance_worst: float
    variance_mean: float
    bias: float
    problems: list[str]
    case: Case
    laws_of: tuple[Callable[[float], Randomiser], ...]


def whole_law(device: Any, record: Record) -> Law:
    """Return the log probability of every report about one record, from the protocol's description.

    `ppm`: the level's randomiser, m and the size of a value follow from the true level. `ppm-safe`: the level's
    randomiser is public, m follows from the reported level, values are bare signs.
    """
    features, level = record
    law: Law = {}
    centre = centre_of(device)
    for sent, log_level, m, size, budget in channels_of(device, level):
        lean = math.tanh(budget / m / 2)
        sets = list(itertools.combinations(range(device.dimensions), m))
        for chosen in sets:
            for signs in itertools.product((-1.0, 1.0), repeat=m):
                log = log_level - math.log(len(sets))
                for j, sign in zip(chosen, signs, strict=True):
                    z = 2 * (features[j] - device.low) / (device.high - device.low) - 1
                    # A convex mix of two logistic numbers, so that nothing cancels.
                    rare = 1 / (1 + math.exp(budget / m))
                    log += math.log(rare + (1 + sign * z) / 2 * lean)
                values = (part for j, s in zip(chosen, signs, strict=True) for part in (j, centre + s * size))
                report = (float(sent), *values)
                law[report] = float(np.logaddexp(law.get(report, -math.inf), log))
    return law


def centre_of(device: Any) -> float:
    """Return the middle between the two values that a report can have: of the range where it has the data's scale."""
    return float((device.low + device.high) / 2) if device.base.scaled else 0.0


def channels_of(device: Any, level: int) -> list[tuple[int, float, int, float, float]]:
    """Return what a user of that level may send: the level, its log probability, m, a value's size, its budget."""
    return _CHANNELS[device.name](device, level)


def _printed(device: Any, level: int) -> list[tuple[int, float, int, float, float]]:
    own = device.epsilon * 2.0 ** (level - 1)
    m = device.m_of(level)
    budget = (1 - device.gamma) * own
    size = device.dimensions / m / math.tanh(budget / m / 2) * (device.high - device.low) / 2
    return [(sent, log, m, size, budget) for sent, log in _levels(device.gamma * own, device.levels, level)]


def _safe(device: Any, level: int) -> list[tuple[int, float, int, float, float]]:
    public = device.gamma * device.epsilon
    budget = (1 - device.gamma) * device.epsilon * 2.0 ** (level - 1)
    wide = len(np.unique(mechanism("esw", public, 1, device.levels).support(1))) if device.levels > 1 else 1
    radius = (wide - device.levels) // 2
    return [
        (sent, log, device.m_of(min(max(sent - radius, 1), device.levels)), 1.0, budget)
        for sent, log in _levels(public, device.levels, level)
    ]


def _levels(budget: float, levels: int, level: int) -> list[tuple[int, float]]:
    if levels == 1:
        return [(1, 0.0)]
    esw = mechanism("esw", budget, 1, levels)
    outputs = np.unique(esw.support(level))
    return [(int(y), float(log)) for y, log in zip(outputs, esw.log_law(outputs, level), strict=True)]


# For each level: (reported level, its log probability, m, size of a value, budget of the features).
_CHANNELS: Registry[Callable[[Any, int], list[tuple[int, float, int, float, float]]]] = Registry(
    "law of a whole report", {"ppm": _printed, "ppm-safe": _safe}
)


def level_case(name: str, nominal: float, setting: AuditSetting) -> Case:
    """Return the case of (features, level) pairs: every level, at both ends and in the middle of the range."""
    options = {key: value for key, value in setting.options.items() if key != "m"}
    small: Any = protocol(name, nominal, _DIMENSIONS, *setting.ends, **options)
    records = _records(small)
    laws = [whole_law(small, record) for record in records]
    reports = sorted(set().union(*laws))
    levels = np.array([level for _, level in records])
    rows = np.array([_row(report, small.dimensions) for report in reports])
    numbers, slack = np.unique(rows), _SAME * max(abs(small.low), abs(small.high))
    # Reports that differ by less than a float32 tells are one output.
    known, first, which = np.unique(_codes(rows, numbers, slack), return_index=True, return_inverse=True)
    logs = np.full((len(records), len(known)), -np.inf)
    for number, law in enumerate(laws):
        for report, column in zip(reports, which, strict=True):
            logs[number, column] = np.logaddexp(logs[number, column], law.get(report, -math.inf))

    def place(sent: Reports) -> NDArray[np.int64]:
        codes = _codes(_matrix(small, sent), numbers, slack)
        nearest = np.minimum(np.searchsorted(known, codes), len(known) - 1)
        return np.where(known[nearest] == codes, nearest, len(known))

    def perturb(features: Any, ids: NDArray[np.int64], source: Any) -> Reports:
        reports: Reports = small.perturb(features, source, level=levels[ids])
        return reports

    return Case(
        device=small,
        records=[_pair(record) for record in records],
        outputs=[_report(reports[place]) for place in first],
        features=np.array([features for features, _ in records]),
        logs=logs,
        place=place,
        perturb=perturb,
        sparse=True,
    )


def audit_whole(subject: Any, nominal: float, setting: AuditSetting, samples: int, seed: int) -> WholeFinding:
    """Return the finding about (features, level) pairs."""
    device = subject.device
    case = level_case(device.name, nominal, setting)
    small, loss = case.device, case.loss

    def rng(test: str) -> np.random.Generator:
        return generator(seed, "audit", device.name, nominal, device.dimensions, test)

    sampled = case.fit(samples, rng("fit"))
    skipped = case.fit(_POWER_SAMPLES, rng("power"), lambda ids, reports: _untouched(case, ids, reports))
    shown = Power(wrong_budget=_wrong_budget_shows(small), untouched_last=skipped.p < ALPHA)
    bound = _empirical(device, samples, rng("empirical"))
    inputs = np.linspace(device.low, device.high, 21)
    variance = np.asarray(device.variance(inputs), dtype=np.float64)
    return WholeFinding(
        bound=bound,
        fit=sampled,
        power=shown,
        enumerated=loss.value,
        stated=small.privacy_loss(),
        worst=loss,
        variance_worst=float(variance.max()),
        variance_mean=float(np.average(variance, weights=np.gradient(inputs))),
        bias=float(np.abs(device.bias(inputs)).max()),
        problems=whole_problems(small.claim.epsilon, loss, small.privacy_loss(), sampled, bound),
        case=case,
        laws_of=tuple(scaled(law) for law in _parts(small)),
    )


def whole_problems(epsilon: float, loss: Loss, stated: float, sampled: Fit, bound: Bound) -> list[str]:
    """Return what is wrong with a report that was looked at as a whole."""
    found = []
    slack = LOSS_TOLERANCE * (1 + epsilon)
    if loss.value > epsilon + slack:
        found.append(f"enumerating all pairs of records gives the loss {loss.value:.6g}, claimed {epsilon:g}")
    if loss.value != stated and not abs(loss.value - stated) <= 1e-6 * (1 + stated):
        found.append(f"the enumerated joint loss is {loss.value:.6g}, the mechanism states {stated:.6g}")
    if not sampled.follows:
        found.append(f"the sampler does not follow the law ({sampled.where}: p {sampled.p:.1e} against {ALPHA:.0e})")
    if bound.convicting > epsilon + slack:
        found.append(f"samples alone show at least {bound.convicting:.6g} ({bound.event})")
    return found


def _records(device: Any) -> list[Record]:
    low, high = device.low, device.high
    corners = [(high, high), (low, low), (high, low), ((low + high) / 2, low + 0.3 * (high - low))]
    return [(corner, level) for level in range(1, device.levels + 1) for corner in corners]


def _row(report: Report, dimensions: int) -> Floats:
    """Return the level, and the value in every dimension."""
    row = np.full(dimensions + 1, _ABSENT)
    row[0] = report[0]
    for k in range(1, len(report), 2):
        row[1 + int(report[k])] = report[k + 1]
    return row


def _matrix(device: Any, reports: Reports) -> Floats:
    """Return what the server sees: the level, and the values in their dimensions, a mark where there is none."""
    rows = np.full((reports.nodes, device.dimensions + 1), _ABSENT)
    rows[:, 0] = np.asarray(reports.level)
    who, where = np.nonzero(np.asarray(reports.index) >= 0)
    rows[who, np.asarray(reports.index)[who, where] + 1] = np.asarray(reports.value)[who, where]
    return rows


def _codes(rows: Floats, known: Floats, slack: float) -> NDArray[np.int64]:
    """Return one number for each row, from which of the known numbers each of its entries is; -1 for an unknown one."""
    names = np.concatenate([[0], np.cumsum(np.diff(known) > slack + _SAME * np.abs(known[1:]))])
    right = np.clip(np.searchsorted(known, rows), 1, len(known) - 1)
    nearest = np.where(np.abs(rows - known[right - 1]) <= np.abs(rows - known[right]), right - 1, right)
    found = np.abs(rows - known[nearest]) <= slack + _SAME * np.abs(known[nearest])
    code = np.zeros(len(rows), dtype=np.int64)
    for column in range(rows.shape[1]):
        code = code * (names[-1] + 1) + names[nearest[:, column]]
    return np.where(found.all(axis=1), code, -1)


def _untouched(case: Case, ids: NDArray[np.int64], reports: Reports) -> Reports:
    """Return the reports with the last coordinate's sign left as the value's own."""
    device = case.device
    middle = (device.low + device.high) / 2
    centre = centre_of(device)
    own = np.where(case.features[ids][:, -1:] >= middle, 1.0, -1.0)
    value = np.asarray(reports.value, dtype=np.float64)
    value = np.where(reports.index == device.dimensions - 1, centre + own * np.abs(value - centre), value)
    return Reports(index=reports.index, value=value.astype(reports.value.dtype), level=reports.level)


def _parts(device: Any) -> list[Randomiser]:
    """Return the randomisers that the protocol is made of: of the level, and of one sign at the lowest level."""
    signs = mechanism("mb", (1 - device.gamma) * device.epsilon / device.m_of(1))
    return [signs, *([mechanism("esw", device.gamma * device.epsilon, 1, device.levels)] if device.levels > 1 else [])]


def _wrong_budget_shows(device: Any) -> bool:
    """Return whether a larger budget is noticed in both randomisers that the protocol is made of."""
    noticed: list[bool] = []
    for right in _parts(device):
        wrong = either_way(scaled(right), WRONG_BUDGET)
        same_outputs = len(np.unique(right.support(1))) == len(np.unique(wrong.support(1)))
        noticed.append(not same_outputs or map_differs(right, wrong))
    return all(noticed)


def _empirical(device: Any, samples: int, rng: np.random.Generator) -> Bound:
    """Return the bound between the lowest level at the one end of the range and the highest at the other."""
    tables = []
    for x, level in ((device.high, 1), (device.low, device.levels)):
        features = np.full((samples, device.dimensions), x)
        tables.append(_table(device, device.perturb(features, rng, level=np.full(samples, level))))
    one, two = tables
    _, event = choose_event(one.take(slice(0, None, 2)), two.take(slice(0, None, 2)))
    one, two = one.take(slice(1, None, 2)), two.take(slice(1, None, 2))
    first, second = (two, one) if event.swapped else (one, two)
    return bound_from(
        np.array([event.hits(first)]), len(first), np.array([event.hits(second)]), len(second), event.text()
    )


def _table(device: Any, reports: Reports) -> Table:
    """Return what the server sees: the level, and the values in their dimensions, 0 where there is none."""
    rows = np.zeros((reports.nodes, device.dimensions + 1))
    rows[:, 0] = np.asarray(reports.level)
    who, where = np.nonzero(np.asarray(reports.index) >= 0)
    rows[who, np.asarray(reports.index)[who, where] + 1] = np.asarray(reports.value)[who, where]
    return Table(rows=rows, lengths=np.full(len(rows), rows.shape[1]))


def _pair(record: Record) -> str:
    return f"features {vector(np.array(record[0]))} at level {record[1]}"


def _report(report: Report) -> str:
    values = ", ".join(f"{short(report[k + 1])} in dimension {report[k]:.0f}" for k in range(1, len(report), 2))
    return f"level {report[0]:.0f}, {values}"
