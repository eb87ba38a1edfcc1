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
from graphldp.audit.empirical import Bound, bound_from
from graphldp.audit.exact import Loss, short, vector, worst
from graphldp.audit.fit import Fit, Power, fit_counts
from graphldp.audit.quantiles import map_distance
from graphldp.audit.reports import Table
from graphldp.client import Reports, mechanism, protocol
from graphldp.errors import OptionError
from graphldp.randomness import generator

__all__ = ["WholeFinding", "audit_whole", "channels_of", "whole_law", "whole_problems"]

Floats: TypeAlias = NDArray[np.float64]
Record: TypeAlias = tuple[tuple[float, ...], int]
Report: TypeAlias = tuple[float, ...]  # perturbed level, then (dimension, value) in increasing order
Law: TypeAlias = dict[Report, float]

_DIMENSIONS = 2
_POWER_SAMPLES = 20_000
_WRONG_BUDGET = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeFinding:
    """What was found about a report as a whole; the fields are those of a row."""

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


def whole_law(device: Any, record: Record) -> Law:
    """Return the log probability of every report about one record, from the protocol's description.

    `ppm`: the level's randomiser, m and the size of a value follow from the true level. `ppm-safe`: the level's
    randomiser is public, m follows from the reported level, values are bare signs.
    """
    features, level = record
    law: Law = {}
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
                report = (float(sent), *(part for j, s in zip(chosen, signs, strict=True) for part in (j, s * size)))
                law[report] = float(np.logaddexp(law.get(report, -math.inf), log))
    return law


def channels_of(device: Any, level: int) -> list[tuple[int, float, int, float, float]]:
    """Return what a user of that level may send: the level, its log probability, m, a value's size, its budget."""
    if device.name not in _CHANNELS:
        raise OptionError(f"audit: no law of the whole report of {device.name!r} is known; known: ppm, ppm-safe")
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
    esw = mechanism("esw", public, 1, device.levels)
    radius = (len(np.unique(esw.support(1))) - device.levels) // 2
    return [
        (sent, log, device.m_of(min(max(sent - radius, 1), device.levels)), 1.0, budget)
        for sent, log in _levels(public, device.levels, level)
    ]


def _levels(budget: float, levels: int, level: int) -> list[tuple[int, float]]:
    esw = mechanism("esw", budget, 1, levels)
    outputs = np.unique(esw.support(level))
    return [(int(y), float(log)) for y, log in zip(outputs, esw.log_law(outputs, level), strict=True)]


# For each level: (reported level, its log probability, m, size of a value, budget of the features).
_CHANNELS: dict[str, Callable[[Any, int], list[tuple[int, float, int, float, float]]]] = {
    "ppm": _printed,
    "ppm-safe": _safe,
}


def audit_whole(subject: Any, nominal: float, samples: int, seed: int) -> WholeFinding:
    """Return the finding about (features, level) pairs: every level, at both ends and in the middle of the range."""
    device = subject.device
    small = protocol(device.name, nominal, _DIMENSIONS, device.low, device.high)
    records = _records(small)
    laws = [whole_law(small, record) for record in records]
    loss = _loss(records, laws)

    def rng(test: str) -> np.random.Generator:
        return generator(seed, "audit", device.name, nominal, device.dimensions, test)

    sampled = _fit(small, small.perturb, records, laws, samples, rng("fit"))
    skipped = _fit(small, _untouched(small), records, laws, _POWER_SAMPLES, rng("power"))
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
        problems=whole_problems(subject, loss, small.privacy_loss(), sampled, shown, bound),
    )


def whole_problems(subject: Any, loss: Loss, stated: float, sampled: Fit, shown: Power, bound: Bound) -> list[str]:
    """Return what is wrong with a report that was looked at as a whole."""
    found = []
    slack = LOSS_TOLERANCE * (1 + subject.epsilon)
    if loss.value > subject.epsilon + slack:
        found.append(f"enumerating all pairs of records gives the loss {loss.value:.6g}")
    if loss.value != stated and not abs(loss.value - stated) <= 1e-6 * (1 + stated):
        found.append(f"the enumerated joint loss is {loss.value:.6g}, the mechanism states {stated:.6g}")
    if not sampled.follows:
        found.append(f"the sampler does not follow the law ({sampled.where}: p {sampled.p:.1e} against {ALPHA:.0e})")
    if not shown.shown:
        found.append("the tests have no power against a wrong sampler: use more samples")
    if bound.convicting > subject.epsilon + slack:
        found.append(f"samples alone show at least {bound.convicting:.6g} ({bound.event})")
    return found


def _records(device: Any) -> list[Record]:
    low, high = device.low, device.high
    corners = [(high, high), (low, low), (high, low), ((low + high) / 2, low + 0.3 * (high - low))]
    return [(corner, level) for level in range(1, device.levels + 1) for corner in corners]


def _loss(records: list[Record], laws: list[Law]) -> Loss:
    reports = sorted(set().union(*laws))
    logs = np.array([[law.get(report, -math.inf) for report in reports] for law in laws])
    value, first, second, output = worst(logs)
    return Loss(
        value=value, first=_pair(records[first]), second=_pair(records[second]), output=_report(reports[output])
    )


def _fit(
    device: Any,
    sampler: Callable[..., Reports],
    records: list[Record],
    laws: list[Law],
    samples: int,
    rng: np.random.Generator,
) -> Fit:
    """Test how often every whole report occurs, for every record."""
    found, share = Fit(), max(2000, samples // 6)
    for record, law in zip(records, laws, strict=True):
        features = np.tile(np.array(record[0]), (share, 1))
        keys = _keys(sampler(features, rng, level=np.full(share, record[1])))
        places = {_rounded(report): i for i, report in enumerate(law)}
        counts = np.bincount([places.get(key, len(law)) for key in keys], minlength=len(law) + 1)
        one = fit_counts(counts, np.append(np.exp(list(law.values())), 0.0), ordered=False, where=_pair(record))
        if one.p < found.p:
            found = one
    tests = len(records)
    return Fit(cells=min(1.0, found.cells * tests), chi_square=min(1.0, found.chi_square * tests), where=found.where)


def _keys(reports: Reports) -> list[Report]:
    index, value, level = np.asarray(reports.index), np.asarray(reports.value), np.asarray(reports.level)
    keys = []
    for places, values, sent in zip(index.tolist(), value.tolist(), level.tolist(), strict=True):
        parts = [part for j, v in zip(places, values, strict=True) if j >= 0 for part in (j, v)]
        keys.append(_rounded((float(sent), *parts)))
    return keys


def _rounded(report: Report) -> Report:
    return tuple(float(f"{part:.5g}") for part in report)


def _untouched(device: Any) -> Callable[..., Reports]:
    """Return the sampler with the last coordinate's sign left as the value's own."""

    def broken(features: Floats, rng: np.random.Generator, level: NDArray[np.int64]) -> Reports:
        reports = device.perturb(features, rng, level=level)
        middle = (device.low + device.high) / 2
        own = np.where(features[:, -1:] >= middle, 1.0, -1.0)
        value = np.where(reports.index == device.dimensions - 1, own * np.abs(reports.value), reports.value)
        return Reports(index=reports.index, value=value.astype(reports.value.dtype), level=reports.level)

    return broken


def _wrong_budget_shows(device: Any) -> bool:
    """Return whether 1.5 times the budget is noticed in both randomisers that the protocol is made of."""
    level = device.gamma * device.epsilon
    signs = (1 - device.gamma) * device.epsilon / device.m_of(1)
    pairs = (
        (mechanism(name, budget, *ends), mechanism(name, budget * _WRONG_BUDGET, *ends))
        for name, budget, ends in (("esw", level, (1, device.levels)), ("mb", signs, (-1, 1)))
    )
    noticed: list[bool] = []
    for right, wrong in pairs:
        same_outputs = len(np.unique(right.support(1))) == len(np.unique(wrong.support(1)))
        noticed.append(not same_outputs or map_distance(right, wrong) > 1.0)
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
