"""Graphs whose nodes have sets of labels: rows, the parts of the data set's own files, and what cannot be learned."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import graphldp
from graphldp.client import protocol
from graphldp.datasets.options import Synthetic
from graphldp.datasets.synthetic import synthetic_graph
from graphldp.errors import DataError, GraphLDPError, OptionError
from graphldp.experiment.options import Settings, TrainParams
from graphldp.experiment.parts import part_of, split_of
from graphldp.graph import Graph
from graphldp.server import kprop, rectify, score_attributes
from graphldp.server.evidence import EvidenceSetting
from graphldp.server.filtered import Filtered

FEW: dict[str, Any] = {"seeds": 2, "points": 2, "search_seeds": 1, "epochs": 6, "patience": 3}
TASK: dict[str, Any] = {"task": "multi-label", **FEW}


def sets_of(graph: Graph) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """A label for each class but the last, one for two classes, one by chance."""
    own = np.eye(graph.classes, dtype=bool)[graph.labels]
    chance = np.random.default_rng(3).random(graph.nodes) < 0.4
    return np.column_stack([own[:, :-1], own[:, 0] | own[:, 1], chance])


def graph_with_sets(nodes: int = 120) -> Graph:
    options = Synthetic(nodes=nodes, classes=3, degree=6.0, dimensions=24, words=6.0)
    graph = synthetic_graph(options, name="sets", provenance={"dataset": "synthetic"})
    parts = np.repeat(np.arange(3), [nodes // 2, nodes // 4, nodes - nodes // 2 - nodes // 4]).astype(np.int8)
    return dataclasses.replace(
        graph, label_sets=sets_of(graph), labels=np.full_like(graph.labels, -1), classes=0, parts=parts
    )


def settings(split: str = "random", **train: Any) -> Settings:
    return Settings(train=TrainParams(task="multi-label", split=split, **train))


def test_heterorr_and_other_rows_learn_sets() -> None:
    graph = graph_with_sets()
    for method, given in (("heterorr", {}), ("base", {"mechanism": "mb"}), ("mlp", {"mechanism": "featurerr"})):
        found = graphldp.run(graph, method, epsilon=8.0, references=False, **given, **TASK)
        assert sorted(found.row.scores) == ["macro_f1", "micro_f1"]
        assert 0 < found.score.mean <= 100
    both = graphldp.run(
        graph, "heterorr", epsilon=8.0, links="edgerr", epsilon_links=1.0, link_options={"rho": 0.2, "steps": 200},
        references=False, **TASK,
    )  # fmt: skip
    assert "per edge, from a trusted curator: links 1.0" in both.spent.text()


def test_floor_and_ceiling_leave_out_what_spreads_classes() -> None:
    found = graphldp.run(graph_with_sets(), "base", mechanism="mb", epsilon=8.0, **TASK)
    assert {row.name for row in found.rows} >= {"majority", "structure", "base", "nonpriv"}


@pytest.mark.parametrize("split", ["random", "inductive"])
def test_labels_of_the_tested_steer_nothing(split: str) -> None:
    graph = graph_with_sets()
    split_ = settings(split)
    hidden = sorted(set.intersection(*(set(split_of(graph, split_, seed).test.tolist()) for seed in (0, -1))))
    assert len(hidden) > 5
    assert graph.label_sets is not None
    changed = graph.label_sets.copy()
    changed[hidden] = ~changed[hidden]
    other = dataclasses.replace(graph, label_sets=changed)
    one, two = (
        graphldp.run(each, "heterorr", epsilon=8.0, references=False, split=split, **{**TASK, "seeds": 1})
        for each in (graph, other)
    )
    for first, second in zip(one.row.cell.rows, two.row.cell.rows, strict=True):
        opened = {"test_micro_f1", "test_macro_f1"}
        assert {k: v for k, v in first.items() if k not in opened} == {
            k: v for k, v in second.items() if k not in opened
        }
    assert one.score.mean != two.score.mean


def test_apart_the_parts_are_those_of_the_files() -> None:
    graph = graph_with_sets()
    for seed in (0, 1, -1):
        part: Any = part_of(graph, settings("inductive"), seed)
        for number, name in enumerate(("train", "validation", "test")):
            expected = np.flatnonzero(graph.parts == number)
            np.testing.assert_array_equal(getattr(part.split, name), expected)
            np.testing.assert_array_equal(getattr(part.apart, name), expected)
        u, v = part.graph.edges
        assert graph.parts is not None
        assert (graph.parts[u] == graph.parts[v]).all()
    assert not np.array_equal(split_of(graph, settings(), 0).train, np.flatnonzero(graph.parts == 0))
    with pytest.raises(OptionError, match=r"train\.train_fraction has no meaning for sets with train\.split inductive"):
        split_of(graph, settings("inductive", train_fraction=0.1), 0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"task": "node-classification"}, "has a set of 4 yes/no labels and no class: learn task multi-label"),
        ({"task": "multi-task"}, "has a set of 4 yes/no labels and no class: learn task multi-label"),
        ({"labels": "krr", "epsilon_labels": 1.0}, "learns no class of each person, which is what krr asks for"),
        ({"method": "togl-fda"}, "method 'togl-fda' is directed by the classes of training nodes"),
        ({"method": "votes"}, "has 0 classes; people vote between at least 2"),
        ({"method": "frontier"}, "has 0 classes; people vote between at least 2"),
        ({"method": "solitude", "links": "rr", "epsilon_links": 6.0}, "whose nodes have classes to learn"),
    ],
)
def test_what_needs_one_class_is_refused_in_one_line(given: dict[str, Any], message: str) -> None:
    asked = {"method": "base", **TASK, **given}
    with pytest.raises(GraphLDPError) as caught:
        graphldp.run(graph_with_sets(), asked.pop("method"), epsilon=8.0, references=False, **asked)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_graph_of_classes_has_no_sets_to_learn() -> None:
    graph = synthetic_graph(Synthetic(nodes=60, degree=6.0), name="classes", provenance={})
    with pytest.raises(DataError, match="has no set of labels, which task 'multi-label' learns"):
        graphldp.run(graph, "base", mechanism="mb", epsilon=1.0, references=False, **TASK)


def test_evidence_sees_no_sets() -> None:
    graph = graph_with_sets()
    device = protocol("mb", 1.0, graph.dimensions, 0.0, 1.0)
    setting = EvidenceSetting.of(graph, None, device, np.empty(0, np.int64), 0)
    assert setting.graph.label_sets is None
    with pytest.raises(DataError, match="without features and labels"):
        dataclasses.replace(setting, graph=dataclasses.replace(setting.graph, label_sets=graph.label_sets))


def test_a_score_over_sets_is_the_mean_over_labels_that_differ() -> None:
    graph = graph_with_sets()
    device = protocol("mb", 8.0, graph.dimensions, 0.0, 1.0)
    estimate = rectify(device.perturb(graph.features, np.random.default_rng(0)))
    filtered = Filtered.of(estimate, kprop(1), kprop(1).operator(graph))
    train = np.arange(60)
    assert graph.label_sets is not None
    sets = np.column_stack([graph.label_sets, np.ones(graph.nodes, dtype=bool)])  # the last one tells nothing
    each = [score_attributes("fda", filtered, column.astype(int), train).values for column in graph.label_sets.T]
    found = score_attributes("fda", filtered, sets, train)
    np.testing.assert_allclose(found.values, np.mean(each, axis=0), rtol=1e-9)
    assert found.details == {"labels": 4}
    with pytest.raises(DataError, match="a label that some training nodes have and others have not"):
        score_attributes("fda", filtered, sets[:, -1:].repeat(2, axis=1), train)
