"""Cells are computed once, whoever needs them, and by one process at a time."""

from __future__ import annotations

import multiprocessing
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import torch
from cell_factory import NAME, accuracies, calibrate, rows, small_params, store

from graphldp.errors import ArtifactError
from graphldp.experiment.plan import Devices, plan_of
from graphldp.methods import method
from graphldp.stages.experiment import plan, run_cells
from graphldp.stages.files import cells
from graphldp.stages.files.cells import Cells, cell_mark
from graphldp.stages.files.graphs import graph_hash, read_graph
from graphldp.stages.files.paths import calibrated_of, graph_dir, runs_path
from graphldp.stages.files.shared_work import claimed
from graphldp.stages.grid import denoise_grid, perturb_grid, train_grid
from graphldp.stages.grids.cell import Cell
from graphldp.stages.grids.params import Params, RowParams
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


def make_grid(data: Path) -> None:
    perturb_grid(GRID, NAME, data)
    denoise_grid(GRID, NAME, data)


def calibrated(data: Path) -> Path:
    (cell,) = (cell for cell in GRID.cells() if cell.name == "lpgnn")
    return calibrated_of(data, cell)


def rewrite(path: Path) -> None:
    """Turn every value around, and leave what the file says of itself."""
    table, groups = pq.read_table(path), pq.ParquetFile(path).num_row_groups
    place, column = table.column_names.index("value"), table.column("value").combine_chunks()
    negative = pa.FixedSizeListArray.from_arrays(pc.negate(column.flatten()), column.type.list_size)
    turned = table.set_column(place, table.schema.field("value"), negative.cast(column.type))
    pq.write_table(turned, path, row_group_size=len(table) // groups)


@pytest.mark.slow
def test_the_pipeline_and_an_experiment_share_a_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store(tmp_path)
    what = plan(GRID, tmp_path, fetch=False)
    run_cells(what, tmp_path, "cpu")
    mine = runs_path(tmp_path, NAME, "lpgnn", 1.0)
    before = accuracies(mine)
    shutil.rmtree(mine.parent)
    make_grid(tmp_path)
    monkeypatch.setattr(cells, "learn_cell", None)  # whoever computes anything fails
    train_grid(GRID, NAME, tmp_path, device="cpu")
    np.testing.assert_array_equal(accuracies(mine), before)


def test_a_changed_artifact_is_learned_from_and_not_answered_from_the_store(tmp_path: Path) -> None:
    store(tmp_path)
    path = calibrate(tmp_path, PARAMS)
    runs = train(
        Cell(dataset=NAME, method="lpgnn", mechanism="mb", epsilon=1.0), data=tmp_path, params=PARAMS, device="cpu"
    )
    before = rows(runs)
    rewrite(path)
    assert (
        rows(
            train(
                Cell(dataset=NAME, method="lpgnn", mechanism="mb", epsilon=1.0),
                data=tmp_path,
                params=PARAMS,
                device="cpu",
            )
        )
        != before
    )


def test_the_pipeline_refuses_what_it_has_not_made(tmp_path: Path) -> None:
    store(tmp_path)
    make_grid(tmp_path)
    rewrite(calibrated(tmp_path))
    with pytest.raises(ArtifactError, match="is not what this grid and this code make"):
        train_grid(GRID, NAME, tmp_path, device="cpu")
    assert not (tmp_path / "cells").exists()
    assert calibrated(tmp_path) not in denoise_grid(GRID, NAME, tmp_path).there
    train_grid(GRID, NAME, tmp_path, device="cpu")


def test_another_kind_of_device_and_another_limit_of_memory_are_another_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = store(tmp_path)
    devices = Devices(graph=graph, params=PARAMS, recipe=method("lpgnn"), mechanism="mb", epsilon=1.0, options={})
    points = plan_of(devices, PARAMS)
    monkeypatch.setattr(cells, "resolve_device", torch.device)
    marks = [
        cell_mark(points, PARAMS, "sha256:0", *how)
        for how in (("cpu", None), ("cuda", None), ("cpu", 1 << 20), ("cpu", 1 << 21))
    ]
    assert len(set(marks)) == 4
    assert cell_mark(points, PARAMS, "sha256:0", "cuda:1") == marks[1]


def test_a_damaged_cell_is_computed_again(tmp_path: Path) -> None:
    store(tmp_path)
    calibrate(tmp_path, PARAMS)
    path = train(
        Cell(dataset=NAME, method="lpgnn", mechanism="mb", epsilon=1.0), data=tmp_path, params=PARAMS, device="cpu"
    )
    before = path.read_bytes()
    (kept,) = (tmp_path / "cells").glob("*.parquet")
    kept.write_bytes(kept.read_bytes()[:100])
    assert (
        train(
            Cell(dataset=NAME, method="lpgnn", mechanism="mb", epsilon=1.0), data=tmp_path, params=PARAMS, device="cpu"
        ).read_bytes()
        == before
    )


def hold(data: Path, name: str, ready: Any) -> None:
    with claimed(data / "cells" / f"{name}.claim", wait=True):
        ready.set()
        time.sleep(600)


@pytest.mark.slow
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
