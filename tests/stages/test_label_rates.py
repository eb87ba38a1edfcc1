"""Few labels: validation in proportion, splits by seed, and classes that nobody is known to have."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from cell_factory import small_graph, small_params

from graphldp import methods
from graphldp.experiment.cell import learn_cell
from graphldp.experiment.options import TrainParams
from graphldp.experiment.parts import split_of
from graphldp.experiment.plan import Devices, plan_of
from graphldp.graph import Graph
from graphldp.stages.grids.params import Params


def params_of(**train: Any) -> Params:
    params = small_params(seeds=2, search_seeds=1, points=2, epochs=3)
    return dataclasses.replace(params, train=dataclasses.replace(params.train, **train))


@pytest.mark.parametrize(
    ("rate", "sizes"), [(0.01, (20, 10)), (0.05, (100, 50)), (0.2, (400, 200)), (0.5, (1000, 500))]
)
def test_half_is_half_of_the_training_labels(rate: float, sizes: tuple[int, int]) -> None:
    split = split_of(small_graph(nodes=2000), params_of(train_fraction=rate, validation_fraction="half"), 0)
    assert (len(split.train), len(split.validation)) == sizes
    assert len(split.test) == 2000 - sum(sizes)


def test_the_usual_splits_are_the_same_however_they_are_said() -> None:
    graph = small_graph()
    usual, said = (split_of(graph, params_of(**changes), 1) for changes in ({}, {"validation_fraction": "half"}))
    for name in ("train", "validation", "test"):
        np.testing.assert_array_equal(getattr(usual, name), getattr(said, name))
    assert (TrainParams().train_fraction, TrainParams().validation) == (0.5, 0.25)


def test_a_seed_has_its_split_whatever_else_is_asked() -> None:
    graph, few = small_graph(), {"train_fraction": 0.05, "validation_fraction": "half"}
    one, two, other = (
        split_of(graph, params_of(**few, **more), seed) for more, seed in (({}, 0), ({"hidden": 9}, 0), ({}, 1))
    )
    np.testing.assert_array_equal(one.train, two.train)
    assert not np.array_equal(one.train, other.train)


def rare(graph: Graph) -> Graph:
    """The same graph with a fourth class that two people have, so that hardly a split trains on one of them."""
    labels = graph.labels.copy()
    labels[:2] = 3
    return dataclasses.replace(graph, labels=labels, classes=4)


@pytest.mark.parametrize("split", ["random", "inductive"])
@pytest.mark.parametrize("name", [name for name in methods.names() if methods.method(name).model])
def test_a_class_without_a_training_label_stops_nobody(name: str, split: str) -> None:
    graph, recipe = rare(small_graph(nodes=200)), methods.method(name)
    params = params_of(train_fraction=0.05, validation_fraction="half", split=split)
    seen = [np.unique(graph.labels[split_of(graph, params, seed).train]) for seed in (-1, 0, 1)]
    assert all(3 not in classes and len(classes) >= 2 for classes in seen)
    if split == "inductive" and not methods_transfer(name):
        return
    epsilon = {"null": 0.0, "identity": np.inf}.get(recipe.mechanism, 1.0)
    devices = Devices(
        graph=graph, recipe=recipe, mechanism=recipe.mechanism, epsilon=epsilon, options={}, params=params
    )
    rows = learn_cell(graph, plan_of(devices, params), params, device="cpu").rows
    assert all(0 <= row["test_accuracy"] <= 1 for row in rows if row["role"] == "final")


def methods_transfer(name: str) -> bool:
    from graphldp.server.evidence import evidence_class

    evidence = methods.method(name).evidence
    return not evidence or evidence_class(evidence).transfers
