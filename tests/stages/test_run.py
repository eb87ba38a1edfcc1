"""The whole chain in memory: the same numbers as the stages, and nothing written."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from cell_factory import NAME, accuracies, files, learn, run, small_params, store

from graphldp import methods
from graphldp.errors import ArtifactError, OptionError
from graphldp.experiment import cell as learning
from graphldp.experiment.cell import Work, work_of
from graphldp.experiment.plan import Devices, plan_of
from graphldp.experiment.resources import InMemory, Resources
from graphldp.experiment.running import RowResult
from graphldp.learn import neighbors
from graphldp.measures import measures_of
from graphldp.stages.files.graphs import read_graph
from graphldp.stages.files.paths import graph_dir
from graphldp.stages.grids.cell import Cell
from graphldp.stages.train import train

PARAMS = small_params()
FEW = small_params(seeds=2, points=1, search_seeds=1, epochs=4)  # where it does not matter how well anything is learned


@pytest.fixture
def data(tmp_path: Path) -> Path:
    store(tmp_path)
    return tmp_path


def by_name(rows: list[RowResult]) -> dict[str, RowResult]:
    assert len({row.name for row in rows}) == len(rows)
    return {row.name: row for row in rows}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "mechanism"), [("lpgnn", "mb"), ("lpgnn", "pm"), ("base", "lp"), ("ppgnn", "ppm-public")]
)
def test_the_numbers_are_those_of_the_stages(method: str, mechanism: str, data: Path) -> None:
    first = method == "lpgnn" and mechanism == "mb"  # the references are the same whatever stands between them
    found = by_name(run(NAME, method, mechanism, 2.0, data=data, params=PARAMS, device="cpu", references=first))
    stages = {}
    if first:
        stages = {
            "majority": train(Cell(dataset=NAME, method="majority", epsilon=0.0), data=data, params=PARAMS),
            "structure": learn(data, PARAMS, "structure", "null", 0.0),
            "nonpriv": learn(data, PARAMS, "nonpriv", "identity", math.inf),
        }
    (own,) = set(found) - set(stages)
    stages[own] = learn(data, PARAMS, method, mechanism, 2.0)
    for name, path in stages.items():
        np.testing.assert_array_equal(found[name].accuracy, accuracies(path), err_msg=name)


@pytest.mark.slow
def test_rows_stand_between_floor_and_ceiling_and_progress_goes_once_from_nothing_to_all(data: Path) -> None:
    calls: list[tuple[int, int]] = []
    rows = run(
        NAME, "lpgnn", "pm", 1.0, data=data, params=FEW, progress=lambda done, total, _: calls.append((done, total))
    )
    assert [(row.name, row.mechanism, row.epsilon) for row in rows] == [
        ("majority", "none", 0.0),
        ("structure", "null", 0.0),
        ("lpgnn-pm", "pm", 1.0),
        ("nonpriv", "identity", math.inf),
    ]
    assert [row.m is None for row in rows] == [True, False, False, False]
    assert all(len(row.accuracy) == FEW.seeds for row in rows)
    assert {total for _, total in calls} == {3 * 2 * FEW.train.epochs}  # three learned rows, two phases each
    counts = [done for done, _ in calls]
    assert counts == sorted(counts)
    assert counts[-1] == calls[-1][1]


def test_without_references_there_is_one_row(data: Path) -> None:
    assert [row.name for row in run(NAME, "base", None, 1.0, data=data, params=PARAMS, references=False)] == ["base"]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "epsilon"), [("structure", 0.0), ("nonpriv", math.inf)])
def test_a_reference_is_not_there_twice(method: str, epsilon: float, data: Path) -> None:
    names = [row.name for row in run(NAME, method, None, epsilon, data=data, params=FEW)]
    assert names == ["majority", "structure", "nonpriv"]


def test_nothing_is_written(data: Path) -> None:
    before = files(data)
    run(NAME, "lpgnn", None, 1.0, data=data, params=PARAMS)
    with pytest.raises(KeyboardInterrupt):
        run(NAME, "lpgnn", None, 1.0, data=data, params=PARAMS, progress=stop)
    assert files(data) == before


def stop(done: int, total: int, text: str) -> None:
    raise KeyboardInterrupt


def test_what_is_to_be_done_is_counted_in_epochs_of_runs_and_what_is_known_is_not(data: Path) -> None:
    graph = read_graph(graph_dir(data, NAME))

    def work(method: str, mechanism: str, epsilon: float, resources: Resources, ahead: tuple[str, ...] = ()) -> Work:
        cell = Devices(
            graph=graph, recipe=methods.method(method), mechanism=mechanism, epsilon=epsilon, options={}, params=PARAMS
        )
        return work_of(graph, plan_of(cell, PARAMS), PARAMS, "cpu", resources, ahead)

    epochs, floor = PARAMS.train.epochs, methods.method("structure").learners
    one_final = epochs * (1 + 3) * 3 // 2  # one batch of three seeds, half as long again as a point of the search
    whole = work("structure", "null", 0.0, Resources())
    coin = epochs * (1 + 3 * 2)  # three points on two seeds, in one batch: they have no options
    assert (whole.playoff, whole.final) == (4 * one_final, 0)
    assert len(floor) * coin < whole.search < len(floor) * epochs * (3 + 3 * 2)
    method = work("lpgnn", "mb", 1.0, Resources())
    assert (method.search, method.playoff, method.final) == (coin, 0, one_final)
    ceiling = methods.method("nonpriv").learners
    alone, behind = (work("nonpriv", "identity", math.inf, Resources(), names) for names in ((), tuple(floor)))
    assert len(ceiling) > len(floor)
    assert alone.search - behind.search >= len(floor) * coin  # those of the floor
    assert behind.search >= (len(ceiling) - len(floor)) * coin
    assert behind.playoff == 3 * one_final

    memo = InMemory()
    memo_of(data, memo, [name for name in floor if name != "coin"])
    some = work("structure", "null", 0.0, Resources(memo=memo))
    assert (some.search, some.playoff) == (coin, one_final)


@pytest.mark.parametrize("task", ["node-classification", "regression", "link-prediction"])
def test_where_no_labels_are_learned_those_who_are_told_true_features_train_longer(task: str, data: Path) -> None:
    """Numbers and links: the share of the ceiling is what its runs take, and that of the floor is as it was."""
    graph = read_graph(graph_dir(data, NAME))
    params = dataclasses.replace(PARAMS, train=dataclasses.replace(PARAMS.train, task=task))

    def works(method: str, mechanism: str, epsilon: float) -> tuple[Work, Work]:
        """Return the whole work, and what is left where the public learners are known."""
        cell = Devices(
            graph=graph, recipe=methods.method(method), mechanism=mechanism, epsilon=epsilon, options={}, params=params
        )
        plan = plan_of(cell, params)
        public = [one.name for one in plan.learners if plan.setups[one.start].public]
        counted = [work_of(graph, plan, params, "cpu", Resources(), ahead) for ahead in ((), public)]
        return counted[0], counted[1]

    entry, epochs = measures_of(task), params.train.epochs
    longer = entry.longer
    one_final, coin = epochs * (1 + 3) * 3 // 2, epochs * (1 + 3 * 2)
    floor, known = works("structure", "null", 0.0)
    assert (floor.playoff, floor.final, known.search) == (4 * one_final, 0, 0)  # as long as with labels
    method, _ = works("lpgnn", "mb", 1.0)
    assert (method.search, method.playoff, method.final) == (coin, 0, one_final)  # its people's are noisy
    whole, told = works("nonpriv", "identity", math.inf)
    assert whole.playoff - told.playoff == floor.playoff
    assert told.playoff == 3 * int(one_final * longer)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learning, "measures_of", lambda _: dataclasses.replace(entry, longer=1.0))
        usual, usual_told = works("nonpriv", "identity", math.inf)
    assert whole.search - told.search == usual.search - usual_told.search
    assert told.search == pytest.approx(usual_told.search * longer, rel=0.01)  # each learner's is a whole number


def memo_of(data: Path, memo: InMemory, names: Sequence[str]) -> None:
    """Let a memo have something for these learners' searches."""
    graph = read_graph(graph_dir(data, NAME))
    floor = methods.method("structure")
    devices = Devices(graph=graph, recipe=floor, mechanism="null", epsilon=0.0, options={}, params=PARAMS)
    plan = plan_of(devices, PARAMS)
    cell = learning._Cell(graph, plan, PARAMS, "cpu", Resources(), None)
    for one in plan.learners:
        key = cell._known_by(one, "search", one.points)
        assert key is not None
        if one.name in names:
            memo.put(NAME, key, [], [])


@pytest.mark.slow
def test_progress_gives_each_row_its_part(data: Path) -> None:
    calls: list[tuple[float, str]] = []
    shares, resources = [], Resources(memo=InMemory())
    params = dataclasses.replace(PARAMS, train=dataclasses.replace(PARAMS.train, patience=1))
    for _ in range(2):  # the second time the floor's learners are known
        calls.clear()
        run(
            NAME, "lpgnn", None, 1.0, data=data, params=params, resources=resources,
            progress=lambda done, total, text: calls.append((done / total, text)),
        )  # fmt: skip
        first = next(place for place, text in calls if text.startswith("search: "))
        shares.append(first)
        places = [place for place, _ in calls]
        assert places == sorted(places)
    before, after = shares
    assert 0.35 < before < 0.5
    assert after < 0.05


@pytest.mark.slow
def test_a_playoffs_share_is_that_of_the_learners_that_are_trained_in_it(data: Path) -> None:
    """Those that the floor has trained are in the memo, and take no time."""
    calls: list[tuple[float, str]] = []
    run(
        NAME, "lpgnn", None, 1.0, data=data, params=PARAMS, resources=Resources(memo=InMemory()),
        progress=lambda done, total, text: calls.append((done / total, text)),
    )  # fmt: skip
    last = max(place for place, (_, text) in enumerate(calls) if text.startswith("search "))
    played = [(place, text) for place, text in calls[last + 1 :] if " learners: " in text]
    assert not any(", 1 of " in text for _, text in played)  # so that some are known
    begun, first = calls[last][0], played[0][0]
    assert first - begun < (1 - begun) / 4


@pytest.mark.slow
def test_the_mechanisms_options_are_its_own(data: Path) -> None:
    rows = by_name(run(NAME, "lpgnn", None, 4.0, data=data, params=FEW, options={"m": 3}))
    assert rows["lpgnn"].m == 3
    assert rows["structure"].m == 1  # the references are not changed by them
    with pytest.raises(OptionError, match="low is no further option of mb"):
        run(NAME, "lpgnn", None, 1.0, data=data, params=FEW, options={"low": 0.5})


@pytest.mark.slow
def test_more_budget_is_other_numbers_and_the_same_references(data: Path) -> None:
    params = small_params(seeds=2, points=1, search_seeds=1)
    low, high = (by_name(run(NAME, "base", None, epsilon, data=data, params=params)) for epsilon in (0.1, 8.0))
    assert low["base"].accuracy.tolist() != high["base"].accuracy.tolist()
    for name in ("majority", "structure", "nonpriv"):
        assert low[name].accuracy.tolist() == high[name].accuracy.tolist()


def test_a_graphs_folder_may_be_text(data: Path) -> None:
    assert read_graph(str(graph_dir(data, NAME))).content_hash() == read_graph(graph_dir(data, NAME)).content_hash()
    with pytest.raises(ArtifactError, match="does not exist"):
        read_graph(str(graph_dir(data, "cora")))


def test_what_cannot_be_is_one_line(data: Path) -> None:
    with pytest.raises(OptionError, match="method 'majority' is a row of every table by itself; choose another to run"):
        run(NAME, "majority", None, 0.0, data=data, params=PARAMS)
    with pytest.raises(OptionError, match="unknown method 'lp'"):
        run(NAME, "lp", None, 1.0, data=data, params=PARAMS)
    with pytest.raises(OptionError, match="null: epsilon must be 0, got 1"):
        run(NAME, "structure", None, 1.0, data=data, params=PARAMS)
    with pytest.raises(ArtifactError, match="does not exist; make it with `ldp download cora`"):
        run("cora", "lpgnn", None, 1.0, data=data, params=PARAMS)
    other = dataclasses.replace(PARAMS, search=dataclasses.replace(PARAMS.search, points=90))
    with pytest.raises(OptionError, match="fewer than the budget of 90"):
        run(NAME, "lpgnn", None, 1.0, data=data, params=other)


def test_a_floor_that_cannot_train_in_batches_shows_before_anything_is_trained(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbors, "find_spec", lambda name: None)
    params = dataclasses.replace(PARAMS, train=dataclasses.replace(PARAMS.train, batch_size=20, model="sgc"))
    assert len(run(NAME, "lpgnn", "mb", 2.0, data=data, params=params, device="cpu", references=False)) == 1
    monkeypatch.setattr(learning, "fit", lambda *_, **__: pytest.fail("trained"))
    with pytest.raises(
        OptionError,
        match=r"^method 'structure', learner '\w+': model 'gcn' .* leave the references, floor and ceiling, out$",
    ):
        run(NAME, "lpgnn", "mb", 2.0, data=data, params=params, device="cpu")
    params = dataclasses.replace(params, train=dataclasses.replace(params.train, model="gin"))
    with pytest.raises(OptionError, match=r"^method 'lpgnn': model 'gin' .* in full batch$"):  # hers comes first
        run(NAME, "lpgnn", "mb", 2.0, data=data, params=params, device="cpu")
