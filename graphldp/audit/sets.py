"""Mechanisms for sets, audited by what every report comes down to: the set of features that it supports.

The law is written out here from the protocol, in three dimensions with padding to two items, for every set that a
person can have (the largest is longer than the padding), and without a line of the mechanism's own arithmetic.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphldp.audit.budget import ALPHA
from graphldp.audit.empirical import Bound, bound_of_scores
from graphldp.audit.exact import Loss, vector, worst
from graphldp.audit.fit import Fit, Power, fit_counts
from graphldp.audit.quantiles import map_distance
from graphldp.audit.whole import WholeFinding, whole_problems
from graphldp.client import Reports, protocol
from graphldp.client.olh import buckets_of
from graphldp.randomness import generator

__all__ = ["audit_sets", "support_law"]

Floats: TypeAlias = NDArray[np.float64]

_DIMENSIONS = 3
_PAD = 2
_POWER_SAMPLES = 20_000
_WRONG_BUDGET = 1.5


def support_law(device: Any, record: tuple[int, ...]) -> Floats:
    """Return the probability of every set of supported features (as a bit mask) about a set of features.

    The set is padded, or sampled, to `pad` items; what follows is each mechanism's description in its docstring. The
    hash function of `olh` is sent, so that whoever reads it sees which dummies a report supports as well.
    """
    d, pad = device.dimensions, device.pad
    own = [j for j in range(d) if record[j]]
    # Each place has a dummy of its own; the person's items come first.
    padded = list(itertools.combinations(own, min(pad, len(own))))
    padded = [(*kept, *range(d + len(kept), d + pad)) for kept in padded]
    law = np.zeros(2 ** _items(device))
    for secret in padded:
        law += _LAWS[device.name](device, secret) / len(padded)
    return law


def _subset(device: Any, secret: tuple[int, ...]) -> Floats:
    return _mean(_sets(device, {item}, 1) for item in secret)


def _privset(device: Any, secret: tuple[int, ...]) -> Floats:
    return _sets(device, set(secret), device.overlap)


def _sets(device: Any, secret: set[int], overlap: int) -> Floats:
    """Return the law where a set of m items is e^epsilon times as likely if it meets the secret one."""
    law = np.zeros(2**device.dimensions)
    for chosen in itertools.combinations(range(device.dimensions + device.pad), device.m):
        mask = sum(1 << j for j in chosen if j < device.dimensions)
        law[mask] += 1.0 if len(secret & set(chosen)) >= overlap else math.exp(-device.epsilon)
    return np.asarray(law / math.fsum(law))


def _oue(device: Any, secret: tuple[int, ...]) -> Floats:
    off = 1 / (1 + math.exp(device.epsilon))
    return _mean(_bits(device.dimensions, {item: 0.5}, off) for item in secret)


def _olh(device: Any, secret: tuple[int, ...]) -> Floats:
    g = device.buckets
    kept = 1 / (1 + (g - 1) * math.exp(-device.epsilon))
    # Over the random function any other item shares the bucket that is told with probability 1/g.
    return _mean(_bits(_items(device), {item: kept}, 1 / g) for item in secret)


def _bits(items: int, special: dict[int, float], rest: float) -> Floats:
    law = np.ones(2**items)
    for mask in range(2**items):
        for j in range(items):
            one = special.get(j, rest)
            law[mask] *= one if mask >> j & 1 else 1 - one
    return law


def _items(device: Any) -> int:
    """Return of how many items one sees whether a report supports them."""
    return int(device.domain if device.name == "olh" else device.dimensions)


def _mean(laws: Iterable[Floats]) -> Floats:
    return np.asarray(np.mean(list(laws), axis=0))


_LAWS: dict[str, Callable[[Any, tuple[int, ...]], Floats]] = {
    "olh": _olh,
    "oue": _oue,
    "privset": _privset,
    "subset": _subset,
}


def audit_sets(subject: Any, nominal: float, samples: int, seed: int) -> WholeFinding:
    """Return the finding about every pair of sets of features."""
    device = subject.device
    small: Any = protocol(device.name, nominal, _DIMENSIONS, device.low, device.high, pad=_PAD)
    records = list(itertools.product((0, 1), repeat=_DIMENSIONS))
    laws = [support_law(small, record) for record in records]
    loss = _loss(records, laws)

    def rng(test: str) -> np.random.Generator:
        return generator(seed, "audit", device.name, nominal, device.dimensions, test)

    found = _fit(small, records, laws, samples, rng("fit"))
    found = replace(found, distance=map_distance(small.choice, small.choice))
    skipped = _fit(small, records, laws, 6 * _POWER_SAMPLES, rng("power"), _untouched)
    wrong = replace(small, epsilon=small.epsilon * _WRONG_BUDGET)
    shown = Power(wrong_budget=map_distance(small.choice, wrong.choice) > 1.0, untouched_last=skipped.p < ALPHA)
    bound = _empirical(device, samples, rng("empirical"))
    ends = np.array([device.low, device.high])
    variance = np.asarray(device.variance(ends), dtype=np.float64)
    return WholeFinding(
        bound=bound,
        fit=found,
        power=shown,
        enumerated=loss.value,
        stated=small.privacy_loss(),
        worst=replace(loss, first=_words(loss.first), second=_words(loss.second)),
        variance_worst=float(variance.max()),
        variance_mean=float(variance.mean()),
        bias=_bias(small, records, laws),
        problems=whole_problems(subject, loss, small.privacy_loss(), found, shown, bound),
    )


def _loss(records: list[tuple[int, ...]], laws: list[Floats]) -> Loss:
    with np.errstate(divide="ignore"):
        value, first, second, output = worst(np.log(laws))
    members = [j for j in range(output.bit_length()) if output >> j & 1]
    return Loss(
        value=value,
        first=vector(np.array(records[first])),
        second=vector(np.array(records[second])),
        output=f"that supports {vector(np.array(members))}",
    )


def _words(record: str) -> str:
    return f"the features {record}"


def _supported(device: Any, reports: Reports) -> NDArray[np.int64]:
    """Return each report's set of supported items as a bit mask."""
    there = _table(device, reports)
    return np.asarray(there @ (1 << np.arange(there.shape[1])), dtype=np.int64)


def _table(device: Any, reports: Reports) -> NDArray[np.int64]:
    if reports.index is not None:
        table = np.zeros((reports.nodes, device.dimensions), dtype=np.int64)
        rows, places = np.nonzero(reports.index >= 0)
        table[rows, reports.index[rows, places]] = reports.value[rows, places]
        return table
    if device.name == "olh":
        seeds, told = np.asarray(reports.value[:, :1]), np.asarray(reports.value[:, 1:])
        inside = buckets_of(seeds, np.arange(device.domain)[None, :], device.buckets) == told
        return np.asarray(inside, dtype=np.int64)
    return np.asarray(reports.value, dtype=np.int64)


def _fit(
    device: Any,
    records: list[tuple[int, ...]],
    laws: list[Floats],
    samples: int,
    rng: np.random.Generator,
    change: Callable[[Any, tuple[int, ...], NDArray[np.int64]], NDArray[np.int64]] | None = None,
) -> Fit:
    """Test how often every set of supported items occurs, for every record; `change` breaks the sampler first."""
    found, share = Fit(), max(2000, samples // 6)
    for record, law in zip(records, laws, strict=True):
        masks = _supported(device, device.perturb(_rows(device, record, share), rng))
        masks = masks if change is None else change(device, record, masks)
        counts = np.bincount(masks, minlength=len(law))
        one = fit_counts(counts, law, ordered=False, where=_words(vector(np.array(record))))
        if one.p < found.p:
            found = one
    tests = len(records)
    return Fit(cells=min(1.0, found.cells * tests), chi_square=min(1.0, found.chi_square * tests), where=found.where)


def _rows(device: Any, record: tuple[int, ...], count: int) -> Floats:
    """Return the record's features, for so many people."""
    return np.tile(np.where(np.array(record) == 1, device.high, device.low).astype(np.float64), (count, 1))


def _untouched(device: Any, record: tuple[int, ...], masks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the supported sets with the last feature shown as it is."""
    last = 1 << (device.dimensions - 1)
    return np.asarray(masks | last if record[-1] else masks & ~last)


def _empirical(device: Any, samples: int, rng: np.random.Generator) -> Bound:
    """Return the bound between a set as large as the padding and one that has as little as possible with it in common.

    The more of the one set and the less of the other a report supports, the more it speaks for the first.
    """
    one = np.arange(device.dimensions) < device.pad
    two = ~one & (np.cumsum(~one) <= device.pad)
    rows = [np.tile(np.where(own, device.high, device.low), (samples, 1)) for own in (one, two)]
    tables = [_table(device, device.perturb(own, rng))[:, : device.dimensions] for own in rows]
    first, second = (table @ (one.astype(np.float64) - two) for table in tables)
    return bound_of_scores(first, second, name="supported of the first set, less of the second")


def _bias(device: Any, records: list[tuple[int, ...]], laws: list[Floats]) -> float:
    """Return the largest bias of a feature's estimate, over sets of at most `pad` features, by summing over the law."""
    bits = (np.arange(len(laws[0]))[:, None] >> np.arange(device.dimensions)) & 1
    estimates = np.asarray(device.base.estimate(bits))
    found = 0.0
    for record, law in zip(records, laws, strict=True):
        if sum(record) <= device.pad:
            found = max(found, float(np.abs(law @ estimates - _rows(device, record, 1)[0]).max()))
    return found
