"""GAT (Velickovic et al., 2018), equal to torch_geometric's GATConv run by run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from graphldp.learn.layers import ACTIVATIONS, check_activation, linear
from graphldp.learn.models.attention import CHUNK, attend, edges_of
from graphldp.learn.models.base import Backbone, Batch, Dropout, Parameter
from graphldp.learn.models.parts import check_between, check_whole
from graphldp.learn.models.registry import register

__all__ = ["GAT"]

# Arrays like the shares that are kept where dropout strikes them, by measurement.
STRUCK_ARRAYS = 2
# Arrays of a chunk of scores that are alive at once; bytes of an edge's two ends in both orders, with their sorting.
CHUNK_ARRAYS, END_BYTES = 4, 24


@register("gat")
@dataclass(frozen=True, slots=True, kw_only=True)
class GAT(Backbone):
    """GAT: each node takes the mean of its neighbours and itself under learned attention, in several heads.

    A link of an estimated graph has its weight times the share that it would have if it were there for certain.

    The heads of a hidden layer stand side by side (its width is heads * hidden), those of the last layer are averaged;
    with one head there, as UPGNet has it, the average is that head.

    Attributes:
        hidden: width of one head of the hidden layers.
        layers: how many layers, the last one included.
        activation: between the layers.
        heads: heads of each hidden layer.
        output_heads: heads of the last layer.
        negative_slope: of LeakyReLU in the scores.
        attention_dropout: whether a run's dropout also strikes the shares of attention (off in UPGNet's code).
    """

    name: ClassVar[str]
    sums: ClassVar[bool] = False  # shares add up to 1, whoever is heard
    hidden: int = 16
    layers: int = 2
    activation: str = "selu"
    heads: int = 4
    output_heads: int = 1
    negative_slope: float = 0.2
    attention_dropout: bool = False

    def __post_init__(self) -> None:
        for name in ("hidden", "layers", "heads", "output_heads"):
            check_whole(name, getattr(self, name), 1)
        check_activation(self.activation)
        check_between("negative_slope", self.negative_slope, 0.0, 1.0)

    def parameters(self, dimensions: int, classes: int) -> dict[str, Parameter]:
        """Return of each layer the weight, both halves of each head's attention vector, and the bias."""
        out = {}
        wide = dimensions
        for layer in range(1, self.layers + 1):
            heads, width = self._shape(layer, classes)
            out[f"weight{layer}"] = Parameter((wide, heads * width))
            out[f"own{layer}"] = Parameter((heads, width))
            out[f"other{layer}"] = Parameter((heads, width))
            wide = heads * width if layer < self.layers else width
            out[f"bias{layer}"] = Parameter((wide,), "zeros")
        return out

    def operators(self, adjacency: sp.csr_array) -> dict[str, sp.csr_array]:
        """Return the edges with their weights, a self-loop of weight 1 at each node among them."""
        loops = sp.eye_array(adjacency.shape[0], format="csr")
        return {"edges": sp.csr_array(sp.csr_array(adjacency, dtype=np.float64) + loops)}

    def width(self, classes: int) -> int:
        """Return the width of the first layer, all heads together."""
        heads, width = self._shape(1, classes)
        return heads * width

    def deeper(self) -> int:
        """Return the units of the hidden layers between the first and the last."""
        return self.heads * self.hidden * max(0, self.layers - 2)

    def memory(self, edges: int, classes: int) -> int:
        """Return the bytes of all layers' shares, and of what strikes them."""
        heads = sum(self._shape(layer, classes)[0] for layer in range(1, self.layers + 1))
        return 4 * edges * heads * (1 + STRUCK_ARRAYS * self.attention_dropout)

    def working_memory(self, edges: int, classes: int, runs: int) -> int:
        """Return the bytes of the edges' ends in both directions, and of the scores that are worked on together."""
        widest = max(self._shape(layer, classes)[0] for layer in range(1, self.layers + 1))
        return END_BYTES * edges + 4 * CHUNK_ARRAYS * min(CHUNK, edges * widest * runs)

    def trunk(self, parameters: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """Return the first layer, activated; if dropout strikes its attention, what comes before."""
        projected = batch.project(parameters["weight1"])
        return projected if self.attention_dropout else self._layer(parameters, 1, batch, projected, None)

    def head(self, parameters: Mapping[str, Tensor], batch: Batch, hidden: Tensor, dropout: Dropout) -> Tensor:
        """Return the other layers' output."""
        strikes = dropout if self.attention_dropout else None
        if strikes:
            hidden = self._layer(parameters, 1, batch, hidden, strikes)
        for layer in range(2, self.layers + 1):
            projected = linear(dropout(hidden), parameters[f"weight{layer}"])
            hidden = self._layer(parameters, layer, batch, projected, strikes)
        return hidden

    def _shape(self, layer: int, classes: int) -> tuple[int, int]:
        """Return a layer's heads and the width of each."""
        return (self.heads, self.hidden) if layer < self.layers else (self.output_heads, classes)

    def _layer(
        self,
        parameters: Mapping[str, Tensor],
        layer: int,
        batch: Batch,
        projected: Tensor,
        dropout: Dropout | None,
    ) -> Tensor:
        """Return a layer's output from its product with the weight."""
        own, other = parameters[f"own{layer}"], parameters[f"other{layer}"]
        runs, heads, width = own.shape
        nodes, edges = projected.shape[0], edges_of(batch.operators["edges"])
        # All scores in one product: each head's vectors stand in its own columns.
        eye = torch.eye(heads, dtype=own.dtype, device=own.device).view(1, heads, 1, heads)
        vectors = torch.cat([own.unsqueeze(3) * eye, other.unsqueeze(3) * eye], dim=3)
        scores = linear(projected, vectors.view(runs, heads * width, 2 * heads)).view(nodes, runs, 2, heads)
        ours, theirs = (half.reshape(nodes, runs * heads) for half in scores.unbind(dim=2))
        keep = None
        if dropout is not None:
            ones = projected.new_ones(edges.count, runs, heads)
            struck = dropout(ones)
            keep = None if struck is ones else struck.view(edges.count, -1)
        values = projected.view(nodes, runs * heads, width)
        out = attend(values, ours, theirs, edges, slope=self.negative_slope, keep=keep)
        bias = parameters[f"bias{layer}"]
        if layer < self.layers:
            return ACTIVATIONS[self.activation](out.add_(bias.view(-1, width)).view(nodes, runs, heads * width))
        return (out if heads == 1 else out.view(nodes, runs, heads, width).mean(dim=2)) + bias
