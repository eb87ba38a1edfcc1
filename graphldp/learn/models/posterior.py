"""A linear correction of log-odds: what evidence says of the classes is the start, not one input among others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import scipy.sparse as sp
import torch
from torch import Tensor

from graphldp.learn.models.base import Backbone, Batch, Decoupled, Dropout, Parameter
from graphldp.learn.models.registry import register

__all__ = ["Posterior"]


@register("posterior")
@dataclass(frozen=True, slots=True, kw_only=True)
class Posterior(Backbone):
    """Logits X W + b that start as the first inputs, one for each class: W = I there and 0 below, b = 0.

    With few labels it stays close to what the inputs say by themselves, which weights from a random start never find;
    weight decay pulls it back to there.
    """

    name: ClassVar[str]
    zeros: ClassVar[bool] = True

    def parameters(self, dimensions: int, classes: int) -> dict[str, Parameter]:
        """Return the correction of the weight, and the bias; both start at 0."""
        return {"weight": Parameter((dimensions, classes), "zeros"), "bias": Parameter((classes,), "zeros")}

    def operators(self, adjacency: sp.csr_array) -> dict[str, sp.csr_array]:
        """Return none: it does not propagate."""
        return {}

    def width(self, classes: int) -> int:
        """Return the number of classes."""
        return classes

    def decoupled(self) -> Decoupled:
        """Return itself: every node's logits come from its own row."""
        return Decoupled(rows=self)

    def trunk(self, parameters: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """Return the logits."""
        weight = parameters["weight"]
        start = torch.eye(weight.shape[1], weight.shape[2], dtype=weight.dtype, device=weight.device)
        out: Tensor = batch.project(weight + start) + parameters["bias"]
        return out

    def head(self, parameters: Mapping[str, Tensor], batch: Batch, hidden: Tensor, dropout: Dropout) -> Tensor:
        """Return the logits as they are: there is no activation, so that dropout strikes nowhere."""
        return hidden
