from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from learn_factory import small_problem, varied_runs
from task_factory import LINK_TASKS, NODE_TASKS, link_runs, node_runs, options_of, set_runs

from graphldp.errors import ArtifactError, DataError, OptionError
from graphldp.learn import (
    NodeInputs,
    Options,
    TrainedModel,
    Values,
    fit,
    link_scores,
    model,
    pack,
    predict,
    predictions,
    task,
    trained,
    unpack,
)
from graphldp.ledger import Ledger, Spend

SPENT = Ledger(spends=(Spend(what="features", epsilon=1.0, draws=("0", "1", "-1")),))


@pytest.mark.parametrize("kinds", [("sparse", "sparse"), ("dense", "sparse")])
def test_a_saved_model_predicts_what_was_trained(kinds: tuple[str, ...]) -> None:
    problem, labels = small_problem(kinds=kinds)
    runs = varied_runs(problem, labels)
    net = model("gcn", hidden=8)
    outcome = fit(problem, runs, Options(model=net, epochs=15), device="cpu")
    for r, run in enumerate(runs):
        kept = trained(problem, run, outcome, r, net, spent=SPENT, about={"names": ["a", "b", "c"]})
        weights, recipe = pack(kept)
        back = unpack(weights, json.loads(json.dumps(recipe)))
        assert back.spent == SPENT
        assert back.about == {"names": ["a", "b", "c"]}
        assert back.backbone == net
        found = predict(back, problem.inputs[run.inputs], problem.shift, problem.adjacency, device="cpu")
        assert found.shape == (problem.nodes, problem.classes)
        np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)
        np.testing.assert_array_equal(found.argmax(axis=1), outcome.predictions[r])
        truth = run.split.validation
        loss = -np.log(found[truth, labels[truth]]).mean()
        assert loss == pytest.approx(outcome.validation_loss[r], rel=1e-4)
        assert pack(back) == (weights, recipe), "packing again gives other bytes"


def test_a_model_works_on_another_graph() -> None:
    problem, labels = small_problem()
    runs = varied_runs(problem, labels, count=1)
    outcome = fit(problem, runs, Options(epochs=3), device="cpu")
    kept = trained(problem, runs[0], outcome, 0, Options().model, spent=Ledger())
    other, _ = small_problem(nodes=17, seed=4)
    assert predict(kept, other.inputs[0], other.shift, other.adjacency).shape == (17, 3)
    wrong = NodeInputs(deviations=np.zeros((17, 5), dtype=np.float32))
    with pytest.raises(DataError, match="trained on 12 dimensions, the inputs have 5"):
        predict(kept, wrong, other.shift, other.adjacency)


def test_what_does_not_belong_together_is_refused() -> None:
    problem, labels = small_problem()
    runs = varied_runs(problem, labels, count=2)
    outcome = fit(problem, runs, Options(epochs=2), device="cpu")
    one, two = (pack(trained(problem, runs[r], outcome, r, Options().model, spent=Ledger())) for r in range(2))
    with pytest.raises(ArtifactError, match="their hash differs"):
        unpack(one[0], two[1])
    with pytest.raises(ArtifactError, match="not a model's recipe"):
        unpack(one[0], {})
    with pytest.raises(ArtifactError, match="recipe is incomplete"):
        unpack(one[0], {key: value for key, value in one[1].items() if key != "coefficients"})
    with pytest.raises(ArtifactError, match="the model's parameters have the shapes"):
        unpack(one[0], one[1] | {"dimensions": 5})


def there_and_back(kept: TrainedModel) -> TrainedModel:
    weights, recipe = pack(kept)
    back = unpack(weights, json.loads(json.dumps(recipe)))
    assert pack(back) == (weights, recipe)
    return back


@pytest.mark.parametrize("name", NODE_TASKS)
def test_a_model_of_each_node_task_predicts_what_was_trained(name: str) -> None:
    problem, runs, _, values = node_runs()
    runs = [
        dataclasses.replace(run, targets=Values.visible(run.split, 100 + 7 * values, standardize=run.seed % 2 == 1))
        for run in runs
    ]
    if name == "sets":
        problem, runs, _ = set_runs()
    options = options_of(NODE_TASKS[name][0], epochs=12)
    outcome = fit(problem, runs, options, device="cpu")
    for r, run in enumerate(runs):
        back = there_and_back(trained(problem, run, outcome, r, options.model, spent=Ledger()))
        assert back.task == options.task
        graph = (problem.shift, problem.adjacency)
        found = predictions(back, problem.inputs[run.inputs], *graph, device="cpu")
        assert (found.probabilities is not None) == ("classes" in outcome.outputs)
        assert (found.values is not None) == ("values" in outcome.outputs)
        assert found.pairs is None
        if found.probabilities is not None:
            np.testing.assert_array_equal(found.probabilities.argmax(axis=1), outcome.predictions[r])
        else:
            with pytest.raises(OptionError, match=f"a model of {options.task.name} predicts no classes"):
                predict(back, problem.inputs[run.inputs], *graph)
        if found.values is not None:
            np.testing.assert_allclose(found.values, outcome.outputs["values"][r], rtol=1e-4)


@pytest.mark.parametrize("name", LINK_TASKS)
def test_a_link_predictor_scores_pairs_as_training_did(name: str) -> None:
    problem, runs, splits = link_runs(count=3)
    options = options_of(LINK_TASKS[name][0], epochs=12)
    outcome = fit(problem, runs, options, device="cpu")
    tests = [split.test for split in splits]
    expected = link_scores(problem, runs, options, outcome, tests, device="cpu")
    for r, run in enumerate(runs):
        back = there_and_back(trained(problem, run, outcome, r, options.model, spent=Ledger()))
        graph = problem.graph(run.graph)
        found = predictions(back, problem.inputs[run.inputs], graph.shift, graph.adjacency, device="cpu").pairs
        assert found is not None
        np.testing.assert_allclose(found.scores(tests[r]), expected[r], rtol=1e-4, atol=1e-5)


def test_a_recipe_of_another_task_does_not_fit_the_weights() -> None:
    problem, runs, _, _ = node_runs(count=1)
    outcome = fit(problem, runs, options_of(task("regression"), epochs=2), device="cpu")
    weights, recipe = pack(trained(problem, runs[0], outcome, 0, options_of(task("regression")).model, spent=Ledger()))
    with pytest.raises(ArtifactError, match="the model's parameters have the shapes"):
        unpack(weights, recipe | {"task": {"name": "multi-task", "options": {}}})
    with pytest.raises(ArtifactError, match="recipe is incomplete"):
        unpack(weights, {key: value for key, value in recipe.items() if key != "task"})
