"""Tasks by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

from graphldp.errors import OptionError, unknown_name
from graphldp.learn.tasks.base import Task

__all__ = ["register_task", "task", "task_names"]

_TASKS: dict[str, type[Task]] = {}
Class = TypeVar("Class", bound=type[Task])


def register_task(name: str) -> Callable[[Class], Class]:
    """Register a task class under a name; a name is given once."""

    def decorate(cls: Class) -> Class:
        if name in _TASKS:
            raise ValueError(f"the task name {name!r} is registered twice")
        cls.name = name
        _TASKS[name] = cls
        return cls

    return decorate


def task_names() -> tuple[str, ...]:
    """Return the registered names, sorted."""
    return tuple(sorted(_TASKS))


def task(name: str, **options: Any) -> Task:
    """Return the task of that name with its options, for example `task('link-prediction', objective='pairwise')`."""
    written = name.replace("_", "-")
    if written not in _TASKS:
        raise unknown_name("task", name, _TASKS)
    cls = _TASKS[written]
    valid = [one.name for one in dataclasses.fields(cls)]  # type: ignore[arg-type]
    for option in options:
        if option not in valid:
            raise OptionError(f"task {name!r} has no option {option!r}. Valid: {', '.join(sorted(valid)) or 'none'}")
    return cls(**options)
