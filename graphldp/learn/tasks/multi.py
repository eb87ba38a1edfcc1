"""Two heads on one backbone: the class of each node and a number for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

from graphldp.errors import OptionError
from graphldp.learn.tasks.base import Metrics, Objective, Task
from graphldp.learn.tasks.classification import Classes, NodeClassification
from graphldp.learn.tasks.registry import register_task
from graphldp.learn.tasks.regression import Numbers, Regression
from graphldp.tasks import loss_of

if TYPE_CHECKING:
    from graphldp.learn.problem import Problem, Run
    from graphldp.learn.tasks.private import LabelChannel

__all__ = ["MultiTask"]


class TwoHeads(Objective):
    """The sum of both losses; the last output column is the number, the others are the classes' logits."""

    def __init__(self, classes: Objective, numbers: Numbers, weight: float):
        self.classes, self.numbers, self.weight = classes, numbers, weight

    def loss(self, outputs: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        """Return the training loss of each run."""
        logits, number = outputs[:, :, :-1], outputs[:, :, -1:]
        return self.classes.loss(logits, parameters) + self.weight * self.numbers.loss(number, parameters)

    def validate(self, outputs: Tensor, parameters: Mapping[str, Tensor]) -> tuple[NDArray[np.float64], Metrics]:
        """Return the sum of both validation losses, and the accuracy."""
        one, metrics = self.classes.validate(outputs[:, :, :-1], parameters)
        other, more = self.numbers.validate(outputs[:, :, -1:], parameters)
        return one + self.weight * other, metrics | more

    def summary(self, outputs: Tensor, parameters: Mapping[str, Tensor]) -> Metrics:
        """Return the metrics of both."""
        return self.classes.summary(outputs[:, :, :-1], parameters) | self.numbers.summary(
            outputs[:, :, -1:], parameters
        )

    def predict(self, outputs: Tensor, parameters: Mapping[str, Tensor]) -> dict[str, NDArray[Any]]:
        """Return the predicted classes and numbers."""
        return self.classes.predict(outputs[:, :, :-1], parameters) | self.numbers.predict(
            outputs[:, :, -1:], parameters
        )


@register_task("multi-task")
@dataclass(frozen=True, slots=True, kw_only=True)
class MultiTask(Task):
    """Predict the class of each node and a number; a run holds `labels` and `Values` on the same split.

    The heads are columns of the backbone's last layer; everything before it is shared.

    Attributes:
        weight: of the regression's loss beside the cross entropy.
        loss: of the regression, by its name.
    """

    name: ClassVar[str]
    weight: float = 1.0
    loss: str = "squared"

    def __post_init__(self) -> None:
        if not 0 < self.weight < np.inf:
            raise OptionError(f"weight must be finite and > 0, got {self.weight}")
        if loss_of(self.loss).several:
            raise OptionError(f"multi-task learns one number of each node, and the loss {self.loss!r} is of several")

    def outputs(self, classes: int) -> int:
        """Return the number of classes and one more."""
        return classes + 1

    def under(self, channel: LabelChannel) -> Task:
        """Return the task for labels that went through a channel."""
        from graphldp.learn.tasks.private import PrivateMultiTask

        return PrivateMultiTask(channel=channel, weight=self.weight, loss=self.loss)

    def metrics(self) -> dict[str, float]:
        """Return the metrics of both."""
        return NodeClassification().metrics() | Regression(loss=self.loss).metrics()

    def predictions(self, classes: int) -> dict[str, DTypeLike]:
        """Return the class and the number of each node."""
        return NodeClassification().predictions(classes) | Regression(loss=self.loss).predictions(classes)

    def check(self, problem: Problem, runs: Sequence[Run]) -> None:
        """Refuse what one of both refuses."""
        NodeClassification().check(problem, runs)
        Regression(loss=self.loss).check(problem, runs)

    def objective(self, problem: Problem, runs: Sequence[Run], device: torch.device) -> TwoHeads:
        """Return the objective of a batch of runs."""
        return TwoHeads(Classes(runs, device), Numbers(runs, device, self.loss), self.weight)
