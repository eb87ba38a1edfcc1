"""Every task on graphs at the edge: isolated nodes, no edges, one class, a class that validation does not have."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from learn_factory import adjacency_of, sparse_inputs
from task_factory import options_of

from graphldp.errors import DataError
from graphldp.experiment.options import TrainParams
from graphldp.experiment.parts import task_of
from graphldp.graph import Graph
from graphldp.learn import (
    MessageGraph,
    Outcome,
    Problem,
    Run,
    Split,
    Values,
    edge_split,
    fit,
    random_split,
    score_links,
    unit_filter,
)
from graphldp.measures import measures_of, tasks
from graphldp.server import shift

NODES = 40


def graph_of(*, edges: int = 80, isolated: int = 0, labels: np.ndarray | None = None, classes: int = 3) -> Graph:
    rng = np.random.default_rng(0)
    inside = adjacency_of(NODES - isolated, edges, rng).tocoo() if edges else None
    pairs = np.empty((2, 0), np.int32)
    if inside is not None:
        upper = inside.row < inside.col
        pairs = np.stack([inside.row[upper], inside.col[upper]]).astype(np.int32)
        pairs = pairs[:, np.lexsort((pairs[1], pairs[0]))]
    features = sparse_inputs(NODES, 12, rng).deviations
    return Graph(
        name="small",
        features=features,
        edges=pairs,
        labels=np.asarray(rng.integers(0, classes, NODES) if labels is None else labels, np.int32),
        classes=classes,
        low=-5.0,
        high=5.0,
    )


def learned(name: str, graph: Graph, split: Split | None = None) -> tuple[Outcome, dict[str, np.ndarray[Any, Any]]]:
    """Train two runs; return what came of them, and their test scores where the task is of links."""
    rng = np.random.default_rng(1)
    options = options_of(task_of(TrainParams(task=name)), epochs=8, patience=None)
    inputs = [sparse_inputs(NODES, 12, rng)]
    common: dict[str, Any] = {"inputs": 0, "dropout": 0.25, "coefficients": unit_filter(2)}
    if measures_of(name).parts == "edges":
        splits = [edge_split(graph.edges, NODES, np.random.default_rng(seed)) for seed in range(2)]
        seen = [one.graph(graph) for one in splits]
        graphs = [MessageGraph(shift=shift(one), adjacency=one.adjacency()) for one in seen]
        problem = Problem.over(graphs, inputs)
        runs = [Run(targets=one.visible(), graph=seed, seed=seed, **common) for seed, one in enumerate(splits)]
        outcome = fit(problem, runs, options, device="cpu")
        return outcome, score_links(problem, runs, options, outcome, splits, device="cpu")
    split = split or random_split(np.arange(NODES), np.random.default_rng(2))
    numbers = np.sqrt(np.arange(NODES))
    problem = Problem(shift=shift(graph), adjacency=graph.adjacency(), inputs=tuple(inputs), classes=graph.classes)
    targets: Any = Values.visible(split, numbers, standardize=True)
    if measures_of(name).sets:  # each class is a label, the first one everybody's
        sets = np.eye(graph.classes, dtype=bool)[graph.labels] | (np.arange(graph.classes) == 0)
        targets = Values.visible(split, sets)
    runs = [
        Run(
            split=split,
            labels=split.visible(graph.labels),
            targets=targets,
            seed=seed,
            **common,
        )
        for seed in range(2)
    ]
    return fit(problem, runs, options, device="cpu"), {}


def check(name: str, outcome: Outcome, scores: dict[str, np.ndarray[Any, Any]]) -> None:
    assert not outcome.failed.any()
    assert np.isfinite(outcome.validation_loss).all()
    assert tuple(outcome.metrics) == measures_of(name).names
    for one in measures_of(name).measures:
        found = [outcome.metrics[one.name], *([scores[one.name]] if scores else [])]
        for values in found:
            assert np.isfinite(values).all(), one.name
            assert ((values >= one.low) & (values <= one.high)).all(), one.name
    for values in outcome.outputs.values():
        assert np.isfinite(values).all()


@pytest.mark.parametrize("name", tasks())
@pytest.mark.parametrize("isolated", [1, 12])
def test_isolated_nodes(name: str, isolated: int) -> None:
    graph = graph_of(isolated=isolated)
    assert (graph.adjacency().sum(axis=1) == 0).sum() >= isolated
    check(name, *learned(name, graph))


@pytest.mark.parametrize("name", tasks())
def test_one_class(name: str) -> None:
    outcome, scores = learned(name, graph_of(labels=np.zeros(NODES), classes=1))
    check(name, outcome, scores)
    if "accuracy" in outcome.metrics:
        assert outcome.metrics["accuracy"].tolist() == outcome.metrics["macro_f1"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("name", tasks())
def test_no_edges(name: str) -> None:
    graph = graph_of(edges=0)
    if measures_of(name).parts == "edges":
        with pytest.raises(
            DataError, match="link prediction needs at least 3 edges, one for each part; the graph has 0"
        ):
            learned(name, graph)
    else:
        check(name, *learned(name, graph))


@pytest.mark.parametrize("name", tasks())
@pytest.mark.parametrize("part", ["train", "validation"])
def test_a_class_that_a_part_does_not_have(name: str, part: str) -> None:
    graph = graph_of()
    lacking = np.flatnonzero(graph.labels == 2)
    split = random_split(np.arange(NODES), np.random.default_rng(2))
    there = {key: np.setdiff1d(getattr(split, key), lacking) for key in ("train", "validation")}
    split = dataclasses.replace(split, **{part: there[part]})
    assert 2 not in graph.labels[getattr(split, part)]
    assert 2 in graph.labels
    check(name, *learned(name, graph, split))


def test_a_target_that_is_the_same_for_all_is_learned() -> None:
    split = random_split(np.arange(NODES), np.random.default_rng(2))
    values = Values.visible(split, np.full(NODES, 7.0), standardize=True)
    assert (values.mean, values.scale) == (7.0, 1.0)


def test_the_scale_of_a_target_is_that_of_the_training_nodes_alone() -> None:
    split = random_split(np.arange(NODES), np.random.default_rng(2))
    numbers = np.random.default_rng(3).normal(50, 9, NODES)
    seen = Values.visible(split, numbers, standardize=True)
    assert seen.mean == pytest.approx(numbers[split.train].mean())
    assert seen.scale == pytest.approx(numbers[split.train].std())
    moved = numbers.copy()
    moved[np.concatenate([split.validation, split.test])] += 1000
    other = Values.visible(split, moved, standardize=True)
    assert (other.mean, other.scale) == (seen.mean, seen.scale)
    plain = Values.visible(split, numbers)
    assert (plain.mean, plain.scale) == (0.0, 1.0)
    assert len({seen.digest(), other.digest(), plain.digest()}) == 3
