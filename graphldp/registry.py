"""Classes by name: each list is filled by the decorator on its classes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from graphldp.errors import OptionError, did_you_mean, unknown_name

__all__ = ["Registry", "check_options"]

T = TypeVar("T")
C = TypeVar("C", bound=type[Any])


class Registry(Generic[T]):
    """The classes of one kind by name.

    Args:
        kind: what one of them is, in the words of errors: `mechanism`, `backbone`.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._classes: dict[str, type[T]] = {}

    def register(self, name: str) -> Callable[[C], C]:
        """Register a class under a name, which is given once, and tell the class."""

        def add(cls: C) -> C:
            if name in self._classes:
                raise ValueError(
                    f"{self.kind} {name!r} is registered twice: {self._classes[name].__name__} and {cls.__name__}"
                )
            cls.name = name
            self._classes[name] = cls
            return cls

        return add

    def __iter__(self) -> Iterator[str]:
        """Yield the names, sorted."""
        return iter(sorted(self._classes))

    def __contains__(self, name: object) -> bool:
        return name in self._classes

    def __getitem__(self, name: str) -> type[T]:
        """Return the class of that name; an unknown name is an error that lists the valid ones."""
        if name not in self._classes:
            raise unknown_name(self.kind, name, self._classes)
        return self._classes[name]

    def make(self, name: str, options: Mapping[str, Any]) -> T:
        """Return an instance of the class of that name; an option that it does not have is an error."""
        cls: Any = self[name]
        check_options(f"{self.kind} {name}", options, [one.name for one in dataclasses.fields(cls)])
        made: T = cls(**options)
        return made


def check_options(owner: str, given: Iterable[str], valid: Iterable[str]) -> None:
    """Refuse an option that its owner does not have, with those that it has."""
    known = list(valid)
    for option in given:
        if option not in known:
            hint = did_you_mean(option, known)
            it = " It" if hint else "; it"
            raise OptionError(f"{owner} has no option {option!r}{hint}{it} has: {', '.join(known) or 'none'}")
