from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from learn_factory import small_problem
from pyg_factory import (
    SMALL,
    Builder,
    Drop,
    Pieces,
    Plain,
    check_outputs_and_gradients,
    check_small,
    check_training,
    some_runs,
    training_problem,
)
from torch import Tensor
from torch_geometric.nn import MLP as PygMLP

from graphldp.errors import OptionError
from graphldp.learn import Problem, model
from graphldp.learn.models.mlp import MLP


class PlainMLP(Plain):
    """torch_geometric's layers; the residual of equal widths, which they lack, is added by hand."""

    def __init__(self, net: MLP, problem: Problem):
        super().__init__()
        widths = [problem.dimensions, *[net.hidden] * (net.layers - 1), problem.classes]
        self.mlp = PygMLP(widths, act=getattr(torch, net.activation), norm=None, bias=net.bias)
        self.square = [net.residual and a == b for a, b in pairwise(widths)]
        self.activation = getattr(torch, net.activation)

    def pieces(self) -> Pieces:
        out: Pieces = {}
        for number, linear in enumerate(self.mlp.lins, start=1):
            out[f"weight{number}"] = [(linear.weight, True)]
            if linear.bias is not None:
                out[f"bias{number}"] = [(linear.bias, False)]
        return out

    def forward(self, x: Tensor, edges: Tensor, drop: Drop) -> Tensor:
        for number, (linear, square) in enumerate(zip(self.mlp.lins, self.square, strict=True), start=1):
            x = linear(x) + x if square else linear(x)
            if number < len(self.square):
                x = drop(self.activation(x))
        return x


class WholeMLP(PlainMLP):
    """torch_geometric's own forward pass."""

    def forward(self, x: Tensor, edges: Tensor, drop: Drop) -> Tensor:
        return self.mlp(x)


def builder(net: MLP) -> Builder:
    return lambda problem: PlainMLP(net, problem)


NETS = [
    pytest.param(MLP(), id="published"),
    pytest.param(MLP(layers=1), id="one layer"),
    pytest.param(MLP(layers=4, hidden=6, activation="relu"), id="deep"),
    pytest.param(MLP(layers=3, hidden=12), id="as wide as the features"),
    pytest.param(MLP(layers=3, hidden=5), id="as wide as the classes"),
    pytest.param(MLP(layers=3, hidden=5, bias=True, residual=False), id="bias"),
]


@pytest.mark.parametrize("order", ["propagate", "materialise"])
@pytest.mark.parametrize("net", NETS)
def test_outputs_and_gradients_equal_the_plain_way(order: str, net: MLP) -> None:
    problem, labels = small_problem(kinds=("sparse", "dense"), classes=5, dimensions=12)
    check_outputs_and_gradients(net, builder(net), problem, some_runs(problem, labels), order)


def test_without_residual_it_is_pygs_mlp() -> None:
    problem, labels = small_problem(kinds=("sparse", "dense"), classes=5)
    net = MLP(layers=3, hidden=5, bias=True, residual=False)
    check_outputs_and_gradients(net, lambda one: WholeMLP(net, one), problem, some_runs(problem, labels))


@pytest.mark.parametrize("net", [NETS[0], NETS[2], NETS[5]])
def test_training_equals_the_plain_way(net: MLP) -> None:
    check_training(net, builder(net), *training_problem())


@pytest.mark.parametrize("problem", SMALL)
def test_small_graphs(problem: Problem) -> None:
    check_small(MLP(), builder(MLP()), problem)


def test_the_graph_enters_through_the_filter_alone() -> None:
    assert MLP().operators(small_problem()[0].adjacency) == {}


def test_initial_law_is_that_of_the_published_code() -> None:
    weight = torch.empty(300, 64)
    # The published layer stores inputs x outputs, of which torch takes the first to be the outputs.
    torch.nn.init.kaiming_uniform_(weight, a=0, mode="fan_out", nonlinearity="relu")
    drawn = MLP(hidden=64).parameters(300, 7)["weight1"].draw(torch.Generator().manual_seed(0))
    bound = np.sqrt(6 / 300)
    for one in (weight, drawn):
        assert 0.99 * bound < one.abs().max() <= bound
        assert one.var().item() == pytest.approx(bound**2 / 3, rel=0.05)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": 0}, "hidden must be >= 1, got 0"),
        ({"layers": 0}, "layers must be >= 1, got 0"),
        ({"activation": "gelu"}, "activation must be one of relu, selu, tanh, got 'gelu'"),
    ],
)
def test_options_are_checked(options: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        model("mlp", **options)
