"""What each task is measured by, and which of its measures stands in tables: the headline, always the first one.

Training computes the measures (`graphldp.learn.tasks`), tables and pages say them. `graphldp.tasks` has the tasks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from graphldp.errors import unknown_name

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from graphldp.evaluation import Confidence, Interval
    from graphldp.tasks.base import TaskEntry

__all__ = ["CLASSES", "DEFAULT_TASK", "NUMBERS", "Measure", "canonical_task", "measures_of", "share", "tasks"]

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
        named: whether sentences say its label with a value of it.
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
    named: bool = True

    def interval(self, values: ArrayLike, confidence: Confidence) -> Interval:
        """Return the interval of the mean of stored values, as it is shown: no end is where no value can be."""
        from graphldp.evaluation import mean_interval  # numpy, which `--help` does without

        return mean_interval(values, confidence).within(self.low, self.high).scaled(self.factor)

    @property
    def sign(self) -> int:
        """What turns a difference into a gain: 1 where more is better, -1 where less is."""
        return 1 if self.best == "high" else -1

    @property
    def heading(self) -> str:
        """The label with what is to be known to read a column of it: 'accuracy in percent', 'MAE (less is better)'."""
        unit = " in percent" if self.unit == "%" else ""
        return f"{self.label}{unit}{'' if self.best == 'high' else ' (less is better)'}"

    @property
    def axis(self) -> str:
        """The label with its unit, as a column or an axis has it."""
        return f"{self.label}, {self.unit}" if self.unit else self.label

    @property
    def step(self) -> str:
        """What differences of it are counted in."""
        return self.difference or self.label

    def text(self, shown: float) -> str:
        """Return a shown value as a sentence has it: '84.7 %', 'AUC 87.0 %', 'MAE 0.583'."""
        return f"{self.label} {self.number(shown)}" if self.named else self.number(shown)

    def number(self, shown: float) -> str:
        """Return a shown value with its unit."""
        return f"{shown:.{self.digits}f}{' ' + self.unit if self.unit else ''}"


def share(name: str, label: str, *, named: bool = True) -> Measure:
    """Return a measure that is a share, shown in percent."""
    return Measure(
        name=name, label=label, factor=100.0, unit="%", difference="points", digits=1, low=0.0, high=1.0, named=named
    )


CLASSES = (share("accuracy", "accuracy", named=False), share("macro_f1", "macro-F1"))
NUMBERS = (
    Measure(name="mae", label="MAE", best="low", low=0.0),
    Measure(name="rmse", label="RMSE", best="low", low=0.0),
    Measure(name="r2", label="R²", high=1.0),
)


def _entries() -> dict[str, TaskEntry]:
    from graphldp.tasks import ENTRIES  # they are made of measures

    return ENTRIES


def tasks() -> tuple[str, ...]:
    """Return the names of the tasks, the default first."""
    return tuple(sorted(_entries(), key=lambda name: (name != DEFAULT_TASK, name)))


def canonical_task(name: str) -> str:
    """Return a task's name as it is registered: `link_prediction` is written `link-prediction` here."""
    written = name.replace("_", "-")
    if written not in _entries():
        raise unknown_name("task", name, tasks())
    return written


def measures_of(task: str) -> TaskEntry:
    """Return what there is to say of a task; an unknown name is an error that lists the valid ones."""
    return _entries()[canonical_task(task)]
