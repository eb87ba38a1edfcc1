"""SGC (Wu et al., 2019), equal to torch_geometric's SGConv run by run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import scipy.sparse as sp
from torch import Tensor

from graphldp.learn.models.base import Backbone, Batch, Decoupled, Dropout, Parameter, Walk
from graphldp.learn.models.gcn import gcn_norm
from graphldp.learn.models.parts import check_whole, linear_bias, linear_weight, polynomial
from graphldp.learn.models.registry import register

__all__ = ["SGC"]


@register("sgc")
@dataclass(frozen=True, slots=True, kw_only=True)
class SGC(Backbone):
    """A linear classifier A^K X W + b on K hops of the normalised adjacency with self-loops; no hidden layer.

    A^K is one more filter: it is applied to X W, at the width of the classes. There is no activation, so that dropout
    strikes nowhere.

    Attributes:
        steps: K, how many hops.
    """

    name: ClassVar[str]
    steps: int = 2

    def __post_init__(self) -> None:
        check_whole("steps", self.steps, 0)

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
        return Decoupled(rows=replace(self, steps=0), before=Walk("normalised", (0.0,) * self.steps + (1.0,)))

    def trunk(self, parameters: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """Return the logits."""
        projected = batch.project(parameters["weight1"])
        return polynomial(batch, projected, "normalised", [0.0] * self.steps + [1.0]) + parameters["bias1"]

    def head(self, parameters: Mapping[str, Tensor], batch: Batch, hidden: Tensor, dropout: Dropout) -> Tensor:
        """Return the trunk's output: it is the logits already."""
        return hidden
