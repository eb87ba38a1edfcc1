"""Private links in the house: reports in the one artifact, an estimated graph in the public graph's place."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cell_factory import NAME, run, small_graph, small_params, store

import graphldp
from graphldp.client.directed import DirectedMechanism
from graphldp.client.vector import VectorMechanism
from graphldp.client.vote import Vote
from graphldp.errors import OptionError
from graphldp.experiment import plan, rounds, scored, survey
from graphldp.experiment.cell import learn_cell
from graphldp.experiment.options import Further, Settings
from graphldp.experiment.plan import Devices, plan_of
from graphldp.experiment.server_view import ServerView, as_links, as_reports, server_view_of
from graphldp.graph import Graph
from graphldp.ledger import Ledger
from graphldp.methods import method
from graphldp.stages.denoise import denoise
from graphldp.stages.files.answers import AnswersFile
from graphldp.stages.files.artifacts import read_table
from graphldp.stages.grids.cell import Cell
from graphldp.stages.grids.params import Params, load
from graphldp.stages.perturb import perturb_method
from graphldp.stages.train import train

BLINK = Further(links="blink", epsilon_links=6.0)
BOTH = Further(labels="krr", epsilon_labels=2.0, links="blink", epsilon_links=6.0)

SLOW = pytest.param("solitude", marks=pytest.mark.slow)


def private(further: Further = BLINK, **changes: Any) -> Params:
    return small_params(further=further, **{"seeds": 2, "search_seeds": 1, "points": 2, **changes})


def without_links(graph: Graph) -> Graph:
    return dataclasses.replace(graph, edges=np.array([[0], [1]], dtype=np.int32))


def outcomes(rows: list[dict[str, Any]]) -> list[Any]:
    return [
        (row["point"], row["seed"], row["best_epoch"], row["validation_loss"], row["test_accuracy"]) for row in rows
    ]


@pytest.mark.parametrize(
    "name",
    ["lpgnn", "upgnet-hn", "togl-fda", "votes", "surroundings", "mlp", "blocks", "blocks-votes", "hogs", "rgnn", SLOW],
)
def test_no_true_link_moves_a_result_while_reports_are_held(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    params, graph, recipe = private(), small_graph(), method(name)
    answers = {seed: server_view_of(graph, params).questions(seed) for seed in params.draws}

    def held(of: Graph, settings: Settings, row: Any = None) -> ServerView:
        linked = row is None or not row.alone
        further = settings.further if linked else settings.further.without_links()
        return ServerView(
            graph=of, further=further, root=settings.seed, listen=lambda seed: answers[seed], linked=linked
        )

    for place in (plan, rounds, survey):
        monkeypatch.setattr(place, "server_view_of", held)

    def learned(of: Graph) -> list[dict[str, Any]]:
        budget = 0.0 if recipe.mechanism == "null" else 4.0
        source = Devices(graph=of, recipe=recipe, mechanism=recipe.mechanism, epsilon=budget, options={}, params=params)
        return learn_cell(of, plan_of(source, params), params).rows

    first = outcomes(learned(graph))
    assert outcomes(learned(without_links(graph))) == first
    if name != "mlp":  # what people report of their links does
        other = dataclasses.replace(graph, edges=small_graph(seed=5).edges)
        answers = {seed: server_view_of(other, params).questions(seed) for seed in params.draws}
        assert outcomes(learned(graph)) != first


@pytest.mark.parametrize("name", ["lpgnn", "upgnet-hn", "mlp", "hogs", "rgnn", "togl-fda", "blocks-votes", SLOW])
def test_with_every_answer_held_nothing_true_moves_what_is_chosen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    params, graph, recipe = private(BOTH), small_graph(), method(name)
    beside = {seed: server_view_of(graph, params).questions(seed) for seed in params.draws}
    heard: list[Any] = []
    replay: list[Any] = []

    def held(of: Graph, settings: Settings, row: Any = None) -> ServerView:
        linked = row is None or not row.alone
        further = settings.further if linked else settings.further.without_links()
        return ServerView(
            graph=of, further=further, root=settings.seed, listen=lambda seed: beside[seed], linked=linked
        )

    for place in (plan, rounds, scored, survey):
        monkeypatch.setattr(place, "server_view_of", held)
    for kind in (VectorMechanism, DirectedMechanism, Vote):

        def told(self: Any, *given: Any, asked: Any = kind.perturb, **more: Any) -> Any:
            if replay:
                return replay.pop(0)
            heard.append(asked(self, *given, **more))
            return heard[-1]

        monkeypatch.setattr(kind, "perturb", told)

    def learned(of: Graph) -> list[Any]:
        asked = Devices(graph=of, recipe=recipe, mechanism=recipe.mechanism, epsilon=4.0, options={}, params=params)
        rows = learn_cell(of, plan_of(asked, params), params).rows
        return [(row["point"], row["seed"], row["best_epoch"], row["validation_loss"]) for row in rows]

    first = learned(graph)
    assert heard
    other = small_graph(seed=5)
    wrong = ((graph.labels + 1) % graph.classes).astype(np.int32)
    changed = dataclasses.replace(graph, features=other.features, edges=other.edges, labels=wrong)
    replay += heard
    assert learned(changed) == first
    assert not replay  # every answer was asked for again, and none other
    if name != "blocks-votes":  # which may give votes no weight
        assert learned(changed) != first  # people's own answers are what moves it


@pytest.mark.parametrize("name", ["base", "lpgnn", "upgnet-hn", "hogs", SLOW])
def test_every_run_is_over_the_graph_of_its_own_reports(name: str) -> None:
    graph = small_graph()
    asked = {"links": "blink", "epsilon_links": 4.0, "seeds": 3, "search_seeds": 1, "points": 2, "epochs": 4}
    found = graphldp.run(graph, name, epsilon=3.0, references=False, **asked)
    problem, runs = found.row.cell.problem, found.row.cell.runs
    assert problem is not None
    over = [problem.graph(run.graph).adjacency for run in runs]
    view = server_view_of(graph, found.settings)
    for seed, own in enumerate(over):
        if not method(name).relinks:
            assert abs(own - view.known(seed).adjacency()).max() == 0
        assert all(abs(own - other).max() > 0 for other in over[:seed])


def test_runs_over_the_same_links_share_one_graph() -> None:
    small = {"seeds": 3, "search_seeds": 1, "points": 1, "epochs": 4, "references": False}
    for name, asked in (("lpgnn", {}), ("lpgnn", {"labels": "krr", "epsilon_labels": 1.0}), ("mlp", {"links": "rr"})):
        budget = {"epsilon_links": 4.0} if "links" in asked else {}
        cell = graphldp.run(small_graph(), name, epsilon=3.0, **asked, **budget, **small).row.cell
        assert cell.problem is not None
        assert (len(cell.problem.more), {run.graph for run in cell.runs}) == (0, {0})


def test_the_estimated_graph_is_near_the_true_one_and_has_its_labels() -> None:
    graph = small_graph()
    settings = Settings(further=Further(links="rr", epsilon_links=12.0))
    known = server_view_of(graph, settings).known(0)
    assert known.weights is None
    assert abs(known.edges.shape[1] - graph.edges.shape[1]) < 3
    np.testing.assert_array_equal(known.labels, graph.labels)
    soft = Further(links="blink", epsilon_links=4.0, link_options=(("estimator", "soft"),))
    weighed = server_view_of(graph, Settings(further=soft)).known(0)
    assert weighed.weights is not None
    assert weighed.edges.shape[1] == 90 * 89 // 2
    adjacency = weighed.adjacency()
    assert abs(adjacency - adjacency.T).max() == 0
    assert adjacency.diagonal().sum() == 0


@pytest.mark.parametrize("name", ["rr", "blink", "dprr", "laplace-bits"])
@pytest.mark.parametrize("report", ["lower", "both"])
def test_reports_survive_the_rectangle_and_the_file(name: str, report: str, tmp_path: Path) -> None:
    graph = store(tmp_path)
    further = Further(links=name, epsilon_links=3.0, link_options=(("report", report),))
    params = private(further)
    view = server_view_of(graph, params)
    (question,) = view.questions(0)
    links = as_links(question.answers)
    again = as_links(as_reports(links))
    for part in ("indptr", "indices", "degree", "value"):
        np.testing.assert_array_equal(getattr(links, part), getattr(again, part))
    path = perturb_method(Cell(dataset=NAME, method="lpgnn", epsilon=1.0), data=tmp_path, settings=params)
    (kept,) = AnswersFile(path, "make").further_questions(0)
    stored = as_links(kept.answers)
    for part in ("indptr", "indices", "degree", "value"):
        np.testing.assert_array_equal(getattr(links, part), getattr(stored, part))
    spent = {one.what: one for one in Ledger.from_json(AnswersFile(path, "make").meta["ledger"]).once().spends}
    assert spent["links"].per == "edge"
    assert spent["links"].epsilon == view.link_mechanism.relationship_epsilon
    facts = AnswersFile(path, "make").meta["links"]
    assert facts["epsilon_bit"] == 3.0
    assert facts["epsilon_exact"] <= facts["epsilon"] * (1 + 1e-9)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    store(tmp_path / "data")
    return tmp_path / "data"


@pytest.mark.parametrize("name", ["lpgnn", "upgnet-hn", "mlp", "hogs", "rgnn", SLOW])
def test_files_and_memory_give_the_same(name: str, data: Path) -> None:
    params = private(BOTH)
    perturb_method(Cell(dataset=NAME, method=name, epsilon=3.0), data=data, settings=params)
    denoise(Cell(dataset=NAME, method=name, epsilon=3.0, further=BOTH), data=data, steps=(0, 2))
    made = train(Cell(dataset=NAME, method=name, epsilon=3.0), data=data, params=params)
    reached = [row["test_accuracy"] for row in read_table(made, "x").to_pylist() if row["role"] == "final"]
    (row,) = run(NAME, name, None, 3.0, data=data, params=params, references=False)
    assert reached == row.accuracy.tolist()


def learned_by(name: str, params: Params, mechanism: str = "mb", options: Any = None) -> Any:
    graph, recipe = small_graph(), method(name)
    source = Devices(graph=graph, recipe=recipe, mechanism=mechanism, epsilon=4.0, options=options or {}, params=params)
    return learn_cell(graph, plan_of(source, params), params).rows


@pytest.mark.slow
def test_solitude_learns_links_where_they_are_private_and_is_lpgnn_where_they_are_public() -> None:
    assert outcomes(learned_by("solitude", private())) != outcomes(learned_by("lpgnn", private()))
    public = private(Further())
    assert outcomes(learned_by("solitude", public)) == outcomes(learned_by("lpgnn", public))
    # Its links start from what was reported, whatever other rows estimate.
    by = [private(dataclasses.replace(BLINK, link_options=(("estimator", name),))) for name in ("hard", "hybrid")]
    assert outcomes(learned_by("solitude", by[0])) == outcomes(learned_by("solitude", by[1]))
    assert outcomes(learned_by("lpgnn", by[0])) != outcomes(learned_by("lpgnn", by[1]))


def test_likeness_weighs_private_links_and_over_public_ones_hogs_is_a_mean() -> None:
    assert outcomes(learned_by("hogs", private())) != outcomes(learned_by("lpgnn", private()))
    hard = private(dataclasses.replace(BLINK, link_options=(("estimator", "hard"),)))
    assert outcomes(learned_by("hogs", private())) == outcomes(learned_by("hogs", hard))
    assert outcomes(learned_by("hogs", private(Further()))) != outcomes(learned_by("lpgnn", private(Further())))


def test_what_links_cannot_be_found_by_is_one_line_before_anything_is_trained() -> None:
    inductive = private()
    inductive = dataclasses.replace(inductive, train=dataclasses.replace(inductive.train, split="inductive"))
    searched = private(points=8)
    searched = dataclasses.replace(searched, search=dataclasses.replace(searched.search, options={"m": (1, 2)}))
    for params, words in (
        (private(dataclasses.replace(BLINK, links="laplace-bits")), "use blink or dprr or rr"),
        (inductive, "split random"),
        (searched, "one value each"),
    ):
        with pytest.raises(OptionError, match=words):
            learned_by("solitude", params)
    with pytest.raises(OptionError, match="use blink or rr"):
        learned_by("hogs", private(dataclasses.replace(BLINK, links="dprr")))


def test_every_row_says_what_it_spends(data: Path) -> None:
    found = {row.name: row.spent.text() for row in run(NAME, "mlp", None, 3.0, data=data, params=private(BOTH))}
    links = "total epsilon per edge: links 6.6"
    assert found == {
        "majority": "total epsilon per user: labels 2.0",
        "structure": f"total epsilon per user: labels 2.0; {links}",
        "mlp": "total epsilon per user: features 3.0 + labels 2.0 = 5.0",
        "nonpriv": "total epsilon per user: features inf",
    }


def test_a_model_of_features_alone_has_spent_nothing_on_links() -> None:
    small = {"seeds": 1, "search_seeds": 1, "points": 1, "epochs": 3, "references": False}
    for name, per in (("mlp", {"user"}), ("base", {"user", "edge"})):
        found = graphldp.run(small_graph(), name, epsilon=3.0, links="rr", epsilon_links=9.0, **small)
        assert {one.per for one in found.model().spent.spends} == per


def test_an_empty_estimated_graph_still_trains() -> None:
    graph = dataclasses.replace(small_graph(), edges=np.empty((2, 0), np.int32))
    params = private(Further(links="rr", epsilon_links=40.0))
    recipe = method("lpgnn")
    source = Devices(graph=graph, recipe=recipe, mechanism="mb", epsilon=2.0, options={}, params=params)
    assert source.server_view.known(0).edges.shape[1] == 0
    assert source.server_view.found() == "the server's graph of the first run has no link at all"
    rows = learn_cell(graph, plan_of(source, params), params).rows
    assert all(np.isfinite(row["validation_loss"]) for row in rows)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"links": "blnk", "epsilon_links": 4.0}, "unknown links 'blnk'"),
        ({"epsilon_links": 4.0}, "epsilon_links is the budget of private links"),
        ({"link_options": {"report": "both"}}, "link_options are of private links"),
        (
            {"links": "rr", "epsilon_links": 4.0, "link_options": {"report": "upper"}},
            "report must be one of lower, both",
        ),
        ({"links": "rr", "epsilon_links": 4.0, "link_options": {"estimator": "top-k"}}, "unknown estimator"),
        ({"links": "rr", "epsilon_links": 4.0, "link_options": {"share": 0.1}}, "rr has no option 'share'"),
        ({"links": "rr", "epsilon_links": 0.1, "link_options": {"most": 10}}, "false links would be reported"),
        ({"links": "rr", "epsilon_links": 4.0, "task": "link-prediction"}, "cannot be private"),
    ],
)
def test_what_cannot_be_asked_is_one_line(given: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words) as found:
        graphldp.run(small_graph(), "lpgnn", epsilon=1.0, **given)
    assert "\n" not in str(found.value)


def test_how_many_false_links_there_will_be_is_said_before_anybody_is_asked() -> None:
    view = ServerView(graph=small_graph(), further=Further(links="rr", epsilon_links=2.0), root=0)
    assert "about 477 false ones will be reported by 90 people" in view.forecast()
    assert view.kept == {}


GRID = """
title: links
datasets: [synthetic]
epsilons: [1]
links: blink
epsilon_links: [2, 6]
link_options: {report: both}
labels: krr
epsilon_labels: [1]
rows:
  - {method: lpgnn}
"""


def test_a_file_of_rows_says_links_as_a_command_does(tmp_path: Path) -> None:
    file = tmp_path / "links.yaml"
    file.write_text(GRID)
    params = load(file)
    settings = dict.fromkeys(cell.setting for cell in params.cells())
    assert list(settings) == [(("epsilon_labels", 1.0), ("epsilon_links", budget)) for budget in (2.0, 6.0)]
    further = next(params.of(cell).further for cell in params.cells() if cell.method == "lpgnn")
    assert (
        further.command()
        == " --labels krr --epsilon-labels 1 --links blink --epsilon-links 2 --link-option report=both"
    )
    file.write_text(GRID.replace("links: blink\n", ""))
    with pytest.raises(OptionError, match="say with links how they are reported"):
        load(file)
