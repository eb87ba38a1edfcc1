"""A task with a loss of its own is one file: here one of several numbers a node, which is put among the others."""

from __future__ import annotations

import dataclasses
import types
from typing import Any

import numpy as np
import pytest
import torch
from cell_factory import small_graph
from learn_factory import make_run, small_problem
from sklearn.metrics import f1_score
from task_factory import options_of, plain_task_fit

import graphldp
from graphldp import tasks
from graphldp.errors import DataError, OptionError
from graphldp.experiment.options import TrainParams
from graphldp.experiment.parts import task_of
from graphldp.learn import Problem, Run, Values, fit, pack, predictions, score_values, task, trained, unpack
from graphldp.ledger import Ledger
from graphldp.measures import measures_of

FILE = """
from graphldp.measures import share
from graphldp.tasks.base import TrainingLoss, Target, TaskEntry

F1 = share("micro_f1", "micro-F1", named=False)

def around(graph):
    import numpy as np
    each = np.eye(graph.classes)[graph.labels] * (graph.labels >= 0)[:, None]
    return (graph.adjacency() @ each > 0).astype(float)

def cross_entropy(outputs, targets):
    from torch.nn.functional import binary_cross_entropy_with_logits
    return binary_cross_entropy_with_logits(outputs, targets, reduction="none")

def scores(truth, guess):
    met = guess > 0.5
    return {"micro_f1": float(2 * (truth * met).sum() / max(1.0, truth.sum() + met.sum()))}

LOSS = TrainingLoss(name="binary", of=cross_entropy, predicts=lambda outputs: outputs.sigmoid(), measures=(F1,),
            scores=scores, standardized=False, several=True)
ENTRY = TaskEntry(task="around", title="classes around", learns=("numbers",), measures=(F1,), targets="classes around",
                  guess="the commonest", predicts="chances", public={"links": "the graph"}, learner="regression",
                  target=Target(name="classes around", of=around, private=False, loss=LOSS))
"""


@pytest.fixture(autouse=True)
def entry(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(tasks, "ENTRIES", dict(tasks.ENTRIES))
    monkeypatch.setattr(tasks, "LOSSES", dict(tasks.LOSSES))
    module = types.ModuleType("around")
    exec(FILE, module.__dict__)
    tasks.add(module.ENTRY)
    return module.ENTRY


def several_runs() -> tuple[Problem, list[Run], np.ndarray[Any, Any]]:
    problem, labels = small_problem()
    values = np.random.default_rng(3).integers(0, 2, (problem.nodes, problem.classes)).astype(float)
    runs = []
    for seed in range(3):
        split = make_run(problem, labels, seed).split
        runs.append(make_run(problem, labels, seed, targets=Values.visible(split, values), learning_rate=0.03))
    return problem, runs, values


def plain_losses(out: torch.Tensor, run: Run, head: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    assert isinstance(run.targets, Values)
    values = torch.from_numpy(run.targets.values)
    loss = torch.nn.functional.binary_cross_entropy_with_logits
    one, other = (
        loss(out[part].double(), values[part])
        for part in map(torch.from_numpy, (run.split.train, run.split.validation))
    )
    return one, other


def test_runs_equal_the_plain_way_and_what_they_predict_is_kept() -> None:
    problem, runs, values = several_runs()
    options = options_of(task("regression", loss="binary"), epochs=25, patience=None)
    outcome = fit(problem, runs, options, device="cpu")
    assert outcome.outputs["values"].shape == (len(runs), *values.shape)
    found = score_values(outcome.outputs["values"], values, runs[0].split.test, tasks.loss_of("binary"))
    for r, run in enumerate(runs):
        plain = plain_task_fit(problem, run, options, plain_losses)
        assert outcome.best_epoch[r] == plain.best_epoch
        assert outcome.validation_loss[r] == pytest.approx(plain.validation_loss, rel=1e-3)
        chances = torch.sigmoid(torch.as_tensor(plain.outputs)).numpy()
        np.testing.assert_allclose(outcome.outputs["values"][r], chances, rtol=2e-3, atol=2e-4)
        guess = outcome.outputs["values"][r] > 0.5
        for measured, nodes in ((outcome.metrics, run.split.validation), (found, runs[0].split.test)):
            expected = f1_score(values[nodes], guess[nodes], average="micro")
            assert measured["micro_f1"][r] == pytest.approx(expected)
        kept = unpack(*pack(trained(problem, run, outcome, r, options.model, spent=Ledger())))
        again = predictions(kept, problem.inputs[run.inputs], problem.shift, problem.adjacency, device="cpu")
        assert again.values is not None
        np.testing.assert_allclose(again.values, outcome.outputs["values"][r], rtol=1e-4, atol=1e-5)


def test_it_is_a_row_between_its_floor_and_its_ceiling() -> None:
    graph = small_graph()
    found = graphldp.run(graph, "lpgnn", mechanism="mb", epsilon=1.0, seeds=2, task="around", epochs=20)
    assert [len(row.scores["micro_f1"]) for row in found.rows] == [2, 2, 2, 2]
    guess, floor, _, ceiling = (row.score.mean for row in found.rows)
    assert 0 <= guess <= 100
    assert 50 < floor <= 100
    assert 50 < ceiling <= 100


def test_its_entry_is_all_that_there_is_to_say(entry: Any) -> None:
    assert measures_of("around") is entry
    assert tuple(task_of(TrainParams(task="around")).metrics()) == entry.names == ("micro_f1",)


def test_what_does_not_fit_is_refused(entry: Any) -> None:
    problem, runs, values = several_runs()
    one = [dataclasses.replace(run, targets=Values.visible(run.split, values[:, 0])) for run in runs]
    with pytest.raises(DataError, match="the loss 'binary' takes 3 numbers of each node, got one"):
        fit(problem, one, options_of(task("regression", loss="binary"), epochs=2), device="cpu")
    with pytest.raises(DataError, match="the loss 'squared' takes one number of each node, got 3"):
        fit(problem, runs, options_of(task("regression"), epochs=2), device="cpu")
    with pytest.raises(OptionError, match="multi-task learns one number of each node"):
        task("multi-task", loss="binary")
    with pytest.raises(OptionError, match="loss must be one of squared, absolute, yes-no, binary, got 'cubed'"):
        task("regression", loss="cubed")
    with pytest.raises(ValueError, match="'around' is there twice"):
        tasks.add(entry)
    other = dataclasses.replace(entry.target.loss, name="squared")
    with pytest.raises(ValueError, match="another loss has the name 'squared'"):
        tasks.add(dataclasses.replace(entry, task="further", target=dataclasses.replace(entry.target, loss=other)))
    with pytest.raises(ValueError, match="lack some of those of its loss"):
        dataclasses.replace(entry, measures=measures_of("regression").measures)
