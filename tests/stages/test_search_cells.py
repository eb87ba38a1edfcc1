"""Searches over any options: what is trained together, what a row lacks, what steers nothing."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from cell_factory import NAME, calibrate, rows, run, small_graph, small_params, store
from numpy.typing import NDArray

from graphldp import methods
from graphldp.errors import DataError, OptionError
from graphldp.experiment import cell as learning
from graphldp.experiment.cell import learn_cell, search_cell
from graphldp.experiment.parts import split_of
from graphldp.experiment.plan import CellPlan, Devices, plan_of
from graphldp.experiment.result import CellResult, Checkpoint, Pause
from graphldp.graph import Graph
from graphldp.server.evidence import Evidence, EvidenceSetting, evidence_names, make_evidence, registry
from graphldp.stages.denoise import denoise
from graphldp.stages.files.artifacts import read_meta
from graphldp.stages.grids.cell import Cell
from graphldp.stages.grids.params import Params
from graphldp.stages.train import train


def params_of(options: dict[str, Any] | None = None, *, epochs: int = 15, **changes: Any) -> Params:
    params = small_params(epochs=epochs, seeds=2)
    search = dataclasses.replace(
        params.search, options={key: tuple(values) for key, values in (options or {}).items()}, **changes
    )
    return dataclasses.replace(params, search=search)


def plan(graph: Graph, params: Params, method: str = "lpgnn", mechanism: str | None = None, **given: Any) -> CellPlan:
    recipe = methods.method(method).but(given.pop("changes", {}))
    name, budget = recipe.choose(mechanism), given.pop("epsilon", 0.0 if recipe.mechanism == "null" else 4.0)
    source = Devices(graph=graph, recipe=recipe, mechanism=name, epsilon=budget, options=given, params=params)
    return plan_of(source, params)


def learn(graph: Graph, params: Params, method: str = "lpgnn", **given: Any) -> CellResult:
    return learn_cell(graph, plan(graph, params, method, **given), params, device="cpu")


def searched(result: CellResult) -> list[dict[str, Any]]:
    return [row for row in result.rows if row["role"] == "search"]


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of runs that were trained together, one for each call of the trainer."""
    calls: list[int] = []
    fit = learning.fit

    def count(problem: Any, runs: Any, *options: Any, **more: Any) -> Any:
        calls.append(len(runs))
        return fit(problem, runs, *options, **more)

    monkeypatch.setattr(learning, "fit", count)
    return calls


# any options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "batches"),
    [
        ({"m": [1, 2]}, 1),
        ({"method.filter": ["kprop", "hoa"]}, 1),
        ({"train.hidden": [3, 5]}, 2),
        ({"method.after": [0.1, 0.4]}, 1),
        ({"method.filter": ["kprop", "flexprop"], "m": [1, 2]}, None),
        ({"train.model": ["gcn", "sage"], "train.activation": ["selu", "relu"]}, 4),
        ({"train.patience": [2, 9]}, 2),
    ],
    ids=str,
)
def test_a_trial_is_what_its_options_alone_would_be(
    options: dict[str, Any], batches: int | None, trainings: list[int]
) -> None:
    graph, params = small_graph(), params_of(options, points=8)
    mechanism = "ppm-public" if "flexprop" in str(options) else None
    if mechanism:
        options.pop("m")
        params = params_of(options, points=8)
    result = learn(graph, params, mechanism=mechanism)
    if batches is not None:
        assert len(trainings) == batches + 1
    tried = searched(result)
    assert len({(row["point"]) for row in tried}) == 8
    for name, values in options.items():
        seen = [json.loads(row["options"])[name] for row in tried if name in json.loads(row["options"])]
        assert {str(value) for value in seen} == {str(value) for value in values}
    for row in (tried[0], tried[-1]):
        chosen = json.loads(row["options"])
        common = {name: (row[name],) for name in ("learning_rate", "weight_decay", "dropout", "steps")}
        alone = params_of({name: [value] for name, value in chosen.items()}, points=1, **common)
        again = searched(learn(graph, alone, mechanism=mechanism))
        match = next(one for one in again if one["seed"] == row["seed"])
        assert match["options"] == row["options"]
        assert match["validation_loss"] == pytest.approx(row["validation_loss"], rel=1e-4)


def test_the_choice_is_trained_with_its_options() -> None:
    result = learn(small_graph(), params_of({"train.hidden": [3, 5], "m": [1, 2]}, points=8))
    assert result.setup is not None
    assert result.outcome is not None
    chosen = result.chosen["options"]
    assert result.setup.device.m == chosen["m"]
    assert result.outcome.parameters["weight1"].shape[-1] == chosen["train.hidden"]
    assert {row["options"] for row in result.rows if row["role"] == "final"} == {json.dumps(chosen, sort_keys=True)}


def test_reports_are_drawn_once_for_all_batches_that_share_them(monkeypatch: pytest.MonkeyPatch) -> None:
    params, graph, drawn = params_of({"train.hidden": [3, 5]}, points=8), small_graph(), []
    tried = plan(graph, params)
    setups: dict[int, Any] = {}

    def spy(one: Any) -> Any:
        def estimate(seed: int) -> Any:
            drawn.append(seed)
            return one.estimate(seed)

        return dataclasses.replace(one, estimate=estimate)

    for one in tried.setups:
        setups.setdefault(id(one), spy(one))
    tried = dataclasses.replace(tried, setups=tuple(setups[id(one)] for one in tried.setups))
    learn_cell(graph, tried, params, device="cpu")
    assert sorted(drawn) == [-2, -1, 0, 1]


def test_options_that_mean_nothing_beside_others_are_left_out_of_a_point() -> None:
    options = {"method.filter": ["kprop", "ppr"], "method.decay": [0.1, 0.3]}
    tried = searched(learn(small_graph(), params_of(options, points=12)))
    for row in tried:
        found = json.loads(row["options"])
        assert ("method.decay" in found) == (found["method.filter"] == "ppr")
        assert row["steps"] == 0 or found["method.filter"] == "kprop"
    assert {json.loads(row["options"]).get("method.decay") for row in tried} == {None, 0.1, 0.3}


def test_an_axis_that_a_row_lacks_is_left_out_and_said(tmp_path: Path) -> None:
    store(tmp_path)
    params = params_of({"method.rho": [0.1, 0.9], "train.hidden": [3, 5]})
    assert plan(small_graph(), params).left_out == ("method.rho",)
    assert plan(small_graph(), params, "togl-fda").left_out == ()
    calibrate(tmp_path, params)
    path = train(Cell(dataset=NAME, method="lpgnn", epsilon=1.0), data=tmp_path, params=params)
    assert read_meta(path, "x")["search"]["left_out"] == ["method.rho"]
    assert {*json.loads(rows(path)[0]["options"])} == {"train.hidden"}


@pytest.mark.parametrize("name", ["method.rh", "train.width", "levels", "method.steps"])
def test_an_axis_that_no_row_has_is_refused(name: str, tmp_path: Path) -> None:
    store(tmp_path)
    with pytest.raises(OptionError, match=rf"search.options has '{name}', which no row of the table has"):
        run(NAME, "lpgnn", None, 1.0, data=tmp_path, params=params_of({name: [1, 2]}))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"m": [1, 0]}, "m must be"),
        ({"method.after": [1.5]}, "after is a share tau of the boundary"),
        ({"train.hidden": [0]}, "hidden must be"),
        ({"train.patience": [0]}, "train.patience must be a whole number of at least 1, got 0"),
        ({"method.filter": ["hop"]}, "unknown filter 'hop'"),
    ],
)
def test_a_value_that_cannot_be_shows_before_anything_is_trained(
    options: dict[str, Any], message: str, trainings: list[int]
) -> None:
    with pytest.raises(OptionError, match=message):
        learn(small_graph(), params_of(options, points=4))
    assert not trainings


@pytest.mark.slow
def test_a_search_is_resumed_between_and_within_batches() -> None:
    graph, params = small_graph(), params_of({"train.hidden": [3, 5], "method.after": [0.0, 0.3]}, points=12)
    tried = plan(graph, params)
    whole = learn_cell(graph, tried, params, device="cpu")
    for stop in (1, 12, 20, 35, 50, 66):
        result = interrupted(graph, tried, params, stop)
        assert result.rows == whole.rows, stop
        assert result.records == whole.records


def interrupted(graph: Graph, tried: CellPlan, params: Params, call: int) -> CellResult:
    kept: list[Checkpoint] = []
    left = [call]

    def press(done: int, total: int, text: str) -> None:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn_cell(graph, tried, params, device="cpu", progress=press, pause=Pause(on_stop=kept.append))
    return learn_cell(graph, tried, params, device="cpu", pause=Pause(checkpoint=kept[-1]))


def test_finished_batches_are_not_trained_again(trainings: list[int]) -> None:
    graph, params = small_graph(), params_of({"train.hidden": [3, 5, 7]}, points=12)
    tried = plan(graph, params)
    kept: list[Checkpoint] = []

    def press(done: int, total: int, text: str) -> None:
        if "batch 3 of 3" in text:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn_cell(graph, tried, params, device="cpu", progress=press, pause=Pause(on_stop=kept.append))
    before = len(trainings)
    learn_cell(graph, tried, params, device="cpu", pause=Pause(checkpoint=kept[-1]))
    assert before == 3
    assert len(trainings) - before == 2  # the third batch, and the final runs


# artifacts ------------------------------------------------------------------------------------------------------------


def test_what_needs_the_estimate_alone_is_searched_from_artifacts_too(tmp_path: Path) -> None:
    store(tmp_path)
    params = params_of({"method.filter": ["kprop", "hoa"], "method.after": [0.0, 0.3], "train.hidden": [3]}, points=8)
    calibrate(tmp_path, params, epsilon=4.0)
    path = train(Cell(dataset=NAME, method="lpgnn", epsilon=4.0), data=tmp_path, params=params)
    (own,) = run(NAME, "lpgnn", None, 4.0, data=tmp_path, params=params, references=False)
    assert own.accuracy.tolist() == [row["test_accuracy"] for row in rows(path, "final")]
    assert own.chosen == read_meta(path, "x")["chosen_point"]


@pytest.mark.parametrize("name", ["m", "method.before"])
def test_what_is_behind_the_estimates_is_not_searched_from_artifacts(name: str, tmp_path: Path) -> None:
    store(tmp_path)
    params = params_of({name: [1, 2] if name == "m" else [0.1, 0.2]})
    calibrate(tmp_path, params)
    with pytest.raises(
        OptionError, match=rf"was made with its {name}, so that cannot.*`ldp run` perturbs, denoises and searches"
    ):
        train(Cell(dataset=NAME, method="lpgnn", epsilon=1.0), data=tmp_path, params=params)


def test_a_changed_recipe_is_searched_as_it_was_changed(tmp_path: Path) -> None:
    store(tmp_path)
    params = dataclasses.replace(params_of({"method.after": [0.1, 0.3]}, points=4, steps=(3,)), seed=1)
    calibrate(tmp_path, params)
    path = denoise(
        Cell(dataset=NAME, method="lpgnn", mechanism="mb", epsilon=1.0, changes={"filter": "hoa"}),
        data=tmp_path,
        steps=params.search.steps,
    )
    found = train(Cell(dataset=NAME, method="lpgnn", epsilon=1.0), data=tmp_path, params=params, calibrated=path)
    (own,) = run(NAME, "lpgnn", None, 1.0, data=tmp_path, params=params, references=False, changes={"filter": "hoa"})
    assert own.accuracy.tolist() == [row["test_accuracy"] for row in rows(found, "final")]
    (other,) = run(NAME, "lpgnn", None, 1.0, data=tmp_path, params=params, references=False)
    assert other.accuracy.tolist() != own.accuracy.tolist()


# evidence -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def voting(monkeypatch: pytest.MonkeyPatch) -> list[EvidenceSetting]:
    """Evidence from everything that there is: reports, labels, the graph, the law; and what it was given."""
    given: list[EvidenceSetting] = []

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Voting(Evidence):
        name: ClassVar[str] = "voting"
        summary: ClassVar[str] = "Votes."
        scale: float = 1.0
        kind: str = "labels"

        def build(self, setting: EvidenceSetting) -> NDArray[np.float32]:
            given.append(setting)
            assert setting.estimate is not None
            votes = np.zeros((setting.graph.nodes, setting.classes), dtype=np.float32)
            votes[setting.train, setting.labels[setting.train]] = 1.0
            votes = self.scale * (setting.graph.adjacency() @ votes + votes)
            if self.kind == "labels":
                return votes
            noise = setting.generator("noise").standard_normal((setting.graph.nodes, 2))
            mean = setting.estimate.deviations().sum(axis=1)[:, None] / setting.device.variance(0.5)
            return np.hstack([votes, noise, mean]).astype(np.float32)

    monkeypatch.setitem(registry.EVIDENCE, "voting", Voting)
    monkeypatch.setitem(
        methods.METHODS,
        "voting",
        methods.Method(
            name="voting",
            summary="x",
            mechanism="mb",
            propagates=False,
            filter="none",
            evidence="voting",
            axes=(("method.kind", ("labels", "all")),),
            model="mlp",
        ),
    )
    return given


def test_evidence_gives_the_same_in_memory_and_from_artifacts(tmp_path: Path, voting: list[EvidenceSetting]) -> None:
    store(tmp_path)
    params = params_of({"method.scale": [1.0, 2.0]}, points=8)
    calibrate(tmp_path, params, method="voting", epsilon=2.0)
    path = train(Cell(dataset=NAME, method="voting", epsilon=2.0), data=tmp_path, params=params)
    (own,) = run(NAME, "voting", None, 2.0, data=tmp_path, params=params, references=False)
    assert own.accuracy.tolist() == [row["test_accuracy"] for row in rows(path, "final")]
    meta = read_meta(path, "x")
    assert meta["evidence"] == {"name": "voting"}
    assert meta["model"] == "mlp"
    assert {json.loads(row["options"])["method.kind"] for row in rows(path, "search")} == {"labels", "all"}
    # A batch has one width, and each of the four kinds of evidence is built once for each seed.
    assert len(voting) == 2 * (4 * 2 + 2)


def test_evidence_sees_training_labels_and_no_others(voting: list[EvidenceSetting]) -> None:
    graph, params = small_graph(), params_of(points=4)
    learn(graph, params, "voting")
    assert voting
    seeds = {place: split_of(graph, params, place) for place in (-1, -2, 0, 1)}
    for setting in voting:
        known = np.flatnonzero(setting.labels >= 0)
        assert any(np.array_equal(known, split.train) for split in seeds.values())
        np.testing.assert_array_equal(setting.labels[known], graph.labels[known])
        assert setting.graph.features.nnz == 0
        assert (setting.graph.labels == -1).all()
        np.testing.assert_array_equal(setting.graph.edges, graph.edges)
    assert len({setting.seed for setting in voting}) == 4


def test_evidence_is_not_moved_by_labels_of_validation_and_test(voting: list[EvidenceSetting]) -> None:
    graph, params = small_graph(), params_of(points=4)
    split = split_of(graph, params, -1)
    labels = graph.labels.copy()
    hidden = np.concatenate([split.validation, split.test])
    labels[hidden] = (labels[hidden] + 1) % graph.classes
    evidence = make_evidence("voting", kind="all")
    built = []
    for one in (graph, dataclasses.replace(graph, labels=labels)):
        setup = plan(graph, params, "voting").setups[0]
        setting = EvidenceSetting.of(one, setup.estimate(-1), setup.device, split.train, 7)
        built.append(evidence.matrix(setting))
    np.testing.assert_array_equal(*built)


def test_a_setting_with_more_than_the_server_knows_cannot_be_made() -> None:
    graph, params = small_graph(), params_of()
    split, setup = split_of(graph, params, 0), plan(graph, params).setups[0]
    good = EvidenceSetting.of(graph, None, setup.device, split.train, 0)
    with pytest.raises(DataError, match="without features and labels"):
        dataclasses.replace(good, graph=graph)
    labels = good.labels.copy()
    labels[split.validation[0]] = 0
    with pytest.raises(DataError, match="not trained on must be hidden"):
        dataclasses.replace(good, labels=labels)


def test_random_evidence_reads_no_reports_and_its_depth_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, params = small_graph(), params_of({"method.width": [6, 9], "method.kind": ["sign", "gaussian"]}, points=8)
    tried = plan(graph, params, "random")
    never = dataclasses.replace
    setups = tuple(never(one, estimate=lambda seed: pytest.fail("drew reports")) for one in tried.setups)
    result = learn_cell(graph, never(tried, setups=setups), params, device="cpu")
    assert {row["steps"] for row in searched(result)} == {0, 2}
    assert result.problem is not None
    assert result.problem.dimensions == result.chosen["options"]["method.width"]
    for one in result.problem.inputs:
        assert not one.filtered
        assert np.square(one.deviations).mean() == pytest.approx(1.0, rel=1e-4)
    first, second = (np.asarray(one.deviations) for one in result.problem.inputs)
    assert not np.array_equal(first, second)


def test_evidence_by_name_and_options() -> None:
    assert "random" in evidence_names()
    with pytest.raises(OptionError, match="evidence random has no option 'depth'; it has: width, kind"):
        make_evidence("random", depth=2)
    with pytest.raises(OptionError, match="unknown evidence 'randm'; did you mean 'random'"):
        make_evidence("randm")
    for options, message in (({"width": 0}, "width must be"), ({"kind": "x"}, "kind must be one of")):
        with pytest.raises(OptionError, match=message):
            make_evidence("random", **options)  # type: ignore[arg-type]
    recipe = methods.method("random").but({"width": 9})
    assert recipe.but({"kind": "gaussian"}).options == (("kind", "gaussian"), ("width", 9))
    with pytest.raises(OptionError, match="method 'random' has no option 'before'; it has: evidence, width, kind"):
        recipe.but({"before": 0.2})
    with pytest.raises(OptionError, match=r"method 'lpgnn' has no option 'filtr'; did you mean 'filter'\?"):
        methods.method("lpgnn").but({"filtr": "ppr"})


@pytest.mark.parametrize("bad", [np.full((90, 2), np.nan), np.ones((9, 2)), np.ones(90), np.ones((90, 0))])
def test_evidence_that_is_no_matrix_of_numbers_is_refused(bad: NDArray[np.float64]) -> None:
    class Bad(Evidence):
        name = "bad"
        summary = "x"

        def build(self, setting: EvidenceSetting) -> Any:
            return bad

    graph, params = small_graph(), params_of()
    setup = plan(graph, params).setups[0]
    with pytest.raises(DataError, match="evidence bad must be"):
        Bad().matrix(EvidenceSetting.of(graph, None, setup.device, split_of(graph, params, 0).train, 0))


def test_a_model_of_evidence_cannot_be_kept(tmp_path: Path) -> None:
    store(tmp_path)
    params = params_of()
    calibrate(tmp_path, params, method="random", mechanism="null", epsilon=0.0)
    with pytest.raises(OptionError, match="leave --save-model out"):
        train(
            Cell(dataset=NAME, method="random", epsilon=0.0), data=tmp_path, params=params, models=tmp_path / "models"
        )


# progress ------------------------------------------------------------------------------------------------------------


def test_progress_says_batch_and_epoch_and_never_goes_back() -> None:
    graph, params = small_graph(), params_of({"train.hidden": [3, 5]}, epochs=24)
    calls: list[tuple[int, int, str]] = []
    learn_cell(graph, plan(graph, params), params, device="cpu", progress=lambda *call: calls.append(call))
    done = [call[0] for call in calls]
    assert done == sorted(done)
    assert done[-1] == calls[-1][1] == 2 * 24
    texts = [text for *_, text in calls]
    for batch in (1, 2):
        start = f"search batch {batch} of 2: epoch "
        assert any(text.startswith(start) and " of 24, " in text for text in texts)
    assert any("best validation loss" in text for text in texts if text.startswith("search batch 1"))
    assert texts[-1].startswith("final: 0 of 2 runs training")


# strategies -----------------------------------------------------------------------------------------------------------


def test_a_grid_tries_every_point() -> None:
    result = learn(small_graph(), params_of(strategy="grid"))
    assert len({row["point"] for row in searched(result)}) == 8


@pytest.mark.slow
def test_grids_of_different_sizes_are_refused(tmp_path: Path) -> None:
    store(tmp_path)
    assert len(run(NAME, "lpgnn", None, 1.0, data=tmp_path, params=params_of(strategy="grid"))) == 4
    with pytest.raises(OptionError, match="grid tries 8 points of structure and 4 of base; every row of a table has"):
        run(NAME, "base", None, 1.0, data=tmp_path, params=params_of(strategy="grid"))


@pytest.mark.parametrize("search", [{}, {"strategy": "grid"}], ids=["random", "grid"])
def test_labels_of_test_nodes_steer_no_choice(search: dict[str, Any]) -> None:
    graph = small_graph(nodes=240)
    params = params_of(epochs=24, seeds=1, **search)
    params = dataclasses.replace(params, seeds=1)
    tested = [set(split_of(graph, params, seed).test.tolist()) for seed in (0, -1)]
    hidden = np.array(sorted(set.intersection(*tested)))
    labels = graph.labels.copy()
    labels[hidden] = np.random.default_rng(0).permutation((labels[hidden] + 1) % graph.classes)
    one, two = learn(graph, params), learn(dataclasses.replace(graph, labels=labels), params)
    assert one.chosen == two.chosen
    opened = {"test_accuracy": 0, "test_macro_f1": 0}
    for first, second in zip(one.rows, two.rows, strict=True):
        assert {**first, **opened} == {**second, **opened}
    assert one.rows[-1]["test_accuracy"] != two.rows[-1]["test_accuracy"]


def test_a_search_alone_is_the_searchs_half_and_opens_no_test_label(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, params = small_graph(), params_of()
    whole = learn(graph, params)
    monkeypatch.setattr(learning, "final_scores", lambda *_: pytest.fail("opened test labels"))
    calls: list[tuple[int, int]] = []
    alone = search_cell(
        graph, plan(graph, params), params, device="cpu", progress=lambda done, total, _: calls.append((done, total))
    )
    assert alone.rows == [row for row in whole.rows if row["role"] == "search"]
    assert alone.chosen == whole.chosen
    assert calls[-1] == (params.train.epochs, params.train.epochs)
