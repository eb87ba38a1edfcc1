"""The set of labels of each node: binary cross entropy of every label, micro-F1 and macro-F1."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor
from torch.nn.functional import softplus

from graphldp.errors import DataError
from graphldp.learn.tasks.base import Metrics, Objective, Targets, Task
from graphldp.learn.tasks.classification import check_nodes
from graphldp.learn.tasks.metrics import set_macro_f1, set_micro_f1
from graphldp.learn.tasks.picks import Picks
from graphldp.learn.tasks.registry import register_task
from graphldp.splits import Split

if TYPE_CHECKING:
    from graphldp.learn.problem import Problem, Run

__all__ = ["LabelSets", "MultiLabel", "Sets"]

_HIDDEN = -1


@dataclass(frozen=True, slots=True, eq=False)
class LabelSets(Targets):
    """The labels of the training and validation nodes, nodes x labels: 0 or 1; -1 everywhere else."""

    values: NDArray[np.int8]

    @classmethod
    def visible(cls, split: Split, sets: NDArray[np.bool_]) -> LabelSets:
        """Return what a run may see of everybody's sets."""
        out = np.full(sets.shape, _HIDDEN, dtype=np.int8)
        for nodes in (split.train, split.validation):
            out[nodes] = sets[nodes]
        return cls(out)

    def check(self, hidden: NDArray[np.bool_]) -> None:
        """Refuse labels that are missing where they are needed, or there where they must be hidden."""
        nodes = len(hidden)
        if self.values.ndim != 2 or len(self.values) != nodes:
            raise DataError(f"{nodes} nodes need {nodes} sets of labels, got {self.values.shape}")
        if not np.isin(self.values[~hidden], (0, 1)).all():
            raise DataError("each train and validation node needs all of its yes/no labels")
        if (self.values[hidden] != _HIDDEN).any():
            raise DataError(
                "sets of labels outside train and validation must be hidden (-1): use LabelSets.visible(split, sets)"
            )

    def part(self, nodes: NDArray[np.int64]) -> LabelSets:
        """Return the sets of some nodes."""
        return LabelSets(self.values[nodes])

    def digest(self) -> bytes:
        """Return a hash of the labels."""
        shape = repr(self.values.shape).encode()
        return hashlib.sha256(b"sets" + shape + np.ascontiguousarray(self.values).tobytes()).digest()


class Sets(Objective):
    """Binary cross entropy on the training nodes; loss, micro-F1 and macro-F1 on the validation nodes."""

    def __init__(self, runs: Sequence[Run], device: torch.device):
        self.sets = [sets_of(run).values for run in runs]
        self.train, self.wanted = self._picked([run.split.train for run in runs], device)
        self.held_out, self.held_out_wanted = self._picked([run.split.validation for run in runs], device)

    def _picked(self, nodes: Sequence[NDArray[np.int64]], device: torch.device) -> tuple[Picks, Tensor]:
        """Return the chosen nodes of each run, and which labels they have, [runs * nodes, labels]."""
        places = [np.arange(len(one)) for one in self.sets]
        picks = Picks(nodes, places, device)
        wanted = np.zeros((*picks.shape, self.sets[0].shape[1]), dtype=bool)
        for row, one, sets in zip(wanted, nodes, self.sets, strict=True):
            row[: len(one)] = sets[one] == 1
        return picks, torch.from_numpy(wanted.reshape(-1, wanted.shape[2])).to(device)

    def _loss(self, chosen: Tensor, nodes: Picks, wanted: Tensor) -> Tensor:
        each = (softplus(chosen) - torch.where(wanted, chosen, 0.0)).mean(dim=1)
        return (each.view(nodes.shape) * nodes.weight).sum(dim=1)

    def loss(self, outputs: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        """Return the training loss of each run: the mean over its nodes and all labels."""
        return self._loss(self.train.choose(outputs), self.train, self.wanted)

    def validate(self, outputs: Tensor, parameters: Mapping[str, Tensor]) -> tuple[NDArray[np.float64], Metrics]:
        """Return the validation loss and the micro-F1 of each run."""
        nodes, wanted = self.held_out, self.held_out_wanted
        chosen = nodes.choose(outputs)
        guess = (chosen > 0) & nodes.real.view(-1, 1)
        counts = [(guess & wanted).sum(dim=1), guess.sum(dim=1) + wanted.sum(dim=1)]
        right, taken = (one.view(nodes.shape).sum(dim=1).to("cpu", torch.float64).numpy() for one in counts)
        loss = self._loss(chosen, nodes, wanted).to("cpu", torch.float64).numpy()
        return loss, {"micro_f1": np.divide(2 * right, taken, out=np.zeros_like(taken), where=taken > 0)}

    def summary(self, outputs: Tensor, parameters: Mapping[str, Tensor]) -> Metrics:
        """Return the macro-F1 of each run."""
        guess = self.predict(outputs, parameters)["sets"]
        pairs = zip(guess, self.held_out.nodes, self.sets, strict=True)
        return {"macro_f1": np.array([set_macro_f1(truth[one] == 1, row[one]) for row, one, truth in pairs])}

    def predict(self, outputs: Tensor, parameters: Mapping[str, Tensor]) -> dict[str, NDArray[Any]]:
        """Return which labels are likelier there than not."""
        return {"sets": np.ascontiguousarray((outputs > 0).transpose(0, 1).cpu().numpy())}


def set_scores(pairs: Sequence[tuple[NDArray[np.bool_], NDArray[np.bool_]]]) -> Metrics:
    """Return micro-F1 and macro-F1 of each pair of truth and guess."""
    return {
        "micro_f1": np.array([set_micro_f1(*pair) for pair in pairs]),
        "macro_f1": np.array([set_macro_f1(*pair) for pair in pairs]),
    }


def sets_of(run: Run) -> LabelSets:
    """Return the sets of labels that a run is trained on."""
    if not isinstance(run.targets, LabelSets):
        raise DataError("multi-label needs targets=LabelSets.visible(split, sets) in each run")
    return run.targets


@register_task("multi-label")
@dataclass(frozen=True, slots=True, kw_only=True)
class MultiLabel(Task):
    """Predict which of several yes/no labels hold for each node; a run's targets are `LabelSets`."""

    name: ClassVar[str]

    def outputs(self, classes: int) -> int:
        """Return the number of labels."""
        return classes

    def metrics(self) -> dict[str, float]:
        """Return micro-F1 and macro-F1."""
        return {"micro_f1": 0.0, "macro_f1": float("nan")}

    def predictions(self, classes: int) -> dict[str, DTypeLike]:
        """Return which labels each node has."""
        return {"sets": np.dtype((np.bool_, (classes,)))}

    def check(self, problem: Problem, runs: Sequence[Run]) -> None:
        """Refuse runs without sets of labels."""
        for run in runs:
            found = sets_of(run).values
            if found.ndim != 2 or found.shape[1] != problem.classes:
                raise DataError(f"{problem.classes} labels need a column each, got {found.shape}")
            check_nodes(run)

    def objective(self, problem: Problem, runs: Sequence[Run], device: torch.device) -> Sets:
        """Return the objective of a batch of runs."""
        return Sets(runs, device)

    def memory(self, run: Run, outputs: int) -> int:
        """Return the bytes of the labels, of the chosen outputs, and of what their loss keeps."""
        return (len(run.split.train) + len(run.split.validation)) * outputs * (1 + 4 * 4)
