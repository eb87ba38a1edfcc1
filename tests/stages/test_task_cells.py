"""A cell of each task: what may steer what, no message over a hidden edge, and graphs at the edge."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from cell_factory import NAME, graph_for, learn, rows, run, small_graph, small_params, store
from sklearn.metrics import f1_score

from graphldp import methods
from graphldp.errors import DataError, OptionError
from graphldp.experiment import cell as learning
from graphldp.experiment import parts as stage
from graphldp.experiment.cell import learn_cell, learn_majority
from graphldp.experiment.estimates import average_degree
from graphldp.experiment.options import TrainParams
from graphldp.experiment.parts import LinkPart, calibration_over, part_of, split_of
from graphldp.experiment.plan import Devices, plan_of
from graphldp.experiment.result import CellResult
from graphldp.graph import Graph
from graphldp.learn import EdgeSplit, edge_split
from graphldp.measures import measures_of, tasks
from graphldp.server import kprop
from graphldp.splits import Split
from graphldp.stages.files.graphs import write_graph
from graphldp.stages.files.paths import graph_dir
from graphldp.stages.files.runs import runs_schema
from graphldp.stages.grids.params import Params
from graphldp.tasks import Target
from graphldp.tasks.regression import NORM

# One of each kind: a linear filter, a threshold behind the filter, node weights.
METHODS = [("lpgnn", "mb"), ("upgnet-hn", "mb"), ("ppgnn", "ppm-public")]
LINKS = "link-prediction"


def params_of(task: str, **options: Any) -> Params:
    params = small_params(**{"seeds": 2, "search_seeds": 1, "points": 2, "epochs": 8, **options})
    return dataclasses.replace(params, train=dataclasses.replace(params.train, task=task, link_width=5))


def cell(graph: Graph, task: str, method: str = "lpgnn", mechanism: str = "mb", **options: Any) -> CellResult:
    params, recipe = params_of(task, **options), methods.method(method)
    source = Devices(graph=graph, recipe=recipe, mechanism=mechanism, epsilon=1.0, options={}, params=params)
    return learn_cell(graph, plan_of(source, params), params, device="cpu")


def final(result: CellResult) -> list[dict[str, Any]]:
    return [row for row in result.rows if row["role"] == "final"]


# the same from artifacts and in memory --------------------------------------------------------------------------------


@pytest.mark.parametrize("task", tasks())
def test_the_numbers_are_those_of_the_stages(task: str, tmp_path: Path) -> None:
    write_graph(graph_for(task), graph_dir(tmp_path, NAME))
    params = params_of(task)
    for method, mechanism in METHODS if task == LINKS else METHODS[:1]:
        path = learn(tmp_path, params, method, mechanism)
        assert pq.read_schema(path).remove_metadata() == runs_schema(task)
        (found,) = run(NAME, method, mechanism, 1.0, data=tmp_path, params=params, references=False, device="cpu")
        assert list(found.scores) == list(measures_of(task).names)
        for name, values in found.scores.items():
            assert values.tolist() == [row[f"test_{name}"] for row in rows(path, "final")], (method, name)
        for row in rows(path):
            for one in measures_of(task).measures:
                assert one.low <= row[f"validation_{one.name}"] <= one.high
                assert (row[f"test_{one.name}"] is None) == (row["role"] == "search")


def test_each_task_has_runs_of_its_own(tmp_path: Path) -> None:
    paths = []
    for task in tasks():
        write_graph(graph_for(task), graph_dir(tmp_path, NAME))
        paths.append(learn(tmp_path, params_of(task, epochs=2)))
    places = [str(path.relative_to(tmp_path / "runs" / NAME)) for path in paths]
    assert places == ["lpgnn/eps=1.parquet", *(f"{task}/lpgnn/eps=1.parquet" for task in tasks()[1:])]


@pytest.mark.parametrize("task", tasks())
def test_the_same_cell_gives_the_same_rows(task: str) -> None:
    assert cell(graph_for(task), task).rows == cell(graph_for(task), task).rows


# links: nothing passes over a hidden edge -----------------------------------------------------------------------------


def test_a_seeds_split_is_the_same_for_every_method_and_no_other_seeds() -> None:
    graph = small_graph()
    parts = {seed: part_of(graph, params_of(LINKS), seed) for seed in (-1, 0, 1)}
    edges = graph.edges.shape[1]
    for part in parts.values():
        assert isinstance(part, LinkPart)
        train, validation, test = part.sizes
        assert (validation, test, train + validation + test) == (int(0.05 * edges), int(0.1 * edges), edges)
        assert part.graph.edges.shape[1] == train
        assert len(part.labelled) == 0
    again = part_of(graph, params_of(LINKS, points=1, epochs=3), 1)
    np.testing.assert_array_equal(parts[1].graph.edges, again.graph.edges)
    assert len({part.graph.edges.tobytes() for part in parts.values()}) == 3


@pytest.mark.parametrize(("method", "mechanism"), METHODS)
def test_a_planted_leak_is_found(method: str, mechanism: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part whose messages pass over the whole graph is refused before anything is trained."""
    graph, made = small_graph(), part_of

    def leaking(whole: Graph, params: Params, seed: int, server_view: Any) -> Any:
        return dataclasses.replace(made(whole, params, seed, server_view), graph=whole)

    monkeypatch.setattr(learning, "part_of", leaking)
    with pytest.raises(DataError, match="pairs that are no training edges of its split"):
        cell(graph, LINKS, method, mechanism)


def test_a_leak_in_the_filter_alone_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, filtered = small_graph(), stage.filtered_inputs
    monkeypatch.setattr(stage, "filtered_inputs", lambda seen, *rest: filtered(graph, *rest))
    with pytest.raises(DataError, match="the matrix that the inputs were filtered over holds"):
        cell(graph, LINKS, "upgnet-hn", "mb")


def moved(split: EdgeSplit, rng: np.random.Generator) -> EdgeSplit:
    """The same split with other pairs in its test part."""
    swap = rng.permutation(split.test_negative.shape[1])
    return dataclasses.replace(split, test=split.test_negative, test_negative=split.test[:, swap])


@pytest.mark.parametrize(("method", "mechanism"), METHODS)
def test_test_edges_steer_nothing(method: str, mechanism: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With edges and non-edges of the test part exchanged, all but the test scores stays."""
    graph = small_graph()
    one = cell(graph, LINKS, method, mechanism)
    monkeypatch.setattr(stage, "edge_split", lambda *given: moved(edge_split(*given), np.random.default_rng(0)))
    two = cell(graph, LINKS, method, mechanism)
    for first, second in zip(one.rows, two.rows, strict=True):
        assert {key: value for key, value in first.items() if not key.startswith("test_")} == {
            key: value for key, value in second.items() if not key.startswith("test_")
        }
    for first, second in zip(final(one), final(two), strict=True):
        assert first["test_auc"] == pytest.approx(1 - second["test_auc"])


def test_filtered_and_linear_filters_use_one_graph() -> None:
    """A threshold of 0 behind the filter changes nothing, so both ways of filtering must agree."""
    graph = small_graph()
    recipe = methods.method("upgnet-hn").but({"after": 1e-12})
    scores = []
    for one in (recipe, recipe.but({"after": 0.0})):
        params = params_of(LINKS)
        source = Devices(graph=graph, recipe=one, mechanism="mb", epsilon=1.0, options={}, params=params)
        result = learn_cell(graph, plan_of(source, params), params, device="cpu")
        scores.append([row["validation_loss"] for row in result.rows])
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-3)


def test_a_threshold_follows_the_average_degree() -> None:
    graph = small_graph()
    part = part_of(graph, params_of(LINKS), 0)
    whole, seen = average_degree(graph), average_degree(part.graph)
    made = kprop(2).but(after=3.0)
    assert calibration_over(made, whole, part.graph).after == pytest.approx(3.0 * (whole / seen) ** 2)
    assert calibration_over(made, whole, graph) == made
    assert calibration_over(kprop(2), whole, part.graph) == kprop(2)


# numbers --------------------------------------------------------------------------------------------------------------


def test_the_target_is_the_norm_of_the_true_features() -> None:
    graph = small_graph()
    np.testing.assert_allclose(NORM.of(graph), np.linalg.norm(graph.features.toarray(), axis=1), rtol=1e-6)


@pytest.mark.parametrize("task", ["regression", "multi-task"])
def test_numbers_of_test_nodes_steer_nothing(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = small_graph(nodes=240)
    params = params_of(task, seeds=1)
    tested = [set(split_of(graph, params, seed).test.tolist()) for seed in (0, -1)]
    hidden = sorted(set.intersection(*tested))
    assert len(hidden) > 5
    one = cell(graph, task, seeds=1)
    changed = NORM.of(graph)
    changed[hidden] += 5
    monkeypatch.setattr(Target, "of", staticmethod(lambda graph: changed))
    two = cell(graph, task, seeds=1)
    opened = {f"test_{name}": 0 for name in ("mae", "rmse", "r2")}
    for first, second in zip(one.rows, two.rows, strict=True):
        assert {**first, **opened} == {**second, **opened}
    assert final(one)[0]["test_mae"] != final(two)[0]["test_mae"]


# the row that looks at nothing ----------------------------------------------------------------------------------------


def best_constant(graph: Graph, split: Split) -> float:
    """Return the test's micro-F1 of that set for everybody which is the best of all for the training part."""
    assert graph.label_sets is not None
    truth, every = graph.label_sets, itertools.product([False, True], repeat=graph.label_sets.shape[1])

    def score(chosen: tuple[bool, ...], nodes: np.ndarray[Any, Any]) -> float:
        guess = np.tile(np.array(chosen), (len(nodes), 1))
        return float(f1_score(truth[nodes], guess, average="micro", zero_division=0.0))

    return score(max(every, key=lambda chosen: score(chosen, split.train)), split.test)


@pytest.mark.parametrize("task", tasks())
def test_majority_of_each_task(task: str) -> None:
    graph, params = graph_for(task), params_of(task)
    for row in learn_majority(graph, params).rows:
        if task == LINKS:
            assert {row["test_auc"], row["test_average_precision"], row["validation_auc"]} == {0.5}
            continue
        split = split_of(graph, params, row["seed"])
        if measures_of(task).sets:
            assert row["test_micro_f1"] == best_constant(graph, split)
            continue
        if task != "regression":
            commonest = np.bincount(graph.labels[split.train]).argmax()
            assert row["test_accuracy"] == (graph.labels[split.test] == commonest).mean()
        if task != "node-classification":
            numbers = NORM.of(graph)
            missed = numbers[split.test] - numbers[split.train].mean()
            assert row["test_mae"] == pytest.approx(np.abs(missed).mean())
            assert row["test_rmse"] == pytest.approx(np.sqrt(np.square(missed).mean()))
            assert row["test_r2"] <= 0


# graphs at the edge ---------------------------------------------------------------------------------------------------

GRAPHS: Mapping[str, Callable[[Graph], Graph]] = {
    "isolated nodes": lambda graph: dataclasses.replace(graph, edges=graph.edges[:, (graph.edges > 9).all(axis=0)]),
    "one class": lambda graph: dataclasses.replace(graph, labels=np.zeros_like(graph.labels), classes=1),
    "a rare class": lambda graph: dataclasses.replace(
        graph, labels=np.where(np.arange(graph.nodes) == 0, 2, graph.labels % 2).astype(np.int32)
    ),
    "no labels": lambda graph: dataclasses.replace(graph, labels=np.full_like(graph.labels, -1), classes=0),
    "no edges": lambda graph: dataclasses.replace(graph, edges=graph.edges[:, :0]),
}


@pytest.mark.parametrize("task", tasks())
@pytest.mark.parametrize("kind", GRAPHS)
def test_every_task_on_a_graph_at_the_edge(kind: str, task: str) -> None:
    sets = measures_of(task).sets
    if sets and kind in ("one class", "a rare class"):
        pytest.skip("nobody has a class")
    graph = GRAPHS[kind](graph_for(task))
    if kind == "no edges" and task == LINKS:
        for call in (lambda: cell(graph, task), lambda: learn_majority(graph, params_of(task))):
            with pytest.raises(DataError, match="link prediction needs at least 3 edges"):
                call()
        return
    if kind == "no labels" and "accuracy" in measures_of(task).names:
        with pytest.raises(DataError, match=r"0 nodes with a label.* Link prediction and regression need none"):
            cell(graph, task)
        return
    if kind == "one class" and "accuracy" in measures_of(task).names:
        with pytest.raises(DataError, match="has one class, so there is nothing to classify"):
            cell(graph, task)
        return
    for row in final(cell(graph, task, epochs=4)):
        for one in measures_of(task).measures:
            assert one.low <= row[f"test_{one.name}"] <= one.high


def test_a_rare_class_is_in_no_validation_part() -> None:
    """The graph above shows what it is meant to."""
    graph = GRAPHS["a rare class"](small_graph())
    parts = [split_of(graph, params_of("node-classification"), seed) for seed in range(2)]
    assert any(2 not in graph.labels[part.validation] for part in parts)


# what cannot be -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "method", "other"),
    [
        ("regression", "togl-fda", "'node-classification', 'link-prediction' or 'multi-task'"),
        ("regression", "heterorr", "'node-classification', 'multi-label' or 'multi-task'"),
        ("link-prediction", "heterorr", "'node-classification', 'multi-label' or 'multi-task'"),
        ("multi-label", "togl-fda", "'node-classification', 'link-prediction' or 'multi-task'"),
    ],
)
def test_a_ranking_by_classes_needs_classes(task: str, method: str, other: str, tmp_path: Path) -> None:
    store(tmp_path)
    with pytest.raises(OptionError, match=f"method '{method}' is directed by the classes of training nodes") as caught:
        run(NAME, method, None, 2.0, data=tmp_path, params=params_of(task))
    assert f"Use task {other}, or another method" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_wrong_words_are_one_line() -> None:
    assert TrainParams(task="multi_task").task == "multi-task"
    with pytest.raises(OptionError, match="unknown task 'links'"):
        TrainParams(task="links")


def test_a_ranking_by_classes_may_learn_numbers_beside_them(tmp_path: Path) -> None:
    store(tmp_path)
    found = run(NAME, "togl-fda", "mb", 4.0, data=tmp_path, params=params_of("multi-task"), references=False)
    assert np.isfinite(found[0].scores["mae"]).all()
