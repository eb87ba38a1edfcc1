"""The multi-layer perceptron with which LDP-GE classifies its node embeddings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import scipy.sparse as sp
import torch
from torch import Tensor

from graphldp.learn.layers import ACTIVATIONS, check_activation, linear
from graphldp.learn.models.base import Backbone, Batch, Decoupled, Dropout, Parameter
from graphldp.learn.models.parts import check_whole
from graphldp.learn.models.registry import register

__all__ = ["MLP"]


@register("mlp")
@dataclass(frozen=True, slots=True, kw_only=True)
class MLP(Backbone):
    """A perceptron on the filtered features alone, as LDP-GE has it: the graph enters through the filter only.

    As published, a layer has no bias, and one that is as wide as its input adds the input: H W + H = H (W + I).
    Without `residual` and with `bias` it is torch_geometric's MLP without normalisation.

    Attributes:
        hidden: width of the hidden layers.
        layers: how many layers, the last one included.
        activation: between the layers (relu as published).
        bias: whether each layer adds a bias.
        residual: whether a layer that is as wide as its input adds the input.
    """

    name: ClassVar[str]
    hidden: int = 16
    layers: int = 2
    activation: str = "selu"
    bias: bool = False
    residual: bool = True

    def __post_init__(self) -> None:
        check_whole("hidden", self.hidden, 1)
        check_whole("layers", self.layers, 1)
        check_activation(self.activation)

    def parameters(self, dimensions: int, classes: int) -> dict[str, Parameter]:
        """Return the weight of each layer, and its bias if there is one."""
        widths = [dimensions, *[self.hidden] * (self.layers - 1), classes]
        out = {}
        for layer, (wide, narrow) in enumerate(pairwise(widths), start=1):
            out[f"weight{layer}"] = Parameter((wide, narrow), "uniform", math.sqrt(6.0 / wide))
            if self.bias:
                out[f"bias{layer}"] = Parameter((narrow,), "zeros")
        return out

    def operators(self, adjacency: sp.csr_array) -> dict[str, sp.csr_array]:
        """Return none: a perceptron does not propagate."""
        return {}

    def width(self, classes: int) -> int:
        """Return the width of the first layer."""
        return self.hidden if self.layers > 1 else classes

    def deeper(self) -> int:
        """Return the units of the hidden layers between the first and the last."""
        return self.hidden * max(0, self.layers - 2)

    def decoupled(self) -> Decoupled:
        """Return the perceptron itself: it does not walk."""
        return Decoupled(rows=self)

    def trunk(self, parameters: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """Return the first layer, activated."""
        return self._end(parameters, 1, batch.project(self._weight(parameters, 1)))

    def head(self, parameters: Mapping[str, Tensor], batch: Batch, hidden: Tensor, dropout: Dropout) -> Tensor:
        """Return the other layers' output."""
        for layer in range(2, self.layers + 1):
            hidden = self._end(parameters, layer, linear(dropout(hidden), self._weight(parameters, layer)))
        return hidden

    def _weight(self, parameters: Mapping[str, Tensor], layer: int) -> Tensor:
        """Return a layer's weight, with the identity added if the layer adds its input."""
        weight = parameters[f"weight{layer}"]
        if not self.residual or weight.shape[1] != weight.shape[2]:
            return weight
        return weight + torch.eye(weight.shape[1], dtype=weight.dtype, device=weight.device)

    def _end(self, parameters: Mapping[str, Tensor], layer: int, hidden: Tensor) -> Tensor:
        """Return a layer's product with its bias and its activation."""
        if self.bias:
            hidden = hidden + parameters[f"bias{layer}"]
        return ACTIVATIONS[self.activation](hidden) if layer < self.layers else hidden
