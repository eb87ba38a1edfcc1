"""What a result has spent of each person's budget, derived from the answers that it was made of.

An answer is a draw of a release: what a person's device said when it was asked once. A release is told apart from
others by everything that shaped it (data, mechanism, budget, options, range, levels, address); its draws are told
apart by their seeds. A person who answers twice spends twice, whether to two releases or to two draws of one.
What leads back to the same draw of the same release counts once: everything computed from a report is
post-processing.

Draws add up where they meet in one artifact: a kept model is chosen among runs on several draws, and so is what its
search has chosen. A row of a table is the mean over runs that repeat one experiment, so it states what the people of
one run spend (`Ledger.once`).

Budgets of different units never add up: a promise per edge is not a promise per user, so each unit has its own total.
An artifact that does not say what it was made of costs an unknown amount, never nothing.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context
from typing import Any

from graphldp.errors import ArtifactError, OptionError

__all__ = ["Ledger", "Spend", "draws_of", "epsilon_text", "ledger_from_meta", "number", "release_of", "spends_of"]

# What an artifact of that kind releases about a person, where its metadata does not say so itself.
_WHAT = {"reports": "features", "levels": "levels", "labels": "labels", "links": "links", "degrees": "degrees"}
_FEATURES = "features"
_FREE = ("graph",)  # what is public, or was never released
_ONE = ("",)  # the draws of a release that was made once and whose seed is of no matter
_OWN = ("seeds", "seed", "ledger", "release")  # what tells apart draws, or says what others tell apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """One release about a person, and which of its draws were used.

    Attributes:
        what: what it is about: features, levels, labels, links, importance, ...
        epsilon: the nominal budget of one draw: what the release was asked to spend.
        delta: the probability mass that may exceed it.
        per: whose budget it is: `user` (the whole record) or `edge` (one relationship).
        mean: the mean budget of the users, where it differs between them.
        max: the largest budget of any user.
        source: which release it is; two spends with one source are draws of one release.
        draws: which draws of it were used; each of them spends again.
        known: whether it is known at all what it has spent; the budgets are 0 where it is not.
    """

    what: str
    epsilon: float
    delta: float = 0.0
    per: str = "user"
    mean: float | None = None
    max: float | None = None
    source: str = ""
    draws: tuple[str, ...] = _ONE
    known: bool = True

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
        if not self.draws or len(set(self.draws)) != len(self.draws):
            raise OptionError(f"spend on {self.what!r}: its draws must be named, each once, got {list(self.draws)}")

    @property
    def times(self) -> int:
        """How often a person has answered."""
        return len(self.draws)

    @property
    def uniform(self) -> bool:
        """Whether every user spends the nominal budget."""
        return self.mean == self.epsilon == self.max

    @property
    def text(self) -> str:
        """What was spent on what: 'features 1.0', 'features 1.0 x 12 draws', 'importance unknown'."""
        if not self.known:
            return f"{self.what} unknown"
        return f"{self.what} {number(self.epsilon)}" + f" x {self.times} draws" * (self.times > 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """All releases that one result used, with the draws of each."""

    spends: tuple[Spend, ...] = ()

    def units(self) -> list[str]:
        """Return whose budgets are spent, users first."""
        found = {spend.per for spend in self.spends}
        return sorted(found, key=lambda per: (per != "user", per))

    def of_unit(self, per: str) -> Ledger:
        """Return what was spent of the budgets of one unit."""
        return Ledger(spends=tuple(spend for spend in self.spends if spend.per == per))

    def once(self) -> Ledger:
        """Return what the people of one run spend: one draw of each release."""
        return Ledger(spends=tuple(replace(spend, draws=spend.draws[:1]) for spend in self.spends))

    def of_seeds(self, seeds: Collection[int]) -> Ledger:
        """Return what was spent by a result that used the draws of these seeds alone.

        A release that has no draw of such a seed serves all of them (one collection, or one file of scores): all of
        its draws count.
        """
        names = {str(seed) for seed in seeds}
        kept = ((spend, tuple(draw for draw in spend.draws if draw in names)) for spend in self.spends)
        return Ledger(spends=tuple(replace(spend, draws=draws or spend.draws) for spend, draws in kept))

    def total(self, per: str = "user") -> Spend:
        """Return the sum over all draws of all releases about that unit.

        Basic composition, exact for independent draws. Where something is unknown, the sum is what is known.
        """
        own = [spend for spend in self.spends if spend.per == per]
        return Spend(
            what="total",
            epsilon=_add(spend.times * spend.epsilon for spend in own),
            delta=min(1.0, _add(spend.times * spend.delta for spend in own)),
            per=per,
            mean=_add(spend.times * _value(spend.mean) for spend in own),
            max=_add(spend.times * _value(spend.max) for spend in own),
            known=all(spend.known for spend in own),
        )

    def text(self) -> str:
        """Return 'total epsilon per user: features 1.0 + labels 1.0 = 2.0', one clause for each unit."""
        if not self.spends:
            return "total epsilon per user: 0"
        return "; ".join(self._clause(per) for per in self.units())

    def _clause(self, per: str) -> str:
        own = [spend for spend in self.spends if spend.per == per]
        total = self.total(per)
        text = f"total epsilon per {per}: {' + '.join(spend.text for spend in own)}"
        if not total.known:
            least = _value(total.max)
            return f"{text} = unknown" + (f", and at least {number(least)}" if least else "")
        if len(own) > 1 or own[0].times > 1:
            text += f" = {number(total.epsilon)}"
        if total.delta:
            text += f", delta {total.delta:.6g}"
        if not total.uniform:
            mean = number(_at_least(_value(total.mean)))
            text += f" (nominal; {per}s: mean {mean}, maximum {number(_value(total.max))})"
        return text

    def as_json(self) -> list[dict[str, Any]]:
        """Return the spends as JSON-able values; infinite budgets become 'inf'."""
        return [_as_json(spend) for spend in self.spends]

    @staticmethod
    def from_json(value: str | Iterable[Mapping[str, Any]]) -> Ledger:
        """Return the ledger that `as_json` (or its text) describes."""
        rows = json.loads(value) if isinstance(value, str) else value
        return Ledger(spends=tuple(_spend(row) for row in rows))


def spends_of(meta: Mapping[str, Any]) -> tuple[Spend, ...]:
    """Return what the artifact with this metadata has spent.

    An artifact says it itself under `ledger` (a list of spends: everything that went into it). Otherwise it is a
    release of its own, described by `mechanism` and `epsilon`, by `epsilon_mean` and `epsilon_max` where users differ,
    and by the `seeds` of its draws. One that says neither has spent an unknown amount, unless it is a graph.
    """
    if "ledger" in meta:
        return Ledger.from_json(meta["ledger"]).spends
    kind = str(meta.get("kind", "reports"))
    if kind in _FREE:
        return ()
    what = str(meta.get("what") or _WHAT.get(kind, _FEATURES))
    if "epsilon" not in meta:
        return (Spend(what=what, epsilon=0.0, known=False),)
    epsilon = _number(meta["epsilon"])
    mean, most = (_number(meta[key]) if meta.get(key) is not None else None for key in ("epsilon_mean", "epsilon_max"))
    if not epsilon and not mean and not most:
        return ()
    return (
        Spend(
            what=what,
            epsilon=epsilon,
            delta=_number(meta.get("delta") or 0.0),
            per=str(meta.get("per", "user")),
            mean=mean,
            max=most,
            source=str(meta.get("release") or ""),
            draws=draws_of(meta),
        ),
    )


def draws_of(meta: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of an artifact's draws: its seeds."""
    seeds = meta.get("seeds", [meta["seed"]] if "seed" in meta else None)
    return _ONE if seeds is None else tuple(str(seed) for seed in seeds)


def release_of(meta: Mapping[str, Any], *further: Any) -> str:
    """Return what identifies a release: everything in its metadata but which of its draws are there.

    `further` is what shaped its draws and does not stand in the metadata: each person's levels, or, of a real
    collection, a number that nobody else has.
    """
    facts = {key: value for key, value in meta.items() if key not in _OWN}
    return _hash([facts, *further])[:32]


def ledger_from_meta(metas: Iterable[Mapping[str, Any]]) -> Ledger:
    """Return the ledger of a result that was made from the artifacts with these metadata.

    Give one metadata for every artifact that was used: reports, levels, labels, links, and each round of a method with
    several. Artifacts that lead back to the same draw of the same release (`release`) count once. One that names no
    release is never taken for another.
    """
    spends: list[Spend] = []
    seen: dict[str, int] = {}
    for meta in metas:
        for spend in spends_of(meta):
            place = seen.get(spend.source)
            if place is None:
                if spend.source:
                    seen[spend.source] = len(spends)
                spends.append(spend)
                continue
            known = spends[place]
            if replace(spend, draws=known.draws) != known:
                raise ArtifactError(
                    f"two artifacts state different budgets for the release {spend.source!r}: "
                    f"{known.epsilon} and {spend.epsilon}; make them again from the same reports"
                )
            spends[place] = replace(known, draws=tuple(dict.fromkeys((*known.draws, *spend.draws))))
    return Ledger(spends=tuple(spends))


def number(value: float) -> str:
    """Return a budget as tables write it: 1.0, 0.01, 1e-06, inf."""
    if math.isinf(value):
        return "inf"
    text = f"{value:.6g}"
    return text if any(mark in text for mark in ".e") else f"{text}.0"


def _at_least(value: float) -> float:
    """Return four digits of a budget, rounded up: what is printed is never less than what was spent."""
    exact = f"{value:.12g}"  # what a sum's own rounding adds is nobody's budget
    return float(Context(prec=4, rounding=ROUND_CEILING).create_decimal(exact))


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _as_json(spend: Spend) -> dict[str, Any]:
    names = ("what", "epsilon", "delta", "per", "mean", "max", "source")
    out = {name: _plain(getattr(spend, name)) for name in names}
    return out | {"draws": list(spend.draws)} | ({} if spend.known else {"known": False})


def _spend(row: Mapping[str, Any]) -> Spend:
    known = {"what", "epsilon", "delta", "per", "mean", "max", "source", "draws", "known"}
    if not known.issuperset(row) or not {"what", "epsilon"} <= set(row):
        raise ArtifactError(f"a ledger's entry has the keys {', '.join(sorted(known))}; got {', '.join(sorted(row))}")
    numbers = {key: _number(row[key]) for key in ("epsilon", "delta", "mean", "max") if row.get(key) is not None}
    words = {key: str(row[key]) for key in ("what", "per", "source") if key in row}
    draws: Sequence[Any] = row.get("draws", _ONE)
    names, told = tuple(str(draw) for draw in draws), bool(row.get("known", True))
    return Spend(**words, **numbers, draws=names, known=told)  # type: ignore[arg-type]


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


def epsilon_text(epsilon: float) -> str:
    """Return a budget as file names and tables write it: 0.1, 1, 1e-06, inf."""
    return "inf" if math.isinf(epsilon) else f"{epsilon:.12g}"
