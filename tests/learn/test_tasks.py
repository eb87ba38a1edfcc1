"""What holds of every task, and the node tasks in particular."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from learn_factory import make_run, small_problem
from sklearn import metrics
from task_factory import LINK_TASKS, TASKS, PlainRun, case, node_runs, options_of, plain_task_fit, set_runs
from test_engine import StopAt, same

from graphldp.errors import DataError, OptionError
from graphldp.learn import (
    Interrupted,
    Options,
    Outcome,
    State,
    Values,
    fit,
    parallel,
    score_classes,
    score_values,
    task,
    task_names,
)
from graphldp.learn.engine import Trainer
from graphldp.learn.tasks import register_task
from graphldp.learn.tasks.classification import NodeClassification
from graphldp.learn.tasks.metrics import (
    average_precision,
    macro_f1,
    mean_absolute_error,
    r_squared,
    roc_auc,
    root_mean_squared_error,
    set_macro_f1,
    set_micro_f1,
)
from graphldp.tasks import loss_of

CLOSE = {"rtol": 2e-3, "atol": 2e-4}
CPU = torch.device("cpu")


def alike(outcome: Outcome, position: int, other: Outcome, place: int) -> None:
    """Equal up to the order of float32 sums."""
    assert outcome.best_epoch[position] == other.best_epoch[place]
    assert outcome.epochs[position] == other.epochs[place]
    np.testing.assert_allclose(outcome.validation_loss[position], other.validation_loss[place], rtol=1e-4)
    for one, two in ((outcome.metrics, other.metrics), (outcome.parameters, other.parameters)):
        assert one.keys() == two.keys()
        for name in one:
            np.testing.assert_allclose(one[name][position], two[name][place], **CLOSE, err_msg=name)


@pytest.mark.parametrize("name", TASKS)
def test_losses_and_gradients_equal_the_plain_way(name: str) -> None:
    problem, runs = case(name)
    what, losses = TASKS[name]
    options = options_of(what)
    trainer = Trainer(problem, runs, options, CPU)
    for each in set(trainer.kind):
        index = [r for r, kind in enumerate(trainer.kind) if kind == each]
        batch, parameters = trainer.batch(index), trainer.initial(index)
        for value in parameters.values():
            value.requires_grad_()
        hidden = trainer.model.trunk(parameters, batch)
        outputs = trainer.model.head(parameters, batch, hidden, lambda units: units)
        loss = batch.objective.loss(outputs, parameters)
        with torch.no_grad():
            held_out, _ = batch.objective.validate(outputs, parameters)
        loss.sum().backward()
        for position, r in enumerate(index):
            plain = PlainRun(problem, runs[r], options)
            train, validation = losses(plain.net(plain.x, plain.edges), runs[r], plain.head)
            train.backward()
            assert float(loss[position].detach()) == pytest.approx(float(train.detach()), rel=1e-5)
            assert held_out[position] == pytest.approx(float(validation.detach()), rel=1e-5)
            expected = plain.gradients()
            assert expected.keys() == parameters.keys()
            for key, value in parameters.items():
                assert value.grad is not None
                np.testing.assert_allclose(value.grad[position], expected[key], rtol=1e-4, atol=1e-5, err_msg=key)
                assert np.abs(expected[key]).max() > 1e-6, key


@pytest.mark.parametrize("name", TASKS)
def test_each_run_equals_the_plain_way(name: str) -> None:
    problem, runs = case(name)
    what, losses = TASKS[name]
    options = options_of(what, epochs=25, patience=None)
    outcome = fit(problem, runs, options, device="cpu")
    assert outcome.metrics.keys() == what.metrics().keys()
    assert outcome.outputs.keys() == what.predictions(problem.classes).keys()
    for r, run in enumerate(runs):
        plain = plain_task_fit(problem, run, options, losses)
        assert outcome.best_epoch[r] == plain.best_epoch
        assert outcome.validation_loss[r] == pytest.approx(plain.validation_loss, rel=1e-3)
        for key, value in plain.parameters.items():
            np.testing.assert_allclose(outcome.parameters[key][r], value, **CLOSE, err_msg=f"run {r} {key}")
        if name == "sets":
            np.testing.assert_allclose(outcome.outputs["values"][r], plain.outputs.sigmoid(), **CLOSE)
        elif "values" in outcome.outputs:
            np.testing.assert_allclose(outcome.outputs["values"][r], plain.outputs[:, -1], **CLOSE)
        if "classes" in outcome.outputs:
            logits = plain.outputs[:, : problem.classes]
            np.testing.assert_array_equal(outcome.outputs["classes"][r], logits.argmax(dim=1))


@pytest.mark.parametrize("name", TASKS)
def test_batched_single_and_waves_are_equal(name: str) -> None:
    problem, runs = case(name)
    options = options_of(TASKS[name][0], epochs=20, patience=6)
    together = fit(problem, runs, options, device="cpu")
    for r, run in enumerate(runs):
        alike(together, r, fit(problem, [run], options, device="cpu"), 0)
    memory = {"sets": 60_000, **dict.fromkeys(LINK_TASKS, 120_000)}.get(name, 50_000)
    waves = fit(problem, runs, dataclasses.replace(options, max_memory=memory), device="cpu")
    assert len(waves.record["waves"]) >= 2
    for r in range(len(runs)):
        alike(together, r, waves, r)


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("threads", [1, 3])
def test_resumed_equals_uninterrupted(name: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "LEAST_UNITS", 1)
    monkeypatch.setattr(parallel, "POLL_SECONDS", 0.001)
    torch.set_num_threads(threads)
    problem, runs = case(name)
    options = options_of(TASKS[name][0], epochs=20, patience=8)
    whole = fit(problem, runs, options, device="cpu")
    with pytest.raises(Interrupted) as caught:
        fit(problem, runs, options, device="cpu", progress=StopAt(3))
    data = caught.value.state.to_bytes()
    same(whole, fit(problem, runs, options, device="cpu", state=State.from_bytes(data)))


def test_a_state_belongs_to_its_task_and_targets() -> None:
    problem, runs, _, values = node_runs()
    options = options_of(task("multi-task"), epochs=9)
    with pytest.raises(Interrupted) as caught:
        fit(problem, runs, options, device="cpu", progress=StopAt(3))
    moved = [dataclasses.replace(run, targets=Values.visible(run.split, values + 1)) for run in runs]
    for other, what in ((moved, options), (runs, options_of(task("multi-task", weight=2.0), epochs=9))):
        with pytest.raises(OptionError, match="belongs to other data, runs or options"):
            fit(problem, other, what, device="cpu", state=caught.value.state)


@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
def test_the_gradient_of_confident_predictions(scale: float) -> None:
    """Probabilities below float32's range: as torch has it, and finite."""
    problem, labels = small_problem(classes=5)
    runs = [make_run(problem, labels, seed) for seed in range(3)]
    torch.manual_seed(0)
    logits = (scale * torch.randn(problem.nodes, 3, 5)).requires_grad_()
    objective = NodeClassification().objective(problem, runs, torch.device("cpu"))
    (found,) = torch.autograd.grad(objective.loss(logits, {}).sum(), [logits])
    for r, run in enumerate(runs):
        train = torch.from_numpy(run.split.train)
        truth = torch.from_numpy(np.asarray(run.labels))[train]
        loss = torch.nn.functional.cross_entropy(logits[:, r][train], truth)
        (expected,) = torch.autograd.grad(loss, [logits])
        torch.testing.assert_close(found[:, r], expected[:, r], rtol=1e-5, atol=1e-30)


def test_a_run_is_selected_by_its_validation_loss() -> None:
    """A second head changes what is selected: not the accuracy, and not the cross entropy alone."""
    problem, runs, _, _ = node_runs()
    options = options_of(task("multi-task", weight=100.0), epochs=40, patience=None)
    heavy = fit(problem, runs, options, device="cpu")
    alone = fit(problem, runs, dataclasses.replace(options, task=task("node-classification")), device="cpu")
    assert (heavy.best_epoch != alone.best_epoch).any()
    best = int(heavy.best_epoch[0])
    short = fit(problem, runs[:1], dataclasses.replace(options, epochs=best), device="cpu")
    assert short.validation_loss[0] == pytest.approx(heavy.validation_loss[0], rel=1e-4)


def test_validation_metrics_equal_sklearn() -> None:
    problem, runs, labels, values = node_runs()
    outcome = fit(problem, runs, options_of(task("multi-task"), epochs=15), device="cpu")
    for r, run in enumerate(runs):
        nodes = run.split.validation
        classes, numbers = outcome.outputs["classes"][r][nodes], outcome.outputs["values"][r][nodes]
        expected = {
            "accuracy": metrics.accuracy_score(labels[nodes], classes),
            "macro_f1": metrics.f1_score(labels[nodes], classes, average="macro", zero_division=0.0),
            "mae": metrics.mean_absolute_error(values[nodes], numbers),
            "rmse": metrics.root_mean_squared_error(values[nodes], numbers),
            "r2": metrics.r2_score(values[nodes], numbers),
        }
        assert {name: value[r] for name, value in outcome.metrics.items()} == pytest.approx(expected, rel=1e-5)


def test_scores_of_sets_equal_sklearn() -> None:
    problem, runs, sets = set_runs()
    outcome = fit(problem, runs, options_of(task("regression", loss="yes-no"), epochs=15), device="cpu")
    for part in ("validation", "test"):
        for r, run in enumerate(runs):
            nodes, guess = getattr(run.split, part), outcome.outputs["values"][r] > 0.5
            there = sets[nodes].any(axis=0) | guess[nodes].any(axis=0)  # sklearn counts labels that nobody has as 0
            expected = {
                f"{way}_f1": metrics.f1_score(sets[nodes][:, there], guess[nodes][:, there], average=way)
                for way in ("micro", "macro")
            }
            found = score_values(outcome.outputs["values"][r], sets, nodes, loss_of("yes-no"))
            measured = outcome.metrics if part == "validation" else found
            assert {name: value[r if part == "validation" else 0] for name, value in measured.items()} == (
                pytest.approx(expected)
            )
            assert found["micro_f1"].shape == (1,)
    assert outcome.metrics["micro_f1"].min() > 0.3


def test_test_scores_equal_sklearn() -> None:
    problem, runs, labels, values = node_runs(count=3)
    nodes = runs[0].split.test
    outcome = fit(problem, [runs[0]] * 2, options_of(task("multi-task"), epochs=15), device="cpu")
    classes, numbers = outcome.predictions, outcome.outputs["values"]
    found = score_classes(classes, labels, nodes) | score_values(numbers, values, nodes)
    assert found["accuracy"].shape == found["r2"].shape == (2,)
    f1 = metrics.f1_score(labels[nodes], classes[0][nodes], average="macro", zero_division=0.0)
    assert found["macro_f1"][0] == pytest.approx(f1)
    assert found["rmse"][0] == pytest.approx(metrics.root_mean_squared_error(values[nodes], numbers[0][nodes]))
    assert found["mae"][1] == pytest.approx(metrics.mean_absolute_error(values[nodes], numbers[1][nodes]))
    assert found["r2"][1] == pytest.approx(metrics.r2_score(values[nodes], numbers[1][nodes]))
    none = np.empty(0, int)
    for call in (lambda: score_classes(classes, labels, none), lambda: score_values(numbers, values, none)):
        with pytest.raises(DataError, match="no nodes to score"):
            call()
    with pytest.raises(DataError, match="without a finite value cannot be scored"):
        score_values(numbers, np.where(np.arange(len(values)) == nodes[0], np.nan, values), nodes)


@pytest.mark.parametrize("seed", range(5))
def test_metrics_equal_sklearn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth, guess = rng.integers(0, 2 + seed, 50), rng.integers(0, 4, 50)
    expected = metrics.f1_score(truth, guess, average="macro", zero_division=0.0)
    assert macro_f1(truth, guess) == pytest.approx(expected)
    # Rounded scores: many ties, within and between both sides.
    high, low = (rng.normal(0.3, 1, 30) * 2).round(seed) / 2, (rng.normal(0, 1, 45) * 2).round(seed) / 2
    scores, linked = np.concatenate([high, low]), np.repeat([1, 0], [30, 45])
    assert roc_auc(high, low) == pytest.approx(metrics.roc_auc_score(linked, scores))
    assert average_precision(high, low) == pytest.approx(metrics.average_precision_score(linked, scores))
    values, found = rng.normal(size=20), rng.normal(size=20)
    assert r_squared(values, found) == pytest.approx(metrics.r2_score(values, found))
    assert root_mean_squared_error(values, found) == pytest.approx(metrics.root_mean_squared_error(values, found))
    assert mean_absolute_error(values, found) == pytest.approx(metrics.mean_absolute_error(values, found))


def test_metrics_at_their_edges() -> None:
    assert roc_auc([1.0], [1.0]) == 0.5
    none, one = np.zeros((2, 2), bool), np.array([[True, False], [True, False]])
    assert (set_micro_f1(none, none), set_macro_f1(none, none)) == (0.0, 0.0)
    assert (set_micro_f1(one, one), set_macro_f1(one, one)) == (1.0, 1.0)  # a label that nobody has counts for nothing
    assert average_precision([2.0], [1.0]) == 1.0
    assert average_precision([1.0, 1.0], [1.0, 1.0]) == 0.5
    assert macro_f1(np.array([0, 0]), np.array([0, 0])) == 1.0
    flat = np.ones(3)
    assert (r_squared(flat, flat), r_squared(flat, flat + 1)) == (1.0, 0.0)
    assert np.isnan(r_squared(flat[:1], flat[:1]))


def test_a_run_that_fails_at_once_has_no_metrics() -> None:
    problem, runs, _, values = node_runs(count=2)
    huge = Values.visible(runs[0].split, values * 1e30)
    broken = dataclasses.replace(runs[0], targets=huge)
    outcome = fit(problem, [broken, runs[1]], options_of(task("regression"), epochs=5), device="cpu")
    assert outcome.failed.tolist() == [True, False]
    assert outcome.best_epoch[0] == 0
    for name in ("mae", "rmse", "r2"):
        assert np.isnan(outcome.metrics[name]).tolist() == [True, False]


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("regression", {"targets": None}, r"regression needs targets=Values.visible\(split, values\)"),
        ("regression", {"targets": Values(np.zeros(3))}, r"40 nodes need 40 values, got \(3,\)"),
        ("regression", {"targets": Values(np.zeros(40))}, r"must be hidden \(NaN\)"),
        ("regression", {"targets": Values(np.full(40, np.nan))}, "needs a finite value"),
        ("regression", {"labels": np.zeros(40, int)}, r"must be hidden \(-1\)"),
        ("node-classification", {"targets": Values(np.zeros(40))}, r"must be hidden \(NaN\)"),
        ("multi-task", {"targets": None}, r"regression needs targets=Values"),
        ("multi-task", {"labels": np.zeros(40, int)}, r"must be hidden \(-1\)"),
        ("node-classification", {"labels": np.empty(0, int)}, r"40 nodes need 40 labels, got \(0,\)"),
    ],
)
def test_wrong_targets_are_refused(name: str, change: dict[str, object], message: str) -> None:
    problem, runs, _, _ = node_runs(count=1)
    with pytest.raises(DataError, match=message):
        fit(problem, [dataclasses.replace(runs[0], **change)], options_of(task(name)), device="cpu")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("regresion", {}, "unknown task 'regresion'; did you mean 'regression'?"),
        ("regression", {"weight": 1.0}, "task regression has no option 'weight'; it has: loss"),
        ("regression", {"loss": "huber"}, "loss must be one of squared, absolute, yes-no, got 'huber'"),
        ("multi-task", {"weight": 0.0}, "weight must be finite and > 0, got 0.0"),
        ("link-prediction", {"width": 0}, "width must be a whole number of at least 1, got 0"),
        ("link-prediction", {"loss": "hinge"}, "loss must be one of cross-entropy, pairwise, got 'hinge'"),
    ],
)
def test_wrong_names_and_options_are_refused(name: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        task(name, **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_registry() -> None:
    assert task_names() == ("link-prediction", "multi-task", "node-classification", "regression")
    assert Options().task == task("node-classification")
    with pytest.raises(ValueError, match="'regression' is registered twice"):
        register_task("regression")(NodeClassification)


def test_what_only_some_tasks_have() -> None:
    problem, runs, _, _ = node_runs(count=1)
    outcome = fit(problem, runs, options_of(task("regression"), epochs=2), device="cpu")
    with pytest.raises(OptionError, match="has no accuracy; its metrics are mae, rmse, r2"):
        outcome.validation_accuracy  # noqa: B018
    with pytest.raises(OptionError, match="predicts no classes"):
        outcome.predictions  # noqa: B018
    assert outcome.record["task"] == {"name": "regression", "options": {"loss": "squared"}}


def test_the_two_heads_share_the_hidden_layer() -> None:
    problem, labels = small_problem()
    plain = make_run(problem, labels, 1)
    values = Values.visible(plain.split, np.arange(40) / 40)
    run = dataclasses.replace(plain, targets=values)
    options = options_of(task("multi-task"), epochs=5)
    outcome = fit(problem, [run], options, device="cpu")
    assert outcome.parameters["weight1"].shape == (1, 12, 8)
    assert outcome.parameters["weight2"].shape == (1, 8, problem.classes + 1)
