"""Kept models: what they predict is what training measured, and a damaged one is one line."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cell_factory import NAME, calibrate, files, learn, rows, small_graph, small_params, store

from graphldp import __version__
from graphldp.errors import ArtifactError, DataError, GraphLDPError, OptionError
from graphldp.experiment.parts import split_of
from graphldp.ledger import Ledger
from graphldp.stages.files.artifacts import file_hash, read_meta, read_table, write_json
from graphldp.stages.files.graphs import graph_hash
from graphldp.stages.files.models import CARD, RECIPE, WEIGHTS, load_model
from graphldp.stages.files.paths import graph_dir, reports_path
from graphldp.stages.grids.cell import Cell
from graphldp.stages.perturb import perturb_graph
from graphldp.stages.predict import predict_reports
from graphldp.stages.train import train

PARAMS = small_params(epochs=25)
CELLS = [
    ("lpgnn", "mb", 1.0),
    ("lpgnn", "lp", 1.0),
    ("base", "pm", 2.0),
    ("upgnet-hn", "mb", 1.0),
    ("ppgnn", "ppm-public", 1.0),
    ("ldpge", "hds", 1.0),
    ("coin", "null", 0.0),
    ("features", "identity", math.inf),
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    store(tmp_path / "data")
    return tmp_path / "data"


@pytest.fixture
def kept(data: Path, tmp_path: Path) -> Path:
    learn(data, PARAMS, models=tmp_path / "model")
    return tmp_path / "model"


def predict(data: Path, kept: Path, reports: Path | None = None, **options: Any) -> Path:
    source = reports or reports_path(data, NAME, "mb", 1.0)
    return predict_reports(kept, source, data=data, output=kept.parent / "predictions.parquet", **options)


def classes(path: Path) -> np.ndarray[Any, np.dtype[np.int32]]:
    return np.asarray(read_table(path, "ldp predict")["class"].to_numpy())


# what was measured ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "mechanism", "epsilon"), CELLS)
def test_a_kept_model_predicts_what_its_run_predicted(
    method: str, mechanism: str, epsilon: float, data: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "model"
    path = learn(data, PARAMS, method, mechanism, epsilon, models=kept, device="cpu")
    final = rows(path, "final")
    best = min(final, key=lambda row: row["validation_loss"])
    about = load_model(kept).about
    assert (about["seed"], about["test_accuracy"]) == (best["seed"], best["test_accuracy"])
    found = classes(predict(data, kept, reports_path(data, NAME, mechanism, epsilon), seed=best["seed"]))
    graph = small_graph()
    split = split_of(graph, PARAMS, best["seed"])
    for part in ("validation", "test"):
        nodes = getattr(split, part)
        assert (found[nodes] == graph.labels[nodes]).mean() == best[f"{part}_accuracy"], part


def test_the_reports_that_it_was_trained_on_are_the_ones_that_it_takes(data: Path, kept: Path) -> None:
    seed = load_model(kept).about["seed"]
    chosen, named = classes(predict(data, kept)), classes(predict(data, kept, seed=seed))
    np.testing.assert_array_equal(chosen, named)
    assert read_meta(predict(data, kept), "ldp predict")["seed"] == seed


def test_what_the_predictions_hold(data: Path, kept: Path) -> None:
    path = predict(data, kept)
    table = read_table(path, "ldp predict")
    probability = np.stack([table[f"p{k}"].to_numpy() for k in range(3)], axis=1)
    np.testing.assert_allclose(probability.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(probability.argmax(axis=1), table["class"].to_numpy())
    np.testing.assert_array_equal(probability.max(axis=1), table["probability"].to_numpy())
    assert table["node"].to_pylist() == list(range(90))
    meta = read_meta(path, "ldp predict")
    expected = {
        "kind": "predictions",
        "dataset": NAME,
        "model": file_hash(kept / WEIGHTS),
        "reports": file_hash(reports_path(data, NAME, "mb", 1.0)),
        "input": graph_hash(graph_dir(data, NAME)),
        "library": __version__,
    }
    assert {key: meta[key] for key in expected} == expected
    # What it predicts from is a draw that training has used: nothing more is spent.
    assert Ledger.from_json(meta["ledger"]) == load_model(kept).spent


def test_predictions_are_the_same_file_again(data: Path, kept: Path) -> None:
    assert predict(data, kept).read_bytes() == predict(data, kept).read_bytes()


def test_the_recipe_says_what_was_spent_and_on_what(data: Path, kept: Path) -> None:
    model = load_model(kept)
    draws = PARAMS.seeds + PARAMS.search.seeds
    assert model.spent.text() == f"total epsilon per user: features 1.0 x {draws} draws = {draws}.0"
    card = (kept / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert f"| spent in all | {model.spent.text()} |" in card
    assert f"made of {draws} reports of each person" in card
    about = model.about
    assert (about["dataset"], about["method"], about["mechanism"], about["low"], about["high"]) == (
        NAME,
        "lpgnn",
        "mb",
        0,
        1,
    )
    assert about["chosen"]["steps"] in (0, 2)
    assert (model.dimensions, model.classes) == (24, 3)


def test_an_unlimited_budget_comes_back(data: Path, tmp_path: Path) -> None:
    learn(data, PARAMS, "features", "identity", math.inf, models=tmp_path / "model")
    assert load_model(tmp_path / "model").spent.total().epsilon == math.inf


def test_kept_is_the_same_folder_again(data: Path, kept: Path, tmp_path: Path) -> None:
    calibrate(data, PARAMS)
    train(
        Cell(dataset=NAME, method="lpgnn", mechanism="mb", epsilon=1.0),
        data=data,
        params=PARAMS,
        models=tmp_path / "again",
    )
    for name in (WEIGHTS, RECIPE):
        assert (tmp_path / "again" / name).read_bytes() == (kept / name).read_bytes()


# another graph --------------------------------------------------------------------------------------------------------


def test_it_predicts_for_another_graph_with_the_same_features(tmp_path: Path) -> None:
    """What a word says of a class is the same in both graphs; nodes, edges and labels are others."""
    signal = {"features": 0.95, "structure": 0.9, "words": 8.0}
    store(tmp_path, nodes=150, **signal)
    params = small_params(epochs=60, points=4)
    learn(tmp_path, params, "features", "identity", math.inf, models=tmp_path / "model")
    graph = store(tmp_path, "elsewhere", nodes=110, seed=9, **signal)
    reports = perturb_graph(
        Cell(dataset="elsewhere", mechanism="identity", epsilon=math.inf), data=tmp_path, seeds=(0,)
    )
    path = predict(tmp_path, tmp_path / "model", reports)
    assert read_meta(path, "ldp predict")["dataset"] == "elsewhere"
    found = classes(path)
    assert found.shape == (110,)
    assert (found == graph.labels).mean() > 0.8


def test_reports_of_a_file_are_predicted_on_the_graph_that_is_named(data: Path, kept: Path) -> None:
    perturb_graph(Cell(dataset=NAME, mechanism="mb", epsilon=1.0), data=data, seeds=(0,))
    store(data, "copy")
    reports = perturb_graph(Cell(dataset="copy", mechanism="mb", epsilon=1.0), data=data, seeds=(0,))
    own, named = classes(predict(data, kept, reports)), classes(predict(data, kept, reports, dataset=NAME))
    np.testing.assert_array_equal(own, named)  # the same graph under another name


# what is refused ------------------------------------------------------------------------------------------------------


def refused(data: Path, kept: Path, kind: type[GraphLDPError], *options: Any, **more: Any) -> str:
    before = files(data.parent)
    with pytest.raises(kind) as error:
        predict(data, kept, *options, **more)
    line = str(error.value)
    assert "\n" not in line
    assert files(data.parent) == before
    return line


def test_reports_of_other_dimensions_are_one_line(data: Path, kept: Path) -> None:
    store(data, "wide", dimensions=30)
    reports = perturb_graph(Cell(dataset="wide", mechanism="mb", epsilon=1.0), data=data, seeds=(0,))
    line = refused(data, kept, DataError, reports)
    assert line.startswith(f"{reports} has 30 dimensions and the model takes 24; give reports of the features")


@pytest.mark.parametrize("nodes", [89, 91])
def test_reports_of_other_nodes_than_the_graph_are_one_line(nodes: int, data: Path, kept: Path) -> None:
    store(data, "other", nodes=nodes)
    line = refused(data, kept, ArtifactError, dataset="other")
    assert (
        "holds reports of other nodes than the graph other has, or in another order; name their graph with --dataset"
        in line
    )


def test_reports_of_another_mechanism_are_one_line(data: Path, kept: Path) -> None:
    reports = perturb_graph(Cell(dataset=NAME, mechanism="pm", epsilon=1.0), data=data, seeds=(0,))
    assert "has mechanism 'pm' where 'mb' was asked for" in refused(data, kept, ArtifactError, reports)


def test_what_is_not_there_is_one_line(data: Path, kept: Path) -> None:
    assert "make it with `ldp perturb`" in refused(data, kept, ArtifactError, data / "none.parquet")
    assert "has seeds [0, 1, 2, -1, -2], not 9" in refused(data, kept, ArtifactError, seed=9)
    assert "make it with `ldp download pubmed`" in refused(data, kept, ArtifactError, dataset="pubmed")
    assert "unknown graph 'none'" in refused(data, kept, OptionError, dataset="none")
    assert "make it with `ldp train --save-model FOLDER`" in refused(data, data, ArtifactError)


def cut(path: Path, length: int = 20) -> None:
    path.write_bytes(path.read_bytes()[:-length])


def edit(**changes: Any) -> Callable[[Path], None]:
    def change(kept: Path) -> None:
        facts = json.loads((kept / RECIPE).read_text(encoding="utf-8"))
        write_json(kept / RECIPE, {**facts, **changes})

    return change


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda kept: cut(kept / WEIGHTS), "the weights are damaged or belong to another recipe: their hash differs"),
        (lambda kept: (kept / WEIGHTS).write_bytes(b""), "the weights are damaged or belong to another recipe"),
        (lambda kept: (kept / WEIGHTS).unlink(), f"{WEIGHTS} does not exist"),
        (lambda kept: cut(kept / RECIPE), "model.json is damaged"),
        (lambda kept: (kept / RECIPE).write_bytes(b"\xff{}"), "model.json is damaged"),
        (lambda kept: (kept / RECIPE).write_text("[1]"), "model.json is no recipe"),
        (lambda kept: (kept / RECIPE).write_text("{}"), "this is not a model's recipe"),
        (lambda kept: (kept / RECIPE).unlink(), f"{RECIPE} does not exist"),
        (edit(dimensions="many"), "model.json is damaged"),
        (edit(dimensions=25), "the model's parameters have the shapes"),
        (edit(model="gnn"), "unknown model 'gnn'"),
        (edit(options={"hidden": 4, "nonsense": 1}), "nonsense"),
        (edit(about={}), "model.json does not say its dataset"),
        (edit(about={"dataset": NAME, "method": "lpgnn"}), "model.json does not say its mechanism"),
    ],
)
def test_a_damaged_model_is_one_line(damage: Callable[[Path], None], words: str, data: Path, kept: Path) -> None:
    damage(kept)
    line = refused(data, kept, ArtifactError)
    assert words in line
    assert str(kept) in line
    assert "`ldp train --save-model FOLDER`" in line


def test_a_stop_leaves_no_half_model(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calibrate(data, PARAMS)

    def stop(path: Path, value: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("graphldp.stages.files.models.write_json", stop)
    with pytest.raises(KeyboardInterrupt):
        train(
            Cell(dataset=NAME, method="lpgnn", mechanism="mb", epsilon=1.0),
            data=data,
            params=PARAMS,
            models=tmp_path / "model",
        )
    assert files(tmp_path / "model") == [CARD, WEIGHTS]
    with pytest.raises(ArtifactError, match=r"model\.json does not exist"):
        load_model(tmp_path / "model")
