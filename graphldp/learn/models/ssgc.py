"""SSGC (Zhu and Koniusz, 2021), equal to torch_geometric's SSGConv run by run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import scipy.sparse as sp
from torch import Tensor

from graphldp.learn.models.base import Backbone, Batch, Decoupled, Dropout, Parameter, Walk
from graphldp.learn.models.gcn import gcn_norm
from graphldp.learn.models.parts import check_between, check_whole, linear_bias, linear_weight, polynomial
from graphldp.learn.models.registry import register
from graphldp.learn.models.sgc import SGC

__all__ = ["SSGC"]


@register("ssgc")
@dataclass(frozen=True, slots=True, kw_only=True)
class SSGC(Backbone):
    """A linear classifier on the mean of hops 1 to K and a share of the node's own input; no hidden layer.

    The logits are (s X + (1 - s)/K sum_{k=1..K} A^k X) W + b with the normalised adjacency with self-loops. The
    polynomial is applied to X W, at the width of the classes. There is no activation, so that dropout strikes nowhere.

    Attributes:
        steps: K, how many hops.
        own_share: s, the weight of a node's own input (the paper's alpha).
    """

    name: ClassVar[str]
    steps: int = 16
    own_share: float = 0.05

    def __post_init__(self) -> None:
        check_whole("steps", self.steps, 1)
        check_between("own_share", self.own_share, 0.0, 1.0)

    def parameters(self, dimensions: int, classes: int) -> dict[str, Parameter]:
        """Return weight and bias."""
        return {"weight1": linear_weight(dimensions, classes), "bias1": linear_bias(dimensions, classes)}

    def operators(self, adjacency: sp.csr_array) -> dict[str, sp.csr_array]:
        """Return the normalised adjacency."""
        return {"normalised": gcn_norm(adjacency)}

    def width(self, classes: int) -> int:
        """Return the number of classes."""
        return classes

    def hops(self) -> int:
        """Return K."""
        return self.steps

    def decoupled(self) -> Decoupled:
        """Return all hops, and then a linear classifier."""
        return Decoupled(rows=SGC(steps=0), before=Walk("normalised", self._coefficients()))

    def trunk(self, parameters: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """Return the logits."""
        projected = batch.project(parameters["weight1"])
        return polynomial(batch, projected, "normalised", self._coefficients()) + parameters["bias1"]

    def head(self, parameters: Mapping[str, Tensor], batch: Batch, hidden: Tensor, dropout: Dropout) -> Tensor:
        """Return the trunk's output: it is the logits already."""
        return hidden

    def _coefficients(self) -> tuple[float, ...]:
        return (self.own_share,) + ((1.0 - self.own_share) / self.steps,) * self.steps
