"""APPNP (Gasteiger et al., 2019): a perceptron, then torch_geometric's APPNP, equal to it run by run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import scipy.sparse as sp
from torch import Tensor

from graphldp.learn.layers import ACTIVATIONS, check_activation, linear
from graphldp.learn.models.base import Backbone, Batch, Decoupled, Dropout, Parameter, Walk
from graphldp.learn.models.gcn import gcn_norm
from graphldp.learn.models.parts import check_between, check_whole, linear_bias, linear_weight, polynomial
from graphldp.learn.models.registry import register

__all__ = ["APPNP"]


@register("appnp")
@dataclass(frozen=True, slots=True, kw_only=True)
class APPNP(Backbone):
    """A perceptron whose logits walk K steps of personalised PageRank: Z <- (1 - decay) A Z + decay H.

    A is the normalised adjacency with self-loops. The steps are a polynomial of A, applied at the width of the
    classes.

    Attributes:
        hidden: width of the perceptron's hidden layers.
        layers: how many layers the perceptron has, the last one included.
        activation: between the layers.
        steps: K, how many power iterations.
        decay: weight of the perceptron's own output in each step (the paper's alpha).
    """

    name: ClassVar[str]
    hidden: int = 16
    layers: int = 2
    activation: str = "selu"
    steps: int = 10
    decay: float = 0.1

    def __post_init__(self) -> None:
        check_whole("hidden", self.hidden, 1)
        check_whole("layers", self.layers, 1)
        check_activation(self.activation)
        check_whole("steps", self.steps, 0)
        check_between("decay", self.decay, 0.0, 1.0)

    def parameters(self, dimensions: int, classes: int) -> dict[str, Parameter]:
        """Return weight and bias of each layer of the perceptron."""
        widths = [dimensions, *[self.hidden] * (self.layers - 1), classes]
        out = {}
        for layer, (wide, narrow) in enumerate(pairwise(widths), start=1):
            out[f"weight{layer}"] = linear_weight(wide, narrow)
            out[f"bias{layer}"] = linear_bias(wide, narrow)
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

    def decoupled(self) -> Decoupled:
        """Return the perceptron, and then its logits' walk."""
        return Decoupled(rows=replace(self, steps=0), after=Walk("normalised", self._coefficients()))

    def trunk(self, parameters: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """Return the first layer, activated; the logits if there is no other."""
        out = batch.project(parameters["weight1"]) + parameters["bias1"]
        return ACTIVATIONS[self.activation](out) if self.layers > 1 else self._walk(batch, out)

    def head(self, parameters: Mapping[str, Tensor], batch: Batch, hidden: Tensor, dropout: Dropout) -> Tensor:
        """Return the other layers' output after the walk."""
        if self.layers == 1:
            return hidden
        for layer in range(2, self.layers + 1):
            hidden = linear(dropout(hidden), parameters[f"weight{layer}"]) + parameters[f"bias{layer}"]
            if layer < self.layers:
                hidden = ACTIVATIONS[self.activation](hidden)
        return self._walk(batch, hidden)

    def _walk(self, batch: Batch, hidden: Tensor) -> Tensor:
        """Return sum_{k<K} decay (1-decay)^k A^k H + (1-decay)^K A^K H."""
        return polynomial(batch, hidden, "normalised", self._coefficients())

    def _coefficients(self) -> tuple[float, ...]:
        rest = 1.0 - self.decay
        return (*(self.decay * rest**k for k in range(self.steps)), rest**self.steps)
