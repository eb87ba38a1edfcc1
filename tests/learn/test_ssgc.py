from __future__ import annotations

import pytest
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
from torch_geometric.nn import SSGConv

from graphldp.errors import OptionError
from graphldp.learn import Problem, model
from graphldp.learn.models.ssgc import SSGC


class PlainSSGC(Plain):
    def __init__(self, net: SSGC, problem: Problem):
        super().__init__()
        self.conv = SSGConv(problem.dimensions, problem.classes, alpha=net.own_share, K=net.steps)

    def pieces(self) -> Pieces:
        return {"weight1": [(self.conv.lin.weight, True)], "bias1": [(self.conv.lin.bias, False)]}

    def forward(self, x: Tensor, edges: Tensor, drop: Drop) -> Tensor:
        return self.conv(x, edges)


def builder(net: SSGC) -> Builder:
    return lambda problem: PlainSSGC(net, problem)


@pytest.mark.parametrize("order", ["propagate", "materialise"])
@pytest.mark.parametrize(
    "net",
    [SSGC(), SSGC(steps=1), SSGC(steps=3, own_share=0.0), SSGC(own_share=1.0)],
    ids=["plain", "one step", "neighbours alone", "itself alone"],
)
@pytest.mark.parametrize("one_way", [False, True])
def test_outputs_and_gradients_equal_pyg(order: str, net: SSGC, one_way: bool) -> None:
    problem, labels = small_problem(kinds=("sparse", "dense"), classes=5)
    if one_way:
        problem = directed(problem)
    check_outputs_and_gradients(net, builder(net), problem, some_runs(problem, labels), order)


def test_training_equals_pyg() -> None:
    check_training(SSGC(), builder(SSGC()), *training_problem())


@pytest.mark.parametrize("problem", SMALL)
def test_small_graphs(problem: Problem) -> None:
    check_small(SSGC(), builder(SSGC()), problem)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps must be >= 1, got 0"),
        ({"own_share": -0.1}, r"own_share must be in \[0, 1\], got -0\.1"),
        ({"own_share": float("nan")}, r"own_share must be in \[0, 1\], got nan"),
        ({"hidden": 16}, r"model ssgc has no option 'hidden'; it has: steps, own_share"),
    ],
)
def test_options_are_checked(options: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        model("ssgc", **options)
