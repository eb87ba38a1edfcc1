"""What a batch of runs learns from: the graph, the inputs, and one `Run` per model to train."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphldp.errors import DataError, OptionError
from graphldp.learn.deferred import Deferred
from graphldp.learn.models.gcn import GCN
from graphldp.learn.tasks.classification import NodeClassification
from graphldp.splits import Split

if TYPE_CHECKING:
    from graphldp.learn.models.base import Backbone
    from graphldp.learn.tasks.base import Targets, Task

__all__ = ["MessageGraph", "NodeInputs", "Options", "Outcome", "Problem", "Run"]

NO_NODES = Split(train=np.empty(0, int), validation=np.empty(0, int), test=np.empty(0, int))
ORDERS = ("auto", "propagate", "materialise")


def no_labels() -> NDArray[np.int64]:
    """Return the labels of a run whose task has none."""
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeInputs:
    """One estimate of everybody's features: X = fill * ones + deviations, which stays as sparse as the reports.

    Attributes:
        deviations: n x d; CSR, a dense array for mechanisms that report every dimension, or, of filtered inputs, a
            dense matrix that is made when it is needed.
        fill: what a coordinate without a deviation counts as.
        filtered: the filter has been applied already (after a post-threshold, which does not commute with the
            weights); a run's coefficients are not applied again.
        over: of filtered inputs: the matrix over which the filter passed messages, so that a task that hides edges
            can look for them there.
        full: of sparse deviations: how many of their first columns are nearly full, and multiplied as a dense matrix.
    """

    deviations: sp.csr_array | NDArray[np.float32] | Deferred
    fill: float = 0.0
    filtered: bool = False
    over: sp.csr_array | None = None
    full: int = 0

    def __post_init__(self) -> None:
        values = self._values()
        if not np.isfinite(values).all() or not np.isfinite(self.fill):
            raise DataError("inputs must be finite: they hold a NaN or an infinity")
        if isinstance(self.deviations, Deferred) and not self.filtered:
            raise DataError("a matrix that is made when it is needed must be filtered already")
        if len(self.deviations.shape) != 2:
            raise DataError(f"inputs must be a matrix nodes x dimensions, got the shape {self.deviations.shape}")
        nodes = self.deviations.shape[0]
        if self.over is not None and not (self.filtered and self.over.shape == (nodes, nodes)):
            raise DataError(f"over is the {nodes} x {nodes} matrix that filtered inputs were filtered over")

    def _values(self) -> NDArray[np.float32]:
        """Return the numbers that are there already."""
        if isinstance(self.deviations, Deferred):
            return np.empty(0, dtype=np.float32)
        return np.asarray(self.deviations.data if self.sparse else self.deviations)

    def digest(self) -> bytes | memoryview:
        """Return bytes that differ where the numbers do, without a copy of these."""
        if isinstance(self.deviations, Deferred):
            return self.deviations.mark.encode()
        return np.ascontiguousarray(self._values()).reshape(-1).view(np.uint8).data

    def dense(self) -> NDArray[np.float32]:
        """Return the deviations as a dense array: the one that is held, where one is."""
        deviations: Any = self.deviations
        if isinstance(deviations, Deferred):
            return deviations.matrix()
        return np.asarray(deviations.toarray() if self.sparse else deviations)

    @property
    def sparse(self) -> bool:
        """Whether the deviations are stored sparse."""
        return bool(sp.issparse(self.deviations))

    @property
    def stored(self) -> int:
        """How many numbers are stored."""
        deviations: Any = self.deviations
        return int(deviations.nnz) if self.sparse else int(deviations.size)

    @property
    def multiplied(self) -> tuple[int, int]:
        """How many numbers are multiplied as a sparse matrix, and how many as a dense one."""
        if not self.sparse:
            return 0, self.stored
        full = self.full * int(self.deviations.shape[0])
        return max(0, self.stored - full), full


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MessageGraph:
    """A graph that messages are passed over.

    Attributes:
        shift: n x n, CSR: the filter's S (for KProp the symmetric normalised adjacency without self-loops).
        adjacency: n x n, CSR: the plain adjacency matrix without self-loops. A backbone normalises it itself.
    """

    shift: sp.csr_array
    adjacency: sp.csr_array

    def check(self, nodes: int) -> None:
        """Refuse matrices that are not of so many nodes, not finite, or hold self-loops where none may be."""
        for name, matrix in (("shift", self.shift), ("adjacency", self.adjacency)):
            if matrix.shape != (nodes, nodes):
                raise DataError(f"the {name} must be {nodes} x {nodes} as there are {nodes} nodes, got {matrix.shape}")
            if not np.isfinite(matrix.data).all():
                raise DataError(f"the {name} must be finite: it holds a NaN or an infinity")
        if nodes and np.any(self.adjacency.diagonal()):
            raise DataError("the adjacency must be the plain one without self-loops: the backbone adds its own")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Problem:
    """What all runs of a batch share.

    Attributes:
        shift, adjacency: of the graph that runs pass messages over, as in `MessageGraph`.
        inputs: the estimates of the features, one per report seed; runs point into them.
        classes: how many classes there are; 1 if the task has none.
        more: further graphs on the same nodes, where runs have graphs of their own: a run with `graph=k` is on the
            k-th of them, with 0 on the first two fields'. `Problem.over` takes all graphs as one list.
    """

    shift: sp.csr_array
    adjacency: sp.csr_array
    inputs: tuple[NodeInputs, ...]
    classes: int = 1
    more: tuple[MessageGraph, ...] = ()

    @classmethod
    def over(cls, graphs: Sequence[MessageGraph], inputs: Sequence[NodeInputs], classes: int = 1) -> Problem:
        """Return a problem whose run with `graph=k` is on graphs[k]."""
        if not graphs:
            raise DataError("a problem needs at least one graph")
        first, *more = graphs
        return cls(
            shift=first.shift, adjacency=first.adjacency, inputs=tuple(inputs), classes=classes, more=tuple(more)
        )

    def graph(self, index: int) -> MessageGraph:
        """Return the graph of runs with `graph=index`."""
        return self.more[index - 1] if index else MessageGraph(shift=self.shift, adjacency=self.adjacency)

    def on(self, index: int) -> Problem:
        """Return the problem of the runs with `graph=index` alone."""
        if not self.more:
            return self
        graph = self.graph(index)
        return Problem(shift=graph.shift, adjacency=graph.adjacency, inputs=self.inputs, classes=self.classes)

    def __post_init__(self) -> None:
        if not self.inputs:
            raise DataError("a problem needs at least one input matrix")
        n, d = self.inputs[0].deviations.shape
        for position, one in enumerate(self.inputs):
            if one.deviations.shape != (n, d):
                raise DataError(f"inputs {position} have the shape {one.deviations.shape}, inputs 0 have {(n, d)}")
        for index in range(len(self.more) + 1):
            self.graph(index).check(n)
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
        split: train, validation and test nodes; none for a task that splits something else.
        labels: classes of the training and validation nodes, -1 elsewhere: `split.visible(labels)`.
        targets: what a task has instead of labels or beside them.
        graph: which of the problem's graphs the run is on.
        seed: initial parameters and dropout depend on it (and on the epoch), on nothing else.
        learning_rate, weight_decay, dropout: as in torch.optim.Adam and torch.nn.Dropout; the dropout rate is
            rounded to a multiple of 1/256.
        coefficients: theta_0..theta_K of the filter sum_k theta_k S^k; (1.0,) is no filter.
    """

    inputs: int
    seed: int
    split: Split = NO_NODES
    labels: NDArray[np.integer[Any]] = field(default_factory=no_labels)
    targets: Targets | None = None
    graph: int = 0
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
        """Refuse a run that does not fit the problem; its task asks for what it needs."""
        if not 0 <= self.inputs < len(problem.inputs):
            raise OptionError(f"a run names inputs {self.inputs}, but there are {len(problem.inputs)}")
        if not 0 <= self.graph <= len(problem.more):
            raise OptionError(f"a run names graph {self.graph}, but there are {len(problem.more) + 1}")
        for name in ("train", "validation"):
            nodes = getattr(self.split, name)
            if nodes.size and not (nodes.min() >= 0 and nodes.max() < problem.nodes):
                raise DataError(f"the split's {name} nodes must be in 0..{problem.nodes - 1}")
        labels = np.asarray(self.labels)
        if labels.shape not in ((0,), (problem.nodes,)):
            raise DataError(f"{problem.nodes} nodes need {problem.nodes} labels, got {labels.shape}")

    def check_hidden(self, problem: Problem) -> None:
        """Refuse a run that holds anything of the test part, whatever its task."""
        hidden = np.ones(problem.nodes, dtype=bool)
        hidden[self.split.train] = hidden[self.split.validation] = False
        labels = np.asarray(self.labels)
        if labels.size and (labels[hidden] != -1).any():
            raise DataError("labels outside train and validation must be hidden (-1): use split.visible(labels)")
        if self.targets is not None:
            self.targets.check(hidden)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a batch is trained.

    Attributes:
        model: the backbone and its options.
        task: what is predicted.
        epochs: updates at most.
        patience: a run stops once its validation loss has not improved for so many epochs; None never stops.
        order: `propagate` (inputs times weights first), `materialise` (filter the inputs first), or `auto`.
        max_memory: bytes that training may take, by estimate; a bigger batch is split into waves.
        batch_size: training nodes of one update; 0 is all of them, unless not even a single run fits into `max_memory`.
        neighbors: in batches of a backbone whose layers pass messages: neighbours that a node hears in each layer
            while training; -1 is all.
    """

    model: Backbone = field(default_factory=GCN)
    task: Task = field(default_factory=NodeClassification)
    epochs: int = 500
    patience: int | None = 100
    order: str = "auto"
    max_memory: int | None = None
    batch_size: int = 0
    neighbors: int = 10

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise OptionError(f"epochs must be >= 1, got {self.epochs}")
        if self.patience is not None and self.patience < 1:
            raise OptionError(f"patience must be >= 1, or none to train all epochs, got {self.patience}")
        if self.order not in ORDERS:
            raise OptionError(f"order must be one of {', '.join(ORDERS)}, got {self.order!r}")
        if self.max_memory is not None and self.max_memory < 1:
            raise OptionError(f"max_memory must be >= 1 byte, got {self.max_memory}")
        if self.batch_size < 0:
            raise OptionError(f"batch_size must be >= 1, or 0 for all nodes at once, got {self.batch_size}")
        if self.neighbors < 1 and self.neighbors != -1:
            raise OptionError(f"neighbors must be >= 1, or -1 for all, got {self.neighbors}")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """What the runs have become; index r is run r as it was given.

    Attributes:
        best_epoch: updates made when the validation loss was lowest; 0 if it never was finite.
        epochs: updates after which the run ended.
        validation_loss: at the best epoch; infinity if it never was finite.
        metrics: the task's metrics on the validation part, at the best epoch.
        failed: whether a loss was not finite; the run then keeps its best parameters so far.
        outputs: runs x nodes, under the task's names: what the best parameters predict for each node.
        parameters: the best parameters, each with a leading run axis.
        record: JSON-able: the task, the order of the chain with its estimates, the waves, the failures.
    """

    best_epoch: NDArray[np.int32]
    epochs: NDArray[np.int32]
    validation_loss: NDArray[np.float64]
    metrics: dict[str, NDArray[np.float64]]
    failed: NDArray[np.bool_]
    outputs: dict[str, NDArray[Any]]
    parameters: dict[str, NDArray[np.float32]]
    record: dict[str, Any]

    @property
    def validation_accuracy(self) -> NDArray[np.float64]:
        """The validation accuracy at the best epoch, of a task that has classes; 0 if no loss ever was finite."""
        if "accuracy" not in self.metrics:
            raise OptionError(f"this task has no accuracy; its metrics are {', '.join(self.metrics)}")
        return self.metrics["accuracy"]

    @property
    def predictions(self) -> NDArray[np.int32]:
        """The class that the best parameters give each node, runs x nodes, of a task that has classes."""
        if "classes" not in self.outputs:
            raise OptionError("this task predicts no classes; see outcome.outputs and the task's score function")
        return self.outputs["classes"]
