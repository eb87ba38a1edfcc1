"""Private labels in the house: asked beside features, in one artifact and one ledger, and nothing true chooses."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cell_factory import NAME, run, small_graph, small_params, store

import graphldp
from graphldp.errors import ArtifactError, OptionError
from graphldp.experiment import plan, rounds, scored, survey
from graphldp.experiment.cell import learn_cell, learn_majority
from graphldp.experiment.options import Further, Settings
from graphldp.experiment.parts import part_of
from graphldp.experiment.plan import Devices, plan_of
from graphldp.experiment.server_view import ServerView, server_view_of
from graphldp.graph import Graph
from graphldp.ledger import Ledger
from graphldp.methods import method
from graphldp.stages.denoise import denoise
from graphldp.stages.files.answers import AnswersFile
from graphldp.stages.files.artifacts import read_meta, read_table
from graphldp.stages.grids.cell import Cell
from graphldp.stages.grids.params import Params, load
from graphldp.stages.perturb import perturb_graph, perturb_method
from graphldp.stages.predict import predict_reports
from graphldp.stages.train import train

KRR = Further(labels="krr", epsilon_labels=2.0)


def private(**changes: Any) -> Params:
    return small_params(further=changes.pop("further", KRR), **changes)


def reached(rows: list[dict[str, Any]]) -> list[float]:
    return [row["test_accuracy"] for row in rows if row["role"] == "final"]


def chosen_by(rows: list[dict[str, Any]]) -> list[Any]:
    return [(row["point"], row["seed"], row["best_epoch"], row["validation_loss"]) for row in rows]


@pytest.mark.parametrize("name", ["lpgnn", "togl-fda", "votes", "rgnn", "heterorr"])
def test_no_true_label_moves_what_is_chosen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    params = private(seeds=2, search_seeds=1, points=2)
    graph, recipe = small_graph(), method(name)
    answers = {seed: server_view_of(graph, params).questions(seed) for seed in params.draws}

    def held(of: Graph, settings: Settings, recipe: Any = None) -> ServerView:
        return ServerView(graph=of, further=settings.further, root=settings.seed, listen=lambda seed: answers[seed])

    for place in (plan, rounds, scored, survey):
        monkeypatch.setattr(place, "server_view_of", held)

    def learned(of: Graph) -> list[dict[str, Any]]:
        source = Devices(graph=of, recipe=recipe, mechanism=recipe.mechanism, epsilon=4.0, options={}, params=params)
        return learn_cell(of, plan_of(source, params), params).rows

    # Everybody's true label is another one, and what was sent is what it was.
    wrong = dataclasses.replace(graph, labels=((graph.labels + 1) % graph.classes).astype(np.int32))
    first, second = learned(graph), learned(wrong)
    assert chosen_by(second) == chosen_by(first)
    assert reached(second) != reached(first)  # true labels measure a test, and nothing else


def test_a_part_has_sent_labels_to_learn_and_true_ones_to_be_measured_by() -> None:
    graph, params = small_graph(), private()
    part = part_of(graph, params, 0, server_view_of(graph, params))
    sent = server_view_of(graph, params).known(0).labels
    assert (sent != graph.labels).mean() > 0.1
    replica = part.replica(0, 0, 0)
    for nodes in (part.split.train, part.split.validation):
        np.testing.assert_array_equal(replica.labels[nodes], sent[nodes])
    assert (replica.labels[part.split.test] == -1).all()
    own = part.scores({"classes": graph.labels}, part.split.test)
    assert own["accuracy"] == 1.0
    np.testing.assert_array_equal(
        server_view_of(graph, params).known(0).labels, sent
    )  # one answer, however often it is read
    assert (server_view_of(graph, params).known(1).labels != sent).any()


def test_people_without_a_label_send_none() -> None:
    graph = small_graph()
    labels = graph.labels.copy()
    labels[::3] = -1
    sparse = dataclasses.replace(graph, labels=labels)
    view = ServerView(graph=sparse, further=KRR, root=0)
    (question,) = view.questions(0)
    np.testing.assert_array_equal(question.people, np.flatnonzero(labels >= 0))
    np.testing.assert_array_equal(view.known(0).labels >= 0, labels >= 0)


def test_the_majority_is_of_sent_labels() -> None:
    graph, params = small_graph(), private(seeds=4)
    rows = learn_majority(graph, params).rows
    for row, seed in zip(rows, range(4), strict=True):
        part = part_of(graph, params, seed, server_view_of(graph, params))
        sent = server_view_of(graph, params).known(seed).labels[part.split.train]
        common = np.bincount(sent).argmax()
        assert row["test_accuracy"] == np.mean(graph.labels[part.split.test] == common)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    store(tmp_path / "data")
    return tmp_path / "data"


@pytest.mark.slow
def test_files_and_memory_give_the_same_and_one_artifact_has_everything(data: Path) -> None:
    params = private(seeds=2, search_seeds=1, points=2)
    path = perturb_method(Cell(dataset=NAME, method="lpgnn", epsilon=3.0), data=data, settings=params)
    assert path.name == "epsilon_labels=2,eps=3.parquet"
    file = AnswersFile(path, "make")
    assert [one.name for one in (*file.questions(0), *file.further_questions(0))] == ["features", "labels"]
    ledger = Ledger.from_json(file.meta["ledger"]).once()
    assert ledger.text() == "total epsilon per user: features 3.0 + labels 2.0 = 5.0"
    denoise(Cell(dataset=NAME, method="lpgnn", epsilon=3.0, further=KRR), data=data, steps=(0, 2))
    made = train(Cell(dataset=NAME, method="lpgnn", epsilon=3.0), data=data, params=params)
    rows = read_table(made, "x").to_pylist()
    found = {row.name: row for row in run(NAME, "lpgnn", None, 3.0, data=data, params=params)}
    assert reached(rows) == found["lpgnn"].accuracy.tolist()
    assert {name: row.spent.text() for name, row in found.items()} == {
        "majority": "total epsilon per user: labels 2.0",
        "structure": "total epsilon per user: labels 2.0",
        "lpgnn": "total epsilon per user: features 3.0 + labels 2.0 = 5.0",
        "nonpriv": "total epsilon per user: features inf",
    }
    assert Ledger.from_json(read_meta(made, "x")["ledger"]).once().text() == found["lpgnn"].spent.text()


@pytest.mark.slow
def test_the_ceiling_has_true_labels(data: Path) -> None:
    params = private(seeds=2, search_seeds=1, points=2)
    noisy = {row.name: row for row in run(NAME, "lpgnn", None, 3.0, data=data, params=params)}
    public = dataclasses.replace(params, further=Further())
    clean = {row.name: row for row in run(NAME, "lpgnn", None, 3.0, data=data, params=public)}
    assert noisy["nonpriv"].accuracy.tolist() == clean["nonpriv"].accuracy.tolist()
    assert noisy["structure"].accuracy.tolist() != clean["structure"].accuracy.tolist()


@pytest.mark.parametrize("task", ["node-classification", "multi-task"])
def test_a_model_of_noisy_labels_is_kept_and_predicts_classes(task: str, data: Path, tmp_path: Path) -> None:
    params = private(seeds=2, search_seeds=1, points=2)
    params = dataclasses.replace(params, train=dataclasses.replace(params.train, task=task))
    path = perturb_method(Cell(dataset=NAME, method="lpgnn", epsilon=3.0), data=data, settings=params)
    denoise(Cell(dataset=NAME, method="lpgnn", epsilon=3.0, further=KRR), data=data, steps=(0, 2))
    train(Cell(dataset=NAME, method="lpgnn", epsilon=3.0), data=data, params=params, models=tmp_path / "kept")
    out = predict_reports(tmp_path / "kept", path, data=data, output=tmp_path / "predicted.parquet")
    assert len(read_table(out, "x")) == 90
    found = graphldp.run(
        small_graph(),
        epsilon=3.0,
        seeds=2,
        epochs=5,
        points=2,
        references=False,
        task=task,
        labels="krr",
        epsilon_labels=2.0,
    )
    assert found.predict().probabilities.shape == (90, 3)
    assert found.model().task.name == task


def test_what_was_told_otherwise_is_refused(data: Path) -> None:
    params = private(seeds=2, search_seeds=1, points=2)
    path = perturb_graph(Cell(dataset=NAME, mechanism="mb", epsilon=3.0), data=data, seeds=params.draws)
    with pytest.raises(ArtifactError, match="holds nothing beside features, and labels krr"):
        denoise(Cell(dataset=NAME, method="lpgnn", epsilon=3.0, further=KRR), data=data, steps=(0,), reports=path)
    perturb_graph(Cell(dataset=NAME, mechanism="mb", epsilon=3.0, further=KRR), data=data, seeds=params.draws)
    denoise(Cell(dataset=NAME, method="lpgnn", epsilon=3.0, further=KRR), data=data, steps=(0, 2))
    perturb_graph(Cell(dataset=NAME, mechanism="mb", epsilon=3.0, further=KRR), data=data, seeds=params.draws, root=1)
    with pytest.raises(ArtifactError, match="was not made of"):
        train(Cell(dataset=NAME, method="lpgnn", epsilon=3.0), data=data, params=params)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"labels": "kr", "epsilon_labels": 1.0}, "unknown labels 'kr'"),
        ({"epsilon_labels": 1.0}, "epsilon_labels is the budget of private labels"),
        ({"labels": "krr", "epsilon_labels": 0.0}, "epsilon_labels must be above 0"),
    ],
)
def test_what_cannot_be_asked_is_one_line(given: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words) as found:
        graphldp.run(small_graph(), "lpgnn", epsilon=1.0, **given)
    assert "\n" not in str(found.value)


def test_what_learns_no_labels_asks_for_none() -> None:
    with pytest.raises(OptionError, match="'regression' learns no class of each person, which is what krr asks for"):
        graphldp.run(small_graph(), "lpgnn", epsilon=1.0, task="regression", labels="krr", epsilon_labels=1.0)


def test_an_infinite_budget_is_no_question() -> None:
    assert not Further(labels="krr").asked
    graph = small_graph()
    assert server_view_of(graph, Settings(further=Further(labels="krr"))).known(3) is graph


GRID = """
title: labels
datasets: [synthetic]
epsilons: [1]
labels: krr
epsilon_labels: [0.5, 2, inf]
rows:
  - {method: lpgnn}
"""


def test_a_file_of_rows_has_a_table_for_each_budget_of_labels(tmp_path: Path) -> None:
    file = tmp_path / "curve.yaml"
    file.write_text(GRID)
    params = load(file)
    cells = params.cells()
    assert [cell.setting for cell in cells[::4]] == [(("epsilon_labels", value),) for value in (0.5, 2.0, np.inf)]
    for cell in cells:
        budget = dict(cell.setting)["epsilon_labels"]
        own = params.of(cell).further
        assert own.private_labels == (cell.method != "nonpriv" and budget < np.inf)
        assert own.budgets() == ({"epsilon_labels": budget} if own.asked else {})
    for wrong, words in (
        (GRID.replace("labels: krr\n", ""), "say with labels how they are reported"),
        (GRID.replace("epsilon_labels: [0.5, 2, inf]\n", ""), "epsilon_labels must be a list"),
        (GRID.replace("[0.5, 2, inf]", "[0.5, 0.5]"), "distinct"),
        (GRID + "further: {labels: krr}\n", "unknown key 'further'"),
    ):
        file.write_text(wrong)
        with pytest.raises(OptionError, match=words):
            load(file)
