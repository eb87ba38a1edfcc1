from __future__ import annotations

import pytest
import torch
from learn_factory import small_problem
from pyg_factory import (
    CPU,
    SMALL,
    Builder,
    Drop,
    Pieces,
    Plain,
    check_outputs_and_gradients,
    check_small,
    check_training,
    directed,
    some_runs,
    training_problem,
)
from torch import Tensor
from torch_geometric.nn import SGConv

from graphldp.errors import OptionError
from graphldp.learn import Problem, model
from graphldp.learn.batch import GraphMatrices, RunBatch
from graphldp.learn.models.parts import polynomial
from graphldp.learn.models.sgc import SGC
from graphldp.learn.sparse import Csr


class PlainSGC(Plain):
    def __init__(self, net: SGC, problem: Problem):
        super().__init__()
        self.conv = SGConv(problem.dimensions, problem.classes, K=net.steps)

    def pieces(self) -> Pieces:
        return {"weight1": [(self.conv.lin.weight, True)], "bias1": [(self.conv.lin.bias, False)]}

    def forward(self, x: Tensor, edges: Tensor, drop: Drop) -> Tensor:
        return self.conv(x, edges)


def builder(net: SGC) -> Builder:
    return lambda problem: PlainSGC(net, problem)


@pytest.mark.parametrize("order", ["propagate", "materialise"])
@pytest.mark.parametrize("steps", [0, 1, 2, 5])
@pytest.mark.parametrize("one_way", [False, True])
def test_outputs_and_gradients_equal_pyg(order: str, steps: int, one_way: bool) -> None:
    problem, labels = small_problem(kinds=("sparse", "dense"), classes=5)
    if one_way:
        problem = directed(problem)
    net = SGC(steps=steps)
    check_outputs_and_gradients(net, builder(net), problem, some_runs(problem, labels), order)


def test_training_equals_pyg() -> None:
    check_training(SGC(), builder(SGC()), *training_problem())


@pytest.mark.parametrize("problem", SMALL)
def test_small_graphs(problem: Problem) -> None:
    check_small(SGC(), builder(SGC()), problem)


def test_nothing_is_propagated_at_the_width_of_the_features(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, labels = small_problem(dimensions=50, classes=3)
    runs = some_runs(problem, labels)
    net, widths = SGC(steps=4), []
    batch = RunBatch(problem, runs, GraphMatrices(problem, net, CPU), "propagate")
    multiply = Csr.multiply

    def watched(matrix: Csr, dense: Tensor, *rest: object, **more: object) -> Tensor:
        widths.append(dense.shape[1])
        return multiply(matrix, dense, *rest, **more)

    monkeypatch.setattr(Csr, "multiply", watched)
    shapes = net.parameters(50, 3)
    weights = {name: torch.zeros(len(runs), *one.shape, requires_grad=True) for name, one in shapes.items()}
    net.trunk(weights, batch).sum().backward()
    assert len(widths) >= 2 * net.steps
    assert max(widths) == len(runs) * problem.classes


@pytest.mark.parametrize("coefficients", [[2.0], [0.0, 1.0], [0.5, -1.0, 0.0, 2.0], [1.0, 1.0, 0.0]])
def test_polynomial(coefficients: list[float]) -> None:
    problem, labels = small_problem()
    problem = directed(problem)
    batch = RunBatch(problem, some_runs(problem, labels), GraphMatrices(problem, SGC(), CPU), "propagate")
    matrix = batch.operators["normalised"].forward.tensor.to_dense().double()
    torch.manual_seed(0)
    hidden = torch.randn(problem.nodes, 3, 4, requires_grad=True)
    given = hidden.detach().clone()
    found = polynomial(batch, hidden, "normalised", coefficients)
    dense = sum(c * torch.linalg.matrix_power(matrix, k) for k, c in enumerate(coefficients))
    torch.testing.assert_close(found, torch.einsum("ij,jrw->irw", dense, given.double()).float(), rtol=1e-4, atol=1e-5)
    slope = torch.randn_like(found)
    found.backward(slope)
    torch.testing.assert_close(
        hidden.grad, torch.einsum("ji,jrw->irw", dense, slope.double()).float(), rtol=1e-4, atol=1e-5
    )
    assert torch.equal(hidden, given), "the argument was overwritten"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": -1}, "steps must be >= 0, got -1"),
        ({"steps": 2.0}, r"steps must be a whole number >= 0, got 2\.0"),
        ({"hidden": 16}, r"model sgc has no option 'hidden'; it has: steps"),
    ],
)
def test_options_are_checked(options: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        model("sgc", **options)
