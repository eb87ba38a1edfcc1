"""Rows in files: the same numbers as in memory, read in any order, and nothing left behind."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp

from graphldp.datasets.synthetic import synthetic
from graphldp.errors import ArtifactError
from graphldp.learn import NodeInputs, Options, Outcome, Problem, Run, fit, model, random_split, unit_filter
from graphldp.server import shift
from graphldp.stages.files import filtered_inputs as stores
from graphldp.stages.files.filtered_inputs import ArrowStores


@pytest.fixture(params=[1, 7, 10**6])
def pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Transpose one row at a time, some, and all of them."""
    monkeypatch.setattr(stores, "PIECE", request.param * 4 * 10)
    return int(request.param)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "scratch"
    assert not list((tmp_path / "scratch").iterdir())


def test_rows_are_the_blocks_transposed(folder: Path, pieces: int) -> None:
    matrix = np.random.default_rng(0).standard_normal((23, 10)).astype(np.float32)
    with ArrowStores(folder) as make:
        writer = make(23, 10)
        for columns in (slice(0, 4), slice(4, 8), slice(8, 10)):
            writer.write(columns, np.asfortranarray(matrix[:, columns]))
        rows = writer.finish()
        assert rows.shape == (23, 10)
        for nodes in (np.arange(23), np.array([22, 0, 5, 5, 17]), np.array([3])):
            found = rows.take(nodes)
            np.testing.assert_array_equal(found, matrix[nodes])
            assert (found.dtype, found.flags.writeable) == (np.float32, True)
        (place,) = folder.iterdir()
        (file,) = place.iterdir()  # the blocks are gone
        with pa.memory_map(str(file)) as source:
            table = pa.ipc.open_file(source).read_all()
        assert table.schema == pa.schema([("row", pa.list_(pa.float32(), 10))])
        np.testing.assert_array_equal(np.stack(table.column("row").to_numpy()), matrix)
        rows.close()
        assert not list(place.iterdir())


def test_a_folder_is_made_when_it_is_needed(tmp_path: Path) -> None:
    with ArrowStores(tmp_path / "scratch"):
        pass
    assert not (tmp_path / "scratch").exists()


def test_what_fails_leaves_nothing(folder: Path) -> None:
    def work() -> None:
        with ArrowStores(folder) as make:
            make(3, 2).write(slice(0, 1), np.zeros((3, 1), np.float32))
            assert len(list(folder.rglob("*"))) == 2
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()


@pytest.mark.parametrize("name", ["sgc", "mlp", "appnp"])
def test_trained_from_files_is_the_same_to_the_last_bit(name: str, folder: Path) -> None:
    graph = synthetic(nodes=400, degree=6.0, dimensions=400)
    inputs = tuple(NodeInputs(deviations=sp.csr_array(graph.features * one), fill=0.1) for one in (1.0, 0.5))
    problem = Problem(shift=shift(graph), adjacency=graph.adjacency(), inputs=inputs, classes=graph.classes)
    runs = []
    for seed in range(4):
        split = random_split(np.arange(graph.nodes), np.random.default_rng(seed))
        labels = split.visible(graph.labels)
        theta = unit_filter(seed % 3)
        runs.append(Run(inputs=seed % 2, split=split, labels=labels, seed=seed, coefficients=theta, dropout=0.25))
    options = Options(model=model(name), epochs=6, batch_size=70)

    def train(limit: int, make: ArrowStores | None) -> Outcome:
        wanted = Options(**{**{f: getattr(options, f) for f in options.__slots__}, "max_memory": limit})
        return fit(problem, runs, wanted, device="cpu", stores=make)

    kept = train(10**9, None)
    assert not kept.record["batches"]["in_files"]
    with ArrowStores(folder) as make:
        filed = train(4_000_000, make)
        (place,) = folder.iterdir()
        assert not list(place.iterdir())  # the training has closed its stores
    assert filed.record["batches"]["in_files"]
    assert filed.record["batches"]["matrices"] == 4
    assert filed.record["waves"] == kept.record["waves"] == [4]
    for part, value in kept.parameters.items():
        assert value.tobytes() == filed.parameters[part].tobytes()
    np.testing.assert_array_equal(kept.validation_loss, filed.validation_loss)
    np.testing.assert_array_equal(kept.predictions, filed.predictions)


def test_a_full_disk_names_the_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with ArrowStores(folder) as make:
        writer = make(3, 2)
        monkeypatch.setattr(pa.ipc, "new_file", full)
        with pytest.raises(ArtifactError, match=r"scratch/\.rows-\S+ cannot be written: no space left on device"):
            writer.write(slice(0, 2), np.zeros((3, 2), dtype=np.float32))
