"""What one person's report says about one of her attributes: the law of it, and the log odds of what was sent.

reader_of(device).channel(fact)         the exact law, sampling of dimensions included
reader_of(device).posterior(fact)       how sure the most telling whole report makes
reader_of(device).odds(reports, fact)   of every person: log P[report | the fact holds] / P[report | it does not]

An m-of-d report says nothing about an attribute that it does not show, and of one that it shows nothing but the value
that was sent. A set says a little of each attribute through the others: see `graphldp.adversary.sets`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphldp.adversary.channel import BLIND, OPEN, Channel
from graphldp.adversary.facts import Fact, Side
from graphldp.adversary.sets import SurestSets
from graphldp.audit.law import Outcomes, outcomes
from graphldp.audit.whole import centre_of, channels_of
from graphldp.client import Randomiser, Reports, VectorMechanism
from graphldp.client.directed import DirectedMechanism
from graphldp.client.laws.sets import SetValued, items
from graphldp.client.levels import Personalised, probabilities
from graphldp.errors import DataError, OptionError

__all__ = ["Entries", "Reader", "reader_of"]

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entries:
    """Reports ordered by the attribute that each entry is about.

    Attributes:
        sent: the reports.
        reports: the same as the server reads them, by dimension.
        order, starts: the entries that are in use, by attribute; None where every attribute is reported.
    """

    sent: Reports
    reports: Reports
    order: NDArray[np.int64] | None
    starts: NDArray[np.int64] | None

    @classmethod
    def of(cls, device: VectorMechanism | DirectedMechanism, reports: Reports) -> Entries:
        """Return the entries of these reports."""
        whole = device.device if isinstance(device, DirectedMechanism) else device
        unfolded = whole.unfold(reports)
        if unfolded.index is None:
            return cls(sent=reports, reports=unfolded, order=None, starts=None)
        flat = np.asarray(unfolded.index).reshape(-1)
        order = np.argsort(flat, kind="stable")
        starts = np.searchsorted(flat[order], np.arange(whole.dimensions + 1))
        return cls(sent=reports, reports=unfolded, order=order, starts=starts)

    def about(self, attribute: int) -> tuple[NDArray[np.int64], Floats]:
        """Return the people who report this attribute, and what they sent for it."""
        value = np.asarray(self.reports.value)
        if self.order is None or self.starts is None:
            return np.arange(self.reports.nodes), value[:, attribute].astype(np.float64)
        chosen = self.order[self.starts[attribute] : self.starts[attribute + 1]]
        return chosen // self.reports.m, value.reshape(-1)[chosen].astype(np.float64)


class Reader(ABC):
    """How a mechanism's reports are read."""

    @abstractmethod
    def channel(self, fact: Fact) -> Channel:
        """Return the law of what one report says about the fact."""

    def posterior(self, fact: Fact) -> float:
        """Return how sure of the fact the most telling whole report makes who knows how common every attribute is."""
        return self.channel(fact).posterior(fact.prior)  # of independent attributes nothing else tells

    @abstractmethod
    def odds(self, entries: Entries, fact: Fact) -> Floats:
        """Return every person's log odds that her report gives; 0 where it says nothing."""


def reader_of(device: VectorMechanism | DirectedMechanism, features: Any = None) -> Reader:
    """Return how the reports of this mechanism, or of this second round, are read.

    With `features` the law of a set counts that who has more than `pad` attributes reports a sample of them; without,
    nobody does.
    """
    if isinstance(device, DirectedMechanism) or device.parts:
        return _Scalars(device)
    if isinstance(device, SetValued):
        return _Bits(device, features)
    if isinstance(device, Personalised):
        return _Levels(device, features)
    if device.scalars():
        return _Features(device)
    raise OptionError(f"no attack on {device.name} is known: how its report tells of one attribute has to be written")


@dataclass(frozen=True, slots=True, eq=False)
class _Symbol:
    """One reported value: its law on both sides of a fact."""

    law: Outcomes
    no: Floats
    yes: Floats

    @classmethod
    def of(cls, base: Randomiser, no: Side, yes: Side) -> _Symbol:
        law = outcomes(base, [value for value, _ in (*no, *yes)])
        one = np.array([share for _, share in no]) @ law.mass[: len(no)]
        two = np.array([share for _, share in yes]) @ law.mass[len(no) :]
        return cls(law=law, no=one, yes=two)

    def channel(self) -> Channel:
        return Channel.of(self.no / self.no.sum(), self.yes / self.yes.sum())

    def odds(self, values: Floats) -> Floats:
        place = self.law.place(values)
        if (place == len(self.law.y)).any():
            raise DataError("a report holds a value that its mechanism never sends; were other options used?")
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.yes[place]) - np.log(self.no[place]))


@dataclass(frozen=True, slots=True, eq=False)
class _Symbols:
    """Laws that were needed before: most attributes have the same two values."""

    found: dict[Any, _Symbol] = field(default_factory=dict)

    def of(self, base: Randomiser, fact: Fact) -> _Symbol:
        key = (base, fact.no, fact.yes)
        if key not in self.found:
            if len(self.found) > 256:
                self.found.clear()
            self.found[key] = _Symbol.of(base, fact.no, fact.yes)
        return self.found[key]


class _Scalars(Reader):
    """m of d dimensions, or all, each through a scalar; of users with public levels each level by itself."""

    def __init__(self, device: VectorMechanism | DirectedMechanism) -> None:
        self.parts = device.parts
        self.directed = device if isinstance(device, DirectedMechanism) else None
        whole = device.device if isinstance(device, DirectedMechanism) else device
        self.levelled = isinstance(whole, Personalised)
        self.shares = probabilities(whole.distribution, whole.levels) if isinstance(whole, Personalised) else np.ones(1)
        self.symbols = _Symbols()

    def _chance(self, level: int, attribute: int) -> float:
        if self.directed is not None:
            return float(self.directed.inclusion(level)[attribute])
        part = self.parts[level - 1]
        return part.m / part.dimensions

    def channel(self, fact: Fact) -> Channel:
        found = []
        for level, (share, part) in enumerate(zip(self.shares, self.parts, strict=True), start=1):
            chance = self._chance(level, fact.attribute)
            shown = OPEN if part.base.deterministic else self.symbols.of(part.base, fact).channel()
            found += [(share * chance, shown), (share * (1 - chance), BLIND)]
        return Channel.either(found)

    def odds(self, entries: Entries, fact: Fact) -> Floats:
        if self.parts[0].base.deterministic:
            return np.where(fact.holds, np.inf, -np.inf)
        out = np.zeros(entries.reports.nodes)
        people, values = entries.about(fact.attribute)
        level = np.ones(len(people)) if not self.levelled else np.asarray(entries.reports.level)[people]
        for number, part in enumerate(self.parts, start=1):
            own = level == number
            out[people[own]] = self.symbols.of(part.base, fact).odds(values[own])
        return out


class _Features(Reader):
    """Every feature through a scalar of its own."""

    def __init__(self, device: VectorMechanism) -> None:
        self.scalars = {int(one): base for base, columns in device.scalars() for one in columns}
        self.symbols = _Symbols()

    def channel(self, fact: Fact) -> Channel:
        base = self.scalars[fact.attribute]
        return BLIND if base is None else self.symbols.of(base, fact).channel()

    def odds(self, entries: Entries, fact: Fact) -> Floats:
        base = self.scalars[fact.attribute]
        if base is None:
            return np.zeros(entries.reports.nodes)
        return self.symbols.of(base, fact).odds(entries.about(fact.attribute)[1])


class _Levels(Reader):
    """A level that is hidden: what is seen is the level sent, how many values, and the size of each."""

    def __init__(self, device: Any, features: Any) -> None:
        self.device = device
        # Of every attribute, the mean of the sign that an unlimited budget would send; None if all are as common.
        self.leans = None if features is None else np.asarray(device.base._unit(_means(features)), dtype=np.float64)
        levels = range(1, device.levels + 1)
        self.sizes = np.unique([size for level in levels for _, _, _, size, _ in channels_of(device, level)])

    def _size(self, value: float) -> int:
        """Return which of the sizes it is; values are sent as float32, and sizes differ by far more than that."""
        return int(np.argmin(np.abs(self.sizes - abs(value))))

    def _law(self, side: Side) -> dict[tuple[Any, ...], float]:
        """Return the probability of (level sent, m, size, sign), with the sign 0 where the attribute is not shown."""
        device = self.device
        law: dict[tuple[Any, ...], float] = {}
        mean = sum(share * device.base._unit(value) for value, share in side)
        for true, share in enumerate(probabilities(device.distribution, device.levels), start=1):
            for sent, log, m, size, budget in channels_of(device, true):
                sends, chance = share * math.exp(log), m / device.dimensions
                key = (int(sent), int(m), self._size(size))
                lean = math.tanh(budget / m / 2)
                for sign in (-1, 1):
                    law[*key, sign] = law.get((*key, sign), 0.0) + sends * chance * (1 + sign * float(mean) * lean) / 2
                law[*key, 0] = law.get((*key, 0), 0.0) + sends * (1 - chance)
        return law

    def channel(self, fact: Fact) -> Channel:
        no, yes = self._law(fact.no), self._law(fact.yes)
        return Channel.of([no[key] for key in no], [yes[key] for key in no])

    def posterior(self, fact: Fact) -> float:
        """Return how sure the most telling report makes: its other signs show how large the budget is.

        What a person has of the others is likelier to be told by a large budget. So the report that tells most shows
        the attributes that are surest beforehand, each with its likelier sign.
        """
        if not fact.varies:
            return fact.prior
        device = self.device
        no, yes = (
            sum(share * float(device.base._unit(value)) for value, share in side) for side in (fact.no, fact.yes)
        )
        if self.leans is None:
            others = np.full(device.dimensions - 1, abs(fact.prior * yes + (1 - fact.prior) * no))
        else:
            others = np.sort(np.abs(np.delete(self.leans, fact.attribute)))[::-1]
        seen: dict[tuple[int, int, int], tuple[float, float]] = {}
        for true, share in enumerate(probabilities(device.distribution, device.levels), start=1):
            for sent, log, m, size, budget in channels_of(device, true):
                lean = math.tanh(budget / m / 2)
                chance = share * math.exp(log) * float(np.prod(1 + lean * others[: m - 1]))
                key = (int(sent), int(m), self._size(size))
                one, two = seen.get(key, (0.0, 0.0))
                seen[key] = one + chance * (1 + lean * no), two + chance * (1 + lean * yes)
        ratio = max(two / one if one else math.inf for one, two in seen.values() if one or two)
        return 1 / (1 + (1 - fact.prior) / (fact.prior * ratio))

    def odds(self, entries: Entries, fact: Fact) -> Floats:
        no, yes = self._law(fact.no), self._law(fact.yes)
        reports, device = entries.reports, self.device
        out = np.zeros(reports.nodes)
        people, values = entries.about(fact.attribute)
        middle = centre_of(device)
        length = (np.asarray(reports.index) >= 0).sum(axis=1)
        for person, value in zip(people, values, strict=True):
            away = float(value) - middle
            key = (int(np.asarray(reports.level)[person]), int(length[person]), self._size(away), int(np.sign(away)))
            if key not in no:
                raise DataError("a report holds a value that its mechanism never sends; were other options used?")
            out[person] = math.log(yes[key]) - math.log(no[key])
        return out


def _means(features: Any) -> Floats:
    return np.asarray(features.mean(axis=0), dtype=np.float64).ravel()


class _Bits(Reader):
    """A set: whether the report supports the attribute."""

    def __init__(self, device: SetValued, features: Any) -> None:
        self.device = device
        self.kept: Floats | None = None
        self.sure: SurestSets | None = None
        if features is not None:
            indptr, owned = items(features, device.low, device.high, device.name)
            self.kept = np.minimum(1.0, device.pad / np.maximum(1, np.diff(indptr)))
            shares = np.bincount(owned, minlength=device.dimensions) / max(1, len(indptr) - 1)
            self.sure = SurestSets(device, shares)

    def _chances(self, fact: Fact) -> tuple[float, float]:
        present, absent = self.device.support_chances()
        kept = 1.0 if self.kept is None else float(self.kept[fact.holds].mean())
        return absent + kept * (present - absent), absent

    def channel(self, fact: Fact) -> Channel:
        present, absent = self._chances(fact)
        return Channel.of([1 - absent, absent], [1 - present, present])

    def posterior(self, fact: Fact) -> float:
        """Return how sure the most telling whole set makes; without features all attributes are equally common."""
        sure = self.sure or SurestSets(self.device, np.full(self.device.dimensions, fact.prior))
        return sure.posterior(fact.attribute, fact.prior)

    def odds(self, entries: Entries, fact: Fact) -> Floats:
        present, absent = self._chances(fact)
        out = np.full(entries.reports.nodes, math.log1p(-present) - math.log1p(-absent))
        people, values = entries.about(fact.attribute)
        out[people[values == 1]] = math.log(present) - math.log(absent)
        return out
