from __future__ import annotations

from itertools import pairwise

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
    directed,
    some_runs,
    training_problem,
)
from torch import Tensor
from torch_geometric.nn import MLP, GINConv

from graphldp.errors import OptionError
from graphldp.learn import Problem, model
from graphldp.learn.models.gin import GIN


class PlainGIN(Plain):
    def __init__(self, net: GIN, problem: Problem):
        super().__init__()
        self.activation, convs = getattr(torch, net.activation), []
        widths = [problem.dimensions, *[net.hidden] * (net.layers - 1), problem.classes]
        for wide, narrow in pairwise(widths):
            mlp = MLP([wide, *[net.hidden] * (net.mlp_layers - 1), narrow], act=self.activation, norm=None)
            convs.append(GINConv(mlp, eps=net.excess, train_eps=net.train_excess))
        self.convs = torch.nn.ModuleList(convs)

    def pieces(self) -> Pieces:
        out: Pieces = {}
        for number, conv in enumerate(self.convs, start=1):
            for place, linear in enumerate(conv.nn.lins, start=1):
                out[f"weight{number}_{place}"] = [(linear.weight, True)]
                out[f"bias{number}_{place}"] = [(linear.bias, False)]
            if isinstance(conv.eps, torch.nn.Parameter):
                out[f"excess{number}"] = [(conv.eps, False)]
        return out

    def forward(self, x: Tensor, edges: Tensor, drop: Drop) -> Tensor:
        for number, conv in enumerate(self.convs, start=1):
            x = conv(x, edges)
            if number < len(self.convs):
                x = drop(self.activation(x))
        return x


def builder(net: GIN) -> Builder:
    return lambda problem: PlainGIN(net, problem)


NETS = [
    pytest.param(GIN(), id="plain"),
    pytest.param(GIN(excess=0.3, train_excess=True), id="trained excess"),
    pytest.param(GIN(excess=-1.0, layers=1), id="one layer, neighbours alone"),
    pytest.param(GIN(layers=1, mlp_layers=1), id="one map"),
    pytest.param(GIN(hidden=2, mlp_layers=1, train_excess=True), id="narrow"),
    pytest.param(GIN(hidden=5, layers=3, mlp_layers=3, activation="relu"), id="deep"),
]


@pytest.mark.parametrize("order", ["propagate", "materialise"])
@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("one_way", [False, True])
def test_outputs_and_gradients_equal_pyg(order: str, net: GIN, one_way: bool) -> None:
    problem, labels = small_problem(kinds=("sparse", "dense"), classes=5)
    if one_way:
        problem = directed(problem)
    check_outputs_and_gradients(net, builder(net), problem, some_runs(problem, labels), order)


@pytest.mark.parametrize("net", [NETS[0], NETS[1], NETS[5]])
def test_training_equals_pyg(net: GIN) -> None:
    check_training(net, builder(net), *training_problem())


@pytest.mark.parametrize("problem", SMALL)
@pytest.mark.parametrize("net", [NETS[0], NETS[1]])
def test_small_graphs(problem: Problem, net: GIN) -> None:
    check_small(net, builder(net), problem)


def test_the_excess_starts_where_it_was_told() -> None:
    shapes = GIN(excess=0.3, train_excess=True).parameters(5, 3)
    assert shapes["excess1"].draw(torch.Generator()).tolist() == pytest.approx([0.3])
    assert "excess1" not in GIN(excess=0.3).parameters(5, 3)


def test_initial_law_is_pygs() -> None:
    drawn = GIN(hidden=32).parameters(400, 7)["weight1_1"].draw(torch.Generator().manual_seed(0))
    theirs = MLP([400, 32, 7]).lins[0].weight
    for weight in (drawn, theirs):
        assert 0.99 * 0.05 < weight.abs().max() <= 0.05
        assert weight.var().item() == pytest.approx(0.05**2 / 3, rel=0.05)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": 0}, "hidden must be >= 1, got 0"),
        ({"layers": 0}, "layers must be >= 1, got 0"),
        ({"mlp_layers": 0}, "mlp_layers must be >= 1, got 0"),
        ({"excess": float("nan")}, "excess must be finite, got nan"),
        ({"activation": "gelu"}, "activation must be one of relu, selu, tanh, got 'gelu'"),
    ],
)
def test_options_are_checked(options: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        model("gin", **options)
