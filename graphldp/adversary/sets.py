"""What a reported set says of one attribute to somebody who knows all of the person's others.

A set's padding ties the attributes together: a dummy gives way to an item, and one item of the set is drawn. So the
odds depend on the rest, and the strongest attacker is one who knows it: only the attribute in question is open to her.
Everything follows from how many items of the own set the report supports, and of the dummies.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphldp.adversary.facts import Fact
from graphldp.adversary.readers import Entries
from graphldp.client.olh import buckets_of
from graphldp.client.sets import SetValued, items
from graphldp.errors import OptionError

__all__ = ["InformedSets"]

Floats: TypeAlias = NDArray[np.float64]
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
        if device.name not in _LIKELIHOODS:
            raise OptionError(f"no informed attack on {device.name} is known: its likelihood has to be written")
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
            likelihood=_LIKELIHOODS[device.name](device, told, entries),
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


def _one_item(told: float, untold: float, size: Counts, hits: Counts, dummies: Floats, pad: int) -> Floats:
    """Return the log of the mean over the padded set of what an item's report is worth, told or not."""
    own = told * hits + untold * (size - hits)
    return np.asarray(np.log((own + dummies) / np.maximum(size, pad)))


def _oue(device: Any, told: Counts, entries: Entries) -> Likelihood:
    own, other = device.item_chances()

    def likelihood(size: Counts, hits: Counts) -> Floats:
        dummies = np.maximum(0, device.pad - size).astype(np.float64)  # a dummy's bit is not sent
        return _one_item(own / other, (1 - own) / (1 - other), size, hits, dummies, device.pad)

    return likelihood


def _subset(device: Any, told: Counts, entries: Entries) -> Likelihood:
    gain = math.expm1(device._support.loss)
    # Of the dummies so many are in the set, and nobody sees which.
    each = 1 + gain * (device.m - told) / device.pad

    def likelihood(size: Counts, hits: Counts) -> Floats:
        return _one_item(1 + gain, 1.0, size, hits, np.maximum(0, device.pad - size) * each, device.pad)

    return likelihood


def _olh(device: Any, told: Counts, entries: Entries) -> Likelihood:
    kept = device.item_chances()[0]
    missed = (1 - kept) / (device.buckets - 1)
    # The hash function is sent, so that everybody sees which dummies would have been told.
    sent = np.asarray(entries.sent.value)
    numbers = device.dimensions + np.arange(device.pad)
    inside = buckets_of(sent[:, :1], numbers[None, :], device.buckets) == sent[:, 1:]
    later = np.zeros((len(sent), device.pad + 1), dtype=np.int64)  # how many dummies from each place on
    later[:, :-1] = np.cumsum(inside[:, ::-1], axis=1)[:, ::-1]

    def likelihood(size: Counts, hits: Counts) -> Floats:
        used = np.minimum(size, device.pad)
        among = later[np.arange(len(used)), used]
        dummies = kept * among + missed * (device.pad - used - among)
        return _one_item(kept, missed, size, hits, dummies, device.pad)

    return likelihood


def _privset(device: Any, told: Counts, entries: Entries) -> Likelihood:
    from scipy.stats import hypergeom

    gain, pad, most = math.expm1(device._support.loss), device.pad, device.overlap - 1

    def likelihood(size: Counts, hits: Counts) -> Floats:
        # P[the padded set is met in at least `overlap`]: dummies are drawn into the report, or items into the set.
        fits = size <= pad
        own = np.minimum(size, pad)
        by_dummies = hypergeom.sf(most - hits, pad, pad - own, np.clip(device.m - told, 0, pad))
        by_items = hypergeom.sf(most, np.maximum(size, pad), np.minimum(hits, np.maximum(size, pad)), pad)
        return np.asarray(np.log1p(gain * np.where(fits, by_dummies, by_items)))

    return likelihood


_LIKELIHOODS: dict[str, Callable[[Any, Counts, Entries], Likelihood]] = {
    "oue": _oue,
    "subset": _subset,
    "olh": _olh,
    "privset": _privset,
}
