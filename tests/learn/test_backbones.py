"""What every backbone of the folder owes: an oracle that is not our code, and a memory estimate that holds."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch
from learn_factory import make_run, small_problem

from graphldp.learn import Backbone, Options, model
from graphldp.learn import models as registered
from graphldp.learn.engine import Trainer
from graphldp.learn.models import __path__ as FOLDER

HERE = Path(__file__).parent
ORACLE = ("check_outputs_and_gradients", "check_training")  # of `pyg_factory`, one run at a time


def own() -> list[str]:
    """Return the names of the backbones of the folder; other tests register some of their own."""
    names = [f"graphldp.learn.models.{found.name}" for found in pkgutil.iter_modules(FOLDER)]
    classes = [one for name in names for one in vars(importlib.import_module(name)).values() if isinstance(one, type)]
    return sorted(
        {one.name for one in classes if issubclass(one, Backbone) and one.__dict__.get("name") in registered()}
    )


def owed(name: str, folder: Path = HERE) -> list[str]:
    """Return which comparisons with a model that is not ours a backbone's test lacks."""
    path = folder / f"test_{name}.py"
    if not path.exists():
        return [path.name]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return [one for one in ORACLE if one not in called]


@pytest.mark.parametrize("name", own())
def test_every_backbone_has_an_oracle(name: str) -> None:
    assert not owed(name), f"tests/learn/test_{name}.py has to compare {name} with another implementation: {owed(name)}"


def test_a_backbone_without_an_oracle_is_refused(tmp_path: Path) -> None:
    assert owed("new", tmp_path) == ["test_new.py"]
    (tmp_path / "test_new.py").write_text("def test_it_runs():\n    check_training()\n")
    assert owed("new", tmp_path) == ["check_outputs_and_gradients"]


def kept_and_counted(net: Backbone) -> tuple[int, int]:
    """Return the bytes that autograd keeps for an update of two runs, and what is counted for them before it."""
    problem, labels = small_problem(nodes=300)
    runs = [make_run(problem, labels, seed, dropout=0.5) for seed in range(2)]
    trainer = Trainer(problem, runs, Options(model=net), torch.device("cpu"))
    batch, parameters = trainer.batch([0, 1]), trainer.initial([0, 1])
    for value in parameters.values():
        value.requires_grad_()
    found: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        found[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    batch.noise.start(0)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        outputs = trainer.model.head(parameters, batch, trainer.model.trunk(parameters, batch), batch.noise)
    assert outputs.requires_grad
    return sum(found.values()), trainer._estimate([0, 1])


def larger(net: Backbone) -> list[dict[str, Any]]:
    """Return options that make a backbone larger: each whole number of it raised."""
    numbers = [one.name for one in fields(net) if isinstance(getattr(net, one.name), int)]  # type: ignore[arg-type]
    numbers = [name for name in numbers if not isinstance(getattr(net, name), bool)]
    return [{name: 2 * getattr(net, name) + 4} for name in numbers]


@pytest.mark.parametrize("name", own())
def test_what_a_backbone_keeps_is_counted_however_large_it_is(name: str) -> None:
    net = model(name)
    kept, counted = kept_and_counted(net)
    assert kept < counted
    for options in larger(net):
        more, estimated = kept_and_counted(model(name, **options))
        assert more < estimated, options
        assert more - kept <= max(estimated - counted, 0.05 * kept), f"{name}: what {options} adds is not counted"
