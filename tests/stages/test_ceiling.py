"""The row `nonpriv`, and votes beside the floor: learners with more beside what the floor knows, and who is chosen."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from cell_factory import small_graph, small_params
from numpy.typing import NDArray

from graphldp import methods
from graphldp.experiment.cell import _Cell, learn_cell
from graphldp.experiment.parts import NodePart
from graphldp.experiment.plan import Devices, plan_of
from graphldp.experiment.resources import InMemory, Resources
from graphldp.experiment.result import CellResult
from graphldp.graph import Graph
from graphldp.learn import NodeInputs
from graphldp.points import Point
from graphldp.stages.grids.params import Params

FLOOR = methods.method("structure").learners
EPSILON = {"structure": 0.0, "frontier": 3.0, "votes": 3.0}


def devices(graph: Graph, params: Params, name: str) -> Devices:
    recipe = methods.method(name)
    epsilon = EPSILON.get(name, np.inf)
    return Devices(graph=graph, recipe=recipe, mechanism=recipe.mechanism, epsilon=epsilon, options={}, params=params)


def cell_of(graph: Graph, params: Params, name: str, **changes: Any) -> _Cell:
    return _Cell(graph, plan_of(devices(graph, params, name), params), params, "cpu", Resources(), None, **changes)


def learned(graph: Graph, params: Params, name: str, memo: InMemory | None = None) -> CellResult:
    plan = plan_of(devices(graph, params, name), params)
    return learn_cell(graph, plan, params, device="cpu", resources=Resources(memo=memo))


def final(result: CellResult, score: str = "test_accuracy") -> NDArray[np.float64]:
    return np.array([row[score] for row in result.rows if row["role"] == "final"])


def learner(point: Point) -> str:
    return str(dict(point.options)["learner"])


def trained_for(**changes: Any) -> Params:
    params = small_params(seeds=2, search_seeds=1, points=1, epochs=3)
    return dataclasses.replace(params, train=dataclasses.replace(params.train, **changes))


# what stands beside what ------------------------------------------------------------------------------------------


def test_the_ceiling_has_the_floors_learners_the_pipeline_and_each_learner_with_features() -> None:
    params = small_params(points=2)
    plan = plan_of(devices(small_graph(), params, "nonpriv"), params)
    assert plan_of(devices(small_graph(), params, "structure"), params).points == plan.points[: 2 * len(FLOOR)]
    assert [one.name for one in plan.learners] == [*FLOOR, "features", *(f"{name}+features" for name in FLOOR)]
    assert {len(one.points) for one in plan.learners} == {2}  # everybody's search
    for name in FLOOR:
        own, beside = (next(one for one in plan.learners if one.name == f"{name}{end}") for end in ("", "+features"))
        assert [dataclasses.replace(plan.points[place], options=()) for place in own.points] == [
            dataclasses.replace(plan.points[place], options=()) for place in beside.points
        ]
    assert {setup.public for setup in plan.setups[2 * len(FLOOR) :]} == {False}
    # Whoever is chosen, the row says that everybody's features were sent as they are.
    assert {setup.meta("hash", [0])["epsilon_exact"] for setup in plan.setups} == {np.inf}


@pytest.mark.parametrize("name", ["coin", "labels", "links"])
def test_each_stands_there_at_one_scale(name: str) -> None:
    graph, params = small_graph(), small_params(points=1)
    cell = cell_of(graph, params, "nonpriv")
    own, both, features = (
        cell.inputs(
            next(s for p, s in zip(cell.plan.points, cell.plan.setups, strict=True) if learner(p) == one), None, 0
        )
        for one in (name, f"{name}+features", "features")
    )
    # What is dense comes first; here that are the words before a coin's reports.
    pair = [part.dense() for part in ((features, own) if name == "coin" else (own, features))]
    assert np.array_equal(both.dense(), np.hstack(pair))
    assert [np.square(part, dtype=np.float64).mean() for part in pair] == pytest.approx([1, 1], rel=1e-3)
    assert both.filtered == (name != "coin")


def test_a_constant_beside_something_else_is_written_out() -> None:
    from graphldp.experiment.estimates import side_by_side

    few = NodeInputs(deviations=sp.csr_array(np.eye(4, dtype=np.float32)), fill=0.5)
    both = side_by_side([few, NodeInputs(deviations=np.ones((4, 1), dtype=np.float32))], over=None)
    assert np.array_equal(both.dense(), np.hstack([np.eye(4) + 0.5, np.ones((4, 1))]))
    assert (both.fill, both.sparse) == (0, False)
    wide = NodeInputs(deviations=sp.csr_array(np.eye(4, 40, dtype=np.float32)))
    assert side_by_side([wide, NodeInputs(deviations=np.ones((4, 1), dtype=np.float32))], over=None).sparse


def playoff(name: str, **accuracies: list[float]) -> _Cell:
    """Return a cell whose learners' best points have met, from what each one reaches on the validation part."""
    params = small_params(points=1, search_seeds=1, seeds=4)
    cell = cell_of(small_graph(features=0.9, words=12.0), params, name)
    for place, point in enumerate(cell.plan.points):
        found = accuracies.get(learner(point).replace("+", "_"), [0.5, 0.6, 0.5, 0.6])
        if "+" in learner(point) and learner(point).replace("+", "_") not in accuracies:
            continue
        cell.tried.append({"role": "search", "point": place, "seed": -1, "validation_loss": 0.0})
        cell.tried[-1]["validation_accuracy"] = float(np.mean(found))
        cell.tried += [
            {"role": "playoff", "point": place, "seed": seed, "validation_accuracy": value}
            for seed, value in enumerate(found)
        ]
    return cell


def test_votes_stand_beside_the_floors_best_where_they_count_and_it_knows_more_than_is_in_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain, ahead = [0.5, 0.6, 0.5, 0.6], [0.6, 0.7, 0.6, 0.7]

    def follower(known: list[float] | None, heard: bool = True, **accuracies: list[float]) -> str:
        monkeypatch.setattr("graphldp.server.evidence.votes.Votes.counts", lambda *_: heard)
        monkeypatch.setattr(_Cell, "_unasked", lambda *_: None if known is None else np.array(known))
        cell = playoff("frontier", **accuracies)
        place = cell.follower()
        return "" if place is None else learner(cell.plan.points[place])

    assert follower(plain, labels=ahead) == follower(plain, labels=ahead, votes=ahead) == "labels+votes"
    for votes in ([0.7, 0.8, 0.7, 0.8], [0.9, 0.6, 0.7, 0.6]):  # clearly ahead, and ahead on average
        assert follower(plain, labels=ahead, votes=votes) == "labels+votes"
    assert follower(plain, coin=ahead, votes=[0.7, 0.8, 0.7, 0.8]) == ""  # dear, and votes are clearly ahead
    assert follower(plain, coin=ahead, votes=[0.9, 0.6, 0.7, 0.6]) == "coin+votes"
    assert follower(plain) == ""
    assert follower(plain, coin=[0.5, 0.6, 0.5, 0.7]) == ""  # ahead by one standard error and no more
    assert follower(None) == "coin+votes"
    assert follower(plain, heard=False, labels=ahead) == ""
    assert playoff("structure").follower() is None


def test_what_votes_know_without_anybodys_answer_is_label_propagation() -> None:
    graph = small_graph(nodes=300, structure=0.9)
    cell = cell_of(graph, small_params(points=1, seeds=2, search_seeds=1), "frontier")
    beside = cell.plan.setups[-1].beside
    assert beside is not None
    known = cell._unasked(beside)
    assert known is not None
    for seed, accuracy in enumerate(known):
        part = cell.part(seed)
        assert isinstance(part, NodePart)
        nodes = part.split.validation
        rows = cell._whole_evidence(beside, seed)[:, 3:6] + np.log(np.bincount(graph.labels[part.split.train]) + 1)
        assert accuracy == (rows.argmax(axis=1) == graph.labels)[nodes].mean()
    assert (known > 0.6).all()


def test_where_neighbours_differ_votes_are_learned_from_beside_the_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Cell, "_asking", lambda *_: [])  # so that votes are not ahead by themselves
    graph = small_graph(nodes=300, structure=-0.9, features=0.9, degree=10.0, words=12.0)
    result = learned(graph, small_params(points=1, seeds=4, search_seeds=1, epochs=60), "frontier")
    assert result.learners[-1].endswith("+votes")


def test_it_has_the_floors_own_point_and_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, params = small_graph(), small_params(points=2, seeds=2, search_seeds=1, epochs=4)
    monkeypatch.setattr("graphldp.server.evidence.votes.Votes.counts", lambda *_: True)
    monkeypatch.setattr(_Cell, "_unasked", lambda *_: None)
    monkeypatch.setattr(_Cell, "_asking", lambda *_: [])
    result = learned(graph, params, "frontier")
    floor = learned(graph, params, "structure").chosen
    own = floor["options"]["learner"]
    rows = {row["point"]: row for row in result.rows if json.loads(row["options"])["learner"] == f"{own}+votes"}
    (row,) = rows.values()
    assert row["role"] == "playoff"
    found = {
        **json.loads(row["options"]),
        **{name: row[name] for name in ("learning_rate", "weight_decay", "dropout", "steps")},
    }
    assert found == {
        **floor["options"],
        **{name: floor[name] for name in ("learning_rate", "weight_decay", "dropout", "steps")},
        "learner": f"{own}+votes",
    }
    assert result.learners == (*FLOOR, "votes", f"{own}+votes")
    facts = plan_of(devices(graph, params, "frontier"), params).facts(result.learners)
    assert facts["learners"] == {**dict.fromkeys((*FLOOR, "votes"), 2), f"{own}+votes": 1}
    assert cell_of(graph, params, "structure").learners == FLOOR


@pytest.mark.parametrize(("scale", "shuffled"), [(0.9, False), (0.0, True)])
def test_votes_count_where_the_gate_is_open(scale: float, shuffled: bool) -> None:
    graph = small_graph(nodes=400, features=scale, words=12.0)
    cell = cell_of(graph, small_params(points=1, seeds=1, search_seeds=1), "frontier")
    beside = cell.plan.setups[-1].beside
    assert beside is not None
    assert cell._heard(beside) != shuffled


def test_a_log_posterior_is_given_as_it_is_by_itself_and_at_one_scale_beside_something_else() -> None:
    cell = cell_of(small_graph(), small_params(points=2), "frontier")
    first = {learner(point): setup for point, setup in zip(cell.plan.points, cell.plan.setups, strict=True)}
    votes = cell.inputs(first["votes"], None, 0).dense()
    assert np.array_equal(votes, cell.evidence(first["votes"], 0))
    beside = cell.inputs(first["labels+votes"], None, 0).dense()[:, -3:]
    assert np.square(beside, dtype=np.float64).mean() == pytest.approx(1, rel=1e-3)


def test_evidence_of_two_widths_is_one_batch_of_the_same_runs() -> None:
    graph, params = small_graph(), small_params(points=4, search_seeds=1, epochs=30)
    cell = cell_of(graph, params, "votes")
    kinds = [dict(point.options)["method.kind"] for point in cell.plan.points]
    assert sorted(kinds) == ["all", "all", "fused", "fused"]
    (batch,) = cell.batches(range(4), -1)
    _, _, together = cell.train(batch, [-1], None)
    for place, index in enumerate(batch):
        _, _, alone = cell.train([index], [-1], None)
        assert together.validation_loss[place] == pytest.approx(alone.validation_loss[0], rel=1e-6)
        assert together.best_epoch[place] == alone.best_epoch[0]


# who is chosen ----------------------------------------------------------------------------------------------------


def chosen(name: str, **accuracies: list[float]) -> str:
    """Return the learner that a method takes, from what each one's best point reaches on the validation part."""
    params = small_params(points=1, search_seeds=1, seeds=4)
    cell = cell_of(small_graph(), params, name)
    cell.tried = [
        {"role": "search", "point": place, "seed": -1, "validation_loss": 0.0} for place in range(len(cell.plan.points))
    ]
    for place, point in enumerate(cell.plan.points):
        values = accuracies.get(learner(point).replace("+", "_"), [0.5, 0.6, 0.5, 0.6])
        cell.tried += [
            {"role": "playoff", "point": place, "seed": seed, "validation_accuracy": value}
            for seed, value in enumerate(values)
        ]
    return learner(cell.plan.points[cell.chosen()])


@pytest.mark.parametrize(("name", "more"), [("nonpriv", "features"), ("frontier", "votes")])
def test_the_floor_stays_where_nothing_with_more_is_ahead(
    name: str, more: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphldp.server.evidence.votes.Votes.counts", lambda *_: True)
    ahead, luck = [0.6, 0.7, 0.6, 0.7], [0.9, 0.6, 0.5, 0.6]
    assert chosen(name) == "coin"
    assert chosen(name, labels=ahead) == "labels"
    assert chosen(name, **{more: luck}) == ("votes" if name == "frontier" else "coin")
    assert chosen(name, **{more: ahead}) == more
    assert chosen(name, **{more: ahead, f"links_{more}": [0.7, 0.8, 0.7, 0.8]}) == f"links+{more}"
    assert chosen(name, **{f"links_{more}": ahead}, labels=ahead) == "labels"
    assert chosen(name, labels=ahead, **{more: [0.6, 0.7, 0.5, 0.8]}) == "labels"


@pytest.fixture(scope="module")
def strong() -> dict[str, CellResult]:
    """Rows of a graph whose neighbours differ: who sums over them loses what the links say, and words help a bit."""
    graph = small_graph(nodes=160, structure=-0.9, features=0.3, degree=10.0)
    params, memo = small_params(seeds=4, search_seeds=1, points=1, epochs=60), InMemory()
    return {name: learned(graph, params, name, memo) for name in ("structure", "features", "nonpriv")}


def test_where_the_pipeline_is_below_the_floor_the_ceiling_is_not(strong: dict[str, CellResult]) -> None:
    floor, pipeline, ceiling = (final(strong[name]) for name in ("structure", "features", "nonpriv"))
    assert pipeline.mean() < floor.mean() - 0.1
    error = (ceiling - floor).std(ddof=1) / 2
    assert ceiling.mean() >= floor.mean() - error


# nothing that is hidden steers ------------------------------------------------------------------------------------


def dense(cell: _Cell) -> list[NDArray[np.float32]]:
    """Return each learner's inputs."""
    first = {learner(point): setup for point, setup in zip(cell.plan.points, cell.plan.setups, strict=True)}
    return [cell.inputs(setup, None, 0).dense() for setup in first.values()]


def test_hidden_labels_and_what_nobody_reported_move_no_input() -> None:
    graph, params = small_graph(), small_params(points=1)
    cell = cell_of(graph, params, "frontier")
    before = dense(cell)
    hidden = np.concatenate([cell.part(0).split.validation, cell.part(0).split.test])  # type: ignore[attr-defined]
    labels = graph.labels.copy()
    labels[hidden] = (labels[hidden] + 1) % graph.classes
    # Other labels: other people are asked nothing else, and nothing that is learned from changes.
    for one, other in zip(
        before, dense(cell_of(dataclasses.replace(graph, labels=labels), params, "frontier")), strict=True
    ):
        assert np.array_equal(one, other)
    # Other features, and the answers as they were: a private learner has no other way to them.
    features = graph.features[np.roll(np.arange(graph.nodes), 1)]
    other = dataclasses.replace(graph, features=sp.csr_array(features), labels=labels)
    held = cell_of(other, params, "frontier", estimates=dict(cell.estimates))
    assert all(np.array_equal(one, other) for one, other in zip(before, dense(held), strict=True))
    # The ceiling reads features: of the learners with them every one changes, of the floor's none.
    first, second = (cell_of(g, params, "nonpriv") for g in (graph, other))
    same = [np.array_equal(one, other) for one, other in zip(dense(first), dense(second), strict=True)]
    assert same == [True] * len(FLOOR) + [False] * (len(FLOOR) + 1)


# every task and split ---------------------------------------------------------------------------------------------

_PLACES = ("coin", "coin-hoa", "spectral", "pagerank", "links")


@pytest.mark.parametrize(
    ("changes", "floor"),
    [
        ({"task": "link-prediction"}, _PLACES),
        ({"task": "regression"}, _PLACES),
        ({"task": "multi-task"}, FLOOR),
        ({"split": "inductive"}, ("coin", "roles")),
        ({"split": "inductive", "batch_size": 20, "model": "sgc"}, ("coin", "roles")),
    ],
)
def test_it_is_there_for_every_task_and_split(changes: dict[str, Any], floor: tuple[str, ...]) -> None:
    result = learned(small_graph(), trained_for(**changes), "nonpriv")
    assert result.learners == (*floor, "features", *(f"{name}+features" for name in floor))
    assert {row["role"] for row in result.rows} == {"search", "playoff", "final"}
    assert all(np.isfinite(row["validation_loss"]) for row in result.rows)


def test_votes_beside_the_floor_in_graphs_that_were_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Cell, "_asking", lambda *_: [])  # so that votes are not ahead by themselves
    result = learned(small_graph(), trained_for(split="inductive"), "frontier")
    assert result.learners[:3] == ("coin", "roles", "votes")
    assert result.learners[3] in ("coin+votes", "roles+votes")


def test_of_links_features_stand_beside_the_training_edges_alone() -> None:
    graph, params = small_graph(), trained_for(task="link-prediction")
    cell = cell_of(graph, params, "nonpriv")
    place = next(i for i, point in enumerate(cell.plan.points) if learner(point) == "links+features")
    over = cell.inputs(cell.plan.setups[place], None, 0).over
    assert over is not None
    assert (over != cell.part(0).graph.adjacency()).nnz == 0
    assert over.nnz < graph.adjacency().nnz
