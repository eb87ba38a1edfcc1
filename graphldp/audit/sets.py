"""Mechanisms for sets, audited by what every report comes down to: the set of features that it supports.

The law is written out here from the protocol, in three dimensions with padding to two items, for every set that a
person can have (the largest is longer than the padding), and without a line of the mechanism's own arithmetic.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from graphldp.audit.budget import ALPHA
from graphldp.audit.empirical import Bound, bound_of_scores
from graphldp.audit.exact import vector
from graphldp.audit.fit import WRONG_BUDGET, Power, either_way
from graphldp.audit.quantiles import map_differs, map_distance
from graphldp.audit.subject import AuditSetting
from graphldp.audit.whole import Case, WholeFinding, whole_problems
from graphldp.client import Randomiser, Reports, protocol
from graphldp.client.laws.sets import Membership
from graphldp.client.mechanisms.olh import buckets_of
from graphldp.randomness import generator
from graphldp.registry import Registry

__all__ = ["SetLaw", "audit_sets", "set_law_of", "sets_case", "support_law"]

Floats: TypeAlias = NDArray[np.float64]

_DIMENSIONS = 3
_PAD = 2
_DRAWN_TOLERANCE = 1e-9  # relative, between two ways to compute a log probability
_POWER_SAMPLES = 20_000


class SetLaw(ABC):
    """A mechanism for sets as its docstring describes it, written out without a line of its own arithmetic."""

    def __init__(self, device: Any) -> None:
        self.device = device

    @property
    def items(self) -> int:
        """Of how many items one sees whether a report supports them."""
        return int(self.device.dimensions)

    @abstractmethod
    def law(self, secret: tuple[int, ...]) -> Floats:
        """Return the probability of every set of supported items, as a bit mask, about a padded set."""

    @abstractmethod
    def drawn(self) -> list[tuple[float, float, float]]:
        """Return what the budget decides: for each value and outcome of the device's `choice`, the log probability.

        Written out here, however rare: a report that is never sent is one that tells.
        """

    @property
    def beside(self) -> Callable[[Reports], NDArray[np.int64]] | None:
        """What a report says beside the items that it supports; None where that is all."""
        return None

    def choice(self, epsilon: float) -> Randomiser:
        """Return what the budget decides about at another budget."""
        return cast("Randomiser", replace(self.device, epsilon=epsilon).choice)

    def table(self, reports: Reports) -> NDArray[np.int64]:
        """Return of each report which items it supports."""
        if reports.index is None:
            return np.asarray(reports.value, dtype=np.int64)
        table = np.zeros((reports.nodes, self.device.dimensions), dtype=np.int64)
        rows, places = np.nonzero(reports.index >= 0)
        table[rows, reports.index[rows, places]] = reports.value[rows, places]
        return table

    def supported(self, reports: Reports) -> NDArray[np.int64]:
        """Return each report's set of supported items as a bit mask."""
        there = self.table(reports)
        return np.asarray(there @ (1 << np.arange(there.shape[1])), dtype=np.int64)


SET_LAWS: Registry[type[SetLaw]] = Registry("audited mechanism for sets")


def set_law_of(device: Any) -> SetLaw:
    """Return what the audit writes out of a device."""
    return SET_LAWS[device.name](device)


@SET_LAWS.register("privset")
class _PrivSet(SetLaw):
    """A set of m items is e^epsilon times as likely if it has at least `overlap` of the secret one."""

    @property
    def overlap(self) -> int:
        """In how many items the sets have to meet."""
        return int(self.device.overlap)

    @property
    def secret(self) -> int:
        """How many items the secret set has."""
        return int(self.device.pad)

    def law(self, secret: tuple[int, ...]) -> Floats:
        device = self.device
        law = np.zeros(2**device.dimensions)
        for chosen in itertools.combinations(range(device.dimensions + device.pad), device.m):
            mask = sum(1 << j for j in chosen if j < device.dimensions)
            law[mask] += 1.0 if len(set(secret) & set(chosen)) >= self.overlap else math.exp(-device.epsilon)
        return np.asarray(law / math.fsum(law))

    def drawn(self) -> list[tuple[float, float, float]]:
        device, secret = self.device, self.secret
        logs = {
            met: _log_sets(secret, met)
            + _log_sets(device.domain - secret, device.m - met)
            - (0.0 if met >= self.overlap else device.epsilon)
            for met in range(max(0, device.m - device.domain + secret), min(secret, device.m) + 1)
        }
        total = float(np.logaddexp.reduce(list(logs.values())))
        return [(0.0, float(met), log - total) for met, log in logs.items()]


@SET_LAWS.register("subset")
class _Subset(_PrivSet):
    """The secret set is one item of the padded one."""

    overlap = 1
    secret = 1

    def law(self, secret: tuple[int, ...]) -> Floats:
        return _mean(_PrivSet.law(self, (item,)) for item in secret)


@SET_LAWS.register("oue")
class _Oue(SetLaw):
    """A bit for each feature: that of the drawn item is told by a coin, the others by the budget."""

    def law(self, secret: tuple[int, ...]) -> Floats:
        off = 1 / (1 + math.exp(self.device.epsilon))
        return _mean(_bits(self.items, {item: (0.5, 0.5)}, (off, 1 - off)) for item in secret)

    def drawn(self) -> list[tuple[float, float, float]]:
        epsilon = self.device.epsilon
        off = -math.log1p(math.exp(-epsilon))
        return [(1.0, 1.0, math.log(0.5)), (-1.0, 1.0, off - epsilon), (-1.0, 0.0, off)]


@SET_LAWS.register("olh")
class _Olh(SetLaw):
    """The drawn item's bucket, and the function, by which one sees which dummies are in it as well."""

    @property
    def items(self) -> int:
        return int(self.device.domain)

    def law(self, secret: tuple[int, ...]) -> Floats:
        g = self.device.buckets
        # Both probabilities by themselves: at a large budget one of them is 1 to the last bit.
        others = (g - 1) * math.exp(-self.device.epsilon)
        told = (1 / (1 + others), others / (1 + others))
        # Over the random function any other item shares the bucket that is told with probability 1/g.
        return _mean(_bits(self.items, {item: told}, (1 / g, 1 - 1 / g)) for item in secret)

    def drawn(self) -> list[tuple[float, float, float]]:
        others = math.log(self.device.buckets - 1) - self.device.epsilon
        total = math.log1p(math.exp(others))
        return [(1.0, 1.0, -total), (1.0, 0.0, others - total)]

    def choice(self, epsilon: float) -> Randomiser:
        """Return it with as many buckets: that these follow from the budget does not give it away."""
        others = (self.device.buckets - 1) * math.exp(-epsilon)
        kept, missed = 1 / (1 + others), others / (1 + others)
        return Membership(epsilon=epsilon, present=kept, absent=kept, missed=(missed, missed))

    def table(self, reports: Reports) -> NDArray[np.int64]:
        if reports.index is not None or reports.value.shape[1] != 2:
            return SetLaw.table(self, reports)
        seeds, told = np.asarray(reports.value[:, :1]), np.asarray(reports.value[:, 1:])
        inside = buckets_of(seeds, np.arange(self.device.domain)[None, :], self.device.buckets) == told
        return np.asarray(inside, dtype=np.int64)

    @property
    def beside(self) -> Callable[[Reports], NDArray[np.int64]]:
        """The number of the hash function."""
        return lambda reports: np.asarray(reports.value)[:, 0].astype(np.int64)


def support_law(device: Any, record: tuple[int, ...]) -> Floats:
    """Return the probability of every set of supported features (as a bit mask) about a set of features.

    The set is padded, or sampled, to `pad` items.
    """
    d, pad = device.dimensions, device.pad
    own = [j for j in range(d) if record[j]]
    # Each place has a dummy of its own; the person's items come first.
    padded = list(itertools.combinations(own, min(pad, len(own))))
    padded = [(*kept, *range(d + len(kept), d + pad)) for kept in padded]
    written = set_law_of(device)
    law = np.zeros(2**written.items)
    for secret in padded:
        law += written.law(secret) / len(padded)
    return law


def _bits(items: int, special: dict[int, tuple[float, float]], rest: tuple[float, float]) -> Floats:
    """Return the law of bits of which some have their own probabilities of 1 and 0."""
    law = np.ones(2**items)
    for mask in range(2**items):
        for j in range(items):
            one, zero = special.get(j, rest)
            law[mask] *= one if mask >> j & 1 else zero
    return law


def _mean(laws: Iterable[Floats]) -> Floats:
    return np.asarray(np.mean(list(laws), axis=0))


def _log_sets(items: int, chosen: int) -> float:
    return math.log(math.comb(items, chosen))


def _drawn_problems(device: Any) -> list[str]:
    found = []
    for x, outcome, log in set_law_of(device).drawn():
        used = float(device.choice.log_law(outcome, x))
        if not abs(used - log) <= _DRAWN_TOLERANCE * (1 + abs(log)):
            found.append(
                f"outcome {outcome:g} of what the budget decides is drawn with probability e^{used:.6g}, by the law "
                f"with e^{log:.6g}"
            )
    return found[:1]


def sets_case(name: str, nominal: float, setting: AuditSetting) -> Case:
    """Return the case of all sets of a few features."""
    setting = setting.few(_DIMENSIONS)
    options = {**setting.options, "pad": min(int(setting.options.get("pad", _PAD)), _PAD)}
    if "overlap" in options:
        options["overlap"] = min(options["overlap"], options["pad"])
    small: Any = protocol(name, nominal, _DIMENSIONS, *setting.ends, **options)
    records = list(itertools.product((0, 1), repeat=_DIMENSIONS))
    with np.errstate(divide="ignore"):
        logs = np.log([support_law(small, record) for record in records])
    written = set_law_of(small)
    members = [[j for j in range(written.items) if output >> j & 1] for output in range(logs.shape[1])]
    return Case(
        device=small,
        records=[f"the features {vector(np.array(record))}" for record in records],
        outputs=[f"that supports {vector(np.array(own))}" for own in members],
        features=np.where(np.array(records) == 1, small.high, small.low).astype(np.float64),
        logs=logs,
        place=written.supported,
        perturb=lambda features, ids, source: small.perturb(features, source),
        sparse=small.low == 0,
        beside=written.beside,
    )


def audit_sets(subject: Any, nominal: float, setting: AuditSetting, samples: int, seed: int) -> WholeFinding:
    """Return the finding about every pair of sets of features."""
    device = subject.device
    case = sets_case(device.name, nominal, setting)
    small, loss = case.device, case.loss

    def rng(test: str) -> np.random.Generator:
        return generator(seed, "audit", device.name, nominal, device.dimensions, test)

    found = replace(case.fit(samples, rng("fit")), distance=map_distance(small.choice, small.choice))
    skipped = case.fit(6 * _POWER_SAMPLES, rng("power"), lambda ids, reports: _untouched(case, ids, reports))

    def law_of(factor: float) -> Randomiser:
        return set_law_of(small).choice(small.epsilon * factor)

    wrong = either_way(law_of, WRONG_BUDGET)
    shown = Power(wrong_budget=map_differs(small.choice, wrong), untouched_last=skipped.p < ALPHA)
    bound = _empirical(device, samples, rng("empirical"))
    ends = np.array([device.low, device.high])
    variance = np.asarray(device.variance(ends), dtype=np.float64)
    return WholeFinding(
        bound=bound,
        fit=found,
        power=shown,
        enumerated=loss.value,
        stated=small.privacy_loss(),
        worst=loss,
        variance_worst=float(variance.max()),
        variance_mean=float(variance.mean()),
        bias=_bias(case),
        problems=[
            *whole_problems(small.claim.epsilon, loss, small.privacy_loss(), found, bound),
            *_drawn_problems(device),
        ],
        case=case,
        laws_of=(law_of,),
    )


def _untouched(case: Case, ids: NDArray[np.int64], reports: Reports) -> Reports:
    """Return the supported sets, as bits, with the last feature shown as it is."""
    table = set_law_of(case.device).table(reports)
    last = case.device.dimensions - 1
    table[:, last] = case.features[ids, last] >= case.device.high
    return Reports(value=table)


def _empirical(device: Any, samples: int, rng: np.random.Generator) -> Bound:
    """Return the bound between a set as large as the padding and one that has as little as possible with it in common.

    The more of the one set and the less of the other a report supports, the more it speaks for the first.
    """
    one = np.arange(device.dimensions) < device.pad
    two = ~one & (np.cumsum(~one) <= device.pad)
    rows = [np.tile(np.where(own, device.high, device.low), (samples, 1)) for own in (one, two)]
    written = set_law_of(device)
    tables = [written.table(device.perturb(own, rng))[:, : device.dimensions] for own in rows]
    first, second = (table @ (one.astype(np.float64) - two) for table in tables)
    return bound_of_scores(first, second, name="supported of the first set, less of the second")


def _bias(case: Case) -> float:
    """Return the largest bias of a feature's estimate, over sets of at most `pad` features, by summing over the law."""
    device: Any = case.device
    bits = (np.arange(case.laws.shape[1])[:, None] >> np.arange(device.dimensions)) & 1
    estimates = np.asarray(device.base.estimate(bits))
    return max(
        float(np.abs(law @ estimates - own).max())
        for own, law in zip(case.features, case.laws, strict=True)
        if (own >= device.high).sum() <= device.pad
    )
