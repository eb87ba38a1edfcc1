"""A number for each node, or several: learned by a loss and measured as it says (`graphldp.tasks.TrainingLoss`)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike, DTypeLike, NDArray
from torch import Tensor

from graphldp.errors import DataError, OptionError
from graphldp.learn.tasks.base import Metrics, Objective, Targets, Task
from graphldp.learn.tasks.classification import check_nodes
from graphldp.learn.tasks.picks import Picks
from graphldp.learn.tasks.registry import register_task
from graphldp.splits import Split
from graphldp.tasks import TrainingLoss, loss_of

if TYPE_CHECKING:
    from graphldp.learn.problem import Problem, Run

__all__ = ["Numbers", "Regression", "Values", "predicted_numbers", "scores_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Values(Targets):
    """The numbers of the training and validation nodes; NaN everywhere else.

    Attributes:
        values: the numbers, [nodes] or [nodes, width], in their own unit, in which metrics and predictions are as well.
        mean, scale: what the model learns is (value - mean) / scale.
    """

    values: NDArray[np.float64]
    mean: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.mean) and 0 < self.scale < np.inf):
            raise OptionError(f"a target's mean must be finite and its scale > 0, got {self.mean} and {self.scale}")

    @classmethod
    def visible(cls, split: Split, values: ArrayLike, *, standardize: bool = False) -> Values:
        """Return what a run may see of everybody's numbers.

        With `standardize` the model learns them on the scale on which the training nodes have a mean of 0 and a
        variance of 1: a learning rate and a weight decay then mean the same whatever the numbers' unit.
        """
        every = np.asarray(values, dtype=np.float64)
        out = np.full(every.shape, np.nan)
        for nodes in (split.train, split.validation):
            out[nodes] = every[nodes]
        if not (standardize and len(split.train)):
            return cls(out)
        mean, spread = float(every[split.train].mean()), float(every[split.train].std())
        return cls(out, mean, spread if spread > 0 else 1.0)

    def check(self, hidden: NDArray[np.bool_]) -> None:
        """Refuse numbers that are missing where they are needed, or there where they must be hidden."""
        nodes = len(hidden)
        if self.values.ndim not in (1, 2) or len(self.values) != nodes:
            raise DataError(f"{nodes} nodes need {nodes} values, got {self.values.shape}")
        if not np.isfinite(self.values[~hidden]).all():
            raise DataError("each train and validation node needs a finite value")
        if not np.isnan(self.values[hidden]).all():
            raise DataError(
                "values outside train and validation must be hidden (NaN): use Values.visible(split, values)"
            )

    def part(self, nodes: NDArray[np.int64]) -> Values:
        """Return the numbers of some nodes, on the same scale."""
        return Values(self.values[nodes], self.mean, self.scale)

    def digest(self) -> bytes:
        """Return a hash of the numbers."""
        numbers = np.append(np.asarray(self.values, dtype=np.float64), (self.mean, self.scale))
        return hashlib.sha256(b"values" + numbers.tobytes()).digest()


class Numbers(Objective):
    """The loss on the training nodes; the loss and its measures on the validation nodes."""

    def __init__(self, runs: Sequence[Run], device: torch.device, loss: str):
        self.values = [values_of(run) for run in runs]
        learned = [(one.values - one.mean) / one.scale for one in self.values]
        self.kind = loss_of(loss)
        self.train = Picks([run.split.train for run in runs], learned, device, np.float32)
        self.held_out = Picks([run.split.validation for run in runs], learned, device, np.float32)

    def _loss(self, outputs: Tensor, nodes: Picks) -> Tensor:
        each = self.kind.of(nodes.choose(outputs), nodes.target.view(-1, outputs.shape[2])).mean(dim=1)
        return (each.view(nodes.shape) * nodes.weight).sum(dim=1)

    def loss(self, outputs: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        """Return the training loss of each run."""
        return self._loss(outputs, self.train)

    def validate(self, outputs: Tensor, parameters: Mapping[str, Tensor]) -> tuple[NDArray[np.float64], Metrics]:
        """Return the validation loss of each run."""
        return self._loss(outputs, self.held_out).to("cpu", torch.float64).numpy(), {}

    def summary(self, outputs: Tensor, parameters: Mapping[str, Tensor]) -> Metrics:
        """Return the measures of each run."""
        guess = self.predict(outputs, parameters)["values"].astype(np.float64)
        nodes = self.held_out.nodes
        pairs = [(truth.values[some], row[some]) for row, some, truth in zip(guess, nodes, self.values, strict=True)]
        return scores_of(self.kind, pairs)

    def predict(self, outputs: Tensor, parameters: Mapping[str, Tensor]) -> dict[str, NDArray[Any]]:
        """Return the predicted numbers, in the targets' own unit."""
        learned = predicted_numbers(self.kind, outputs.transpose(0, 1))
        rows = [one.mean + one.scale * row for one, row in zip(self.values, learned, strict=True)]
        return {"values": np.stack(rows).astype(np.float32)}


def predicted_numbers(loss: TrainingLoss, outputs: Tensor) -> NDArray[np.float64]:
    """Return what outputs [..., width] predict, on the learned scale: [...] where a node has one number alone."""
    found = loss.predicts(outputs if loss.several else outputs[..., -1])
    return np.asarray(found.to("cpu", torch.float64).numpy())


def scores_of(loss: TrainingLoss, pairs: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]]) -> Metrics:
    """Return the loss's measures of each pair of truth and guess."""
    found = [loss.scores(*pair) for pair in pairs]
    return {one.name: np.array([scores[one.name] for scores in found]) for one in loss.measures}


def values_of(run: Run) -> Values:
    """Return the numbers that a run is trained on."""
    if not isinstance(run.targets, Values):
        raise DataError("regression needs targets=Values.visible(split, values) in each run")
    return run.targets


@register_task("regression")
@dataclass(frozen=True, slots=True, kw_only=True)
class Regression(Task):
    """Predict a number for each node, or one for each class or label; a run's targets are `Values`.

    Attributes:
        loss: by its name: `squared`, `absolute`, or one of a task's own file.
    """

    name: ClassVar[str]
    loss: str = "squared"

    def __post_init__(self) -> None:
        loss_of(self.loss)

    def outputs(self, classes: int) -> int:
        """Return 1, or a number for each class."""
        return classes if loss_of(self.loss).several else 1

    def metrics(self) -> dict[str, float]:
        """Return the loss's measures."""
        return {one.name: float("nan") for one in loss_of(self.loss).measures}

    def predictions(self, classes: int) -> dict[str, DTypeLike]:
        """Return the numbers of each node."""
        return {"values": (np.float32, (classes,)) if loss_of(self.loss).several else np.float32}

    def check(self, problem: Problem, runs: Sequence[Run]) -> None:
        """Refuse runs without numbers, or with another number of them than the loss takes."""
        for run in runs:
            found = values_of(run).values.shape[1:]
            if found != ((problem.classes,) if loss_of(self.loss).several else ()):
                wanted = f"{problem.classes} numbers" if loss_of(self.loss).several else "one number"
                got = found[0] if found else "one"
                raise DataError(f"the loss {self.loss!r} takes {wanted} of each node, got {got}")
            check_nodes(run)

    def objective(self, problem: Problem, runs: Sequence[Run], device: torch.device) -> Numbers:
        """Return the objective of a batch of runs."""
        return Numbers(runs, device, self.loss)

    def memory(self, run: Run, outputs: int) -> int:
        """Return the bytes of the numbers, of the chosen outputs, and of what their loss keeps."""
        return (len(run.split.train) + len(run.split.validation)) * outputs * 5 * 4
