"""What a backbone sees of several runs at once (`models.base.Batch`)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from graphldp.learn.inputs import Projection
from graphldp.learn.models.base import Backbone
from graphldp.learn.problem import Problem, Run
from graphldp.learn.sparse import SparseMatrix, product

__all__ = ["GraphMatrices", "RunBatch", "without_dropout"]


class GraphMatrices:
    """The graph on a device: the filter's S and the backbone's own operators."""

    def __init__(self, problem: Problem, backbone: Backbone, device: torch.device):
        self.device = device
        self.shift = SparseMatrix.of(problem.shift, device)
        operators = backbone.operators(problem.adjacency)
        self.operators = {name: SparseMatrix.of(matrix, device) for name, matrix in operators.items()}


class RunBatch:
    """Runs that are computed together."""

    def __init__(self, problem: Problem, runs: Sequence[Run], graph: GraphMatrices, order: str):
        self.operators = graph.operators
        self.projection = Projection(problem, runs, graph.shift, order, graph.device)

    def project(self, weight: Tensor) -> Tensor:
        """Return F_r(X_r) W_r."""
        return self.projection(weight)

    def propagate(self, hidden: Tensor, operator: str) -> Tensor:
        """Return A H."""
        return product(self.operators[operator], hidden)


def without_dropout(hidden: Tensor) -> Tensor:
    """Return the units as they are: the dropout of validation and prediction."""
    return hidden
