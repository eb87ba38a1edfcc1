"""Which pairs of nodes are linked: a logistic head on the Hadamard product of two nodes' outputs; AUC and precision."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphldp.errors import DataError, OptionError
from graphldp.learn.models.base import Parameter
from graphldp.learn.sparse import Pattern
from graphldp.learn.tasks.base import Metrics, Objective, Task
from graphldp.learn.tasks.edges import Links, leaks
from graphldp.learn.tasks.metrics import average_precision, roc_auc
from graphldp.learn.tasks.registry import register_task

if TYPE_CHECKING:
    from graphldp.learn.problem import Problem, Run

__all__ = ["LinkPrediction", "PairScores"]

LOSSES = ("cross-entropy", "pairwise")
SHOWN = 3
# Arrays of the size [nodes, width] alive at once: weighted outputs, what pairs pull at them, and gradients.
NODE_ARRAYS = 4
GATHERED = 2**17  # numbers of either end that are gathered at once: what fits into a processor's own cache
GATHERED_ELSEWHERE = 2**22  # on a device that is better used by few large pieces


class PairScores:
    """The head's logits of given pairs: w . (z_u * z_v) + b.

    With the gradients g of a run's logits as a symmetric matrix G over the nodes, that of z is w * (G z), and that of w
    half the sum of z * (G z): a product, which never scatters, and nothing as large as all pairs' outputs is kept.
    """

    def __init__(self, pairs: NDArray[np.int64], nodes: int, device: torch.device):
        self.pairs, self.nodes, self.device = pairs, nodes, device
        self.first, self.second = (torch.from_numpy(np.ascontiguousarray(end)).to(device) for end in pairs)

    def __call__(self, outputs: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        """Return the logits, [pairs, runs]."""
        out: Tensor = _Logits.apply(outputs, parameters["task_weight"], self)  # type: ignore[no-untyped-call]
        return out + parameters["task_bias"][:, 0] if "task_bias" in parameters else out

    def logits(self, outputs: Tensor, weight: Tensor) -> Tensor:
        """Return w . (z_u * z_v), [pairs, runs]."""
        weighted, count = outputs * weight, len(self.first)
        out = outputs.new_empty(count, outputs.shape[1])
        step = max(1, (GATHERED if self.device.type == "cpu" else GATHERED_ELSEWHERE) // weight.numel())
        for start in range(0, count, step):
            some = slice(start, start + step)
            ends = outputs.index_select(0, self.first[some]), weighted.index_select(0, self.second[some])
            torch.sum(ends[0].mul_(ends[1]), dim=2, out=out[some])
        return out

    def pulled(self, outputs: Tensor, gradient: Tensor) -> Tensor:
        """Return G z for the gradients of the logits, [nodes, runs, width]."""
        pattern, places = self._symmetric
        out = torch.empty_like(outputs)
        for run in range(outputs.shape[1]):
            matrix = pattern.filled(gradient[:, run].index_select(0, places))
            out[:, run] = matrix.multiply(outputs[:, run].contiguous())
        return out

    @cached_property
    def _symmetric(self) -> tuple[Pattern, Tensor]:
        """The places of G, and which pair each of its entries is of."""
        rows, columns = np.concatenate(self.pairs), np.concatenate(self.pairs[::-1])
        order = np.lexsort((columns, rows))
        pointers = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=self.nodes))])
        pattern = Pattern.of(pointers, columns[order], (self.nodes, self.nodes), self.device)
        return pattern, torch.from_numpy(order % self.pairs.shape[1]).to(self.device)


class _Logits(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, outputs: Tensor, weight: Tensor, scores: PairScores) -> Tensor:
        ctx.scores = scores
        ctx.save_for_backward(outputs, weight)
        return scores.logits(outputs, weight)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        outputs, weight = ctx.saved_tensors
        pulled = ctx.scores.pulled(outputs, gradients[0])
        return pulled * weight, (outputs * pulled).sum(dim=0) / 2, None


class Pairs(Objective):
    """The objective over the training pairs; loss, AUC and average precision over the validation pairs.

    The pairs of a part stand one behind the other, edges first.
    """

    def __init__(self, links: Links, device: torch.device, loss: str):
        self.pairwise = loss == "pairwise"
        self.train = PairScores(np.concatenate([links.train, links.train_negative], axis=1), links.nodes, device)
        held = np.concatenate([links.validation, links.validation_negative], axis=1)
        self.held_out = PairScores(held, links.nodes, device)

    def _loss(self, scores: Tensor) -> Tensor:
        linked, others = scores.chunk(2)
        if self.pairwise:
            return (1 - (linked - others)).square().mean(dim=0)
        softplus = torch.nn.functional.softplus
        return (softplus(-linked).mean(dim=0) + softplus(others).mean(dim=0)) / 2

    def loss(self, outputs: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        """Return the training loss of each run."""
        return self._loss(self.train(outputs, parameters))

    def validate(self, outputs: Tensor, parameters: Mapping[str, Tensor]) -> tuple[NDArray[np.float64], Metrics]:
        """Return the validation loss of each run."""
        return self._loss(self.held_out(outputs, parameters)).to("cpu", torch.float64).numpy(), {}

    def summary(self, outputs: Tensor, parameters: Mapping[str, Tensor]) -> Metrics:
        """Return AUC and average precision of each run."""
        linked, others = (part.t().cpu().numpy() for part in self.held_out(outputs, parameters).chunk(2))
        pairs = list(zip(linked, others, strict=True))
        return {
            "auc": np.array([roc_auc(*pair) for pair in pairs]),
            "average_precision": np.array([average_precision(*pair) for pair in pairs]),
        }


def links_of(run: Run) -> Links:
    """Return the pairs that a run is trained on."""
    if not isinstance(run.targets, Links):
        raise DataError("link prediction needs targets=edge_split(...).visible() in each run")
    return run.targets


@register_task("link-prediction")
@dataclass(frozen=True, slots=True, kw_only=True)
class LinkPrediction(Task):
    """Predict which pairs are linked; a run's targets are `Links`, and its graph holds their training edges alone.

    Attributes:
        width: how many outputs the backbone gives each node.
        loss: `cross-entropy`, or `pairwise`: the mean of (1 - (s+ - s-))^2, each edge against one non-edge.
    """

    name: ClassVar[str]
    by_node: ClassVar[bool] = False
    width: int = 64
    loss: str = "cross-entropy"

    def __post_init__(self) -> None:
        if isinstance(self.width, bool) or not isinstance(self.width, int) or self.width < 1:
            raise OptionError(f"width must be a whole number of at least 1, got {self.width!r}")
        if self.loss not in LOSSES:
            raise OptionError(f"loss must be one of {', '.join(LOSSES)}, got {self.loss!r}")

    def outputs(self, classes: int) -> int:
        """Return the width of a node's outputs."""
        return self.width

    def parameters(self) -> dict[str, Parameter]:
        """Return the head's weight, and its bias; the pairwise loss looks at differences, from which a bias is gone."""
        bound = 1 / math.sqrt(self.width)
        out = {"task_weight": Parameter((self.width,), "uniform", bound)}
        return out if self.loss == "pairwise" else out | {"task_bias": Parameter((1,), "uniform", bound)}

    def metrics(self) -> dict[str, float]:
        """Return AUC and average precision."""
        return {"auc": float("nan"), "average_precision": float("nan")}

    def key(self, run: Run) -> Hashable:
        """Return the pairs: runs on the same ones share what gathers them."""
        return links_of(run).digest()

    def memory(self, run: Run, outputs: int) -> int:
        """Return the bytes of what scoring the training pairs needs: arrays of the nodes' outputs, and G."""
        links = links_of(run)
        return 4 * (NODE_ARRAYS * outputs * links.nodes + 8 * int(links.train.shape[1]))

    def check(self, problem: Problem, runs: Sequence[Run]) -> None:
        """Refuse a run whose graph or filter passes messages over anything but its training edges."""
        checked = set()
        for number, run in enumerate(runs):
            links = links_of(run)
            inputs = problem.inputs[run.inputs]
            if inputs.filtered and inputs.over is None:
                raise DataError(
                    "link prediction takes filtered inputs only with the matrix that they were filtered over: nobody "
                    "could see in them whether only training edges were used; pass it as over=, or pass the inputs "
                    "unfiltered and the filter as coefficients"
                )
            key = (run.graph, id(inputs.over), id(links))
            if key in checked:
                continue
            checked.add(key)
            graph = problem.graph(run.graph)
            matrices = [("adjacency", graph.adjacency), ("filter's shift", graph.shift)]
            if inputs.over is not None:
                matrices.append(("matrix that the inputs were filtered over", inputs.over))
            for name, matrix in matrices:
                found = leaks(links, matrix)
                if found.shape[1]:
                    shown = ", ".join(f"{u}-{v}" for u, v in found[:, :SHOWN].T)
                    raise DataError(
                        f"run {number}: the {name} holds {found.shape[1]} pairs that are no training edges of "
                        f"its split ({shown}{', ...' if found.shape[1] > SHOWN else ''}); use split.graph(graph)"
                    )

    def objective(self, problem: Problem, runs: Sequence[Run], device: torch.device) -> Pairs:
        """Return the objective of a batch of runs, which all have the same pairs."""
        return Pairs(links_of(runs[0]), device, self.loss)
