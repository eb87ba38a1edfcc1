"""What a set of artifacts has spent of each person's budget, together, and which of them share a release."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from graphldp.errors import ArtifactError
from graphldp.ledger import Ledger, Spend, ledger_from_meta
from graphldp.stages.files.describe import describe

__all__ = ["Account", "accounts", "relations", "together"]

# What shapes a release and stands in metadata, in the order in which a difference is told.
_SHAPES = (
    *("dataset", "input", "mechanism", "epsilon", "m", "dimensions", "low", "high", "options", "selection", "rounds"),
    *("random", "library"),
)
_MODEL = "spent"  # under which a kept model has its ledger
_OTHER = "different releases, both spend"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One artifact, and what was spent on it.

    Attributes:
        path: the file, or the folder of a graph or a model.
        kind: what it is; `unknown` where it does not say.
        ledger: its releases and their draws.
        meta: what it says of itself.
    """

    path: Path
    kind: str
    ledger: Ledger
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def known(self) -> bool:
        """Whether it says all that was spent on it."""
        return all(spend.known for spend in self.ledger.spends)


def accounts(paths: Iterable[Path]) -> list[Account]:
    """Return what each artifact has spent; a file that does not say it has spent an unknown amount."""
    return [_account(path) for path in paths]


def _account(path: Path) -> Account:
    if not path.exists():
        raise ArtifactError(f"{path} does not exist; name artifacts that are there")
    try:
        found = describe(path)
    except ArtifactError:
        nothing = Spend(what="anything", epsilon=0.0, known=False)
        return Account(path=path, kind="unknown", ledger=Ledger(spends=(nothing,)))
    meta = {**found.meta, "kind": found.kind}
    if _MODEL in meta:
        meta["ledger"] = meta[_MODEL]
    return Account(path=path, kind=found.kind, ledger=ledger_from_meta([meta]), meta=meta)


def together(found: Sequence[Account]) -> Ledger:
    """Return what a person has spent on all of them: what leads back to one draw counts once."""
    return ledger_from_meta({"ledger": one.ledger.as_json()} for one in found)


def relations(found: Sequence[Account], most: int | None = None) -> list[str]:
    """Return a line for each two artifacts that have spent something: which draws they share, or why none.

    Above `most` pairs of different releases these are counted, in one line, and not told one by one.
    """
    spending = [one for one in found if one.ledger.spends]
    told = [(one, two, _relation(one, two)) for one, two in combinations(spending, 2)]
    other = [relation for *_, relation in told if relation.startswith(_OTHER)]
    counting = most is not None and len(other) > most
    lines = [
        f"{one.path} and {two.path}: {relation}"
        for one, two, relation in told
        if not (counting and relation.startswith(_OTHER))
    ]
    return [*lines, f"{len(other)} of {len(told)} pairs are {_OTHER}"] if counting else lines


def _relation(one: Account, two: Account) -> str:
    draws = {spend.source: set(spend.draws) for spend in one.ledger.spends if spend.source}
    shared, other = 0, False
    for spend in two.ledger.spends:
        if spend.source in draws:
            common = draws[spend.source] & set(spend.draws)
            shared += len(common)
            other |= not common
    if shared:
        return f"one release, {shared} {'draw' if shared == 1 else 'draws'} in both: counted once"
    if other:
        return "one release, other draws of it: each draw spends again"
    return f"{_OTHER}: {_difference(one, two)}"


def _difference(one: Account, two: Account) -> str:
    for account in (one, two):
        if any(not spend.source for spend in account.ledger.spends):
            return f"{account.path} does not say which release it is"
    for key in _SHAPES:
        mine, theirs = (account.meta.get(key) for account in (one, two))
        if mine != theirs:
            if isinstance(mine, Mapping) and isinstance(theirs, Mapping):
                key, mine, theirs = next(
                    (f"{key}.{name}", mine.get(name), theirs.get(name))
                    for name in sorted({*mine, *theirs})
                    if mine.get(name) != theirs.get(name)
                )
            if mine is None or theirs is None:
                return f"only {(one if theirs is None else two).path} says its {key}"
            return f"{key} is {_short(mine)} and {_short(theirs)}"
    random = one.meta.get("random")
    if isinstance(random, Mapping) and not random.get("reproducible", True):
        return "two collections, each drawn from the devices' own randomness"
    return "they were shaped by something else, such as other levels of the people"


def _short(value: Any) -> str:
    text = ", ".join(f"{key} {one}" for key, one in value.items()) if isinstance(value, Mapping) else str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
