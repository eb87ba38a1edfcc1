"""A number for each node: squared or absolute error, MAE, RMSE and R2."""

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
from graphldp.learn.tasks.metrics import mean_absolute_error, r_squared, root_mean_squared_error
from graphldp.learn.tasks.picks import Picks
from graphldp.learn.tasks.registry import register_task
from graphldp.splits import Split

if TYPE_CHECKING:
    from graphldp.learn.problem import Problem, Run

__all__ = ["Numbers", "Regression", "Values", "check_loss"]

LOSSES = ("squared", "absolute")


def check_loss(loss: str) -> None:
    """Refuse a loss that is not known."""
    if loss not in LOSSES:
        raise OptionError(f"loss must be one of {', '.join(LOSSES)}, got {loss!r}")


@dataclass(frozen=True, slots=True, eq=False)
class Values(Targets):
    """The numbers of the training and validation nodes; NaN everywhere else.

    Attributes:
        values: the numbers, in their own unit, in which metrics and predictions are as well.
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
        out = np.full(len(every), np.nan)
        for nodes in (split.train, split.validation):
            out[nodes] = every[nodes]
        if not (standardize and len(split.train)):
            return cls(out)
        mean, spread = float(every[split.train].mean()), float(every[split.train].std())
        return cls(out, mean, spread if spread > 0 else 1.0)

    def check(self, hidden: NDArray[np.bool_]) -> None:
        """Refuse numbers that are missing where they are needed, or there where they must be hidden."""
        nodes = len(hidden)
        if self.values.shape != (nodes,):
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
    """The loss on the training nodes; loss, MAE, RMSE and R2 on the validation nodes."""

    def __init__(self, runs: Sequence[Run], device: torch.device, loss: str):
        self.values = [values_of(run) for run in runs]
        learned = [(one.values - one.mean) / one.scale for one in self.values]
        self.squared = loss == "squared"
        self.train = Picks([run.split.train for run in runs], learned, device, np.float32)
        self.held_out = Picks([run.split.validation for run in runs], learned, device, np.float32)

    def _loss(self, outputs: Tensor, nodes: Picks) -> Tensor:
        error = nodes.choose(outputs).view(nodes.shape) - nodes.target.view(nodes.shape)
        return ((error.square() if self.squared else error.abs()) * nodes.weight).sum(dim=1)

    def loss(self, outputs: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        """Return the training loss of each run."""
        return self._loss(outputs, self.train)

    def validate(self, outputs: Tensor, parameters: Mapping[str, Tensor]) -> tuple[NDArray[np.float64], Metrics]:
        """Return the validation loss of each run."""
        return self._loss(outputs, self.held_out).to("cpu", torch.float64).numpy(), {}

    def summary(self, outputs: Tensor, parameters: Mapping[str, Tensor]) -> Metrics:
        """Return MAE, RMSE and R2 of each run."""
        guess = self.predict(outputs, parameters)["values"].astype(np.float64)
        nodes = self.held_out.nodes
        return number_metrics(
            [(truth.values[some], row[some]) for row, some, truth in zip(guess, nodes, self.values, strict=True)]
        )

    def predict(self, outputs: Tensor, parameters: Mapping[str, Tensor]) -> dict[str, NDArray[Any]]:
        """Return the predicted numbers, in the targets' own unit."""
        learned = outputs[:, :, 0].t().to("cpu", torch.float64).numpy()
        rows = [one.mean + one.scale * row for one, row in zip(self.values, learned, strict=True)]
        return {"values": np.stack(rows).astype(np.float32)}


def number_metrics(pairs: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]]) -> Metrics:
    """Return MAE, RMSE and R2 of each pair of truth and guess."""
    return {
        "mae": np.array([mean_absolute_error(*pair) for pair in pairs]),
        "rmse": np.array([root_mean_squared_error(*pair) for pair in pairs]),
        "r2": np.array([r_squared(*pair) for pair in pairs]),
    }


def values_of(run: Run) -> Values:
    """Return the numbers that a run is trained on."""
    if not isinstance(run.targets, Values):
        raise DataError("regression needs targets=Values.visible(split, values) in each run")
    return run.targets


@register_task("regression")
@dataclass(frozen=True, slots=True, kw_only=True)
class Regression(Task):
    """Predict a number for each node; a run's targets are `Values`.

    Attributes:
        loss: `squared` or `absolute` error.
    """

    name: ClassVar[str]
    loss: str = "squared"

    def __post_init__(self) -> None:
        check_loss(self.loss)

    def outputs(self, classes: int) -> int:
        """Return 1."""
        return 1

    def metrics(self) -> dict[str, float]:
        """Return MAE, RMSE and R2."""
        return {"mae": float("nan"), "rmse": float("nan"), "r2": float("nan")}

    def predictions(self, classes: int) -> dict[str, DTypeLike]:
        """Return the number of each node."""
        return {"values": np.float32}

    def check(self, problem: Problem, runs: Sequence[Run]) -> None:
        """Refuse runs without numbers."""
        for run in runs:
            values_of(run)
            check_nodes(run)

    def objective(self, problem: Problem, runs: Sequence[Run], device: torch.device) -> Numbers:
        """Return the objective of a batch of runs."""
        return Numbers(runs, device, self.loss)
