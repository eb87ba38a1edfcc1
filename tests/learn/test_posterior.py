from __future__ import annotations

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

from graphldp.errors import OptionError
from graphldp.learn import Options, Problem, Replica, fit, model, random_split, runs_of
from graphldp.learn.models.posterior import Posterior
from graphldp.points import Point


class PlainPosterior(Plain):
    def __init__(self, problem: Problem):
        super().__init__()
        self.linear = torch.nn.Linear(problem.dimensions, problem.classes)
        self.classes = problem.classes

    def pieces(self) -> Pieces:
        return {"weight": [(self.linear.weight, True)], "bias": [(self.linear.bias, False)]}

    def forward(self, x: Tensor, edges: Tensor, drop: Drop) -> Tensor:
        return self.linear(x) + torch.nn.functional.pad(x, (0, max(0, self.classes - x.shape[1])))[:, : self.classes]


def builder() -> Builder:
    return PlainPosterior


@pytest.mark.parametrize("order", ["propagate", "materialise"])
@pytest.mark.parametrize("dimensions", [3, 5, 12])
def test_outputs_and_gradients_equal_the_plain_way(order: str, dimensions: int) -> None:
    problem, labels = small_problem(kinds=("sparse", "dense"), classes=5, dimensions=dimensions)
    check_outputs_and_gradients(Posterior(), builder(), problem, some_runs(problem, labels), order)


def test_training_equals_the_plain_way() -> None:
    check_training(Posterior(), builder(), *training_problem())


@pytest.mark.parametrize("problem", SMALL)
def test_small_graphs(problem: Problem) -> None:
    check_small(Posterior(), builder(), problem)


def test_it_starts_at_what_the_inputs_say_and_weight_decay_holds_it_there() -> None:
    for one in Posterior().parameters(9, 4).values():
        assert not one.draw(torch.Generator().manual_seed(0)).any()
    problem, labels = small_problem(kinds=("dense",), classes=4, dimensions=4)
    split = random_split(np.arange(problem.nodes), np.random.default_rng(0))
    replica = Replica(inputs=0, seed=1, split=split, labels=split.visible(labels))
    point = Point(learning_rate=0.01, weight_decay=1e6, dropout=0.0, steps=0)
    options = Options(model=Posterior(), epochs=3)
    outcome = fit(problem, runs_of([point], [replica]), options, device="cpu")
    rows = problem.inputs[0]
    np.testing.assert_array_equal(outcome.predictions[0], (np.asarray(rows.deviations) + rows.fill).argmax(axis=1))


def test_it_has_no_options() -> None:
    with pytest.raises(OptionError, match="has no option 'hidden'"):
        model("posterior", hidden=3)
    assert Posterior().operators(small_problem()[0].adjacency) == {}
