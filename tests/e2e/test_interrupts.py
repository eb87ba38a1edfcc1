"""Ctrl-C, and worse, in the middle of a real process: one line, nothing half-written, nothing lost that was kept."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cell_factory import NAME, calibrate, files, small_params, store
from ldp_process import LIMIT, environment, forked, stopped

from graphldp.learn import State
from graphldp.stages.files.artifacts import read_meta
from graphldp.stages.files.paths import reports_path, runs_path

PERTURB = ("perturb", "--dataset", NAME, "--epsilon", 1, "--seeds", 40)
TRAIN = ("train", "--dataset", NAME, "--epsilon", 1, "--seeds", 3, "--search-points", 3, "--epochs", 30)
REPORTS = reports_path(Path("data"), NAME, "mb", 1.0)
RUNS = runs_path(Path("data"), NAME, "lpgnn", 1.0)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    store(tmp_path / "data")
    return tmp_path


@pytest.mark.parametrize(
    ("number", "code", "line"),
    [
        (signal.SIGINT, 130, "interrupted: ldp perturb stopped; nothing half-written\n"),
        (signal.SIGTERM, 130, "interrupted: ldp perturb stopped; nothing half-written\n"),
    ],
)
def test_perturb_that_is_stopped_leaves_nothing(number: int, code: int, line: str, here: Path) -> None:
    before = files(here)
    answer = stopped(number, "mb", 5, *PERTURB, cwd=here)
    assert (answer.returncode, answer.stdout, answer.stderr) == (code, "", line)
    assert files(here) == before


@pytest.mark.slow
def test_perturb_that_is_killed_leaves_no_artifact_and_is_no_obstacle(here: Path) -> None:
    before = files(here)
    answer = stopped(signal.SIGKILL, "mb", 5, *PERTURB, cwd=here)
    assert answer.returncode == -signal.SIGKILL
    (left,) = set(files(here)) - set(before)
    assert Path(left).parent == REPORTS.parent
    assert left.endswith(".partial")  # which git and dvc ignore
    assert forked(*PERTURB, "--quiet", cwd=here).returncode == 0
    assert len(read_meta(here / REPORTS, "x")["seeds"]) == 40


@pytest.mark.slow
def test_train_that_is_stopped_goes_on_and_ends_as_if_it_had_not_been(here: Path) -> None:
    calibrate(here / "data", small_params(seeds=3, search_seeds=2))
    before = files(here)
    assert forked(*TRAIN, "--output", "whole.parquet", cwd=here).returncode == 0
    shutil.rmtree(here / "data/cells")  # it is to be trained again
    for number, phase in ((signal.SIGINT, "search"), (signal.SIGTERM, "final")):
        answer = stopped(number, phase, 6, *TRAIN, cwd=here)
        line = "interrupted: ldp train stopped; nothing half-written; the same command goes on from there\n"
        assert (answer.returncode, answer.stdout, answer.stderr) == (130, "", line)
        left = {file for file in files(here) if file not in before and not file.startswith("whole.")}
        assert {Path(file).parent.as_posix() for file in left} == {"data/cells"}
        assert {file.partition(".resume.")[2] for file in left} == {"json", "safetensors"}
    answer = forked(*TRAIN, cwd=here)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert (here / RUNS).read_bytes() == (here / "whole.parquet").read_bytes()
    assert not [file for file in files(here) if ".resume." in file or file.endswith(".partial")]


@pytest.mark.slow
@pytest.mark.parametrize("command", ["attack", "selection"])
def test_a_measurement_that_is_stopped_leaves_nothing(command: str, here: Path) -> None:
    before = files(here)
    answer = stopped(signal.SIGINT, "pm", 2, command, "--dataset", NAME, "-m", "pm", "-e", 8, cwd=here)
    line = f"interrupted: ldp {command} stopped; nothing half-written\n"
    assert (answer.returncode, answer.stdout, answer.stderr) == (130, "", line)
    assert files(here) == before


GRID = {
    "title": "Two long cells",
    "datasets": [NAME],
    "epsilons": [1, 2],
    "seeds": 1,
    "rows": [{"method": "lpgnn"}],
    "search": {"points": 1, "seeds": 1, "learning_rate": [0.05], "weight_decay": [0], "dropout": [0.25], "steps": [0]},
    "train": {"hidden": 4, "epochs": 10**7, "patience": 10**7},
}


def until(met: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT
    while not met():
        assert time.monotonic() < end
        time.sleep(0.05)


def reached(here: Path) -> dict[str, int]:
    """Return how many epochs the batch has had in which each cell was stopped."""
    states = {path.name: State.from_bytes(path.read_bytes()) for path in (here / "data/cells").glob("*.safetensors")}
    return {name: min(group.epoch for group in state.groups) for name, state in states.items()}


@pytest.mark.slow
def test_each_process_of_a_grid_that_is_stopped_keeps_the_batch_that_it_was_in(here: Path) -> None:
    """Whoever is told: a terminal tells all of them, a group is told twice, and a first process that is killed none."""
    (here / "long.yaml").write_text(json.dumps(GRID), encoding="utf-8")
    cells = here / "data/cells"
    before: dict[str, int] = {}
    for number, tell in (
        (signal.SIGINT, os.killpg),
        (signal.SIGTERM, os.killpg),
        (signal.SIGKILL, os.kill),
    ):
        with subprocess.Popen(
            [sys.executable, "-m", "graphldp.cli", "experiment", "long.yaml", "--jobs", "2"],
            cwd=here,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            until(lambda: len(list(cells.glob("*.claim"))) == 2)
            time.sleep(1.5)  # by which both have taken up what is there, and train
            tell(process.pid, number)
            said = process.communicate(timeout=LIMIT)[1]
        if number == signal.SIGKILL:
            (changed,) = [name for name, epochs in reached(here).items() if epochs > before[name]]
            assert (cells / changed).with_suffix(".json").exists()
            continue
        assert (
            said == "interrupted: ldp experiment stopped; nothing half-written; the same command goes on from there\n"
        )
        assert not list(cells.glob("*.claim"))
        now = reached(here)
        assert len(now) == 2
        assert all(epochs > before.get(name, 0) for name, epochs in now.items())
        before = now
