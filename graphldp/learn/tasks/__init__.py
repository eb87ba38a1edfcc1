"""Tasks: one file each. Each module of this folder is imported, which registers its task."""

import importlib
import pkgutil

from graphldp.learn.tasks.base import Objective, Targets, Task
from graphldp.learn.tasks.registry import register_task, task, task_names

for _module in sorted(found.name for found in pkgutil.iter_modules(__path__)):
    importlib.import_module(f"{__name__}.{_module}")

__all__ = ["Objective", "Targets", "Task", "register_task", "task", "task_names"]
