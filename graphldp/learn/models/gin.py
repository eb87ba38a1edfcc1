"""GIN (Xu et al., 2019), equal to torch_geometric's GINConv run by run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from torch import Tensor

from graphldp.errors import OptionError
from graphldp.learn.layers import ACTIVATIONS, check_activation, linear
from graphldp.learn.models.base import Backbone, Batch, Dropout, Parameter
from graphldp.learn.models.parts import check_whole, linear_bias, linear_weight
from graphldp.learn.models.registry import register

__all__ = ["GIN"]


@register("gin")
@dataclass(frozen=True, slots=True, kw_only=True)
class GIN(Backbone):
    """GIN: layers MLP((1 + excess) h + sum of the neighbours' h) with an activation and dropout between them.

    The sum is linear and the MLP's first map is, too: the sum is taken on the narrower side of that map.

    Attributes:
        hidden: width of the hidden layers and inside of each MLP.
        layers: how many layers, the last one included.
        mlp_layers: linear maps of each MLP; the activation stands between them, no dropout does.
        activation: between the layers and inside of each MLP.
        excess: by how much a node counts more than a neighbour (the paper's epsilon, a word that is a budget here).
        train_excess: whether it is a parameter of each layer, which starts at `excess`.
    """

    name: ClassVar[str]
    hidden: int = 16
    layers: int = 2
    mlp_layers: int = 2
    activation: str = "selu"
    excess: float = 0.0
    train_excess: bool = False

    def __post_init__(self) -> None:
        check_whole("hidden", self.hidden, 1)
        check_whole("layers", self.layers, 1)
        check_whole("mlp_layers", self.mlp_layers, 1)
        check_activation(self.activation)
        if not isfinite(self.excess):
            raise OptionError(f"excess must be finite, got {self.excess}")

    def parameters(self, dimensions: int, classes: int) -> dict[str, Parameter]:
        """Return weight and bias of each map of each layer's MLP, and the excess if it is trained."""
        widths = [dimensions, *[self.hidden] * (self.layers - 1), classes]
        out = {}
        for layer, (wide, narrow) in enumerate(pairwise(widths), start=1):
            inside = [wide, *[self.hidden] * (self.mlp_layers - 1), narrow]
            for place, (before, after) in enumerate(pairwise(inside), start=1):
                out[f"weight{layer}_{place}"] = linear_weight(before, after)
                out[f"bias{layer}_{place}"] = linear_bias(before, after)
            if self.train_excess:
                out[f"excess{layer}"] = Parameter((1,), "constant", self.excess)
        return out

    def operators(self, adjacency: sp.csr_array) -> dict[str, sp.csr_array]:
        """Return the sum over neighbours; with the node itself unless its weight is trained."""
        matrix = sp.csr_array(adjacency, dtype=np.float64)
        if not self.train_excess:
            matrix = sp.csr_array(matrix + (1.0 + self.excess) * sp.eye_array(matrix.shape[0], format="csr"))
        return {"sum": matrix}

    def width(self, classes: int) -> int:
        """Return the width of the first map."""
        return self.hidden if self.mlp_layers > 1 or self.layers > 1 else classes

    def deeper(self) -> int:
        """Return the units of the MLPs."""
        return self.hidden * max(0, self.layers * self.mlp_layers - 2)

    def trunk(self, parameters: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """Return the first layer, activated."""
        return self._inside(parameters, 1, self._sum(parameters, 1, batch, batch.project(parameters["weight1_1"])))

    def head(self, parameters: Mapping[str, Tensor], batch: Batch, hidden: Tensor, dropout: Dropout) -> Tensor:
        """Return the other layers' output."""
        for layer in range(2, self.layers + 1):
            weight = parameters[f"weight{layer}_1"]
            hidden = dropout(hidden)
            if weight.shape[2] <= weight.shape[1]:
                hidden = self._sum(parameters, layer, batch, linear(hidden, weight))
            else:
                hidden = linear(self._sum(parameters, layer, batch, hidden), weight)
            hidden = self._inside(parameters, layer, hidden)
        return hidden

    def _sum(self, parameters: Mapping[str, Tensor], layer: int, batch: Batch, hidden: Tensor) -> Tensor:
        """Return (1 + excess) h + the sum of the neighbours' h."""
        out = batch.propagate(hidden, "sum")
        if not self.train_excess:
            return out
        return out + (1.0 + parameters[f"excess{layer}"]) * hidden

    def _inside(self, parameters: Mapping[str, Tensor], layer: int, hidden: Tensor) -> Tensor:
        """Return the rest of a layer after its first map."""
        activate = ACTIVATIONS[self.activation]
        hidden = hidden + parameters[f"bias{layer}_1"]
        for place in range(2, self.mlp_layers + 1):
            hidden = linear(activate(hidden), parameters[f"weight{layer}_{place}"])
            hidden = hidden + parameters[f"bias{layer}_{place}"]
        return activate(hidden) if layer < self.layers else hidden
