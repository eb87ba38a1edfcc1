"""GraphSAGE (Hamilton et al., 2017) with the mean of all neighbours, equal to torch_geometric's SAGEConv run by run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from graphldp.learn.layers import ACTIVATIONS, check_activation, linear
from graphldp.learn.models.base import Backbone, Batch, Dropout, Parameter
from graphldp.learn.models.parts import check_whole, linear_bias, linear_weight
from graphldp.learn.models.registry import register

__all__ = ["SAGE", "mean_norm"]


def mean_norm(adjacency: sp.csr_array) -> sp.csr_array:
    """Return D^-1 A: the mean of the neighbours; 0 for a node that has none."""
    matrix = sp.csr_array(adjacency, dtype=np.float64)
    degree = np.asarray(matrix.sum(axis=1)).ravel()
    scale = np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0)
    return sp.csr_array(sp.diags_array(scale) @ matrix)


@register("sage")
@dataclass(frozen=True, slots=True, kw_only=True)
class SAGE(Backbone):
    """GraphSAGE: layers mean(H_neighbours) V + H W + b with an activation and dropout between them.

    All neighbours are used in each layer; nothing is sampled. `weightL` holds V and W side by side: both halves are
    multiplied in one product.

    Attributes:
        hidden: width of the hidden layers.
        layers: how many layers, the last one included.
        activation: between the layers.
    """

    name: ClassVar[str]
    hidden: int = 16
    layers: int = 2
    activation: str = "selu"

    def __post_init__(self) -> None:
        check_whole("hidden", self.hidden, 1)
        check_whole("layers", self.layers, 1)
        check_activation(self.activation)

    def parameters(self, dimensions: int, classes: int) -> dict[str, Parameter]:
        """Return weights and bias of each layer."""
        widths = [dimensions, *[self.hidden] * (self.layers - 1), classes]
        out = {}
        for layer, (wide, narrow) in enumerate(pairwise(widths), start=1):
            out[f"weight{layer}"] = linear_weight(wide, 2 * narrow)
            out[f"bias{layer}"] = linear_bias(wide, narrow)
        return out

    def operators(self, adjacency: sp.csr_array) -> dict[str, sp.csr_array]:
        """Return the mean over neighbours."""
        return {"mean": mean_norm(adjacency)}

    def width(self, classes: int) -> int:
        """Return the width of the first layer's two halves."""
        return 2 * (self.hidden if self.layers > 1 else classes)

    def deeper(self) -> int:
        """Return the units of the hidden layers between the first and the last, projected by both weights."""
        return 2 * self.hidden * max(0, self.layers - 2)

    def trunk(self, parameters: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """Return the first layer, activated."""
        out = self._joined(batch, batch.project(parameters["weight1"])) + parameters["bias1"]
        return ACTIVATIONS[self.activation](out) if self.layers > 1 else out

    def head(self, parameters: Mapping[str, Tensor], batch: Batch, hidden: Tensor, dropout: Dropout) -> Tensor:
        """Return the other layers' output."""
        for layer in range(2, self.layers + 1):
            weight = parameters[f"weight{layer}"]
            hidden = dropout(hidden)
            # The mean is linear: it is taken on the narrower side.
            if weight.shape[2] <= 2 * weight.shape[1]:
                hidden = self._joined(batch, linear(hidden, weight))
            else:
                both = torch.cat([batch.propagate(hidden, "mean"), hidden], dim=2)
                hidden = linear(both, torch.cat(weight.chunk(2, dim=2), dim=1))
            hidden = hidden + parameters[f"bias{layer}"]
            if layer < self.layers:
                hidden = ACTIVATIONS[self.activation](hidden)
        return hidden

    @staticmethod
    def _joined(batch: Batch, both: Tensor) -> Tensor:
        """Return the mean over neighbours of the first half plus the second half."""
        neighbours, own = both.chunk(2, dim=2)
        return batch.propagate(neighbours, "mean") + own
