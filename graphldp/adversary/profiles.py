"""Which of two whole profiles sent this report? The attack that the guarantee is about.

Somebody holds two records, one of them the sender's, and the report. A single attribute is hidden by being one of many
that might have been reported; a whole profile is told by whatever was.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphldp.adversary.readers import Entries
from graphldp.adversary.sets import InformedSets
from graphldp.audit.law import outcomes
from graphldp.client import Randomiser, Reports, VectorMechanism
from graphldp.client.laws.sets import SetValued
from graphldp.client.sampling import gather, is_sparse

__all__ = ["profile_odds"]

Floats: TypeAlias = NDArray[np.float64]
People: TypeAlias = NDArray[np.int64]

_MOST_VALUES = 64  # different ones among the attributes
_BLOCK = 2**20  # reported values that are looked up at a time


def profile_odds(device: VectorMechanism, reports: Reports, features: Any, others: People) -> Floats | None:
    """Return, of each person, log P[her report | her features] / P[her report | those of the person `others` names].

    None where it cannot be said: of mechanisms that hide a level, and of attributes with many different values.
    """
    if isinstance(device, SetValued):
        return InformedSets.of(device, Entries.of(device, reports), features).profile_odds(others)
    values = np.unique(np.append(features.data, 0.0) if is_sparse(features) else features)
    parts = device.parts or ((device,) if device.scalars() else ())
    if not parts or len(values) > _MOST_VALUES:
        return None
    if device.base.deterministic:
        return _different(features, others)
    out = np.zeros(reports.nodes)
    level = np.ones(reports.nodes) if reports.level is None else np.asarray(reports.level)
    for number, part in enumerate(parts, start=1):
        people = np.flatnonzero(level == number)
        for base, places in part.scalars():
            if base is not None:
                out[people] += _summed(base, reports, people, places, features, others, values)
    return out


def _different(features: Any, others: People) -> Floats:
    """Return infinity for everybody whose features are not those of the other person: the report is the data."""
    gap = np.abs(features - features[others]).sum(axis=1)
    return np.where(np.asarray(gap).ravel() > 0, np.inf, 0.0)


def _summed(
    base: Randomiser, reports: Reports, people: People, columns: People, features: Any, others: People, values: Floats
) -> Floats:
    """Return the log odds of these columns of the reports, added up for each of these people."""
    law = outcomes(base, values)
    out = np.zeros(len(people))
    step = max(1, _BLOCK // max(1, len(columns)))
    for start in range(0, len(people), step):
        rows = people[start : start + step]
        shape = (len(rows), len(columns))
        if reports.index is None:
            index = np.broadcast_to(columns.astype(np.int32), shape)
        else:
            index = np.asarray(reports.index)[rows][:, columns]
        sent = np.asarray(reports.value)[rows][:, columns].astype(np.float64)
        place = law.place(sent)
        mine, theirs = (np.searchsorted(values, gather(features, index, who)) for who in (rows, others[rows]))
        logs = law.log_mass
        with np.errstate(invalid="ignore"):
            odds = logs[mine, place] - logs[theirs, place]
        out[start : start + step] = np.where(mine == theirs, 0.0, odds).sum(axis=1)
    return out
