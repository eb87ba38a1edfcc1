"""One cell in memory: what may steer what, and that an interruption changes nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cell_factory import small_graph, small_params

from graphldp import methods
from graphldp.client import protocol
from graphldp.errors import DataError, OptionError
from graphldp.experiment import cell as learning
from graphldp.experiment.cell import learn_cell, learn_majority
from graphldp.experiment.parts import split_of
from graphldp.experiment.plan import CellPlan, Devices, plan_of
from graphldp.experiment.result import CellResult, Checkpoint, Pause, fingerprint
from graphldp.graph import Graph
from graphldp.randomness import generator
from graphldp.server import Estimate, rectify

PARAMS = small_params()
LPGNN = methods.method("lpgnn")


def reports(graph: Graph, seen: list[int] | None = None) -> Callable[[int], Estimate]:
    device = protocol("mb", 1.0, graph.dimensions, graph.low, graph.high)

    def estimate(seed: int) -> Estimate:
        if seen is not None:
            seen.append(seed)
        return rectify(device.perturb(graph.features, generator(0, "test", seed)))

    return estimate


def tried(graph: Graph, params: Any = PARAMS, seen: list[int] | None = None) -> CellPlan:
    source = Devices(graph=graph, recipe=LPGNN, mechanism="mb", epsilon=1.0, options={}, params=params)
    out, estimate = plan_of(source, params), reports(graph, seen)
    return dataclasses.replace(out, setups=tuple(dataclasses.replace(one, estimate=estimate) for one in out.setups))


def learn(graph: Graph, params: Any = PARAMS, **options: Any) -> CellResult:
    return learn_cell(graph, tried(graph, params), params, device="cpu", **options)


# protocol -------------------------------------------------------------------------------------------------------------


def test_one_row_for_every_run() -> None:
    result = learn(small_graph())
    roles = [(row["role"], row["point"], row["seed"]) for row in result.rows]
    assert roles[:6] == [("search", point, seed) for point in range(3) for seed in (-1, -2)]
    chosen = roles[6][1]
    assert roles[6:] == [("final", chosen, seed) for seed in range(3)]
    names = ("learning_rate", "weight_decay", "dropout", "steps")
    assert [{name: row[name] for name in names} for row in result.rows[6:]] == [result.chosen] * 3
    for row in result.rows:
        assert (row["train_nodes"], row["validation_nodes"], row["test_nodes"]) == (45, 22, 23)
        assert 0 < row["best_epoch"] <= row["epochs"] <= PARAMS.train.epochs
        assert np.isfinite(row["validation_loss"])
        assert 0 <= row["validation_accuracy"] <= 1
        assert (row["test_accuracy"] is None) == (row["role"] == "search")


def test_the_point_is_the_one_with_the_lowest_mean_validation_loss() -> None:
    result = learn(small_graph(), small_params(points=6))
    losses: dict[int, list[float]] = {}
    for row in result.rows:
        if row["role"] == "search":
            losses.setdefault(row["point"], []).append(row["validation_loss"])
    best = min(losses, key=lambda point: float(np.mean(losses[point])))
    assert {row["point"] for row in result.rows if row["role"] == "final"} == {best}


def test_the_final_runs_have_reports_splits_and_weights_of_their_own() -> None:
    graph, seen = small_graph(), []
    learn_cell(graph, tried(graph, PARAMS, seen), PARAMS, device="cpu")
    assert seen == [-1, -2, 0, 1, 2]
    splits = [split_of(graph, PARAMS, seed) for seed in (0, 1, 2, -1, -2)]
    assert len({tuple(split.test) for split in splits}) == 5


def test_the_search_does_not_move_the_final_runs() -> None:
    """With one point to choose from, more search seeds change nothing in the final runs."""
    graph = small_graph()

    def final(search_seeds: int) -> list[dict[str, Any]]:
        result = learn(graph, small_params(points=1, search_seeds=search_seeds))
        return [row for row in result.rows if row["role"] == "final"]

    assert final(1) == final(3)


def test_more_final_seeds_do_not_move_the_earlier_ones() -> None:
    graph = small_graph()
    few, many = (learn(graph, small_params(points=1, seeds=seeds)).rows for seeds in (2, 4))
    assert few[:2] == many[:2]
    for one, two in zip(few[2:], many[2:], strict=False):
        assert {**one, "validation_loss": 0} == {**two, "validation_loss": 0}
        assert one["validation_loss"] == pytest.approx(two["validation_loss"], rel=1e-5)


def test_splits_are_those_of_every_method() -> None:
    graph = small_graph()
    one, two = split_of(graph, PARAMS, 1), split_of(graph, small_params(points=1, epochs=1, seeds=9), 1)
    for part in ("train", "validation", "test"):
        np.testing.assert_array_equal(getattr(one, part), getattr(two, part))
    other = split_of(graph, dataclasses.replace(PARAMS, seed=1), 1)
    assert not np.array_equal(one.test, other.test)


def test_labels_of_test_nodes_steer_nothing() -> None:
    graph = small_graph(nodes=240)
    params = small_params(seeds=1, search_seeds=1)
    tested = [set(split_of(graph, params, seed).test.tolist()) for seed in (0, -1)]
    hidden = np.array(sorted(set.intersection(*tested)))
    assert hidden.size > 5
    labels = graph.labels.copy()
    labels[hidden] = (labels[hidden] + 1) % graph.classes
    other = dataclasses.replace(graph, labels=labels)
    one, two = learn(graph, params), learn(other, params)
    assert one.chosen == two.chosen
    assert one.outcome is not None
    assert two.outcome is not None
    np.testing.assert_array_equal(one.outcome.predictions, two.outcome.predictions)
    opened = {"test_accuracy": 0, "test_macro_f1": 0}
    for first, second in zip(one.rows, two.rows, strict=True):
        assert {**first, **opened} == {**second, **opened}
    assert one.rows[-1]["test_accuracy"] != two.rows[-1]["test_accuracy"]
    floor, changed = learn_majority(graph, params).rows[0], learn_majority(other, params).rows[0]
    assert floor["validation_accuracy"] == changed["validation_accuracy"]
    assert floor["test_accuracy"] != changed["test_accuracy"]


@pytest.mark.parametrize("split", ["random", "inductive"])
@pytest.mark.parametrize(
    "name", ["structure", "ppgnn", "upgnet-nh", "upgnet-hn", "ldpge", "togl-fda", "togl-sma", "votes", "frontier"]
)
def test_labels_of_test_nodes_steer_no_method(name: str, split: str) -> None:
    """Neither rankings, nor who is asked what, nor what the graph's labels say, nor which learner is taken."""
    graph, recipe = small_graph(nodes=200), methods.method(name)
    params = small_params(seeds=1, search_seeds=1, points=2, epochs=4)
    params = dataclasses.replace(params, train=dataclasses.replace(params.train, split=split))
    tested = [set(split_of(graph, params, seed).test.tolist()) for seed in (0, -1)]
    hidden = np.array(sorted(set.intersection(*tested)))
    labels = graph.labels.copy()
    labels[hidden] = (labels[hidden] + 1) % graph.classes
    found = []
    for one in (graph, dataclasses.replace(graph, labels=labels)):
        cell = Devices(
            graph=one, recipe=recipe, mechanism=recipe.mechanism, epsilon=0.0 if recipe.mechanism == "null" else 8.0,
            options={}, params=params,
        )  # fmt: skip
        result = learn_cell(one, plan_of(cell, params), params)
        assert result.outcome is not None
        rows = [{key: row[key] for key in row if key not in ("test_accuracy", "test_macro_f1")} for row in result.rows]
        found.append((result.chosen, rows, result.outcome.predictions.tolist()))
    assert found[0] == found[1]


def test_the_trainer_never_holds_a_test_label(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, fit, given = small_graph(), learning.fit, []

    def spy(problem: Any, runs: Any, *options: Any, **more: Any) -> Any:
        given.extend(runs)
        return fit(problem, runs, *options, **more)

    monkeypatch.setattr(learning, "fit", spy)
    learn(graph)
    assert len(given) == 9
    for run in given:
        assert (run.labels[run.split.test] == -1).all()
        known = np.concatenate([run.split.train, run.split.validation])
        np.testing.assert_array_equal(run.labels[known], graph.labels[known])


def test_nodes_without_a_label_are_in_no_split() -> None:
    graph = small_graph()
    labels = graph.labels.copy()
    labels[::3] = -1
    graph = dataclasses.replace(graph, labels=labels)
    split = split_of(graph, PARAMS, 0)
    used = np.concatenate([split.train, split.validation, split.test])
    assert sorted(used) == np.flatnonzero(labels >= 0).tolist()
    assert learn(graph).outcome is not None


@pytest.mark.parametrize("count", [0, 2])
def test_a_graph_with_too_few_labels_is_one_line(count: int) -> None:
    labels = np.full(90, -1, np.int32)
    labels[:count] = 0
    graph = dataclasses.replace(small_graph(), labels=labels, classes=min(count, 1))
    for learned in (learn_majority, learn):
        with pytest.raises(DataError, match=f"graph synthetic has {count} nodes with a label; to train, to validate"):
            learned(graph, PARAMS)


# rows -----------------------------------------------------------------------------------------------------------------


def test_majority_is_the_commonest_training_class() -> None:
    graph = small_graph(nodes=101)
    result = learn_majority(graph, PARAMS)
    assert [row["seed"] for row in result.rows] == [0, 1, 2]
    for row in result.rows:
        split = split_of(graph, PARAMS, row["seed"])
        commonest = np.bincount(graph.labels[split.train]).argmax()
        assert row["test_accuracy"] == (graph.labels[split.test] == commonest).mean()
        assert row["validation_accuracy"] == (graph.labels[split.validation] == commonest).mean()
        assert (row["role"], row["steps"], row["epochs"], row["learning_rate"]) == ("final", None, None, None)


def test_the_same_cell_gives_the_same_rows() -> None:
    assert learn(small_graph()).rows == learn(small_graph()).rows


def test_another_root_gives_other_rows() -> None:
    graph = small_graph()
    one, two = learn(graph), learn(graph, dataclasses.replace(PARAMS, seed=1))
    assert one.rows[0]["validation_loss"] != two.rows[0]["validation_loss"]


def test_runs_that_diverge_are_not_chosen() -> None:
    params = small_params(points=4)
    params = dataclasses.replace(params, search=dataclasses.replace(params.search, learning_rate=(1e30, 0.05)))
    result = learn(small_graph(), params)
    failed = [row for row in result.rows if row["learning_rate"] == 1e30]
    assert failed
    assert {row["validation_loss"] for row in failed} == {np.inf}
    assert result.chosen["learning_rate"] == 0.05


def test_a_run_that_fails_after_a_good_start_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, fit = learn(small_graph()), learning.fit
    best = whole.rows[-1]["point"]

    def failing(problem: Any, runs: Any, *options: Any, **more: Any) -> Any:
        outcome = fit(problem, runs, *options, **more)
        if len(runs) > PARAMS.seeds:  # the search: points by its two seeds
            outcome.failed[2 * best] = True
        return outcome

    monkeypatch.setattr(learning, "fit", failing)
    result = learn(small_graph())
    assert result.rows[-1]["point"] != best
    assert [row["validation_loss"] == np.inf for row in result.rows].index(True) == 2 * best


def test_a_search_in_which_everything_diverges_says_so() -> None:
    params = small_params(points=1)
    params = dataclasses.replace(params, search=dataclasses.replace(params.search, learning_rate=(1e30,)))
    with pytest.raises(DataError, match="no point of the search has a finite validation loss; search lower learning"):
        learn(small_graph(), params)


def test_a_search_of_too_few_points_is_one_line() -> None:
    with pytest.raises(OptionError, match="the search space has 8 points, fewer than the budget of 9"):
        learn(small_graph(), small_params(points=9))


# interruptions --------------------------------------------------------------------------------------------------------


class Stop:
    """A progress callback that presses Ctrl-C at the n-th call of a phase."""

    def __init__(self, phase: str, call: int) -> None:
        self.phase, self.left = phase, call

    def __call__(self, done: int, total: int, text: str) -> None:
        assert 0 <= done <= total == 2 * PARAMS.train.epochs
        if text.startswith(self.phase):
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt


def resumed(graph: Graph, stops: list[Stop], params: Any = PARAMS) -> tuple[CellResult, list[str]]:
    """Learn with interruptions, each going on from the last; return the result and the phases of the checkpoints."""
    kept: list[Checkpoint] = []
    for stop in stops:
        with pytest.raises(KeyboardInterrupt):
            learn(graph, params, progress=stop, pause=Pause(on_stop=kept.append, checkpoint=kept[-1] if kept else None))
    return learn(graph, params, pause=Pause(checkpoint=kept[-1])), [one.phase for one in kept]


@pytest.mark.parametrize(
    "stops",
    [
        [("search", 1)],
        [("search", 7)],
        [("final", 1)],
        [("final", 9)],
        [("search", 3), ("search", 4), ("final", 2), ("final", 5)],
    ],
    ids=str,
)
def test_resumed_is_uninterrupted(stops: list[tuple[str, int]]) -> None:
    graph = small_graph()
    whole = learn(graph)
    result, phases = resumed(graph, [Stop(*stop) for stop in stops])
    assert phases == [phase for phase, _ in stops]
    assert result.rows == whole.rows
    assert result.chosen == whole.chosen
    assert result.outcome is not None
    assert whole.outcome is not None
    np.testing.assert_array_equal(result.outcome.predictions, whole.outcome.predictions)
    for name, value in whole.outcome.parameters.items():
        np.testing.assert_array_equal(result.outcome.parameters[name], value)


def test_an_interruption_without_a_keeper_is_an_interruption() -> None:
    with pytest.raises(KeyboardInterrupt):
        learn(small_graph(), progress=Stop("search", 2))


def test_a_fingerprint_is_of_everything_it_is_given() -> None:
    base = ("a", {"x": 1, "y": (0.5, None)})
    assert fingerprint(*base) == fingerprint("a", {"y": [0.5, None], "x": 1})
    for other in (("b", base[1]), ("a", {"x": 1, "y": (0.5,)}), ("a", {"x": 2, "y": (0.5, None)}), (*base, "")):
        assert fingerprint(*other) != fingerprint(*base)
