"""What there is to say of a task: what is learned, what it is measured by, and what tables and pages call it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from graphldp.measures import NUMBERS

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray
    from torch import Tensor

    from graphldp.graph import Graph
    from graphldp.measures import Measure

__all__ = ["ABSOLUTE", "SQUARED", "Target", "TaskEntry", "TrainingLoss"]


def _outputs(outputs: Tensor) -> Tensor:
    return outputs


def _mean(seen: NDArray[Any]) -> NDArray[Any]:
    found: NDArray[Any] = seen.mean(axis=0)
    return found


def _number_scores(truth: NDArray[Any], guess: NDArray[Any]) -> dict[str, float]:
    from graphldp.learn.tasks.metrics import number_scores  # numpy, which `--help` does without

    return number_scores(truth, guess)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingLoss:
    """How numbers of nodes are learned, and how good predictions of them are.

    Attributes:
        name: as options and kept models write it.
        of: the loss of each output, from outputs and what they should be: two tensors of one shape.
        predicts: what outputs predict: the outputs themselves, unless it says otherwise.
        measures: what predictions are measured by.
        scores: these measures by their names, from truth and guess, two arrays [nodes] or [nodes, classes].
        standardized: whether the model learns the numbers with a mean of 0 and a variance of 1 on the training nodes.
        several: whether a node has a number for each class, or for each label of a set, and not one alone.
        constant: the same answer for everybody that is best for those who are trained on, given their numbers.
    """

    name: str
    of: Callable[[Tensor, Tensor], Tensor]
    predicts: Callable[[Tensor], Tensor] = _outputs
    measures: tuple[Measure, ...] = NUMBERS
    scores: Callable[[NDArray[Any], NDArray[Any]], Mapping[str, float]] = _number_scores
    standardized: bool = True
    several: bool = False
    constant: Callable[[NDArray[Any]], NDArray[Any]] = _mean


SQUARED = TrainingLoss(name="squared", of=lambda outputs, targets: (outputs - targets).square())
ABSOLUTE = TrainingLoss(name="absolute", of=lambda outputs, targets: (outputs - targets).abs())


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A number of each node that is learned, or several.

    Attributes:
        name: what it is.
        of: what makes it of a graph: [nodes], or [nodes, classes or labels] where the loss is one of several.
        private: whether it is made of what people have; the people of the training and validation part are then taken
            to have given it away, which no epsilon accounts for.
        loss: how it is learned and measured.
    """

    name: str
    of: Callable[[Graph], NDArray[Any]]
    private: bool = True
    loss: TrainingLoss = SQUARED


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
        public: what the learner knows beside the reports, which epsilon says nothing about, by what people may be asked
            for instead: links, labels; or numbers, which nobody can be asked for yet.
        target: the number that is learned, where one is.
        learner: what trains it, by its registered name in `graphldp.learn.tasks`; its own name if empty.
        options: the learner's options that `train` sets, each with its name there.
        longer: how many times longer a learner trains that is told true features, by measurement: where the graph alone
            tells little of what is learned, the others have nothing to learn, and stop early.
    """

    task: str
    title: str
    learns: tuple[Literal["labels", "sets", "numbers", "links"], ...]
    measures: tuple[Measure, ...]
    parts: Literal["nodes", "edges"] = "nodes"
    targets: str
    guess: str
    predicts: str
    public: Mapping[str, str]
    target: Target | None = None
    learner: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    longer: float = 1.0

    def __post_init__(self) -> None:
        if self.target is not None and not set(self.target.loss.measures) <= set(self.measures):
            raise ValueError(f"task {self.task}: its measures lack some of those of its loss, {self.target.loss.name}")

    @property
    def headline(self) -> Measure:
        """The measure that tables, figures and findings are about."""
        return self.measures[0]

    def known(self, asked: Collection[str] = ()) -> list[str]:
        """Return what is public, where people are asked for these things beside their features."""
        return [words for name, words in self.public.items() if name not in asked]

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
