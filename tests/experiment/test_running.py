"""`graphldp.run`: from Python, on graphs of every kind, with the numbers of the command line."""

from __future__ import annotations

import dataclasses
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from cell_factory import NAME, small_graph, small_params, store

import graphldp
from graphldp import methods
from graphldp.datasets.memory import as_graph
from graphldp.errors import DataError, OptionError
from graphldp.evaluation import Confidence, paired_difference
from graphldp.experiment.plan import Devices
from graphldp.experiment.running import RunResult, run_rows
from graphldp.graph import Graph
from graphldp.randomness import generator

with warnings.catch_warnings():
    # torch_geometric compiles a class with torch.jit as it is imported.
    warnings.simplefilter("ignore", DeprecationWarning)
    from torch_geometric.data import Data

SMALL: dict[str, Any] = {
    **{"seeds": 3, "points": 3, "search_seeds": 2, "learning_rate": [0.05, 0.02], "weight_decay": 0.001},
    **{"dropout": [0.25, 0.5], "steps": [0, 2], "hidden": 4, "epochs": 15, "patience": 8, "device": "cpu"},
}


def asked(graph: Graph, recipe: Any, mechanism: str, epsilon: float, params: Any) -> Devices:
    return Devices(graph=graph, recipe=recipe, mechanism=mechanism, epsilon=epsilon, params=params)


def data_of(graph: Graph) -> Data:
    both = np.concatenate([graph.edges, graph.edges[::-1]], axis=1).astype(np.int64)
    return Data(
        x=torch.from_numpy(graph.features.toarray()),
        edge_index=torch.from_numpy(both),
        y=torch.from_numpy(graph.labels.astype(np.int64)),
    )


@pytest.fixture(scope="module")
def found() -> RunResult:
    return graphldp.run(small_graph(), "lpgnn", epsilon=2.0, mechanism="pm", **SMALL)


@pytest.mark.slow
def test_the_numbers_are_those_of_the_command_line(found: RunResult) -> None:
    recipe = methods.method("lpgnn")
    same = run_rows(asked(small_graph(), recipe, "pm", 2.0, small_params()), device="cpu")
    assert [row.name for row in found.rows] == ["majority", "structure", "lpgnn-pm", "nonpriv"]
    for one, other in zip(found.rows, same.rows, strict=True):
        np.testing.assert_array_equal(one.accuracy, other.accuracy)
        assert (one.score, one.gain, one.chosen) == (other.score, other.gain, other.chosen)
    assert found.row.name == "lpgnn-pm"
    assert found.score.low <= found.score.mean <= found.score.high
    assert found.gain is not None
    assert found.gain.mean == pytest.approx(found.score.mean - found.rows[1].score.mean)


def test_one_run_spends_epsilon_and_a_kept_model_all_of_its_draws(found: RunResult) -> None:
    assert found.spent.total().epsilon == 2.0
    assert found.model().spent.total().epsilon == 2.0 * (3 + 2)
    majority, floor, _, ceiling = found.rows
    assert majority.spent.total().epsilon == floor.spent.total().epsilon == 0
    assert ceiling.spent.total().epsilon == math.inf


def test_a_number_that_is_learned_is_given_away() -> None:
    graph = small_graph()
    found = graphldp.run(graph, "lpgnn", epsilon=2.0, references=False, task="regression", **SMALL)
    for spent in (found.spent, found.model().spent):
        assert spent.total("person of the training and validation part").epsilon == math.inf


def test_graphs_without_a_name_are_called_by_what_they_hold() -> None:
    one, other = (small_graph(seed=seed) for seed in (0, 1))
    names = [as_graph(data_of(graph)).name for graph in (one, one, other)]
    assert names[0] == names[1] != names[2]
    assert names[0].startswith("graph-")
    assert as_graph(data_of(one), name="mine").name == "mine"


def test_it_predicts_every_node_as_its_best_run_does(found: RunResult) -> None:
    said = found.predict().probabilities
    assert said is not None
    assert said.shape == (90, 3)
    final = [row for row in found.row.cell.rows if row["role"] == "final"]
    best = int(np.argmin([row["validation_loss"] for row in final]))
    assert found.row.cell.outcome is not None
    np.testing.assert_array_equal(said.argmax(axis=1), found.row.cell.outcome.predictions[best])


def test_dicts_are_json_and_a_frame_needs_pandas(found: RunResult, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = found.to_dicts()
    assert rows[2]["accuracy"] == found.score.mean
    assert rows[3]["epsilon"] == "inf"
    assert rows[2]["spent"][0]["epsilon"] == 2.0
    frame = found.to_frame()
    assert list(frame.columns) == [
        "row",
        "mechanism",
        "epsilon",
        "accuracy",
        "low",
        "high",
        "gain",
        "gain_low",
        "gain_high",
    ]
    assert frame["row"].tolist() == [row.name for row in found.rows]
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(OptionError, match="to_frame needs pandas"):
        found.to_frame()


def test_a_graph_by_its_name_stands_in_the_data_folder(tmp_path: Path) -> None:
    store(tmp_path)
    named = graphldp.run(NAME, "base", epsilon=1.0, data=tmp_path, references=False, **SMALL)
    given = graphldp.run(small_graph(), "base", epsilon=1.0, references=False, **SMALL)
    np.testing.assert_array_equal(named.row.accuracy, given.row.accuracy)
    assert named.rows == (named.row,)
    assert named.gain is None


def test_a_data_object_is_the_graph_that_it_holds() -> None:
    graph = small_graph()
    for value in (data_of(graph), (graph.features, graph.edges, graph.labels)):
        back = as_graph(value, name=NAME)
        assert back.content_hash() == graph.content_hash()
    plain = data_of(graph)
    plain.x = plain.x.to_sparse()
    plain.y = None
    unlabelled = as_graph(plain, name=NAME)
    assert (unlabelled.features != graph.features).nnz == 0
    assert unlabelled.classes == 0
    assert (unlabelled.labels == -1).all()


def test_each_option_goes_where_it_belongs() -> None:
    only = {**SMALL, "references": False}
    found = graphldp.run(small_graph(), "lpgnn", epsilon=4.0, m=3, **only)
    assert found.row.m == 3
    assert found.settings.train.hidden == 4
    assert found.settings.search.dropout == (0.25, 0.5)
    directed = graphldp.run(small_graph(), "togl-fda", epsilon=4.0, rho=1.0, **only)
    assert directed.row.cell.setup is not None
    assert directed.row.cell.setup.recipe.asking is not None
    assert directed.row.cell.setup.recipe.asking.rho == 1.0  # type: ignore[attr-defined]
    with pytest.raises(OptionError, match="unknown option of lpgnn with mb 'hiden'"):
        graphldp.run(small_graph(), "lpgnn", epsilon=1.0, hiden=4)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (3, "a graph is a graphldp Graph, a torch_geometric Data, a data set's name"),
        ((np.ones((3, 2)) * 7, [[0], [1]], None), "outside of the declared range 0 to 1"),
        ((np.array([[np.nan]]), [[0], [0]], None), "a feature is no finite number"),
        ((np.ones((3, 2)), [[0, 1]], None), "edges need the shape 2 x E"),
        ((np.ones((3, 2)), [[0.5], [1]], None), "edges are pairs of whole numbers"),
        ((np.ones((3, 2)), [[0], [3]], None), r"an edge names a node outside 0\.\.2"),
        ((np.ones((3, 2)), [[0], [1]], [0, 1]), "3 nodes need 3 labels"),
        ((np.ones((3, 2)), [[0], [1]], [0.5, 1, 2]), "labels are classes as whole numbers"),
        ((sp.csr_array((3, 2)), [[0], [1]], [0, 1, -2]), "labels must be -1"),
        (Data(), "no x or no edge_index"),
    ],
)
def test_what_is_no_graph_is_one_line(value: Any, words: str) -> None:
    with pytest.raises(DataError, match=words) as error:
        as_graph(value)
    assert "\n" not in str(error.value)


def test_importing_graphldp_stays_light() -> None:
    import subprocess
    import sys

    code = "import sys, graphldp; print(sorted({'torch', 'scipy', 'pyarrow', 'typer'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    with pytest.raises(AttributeError, match="no attribute 'ran'"):
        _ = graphldp.ran


@pytest.mark.slow
def test_on_random_labels_a_method_is_rarely_said_to_be_better() -> None:
    """Of 200 graphs whose labels say nothing: `above` what nobody's features give, as often as 2.5 % and luck allow."""
    graph, trials = small_graph(nodes=240), 200
    settings = small_params(seeds=5, points=1, search_seeds=1, steps=(2,), epochs=12)
    found = []
    for trial in range(trials):
        labels = generator(trial, "random labels").permutation(graph.labels).astype(graph.labels.dtype)
        guess = dataclasses.replace(graph, labels=labels, name=f"guess-{trial}")
        scores = []
        for name, epsilon in (("lpgnn", 1.0), ("coin", 0.0)):
            recipe = methods.method(name)
            (row,) = run_rows(asked(guess, recipe, recipe.mechanism, epsilon, settings), references=False).rows
            scores.append(row.accuracy)
        found.append(paired_difference(*scores, Confidence()).against(0.0))
    assert found.count("above") / trials <= 0.025 + 4 * math.sqrt(0.025 * 0.975 / trials)
    assert set(found) <= {"above", "same", "below"}


def test_ldpge_learns_how_common_a_class_is_though_its_inputs_are_centred() -> None:
    """Reports that say nothing, centred on the fill: without a bias it would fall below the commonest class."""
    rng = np.random.default_rng(0)
    labels = (rng.random(400) < 0.15).astype(np.int64)
    features = (rng.random((400, 40)) < 0.1).astype(np.float32)
    graph = as_graph((features, rng.integers(0, 400, (2, 1200)).astype(np.int32), labels))
    recipe, params = methods.method("ldpge"), small_params(points=2, epochs=120)
    scores = {}
    for name, one in (("bias", recipe), ("none", dataclasses.replace(recipe, axes=()))):
        found = run_rows(asked(graph, one, "hds", 0.01, params), device="cpu")
        accuracy = {row.name: float(row.accuracy.mean()) for row in found.rows}
        scores[name] = accuracy["ldpge"] - accuracy["majority"]
    assert scores["bias"] >= -0.01
    assert scores["none"] < -0.02
