"""Learning classes from labels that were randomised: propagated targets, forward correction, and when to stop.

    y~ = argmax (S^K Y)_i       Y: noisy labels of the training and validation part, one-hot; S = D^-1/2 A D^-1/2
    p~ = (S^K p T)_i            p: the model's probabilities; T_ab = P[label b is sent | it is a], of `krr`

The loss is the cross entropy of p~ and y~ on the training nodes (Drop, of LPGNN). An epoch is chosen by the cross
entropy of p T and the validation part's noisy labels, and what is said of its accuracy is unbiased for the true labels:
(share of noisy labels that are met - q)/(p - q). An epoch that meets more of the noisy labels than a model that knows
every true one would on average (p; 1.05 p in training) has learned their noise, and is not accepted.

Another target is what RGNN has: with `reconstruction` the loss is the cross entropy of p and the class chances that the
labels around a node come to once the channel is undone, and with `bags` the same of clusters' shares and p's means
there is added (`graphldp.learn.tasks.proportions`). Both are options of any method.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphldp.errors import OptionError
from graphldp.learn.sparse import SparseMatrix, product
from graphldp.learn.tasks.base import Metrics, Objective
from graphldp.learn.tasks.classification import Classes, NodeClassification, mean_loss
from graphldp.learn.tasks.multi import MultiTask, TwoHeads
from graphldp.learn.tasks.picks import Picks
from graphldp.learn.tasks.proportions import Bags, frequencies, soft_targets
from graphldp.learn.tasks.regression import Numbers

if TYPE_CHECKING:
    from graphldp.learn.problem import Problem, Run

__all__ = [
    "BARRED",
    "LabelChannel",
    "PrivateClasses",
    "PrivateClassification",
    "PrivateMultiTask",
    "spreading",
    "true_accuracy",
    "true_macro_f1",
]

BARRED = 1e6  # what an epoch that is not accepted adds to its loss: it is behind every other one
_TRAINING = 1.05  # of the best share in training, where a model has seen the labels that it is measured on
_LEAST = 1e-20


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelChannel:
    """What labels have gone through, and how that is reckoned with.

    Attributes:
        keep, stray: the probabilities that a label is sent as it is, and as a certain other one.
        steps: the depth K over which labels and probabilities are propagated.
        correction: whether probabilities go through the channel before they are compared with noisy labels.
        reconstruction: whether a target is what the labels at `steps` steps come to once the channel is undone; then
            correction has no part in training.
        bags: how many people are in a cluster whose shares of classes are compared, too; 0 where none are.
        bag_weight: what that counts beside the loss of single nodes.
    """

    keep: float
    stray: float
    steps: int = 0
    correction: bool = True
    reconstruction: bool = False
    bags: int = 0
    bag_weight: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.stray < self.keep < 1:
            raise OptionError(f"a label is kept more often than it strays, got {self.keep:g} and {self.stray:g}")
        if isinstance(self.steps, bool) or not isinstance(self.steps, int) or self.steps < 0:
            raise OptionError(f"label_steps must be a whole number of at least 0, got {self.steps!r}")
        for name in ("correction", "reconstruction"):
            if not isinstance(getattr(self, name), bool):
                raise OptionError(f"label_{name} is true or false, got {getattr(self, name)!r}")
        if isinstance(self.bags, bool) or not isinstance(self.bags, int) or self.bags < 0 or self.bags == 1:
            raise OptionError(f"label_bags is how many people are in a cluster, at least 2, or 0; got {self.bags!r}")
        weight = self.bag_weight
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < math.inf:
            raise OptionError(f"label_bag_weight must be a finite number of at least 0, got {weight!r}")

    @property
    def by_node(self) -> bool:
        """Whether the loss is a mean over single nodes: not where labels are propagated, or clusters compared."""
        return not (self.steps or self.bags)


def true_accuracy(met: Any, channel: LabelChannel) -> Any:
    """Return the unbiased estimate of the accuracy on the true labels from the share of noisy ones that is met."""
    return (met - channel.stray) / (channel.keep - channel.stray)


def true_macro_f1(noisy: NDArray[Any], guess: NDArray[Any], channel: LabelChannel) -> float:
    """Return the macro-F1 of the unbiased estimate of the table of true classes and guesses."""
    classes = int(max(noisy.max(), guess.max())) + 1
    table = np.zeros((classes, classes))
    np.add.at(table, (noisy, guess), 1.0)
    true = (table - channel.stray * table.sum(axis=0)) / (channel.keep - channel.stray)
    right, taken = np.diag(true), np.maximum(true.sum(axis=1), 0.0) + table.sum(axis=0)
    there = taken > 0
    return float(np.clip(2.0 * right[there] / taken[there], 0.0, 1.0).mean())


def spreading(adjacency: sp.csr_array) -> sp.csr_array:
    """Return D^-1/2 A D^-1/2; the row of a node without neighbours is empty."""
    matrix = sp.csr_array(adjacency, dtype=np.float64)
    degree = np.asarray(matrix.sum(axis=1)).reshape(-1)
    root = np.sqrt(np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0))
    scaled = sp.dia_array((root[None, :], [0]), shape=matrix.shape)
    return sp.csr_array(scaled @ matrix @ scaled, dtype=np.float32)


class PrivateClasses(Objective):
    """Drop on the training nodes; loss and accuracy through the channel on the validation nodes."""

    def __init__(self, runs: Sequence[Run], device: torch.device, channel: LabelChannel, problem: Problem):
        self.channel, self.plain = channel, Classes(runs, device)
        self.operator: SparseMatrix | None = None
        labels = [np.asarray(run.labels) for run in runs]
        targets, alone = labels, [np.ones(len(one), dtype=bool) for one in labels]
        keep, stray, classes = channel.keep, channel.stray, problem.classes
        if channel.steps and not channel.reconstruction:
            matrix = spreading(problem.adjacency)
            self.operator = SparseMatrix.of(matrix, device)
            found = [_propagated(matrix, one, problem.classes, channel.steps) for one in labels]
            targets, alone = [one for one, _ in found], [one for _, one in found]
        self.train = Picks([run.split.train for run in runs], targets, device)
        # Whom no label reaches is compared with her own.
        own = Picks([run.split.train for run in runs], alone, device)
        self.alone = own.target[0].bool()
        self.soft: Tensor | None = None
        self.bags: Bags | None = None
        if channel.reconstruction:
            made = {id(one): frequencies(problem.adjacency, one, classes, channel.steps, keep, stray) for one in labels}
            self.soft = soft_targets(self.train, [made[id(one)] for one in labels], device)
        if channel.bags:
            given = Picks([run.split.train for run in runs], labels, device)
            self.bags = Bags(problem.adjacency, given, channel.bags, classes, keep, stray, device)

    def _sent(self, outputs: Tensor) -> Tensor:
        """Return the probabilities of what is sent, of [..., classes] logits."""
        chance = torch.softmax(outputs, dim=-1)
        if not self.channel.correction:
            return chance
        return self.channel.stray + (self.channel.keep - self.channel.stray) * chance

    def loss(self, outputs: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        """Return the training loss of each run."""
        loss = self._of_nodes(outputs)
        if self.bags is not None:
            chances = torch.softmax(self.train.choose(outputs), dim=-1)
            loss = loss + self.channel.bag_weight * self.bags.loss(chances)
        return loss

    def _of_nodes(self, outputs: Tensor) -> Tensor:
        if self.soft is not None:
            met = (self.soft * torch.log_softmax(self.train.choose(outputs), dim=-1)).sum(dim=1)
            return -(met.view(self.train.shape) * self.train.weight).sum(dim=1)
        if self.operator is None:
            chosen = self._sent(self.train.choose(outputs))
        else:
            sent = self._sent(outputs)
            spread = sent
            for _ in range(self.channel.steps):
                spread = product(self.operator, spread)
            chosen = torch.where(self.alone[:, None], self.train.choose(sent), self.train.choose(spread))
        return mean_loss(chosen.clamp_min(_LEAST).log().t(), self.train)

    def validate(self, outputs: Tensor, parameters: Mapping[str, Tensor]) -> tuple[NDArray[np.float64], Metrics]:
        """Return the validation loss of each run, and the estimate of its accuracy on true labels."""
        nodes = self.plain.held_out
        chosen = nodes.choose(outputs)
        loss = mean_loss(self._sent(chosen).clamp_min(_LEAST).log().t(), nodes)
        learned = self.plain.train
        met = [_met(chosen, nodes), _met(learned.choose(outputs), learned)]
        found = torch.stack([loss, *met]).to("cpu", torch.float64).numpy()
        share, own = found[1] / nodes.sizes, found[2] / learned.sizes
        barred = (share > self.channel.keep) | (own > _TRAINING * self.channel.keep)
        return found[0] + BARRED * barred, {"accuracy": true_accuracy(share, self.channel)}

    def summary(self, outputs: Tensor, parameters: Mapping[str, Tensor]) -> Metrics:
        """Return the estimate of the macro-F1 of each run."""
        nodes = self.plain.held_out
        guess = self.predict(outputs, parameters)["classes"]
        pairs = zip(guess, nodes.nodes, nodes.targets, strict=True)
        return {"macro_f1": np.array([true_macro_f1(truth[one], row[one], self.channel) for row, one, truth in pairs])}

    def predict(self, outputs: Tensor, parameters: Mapping[str, Tensor]) -> dict[str, NDArray[Any]]:
        """Return the predicted classes."""
        return self.plain.predict(outputs, parameters)


def _met(chosen: Tensor, nodes: Picks) -> Tensor:
    """Return how many labels of each run are met."""
    right = (chosen.argmax(dim=1) == nodes.target[0]).view(nodes.shape)
    return (right & nodes.real).sum(dim=1)


def _propagated(
    matrix: sp.csr_array, labels: NDArray[Any], classes: int, steps: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the hard targets of propagated labels, and who is reached by none and keeps her own."""
    known = np.flatnonzero(labels >= 0)
    mass: Any = np.zeros((len(labels), classes), dtype=np.float32)
    mass[known, labels[known]] = 1.0
    for _ in range(steps):
        mass = matrix @ mass
    alone = mass.sum(axis=1) <= 0
    return np.where(alone, labels, mass.argmax(axis=1)), alone


class _Propagating:
    """What a task through a channel costs."""

    __slots__ = ()
    channel: LabelChannel

    @property
    def by_node(self) -> bool:
        """Whether the loss is a mean over single nodes: not where labels are propagated."""
        return self.channel.by_node

    def memory(self, run: Run, outputs: int) -> int:
        """Return the bytes that probabilities take at each step."""
        return 4 * len(run.labels) * outputs * (self.channel.steps + 2 + 2 * bool(self.channel.bags))


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateClassification(_Propagating, NodeClassification):  # type: ignore[override]
    """Predict the class of each node from labels that went through a channel."""

    name: ClassVar[str] = NodeClassification.name
    channel: LabelChannel

    def objective(self, problem: Problem, runs: Sequence[Run], device: torch.device) -> Objective:  # type: ignore[override]
        """Return the objective of a batch of runs."""
        return PrivateClasses(runs, device, self.channel, problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateMultiTask(_Propagating, MultiTask):  # type: ignore[override]
    """Predict the class of each node, from labels that went through a channel, and a number."""

    name: ClassVar[str] = MultiTask.name
    channel: LabelChannel

    def objective(self, problem: Problem, runs: Sequence[Run], device: torch.device) -> TwoHeads:
        """Return the objective of a batch of runs."""
        return TwoHeads(
            PrivateClasses(runs, device, self.channel, problem), Numbers(runs, device, self.loss), self.weight
        )
