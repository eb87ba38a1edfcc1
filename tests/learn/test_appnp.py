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
from torch_geometric.nn import APPNP as Walk

from graphldp.errors import OptionError
from graphldp.learn import Problem, model
from graphldp.learn.models.appnp import APPNP


class PlainAPPNP(Plain):
    def __init__(self, net: APPNP, problem: Problem):
        super().__init__()
        widths = [problem.dimensions, *[net.hidden] * (net.layers - 1), problem.classes]
        self.lins = torch.nn.ModuleList([torch.nn.Linear(a, b) for a, b in pairwise(widths)])
        self.walk = Walk(K=net.steps, alpha=net.decay)
        self.activation = getattr(torch, net.activation)

    def pieces(self) -> Pieces:
        out: Pieces = {}
        for number, linear in enumerate(self.lins, start=1):
            out[f"weight{number}"], out[f"bias{number}"] = [(linear.weight, True)], [(linear.bias, False)]
        return out

    def forward(self, x: Tensor, edges: Tensor, drop: Drop) -> Tensor:
        for linear in self.lins[:-1]:
            x = drop(self.activation(linear(x)))
        return self.walk(self.lins[-1](x), edges)


def builder(net: APPNP) -> Builder:
    return lambda problem: PlainAPPNP(net, problem)


NETS = [
    pytest.param(APPNP(), id="plain"),
    pytest.param(APPNP(layers=1), id="one layer"),
    pytest.param(APPNP(hidden=3, layers=3, steps=3, decay=0.5, activation="relu"), id="deep"),
    pytest.param(APPNP(steps=0), id="no steps"),
    pytest.param(APPNP(steps=1, decay=0.0), id="one step without return"),
    pytest.param(APPNP(decay=1.0), id="no walk"),
]


@pytest.mark.parametrize("order", ["propagate", "materialise"])
@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("one_way", [False, True])
def test_outputs_and_gradients_equal_pyg(order: str, net: APPNP, one_way: bool) -> None:
    problem, labels = small_problem(kinds=("sparse", "dense"), classes=5)
    if one_way:
        problem = directed(problem)
    check_outputs_and_gradients(net, builder(net), problem, some_runs(problem, labels), order)


@pytest.mark.parametrize("net", [NETS[0], NETS[2]])
def test_training_equals_pyg(net: APPNP) -> None:
    check_training(net, builder(net), *training_problem())


@pytest.mark.parametrize("problem", SMALL)
def test_small_graphs(problem: Problem) -> None:
    check_small(APPNP(), builder(APPNP()), problem)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": 0}, "hidden must be >= 1, got 0"),
        ({"layers": 0}, "layers must be >= 1, got 0"),
        ({"steps": -1}, "steps must be >= 0, got -1"),
        ({"steps": True}, "steps must be a whole number >= 0, got True"),
        ({"decay": 1.5}, r"decay must be in \[0, 1\], got 1\.5"),
        ({"decay": float("nan")}, r"decay must be in \[0, 1\], got nan"),
        ({"activation": "gelu"}, "activation must be one of relu, selu, tanh, got 'gelu'"),
    ],
)
def test_options_are_checked(options: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        model("appnp", **options)
