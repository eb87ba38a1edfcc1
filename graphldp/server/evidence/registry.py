"""Evidence by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

from graphldp.errors import OptionError, unknown_name
from graphldp.server.evidence.base import Evidence

__all__ = ["evidence_class", "evidence_names", "make_evidence", "register"]

_EVIDENCE: dict[str, type[Evidence]] = {}
Class = TypeVar("Class", bound=type[Evidence])


def register(name: str) -> Callable[[Class], Class]:
    """Register an evidence class under a name; a name is given once."""

    def decorate(cls: Class) -> Class:
        if name in _EVIDENCE:
            raise ValueError(f"the evidence name {name!r} is registered twice")
        cls.name = name
        _EVIDENCE[name] = cls
        return cls

    return decorate


def evidence_names() -> list[str]:
    """Return the registered names, sorted."""
    return sorted(_EVIDENCE)


def evidence_class(name: str) -> type[Evidence]:
    """Return the class of that name; an unknown name is an error that lists the valid ones."""
    if name not in _EVIDENCE:
        raise unknown_name("evidence", name, _EVIDENCE)
    return _EVIDENCE[name]


def make_evidence(name: str, **options: Any) -> Evidence:
    """Return the evidence of that name with its options, for example `make_evidence('random', width=64)`."""
    cls = evidence_class(name)
    valid = [one.name for one in dataclasses.fields(cls)]  # type: ignore[arg-type]
    for option in options:
        if option not in valid:
            raise OptionError(f"evidence {name} has no option {option!r}; it has: {', '.join(valid) or 'none'}")
    return cls(**options)
