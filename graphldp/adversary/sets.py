"""What a whole reported set says of one attribute: to somebody who knows all others, or how common they are.

A set's padding ties the attributes together: a dummy gives way to an item, and one item of the set is drawn. So the
odds depend on the rest, and the strongest attacker is one who knows it: only the attribute in question is open to her.
Everything follows from how many items of the own set the report supports, and of the dummies.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphldp.adversary.facts import Fact
from graphldp.client.laws.sets import SetValued, items
from graphldp.client.mechanisms.olh import buckets_of
from graphldp.registry import Registry

if TYPE_CHECKING:
    from graphldp.adversary.readers import Entries

__all__ = ["InformedSets", "SetReading", "SurestSets"]

Floats: TypeAlias = NDArray[np.float64]

_NEVER = 1e-40  # sets of a size that is rarer than that decide nothing
Counts: TypeAlias = NDArray[np.int64]
# Of people: the log likelihood of their reports, given how many items they have and how many of these are supported.
Likelihood: TypeAlias = Callable[[Counts, Counts], Floats]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InformedSets:
    """Reports of sets beside everybody's other attributes.

    Attributes:
        likelihood: of the mechanism.
        own: n x d, which attributes each person has.
        supported: the same of which her report supports.
        size, hits: how many attributes each person has, and how many of them her report supports.
    """

    likelihood: Likelihood
    own: sp.csr_array
    supported: sp.csc_array
    size: Counts
    hits: Counts

    @classmethod
    def of(cls, device: SetValued, entries: Entries, features: Any) -> InformedSets:
        """Return the reports of people with these features."""
        reading = READINGS[device.name](device)
        reports = entries.reports
        value = np.asarray(reports.value)
        rows, places = np.nonzero(value == 1)
        columns = places if reports.index is None else np.asarray(reports.index)[rows, places]
        shape = (reports.nodes, device.dimensions)
        supported = sp.csr_array((np.ones(len(rows), dtype=np.int64), (rows, columns)), shape=shape)
        indptr, owned = items(features, device.low, device.high, device.name)
        own = sp.csr_array((np.ones(len(owned), dtype=np.int64), owned, indptr), shape=shape)
        hits = np.asarray((own * supported).sum(axis=1)).ravel().astype(np.int64)
        told = np.asarray(supported.sum(axis=1)).ravel().astype(np.int64)
        return cls(
            likelihood=reading.likelihood(told, reading.dummies(entries)),
            own=own,
            supported=sp.csc_array(supported),
            size=np.diff(indptr).astype(np.int64),
            hits=hits,
        )

    def odds(self, fact: Fact) -> Floats:
        """Return every person's log odds of having the attribute, given all others."""
        shown = self.supported[:, [fact.attribute]].toarray().ravel()
        rest, found = self.size - fact.holds, self.hits - fact.holds * shown
        return self.likelihood(rest + 1, found + shown) - self.likelihood(rest, found)

    def profile_odds(self, others: NDArray[np.int64]) -> Floats:
        """Return every person's log odds that the report is about her, and not about the person that `others` names."""
        theirs = self.own[others]
        found = np.asarray((theirs * sp.csr_array(self.supported)).sum(axis=1)).ravel().astype(np.int64)
        return self.likelihood(self.size, self.hits) - self.likelihood(self.size[others], found)


class SurestSets:
    """The most telling reports about people who have each attribute independently, each with its own share.

    Of one item of the set (oue, subset, olh) the report that tells most of an attribute supports it and, beside it, as
    few and as rare others as can be: any of these may be the one that was drawn. For olh that is over all hash
    functions, whether or not one of the 2^31 that there are does it. Where a report has to meet a set in several items
    (privset), common attributes can serve better than rare ones: every mixture of the commonest and the rarest is
    tried.
    """

    def __init__(self, device: SetValued, shares: Floats) -> None:
        self.reading = READINGS[device.name](device)
        self.shares = np.asarray(shares, dtype=np.float64)
        self.largest = len(_counting(self.shares))  # beyond that many attributes nobody has
        self.worth: dict[int, Floats] = {}
        self.found: dict[tuple[float, float], float] = {}

    def posterior(self, attribute: int, prior: float) -> float:
        """Return how sure of the attribute the most telling report makes, from what was known before."""
        if prior in (0.0, 1.0):
            return prior
        key = (float(self.shares[attribute]), prior)
        if key not in self.found:
            ratio = self._best(np.sort(np.delete(self.shares, attribute))[::-1])
            self.found[key] = prior * ratio / (prior * ratio + 1 - prior)
        return self.found[key]

    def _best(self, others: Floats) -> float:
        """Return how much likelier the most telling report is with the attribute than without."""
        most = self.reading.told[-1] - 1
        commonest = most if self.reading.mixed else 0
        ends = _Ends(others, commonest, most)
        best = 0.0
        for told in self.reading.told:
            for common in range(min(told - 1, commonest) + 1):
                inside, outside = ends.split(common, told - 1 - common)
                worth = self._worth(told)
                size = np.arange(len(outside)) + np.arange(len(inside))[:, None]
                hits = np.broadcast_to(np.arange(len(inside))[:, None], size.shape)
                have = inside @ worth[size + 1, hits + 1] @ outside
                best = max(best, float(have / (inside @ worth[size, hits] @ outside)))
        return best

    def _worth(self, told: int) -> Floats:
        """Return the likelihood of a report that supports so many, by how many items a set has, and are supported."""
        if told not in self.worth:
            size, hits = (part.ravel() for part in np.indices((2 * self.largest + 2, min(told, self.largest) + 2)))
            fits = hits <= np.minimum(size, told)
            size, hits = size[fits], hits[fits]
            later = np.zeros((len(size), self.reading.device.pad + 1), dtype=np.int64)
            likelihood = self.reading.likelihood(np.full(len(size), told), later)
            worth = np.zeros((2 * self.largest + 2, min(told, self.largest) + 2))
            worth[size, hits] = np.exp(likelihood(size, hits))
            self.worth[told] = worth
        return self.worth[told]


class _Ends:
    """How many attributes a person has of the commonest and the rarest ones, and how many of those between."""

    def __init__(self, others: Floats, commonest: int, rarest: int) -> None:
        self.others = others  # decreasing
        stop = len(others) - rarest
        self.commonest, self.rarest = _growing(others[:commonest]), _growing(others[::-1][:rarest])
        self.apart = commonest <= stop
        if self.apart:
            between = _counting(others[commonest:stop])
            self.left = [np.convolve(between, law) for law in _growing(others[:commonest][::-1])[::-1]]
            self.right = _growing(others[stop:])[::-1]

    def split(self, common: int, rare: int) -> tuple[Floats, Floats]:
        """Return the law of how many of the `common` commonest and `rare` rarest a person has, and of the others."""
        inside = _trimmed(np.convolve(self.commonest[common], self.rarest[rare]))
        if not self.apart:
            return inside, _counting(self.others[common : len(self.others) - rare])
        return inside, _trimmed(np.convolve(self.left[common], self.right[rare]))


def _growing(shares: Floats) -> list[Floats]:
    """Return the law of how many of the first 0, 1, 2, ... of independent events happen."""
    laws = [np.ones(1)]
    for share in shares:
        laws.append(_trimmed(np.convolve(laws[-1], (1 - share, share))))
    return laws


def _counting(shares: Floats) -> Floats:
    """Return the law of how many of independent events happen, as far as it is worth a number."""
    law = np.ones(1)
    for share in shares:
        law = _trimmed(np.convolve(law, (1 - share, share)))
    return law


def _trimmed(law: Floats) -> Floats:
    return np.asarray(law[: np.flatnonzero(law > _NEVER)[-1] + 1])


def _one_item(told: float, untold: float, size: Counts, hits: Counts, dummies: Floats, pad: int) -> Floats:
    """Return the log of the mean over the padded set of what an item's report is worth, told or not."""
    own = told * hits + untold * (size - hits)
    return np.asarray(np.log((own + dummies) / np.maximum(size, pad)))


class SetReading(ABC):
    """What somebody makes of a whole report of a mechanism for sets.

    Class attributes:
        mixed: whether common attributes beside the one in question can tell more than rare ones.
    """

    mixed: ClassVar[bool] = False

    def __init__(self, device: Any) -> None:
        self.device = device

    @property
    def told(self) -> range:
        """How many attributes a report can support; at most `pad` of a set are dummies."""
        device = self.device
        return range(max(1, device.m - device.pad), min(device.m, device.dimensions) + 1)

    def dummies(self, entries: Entries) -> Counts:
        """Return how many dummies each report supports from each place on, as far as everybody sees it."""
        return np.zeros((entries.reports.nodes, self.device.pad + 1), dtype=np.int64)

    @abstractmethod
    def likelihood(self, told: Counts, later: Counts) -> Likelihood:
        """Return the likelihood of reports that support so many features, and dummies from each place on."""


READINGS: Registry[type[SetReading]] = Registry("readable mechanism for sets")


@READINGS.register("oue")
class _Oue(SetReading):
    told = range(1, 2)

    def likelihood(self, told: Counts, later: Counts) -> Likelihood:
        device = self.device
        own, other = device.item_chances()

        def likelihood(size: Counts, hits: Counts) -> Floats:
            dummies = np.maximum(0, device.pad - size).astype(np.float64)  # a dummy's bit is not sent
            return _one_item(own / other, (1 - own) / (1 - other), size, hits, dummies, device.pad)

        return likelihood


@READINGS.register("subset")
class _Subset(SetReading):
    def likelihood(self, told: Counts, later: Counts) -> Likelihood:
        device = self.device
        gain = math.expm1(device._support.loss)
        # Of the dummies so many are in the set, and nobody sees which.
        each = 1 + gain * (device.m - told) / device.pad

        def likelihood(size: Counts, hits: Counts) -> Floats:
            return _one_item(1 + gain, 1.0, size, hits, np.maximum(0, device.pad - size) * each, device.pad)

        return likelihood


@READINGS.register("olh")
class _Olh(SetReading):
    told = range(1, 2)

    def dummies(self, entries: Entries) -> Counts:
        """Return what follows from the hash function, which is sent: which dummies would have been told."""
        device, sent = self.device, np.asarray(entries.sent.value)
        numbers = device.dimensions + np.arange(device.pad)
        inside = buckets_of(sent[:, :1], numbers[None, :], device.buckets) == sent[:, 1:]
        later = np.zeros((len(sent), device.pad + 1), dtype=np.int64)
        later[:, :-1] = np.cumsum(inside[:, ::-1], axis=1)[:, ::-1]
        return later

    def likelihood(self, told: Counts, later: Counts) -> Likelihood:
        device = self.device
        kept = device.item_chances()[0]
        missed = (1 - kept) / (device.buckets - 1)

        def likelihood(size: Counts, hits: Counts) -> Floats:
            used = np.minimum(size, device.pad)
            among = later[np.arange(len(used)), used]
            dummies = kept * among + missed * (device.pad - used - among)
            return _one_item(kept, missed, size, hits, dummies, device.pad)

        return likelihood


@READINGS.register("privset")
class _PrivSet(SetReading):
    mixed = True

    def likelihood(self, told: Counts, later: Counts) -> Likelihood:
        from scipy.stats import hypergeom

        device = self.device
        gain, pad, most = math.expm1(device._support.loss), device.pad, device.overlap - 1

        def likelihood(size: Counts, hits: Counts) -> Floats:
            # P[the padded set is met in at least `overlap`]: dummies are drawn into the report, or items into the set.
            fits = size <= pad
            own = np.minimum(size, pad)
            by_dummies = hypergeom.sf(most - hits, pad, pad - own, np.clip(device.m - told, 0, pad))
            by_items = hypergeom.sf(most, np.maximum(size, pad), np.minimum(hits, np.maximum(size, pad)), pad)
            return np.asarray(np.log1p(gain * np.where(fits, by_dummies, by_items)))

        return likelihood
