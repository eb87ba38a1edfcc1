"""Tasks: one file each. Each module of this folder with an `ENTRY` is a task, and nothing else lists them."""

import importlib
import pkgutil

from graphldp.tasks.base import Target, TaskEntry

_found = (importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__))
ENTRIES: dict[str, TaskEntry] = {one.ENTRY.task: one.ENTRY for one in _found if hasattr(one, "ENTRY")}

__all__ = ["ENTRIES", "Target", "TaskEntry"]
