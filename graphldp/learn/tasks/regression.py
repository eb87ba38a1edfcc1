"""A number for each node: squared or absolute error, MAE and R2."""

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
from graphldp.learn.tasks.metrics import mean_absolute_error, r_squared
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
    """The numbers of the training and validation nodes; NaN everywhere else."""

    values: NDArray[np.float64]

    @classmethod
    def visible(cls, split: Split, values: ArrayLike) -> Values:
        """Return what a run may see of everybody's numbers."""
        every = np.asarray(values, dtype=np.float64)
        out = np.full(len(every), np.nan)
        for nodes in (split.train, split.validation):
            out[nodes] = every[nodes]
        return cls(out)

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

    def digest(self) -> bytes:
        """Return a hash of the numbers."""
        return hashlib.sha256(b"values" + np.ascontiguousarray(self.values, dtype=np.float64).tobytes()).digest()


class Numbers(Objective):
    """The loss on the training nodes; loss, MAE and R2 on the validation nodes."""

    def __init__(self, runs: Sequence[Run], device: torch.device, loss: str):
        values = [values_of(run).values for run in runs]
        self.squared = loss == "squared"
        self.train = Picks([run.split.train for run in runs], values, device, np.float32)
        self.held_out = Picks([run.split.validation for run in runs], values, device, np.float32)

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
        """Return MAE and R2 of each run."""
        nodes = self.held_out
        guess = self.predict(outputs, parameters)["values"].astype(np.float64)
        pairs = [(truth[one], row[one]) for row, one, truth in zip(guess, nodes.nodes, nodes.targets, strict=True)]
        return {
            "mae": np.array([mean_absolute_error(*pair) for pair in pairs]),
            "r2": np.array([r_squared(*pair) for pair in pairs]),
        }

    def predict(self, outputs: Tensor, parameters: Mapping[str, Tensor]) -> dict[str, NDArray[Any]]:
        """Return the predicted numbers."""
        return {"values": np.ascontiguousarray(outputs[:, :, 0].t().to("cpu", torch.float32).numpy())}


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

    def outputs(self, problem: Problem) -> int:
        """Return 1."""
        return 1

    def metrics(self) -> dict[str, float]:
        """Return MAE and R2."""
        return {"mae": float("nan"), "r2": float("nan")}

    def predictions(self) -> dict[str, DTypeLike]:
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
