"""Tasks by name."""

from __future__ import annotations

from typing import Any

from graphldp.learn.tasks.base import Task
from graphldp.registry import Registry

__all__ = ["register_task", "task", "task_names"]

TASKS: Registry[type[Task]] = Registry("task")
register_task = TASKS.register


def task_names() -> tuple[str, ...]:
    """Return the registered names, sorted."""
    return tuple(TASKS)


def task(name: str, **options: Any) -> Task:
    """Return the task of that name with its options, for example `task('link-prediction', objective='pairwise')`."""
    written = name.replace("_", "-")
    return TASKS.make(written if written in TASKS else name, options)
