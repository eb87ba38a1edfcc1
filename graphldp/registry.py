"""Entries by name: recipes and functions are listed at once, classes by the decorator on each."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, TypeVar

from graphldp.errors import OptionError, did_you_mean, unknown_name

__all__ = ["Registry", "check_options"]

T = TypeVar("T")
M = TypeVar("M")
C = TypeVar("C", bound=type[Any])


class Registry(dict[str, T]):
    """The entries of one kind by name: those that are listed in their order, those that register themselves sorted.

    Args:
        kind: what one of them is, in the words of errors: `mechanism`, `method`.
        entries: what is listed at once.
    """

    def __init__(self, kind: str, entries: Mapping[str, T] | None = None) -> None:
        super().__init__(entries or {})
        self.kind = kind

    def __missing__(self, name: str) -> NoReturn:
        """Refuse an unknown name with the valid ones and the nearest."""
        raise unknown_name(self.kind, name, self)

    def register(self, name: str) -> Callable[[C], C]:
        """Register a class under a name, which is given once, and tell the class."""

        def add(cls: C) -> C:
            if name in self:
                former: Any = self[name]
                raise ValueError(f"{self.kind} {name!r} is registered twice: {former.__name__} and {cls.__name__}")
            cls.name = name
            entries: dict[str, Any] = {**self, name: cls}
            self.clear()
            self.update(sorted(entries.items()))
            return cls

        return add

    def make(self: Registry[type[M]], name: str, options: Mapping[str, Any]) -> M:
        """Return an instance of the class of that name; an option that it does not have is an error."""
        cls: Any = self[name]
        check_options(f"{self.kind} {name}", options, [one.name for one in dataclasses.fields(cls)])
        made: M = cls(**options)
        return made


def check_options(owner: str, given: Iterable[str], valid: Iterable[str]) -> None:
    """Refuse an option that its owner does not have, with those that it has."""
    known = list(valid)
    for option in given:
        if option not in known:
            hint = did_you_mean(option, known)
            it = " It" if hint else "; it"
            raise OptionError(f"{owner} has no option {option!r}{hint}{it} has: {', '.join(known) or 'none'}")
