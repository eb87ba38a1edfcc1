"""The classes of nodes: cross entropy, accuracy and macro-F1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

from graphldp.errors import DataError
from graphldp.learn.tasks.base import Metrics, Objective, Task
from graphldp.learn.tasks.metrics import macro_f1
from graphldp.learn.tasks.picks import Picks
from graphldp.learn.tasks.registry import register_task

if TYPE_CHECKING:
    from graphldp.learn.problem import Problem, Run
    from graphldp.learn.tasks.private import LabelChannel

__all__ = ["Classes", "NodeClassification", "check_nodes"]

LEAST_LOGARITHM = -87.0


def log_softmax(chosen: Tensor) -> Tensor:
    """Return the log-probabilities of [nodes, classes], transposed.

    Few classes and many nodes: with the classes as the first axis the reductions run along the long one, which is 4
    times as fast.
    """
    return torch.log_softmax(chosen.t().contiguous(), dim=0)


def mean_loss(logarithm: Tensor, nodes: Picks) -> Tensor:
    """Return the mean cross entropy of each run."""
    return -(logarithm.gather(0, nodes.target).view(nodes.shape) * nodes.weight).sum(dim=1)


class _CrossEntropy(torch.autograd.Function):
    """Mean cross entropy of each run over its own nodes, from the logits [nodes, runs, classes]."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, nodes: Picks) -> Tensor:
        logarithm = log_softmax(nodes.choose(logits))
        loss = mean_loss(logarithm, nodes)
        ctx.save_for_backward(logarithm)
        ctx.nodes, ctx.shape = nodes, logits.shape
        return loss

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (logarithm,) = ctx.saved_tensors
        nodes: Picks = ctx.nodes
        # Below, probabilities leave float32's normal range, where the vendor's exponential takes ten times as long.
        slope = logarithm.clamp(min=LEAST_LOGARITHM).exp_()
        slope.scatter_add_(0, nodes.target, slope.new_full((1, 1), -1.0).expand_as(nodes.target))
        slope *= (nodes.weight * gradients[0].unsqueeze(1)).view(1, -1)
        count, runs, classes = ctx.shape
        out = slope.new_zeros(count * runs + 1, classes)
        places = nodes.places.remainder(count * runs + 1) if nodes.padded else nodes.places
        out.index_copy_(0, places, slope.t())
        return out[:-1].view(count, runs, classes), None


class Classes(Objective):
    """Cross entropy on the training nodes; loss, accuracy and macro-F1 on the validation nodes."""

    def __init__(self, runs: Sequence[Run], device: torch.device):
        labels = [np.asarray(run.labels) for run in runs]
        self.train = Picks([run.split.train for run in runs], labels, device)
        self.held_out = Picks([run.split.validation for run in runs], labels, device)

    def loss(self, outputs: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        """Return the training loss of each run."""
        out: Tensor = _CrossEntropy.apply(outputs, self.train)  # type: ignore[no-untyped-call]
        return out

    def validate(self, outputs: Tensor, parameters: Mapping[str, Tensor]) -> tuple[NDArray[np.float64], Metrics]:
        """Return the validation loss and accuracy of each run."""
        nodes = self.held_out
        chosen = nodes.choose(outputs)
        loss = mean_loss(log_softmax(chosen), nodes)
        right = (chosen.argmax(dim=1) == nodes.target[0]).view(nodes.shape)
        # Counted, as a sum of float32 shares may exceed 1.
        both = torch.stack([loss, (right & nodes.real).sum(dim=1)]).to("cpu", torch.float64).numpy()
        return both[0], {"accuracy": both[1] / nodes.sizes}

    def summary(self, outputs: Tensor, parameters: Mapping[str, Tensor]) -> Metrics:
        """Return the macro-F1 of each run."""
        nodes = self.held_out
        guess = self.predict(outputs, parameters)["classes"]
        pairs = zip(guess, nodes.nodes, nodes.targets, strict=True)
        return {"macro_f1": np.array([macro_f1(truth[one], row[one]) for row, one, truth in pairs])}

    def predict(self, outputs: Tensor, parameters: Mapping[str, Tensor]) -> dict[str, NDArray[Any]]:
        """Return the predicted classes."""
        return {"classes": np.ascontiguousarray(outputs.argmax(dim=2).t().to("cpu", torch.int32).numpy())}


def check_nodes(run: Run) -> None:
    """Refuse a split of nodes without a part that is needed."""
    for name in ("train", "validation"):
        if not getattr(run.split, name).size:
            raise DataError(f"the split has no {name} nodes: training and selection need at least one each")


@register_task("node-classification")
@dataclass(frozen=True, slots=True, kw_only=True)
class NodeClassification(Task):
    """Predict the class of each node; a run's targets are its `labels`, -1 outside train and validation."""

    name: ClassVar[str]

    def outputs(self, classes: int) -> int:
        """Return the number of classes."""
        return classes

    def under(self, channel: LabelChannel) -> Task:
        """Return the task for labels that went through a channel."""
        from graphldp.learn.tasks.private import PrivateClassification

        return PrivateClassification(channel=channel)

    def metrics(self) -> dict[str, float]:
        """Return accuracy and macro-F1."""
        return {"accuracy": 0.0, "macro_f1": float("nan")}

    def predictions(self, classes: int) -> dict[str, DTypeLike]:
        """Return the class of each node."""
        return {"classes": np.int32}

    def check(self, problem: Problem, runs: Sequence[Run]) -> None:
        """Refuse runs without labels where they are needed."""
        for run in runs:
            labels = np.asarray(run.labels)
            if labels.shape != (problem.nodes,):
                raise DataError(f"{problem.nodes} nodes need {problem.nodes} labels, got {labels.shape}")
            check_nodes(run)
            for name in ("train", "validation"):
                seen = labels[getattr(run.split, name)]
                if not (seen.min() >= 0 and seen.max() < problem.classes):
                    raise DataError(f"each {name} node needs a label in 0..{problem.classes - 1}")

    def objective(self, problem: Problem, runs: Sequence[Run], device: torch.device) -> Classes:
        """Return the objective of a batch of runs."""
        return Classes(runs, device)
