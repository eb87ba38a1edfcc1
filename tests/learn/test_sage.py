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
    directed,
    some_runs,
    training_problem,
)
from torch import Tensor
from torch_geometric.nn import SAGEConv

from graphldp.errors import OptionError
from graphldp.learn import Problem, model
from graphldp.learn.models.sage import SAGE, mean_norm


class PlainSAGE(Plain):
    def __init__(self, widths: list[int], activation: str):
        super().__init__()
        self.convs = torch.nn.ModuleList([SAGEConv(a, b) for a, b in pairwise(widths)])
        self.activation = getattr(torch, activation)

    def pieces(self) -> Pieces:
        out: Pieces = {}
        for number, conv in enumerate(self.convs, start=1):
            out[f"weight{number}"] = [(conv.lin_l.weight, True), (conv.lin_r.weight, True)]
            out[f"bias{number}"] = [(conv.lin_l.bias, False)]
        return out

    def forward(self, x: Tensor, edges: Tensor, drop: Drop) -> Tensor:
        for number, conv in enumerate(self.convs, start=1):
            x = conv(x, edges)
            if number < len(self.convs):
                x = drop(self.activation(x))
        return x


def builder(net: SAGE) -> Builder:
    return lambda problem: PlainSAGE(
        [problem.dimensions, *[net.hidden] * (net.layers - 1), problem.classes], net.activation
    )


@pytest.mark.parametrize("order", ["propagate", "materialise"])
@pytest.mark.parametrize(
    "net",
    [SAGE(), SAGE(layers=1), SAGE(hidden=2), SAGE(hidden=5, layers=3, activation="relu")],
    ids=["plain", "one layer", "narrow", "deep"],
)
@pytest.mark.parametrize("one_way", [False, True])
def test_outputs_and_gradients_equal_pyg(order: str, net: SAGE, one_way: bool) -> None:
    problem, labels = small_problem(kinds=("sparse", "dense"), classes=5)
    if one_way:
        problem = directed(problem)
    check_outputs_and_gradients(net, builder(net), problem, some_runs(problem, labels), order)


@pytest.mark.parametrize("net", [SAGE(), SAGE(hidden=6, layers=3, activation="relu")], ids=["plain", "deep"])
def test_training_equals_pyg(net: SAGE) -> None:
    check_training(net, builder(net), *training_problem())


@pytest.mark.parametrize("problem", SMALL)
def test_small_graphs(problem: Problem) -> None:
    check_small(SAGE(), builder(SAGE()), problem)


def test_a_mean_over_no_neighbours_is_zero() -> None:
    matrix = mean_norm(SMALL[0].values[0].adjacency).toarray()
    np.testing.assert_allclose(matrix.sum(axis=1), [1, 1, 1, 1, 0])
    np.testing.assert_allclose(matrix[1], [0.5, 0, 0.5, 0, 0])


def test_initial_law_is_pygs() -> None:
    shapes = SAGE(hidden=32).parameters(400, 7)
    conv = SAGEConv(400, 32)
    for name, theirs in [("weight1", conv.lin_r.weight), ("bias1", conv.lin_l.bias)]:
        drawn = shapes[name].draw(torch.Generator().manual_seed(0))
        assert drawn.abs().max() <= 0.05
        assert drawn.abs().max() > 0.9 * theirs.abs().max()
        assert theirs.abs().max() <= 0.05
    # Uniform on [-1/20, 1/20]; 25,600 draws.
    assert shapes["weight1"].draw(torch.Generator().manual_seed(1)).var().item() == pytest.approx(0.05**2 / 3, rel=0.05)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": 0}, "hidden must be >= 1, got 0"),
        ({"hidden": 2.5}, r"hidden must be a whole number >= 1, got 2\.5"),
        ({"layers": 0}, "layers must be >= 1, got 0"),
        ({"activation": "gelu"}, "activation must be one of relu, selu, tanh, got 'gelu'"),
    ],
)
def test_options_are_checked(options: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        model("sage", **options)
