"""People who were not seen in training: each part a graph of its own, and nothing passes from one to another."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from cell_factory import NAME, calibrate, learn, rows, run, small_graph, small_params, store
from runs_factory import grid, write_runs

from graphldp import methods
from graphldp.client import Reports, protocol
from graphldp.errors import ArtifactError, DataError, OptionError
from graphldp.experiment import cell as learning
from graphldp.experiment import parts as stage
from graphldp.experiment.cell import learn_cell
from graphldp.experiment.devices import nodes_hash
from graphldp.experiment.estimates import average_degree, centred, filtered_apart, filtered_inputs
from graphldp.experiment.estimates import of_people as people
from graphldp.experiment.parts import NodePart, apart_of, part_of, split_of
from graphldp.experiment.plan import Devices, plan_of
from graphldp.experiment.result import CellResult
from graphldp.experiment.survey import Survey, Surveys
from graphldp.graph import Graph
from graphldp.learn import models
from graphldp.measures import measures_of
from graphldp.server import filter_names, kprop, rectify
from graphldp.server.evidence import EvidenceSetting, evidence_class, evidence_names, make_evidence
from graphldp.server.evidence.roles import triangles
from graphldp.splits import Apart, among, set_apart
from graphldp.stages.evaluate import measure
from graphldp.stages.files.answers import AnswersFile, check_selection
from graphldp.stages.files.artifacts import read_meta, read_table
from graphldp.stages.files.cell_sources import StoredEstimates
from graphldp.stages.files.graphs import graph_hash, write_graph
from graphldp.stages.files.models import CARD, load_model
from graphldp.stages.files.paths import graph_dir, reports_path
from graphldp.stages.files.reports import CalibratedFile, write_reports
from graphldp.stages.grids.cell import Cell
from graphldp.stages.grids.params import Params, check
from graphldp.stages.pages.tables import markdown_text
from graphldp.stages.perturb import perturb_method
from graphldp.stages.predict import predict_reports

PAPERS = Path(__file__).parents[2] / "papers"
# One of each: a linear filter, a threshold behind it, node weights, no filter, two rounds, evidence, everybody's own.
METHODS = [
    ("lpgnn", "mb", 1.0),
    ("upgnet-hn", "mb", 1.0),
    ("ppgnn", "ppm-public", 1.0),
    ("base", "pm", 1.0),
    ("togl-sma", "pm", 1.0),
    ("roles", "null", 0.0),
    ("votes", "privset", 4.0),
    ("frontier", "privset", 8.0),
    ("features", "identity", np.inf),
    ("nonpriv", "identity", np.inf),
]


def params_of(split: str = "inductive", task: str = "node-classification", **options: Any) -> Params:
    params = small_params(**{"seeds": 1, "search_seeds": 1, "points": 2, "epochs": 8, **options})
    return dataclasses.replace(params, train=dataclasses.replace(params.train, split=split, task=task))


def cell(
    graph: Graph, params: Params, method: str = "lpgnn", mechanism: str = "mb", epsilon: float = 1.0
) -> CellResult:
    recipe = methods.method(method)
    source = Devices(graph=graph, recipe=recipe, mechanism=mechanism, epsilon=epsilon, options={}, params=params)
    return learn_cell(graph, plan_of(source, params), params, device="cpu")


def same(one: CellResult, two: CellResult) -> bool:
    """Whether all but the test's scores is the same.

    Losses are compared to 1e-5: where others' zeros stand decides in which order some libraries sum, and so the last
    bits of a loss in float32. A scale that looks at the tested moves it by hundreds of that.
    """
    rows = [[dict(row) for row in result.rows] for result in (one, two)]
    losses = []
    for found in rows:
        for row in found:
            del row["test_accuracy"], row["test_macro_f1"]
        losses.append([row.pop("validation_loss") for row in found])
    return rows[0] == rows[1] and losses[0] == pytest.approx(losses[1], rel=1e-5)


def hidden(graph: Graph, params: Params) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Those who are tested on whatever seed, in the search as at the end."""
    parts = [apart_of(graph, params, seed) for seed in (0, -1)]
    found = [part.test for part in parts if part is not None]
    return np.intersect1d(*found)


# the parts ------------------------------------------------------------------------------------------------------------


def test_the_split_is_the_random_one_with_the_links_between_its_parts_cut() -> None:
    graph = small_graph()
    inductive, random = (part_of(graph, params_of(split), 0) for split in ("inductive", "random"))
    assert isinstance(inductive, NodePart)
    assert isinstance(random, NodePart)
    for name in ("train", "validation", "test"):
        np.testing.assert_array_equal(getattr(inductive.split, name), getattr(random.split, name))
        np.testing.assert_array_equal(getattr(inductive.split, name), getattr(inductive.apart, name))
    assert random.graph is graph
    group = np.empty(graph.nodes, int)
    for number, name in enumerate(("train", "validation", "test")):
        group[getattr(random.split, name)] = number
    inside = group[graph.edges[0]] == group[graph.edges[1]]
    assert 0 < inside.sum() < len(inside)
    np.testing.assert_array_equal(inductive.graph.edges, graph.edges[:, inside])


def test_who_has_no_label_is_dealt_out_in_proportion() -> None:
    graph = small_graph(nodes=4000)
    labels = graph.labels.copy()
    labels[np.random.default_rng(0).random(4000) < 0.5] = -1
    graph = dataclasses.replace(graph, labels=labels)
    apart, again = apart_of(graph, params_of(), 3), apart_of(graph, params_of(points=1), 3)
    assert apart is not None
    assert again is not None
    others = np.flatnonzero(labels < 0)
    shares = [np.isin(others, group).mean() for group in apart.groups]
    np.testing.assert_allclose(shares, [0.5, 0.25, 0.25], atol=0.04)
    for one, two in zip(apart.groups, again.groups, strict=True):
        np.testing.assert_array_equal(one, two)
    assert apart_of(graph, params_of("random"), 3) is None


def test_groups_apart_are_everybody_once() -> None:
    with pytest.raises(DataError, match="each in one group"):
        Apart(train=np.array([0, 1]), validation=np.array([1]), test=np.array([2]))
    split = split_of(small_graph(), params_of(), 0)
    apart = set_apart(split, 90, np.random.default_rng(0))
    apart.check(split.train[:1], split.train[1:2], "a matrix")
    with pytest.raises(DataError, match="a matrix joins 1 pairs of nodes of different parts"):
        apart.check(split.train[:1], split.test[:1], "a matrix")


def test_a_graph_of_some_people() -> None:
    graph = dataclasses.replace(
        small_graph(), self_loops=np.array([2, 5], np.int32), node_ids=tuple(f"n{k}" for k in range(90))
    )
    nodes = np.arange(1, 90, 2)
    part = among(graph, nodes)
    dense = graph.adjacency().toarray()
    np.testing.assert_array_equal(part.adjacency().toarray(), dense[np.ix_(nodes, nodes)])
    np.testing.assert_array_equal(part.features.toarray(), graph.features.toarray()[nodes])
    np.testing.assert_array_equal(part.labels, graph.labels[nodes])
    assert part.self_loops.tolist() == [2]
    assert part.node_ids is not None
    assert part.node_ids[:2] == ("n1", "n3")


# leaks ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "mechanism", "epsilon"), METHODS[:3])
def test_a_planted_link_between_parts_is_found(
    method: str, mechanism: str, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, made = small_graph(), part_of

    def leaking(whole: Graph, params: Params, seed: int, server_view: Any) -> Any:
        part = made(whole, params, seed, server_view)
        assert isinstance(part, NodePart)
        edges = np.array([[part.split.train[0]], [part.split.test[0]]], np.int32)
        both = np.unique(np.hstack([part.graph.edges, np.sort(edges, axis=0)]), axis=1)
        return dataclasses.replace(part, graph=dataclasses.replace(part.graph, edges=both))

    monkeypatch.setattr(learning, "part_of", leaking)
    with pytest.raises(DataError, match="joins 2 pairs of nodes of different parts"):
        cell(graph, params_of(), method, mechanism, epsilon)


def test_the_graph_of_another_seed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each seed cuts other links: a run on the first seed's graph would pass messages between its own parts."""
    replica = NodePart.replica
    monkeypatch.setattr(NodePart, "replica", lambda *given: dataclasses.replace(replica(*given), graph=0))
    with pytest.raises(DataError, match="the filter joins"):
        cell(small_graph(), params_of(seeds=2))


def test_a_link_in_what_inputs_were_filtered_over_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, filtered = small_graph(), stage.filtered_apart
    monkeypatch.setattr(stage, "filtered_apart", lambda seen, *rest: filtered(graph, *rest))
    with pytest.raises(DataError, match="what inputs were filtered over joins"):
        cell(graph, params_of(), "upgnet-hn", "mb")


@pytest.mark.parametrize(("method", "mechanism", "epsilon"), METHODS)
def test_features_and_links_of_the_tested_steer_nothing(method: str, mechanism: str, epsilon: float) -> None:
    """With other features and other links among the people that are tested, all but their scores stays."""
    graph, params = small_graph(nodes=240), params_of()
    who = hidden(graph, params)
    assert len(who) > 10
    one = cell(graph, params, method, mechanism, epsilon)
    two = cell(changed(graph, who), params, method, mechanism, epsilon)
    assert same(one, two)
    scores = [[result.rows[-1][name] for name in ("test_accuracy", "test_macro_f1")] for result in (one, two)]
    assert scores[0] != scores[1]


@pytest.mark.parametrize(
    "what",
    [
        *({"train.model": name} for name in models() if name != "posterior"),
        *({"method.filter": name} for name in filter_names() if name != "flexprop"),  # that one is ppgnn's above
    ],
    ids=str,
)
def test_no_backbone_and_no_filter_looks_across(what: dict[str, Any]) -> None:
    graph, params = small_graph(nodes=240), params_of(epochs=3)
    recipe = methods.method("lpgnn").but({"filter": what["method.filter"]} if "method.filter" in what else {})
    params = dataclasses.replace(params, train=dataclasses.replace(params.train, model=what.get("train.model", "")))
    if recipe.filter == "none":
        recipe = dataclasses.replace(recipe, propagates=False)
    found = []
    for one in (graph, changed(graph, hidden(graph, params))):
        source = Devices(graph=one, recipe=recipe, mechanism="mb", epsilon=1.0, options={}, params=params)
        found.append(learn_cell(one, plan_of(source, params), params, device="cpu"))
    assert same(*found)


def changed(graph: Graph, who: np.ndarray[Any, Any]) -> Graph:
    """The same graph with the features of some people swapped, and without the links among them."""
    dense = graph.features.toarray()
    dense[who] = 1 - dense[who]
    inside = np.isin(graph.edges, who).all(axis=0)
    assert inside.any()
    return dataclasses.replace(graph, features=sp.csr_array(dense), edges=graph.edges[:, ~inside])


def test_votes_of_the_tested_steer_nothing() -> None:
    """As above, where votes say something: what they are worth, and who neighbours whom, follows from others."""
    graph, params = small_graph(nodes=800, features=0.95), params_of()
    labels = graph.labels.copy()
    labels[::4] = -1  # what is known of these follows from their links
    graph = dataclasses.replace(graph, labels=labels)
    who = hidden(graph, params)
    other = changed(graph, who)
    recipe = methods.method("votes")
    assert isinstance(recipe.asking, Survey)
    votes = [Surveys.of(one, recipe.asking, "privset", 6.0, params).questions(0)[-1] for one in (graph, other)]
    moved = votes[0].people[(votes[0].answers.value != votes[1].answers.value).any(axis=1)]
    assert len(moved) > 10
    assert np.isin(moved, who).all()
    one, two = (cell(g, params, "votes", "privset", 6.0) for g in (graph, other))
    assert same(one, two)


def test_features_of_the_tested_that_reach_training_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above has power: a scale that is computed from everybody's reports already fails it."""
    graph, params = small_graph(nodes=240), params_of()
    scale = learning.unit_scale
    monkeypatch.setattr(learning, "unit_scale", lambda estimate, seen: scale(estimate))
    who = hidden(graph, params)
    one, two = (cell(g, params, "features", "identity", np.inf) for g in (graph, changed(graph, who)))
    assert not same(one, two)


def test_the_ranking_is_made_without_the_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    """Principal components look at all reports that they are given, not at those of training nodes alone."""
    graph, params = small_graph(nodes=240), params_of()
    recipe = methods.method("togl-fda").but({"score_by": "pca"})
    found = []
    for one in (graph, changed(graph, hidden(graph, params))):
        source = Devices(graph=one, recipe=recipe, mechanism="pm", epsilon=8.0, options={}, params=params)
        found.append(learn_cell(one, plan_of(source, params), params, device="cpu"))
    assert same(*found)


# what is learned ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "mechanism", "epsilon"), METHODS)
def test_the_numbers_are_those_of_the_stages(method: str, mechanism: str, epsilon: float, tmp_path: Path) -> None:
    store(tmp_path)
    params = params_of(seeds=2)
    path = learn(tmp_path, params, method, mechanism, epsilon)
    assert read_meta(path, "x")["train"]["split"] == "inductive"
    (found,) = run(NAME, method, mechanism, epsilon, data=tmp_path, params=params, references=False, device="cpu")
    assert found.accuracy.tolist() == [row["test_accuracy"] for row in rows(path, "final")]


def test_training_is_that_on_a_graph_without_the_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is drawn for features as they are, and nothing dropped: so both trainings have the same numbers."""
    graph, params = small_graph(), params_of(epochs=20)
    params = dataclasses.replace(params, search=dataclasses.replace(params.search, dropout=(0.0,)))
    both = cell(graph, params, "features", "identity", np.inf)
    made = part_of

    def alone(graph: Graph, params: Params, seed: int, server_view: Any) -> NodePart:
        part = made(graph, params, seed, server_view)
        assert isinstance(part, NodePart)
        kept = np.sort(np.concatenate([part.split.train, part.split.validation]))
        train, validation = (np.searchsorted(kept, nodes) for nodes in (part.split.train, part.split.validation))
        own = dataclasses.replace(part.split, train=train, validation=validation, test=np.empty(0, np.int64))
        apart = Apart(train=train, validation=validation, test=np.empty(0, np.int64))
        small = among(part.graph, kept)
        monkeypatch.setattr(learning._Cell, "estimate", lambda cell, setup, seed: clean(small))
        return dataclasses.replace(part, graph=small, split=own, labels=small.labels, apart=apart)

    def clean(small: Graph) -> Any:
        from graphldp.server import rectify

        return rectify(
            protocol("identity", np.inf, graph.dimensions, 0.0, 1.0).perturb(small.features, np.random.default_rng(0))
        )

    monkeypatch.setattr(learning, "part_of", alone)
    monkeypatch.setattr(learning, "final_scores", lambda parts, *rest: [{"accuracy": 0.0, "macro_f1": 0.0}])
    one = cell(graph, params, "features", "identity", np.inf)
    for mine, theirs in zip(one.rows, both.rows, strict=True):
        assert mine["validation_accuracy"] == theirs["validation_accuracy"]
        assert mine["validation_loss"] == pytest.approx(theirs["validation_loss"], rel=1e-5)


@pytest.mark.parametrize(("method", "mechanism"), [("lpgnn", "mb"), ("upgnet-hn", "mb"), ("ppgnn", "ppm-public")])
def test_the_tested_are_predicted_as_people_of_another_graph(method: str, mechanism: str, tmp_path: Path) -> None:
    """A kept model, given the graph and the reports of the tested alone, scores what the table says of it."""
    graph, params = store(tmp_path), params_of(seeds=2, epochs=25)
    path = learn(tmp_path, params, method, mechanism, models=tmp_path / "kept")
    about = load_model(tmp_path / "kept").about
    seed = int(about["seed"])
    apart = apart_of(graph, params, seed)
    assert apart is not None
    unseen = dataclasses.replace(among(graph, apart.test), name="unseen")
    write_graph(unseen, graph_dir(tmp_path, "unseen"))
    source = AnswersFile(reports_path(tmp_path, NAME, mechanism, 1.0), "x")
    own = tmp_path / "own.parquet"
    meta = {**source.meta, "dataset": "unseen", "nodes_hash": nodes_hash(unseen), "seeds": [seed]}
    meta["input"] = graph_hash(graph_dir(tmp_path, "unseen"))
    write_reports(own, [(seed, of_people(source.load(seed), apart.test))], meta)
    out = predict_reports(tmp_path / "kept", own, data=tmp_path, output=tmp_path / "out.parquet")
    found = np.asarray(read_table(out, "x")["class"].to_numpy())
    row = next(row for row in rows(path, "final") if row["seed"] == seed)
    assert (found == unseen.labels).mean() == pytest.approx(row["test_accuracy"])
    card = (tmp_path / "kept" / CARD).read_text(encoding="utf-8")
    assert "seen alone: the people of the other parts were in graphs without a link to them" in card
    assert "--split inductive" in card


def of_people(reports: Reports, nodes: np.ndarray[Any, Any]) -> Reports:
    return dataclasses.replace(
        reports,
        value=reports.value[nodes],
        index=None if reports.index is None else reports.index[nodes],
        level=None if reports.level is None else reports.level[nodes],
    )


@pytest.mark.parametrize("after", [(0.5, 0.5, 0.5), (5.0, 5.0, 5.0), (0.5, 5.0, 0.5)])
def test_each_part_is_filtered_as_if_there_were_no_other(after: tuple[float, ...]) -> None:
    """Whatever the thresholds leave in each of them: many numbers, few, or many in some of them."""
    graph = small_graph()
    apart = apart_of(graph, params_of(), 0)
    assert apart is not None
    seen = apart.sever(graph)
    device = protocol("mb", 4.0, graph.dimensions, 0.0, 1.0)
    estimate = centred(rectify(device.perturb(graph.features, np.random.default_rng(0))))
    own = [kprop(2).but(after=value) for value in after]
    found = filtered_apart(seen, apart.groups, estimate, own, 2.0)
    for nodes, one in zip(apart.groups, own, strict=True):
        alone = filtered_inputs(among(graph, nodes), people(estimate, nodes), one, 2.0)
        np.testing.assert_array_equal(found.dense()[nodes], alone.dense())
        assert alone.sparse is (one.after > 1)
    assert found.sparse is (min(after) > 1)


def test_a_threshold_follows_the_average_degree_of_each_part() -> None:
    graph, params = small_graph(), params_of()
    part = part_of(graph, params, 0)
    assert isinstance(part, NodePart)
    assert part.apart is not None
    device = protocol("mb", 4.0, graph.dimensions, 0.0, 1.0)
    estimate = centred(rectify(device.perturb(graph.features, np.random.default_rng(0))))
    made = kprop(2).but(after=0.02)
    found = part.filtered(graph, estimate, made, 1.0).dense()
    degrees = set()
    for nodes in part.apart.groups:
        own = among(graph, nodes)
        degrees.add(average_degree(own))
        one = made.but(after=0.02 * (average_degree(graph) / average_degree(own)) ** 2)
        np.testing.assert_allclose(found[nodes], filtered_inputs(own, people(estimate, nodes), one, 1.0).dense())
    assert len(degrees) == 3


def test_a_threshold_that_vanishes_in_the_whole_graph_stays(tmp_path: Path) -> None:
    """Divided by 14 neighbours to the 8 it is nothing; divided by the 3 that are in one's own part, it is something."""
    graph, recipe = store(tmp_path, degree=14.0), methods.method("upgnet-hn")
    file = calibrate(tmp_path, params_of(steps=(2, 8)), "upgnet-hn")
    for split in ("random", "inductive"):
        params = params_of(split, steps=(2, 8))
        for source in (
            Devices(graph=graph, recipe=recipe, mechanism="mb", epsilon=1.0, options={}, params=params),
            StoredEstimates(graph=graph, file=CalibratedFile(file, "x"), params=params),
        ):
            assert (source.setup({}).calibration(8).after > 0) is (split == "inductive")
            assert source.setup({}).calibration(2).after > 0


@pytest.mark.parametrize("task", ["regression", "multi-task"])
def test_other_tasks_of_nodes(task: str) -> None:
    result = cell(small_graph(), params_of(task=task, seeds=2))
    for one in measures_of(task).measures:
        assert all(np.isfinite(row[f"test_{one.name}"]) for row in result.rows if row["role"] == "final")


def test_nobody_who_is_not_seen_teaches_and_everybody_else_votes() -> None:
    graph, params = small_graph(nodes=240), params_of()
    recipe = methods.method("votes")
    assert isinstance(recipe.asking, Survey)
    asked = Surveys.of(graph, recipe.asking, "privset", 4.0, params)
    apart, split = apart_of(graph, params, 0), split_of(graph, params, 0)
    assert apart is not None
    *about, vote = asked.questions(0)
    teachers = np.concatenate([one.people for one in about])
    assert np.isin(teachers, apart.train).all()
    assert len(np.unique(np.concatenate([teachers, vote.people]))) == graph.nodes == len(teachers) + len(vote.people)
    assert np.isin(np.concatenate([apart.validation, apart.test]), vote.people).all()
    assert np.isin(split.train, vote.people).sum() == len(split.train) // 2  # they show what votes are worth


@pytest.mark.slow
def test_votes_of_people_who_were_not_seen_tell_their_class() -> None:
    graph = small_graph(nodes=900, features=0.9, structure=0.8)
    params = params_of(epochs=60, points=4, seeds=2)
    floor, voted = (
        np.mean([row["test_accuracy"] for row in cell(graph, params, *given).rows if row["role"] == "final"])
        for given in (("structure", "null", 0.0), ("frontier", "privset", 5.0))
    )
    assert voted > floor + 0.15


@pytest.mark.slow
def test_features_are_what_is_left() -> None:
    """Half of a large graph teaches: features tell the others' classes, links alone do not."""
    graph = small_graph(nodes=900, features=0.9, structure=0.8)
    params = params_of(epochs=60, points=4, seeds=2)
    floor, ceiling = (
        np.mean([row["test_accuracy"] for row in cell(graph, params, *given).rows if row["role"] == "final"])
        for given in (("structure", "null", 0.0), ("nonpriv", "identity", np.inf))
    )
    assert floor < 0.6
    assert ceiling > 0.85


# what has a meaning in another graph ----------------------------------------------------------------------------------


def evidence_of(name: str, graph: Graph, **options: Any) -> np.ndarray[Any, Any]:
    null = protocol("null", 0.0, graph.dimensions, 0.0, 1.0)
    train = np.arange(0, graph.nodes, 2)
    return make_evidence(name, **options).matrix(EvidenceSetting.of(graph, None, null, train, 0))


@pytest.mark.parametrize("name", [name for name in evidence_names() if not evidence_class(name).reads])
def test_evidence_that_transfers_is_the_same_without_the_other_graph(name: str) -> None:
    graph = small_graph()
    apart = apart_of(graph, params_of(), 0)
    assert apart is not None
    whole = evidence_of(name, apart.sever(graph))
    alone = evidence_of(name, among(graph, apart.test))
    if name == "random":  # the same law: nothing that was seen is in it
        assert evidence_class(name).transfers
        return
    same = whole.shape[1] == alone.shape[1] and np.allclose(whole[apart.test], alone, atol=1e-5)
    assert same is evidence_class(name).transfers


def test_roles_are_what_they_say() -> None:
    graph = small_graph()
    dense = graph.adjacency().toarray().astype(float)
    degree, closed = dense.sum(axis=1), np.diag(dense @ dense @ dense) / 2
    np.testing.assert_allclose(triangles(graph.adjacency()), closed)
    found = evidence_of("roles", graph, hops=1)
    pairs = np.maximum(degree * (degree - 1) / 2, 1)
    own = np.stack([np.log1p(degree), np.log1p(closed), closed / pairs], axis=1)
    np.testing.assert_allclose(found[:, :3], own, rtol=1e-5)
    np.testing.assert_allclose(found[:, 3:], dense @ own / np.maximum(degree, 1)[:, None], rtol=1e-5)
    assert evidence_of("roles", graph, hops=2).shape[1] == 12
    for hops in (-1, True, 1.5):
        with pytest.raises(OptionError, match="hops must be a whole number of at least 0"):
            make_evidence("roles", hops=hops)


def test_triangles_are_counted_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = small_graph(degree=14.0)
    whole = triangles(graph.adjacency())
    monkeypatch.setattr("graphldp.server.evidence.roles._BLOCK", 500)
    np.testing.assert_array_equal(triangles(graph.adjacency()), whole)


def test_the_floor_has_the_learners_that_fit() -> None:
    graph, params = small_graph(), params_of()
    names = {}
    for split in ("random", "inductive"):
        own = dataclasses.replace(params, train=dataclasses.replace(params.train, split=split))
        source = Devices(
            graph=graph, recipe=methods.method("structure"), mechanism="null", epsilon=0.0, options={}, params=own
        )
        names[split] = [learner.name for learner in plan_of(source, own).learners]
    assert names["inductive"] == ["coin", "roles"]
    assert tuple(names["random"]) == methods.method("structure").learners
    assert "roles" not in names["random"]  # the coordinates and the labels around say more, and the degree is with them


@pytest.mark.parametrize("name", methods.names())
def test_every_method_runs_or_says_in_one_line_why_not(name: str) -> None:
    recipe, graph, params = methods.method(name), small_graph(), params_of(epochs=3)
    if not recipe.model:
        return
    epsilon = {"null": 0.0, "identity": np.inf}.get(recipe.mechanism, 1.0)
    if not recipe.evidence or evidence_class(recipe.evidence).transfers:
        assert cell(graph, params, name, recipe.mechanism, epsilon).rows[-1]["test_accuracy"] is not None
        return
    with pytest.raises(OptionError, match="those that are tested are in another graph, without labels") as error:
        cell(graph, params, name, recipe.mechanism, epsilon)
    assert "\n" not in str(error.value)


# what is refused, and what is said ------------------------------------------------------------------------------------


def test_links_and_other_words_are_refused() -> None:
    with pytest.raises(OptionError, match=r"train\.split inductive is for tasks of nodes"):
        check(params_of(task="link-prediction"))
    with pytest.raises(OptionError, match=r"unknown train\.split 'inductve'; did you mean 'inductive'"):
        check(params_of("inductve"))


def test_a_ranking_of_the_whole_graph_is_refused(tmp_path: Path) -> None:
    store(tmp_path)
    for split, other in (("random", "inductive"), ("inductive", "random")):
        answers = perturb_method(
            Cell(dataset=NAME, method="togl-fda", epsilon=8.0), data=tmp_path, settings=params_of(split)
        )
        facts = read_meta(answers, "x")["selection"]
        check_selection(answers, facts, params_of(split))
        with pytest.raises(ArtifactError, match=f"split was {split}, and is {other} now"):
            check_selection(answers, facts, params_of(other))


def test_a_table_says_who_was_seen_and_names_no_paper(tmp_path: Path) -> None:
    params = grid(epsilons=(1.0,), seeds=3)
    texts = {}
    for split in ("random", "inductive"):
        for one in params.cells():
            meta: dict[str, Any] = {"train": {"hidden": 16, "train_fraction": 0.5, "split": split}}
            if one.method == "structure":
                meta["search"] = {"points": 12, "seeds": 2, "learners": {"coin": 12, "roles": 12}}
                meta["chosen_point"] = {"options": {"learner": "roles"}}
            write_runs(tmp_path / split, one, seeds=params.seeds, meta=meta)
        texts[split] = markdown_text(measure(params, tmp_path / split, PAPERS))
    assert "each part is a graph of its own, without the links to the others" in texts["inductive"]
    assert (
        "It had coin and roles: what the others know means nothing in a graph that was not seen." in texts["inductive"]
    )
    assert "graph of its own" not in texts["random"]
    assert "UPGNet" in texts["random"]
    assert "UPGNet" not in texts["inductive"]
