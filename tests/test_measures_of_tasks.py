"""Every registered task is measured, by the metrics that it trains with."""

from __future__ import annotations

import pytest

from graphldp.errors import OptionError
from graphldp.experiment.options import TrainParams
from graphldp.experiment.parts import task_of
from graphldp.learn import task, task_names
from graphldp.measures import DEFAULT_TASK, canonical_task, measures_of, tasks


def test_every_task_has_measures_and_every_measure_a_task() -> None:
    assert {measures_of(name).learner or name for name in tasks()} == set(task_names())
    assert tasks()[0] == DEFAULT_TASK == "node-classification"
    for name in tasks():
        assert measures_of(name).names == tuple(task_of(TrainParams(task=name)).metrics())


def test_the_headlines() -> None:
    found = {name: measures_of(name).headline for name in tasks()}
    assert {name: one.name for name, one in found.items()} == {
        "node-classification": "accuracy",
        "link-prediction": "auc",
        "regression": "mae",
        "multi-task": "accuracy",
        "multi-label": "micro_f1",
    }
    assert found["link-prediction"].heading == "AUC in percent"
    assert found["regression"].heading == "MAE (less is better)"
    assert (found["regression"].sign, found["link-prediction"].sign) == (-1, 1)


def test_names_are_written_one_way() -> None:
    assert canonical_task("link_prediction") == canonical_task("link-prediction") == "link-prediction"
    assert task("multi_task") == task("multi-task")
    with pytest.raises(OptionError, match="unknown task 'links'"):
        measures_of("links")
