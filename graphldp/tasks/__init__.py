"""Tasks: one file each. Each module of this folder with an `ENTRY` is a task, and nothing else lists them."""

import importlib
import pkgutil

from graphldp.errors import OptionError
from graphldp.tasks.base import ABSOLUTE, SQUARED, Target, TaskEntry, TrainingLoss

__all__ = ["ABSOLUTE", "ENTRIES", "LOSSES", "SQUARED", "Target", "TaskEntry", "TrainingLoss", "add", "loss_of"]

ENTRIES: dict[str, TaskEntry] = {}
LOSSES: dict[str, TrainingLoss] = {one.name: one for one in (SQUARED, ABSOLUTE)}


def add(entry: TaskEntry) -> None:
    """Add a task, and the loss of its numbers."""
    if entry.task in ENTRIES:
        raise ValueError(f"task {entry.task!r} is there twice")
    if entry.target is not None:
        loss = entry.target.loss
        if LOSSES.setdefault(loss.name, loss) is not loss:
            raise ValueError(f"task {entry.task!r}: another loss has the name {loss.name!r}")
    ENTRIES[entry.task] = entry


def loss_of(name: str) -> TrainingLoss:
    """Return a loss of numbers by its name."""
    if name not in LOSSES:
        raise OptionError(f"loss must be one of {', '.join(LOSSES)}, got {name!r}")
    return LOSSES[name]


for _found in pkgutil.iter_modules(__path__):
    _module = importlib.import_module(f"{__name__}.{_found.name}")
    if hasattr(_module, "ENTRY"):
        add(_module.ENTRY)
