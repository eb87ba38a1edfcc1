"""The survey of a cell: everybody answers once, nobody's test label is read, and planted features beat the floor."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from cell_factory import NAME, cell_of, run, small_graph, small_params, store

from graphldp import methods
from graphldp.client import VectorMechanism, from_meta
from graphldp.client.vote import Vote
from graphldp.errors import DataError, GraphLDPError, OptionError
from graphldp.experiment.addresses import source_of
from graphldp.experiment.cell import _Cell, learn_cell
from graphldp.experiment.conversation import Once, Question
from graphldp.experiment.devices import device_for
from graphldp.experiment.parts import split_of
from graphldp.experiment.plan import Devices, plan_of
from graphldp.experiment.resources import Resources
from graphldp.experiment.search_space import SearchedRow
from graphldp.experiment.survey import Survey, Surveys
from graphldp.graph import Graph
from graphldp.jsonable import plain
from graphldp.ledger import ledger_from_meta
from graphldp.server import kprop, rectify
from graphldp.server.voting import Surveyed
from graphldp.stages.denoise import denoise
from graphldp.stages.files.answers import AnswersFile
from graphldp.stages.files.artifacts import file_hash, read_meta, read_table
from graphldp.stages.files.graphs import graph_hash
from graphldp.stages.grids.cell import Cell
from graphldp.stages.grids.params import Params
from graphldp.stages.perturb import perturb_method
from graphldp.stages.train import train

KPROP = kprop(0)  # whatever the filter, it has no part in votes
NARROW: dict[str, Any] = {"narrowed": 2, "features": 10, "last": 5}
PLANTED: dict[str, Any] = {"nodes": 1500, "dimensions": 60, "words": 12.0, "structure": 0.05, "features": 0.9}


def surveys(graph: Graph, epsilon: float = 3.0, mechanism: str = "privset", **options: Any) -> Surveys:
    return Surveys.of(graph, Survey(**NARROW), mechanism, epsilon, small_params(), options)


def ask(dataset: str, method: str, mechanism: str | None, epsilon: float, *, params: Params, **given: Any) -> Path:
    """Write what everybody answers."""
    cell, others = cell_of({"dataset": dataset, "method": method, "mechanism": mechanism, "epsilon": epsilon, **given})
    return perturb_method(cell, settings=params, **others)


def votes_of(asking: Surveys, seed: int) -> Surveyed:
    """Ask everybody, and return the votes."""
    found = asking.estimate(asking.questions(seed), KPROP)
    assert isinstance(found, Surveyed)
    return found


def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float, int, int]]:
    """Return a list that fills with (what, epsilon, people, dimensions) whenever devices are asked something."""
    found: list[tuple[str, float, int, int]] = []
    inner, vote = VectorMechanism.perturb, Vote.perturb

    def report(self: VectorMechanism, features: Any, rng: Any, level: Any = None) -> Any:
        found.append((self.name, self.epsilon, features.shape[0], features.shape[1]))
        return inner(self, features, rng, level)

    def answer(self: Vote, features: Any, rng: Any) -> Any:
        found.append(("vote", self.epsilon, features.shape[0], features.shape[1]))
        return vote(self, features, rng)

    monkeypatch.setattr(VectorMechanism, "perturb", report)
    monkeypatch.setattr(Vote, "perturb", answer)
    return found


# what is asked --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["privset", "subset", "mb", "pm"])
def test_everybody_answers_once_with_the_whole_budget(mechanism: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, calls = small_graph(), asked(monkeypatch)
    found = votes_of(surveys(graph, 2.0, mechanism), 0)
    assert [(what, epsilon) for what, epsilon, _, _ in calls] == [(mechanism, 2.0)] * 3 + [("vote", 2.0)]
    assert sum(people for _, _, people, _ in calls) == graph.nodes
    assert [dimensions for *_, dimensions in calls] == [24, 10, 5, 24]
    assert (found.votes[:, 0] >= 0).sum() == calls[-1][2]


def test_features_of_one_person_reach_the_server_through_her_answer_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each person's features are read in one question, and no label but the training nodes' decides who is asked."""
    graph, rows = small_graph(), []
    inner, vote = VectorMechanism.perturb, Vote.perturb
    marked = sp.csr_array(graph.features).toarray()
    monkeypatch.setattr(
        VectorMechanism, "perturb", lambda s, x, *a: (rows.append(len(x.indptr) - 1), inner(s, x, *a))[1]
    )
    monkeypatch.setattr(Vote, "perturb", lambda s, x, *a: (rows.append(len(x.indptr) - 1), vote(s, x, *a))[1])
    one = votes_of(surveys(graph), 0)
    split = split_of(graph, small_params(), 0)
    hidden = np.ones(graph.nodes, dtype=bool)
    hidden[split.train] = False
    wrong = dataclasses.replace(graph, labels=np.where(hidden, (graph.labels + 1) % 3, graph.labels).astype(np.int32))
    two = votes_of(surveys(wrong), 0)
    np.testing.assert_array_equal(one.votes, two.votes)
    assert sum(rows[:4]) == graph.nodes == len(marked)
    assert not one.matrix.nnz


@pytest.mark.parametrize("epsilon", [4.0, 8.0])
def test_nobodys_question_follows_from_her_own_features(epsilon: float) -> None:
    """Whatever the people of a question have, it is the same, and so is all that was asked before."""
    graph = small_graph(**{**PLANTED, "nodes": 600})

    def asked(one: Question) -> tuple[Any, ...]:
        return one.name, one.people.tolist(), one.features.tolist(), plain(dict(one.answers.meta))

    told = surveys(graph, epsilon).questions(0)
    assert [one.name for one in told] == ["first", "narrowed 1", "narrowed 2", "vote"]
    for place, question in enumerate(told):
        dense = graph.features.toarray()
        dense[question.people] = 1.0 - dense[question.people]
        other = dataclasses.replace(graph, features=sp.csr_array(dense.astype(np.float32)))
        again = surveys(other, epsilon).questions(0)
        assert [asked(one) for one in again[: place + 1]] == [asked(one) for one in told[: place + 1]]
        assert not np.array_equal(again[place].answers.value, question.answers.value)
        # What was answered decides what the later ones are asked.
        assert place == len(told) - 1 or asked(again[-1]) != asked(told[-1])


def test_a_survey_is_a_function_of_its_address() -> None:
    graph = small_graph()
    votes = {
        key: votes_of(surveys(graph, epsilon), seed).votes
        for key, epsilon, seed in (("a", 3.0, 0), ("b", 3.0, 0), ("seed", 3.0, 1), ("budget", 3.1, 0))
    }
    np.testing.assert_array_equal(votes["a"], votes["b"])
    assert not np.array_equal(votes["a"], votes["seed"])
    assert not np.array_equal(votes["a"], votes["budget"])


def test_padding_follows_what_the_first_teachers_have_shown() -> None:
    built = surveys(small_graph())
    assert built.narrowed(np.arange(10), 3.4).pad == 3  # type: ignore[attr-defined]
    assert built.narrowed(np.arange(10), 0.1).pad == 1  # type: ignore[attr-defined]
    assert built.narrowed(np.arange(10), 99.0).pad == 10  # type: ignore[attr-defined]
    assert surveys(small_graph(), mechanism="mb", m=20).narrowed(np.arange(10), 3.0).m == 10


def test_sets_are_to_be_met_in_no_more_items_than_they_are_padded_to() -> None:
    built = surveys(small_graph(), overlap=4)
    assert built.device.overlap == 4  # type: ignore[attr-defined]
    assert built.narrowed(np.arange(10), 3.0).overlap == 3  # type: ignore[attr-defined]
    assert built.questions(0)[-1].name == "vote"


@pytest.mark.parametrize("epsilon", [100.0, 500.0])
@pytest.mark.parametrize("mechanism", ["privset", "mb", "pm", "ag"])
def test_budgets_at_which_answers_are_certain(mechanism: str, epsilon: float, tmp_path: Path) -> None:
    """Where the chance of another answer rounds to nothing, voters are right as they were taught, and all is finite."""
    store(tmp_path, **{**PLANTED, "nodes": 300})
    params = small_params(seeds=2, points=2, epochs=40)
    (row,) = run(NAME, "votes", mechanism, epsilon, data=tmp_path, params=params, references=False)
    assert row.accuracy.mean() > 0.6


def test_a_training_graph_of_one_person_has_nobody_to_teach() -> None:
    few = dataclasses.replace(small_params().train, split="inductive", train_fraction=0.01)
    params = dataclasses.replace(small_params(), train=few)
    with pytest.raises(DataError, match=r"somebody to teach and somebody to vote, got 1 person.*train on more"):
        Surveys.of(small_graph(), Survey(), "privset", 2.0, params).questions(0)


def test_without_a_second_question_all_teachers_are_asked_about_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = asked(monkeypatch)
    whole = Surveys.of(small_graph(), Survey(first=1.0), "privset", 3.0, small_params())
    votes_of(whole, 0)
    assert [what for what, *_ in calls] == ["privset", "vote"]


def test_what_an_artifact_would_say(tmp_path: Path) -> None:
    graph = store(tmp_path)
    meta = surveys(graph, 2.0).meta(tmp_path / "graphs" / NAME, [0, 1])
    assert meta["epsilon"] == 2.0
    assert sum(part["epsilon"] for part in meta["ledger"]) == 2.0
    assert meta["rounds"] == {"teachers": 0.5, "first": 0.4, "narrowed": 2, "features": 10, "last": 5}


@pytest.mark.parametrize("mechanism", ["privset", "subset", "gm", "mb"])
def test_the_exact_loss_is_that_of_whoever_loses_the_most(mechanism: str, tmp_path: Path) -> None:
    """A mechanism may lose less than it claims, of all features or of few; who votes loses all of epsilon."""
    graph = store(tmp_path)
    asking = surveys(graph, 2.0, mechanism)
    questions = asking.questions(0)
    losses = [from_meta(dict(one.answers.meta)).privacy_loss() for one in questions[:-1]]
    vote = dict(questions[-1].answers.meta)
    nothing = np.zeros((1, vote["classes"]))
    losses.append(Vote.of(vote["epsilon"], nothing, nothing[0], 0.0, 1.0, vote["m"]).privacy_loss())
    assert losses[-1] == pytest.approx(2.0, rel=1e-12)
    if mechanism in ("subset", "gm"):
        assert max(losses[:-1]) < 1.95
    found = asking.meta(tmp_path / "graphs" / NAME, [0])["epsilon_exact"]
    assert found >= max(losses)
    assert found == pytest.approx(2.0, rel=1e-12)


def test_surveys_that_differ_are_different_releases_and_say_how_their_draws_are_addressed(tmp_path: Path) -> None:
    """A ledger counts one release once: other questions, or a plain collection, are another one."""
    graph, folder = store(tmp_path), tmp_path / "graphs" / NAME
    params = small_params()
    fewer = dataclasses.replace(params, train=dataclasses.replace(params.train, train_fraction=0.2))
    device = device_for(graph, "privset", 2.0, {})
    metas = [
        Once(graph=graph, device=device, settings=params).meta(graph_hash(folder), [0]),
        surveys(graph, 2.0).meta(graph_hash(folder), [0]),
        Surveys.of(graph, Survey(**NARROW, teachers=0.3), "privset", 2.0, params).meta(graph_hash(folder), [0]),
        Surveys.of(graph, Survey(**NARROW), "privset", 2.0, fewer).meta(graph_hash(folder), [0]),
    ]
    assert ledger_from_meta(metas).total().epsilon == 8.0
    assert ledger_from_meta([metas[1], surveys(graph, 2.0).meta(graph_hash(folder), [0])]).total().epsilon == 2.0
    assert metas[1]["random"]["address"] == ["perturb", "dataset", "mechanism", "epsilon", "seed", "shape"]
    # Who knows the root can draw a question's noise again by that address.
    first = surveys(graph, 2.0).questions(0)[0]
    again = device.perturb(
        graph.features[first.people],
        source_of(0, NAME, device, 0, survey="first", people=first.people, features=first.features),
    )
    np.testing.assert_array_equal(first.answers.value, again.value)


# the artifact ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["privset", "olh", "oue", "mb", "pm", "ag", "gm"])
def test_what_everybody_said_is_in_the_file(mechanism: str, tmp_path: Path) -> None:
    """Each question comes back as it was asked and answered, whatever the mechanism sends."""
    graph, params = store(tmp_path), small_params(seeds=2, search_seeds=1)
    path = ask(NAME, "votes", mechanism, 0.8, data=tmp_path, params=params, changes=NARROW)
    asking, file = surveys(graph, 0.8, mechanism), AnswersFile(path, "ldp perturb")
    for seed in (0, 1, -1):
        told, found = asking.questions(seed), file.questions(seed)
        assert [one.name for one in found] == ["first", "narrowed 1", "narrowed 2", "vote"]
        assert sorted(np.concatenate([one.people for one in found])) == list(range(graph.nodes))
        for one, other in zip(told, found, strict=True):
            np.testing.assert_array_equal(one.people, other.people)
            np.testing.assert_array_equal(one.features, other.features)
            np.testing.assert_array_equal(one.answers.value, other.answers.value)
            assert one.answers.value.dtype == other.answers.value.dtype
            assert (one.answers.index is None) == (other.answers.index is None)
            if one.answers.index is not None:
                np.testing.assert_array_equal(one.answers.index, other.answers.index)
            assert plain(dict(one.answers.meta)) == plain(dict(other.answers.meta))
        for one, other in zip(told[:-1], found[:-1], strict=True):
            np.testing.assert_array_equal(rectify(one.answers).dense(), rectify(other.answers).dense())
        whole, stored = votes_of(asking, seed), asking.estimate(file.questions(seed), KPROP)
        np.testing.assert_array_equal(whole.votes, stored.votes)
        assert (whole.present, whole.absent) == (stored.present, stored.absent)


def test_reported_features_have_their_number_in_the_graph(tmp_path: Path) -> None:
    store(tmp_path)
    path = ask(NAME, "votes", "mb", 2.0, data=tmp_path, params=small_params(), changes={"features": 3})
    asked = read_meta(path, "x")["questions"]["0"]["narrowed 1"]["features"]
    rows = [row for row in read_table(path, "x").to_pylist() if (row["seed"], row["question"]) == (0, "narrowed 1")]
    reported = {feature for row in rows for feature in row["index"]}
    assert reported == set(asked)
    assert len(asked) == 3
    named = [row for row in read_table(path, "x").to_pylist() if (row["seed"], row["question"]) == (0, "vote")]
    assert all(row["index"] is None and 1 <= len(row["value_int16"]) <= 2 for row in named)


def test_everybody_has_spent_epsilon_once(tmp_path: Path) -> None:
    store(tmp_path)
    params = small_params(seeds=2, points=1, epochs=2)
    path = ask(NAME, "frontier", None, 2.0, data=tmp_path, params=params)
    runs = train(Cell(dataset=NAME, method="frontier", epsilon=2.0), data=tmp_path, params=params)
    for meta in (read_meta(path, "x"), read_meta(runs, "x")):
        assert [spend["epsilon"] for spend in meta["ledger"]] == [2.0]
        assert meta["rounds"] == {"teachers": 0.5, "first": 0.4, "narrowed": 3, "features": 400, "last": 40}
    assert read_meta(runs, "x")["answers"] == file_hash(path)


def test_a_survey_is_the_same_file_again(tmp_path: Path) -> None:
    store(tmp_path)
    cell = (NAME, "votes", None, 2.0)
    one = ask(*cell, data=tmp_path, params=small_params())
    two = ask(*cell, data=tmp_path, params=small_params(), output=tmp_path / "again.parquet")
    assert one.read_bytes() == two.read_bytes()


def test_surveys_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    store(tmp_path)
    params = small_params()
    path = ask(NAME, "votes", None, 2.0, data=tmp_path, params=params)
    other = dataclasses.replace(params, train=dataclasses.replace(params.train, train_fraction=0.1))
    numbers = dataclasses.replace(params, train=dataclasses.replace(params.train, task="regression"))
    apart = dataclasses.replace(params, train=dataclasses.replace(params.train, split="inductive"))
    cell = Cell(dataset=NAME, method="votes", epsilon=2.0)
    searched = dataclasses.replace(params.search, options={"method.teachers": (0.3, 0.5)})
    cases: list[tuple[Any, str]] = [
        (lambda: train(cell, data=tmp_path, params=other), "train_fraction was 0.5, and is 0.1 now.*`ldp perturb` on"),
        (lambda: train(cell, data=tmp_path, params=dataclasses.replace(params, seed=1)), "root was 0, and is 1 now"),
        (
            lambda: train(cell, data=tmp_path, params=dataclasses.replace(params, seeds=4)),
            "it has 3 for final runs and 2 for the search, where 4 and 2 are needed",
        ),
        (
            lambda: train(cell, data=tmp_path, params=dataclasses.replace(params, search=searched)),
            "was made with its method.teachers",
        ),
        (
            lambda: train(Cell(dataset=NAME, method="votes", epsilon=3.0), data=tmp_path, params=params),
            "`ldp perturb .* --method votes",
        ),
        (
            lambda: train(Cell(dataset=NAME, method="votes", epsilon=3.0), data=tmp_path, params=params, answers=path),
            "has epsilon 2 where 3",
        ),
        (
            lambda: train(cell, data=tmp_path, params=params, calibrated=path),
            "give them with --answers, not --calibrated",
        ),
        (
            lambda: train(
                Cell(dataset=NAME, method="lpgnn", mechanism="mb", epsilon=2.0),
                data=tmp_path,
                params=params,
                answers=path,
            ),
            "leave --answers out",
        ),
        (lambda: ask(NAME, "frontier", None, 2.0, data=tmp_path, params=numbers), "has no classes to learn"),
        (lambda: train(cell, data=tmp_path, params=apart), "split was random, and is inductive now"),
        (lambda: AnswersFile(tmp_path / "graphs" / NAME / "labels.parquet", "x"), "kind"),
    ]
    for action, message in cases:
        with pytest.raises(GraphLDPError, match=message) as error:
            action()
        assert "\n" not in str(error.value)
    assert not (tmp_path / "runs").exists()
    assert [one.name for one in (tmp_path / "perturbed" / NAME).iterdir()] == ["votes"]


def test_a_row_prints_how_many_features_its_people_report_whoever_learns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(tmp_path)
    found = {}
    for place in (0, -1):  # the coin, and votes
        monkeypatch.setattr("graphldp.experiment.cell._Cell.winner", lambda self, best, place=place: place)
        params = small_params(seeds=2, points=1, epochs=2)
        asked = {"data": tmp_path, "params": params, "options": {"m": 5}, "references": False}
        (row,) = run(NAME, "frontier", "mb", 3.0, **asked)
        found[row.chosen["options"]["learner"]] = row.m
    assert found == {"coin": 5, "votes": 5}


# what it is worth -----------------------------------------------------------------------------------------------------


def planted(tmp_path: Path, epsilon: float, **changes: Any) -> dict[str, float]:
    store(tmp_path, **{**PLANTED, **changes})
    params = small_params(seeds=2, points=2, epochs=60)
    params = dataclasses.replace(params, train=dataclasses.replace(params.train, train_fraction=0.1, hidden=8))
    found = {}
    for method, budget in (("coin", 0.0), ("lpgnn", epsilon), ("votes", epsilon)):
        (row,) = run(NAME, method, None, budget, data=tmp_path, params=params, references=False)
        found[method] = float(row.accuracy.mean())
    return found


def test_where_features_tell_the_classes_the_survey_beats_floor_and_reports_clearly(tmp_path: Path) -> None:
    found = planted(tmp_path, 4.0)
    assert found["votes"] > found["coin"] + 0.08
    assert found["votes"] > found["lpgnn"] + 0.04


def test_where_reports_say_nothing_the_labels_around_a_node_are_left(tmp_path: Path) -> None:
    found = planted(tmp_path, 0.01, structure=0.6)
    assert found["votes"] > found["coin"] - 0.02


# what is refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"teachers": 1.0}, "teachers is a share above 0 and below 1"),
        ({"teachers": "half"}, "teachers is a share"),
        ({"first": 0.0}, "first is a share above 0 and at most 1"),
        ({"features": 0}, "features must be a whole number"),
        ({"features": 2.5}, "features must be a whole number"),
        ({"narrowed": 0}, "narrowed must be a whole number"),
        ({"last": True}, "last must be a whole number"),
    ],
)
def test_a_survey_that_cannot_be(change: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        methods.method("votes").but(change)


@pytest.mark.parametrize(
    ("survey", "dimensions", "sizes"),
    [
        (Survey(), 1433, (400, 126, 40)),
        (Survey(), 100, (100, 63, 40)),
        (Survey(), 24, (24, 24, 24)),
        (Survey(narrowed=1, features=50), 1433, (50,)),
        (Survey(narrowed=4, features=8, last=1), 60, (8, 4, 2, 1)),
        (Survey(narrowed=2, features=8, last=20), 60, (8, 8)),
    ],
)
def test_the_question_is_narrowed_by_the_same_factor(survey: Survey, dimensions: int, sizes: tuple[int, ...]) -> None:
    assert survey.sizes(dimensions) == sizes


def test_parts_of_the_survey_are_options_of_the_method() -> None:
    recipe = methods.method("votes").but({"features": 50, "kind": "all"})
    assert recipe.asking == Survey(features=50)
    assert dict(recipe.options) == {"kind": "all"}
    with pytest.raises(OptionError, match="no option"):
        methods.method("votes").but({"steps": 2})


@pytest.mark.parametrize(
    ("mechanism", "options", "message"),
    [
        ("identity", {}, "cannot be surveyed"),
        ("ppm-public", {}, "cannot be surveyed"),
        ("privset", {"teachers": 0.3}, "is a part of the method: --set method.teachers=0.3"),
        ("privset", {"pad": 0}, "pad must be a whole number"),
    ],
)
def test_mechanisms_that_cannot_be_surveyed(mechanism: str, options: dict[str, Any], message: str) -> None:
    epsilon = float("inf") if mechanism == "identity" else 2.0
    with pytest.raises(OptionError, match=message):
        Surveys.of(small_graph(), Survey(), mechanism, epsilon, small_params(), options)


def test_numbers_as_features_need_another_mechanism(tmp_path: Path) -> None:
    graph = small_graph()
    numbers = sp.csr_array(graph.features * 0.5)
    halved = dataclasses.replace(graph, features=numbers)
    with pytest.raises(DataError, match="use pm or mb for numbers"):
        votes_of(surveys(halved), 0)
    assert votes_of(surveys(halved, mechanism="pm"), 0).votes.shape[0] == graph.nodes


@pytest.mark.parametrize("method", ["votes", "frontier"])
def test_there_is_nothing_to_denoise(method: str, tmp_path: Path) -> None:
    store(tmp_path)
    with pytest.raises(OptionError, match=f"learns from answers as they are, .*`ldp perturb --method {method}`"):
        denoise(Cell(dataset=NAME, method=method, epsilon=1.0), data=tmp_path, steps=(0,))


@pytest.mark.parametrize("method", ["votes", "frontier"])
def test_a_task_without_classes_is_refused(method: str, tmp_path: Path) -> None:
    store(tmp_path)
    params = dataclasses.replace(
        small_params(), train=dataclasses.replace(small_params().train, task="link-prediction")
    )
    with pytest.raises(OptionError, match="directed by the classes of training nodes"):
        run(NAME, method, None, 1.0, data=tmp_path, params=params, references=False)


def test_points_that_ask_alike_share_their_answers() -> None:
    cell = Devices(
        graph=small_graph(), recipe=methods.method("votes"), mechanism="privset", epsilon=2.0, options={},
        params=small_params(),
    )  # fmt: skip
    keys = {cell.setup({"method.kind": kind}).key for kind in ("fused", "all")}
    assert len(keys) == 1
    assert cell.setup({"method.teachers": 0.3}).key not in keys


def test_what_frontier_asks_is_what_its_votes_learner_asks(tmp_path: Path) -> None:
    """Changed in the choice, changed in the learner that asks people; the floor's learners stay as they are."""
    recipe = methods.method("frontier").but({"teachers": 0.3, "features": 10})
    assert recipe.asking == Survey(teachers=0.3, features=10)
    assert recipe.learner("votes") == methods.method("votes").but({"teachers": 0.3, "features": 10})
    assert recipe.learner("coin") == methods.method("coin")
    params = small_params(points=1, search_seeds=1)
    cell = Devices(
        graph=store(tmp_path), recipe=recipe, mechanism="privset", epsilon=2.0, options={}, params=params
    )  # fmt: skip
    plan = plan_of(cell, params)
    (place,) = (one.start for one in plan.learners if one.name == "votes")
    setup = plan.setups[place]
    asking = Surveys.of(cell.graph, Survey(teachers=0.3, features=10), "privset", 2.0, params)
    folder = tmp_path / "graphs" / NAME
    assert setup.meta(graph_hash(folder), [0]) == asking.meta(graph_hash(folder), [0])
    votes = setup.estimate(0).votes  # type: ignore[attr-defined]
    np.testing.assert_array_equal(votes, votes_of(asking, 0).votes)
    assert (votes[:, 0] >= 0).sum() == 63  # of 90


def test_what_is_not_asked_is_not_changed_in_a_choice_and_not_searched() -> None:
    with pytest.raises(OptionError, match="to change gate, run one of them"):
        methods.method("frontier").but({"teachers": 0.3, "gate": 3.0})
    row = SearchedRow(recipe=methods.method("frontier"), mechanism="privset")
    assert not row.has("method.teachers", {})
    assert not row.has("method.filter", {})


# votes or the floor ---------------------------------------------------------------------------------------------------


def contest(tmp_path: Path, epsilon: float, **changes: Any) -> tuple[Any, Any]:
    """Return what `frontier` of two learners has become, and its metadata."""
    graph = store(tmp_path, **changes)
    recipe = dataclasses.replace(methods.method("frontier"), learners=("coin", "votes"))
    params = small_params(seeds=3, points=2, epochs=60)
    params = dataclasses.replace(params, train=dataclasses.replace(params.train, train_fraction=0.2, hidden=8))
    cell = Devices(graph=graph, recipe=recipe, mechanism="privset", epsilon=epsilon, options={}, params=params)
    result = learn_cell(graph, plan_of(cell, params), params)
    assert result.setup is not None
    return result, result.setup.meta(tmp_path / "graphs" / NAME, [0])


def test_the_better_one_is_chosen_and_people_have_spent_their_budget_whichever_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = asked(monkeypatch)
    result, meta = contest(tmp_path, 4.0, **PLANTED)
    assert result.chosen["options"]["learner"] == "votes"
    assert meta["epsilon"] == 4.0
    # The coin's reports are a coin's: no person is asked twice.
    spent = {what for what, *_ in calls}
    assert spent == {"null", "privset", "vote"}
    monkeypatch.setattr("graphldp.experiment.cell._Cell.winner", lambda self, best: 0)
    result, meta = contest(tmp_path, 0.01, **PLANTED)
    assert result.chosen["options"]["learner"] == "coin"
    assert result.setup.device.name == "null"
    assert (meta["mechanism"], meta["epsilon"]) == ("privset", 0.01)
    assert sum(part["epsilon"] for part in meta["ledger"]) == 0.01


@pytest.mark.slow
def test_the_floor_stays_where_votes_are_not_better_and_then_the_row_is_the_floors(tmp_path: Path) -> None:
    """The same learner, trained and scored in the same way: nothing is lost by having asked."""
    graph = store(tmp_path)
    floor, mine = (methods.method(name) for name in ("structure", "frontier"))
    assert mine.learners == (*floor.learners, "votes", *(f"{name}+votes" for name in floor.learners))
    params = small_params(seeds=3, points=2, epochs=30)

    def result(recipe: methods.Method, epsilon: float) -> Any:
        cell = Devices(
            graph=graph, recipe=recipe, mechanism=recipe.mechanism, epsilon=epsilon, options={}, params=params
        )
        return learn_cell(graph, plan_of(cell, params), params)

    two = result(mine, 0.01)
    assert "votes" not in two.chosen["options"]["learner"]
    scores = [[row["test_accuracy"] for row in one.rows if row["role"] == "final"] for one in (result(floor, 0.0), two)]
    assert scores[0] == scores[1]


@pytest.mark.parametrize("caution", [0.0, 1.0])
def test_votes_must_be_better_than_the_best_of_the_floor_and_not_than_its_first_learner(
    caution: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    params = small_params(points=1, search_seeds=1, seeds=4)
    assert methods.method("frontier").caution == 0
    recipe = dataclasses.replace(methods.method("frontier"), caution=caution)
    cell = Devices(graph=small_graph(), recipe=recipe, mechanism="privset", epsilon=1.0, options={}, params=params)
    plan = plan_of(cell, params)

    def choice(*, heard: bool = True, **accuracies: list[float]) -> str:
        monkeypatch.setattr("graphldp.server.evidence.votes.Votes.counts", lambda *_: heard)
        found = _Cell(small_graph(), plan, params, "cpu", Resources(), None)
        best = [learner.start for learner in plan.learners]
        for place, learner in zip(best, plan.learners, strict=True):
            for seed, value in enumerate(accuracies.get(learner.name, [0.5, 0.6, 0.5, 0.6])):
                row = {"role": "playoff", "point": place, "seed": seed, "validation_accuracy": value}
                found.tried.append(row)
        return plan.learners[found.winner(best)].name

    links = [0.7, 0.8, 0.7, 0.8]
    assert choice(votes=[0.6, 0.7, 0.6, 0.7]) == "votes"
    assert choice(votes=[0.6, 0.7, 0.6, 0.7], links=links) == "links"
    one_error = choice(votes=[0.9, 0.8, 0.7, 0.8], links=links)  # ahead by one standard error and no more
    assert one_error == ("links" if caution else "votes")
    assert choice(votes=[0.9, 0.7, 0.8, 0.6], links=links) == "links"  # ahead on half of the splits, and not on average
    assert choice(votes=[0.9, 0.9, 0.8, 0.9], links=links) == "votes"
    assert choice(votes=[0.9, 0.9, 0.8, 0.9], links=links, heard=False) == "links"
    # The coin may be near enough to stay, and then votes are measured against it.
    lucky = [0.9, 0.6, 0.5, 0.6]
    assert choice(links=lucky) == "coin"
    assert choice(votes=[0.59, 0.69, 0.59, 0.69], links=lucky) == "votes"


@pytest.mark.parametrize("classes", [0, 1])
def test_nobody_votes_between_fewer_than_two_classes(classes: int) -> None:
    graph = small_graph()
    graph = dataclasses.replace(graph, labels=np.full_like(graph.labels, classes - 1), classes=classes)
    with pytest.raises(DataError, match=f"has {classes} classes; people vote between at least 2"):
        surveys(graph)
