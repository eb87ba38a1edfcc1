"""Ways of asking people: what each of them has to keep, whatever it asks, in memory and in its artifact."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cell_factory import NAME, small_graph, small_params, store

from graphldp import methods
from graphldp.client import from_meta
from graphldp.errors import OptionError
from graphldp.experiment.conversation import (
    Asking,
    Conversation,
    Once,
    Question,
    Turn,
    ask,
    conversation_of,
    meta_of,
    most_of,
)
from graphldp.experiment.devices import device_for
from graphldp.experiment.estimates import calibration_of
from graphldp.graph import Graph
from graphldp.jsonable import plain
from graphldp.ledger import Ledger, ledger_from_meta
from graphldp.stages.files.answers import AnswersFile, conversation_in, write_answers
from graphldp.stages.files.artifacts import read_meta, read_table
from graphldp.stages.grids.cell import Cell
from graphldp.stages.perturb import perturb_graph, perturb_method

PARAMS = small_params(seeds=1, search_seeds=1)
WAYS: list[tuple[str, str, float, dict[str, Any]]] = [
    ("lpgnn", "mb", 1.0, {}),
    ("lpgnn", "1b", 1.0, {}),
    ("ppgnn", "ppm-public", 2.0, {}),
    ("upgnet-nh", "pm", 4.0, {}),
    ("togl-fda", "pm", 8.0, {}),
    ("togl-sma", "mb", 14.0, {"reuse": True, "first": 0.3}),
    ("togl-fda", "ppm-public", 4.0, {"filter": "flexprop"}),
    ("votes", "privset", 3.0, {"features": 10, "last": 5}),
    ("votes", "pm", 3.0, {"teachers": 0.3}),
    ("frontier", "ag", 2.0, {"narrowed": 1}),
]


def asked(graph: Graph, method: str, mechanism: str, epsilon: float, changes: dict[str, Any]) -> Conversation:
    return conversation_of(graph, methods.method(method).but(changes), mechanism, epsilon, PARAMS)


@pytest.mark.parametrize(("method", "mechanism", "epsilon", "changes"), WAYS)
def test_the_file_holds_what_left_the_devices(
    method: str, mechanism: str, epsilon: float, changes: dict[str, Any], tmp_path: Path
) -> None:
    """Each question comes back as it was asked and answered, and becomes the same estimate."""
    graph = store(tmp_path)
    recipe, given = methods.method(method).but(changes), asked(graph, method, mechanism, epsilon, changes)
    path = perturb_method(
        Cell(dataset=NAME, method=method, mechanism=mechanism, epsilon=epsilon, changes=changes),
        data=tmp_path,
        settings=PARAMS,
    )
    file = AnswersFile(path, "ldp perturb")
    heard = conversation_in(file.meta, graph, recipe)
    assert (heard.m, plain(heard.device.meta())) == (given.m, plain(given.device.meta()))
    for seed in (0, -1):
        told, found = given.questions(seed), file.questions(seed)
        assert [one.name for one in told] == [one.name for one in found]
        for one, other in zip(told, found, strict=True):
            np.testing.assert_array_equal(one.people, other.people)
            np.testing.assert_array_equal(one.features, other.features)
            for part in ("value", "index", "level"):
                mine, stored = getattr(one.answers, part), getattr(other.answers, part)
                assert (mine is None) == (stored is None), part
                if mine is not None:
                    assert mine.dtype == stored.dtype
                    np.testing.assert_array_equal(mine, stored)
            if recipe.asking is not None:
                assert plain(dict(one.answers.meta)) == plain(dict(other.answers.meta))
        calibration = calibration_of(recipe, 1, given.device, graph)
        whole, stored = given.estimate(told, calibration), heard.estimate(found, calibration)
        for part in (field.name for field in dataclasses.fields(whole)):
            mine, read = (getattr(one, part) for one in (whole, stored))
            assert type(mine) is type(read)
            if part == "matrix":
                mine, read = mine.toarray(), read.toarray()
            np.testing.assert_array_equal(mine, read)


@pytest.mark.parametrize(("method", "mechanism", "epsilon", "changes"), WAYS)
def test_the_ledger_is_what_the_person_who_answered_most_has_spent(
    method: str, mechanism: str, epsilon: float, changes: dict[str, Any], tmp_path: Path
) -> None:
    graph = store(tmp_path)
    path = perturb_method(
        Cell(dataset=NAME, method=method, mechanism=mechanism, epsilon=epsilon, changes=changes),
        data=tmp_path,
        settings=PARAMS,
    )
    meta, spent = read_meta(path, "x"), np.zeros(graph.nodes)
    for question in AnswersFile(path, "x").questions(0):
        spent[question.people] += float(question.answers.meta["claim"]["epsilon"])
    ledger = Ledger.from_json(meta["ledger"])
    assert ledger.once().total().max == pytest.approx(spent.max())
    assert ledger.once().total().epsilon == pytest.approx(epsilon)
    assert ledger.total().epsilon == pytest.approx(2 * epsilon)  # the search's seed, too
    assert meta["epsilon"] == pytest.approx(epsilon)
    # What is said without asking anybody is what the file says.
    said = asked(graph, method, mechanism, epsilon, changes).meta(meta["input"], PARAMS.draws)
    assert ledger_from_meta([said, meta]) == ledger


@pytest.mark.parametrize(("method", "mechanism", "epsilon", "changes"), WAYS)
def test_the_exact_loss_covers_every_answer_of_a_person(
    method: str, mechanism: str, epsilon: float, changes: dict[str, Any]
) -> None:
    graph = small_graph()
    given = asked(graph, method, mechanism, epsilon, changes)
    lost = np.zeros(graph.nodes)
    for question in given.questions(0):
        facts = dict(question.answers.meta)
        facts["options"] = {k: v for k, v in facts.get("options", {}).items() if k not in ("ranking", "rho")}
        lost[question.people] += from_meta(facts).privacy_loss() if "mechanism" in facts else facts["epsilon"]
    assert float(given.meta("x", [0])["epsilon_exact"]) >= lost.max() * (1 - 1e-9)


def test_what_people_report_once_is_one_artifact_whoever_asks(tmp_path: Path) -> None:
    store(tmp_path)
    once = perturb_graph(
        Cell(dataset=NAME, mechanism="mb", epsilon=1.0), data=tmp_path, seeds=PARAMS.draws, root=PARAMS.seed
    )
    before = once.read_bytes()
    for method, changes in (("lpgnn", {}), ("upgnet-nh", {"before": 0.25}), ("ldpge", {})):
        path = perturb_method(
            Cell(dataset=NAME, method=method, mechanism="mb", epsilon=1.0, changes=changes),
            data=tmp_path,
            settings=PARAMS,
        )
        assert (path, path.read_bytes()) == (once, before)
    assert "question" not in read_table(once, "x").column_names


@pytest.mark.parametrize(("method", "mechanism", "epsilon"), [("togl-fda", "pm", 8.0), ("votes", "mb", 2.0)])
def test_answers_are_the_same_file_again(method: str, mechanism: str, epsilon: float, tmp_path: Path) -> None:
    store(tmp_path)
    one, two = (
        perturb_method(
            Cell(dataset=NAME, method=method, mechanism=mechanism, epsilon=epsilon),
            data=tmp_path,
            settings=PARAMS,
            output=tmp_path / name,
        )
        for name in ("a.parquet", "b.parquet")
    )
    assert one.read_bytes() == two.read_bytes()


# A way of asking that asks for more than it says ----------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Twice(Asking):
    """Everybody reports in as many questions as it says, and the ledger has the turns that it says."""

    questions: int = 2
    turns: int = 1

    def conversation(
        self, graph: Graph, mechanism: str, epsilon: float, settings: Any, options: Any, level: Any = None
    ) -> Any:
        share = device_for(graph, mechanism, epsilon / self.turns, options)
        return _Twice(graph, Once(graph=graph, device=share, settings=settings), self)


class _Twice:
    def __init__(self, graph: Graph, once: Once, asking: Twice) -> None:
        self.graph, self.once, self.asking = graph, once, asking
        self.device, self.m = once.device, once.m

    def questions(self, seed: int) -> tuple[Question, ...]:
        (one,) = self.once.questions(seed)
        return tuple(dataclasses.replace(one, name=f"question {k}") for k in range(self.asking.questions))

    def estimate(self, questions: Any, calibration: Any) -> Any:
        return self.once.estimate(questions[-1:], calibration)

    def meta(self, content: str, seeds: Any) -> dict[str, Any]:
        turns = [Turn(device=self.device)] * self.asking.turns
        return meta_of(self.graph, content, turns, self.asking, seeds=seeds, root=0, given={})


@pytest.mark.parametrize(("questions", "turns", "fits"), [(1, 1, True), (2, 2, True), (2, 1, False), (3, 2, False)])
def test_nobody_answers_for_more_than_the_ledger_says(questions: int, turns: int, fits: bool, tmp_path: Path) -> None:
    way = Twice(questions=questions, turns=turns).conversation(small_graph(), "mb", 2.0, PARAMS, {})
    target = tmp_path / "answers.parquet"
    if fits:
        assert len(ask(way, 0, most_of(way))) == questions
        meta = read_meta(write_answers(target, way, "hash", [0], {"method": "x"}), "x")
        assert Ledger.from_json(meta["ledger"]).total().epsilon == pytest.approx(2.0)
        return
    with pytest.raises(OptionError, match=rf"question 0, question 1.* cost somebody epsilon {2 / turns * questions:g}"):
        ask(way, 0, most_of(way))
    with pytest.raises(OptionError, match="ask nobody twice in a turn"):
        write_answers(target, way, "hash", [0], {"method": "x"})
    assert not target.exists()


def test_no_answer_is_left_out_of_the_sum_for_what_it_calls_itself() -> None:
    way = Twice(questions=2, turns=1).conversation(small_graph(), "mb", 2.0, PARAMS, {})
    questions = way.questions(0)

    def answered(name: str, called: str, *, further: bool = False) -> _Twice:
        answers = dataclasses.replace(questions[1].answers, meta={**questions[1].answers.meta, "question": called})
        second = dataclasses.replace(questions[1], name=name, answers=answers, further=further)
        way.questions = lambda seed: (questions[0], second)  # type: ignore[method-assign]
        return way

    with pytest.raises(OptionError, match="cost somebody epsilon 4"):
        ask(answered("second", "links"), 0, 2.0)
    with pytest.raises(OptionError, match="cost somebody epsilon 4"):
        ask(answered("labels", "links", further=True), 0, 2.0)
    for name, further in (("links", False), ("labels", False), ("second", True)):
        with pytest.raises(OptionError, match=f"called '{name}', as the one beside features is"):
            ask(answered(name, "links", further=further), 0, 9.0)
    assert len(ask(answered("links", "links", further=True), 0, 2.0)) == 2


def test_every_way_that_a_recipe_names_is_there() -> None:
    found = {name: methods.method(name).asking for name in methods.names()}
    assert {name for name, asking in found.items() if asking is not None} == {
        "togl-fda",
        "togl-sma",
        "votes",
        "frontier",
        "blocks-votes",
        "pooled",
        "heterorr",
    }
    for name, asking in found.items():
        if asking is None:
            continue
        options = [one.name for one in dataclasses.fields(asking)]
        assert methods.method(name).asking_options() == tuple(options)
        assert set(asking.afterwards) < set(options)
        assert set(asking.shaping()) == set(options) - set(asking.afterwards)
