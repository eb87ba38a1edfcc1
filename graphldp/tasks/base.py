"""What there is to say of a task: what is learned, what it is measured by, and what tables and pages call it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from graphldp.graph import Graph
    from graphldp.measures import Measure

__all__ = ["Target", "TaskEntry"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A number of each node that is learned.

    Attributes:
        name: what it is.
        of: what makes it of a graph, [nodes].
        private: whether it is made of what people have; the people of the training and validation part are then taken
            to have given it away, which no epsilon accounts for.
    """

    name: str
    of: Callable[[Graph], NDArray[Any]]
    private: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEntry:
    """A task, by all that others have to know of it; a module of this folder has one, called `ENTRY`.

    Attributes:
        task: its name.
        title: as headings write it.
        learns: what is learned: labels (a class of each node), sets (of labels of each node), numbers or links.
        measures: the headline first.
        parts: what a split consists of: nodes or edges.
        targets: what is learned, in the plural.
        guess: what the row `majority` does, the best that needs neither features nor edges.
        predicts: what a kept model gives.
        public: what the learner knows beside the reports, which epsilon says nothing about.
        target: the number that is learned, where one is.
        learner: what trains it, by its registered name in `graphldp.learn.tasks`; its own name if empty.
        options: the learner's options that `train` sets, each with its name there.
    """

    task: str
    title: str
    learns: tuple[Literal["labels", "sets", "numbers", "links"], ...]
    measures: tuple[Measure, ...]
    parts: Literal["nodes", "edges"] = "nodes"
    targets: str
    guess: str
    predicts: str
    public: str
    target: Target | None = None
    learner: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def headline(self) -> Measure:
        """The measure that tables, figures and findings are about."""
        return self.measures[0]

    @property
    def classes(self) -> bool:
        """Whether classes of nodes are learned."""
        return "labels" in self.learns

    @property
    def sets(self) -> bool:
        """Whether sets of labels of nodes are learned."""
        return "sets" in self.learns

    @property
    def given(self) -> str:
        """What people have given away to be learned from; empty where the target is public."""
        return self.target.name if self.target and self.target.private else ""

    @property
    def disclosed(self) -> str:
        """The same in a sentence."""
        if not self.given:
            return ""
        return (
            f"The number to learn is the {self.given} of a person: private data, which the people of the training and "
            "validation part are taken to have given away. Nothing protects it."
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The measures' names."""
        return tuple(one.name for one in self.measures)
