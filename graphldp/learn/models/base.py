"""What a backbone is: its options, its parameters, and a forward pass for many runs at once.

A forward pass has two halves, cut where dropout first strikes: `trunk` is the same in training and in validation and
is computed once per epoch, `head` is computed with dropout for the gradient and without it for the validation loss.
Both are written in torch operations on [nodes, runs, width] and get their gradients from autograd.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias

import scipy.sparse as sp
import torch
from torch import Tensor

if TYPE_CHECKING:
    from graphldp.learn.sparse import SparseMatrix

__all__ = ["Backbone", "Batch", "Decoupled", "Dropout", "Parameter", "Walk"]

Dropout: TypeAlias = Callable[[Tensor], Tensor]


class Batch(Protocol):
    """What a backbone may ask of the graph and of the inputs, for all runs of the batch at once."""

    @property
    def operators(self) -> Mapping[str, SparseMatrix]:
        """The backbone's own operators, on the device."""
        ...

    def project(self, weight: Tensor) -> Tensor:
        """Return F_r(X_r) W_r for each run r: weight [runs, d, width] gives [nodes, runs, width]."""
        ...

    def propagate(self, hidden: Tensor, operator: str) -> Tensor:
        """Return A H for one of the backbone's own operators, for [nodes, runs, width]."""
        ...


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of one run: its shape and how it starts.

    Attributes:
        shape: without the run axis.
        start: `glorot`, `zeros`, `uniform` on [-value, value], or `constant` at the value.
        value: of the last two.
    """

    shape: tuple[int, ...]
    start: str = "glorot"
    value: float = 0.0

    def draw(self, generator: torch.Generator) -> Tensor:
        """Return the initial value; Glorot's uniform law is over the last two axes, as torch_geometric has it."""
        if self.start == "zeros":
            return torch.zeros(self.shape)
        if self.start == "constant":
            return torch.full(self.shape, self.value)
        bound = self.value if self.start == "uniform" else math.sqrt(6.0 / (self.shape[-2] + self.shape[-1]))
        return torch.empty(self.shape).uniform_(-bound, bound, generator=generator)


@dataclass(frozen=True, slots=True)
class Walk:
    """A polynomial sum_k c_k A^k of one of the backbone's operators."""

    operator: str
    coefficients: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Decoupled:
    """A backbone whose walks over the graph stand before and after everything else, which then needs single rows.

    Attributes:
        rows: what is computed row by row: a backbone with the same parameters that uses no operator.
        before: applied to the inputs, once and for all.
        after: applied to the outputs, in every pass.
    """

    rows: Backbone
    before: Walk | None = None
    after: Walk | None = None


class Backbone(ABC):
    """A graph neural network: a frozen dataclass of options with these methods, registered under a name.

    Class attributes:
        sums: whether its operators are sums over neighbours, of which a node that hears k of d counts each d/k times.
        zeros: whether all its parameters start at 0, so that further inputs that are 0 change nothing.
    """

    name: ClassVar[str]
    sums: ClassVar[bool] = True
    zeros: ClassVar[bool] = False

    @abstractmethod
    def parameters(self, dimensions: int, classes: int) -> dict[str, Parameter]:
        """Return the parameters of one run."""

    @abstractmethod
    def operators(self, adjacency: sp.csr_array) -> dict[str, sp.csr_array]:
        """Return the matrices that the backbone propagates with, from the plain adjacency matrix."""

    @abstractmethod
    def width(self, classes: int) -> int:
        """Return how wide `trunk` projects the inputs: the chain's order is chosen by it."""

    def hops(self) -> int:
        """Return how many hops each pass walks the projected inputs, if more than a layer's one."""
        return 0

    def decoupled(self) -> Decoupled | None:
        """Return the backbone as rows and walks, or None if its layers pass messages between themselves."""
        return None

    def deeper(self) -> int:
        """Return how many hidden units a node has beyond those of the first layer."""
        return 0

    def memory(self, edges: int, classes: int) -> int:
        """Return the bytes that a run keeps for each edge, self-loops counted; an estimate."""
        return 0

    def working_memory(self, edges: int, classes: int, runs: int) -> int:
        """Return the bytes that runs on one graph need for its edges now and then, all together; an estimate."""
        return 0

    @abstractmethod
    def trunk(self, parameters: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """Return what comes before the first dropout, for all runs: [nodes, runs, width]."""

    @abstractmethod
    def head(self, parameters: Mapping[str, Tensor], batch: Batch, hidden: Tensor, dropout: Dropout) -> Tensor:
        """Return the logits [nodes, runs, classes] from the trunk's output."""
