"""What kept models of every task predict, what they refuse, and their cards."""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cell_factory import NAME, calibrate, graph_for, learn, rows, small_graph, small_params, store

from graphldp.errors import DataError, GraphLDPError, OptionError
from graphldp.experiment.options import Further
from graphldp.experiment.parts import LinkPart, part_of
from graphldp.learn import model, models
from graphldp.measures import measures_of, tasks
from graphldp.stages.files.artifacts import read_meta, read_table
from graphldp.stages.files.graphs import write_graph
from graphldp.stages.files.models import CARD, load_model
from graphldp.stages.files.paths import graph_dir, reports_path
from graphldp.stages.grids.cell import Cell
from graphldp.stages.grids.params import Params
from graphldp.stages.perturb import perturb_graph
from graphldp.stages.predict import Wanted, predict_reports
from graphldp.stages.train import train
from graphldp.tasks.regression import NORM

LINKS = "link-prediction"


def params_of(task: str, **options: Any) -> Params:
    params = small_params(**{"points": 2, "epochs": 20, **options})
    return dataclasses.replace(params, train=dataclasses.replace(params.train, task=task, link_width=6))


def keep(folder: Path, task: str, method: str = "lpgnn", mechanism: str = "mb", **options: Any) -> Path:
    """Train one cell below `folder` and keep its best model."""
    params = options.pop("params", None) or params_of(task)
    learn(folder / "data", params, method, mechanism, models=folder / "kept", **options)
    return folder / "kept"


def predict(folder: Path, mechanism: str = "mb", reports: Path | None = None, **options: Any) -> Any:
    source = reports or reports_path(folder / "data", NAME, mechanism, 1.0)
    path = predict_reports(folder / "kept", source, data=folder / "data", output=folder / "out.parquet", **options)
    return read_table(path, "ldp predict")


def pairs_file(path: Path, pairs: np.ndarray[Any, Any]) -> Path:
    lines = ["source,target", *(f"{u},{v}" for u, v in pairs.T)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def here(tmp_path: Path) -> Path:
    store(tmp_path / "data")
    return tmp_path


# what was trained -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["regression", "multi-task"])
def test_numbers_are_those_of_the_run(task: str, here: Path) -> None:
    about = load_model(keep(here, task)).about
    table = predict(here)
    assert ("class" in table.column_names) == (task == "multi-task")
    assert table["node"].to_pylist() == list(range(90))
    graph = small_graph()
    part = part_of(graph, params_of(task), about["seed"])
    for name, nodes in (("validation", part.split.validation), ("test", part.split.test)):  # type: ignore[attr-defined]
        missed = table["value"].to_numpy()[nodes] - NORM.of(graph)[nodes]
        assert np.abs(missed).mean() == pytest.approx(about[f"{name}_mae"], rel=1e-4)
    assert about["target"] == "l2 norm of the features"
    kept, card = load_model(here / "kept").spent, (here / "kept" / "MODEL_CARD.md").read_text(encoding="utf-8")
    # Nothing protects the numbers of those who gave them: infinite, of a unit of their own.
    assert kept.total("person of the training and validation part").epsilon == math.inf
    assert math.isfinite(kept.total().epsilon)
    assert "l2 norm of the features of a person: private data" in card
    assert read_meta(here / "out.parquet", "x")["task"] == task


@pytest.mark.parametrize(("method", "mechanism"), [("lpgnn", "mb"), ("upgnet-hn", "mb"), ("ppgnn", "ppm-public")])
@pytest.mark.parametrize("loss", ["pairwise", "cross-entropy"])
def test_scores_of_pairs_are_an_order_with_more_edges_in_front(
    method: str, mechanism: str, loss: str, here: Path
) -> None:
    params = params_of(LINKS)
    params = dataclasses.replace(params, train=dataclasses.replace(params.train, link_loss=loss))
    keep(here, LINKS, method, mechanism, params=params)
    graph = small_graph()
    table = predict(here, mechanism, wanted=Wanted(top=7))
    scores = table["score"].to_numpy()
    assert len(scores) == 7
    assert (np.diff(scores) <= 0).all()
    assert not any(table["linked"].to_pylist())
    assert ("probability" in table.column_names) == (loss == "cross-entropy")
    every = np.stack(np.triu_indices(90, 1))
    scored = predict(here, mechanism, wanted=Wanted(pairs=pairs_file(here / "pairs.csv", every)))
    linked = np.array(scored["linked"].to_pylist())
    assert linked.sum() == graph.edges.shape[1]
    free = scored["score"].to_numpy()[~linked]
    np.testing.assert_allclose(np.sort(free)[::-1][:7], scores, rtol=1e-5)
    assert np.median(scored["score"].to_numpy()[linked]) > np.median(free)


def test_a_link_predictor_scores_what_training_scored(here: Path) -> None:
    """On the graph of the training edges alone, which is the one that it was trained on, the test AUC comes back."""
    about = load_model(keep(here, LINKS)).about
    part = part_of(small_graph(), params_of(LINKS), about["seed"])
    assert isinstance(part, LinkPart)
    write_graph(dataclasses.replace(part.graph, name="seen"), graph_dir(here / "data", "seen"))
    tests = np.concatenate([part.edges.test, part.edges.test_negative], axis=1)
    table = predict(here, dataset="seen", wanted=Wanted(pairs=pairs_file(here / "pairs.csv", tests)))
    high, low = np.split(table["score"].to_numpy(), 2)
    auc = (high[:, None] > low[None, :]).mean()
    assert auc == pytest.approx(about["test_auc"], abs=1e-6)
    assert not any(table["linked"].to_pylist())


@pytest.mark.parametrize("name", models())
def test_every_backbone_predicts_for_another_graph(name: str, here: Path) -> None:
    """Weights belong to features, not to nodes: another graph of the same features will do."""
    if name == "example-mlp":
        pytest.skip("a page's example")
    params = params_of("node-classification", epochs=4)
    keep(here, "", params=dataclasses.replace(params, train=dataclasses.replace(params.train, model=name)))
    store(here / "data", "elsewhere", nodes=70, seed=5)
    reports = perturb_graph(Cell(dataset="elsewhere", mechanism="mb", epsilon=1.0), data=here / "data", seeds=(0,))
    table = predict(here, reports=reports)
    assert len(table) == 70
    assert read_meta(here / "out.parquet", "x")["dataset"] == "elsewhere"
    assert load_model(here / "kept").backbone == dataclasses.replace(load_model(here / "kept").backbone)
    assert model(name).name == name


def test_predictions_are_the_same_file_again(here: Path) -> None:
    keep(here, LINKS)
    predict(here)
    first = (here / "out.parquet").read_bytes()
    predict(here)
    assert (here / "out.parquet").read_bytes() == first


def test_nodes_are_named_as_the_graph_names_them(here: Path) -> None:
    graph = dataclasses.replace(small_graph(), node_ids=tuple(f"n{k}" for k in range(90)))
    write_graph(graph, graph_dir(here / "data", NAME))
    keep(here, LINKS)
    (here / "pairs.csv").write_text("source,target\nn3,n8\nn5,n1\n", encoding="utf-8")
    table = predict(here, wanted=Wanted(pairs=here / "pairs.csv"))
    assert (table["source"].to_pylist(), table["target_id"].to_pylist()) == ([3, 5], ["n8", "n1"])


# what is refused ------------------------------------------------------------------------------------------------------


def line(error: type[GraphLDPError], call: Any) -> str:
    with pytest.raises(error) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_pairs_are_checked(here: Path) -> None:
    keep(here, LINKS)
    for text, words in (
        ("source,target\n1,90\n", "row 1 names the target '90', which is no node of synthetic"),
        ("source,target\n1,2\n4,4\n", "row 2 pairs a node with itself"),
        ("a,b\n1,2\n", "missing column 'source'"),
    ):
        (here / "pairs.csv").write_text(text, encoding="utf-8")
        assert words in line(DataError, lambda: predict(here, wanted=Wanted(pairs=here / "pairs.csv")))
    assert "there is no such file" in line(DataError, lambda: predict(here, wanted=Wanted(pairs=here / "no.csv")))
    assert "can be asked for, not 5000" in line(OptionError, lambda: predict(here, wanted=Wanted(top=5000)))
    assert "not both" in line(OptionError, lambda: Wanted(pairs=here / "pairs.csv", top=3))
    assert not (here / "out.parquet").exists()


def test_pairs_are_for_links_alone(here: Path) -> None:
    keep(here, "regression")
    words = line(OptionError, lambda: predict(here, wanted=Wanted(top=3)))
    assert "this one was trained for regression and predicts for every node" in words


def test_reports_of_another_range_are_refused(here: Path) -> None:
    keep(here, "node-classification")
    wide = dataclasses.replace(small_graph("wide"), high=2.0)
    write_graph(wide, graph_dir(here / "data", "wide"))
    reports = perturb_graph(Cell(dataset="wide", mechanism="mb", epsilon=1.0), data=here / "data", seeds=(0,))
    assert "give reports with the same public range" in line(DataError, lambda: predict(here, reports=reports))


# the card -------------------------------------------------------------------------------------------------------------


def card(here: Path) -> str:
    return (here / "kept" / CARD).read_text(encoding="utf-8")


@pytest.mark.parametrize("task", tasks())
def test_a_card_says_what_was_measured(task: str, here: Path) -> None:
    write_graph(graph_for(task), graph_dir(here / "data", NAME))
    about = load_model(keep(here, task)).about
    text = card(here)
    assert text.startswith(f"# Model card: lpgnn on {NAME}, {measures_of(task).title}\n")
    for one in measures_of(task).measures:
        (row,) = [part for part in text.splitlines() if part.startswith(f"| {one.label}")]
        own = [one.number(one.factor * about[f"{name}_{one.name}"]) for name in ("validation", "test")]
        assert row.split(" | ")[1:3] == own
        assert row.endswith("| not known |")
    assert "ldp train --dataset synthetic --method structure --mechanism null --epsilon 0" in text
    assert ("have given away" in text) == (task in ("regression", "multi-task"))
    assert "| claimed epsilon of one report | 1.0 |" in text
    assert "| keeps its claim | yes |" in text


@pytest.mark.slow
def test_a_card_knows_the_floor_that_is_there(here: Path) -> None:
    params = params_of("node-classification")
    floor = rows(learn(here / "data", params, "structure", "null", 0.0), "final")
    keep(here, "", params=params)
    (row,) = [part for part in card(here).splitlines() if part.startswith("| accuracy")]
    mean = 100 * np.mean([one["test_accuracy"] for one in floor])
    assert row.split(" | ")[-1].startswith(f"{mean:.1f} %")
    assert "It was not there" not in card(here)
    assert "the best of several learners of the public graph" in card(here)
    # What was searched less, or more, is no floor that is searched alike.
    calibrate(here / "data", params)
    other = dataclasses.replace(params, search=dataclasses.replace(params.search, points=1))
    train(
        Cell(dataset=NAME, method="lpgnn", mechanism="mb", epsilon=1.0),
        data=here / "data",
        params=other,
        models=here / "kept",
    )
    assert "It was not there" in card(here)
    # Runs with other parameters are another floor.
    calibrate(here / "data", params)
    other = dataclasses.replace(params, train=dataclasses.replace(params.train, hidden=5))
    train(
        Cell(dataset=NAME, method="lpgnn", mechanism="mb", epsilon=1.0),
        data=here / "data",
        params=other,
        models=here / "kept",
    )
    assert "It was not there" in card(here)


@pytest.mark.slow
def test_a_card_says_that_people_were_asked_for_their_labels_too(here: Path) -> None:
    command = "--labels krr --epsilon-labels 2"
    params = params_of("node-classification")
    params = dataclasses.replace(params, further=Further(labels="krr", epsilon_labels=2.0))
    public = params_of("node-classification")
    learn(here / "data", public, "structure", "null", 0.0)  # the floor of public labels and links is another one
    keep(here, "", params=params)
    text = card(here)
    assert "| labels, which are not public | reported by `krr` at epsilon 2.0 |" in text
    assert "Not protected: the graph and who takes part." in text
    assert "learners of the public graph and the same labels," in text
    assert text.count(command) == 4  # three of the commands that make it again, and the floor's
    assert f"--epsilon 0 --task node-classification {command}`" in text
    floor = rows(learn(here / "data", params, "structure", "null", 0.0), "final")
    keep(here, "", params=params)
    mean = 100 * np.mean([one["test_accuracy"] for one in floor])
    (line,) = [part for part in card(here).splitlines() if part.startswith("| accuracy")]
    assert line.split(" | ")[-1].startswith(f"{mean:.1f} %")


def test_a_card_has_the_budget_of_every_level(here: Path) -> None:
    keep(here, "node-classification", "ppgnn", "ppm-public")
    levels = "level 1: 1.0, level 2: 2.0, level 3: 4.0, level 4: 8.0, level 5: 16.0"
    assert f"| a report's budget by the person's level | {levels} |" in card(here)


def test_a_card_says_that_a_claim_is_not_kept(here: Path) -> None:
    keep(here, "node-classification", "lpgnn", "ppm")
    assert "| keeps its claim | **no**: " in card(here)
    assert "exact epsilon of one report, from the mechanism's law | infinite" in card(here)


def test_a_card_of_one_point_has_one_point(here: Path) -> None:
    keep(here, "node-classification", params=params_of("node-classification", points=1, search_seeds=1))
    assert "| found by | 1 point on 1 seed, by validation loss: " in card(here)


def test_a_cards_commands_are_commands(here: Path) -> None:
    keep(here, "regression")
    found = re.findall(r"^ldp (\w+) ", card(here), flags=re.MULTILINE)
    assert found == ["download", "perturb", "denoise", "train"]
    assert "--task regression --seeds 3" in card(here)


def test_a_loss_is_the_tasks_and_not_its_backbones(here: Path) -> None:
    keep(here, "regression")
    (line,) = re.findall(r"^\| backbone \|.*$", card(here), flags=re.MULTILINE)
    assert "loss" not in line
