"""What a result has spent of each person's budget, added up from the artifacts that it was made of.

Budgets of one unit (a user, an edge) add up: releases about the same record compose sequentially. Budgets of
different units never do: a promise per edge is not a promise per user, so each unit has its own total. What was
spent once is counted once, however many artifacts lead back to it: everything computed from a report is
post-processing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from graphldp.errors import ArtifactError, OptionError

__all__ = ["Ledger", "Spend", "ledger_from_meta", "spends_of"]

# What an artifact of that kind releases about a person, where its metadata does not say so itself.
_WHAT = {"reports": "features", "levels": "levels", "labels": "labels", "links": "links", "degrees": "degrees"}
_FEATURES = "features"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """One release about a person.

    Attributes:
        what: what it is about: features, levels, labels, links, importance, ...
        epsilon: the nominal budget: what the release was asked to spend.
        delta: the probability mass that may exceed it.
        per: whose budget it is: `user` (the whole record) or `edge` (one relationship).
        mean: the mean budget of the users, where it differs between them.
        max: the largest budget of any user.
        source: which release it is (an artifact's hash or address); two spends with one source are one release.
    """

    what: str
    epsilon: float
    delta: float = 0.0
    per: str = "user"
    mean: float | None = None
    max: float | None = None
    source: str = ""

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta", "mean", "max"):
            value = getattr(self, name)
            if value is None and name in ("mean", "max"):
                object.__setattr__(self, name, self.epsilon)
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
                raise OptionError(f"spend on {self.what!r}: {name} must be a number of at least 0, got {value!r}")
        if not self.delta <= 1:
            raise OptionError(f"spend on {self.what!r}: delta is a probability, got {self.delta}")
        if not self.what or not self.per:
            raise OptionError("a spend must say what it is about and whose budget it is; got an empty word")

    @property
    def uniform(self) -> bool:
        """Whether every user spends the nominal budget."""
        return self.mean == self.epsilon == self.max


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """All releases that one result used."""

    spends: tuple[Spend, ...] = ()

    def units(self) -> list[str]:
        """Return whose budgets are spent, users first."""
        found = {spend.per for spend in self.spends}
        return sorted(found, key=lambda per: (per != "user", per))

    def total(self, per: str = "user") -> Spend:
        """Return the sum over all releases about that unit (basic composition, exact for independent releases)."""
        own = [spend for spend in self.spends if spend.per == per]
        return Spend(
            what="total",
            epsilon=_add(spend.epsilon for spend in own),
            delta=min(1.0, _add(spend.delta for spend in own)),
            per=per,
            mean=_add(_value(spend.mean) for spend in own),
            max=_add(_value(spend.max) for spend in own),
        )

    def text(self) -> str:
        """Return 'total epsilon per user: features 1.0 + labels 1.0 = 2.0', one clause for each unit."""
        if not self.spends:
            return "total epsilon per user: 0"
        return "; ".join(self._clause(per) for per in self.units())

    def _clause(self, per: str) -> str:
        own = [spend for spend in self.spends if spend.per == per]
        total = self.total(per)
        parts = " + ".join(f"{spend.what} {number(spend.epsilon)}" for spend in own)
        text = f"total epsilon per {per}: {parts}"
        if len(own) > 1:
            text += f" = {number(total.epsilon)}"
        if total.delta:
            text += f", delta {total.delta:.6g}"
        if not total.uniform:
            text += f" (nominal; {per}s: mean {number(_value(total.mean))}, maximum {number(_value(total.max))})"
        return text

    def as_json(self) -> list[dict[str, Any]]:
        """Return the spends as JSON-able values; infinite budgets become 'inf'."""
        return [{key: _plain(value) for key, value in asdict(spend).items()} for spend in self.spends]

    @staticmethod
    def from_json(value: str | Iterable[Mapping[str, Any]]) -> Ledger:
        """Return the ledger that `as_json` (or its text) describes."""
        rows = json.loads(value) if isinstance(value, str) else value
        return Ledger(spends=tuple(_spend(row) for row in rows))


def spends_of(meta: Mapping[str, Any]) -> tuple[Spend, ...]:
    """Return what the artifact with this metadata has spent.

    An artifact says it itself under `ledger` (a list of spends: everything that went into it). Otherwise it is a
    release of its own, described by `mechanism` and `epsilon`, and by `epsilon_mean` and `epsilon_max` where users
    differ. Metadata without a budget (a graph, a table) spends nothing.
    """
    if "ledger" in meta:
        return Ledger.from_json(meta["ledger"]).spends
    if "epsilon" not in meta:
        return ()
    epsilon = _number(meta["epsilon"])
    mean, most = (_number(meta[key]) if meta.get(key) is not None else None for key in ("epsilon_mean", "epsilon_max"))
    if not epsilon and not mean and not most:
        return ()
    what = str(meta.get("what") or _WHAT.get(str(meta.get("kind", "reports")), _FEATURES))
    return (
        Spend(
            what=what,
            epsilon=epsilon,
            delta=_number(meta.get("delta") or 0.0),
            per=str(meta.get("per", "user")),
            mean=mean,
            max=most,
            source=_source(meta, what),
        ),
    )


def ledger_from_meta(metas: Iterable[Mapping[str, Any]]) -> Ledger:
    """Return the ledger of a result that was made from the artifacts with these metadata.

    Give one metadata for every artifact that was used: reports, levels, labels, links, and each round of a method with
    several. Two artifacts that lead back to the same release (same `source`) count once; a second round counts again.
    """
    spends: list[Spend] = []
    seen: dict[str, Spend] = {}
    for meta in metas:
        for spend in spends_of(meta):
            if spend.source and spend.source in seen:
                if seen[spend.source] != spend:
                    raise ArtifactError(
                        f"two artifacts state different budgets for the release {spend.source!r}: "
                        f"{seen[spend.source].epsilon} and {spend.epsilon}; make them again from the same reports"
                    )
                continue
            if spend.source:
                seen[spend.source] = spend
            spends.append(spend)
    return Ledger(spends=tuple(spends))


def number(value: float) -> str:
    """Return a budget as tables write it: 1.0, 0.01, 1e-06, inf."""
    if math.isinf(value):
        return "inf"
    text = f"{value:.6g}"
    return text if any(mark in text for mark in ".e") else f"{text}.0"


def _source(meta: Mapping[str, Any], what: str) -> str:
    """Return what identifies a release: its own hash, or what its draws were addressed by."""
    for key in ("source", "release"):
        if meta.get(key):
            return str(meta[key])
    keys = ("dataset", "mechanism", "epsilon", "options", "seed", "round")
    address = {key: meta[key] for key in keys if key in meta}
    return f"{what} {json.dumps(address, sort_keys=True, default=str)}" if "dataset" in address else ""


def _spend(row: Mapping[str, Any]) -> Spend:
    known = {"what", "epsilon", "delta", "per", "mean", "max", "source"}
    if not known.issuperset(row) or not {"what", "epsilon"} <= set(row):
        raise ArtifactError(f"a ledger's entry has the keys {', '.join(sorted(known))}; got {', '.join(sorted(row))}")
    numbers = {key: _number(row[key]) for key in ("epsilon", "delta", "mean", "max") if row.get(key) is not None}
    words = {key: str(row[key]) for key in ("what", "per", "source") if key in row}
    return Spend(**words, **numbers)  # type: ignore[arg-type]


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise ArtifactError(f"a budget in an artifact's metadata must be a number or 'inf', got {value!r}") from error


def _value(value: float | None) -> float:
    return 0.0 if value is None else value


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _add(values: Iterable[float]) -> float:
    return math.fsum(values)
