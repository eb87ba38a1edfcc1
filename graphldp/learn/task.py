"""What a batch of runs is trained for: here, the classes of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphldp.learn.problem import Run

__all__ = ["NodeClassification"]


class _Nodes:
    """The chosen nodes of each run with their labels, padded to the same number; padding weighs nothing."""

    def __init__(self, nodes: Sequence[NDArray[np.int64]], labels: Sequence[NDArray[Any]], device: torch.device):
        count, longest = len(nodes), max(len(one) for one in nodes)
        rows = np.zeros((count, longest), dtype=np.int64)
        target = np.zeros((count, longest), dtype=np.int64)
        weight = np.zeros((count, longest), dtype=np.float32)
        for run, (one, truth) in enumerate(zip(nodes, labels, strict=True)):
            # Logits stand in (node, run) order.
            rows[run, : len(one)] = one * count + run
            target[run, : len(one)] = truth[one]
            weight[run, : len(one)] = 1.0 / len(one)
        self.shape = (count, longest)
        self.rows = torch.from_numpy(rows.ravel()).to(device)
        # A padded entry's gradient is written to one row behind all others.
        spare = np.where(weight > 0, rows, -1).ravel()
        self.padded = bool((spare < 0).any())
        self.places = torch.from_numpy(spare).to(device)
        self.target = torch.from_numpy(target.ravel()).to(device).unsqueeze(0)
        self.weight = torch.from_numpy(weight).to(device)
        self.real = self.weight > 0
        self.sizes = np.array([len(one) for one in nodes])

    def choose(self, logits: Tensor) -> Tensor:
        """Return the logits of the chosen nodes, [runs * nodes, classes]."""
        return logits.reshape(-1, logits.shape[2]).index_select(0, self.rows)

    def mean_loss(self, logarithm: Tensor) -> Tensor:
        """Return the mean cross entropy of each run."""
        return -(logarithm.gather(0, self.target).view(self.shape) * self.weight).sum(dim=1)


def log_softmax(chosen: Tensor) -> Tensor:
    """Return the log-probabilities of [nodes, classes], transposed.

    Few classes and many nodes: with the classes as the first axis the reductions run along the long one, which is 4
    times as fast.
    """
    return torch.log_softmax(chosen.t().contiguous(), dim=0)


class _CrossEntropy(torch.autograd.Function):
    """Mean cross entropy of each run over its own nodes, from the logits [nodes, runs, classes]."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, nodes: _Nodes) -> Tensor:
        logarithm = log_softmax(nodes.choose(logits))
        loss = nodes.mean_loss(logarithm)
        ctx.save_for_backward(logarithm)
        ctx.nodes, ctx.shape = nodes, logits.shape
        return loss

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (logarithm,) = ctx.saved_tensors
        nodes: _Nodes = ctx.nodes
        slope = logarithm.exp()
        slope.scatter_add_(0, nodes.target, slope.new_full((1, 1), -1.0).expand_as(nodes.target))
        slope *= (nodes.weight * gradients[0].unsqueeze(1)).view(1, -1)
        count, runs, classes = ctx.shape
        out = slope.new_zeros(count * runs + 1, classes)
        places = nodes.places.remainder(count * runs + 1) if nodes.padded else nodes.places
        out.index_copy_(0, places, slope.t())
        return out[:-1].view(count, runs, classes), None


class NodeClassification:
    """Cross entropy on the training nodes; loss and accuracy on the validation nodes."""

    def __init__(self, runs: Sequence[Run], device: torch.device):
        labels = [np.asarray(run.labels) for run in runs]
        self.train = _Nodes([run.split.train for run in runs], labels, device)
        self.held_out = _Nodes([run.split.validation for run in runs], labels, device)

    def loss(self, logits: Tensor) -> Tensor:
        """Return the training loss of each run."""
        out: Tensor = _CrossEntropy.apply(logits, self.train)  # type: ignore[no-untyped-call]
        return out

    def validate(self, logits: Tensor) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the validation loss and accuracy of each run."""
        nodes = self.held_out
        chosen = nodes.choose(logits)
        loss = nodes.mean_loss(log_softmax(chosen))
        right = (chosen.argmax(dim=1) == nodes.target[0]).view(nodes.shape)
        # Counted, as a sum of float32 shares may exceed 1.
        both = torch.stack([loss, (right & nodes.real).sum(dim=1)]).to("cpu", torch.float64).numpy()
        return both[0], both[1] / nodes.sizes

    @staticmethod
    def predict(logits: Tensor) -> NDArray[np.int32]:
        """Return the predicted classes, runs x nodes."""
        return np.ascontiguousarray(logits.argmax(dim=2).t().to("cpu", torch.int32).numpy())
