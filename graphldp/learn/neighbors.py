"""Batches of nodes for backbones whose layers pass messages (GCN, GraphSAGE, GAT, GIN): nodes with their neighbourhood.

A batch is its nodes and, hop by hop, as many of their neighbours as the options say, drawn by torch_geometric's
NeighborLoader; the backbone runs on that part of the graph. Its operators keep the numbers that they have on the whole
graph, and a node that hears k of d neighbours counts them d/k times, so that each sum is right in the mean. Links'
weights are part of these numbers; neighbours are drawn evenly. Validation
and prediction are on all neighbours, and exact.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphldp.errors import OptionError
from graphldp.learn.minibatch import BatchTrainer, Rows
from graphldp.learn.models.base import Decoupled, Dropout
from graphldp.learn.models.registry import model, models
from graphldp.learn.problem import Options, Problem, Run
from graphldp.learn.sparse import SparseMatrix, product
from graphldp.randomness import seed_of

__all__ = ["NeighborTrainer", "missing_sampler"]

# A part of the graph, as torch_geometric's loaders return it: n_id, edge_index, e_id; the batch's nodes come first.
Sampler: TypeAlias = Callable[[Tensor], Any]


def missing_sampler(name: str) -> OptionError | None:
    """Return why a model cannot train in batches here, or None: NeighborLoader needs a library of its own."""
    if any(find_spec(library) is not None for library in ("pyg_lib", "torch_sparse")):
        return None
    others = ", ".join(one for one in models() if model(one).decoupled() is not None)
    return OptionError(
        f"model {name!r} passes messages between its layers: batches of nodes need torch_geometric's NeighborLoader, "
        "and that pyg-lib or torch-sparse, which are not installed. Install pyg-lib, or choose one of the models "
        f"{others}, or train in full batch"
    )


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """One of the backbone's operators, its numbers in the order of the adjacency's edges."""

    values: NDArray[np.float64]
    diagonal: NDArray[np.float64] | None

    @classmethod
    def of(cls, matrix: sp.csr_array, adjacency: sp.csr_array) -> Operator:
        """Take an operator apart. It has a number for each edge, and perhaps one for each node."""
        matrix = sp.csr_array(matrix, copy=True)
        matrix.sort_indices()
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        loops = rows == matrix.indices
        diagonal = matrix.diagonal() if loops.any() else None
        values = matrix.data[~loops]
        if len(values) != adjacency.nnz:
            raise OptionError(
                f"in batches an operator has a number for each of the {adjacency.nnz} edges, got {len(values)} numbers"
            )
        return cls(np.asarray(values, dtype=np.float64), diagonal)


class WholeGraph:
    """A graph with everything that its parts are cut out of."""

    def __init__(self, problem: Problem, options: Options, hops: int):
        adjacency = sp.csr_array(problem.adjacency)
        adjacency.sort_indices()
        self.degree, self.sums = np.diff(adjacency.indptr), options.model.sums
        operators = options.model.operators(adjacency)
        self.operators = {name: Operator.of(matrix, adjacency) for name, matrix in operators.items()}
        self.drawn = _loader(adjacency, [options.neighbors] * hops)
        self.every = _loader(adjacency, [-1] * hops)

    def part(self, found: Any, device: torch.device) -> dict[str, SparseMatrix]:
        """Return the operators on a part of the graph."""
        nodes = found.n_id.numpy()
        source, target = found.edge_index.numpy()
        edge = found.e_id.numpy()
        heard = np.bincount(target, minlength=len(nodes))
        scale = np.divide(self.degree[nodes], heard, out=np.ones(len(nodes)), where=(heard > 0) & self.sums)
        out = {}
        for name, operator in self.operators.items():
            rows, columns, values = target, source, operator.values[edge] * scale[target]
            if operator.diagonal is not None:
                own = np.arange(len(nodes))
                rows, columns = np.concatenate([rows, own]), np.concatenate([columns, own])
                values = np.concatenate([values, operator.diagonal[nodes]])
            matrix = sp.coo_array((values, (rows, columns)), shape=(len(nodes), len(nodes)))
            out[name] = SparseMatrix.of(sp.csr_array(matrix), device)
        return out


def _loader(adjacency: sp.csr_array, neighbors: list[int]) -> Sampler:
    """Return what draws the neighbourhood of given nodes; entry (i, j) of the adjacency lets i hear j."""
    with warnings.catch_warnings():
        # torch_geometric compiles a class with torch.jit as it is imported.
        warnings.simplefilter("ignore", DeprecationWarning)
        from torch_geometric.data import Data
        from torch_geometric.loader import NeighborLoader

    target = np.repeat(np.arange(adjacency.shape[0]), np.diff(adjacency.indptr))
    edges = torch.from_numpy(np.stack([adjacency.indices.astype(np.int64), target]))
    loader: Sampler = NeighborLoader(Data(edge_index=edges, num_nodes=adjacency.shape[0]), num_neighbors=neighbors)
    return loader


class Neighborhood(Rows):
    """Rows of some nodes and of what they hear, with the operators among them; the batch's nodes come first."""

    def __init__(self, rows: Tensor, operators: Mapping[str, SparseMatrix], count: int):
        super().__init__([(slice(0, 1), rows)])
        self.operators, self.count = operators, count

    def propagate(self, hidden: Tensor, operator: str) -> Tensor:
        """Return A H on this part of the graph."""
        return product(self.operators[operator], hidden)


class NeighborTrainer(BatchTrainer):
    """Trains runs in batches of nodes with their neighbourhood, one run at a time: each draws its own."""

    def _check(self, options: Options) -> None:
        missing = missing_sampler(options.model.name)
        if missing is not None:
            raise missing
        self._check_task(options)
        self.decoupled = Decoupled(rows=options.model)
        layers = getattr(options.model, "layers", None)
        if layers is None:
            raise OptionError(f"model {options.model.name!r} has no option `layers`: nobody knows how far it hears")
        self.hops = int(layers)
        self.wholes: dict[int, WholeGraph] = {}

    def _alike(self, run: Run) -> Hashable:
        return object()

    def _record(self) -> dict[str, Any]:
        record = super()._record()
        record["batches"]["neighbors"] = self.options.neighbors
        return record

    def _spread(self, rows: int) -> int:
        """Return how many nodes are around so many at most."""
        every = self.options.neighbors
        around = rows * sum(every**hop for hop in range(self.hops + 1)) if every > 0 else self.problem.nodes
        return min(around, self.problem.nodes)

    def whole(self, graph: int) -> WholeGraph:
        """Return a graph with its operators and samplers, made once."""
        with self.lock:
            if graph not in self.wholes:
                self.wholes[graph] = WholeGraph(self.problem.on(graph), self.options, self.hops)
            return self.wholes[graph]

    def rows(
        self, runs: Sequence[int], nodes: Sequence[NDArray[np.int64]], draw: tuple[int, int] | None = None
    ) -> Rows:
        """Return the neighbourhood of the nodes of the one run."""
        run, whole = self.runs[runs[0]], self.whole(self.runs[runs[0]].graph)
        wanted = torch.from_numpy(np.ascontiguousarray(nodes[0]))
        # The sampler draws from torch's global generator, which is given back as it was.
        with self.lock, torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_of(run.seed, "neighbors", *(draw or (-1, -1))))
            found = (whole.every if draw is None else whole.drawn)(wanted)
        rows = torch.from_numpy(self.store(self.slot[runs[0]]).take(found.n_id.numpy())).to(self.device)
        return Neighborhood(rows, whole.part(found, self.device), len(wanted))

    def _forward(self, parameters: Mapping[str, Tensor], rows: Rows, dropout: Dropout) -> Tensor:
        assert isinstance(rows, Neighborhood)
        return super()._forward(parameters, rows, dropout)[: rows.count]
