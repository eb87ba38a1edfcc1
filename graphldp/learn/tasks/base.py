"""What runs are trained for: a task's options, and its objective for a batch of runs.

A backbone gives each node a row of outputs. A task says how wide that row is, adds parameters of its own (its head) if
it needs any, and turns the outputs into one loss per run, metrics and predictions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

from graphldp.errors import OptionError
from graphldp.learn.models.base import Parameter

if TYPE_CHECKING:
    from graphldp.learn.problem import Problem, Run
    from graphldp.learn.tasks.private import LabelChannel

__all__ = ["Metrics", "Objective", "Targets", "Task"]

Metrics = dict[str, NDArray[np.float64]]


class Targets(ABC):
    """What a run may see of its targets, where they are not the classes of nodes; never those of the test part."""

    @abstractmethod
    def digest(self) -> bytes:
        """Return a hash of everything it holds."""

    @abstractmethod
    def check(self, hidden: NDArray[np.bool_]) -> None:
        """Refuse targets that do not fit the nodes; of each it is said whether it is outside train and validation."""

    def part(self, nodes: NDArray[np.int64]) -> Targets:
        """Return the targets of some nodes, in their order; of targets that belong to single nodes alone."""
        raise OptionError(f"{type(self).__name__} are not targets of single nodes: they cannot be taken in batches")


class Objective(ABC):
    """A task for the runs of one batch; outputs are [nodes, runs, width], parameters have a leading run axis."""

    @abstractmethod
    def loss(self, outputs: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        """Return the training loss of each run."""

    @abstractmethod
    def validate(self, outputs: Tensor, parameters: Mapping[str, Tensor]) -> tuple[NDArray[np.float64], Metrics]:
        """Return the validation loss of each run, and the metrics that cost next to nothing; after every update."""

    @abstractmethod
    def summary(self, outputs: Tensor, parameters: Mapping[str, Tensor]) -> Metrics:
        """Return the other validation metrics, of the best parameters; once per run."""

    def predict(self, outputs: Tensor, parameters: Mapping[str, Tensor]) -> dict[str, NDArray[np.generic]]:
        """Return what the parameters predict, runs x nodes, under the names of `Task.predictions`."""
        return {}


class Task(ABC):
    """A frozen dataclass of options with these methods, registered under a name.

    Attributes:
        by_node: whether the loss is a mean over single nodes, so that some of them are a batch.
    """

    name: ClassVar[str]
    by_node: ClassVar[bool] = True

    @abstractmethod
    def outputs(self, classes: int) -> int:
        """Return how many outputs the backbone has per node; `classes` are the problem's."""

    @abstractmethod
    def metrics(self) -> dict[str, float]:
        """Return the names of the validation metrics, each with the value of a run that never had a finite loss."""

    @abstractmethod
    def check(self, problem: Problem, runs: Sequence[Run]) -> None:
        """Refuse runs that lack what the task needs."""

    @abstractmethod
    def objective(self, problem: Problem, runs: Sequence[Run], device: torch.device) -> Objective:
        """Return the objective of a batch of runs."""

    def parameters(self) -> dict[str, Parameter]:
        """Return the parameters of the head, of one run; their names start with `task_`."""
        return {}

    def under(self, channel: LabelChannel) -> Task:
        """Return the task where labels have gone through a channel, of one that learns labels."""
        raise OptionError(f"task {self.name!r} learns no labels that could be noisy")

    def predictions(self, classes: int) -> dict[str, DTypeLike]:
        """Return the names and types of what is predicted for each node; `classes` are the problem's."""
        return {}

    def key(self, run: Run) -> Hashable:
        """Return what runs must have in common to be computed in one batch, beside the graph."""
        return None

    def memory(self, run: Run, outputs: int) -> int:
        """Return the bytes that the objective takes for a run beside the outputs themselves; an estimate."""
        return 0
