"""Every method through the stages of `dvc.yaml`, command by command, with the numbers of `ldp run`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from cell_factory import NAME, rows, run, store

from graphldp import methods
from graphldp.cli import app, console
from graphldp.stages.files.artifacts import read_meta
from graphldp.stages.files.paths import runs_path
from graphldp.stages.grids.cell import Cell
from graphldp.stages.grids.params import Params, load

ROOT = Path(__file__).resolve().parents[2]
EPSILON = 4.1  # of which neither round's share is a round number
PARTS: dict[str, dict[str, Any]] = {
    "Rounds": {"first": 0.3, "m_from": "total", "score_by": "mi", "score_steps": 1, "rho": 1.0, "reuse": True},
    "Survey": {"teachers": 0.4, "first": 0.6, "narrowed": 2, "features": 12, "last": 6},
}
OWN = ("majority", "structure", "nonpriv")  # in every table by themselves


def grid() -> dict[str, Any]:
    """Return params.yaml with a row of every method that learns."""
    rows = []
    for name in methods.names():
        if name not in OWN:
            asked = PARTS.get(type(methods.method(name).asking).__name__, {})
            rows.append({"name": f"row-{name}", "method": name, "set": {f"method.{k}": v for k, v in asked.items()}})
    return {
        "seed": 5,
        "datasets": [NAME],
        "epsilons": [EPSILON],
        "seeds": 2,
        "rows": rows,
        "search": {
            **{"points": 2, "seeds": 1, "learning_rate": [0.02], "weight_decay": [0.001], "dropout": [0.25, 0.5]},
            "steps": [1, 2],
        },
        "train": {"hidden": 4, "epochs": 5, "patience": 5, "train_fraction": 0.4, "validation_fraction": 0.2},
        "evaluate": {"confidence": 0.9},
    }


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which every command of the pipeline has run, in this process."""
    folder = tmp_path_factory.mktemp("every")
    (folder / "params.yaml").write_text(yaml.safe_dump(grid()))
    shutil.copytree(ROOT / "papers", folder / "papers")
    store(folder / "data")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for stage in ("perturb", "denoise", "train --jobs 1"):
            command = f"{stage} --grid params.yaml --dataset {NAME} --quiet"
            assert app.main(command.split()) == 0, command
        assert app.main(["evaluate", "--quiet"]) == 0
    console.set_quiet(False)
    return folder


def cells(params: Params) -> dict[str, Cell]:
    return {cell.method: cell for cell in params.cells()}


@pytest.mark.slow
def test_every_method_has_a_row_in_the_table(project: Path) -> None:
    table = (project / "results" / "tables" / "main.csv").read_text(encoding="utf-8").splitlines()
    assert sorted(line.split(",")[2] for line in table[1:]) == sorted(methods.names())


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in methods.names() if methods.method(name).model])
def test_the_stages_give_the_numbers_of_one_command(name: str, project: Path) -> None:
    params = load(project / "params.yaml")
    cell = cells(params)[name]
    path = runs_path(project / "data", NAME, cell.name, cell.epsilon)
    (row,) = run(
        NAME, name, cell.mechanism, cell.epsilon, data=project / "data", params=params, changes=cell.changes,
        references=False,
    )  # fmt: skip
    found = [one["test_accuracy"] for one in rows(path, "final")]
    np.testing.assert_array_equal(found, row.accuracy)
    meta = read_meta(path, "x")
    assert meta["chosen_point"] == row.chosen
    assert {key: meta["search"][key] for key in ("points", "tried")} == {
        key: row.search[key] for key in ("points", "tried")
    }
    spends = [spend["epsilon"] for spend in meta["ledger"]]
    assert sum(map(float, spends)) == pytest.approx(cell.epsilon)
    assert meta["m"] == row.m
