"""The mechanisms by name: one explicit list, filled by the decorator on each class."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from graphldp.registry import Registry

__all__ = ["NO_FEATURE", "Claim", "lookup", "names", "own_budget", "own_options", "register"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a mechanism promises, to whom, and under which assumptions.

    Attributes:
        epsilon: the privacy loss that no pair of neighbouring records exceeds.
        delta: the probability mass that may exceed it; 0 for pure local differential privacy.
        keeps: whether the exact loss of the law stays within the claim.
        reason: why it does not, with the outputs that show it; empty where it does.
        unit: what one record is.
        neighbours: which two records must be hard to tell apart.
        unprotected: what the report does not hide.
        arithmetic: the arithmetic for which the claim holds.
        outside: what happens to values outside the declared range.
    """

    epsilon: float
    delta: float = 0.0
    keeps: bool = True
    reason: str = ""
    unit: str = "one node's whole feature vector"
    neighbours: str = "any two feature vectors"
    unprotected: str = "edges, labels, the number of nodes"
    arithmetic: str = "float64 probabilities; real-valued reports are rounded to a public grid before they leave"
    outside: str = "values are clamped to [low, high] first; NaN is refused"


NO_FEATURE = ("level", "label")  # the kinds that randomise one whole number that is no feature

MECHANISMS: Registry[type[Any]] = Registry("mechanism")
register = MECHANISMS.register
lookup = MECHANISMS.__getitem__


def names(kind: str | None = None) -> list[str]:
    """Return the registered names, sorted; of one kind only (`scalar`, `vector`, `level`, `label`) where one is given.

    A scalar mechanism also has a vector form; a vector mechanism has none for a single value; a level mechanism
    randomises privacy levels and a label mechanism labels, not features.
    """
    return [name for name in MECHANISMS if kind in (None, MECHANISMS[name].kind)]


def own_budget(name: str) -> float | None:
    """Return the only budget that a mechanism can have (0 of a coin, infinity of the value itself), or None."""
    found: float | None = getattr(lookup(name), "own_budget", None)
    return found


def own_options(cls: type[Any], shared: type[Any]) -> list[str]:
    """Return the options that a class has beyond those that all of its kind share."""
    common = {field.name for field in fields(shared)}
    return [field.name for field in fields(cls) if field.name not in common]


def option_values(instance: Any, shared: type[Any]) -> dict[str, Any]:
    """Return an instance's own options as JSON-able values."""
    keep = own_options(type(instance), shared)
    return {key: value for key, value in asdict(instance).items() if key in keep}
