"""GCN (Kipf and Welling, 2017), equal to torch_geometric's GCNConv run by run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from torch import Tensor

from graphldp.errors import OptionError
from graphldp.learn.layers import ACTIVATIONS, check_activation, linear
from graphldp.learn.models.base import Backbone, Batch, Dropout, Parameter
from graphldp.learn.models.registry import register

__all__ = ["GCN", "gcn_norm"]


def gcn_norm(adjacency: sp.csr_array) -> sp.csr_array:
    """Return D^-1/2 (A + I) D^-1/2 with D the row sums of A + I."""
    loops = sp.csr_array(adjacency, dtype=np.float64) + sp.eye_array(adjacency.shape[0], format="csr")
    # A + I has no empty row, so that no degree is 0.
    scale = 1.0 / np.sqrt(np.asarray(loops.sum(axis=1)).ravel())
    # In place: of a large graph, every copy is one too many.
    loops.data *= np.repeat(scale, np.diff(loops.indptr))
    loops.data *= scale[loops.indices]
    return sp.csr_array(loops)


@register("gcn")
@dataclass(frozen=True, slots=True, kw_only=True)
class GCN(Backbone):
    """Layers A H W + b with an activation and dropout between them; A is the normalised adjacency with self-loops.

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
        if self.hidden < 1:
            raise OptionError(f"hidden must be >= 1, got {self.hidden}")
        if self.layers < 1:
            raise OptionError(f"layers must be >= 1, got {self.layers}")
        check_activation(self.activation)

    def parameters(self, dimensions: int, classes: int) -> dict[str, Parameter]:
        """Return weight and bias of each layer."""
        widths = [dimensions, *[self.hidden] * (self.layers - 1), classes]
        out = {}
        for layer, (wide, narrow) in enumerate(pairwise(widths), start=1):
            out[f"weight{layer}"] = Parameter((wide, narrow))
            out[f"bias{layer}"] = Parameter((narrow,), "zeros")
        return out

    def operators(self, adjacency: sp.csr_array) -> dict[str, sp.csr_array]:
        """Return the normalised adjacency."""
        return {"normalised": gcn_norm(adjacency)}

    def width(self, classes: int) -> int:
        """Return the width of the first layer."""
        return self.hidden if self.layers > 1 else classes

    def deeper(self) -> int:
        """Return the units of the hidden layers between the first and the last."""
        return self.hidden * max(0, self.layers - 2)

    def trunk(self, parameters: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """Return the first layer, activated."""
        out = batch.propagate(batch.project(parameters["weight1"]), "normalised") + parameters["bias1"]
        return ACTIVATIONS[self.activation](out) if self.layers > 1 else out

    def head(self, parameters: Mapping[str, Tensor], batch: Batch, hidden: Tensor, dropout: Dropout) -> Tensor:
        """Return the other layers' output."""
        for layer in range(2, self.layers + 1):
            weight, bias = parameters[f"weight{layer}"], parameters[f"bias{layer}"]
            hidden = dropout(hidden)
            # A is linear: it is applied on the narrower side.
            if weight.shape[2] <= weight.shape[1]:
                hidden = batch.propagate(linear(hidden, weight), "normalised")
            else:
                hidden = linear(batch.propagate(hidden, "normalised"), weight)
            hidden = hidden + bias
            if layer < self.layers:
                hidden = ACTIVATIONS[self.activation](hidden)
        return hidden
