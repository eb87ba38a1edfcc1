"""What a batch of runs learns from: the graph, the inputs, and one `Run` per model to train."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphldp.errors import DataError, OptionError
from graphldp.learn.models.gcn import GCN
from graphldp.learn.splits import Split

if TYPE_CHECKING:
    from graphldp.learn.models.base import Backbone

__all__ = ["NodeInputs", "Options", "Outcome", "Problem", "Run"]

ORDERS = ("auto", "propagate", "materialise")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeInputs:
    """One estimate of everybody's features: X = fill * ones + deviations, which stays as sparse as the reports.

    Attributes:
        deviations: n x d; CSR, or a dense array for mechanisms that report every dimension.
        fill: what a coordinate without a deviation counts as.
        filtered: the filter has been applied already (after a post-threshold, which does not commute with the
            weights); the deviations must then be dense, and a run's coefficients are not applied again.
    """

    deviations: sp.csr_array | NDArray[np.float32]
    fill: float = 0.0
    filtered: bool = False

    def __post_init__(self) -> None:
        values = self.deviations.data if self.sparse else np.asarray(self.deviations)
        if not np.isfinite(values).all() or not np.isfinite(self.fill):
            raise DataError("inputs must be finite: they hold a NaN or an infinity")
        if len(self.deviations.shape) != 2:
            raise DataError(f"inputs must be a matrix nodes x dimensions, got the shape {self.deviations.shape}")
        if self.filtered and self.sparse:
            raise DataError("inputs that are already filtered must be dense")

    @property
    def sparse(self) -> bool:
        """Whether the deviations are stored sparse."""
        return bool(sp.issparse(self.deviations))

    @property
    def stored(self) -> int:
        """How many numbers are stored."""
        deviations: Any = self.deviations
        return int(deviations.nnz) if self.sparse else int(deviations.size)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Problem:
    """What all runs of a batch share.

    Attributes:
        shift: n x n, CSR: the filter's S (for KProp the symmetric normalised adjacency without self-loops).
        adjacency: n x n, CSR: the plain adjacency matrix without self-loops. A backbone normalises it itself.
        inputs: the estimates of the features, one per report seed; runs point into them.
        classes: how many classes there are.
    """

    shift: sp.csr_array
    adjacency: sp.csr_array
    inputs: tuple[NodeInputs, ...]
    classes: int

    def __post_init__(self) -> None:
        if not self.inputs:
            raise DataError("a problem needs at least one input matrix")
        n, d = self.inputs[0].deviations.shape
        for position, one in enumerate(self.inputs):
            if one.deviations.shape != (n, d):
                raise DataError(f"inputs {position} have the shape {one.deviations.shape}, inputs 0 have {(n, d)}")
        for name, matrix in (("shift", self.shift), ("adjacency", self.adjacency)):
            if matrix.shape != (n, n):
                raise DataError(f"the {name} must be {n} x {n} as there are {n} nodes, got {matrix.shape}")
            if not np.isfinite(matrix.data).all():
                raise DataError(f"the {name} must be finite: it holds a NaN or an infinity")
        if n and np.any(self.adjacency.diagonal()):
            raise DataError("the adjacency must be the plain one without self-loops: the backbone adds its own")
        if self.classes < 1:
            raise DataError(f"classes must be >= 1, got {self.classes}")

    @property
    def nodes(self) -> int:
        """How many nodes."""
        return int(self.inputs[0].deviations.shape[0])

    @property
    def dimensions(self) -> int:
        """How many features."""
        return int(self.inputs[0].deviations.shape[1])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """One model to train: its data, its seed and its rates.

    Attributes:
        inputs: index into `Problem.inputs`.
        split: train, validation and test nodes.
        labels: classes of the training and validation nodes, -1 elsewhere: `split.visible(labels)`.
        seed: initial parameters and dropout depend on it (and on the epoch), on nothing else.
        learning_rate, weight_decay, dropout: as in torch.optim.Adam and torch.nn.Dropout; the dropout rate is
            rounded to a multiple of 1/256.
        coefficients: theta_0..theta_K of the filter sum_k theta_k S^k; (1.0,) is no filter.
    """

    inputs: int
    split: Split
    labels: NDArray[np.integer[Any]]
    seed: int
    learning_rate: float = 0.01
    weight_decay: float = 0.0
    dropout: float = 0.0
    coefficients: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        if not 0 < self.learning_rate < np.inf:
            raise OptionError(f"learning_rate must be finite and > 0, got {self.learning_rate}")
        if not 0 <= self.weight_decay < np.inf:
            raise OptionError(f"weight_decay must be finite and >= 0, got {self.weight_decay}")
        if not 0 <= self.dropout < 1:
            raise OptionError(f"dropout must be in [0, 1), got {self.dropout}")
        if not self.coefficients or not np.isfinite(self.coefficients).all():
            raise OptionError(f"filter coefficients must be one or more finite numbers, got {self.coefficients}")

    def check(self, problem: Problem) -> None:
        """Refuse a run that does not fit the problem."""
        if not 0 <= self.inputs < len(problem.inputs):
            raise OptionError(f"a run names inputs {self.inputs}, but there are {len(problem.inputs)}")
        labels = np.asarray(self.labels)
        if labels.shape != (problem.nodes,):
            raise DataError(f"{problem.nodes} nodes need {problem.nodes} labels, got {labels.shape}")
        for name in ("train", "validation"):
            nodes = getattr(self.split, name)
            if not nodes.size:
                raise DataError(f"the split has no {name} nodes: training and selection need at least one each")
            if not (nodes.min() >= 0 and nodes.max() < problem.nodes):
                raise DataError(f"the split's {name} nodes must be in 0..{problem.nodes - 1}")
            if not (labels[nodes].min() >= 0 and labels[nodes].max() < problem.classes):
                raise DataError(f"each {name} node needs a label in 0..{problem.classes - 1}")
        hidden = np.ones(problem.nodes, dtype=bool)
        hidden[self.split.train] = hidden[self.split.validation] = False
        if (labels[hidden] != -1).any():
            raise DataError("labels outside train and validation must be hidden (-1): use split.visible(labels)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a batch is trained.

    Attributes:
        model: the backbone and its options.
        epochs: updates at most.
        patience: a run stops once its validation loss has not improved for so many epochs; None never stops.
        order: `propagate` (inputs times weights first), `materialise` (filter the inputs first), or `auto`.
        max_memory: bytes that training may take, by estimate; a bigger batch is split into waves.
    """

    model: Backbone = field(default_factory=GCN)
    epochs: int = 500
    patience: int | None = 100
    order: str = "auto"
    max_memory: int | None = None

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise OptionError(f"epochs must be >= 1, got {self.epochs}")
        if self.patience is not None and self.patience < 1:
            raise OptionError(f"patience must be >= 1, or none to train all epochs, got {self.patience}")
        if self.order not in ORDERS:
            raise OptionError(f"order must be one of {', '.join(ORDERS)}, got {self.order!r}")
        if self.max_memory is not None and self.max_memory < 1:
            raise OptionError(f"max_memory must be >= 1 byte, got {self.max_memory}")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """What the runs have become; index r is run r as it was given.

    Attributes:
        best_epoch: updates made when the validation loss was lowest; 0 if it never was finite.
        epochs: updates after which the run ended.
        validation_loss, validation_accuracy: at the best epoch; infinity and 0 if it never was finite.
        failed: whether a loss was not finite; the run then keeps its best parameters so far.
        predictions: runs x nodes, the class that the best parameters give each node.
        parameters: the best parameters, each with a leading run axis.
        record: JSON-able: the order of the chain with its estimates, the waves, the failures.
    """

    best_epoch: NDArray[np.int32]
    epochs: NDArray[np.int32]
    validation_loss: NDArray[np.float64]
    validation_accuracy: NDArray[np.float64]
    failed: NDArray[np.bool_]
    predictions: NDArray[np.int32]
    parameters: dict[str, NDArray[np.float32]]
    record: dict[str, Any]
