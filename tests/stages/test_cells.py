"""Cells are computed once, whoever needs them, and by one process at a time."""

from __future__ import annotations

import multiprocessing
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cell_factory import NAME, accuracies, calibrate, small_params, store

from graphldp.experiment.plan import Devices, plan_of
from graphldp.methods import method
from graphldp.stages import cells
from graphldp.stages.cells import Cells, cell_mark
from graphldp.stages.experiment import plan, run_cells
from graphldp.stages.graphs import graph_hash, read_graph
from graphldp.stages.params import Params, RowParams
from graphldp.stages.paths import graph_dir, runs_path
from graphldp.stages.train import train

PARAMS = small_params(seeds=2, search_seeds=1, points=1, epochs=5)
GRID = Params(
    **{part: getattr(PARAMS, part) for part in ("seeds", "search", "train")},
    datasets=(NAME,),
    epsilons=(1.0,),
    rows=(RowParams(name="lpgnn", method="lpgnn", mechanism="mb"),),
)


def mark(data: Path, params: Any = PARAMS, **changes: Any) -> str:
    folder = graph_dir(data, NAME)
    given = {"recipe": method("lpgnn"), "mechanism": "mb", "epsilon": 1.0, "options": {}, **changes}
    devices = Devices(graph=read_graph(folder), params=params, **given)
    return cell_mark(plan_of(devices, params), params, graph_hash(folder))


def test_a_cell_is_known_by_all_that_decides_its_numbers(tmp_path: Path) -> None:
    store(tmp_path)
    others = [
        mark(tmp_path, mechanism="pm"),
        mark(tmp_path, epsilon=2.0),
        mark(tmp_path, options={"m": 2}),
        mark(tmp_path, recipe=method("upgnet-nh")),
        mark(tmp_path, small_params(seeds=3, search_seeds=1, points=1, epochs=5)),
    ]
    assert len({mark(tmp_path), *others}) == 1 + len(others)
    assert mark(tmp_path) == mark(tmp_path)


def test_the_pipeline_and_an_experiment_share_a_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store(tmp_path)
    what = plan(GRID, tmp_path, fetch=False)
    run_cells(what, tmp_path, "cpu")
    mine = runs_path(tmp_path, NAME, "lpgnn", 1.0)
    before = accuracies(mine)
    mine.unlink()
    calibrate(tmp_path, PARAMS)
    monkeypatch.setattr(cells, "learn_cell", None)  # whoever computes anything fails
    train(NAME, "lpgnn", "mb", 1.0, data=tmp_path, params=PARAMS, device="cpu")
    np.testing.assert_array_equal(accuracies(mine), before)


def test_a_damaged_cell_is_computed_again(tmp_path: Path) -> None:
    store(tmp_path)
    calibrate(tmp_path, PARAMS)
    path = train(NAME, "lpgnn", "mb", 1.0, data=tmp_path, params=PARAMS, device="cpu")
    before = path.read_bytes()
    (kept,) = (tmp_path / "cells").glob("*.parquet")
    kept.write_bytes(kept.read_bytes()[:100])
    assert train(NAME, "lpgnn", "mb", 1.0, data=tmp_path, params=PARAMS, device="cpu").read_bytes() == before


def hold(data: Path, name: str, ready: Any) -> None:
    with cells._lock(data / "cells" / f"{name}.claim", wait=True):
        ready.set()
        time.sleep(600)


def test_a_claim_ends_with_its_process(tmp_path: Path) -> None:
    store = Cells(tmp_path)
    assert store.free("a")
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    other = context.Process(target=hold, args=(tmp_path, "a", ready), daemon=True)
    other.start()
    assert ready.wait(60)
    assert not store.free("a")
    other.kill()
    other.join()
    assert store.free("a")
