"""What each task is measured by, and which of its measures stands in tables: the headline, always the first one.

Training computes the measures (`graphldp.learn.tasks`), tables and pages say them; this module is all that both need.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from graphldp.errors import unknown_name

__all__ = ["DEFAULT_TASK", "Measure", "TaskMeasures", "canonical_task", "measures_of", "tasks"]

DEFAULT_TASK = "node-classification"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One number that a run is judged by.

    Attributes:
        name: as columns write it.
        label: as sentences and headings write it.
        factor: what a stored value is multiplied by to be shown: 100 for shares that are shown as percent.
        unit: behind a shown value; empty where the target has no unit.
        difference: the unit of a difference of two of them.
        best: which end is the good one.
        digits: how many decimals people are shown.
        low, high: between which stored values it must be.
    """

    name: str
    label: str
    factor: float = 1.0
    unit: str = ""
    difference: str = ""
    best: Literal["high", "low"] = "high"
    digits: int = 3
    low: float = float("-inf")
    high: float = float("inf")

    @property
    def sign(self) -> int:
        """What turns a difference into a gain: 1 where more is better, -1 where less is."""
        return 1 if self.best == "high" else -1

    @property
    def heading(self) -> str:
        """The label with what is to be known to read a column of it: 'accuracy in percent', 'MAE (less is better)'."""
        unit = " in percent" if self.unit == "%" else ""
        return f"{self.label}{unit}{'' if self.best == 'high' else ' (less is better)'}"


def _share(name: str, label: str) -> Measure:
    return Measure(name=name, label=label, factor=100.0, unit="%", difference="points", digits=1, low=0.0, high=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskMeasures:
    """How a task is measured.

    Attributes:
        task: its name.
        title: as headings write it.
        measures: the headline first.
        parts: what a split consists of: nodes or edges.
        guess: what the row `majority` answers, in words: the best that needs neither features nor edges.
    """

    task: str
    title: str
    measures: tuple[Measure, ...]
    parts: Literal["nodes", "edges"] = "nodes"
    guess: str

    @property
    def headline(self) -> Measure:
        """The measure that tables, figures and findings are about."""
        return self.measures[0]

    @property
    def names(self) -> tuple[str, ...]:
        """The measures' names."""
        return tuple(one.name for one in self.measures)


_CLASSES = (_share("accuracy", "accuracy"), _share("macro_f1", "macro-F1"))
_NUMBERS = (
    Measure(name="mae", label="MAE", best="low", low=0.0),
    Measure(name="rmse", label="RMSE", best="low", low=0.0),
    Measure(name="r2", label="R²", high=1.0),
)
_TASKS = {
    one.task: one
    for one in (
        TaskMeasures(
            task=DEFAULT_TASK,
            title="node classification",
            measures=_CLASSES,
            guess="the commonest class of the training nodes",
        ),
        TaskMeasures(
            task="link-prediction",
            title="link prediction",
            measures=(_share("auc", "AUC"), _share("average_precision", "average precision")),
            parts="edges",
            guess="the same for every pair, which is chance",
        ),
        TaskMeasures(
            task="regression",
            title="regression",
            measures=_NUMBERS,
            guess="the mean of the training nodes",
        ),
        TaskMeasures(
            task="multi-task",
            title="classification and regression",
            measures=(*_CLASSES, *_NUMBERS),
            guess="the commonest class and the mean of the training nodes",
        ),
    )
}


def tasks() -> tuple[str, ...]:
    """Return the names of the tasks that are measured, the default first."""
    return tuple(_TASKS)


def canonical_task(name: str) -> str:
    """Return a task's name as it is registered: `link_prediction` is written `link-prediction` here."""
    written = name.replace("_", "-")
    if written not in _TASKS:
        raise unknown_name("task", name, _TASKS)
    return written


def measures_of(task: str) -> TaskMeasures:
    """Return how a task is measured; an unknown name is an error that lists the valid ones."""
    return _TASKS[canonical_task(task)]
