"""Every method through the stages of `dvc.yaml`, command by command, with the numbers of `ldp run`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from cell_factory import NAME, rows, run, store
from ldp_process import environment

from graphldp import methods
from graphldp.cli import app, console
from graphldp.stages.artifacts import read_meta
from graphldp.stages.params import Cell, Params, load
from graphldp.stages.paths import runs_path

ROOT = Path(__file__).resolve().parents[2]
EPSILON = 4.1  # of which neither round's share is a round number
PARTS: dict[str, Any] = {"first": 0.3, "m_from": "total", "score_by": "mi", "score_steps": 1, "rho": 1, "reuse": True}
QUESTIONS: dict[str, Any] = {"teachers": 0.4, "first": 0.6, "narrowed": 2, "features": 12, "last": 6}


def grid() -> dict[str, Any]:
    """Return params.yaml with a row of every method that learns, in the list where it belongs."""
    lists: dict[str, list[dict[str, Any]]] = {"rows": [], "rounds": [], "surveys": [], "references": []}
    for name in methods.names():
        recipe = methods.method(name)
        if not recipe.model:
            continue
        row = {"name": f"row-{name}", "method": name, "mechanism": recipe.mechanism}
        if recipe.rows_under == "rounds":
            row |= PARTS
        if recipe.rows_under == "surveys":
            row |= QUESTIONS
        if recipe.rows_under == "references":
            row["epsilon"] = "inf" if recipe.mechanism == "identity" else 0
        lists[recipe.rows_under].append(row)
    return {
        "seed": 5,
        "datasets": [NAME],
        "epsilons": [EPSILON],
        "seeds": 2,
        "mechanisms": sorted({row["mechanism"] for row in lists["rows"]}),
        **lists,
        "search": {
            **{"points": 2, "seeds": 1, "learning_rate": [0.02], "weight_decay": [0.001], "dropout": [0.25, 0.5]},
            "steps": [1, 2],
        },
        "train": {"hidden": 4, "epochs": 5, "patience": 5, "train_fraction": 0.4, "validation_fraction": 0.2},
        "evaluate": {"resamples": 100},
    }


def commands(folder: Path) -> dict[str, list[str]]:
    """Return each stage's command, as DVC has resolved it, in an order in which they can run."""
    program = (
        "import networkx, json\n"
        "from dvc.repo import Repo\n"
        "graph = Repo('.').index.graph\n"
        "order = reversed(list(networkx.topological_sort(graph)))\n"
        "print(json.dumps({stage.addressing: stage.cmd.split() for stage in order}))\n"
    )
    done = subprocess.run(
        ["python", "-W", "ignore", "-c", program],
        cwd=folder, env=environment(), capture_output=True, text=True, check=True, timeout=100,
    )  # fmt: skip
    out: dict[str, list[str]] = yaml.safe_load(done.stdout)
    return out


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which every command of the pipeline has run, in this process."""
    folder = tmp_path_factory.mktemp("every")
    for name in ("dvc.yaml", ".dvcignore"):
        shutil.copy(ROOT / name, folder / name)
    (folder / ".dvc").mkdir()
    (folder / ".dvc" / "config").write_text("[core]\n    no_scm = true\n")
    (folder / "params.yaml").write_text(yaml.safe_dump(grid()))
    shutil.copytree(ROOT / "papers", folder / "papers")
    for name in ("graphldp", "stages"):
        (folder / name).symlink_to(ROOT / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for stage, (program, *arguments) in commands(folder).items():
            if stage.startswith("download"):
                store(folder / "data")
                continue
            assert program == "ldp"
            assert app.main(arguments) == 0, stage
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
    assert [one["test_accuracy"] for one in rows(path, "final")] == row.accuracy.tolist()
    meta = read_meta(path, "x")
    assert meta["chosen_point"] == row.chosen
    assert {key: meta["search"][key] for key in ("points", "tried", "run_epochs")} == {
        key: row.search[key] for key in ("points", "tried", "run_epochs")
    }
    spends = [spend["epsilon"] for spend in meta["ledger"]]
    assert sum(map(float, spends)) == pytest.approx(cell.epsilon)
    assert meta["m"] == row.m
