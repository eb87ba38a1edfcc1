"""A disk that is full: nothing that was trained is lost, on a real small disk and where none may be mounted."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cell_factory import NAME, calibrate, small_params, store

from graphldp.errors import ArtifactError
from graphldp.stages.experiment import plan, run_cells
from graphldp.stages.files import artifacts, checkpoints
from graphldp.stages.files.artifacts import Room, read_meta
from graphldp.stages.files.cells import ROOM
from graphldp.stages.files.paths import runs_path
from graphldp.stages.grids.cell import Cell
from graphldp.stages.grids.params import load
from graphldp.stages.search import search
from graphldp.stages.train import train

PARAMS = small_params(seeds=3, search_seeds=2, points=3, epochs=15)


class Disk:
    """A disk that can be filled and emptied; `folder` is all that is on it."""

    def __init__(self, folder: Path, fill: Callable[[], None], empty: Callable[[], None]) -> None:
        self.folder, self.fill, self.empty = folder, fill, empty


@contextlib.contextmanager
def mounted(folder: Path) -> Iterator[Disk]:
    """A real one of a few MB."""
    folder.mkdir()
    asked = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if asked.returncode:
        pytest.skip(f"no disk may be mounted here: {asked.stderr.strip()}")
    filler = folder / "filler"

    def fill() -> None:
        with contextlib.suppress(OSError), filler.open("ab", buffering=0) as handle:
            while True:
                handle.write(b"x" * 4096)
        assert shutil.disk_usage(folder).free < 4096

    try:
        yield Disk(folder, fill, lambda: filler.unlink(missing_ok=True))
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)  # a failed test may hold a file


@contextlib.contextmanager
def played(folder: Path) -> Iterator[Disk]:
    """A folder in which, once it counts as full, nothing can be written that asks for a new block."""
    folder.mkdir()
    whole, full = artifacts._whole, [False]

    @contextlib.contextmanager
    def refused(path: Path, new: bool) -> Iterator[Path]:
        if full[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with whole(path, new) as partial:
            yield partial

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(artifacts, "_whole", refused)
        yield Disk(folder, lambda: full.__setitem__(0, True), lambda: full.__setitem__(0, False))


@pytest.fixture(params=[mounted, played])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    with request.param(tmp_path / "disk") as made:
        store(made.folder)
        calibrate(made.folder, PARAMS)
        yield made


def filling(disk: Disk, stop: bool = False) -> Callable[[int, int, str], None]:
    """Return a training's progress, at which the disk is full from the first final run on; and somebody stops it."""
    seen = [0]

    def progress(done: int, total: int, text: str) -> None:
        if text.startswith("final"):
            disk.fill()
            seen[0] += 1
            if stop and seen[0] == 5:
                raise KeyboardInterrupt

    return progress


def learned(data: Path, **options: Any) -> Path:
    return train(Cell(dataset=NAME, method="lpgnn", epsilon=1.0), device="cpu", data=data, params=PARAMS, **options)


def elsewhere(disk: Disk, tmp_path: Path) -> bytes:
    """Return what the training gives where there is room."""
    shutil.copytree(disk.folder, tmp_path / "roomy")
    return learned(tmp_path / "roomy").read_bytes()


def no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr("graphldp.experiment.cell.fit", refused)


def litter(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if "partial" in path.name or ".resume" in path.name)


def test_a_training_whose_disk_has_filled_up_ends_as_ever(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk") as disk:
        store(disk.folder)
        calibrate(disk.folder, PARAMS)
        wanted = elsewhere(disk, tmp_path)
        # What the cell leaves takes a part of its room, and the runs find place in the rest.
        assert learned(disk.folder, progress=filling(disk)).read_bytes() == wanted
        assert litter(disk.folder) == []


def test_a_training_whose_runs_cannot_be_written_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with played(tmp_path / "disk") as disk:
        store(disk.folder)
        calibrate(disk.folder, PARAMS)
        wanted, runs = elsewhere(disk, tmp_path), runs_path(disk.folder, NAME, "lpgnn", 1.0)
        with pytest.raises(ArtifactError) as told:
            learned(disk.folder, progress=filling(disk))
        cells = disk.folder / "cells"
        assert str(told.value) == (
            f"{runs} cannot be written: no space left on device; make room, or name another place. What was trained is "
            f"kept in {cells}: run the same again"
        )
        assert not runs.exists()
        (kept,) = cells.glob("*.parquet")
        assert [row["role"] for row in read_rows(kept)] == ["search"] * 6 + ["final"] * 3
        disk.empty()
        no_training(monkeypatch)
        assert learned(disk.folder).read_bytes() == wanted
        assert litter(disk.folder) == []


def read_rows(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = artifacts.read_table(path, "ldp train").to_pylist()
    return rows


def test_a_training_that_is_stopped_on_a_full_disk_goes_on_from_its_search(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = elsewhere(disk, tmp_path)
    with pytest.raises(KeyboardInterrupt):
        learned(disk.folder, progress=filling(disk, stop=True))
    assert [name.partition(".")[2] for name in litter(disk.folder)] == ["resume.json"]
    disk.empty()
    words: list[str] = []
    assert learned(disk.folder, progress=lambda done, total, text: words.append(text)).read_bytes() == wanted
    assert {word.split(" ")[0].split(":")[0] for word in words} == {"final"}
    assert litter(disk.folder) == []


def test_where_there_is_no_room_for_the_result_nothing_is_trained(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    cells, before = disk.folder / "cells", litter(disk.folder)
    no_training(monkeypatch)
    if disk.folder.is_mount():
        disk.fill()
    else:
        refuse_zeros(monkeypatch)
    words = f"{cells} has no room for 2 MB, which keep what is computed: it cannot be written: no space left on device"
    with pytest.raises(ArtifactError, match=f"^{words}; make room, or name another place$"):
        learned(disk.folder)
    assert litter(disk.folder) == before


def refuse_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the room that is taken be refused half-way."""
    take = Path.open

    def opened(path: Path, mode: str = "r", *given: Any, **options: Any) -> Any:
        handle = take(path, mode, *given, **options)
        if ".room." in path.name:
            handle.write(b"half")
            handle.close()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return handle

    monkeypatch.setattr(Path, "open", opened)


def test_a_search_whose_disk_has_filled_up_is_written_all_the_same(disk: Disk) -> None:
    def progress(done: int, total: int, text: str) -> None:
        disk.fill()

    path = search(
        Cell(dataset=NAME, method="lpgnn", epsilon=1.0),
        data=disk.folder,
        params=PARAMS,
        device="cpu",
        progress=progress,
    )
    assert read_meta(path, "ldp search")["kind"] == "trials"
    assert len(read_rows(path)) == 6
    assert litter(disk.folder) == []


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_grid_that_is_stopped_on_a_full_disk_says_what_it_keeps_less_of(
    disk: Disk, jobs: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = [{"method": "lpgnn"}]
    search = {"points": 2, "seeds": 1, "learning_rate": [0.05, 0.02], "dropout": [0.25], "steps": [0]}
    values = {"title": "Small", "datasets": [NAME], "epsilons": [1], "seeds": 2, "rows": rows, "search": search}
    file = tmp_path / "small.yaml"
    file.write_text(json.dumps(values | {"train": {"hidden": 4, "epochs": 15, "patience": 8}}), encoding="utf-8")
    calls = [0]

    def full(done: int, total: int, text: str) -> None:
        calls[0] += 1
        if calls[0] == 3:
            disk.fill()
            raise KeyboardInterrupt

    what = plan(load(file), disk.folder)
    with pytest.raises(KeyboardInterrupt):
        run_cells(what, disk.folder, "cpu", progress=full, jobs=jobs, note=print)
    (note, *more) = capfd.readouterr().out.splitlines()
    assert note.startswith(f"note: {disk.folder / 'cells'}/")
    assert note.endswith("Kept is all but the part that was being trained")
    assert not [line for line in more if not line.startswith("note: ")]
    assert [name for name in litter(disk.folder) if name.endswith(".json")]
    disk.empty()
    run_cells(plan(load(file), disk.folder), disk.folder, "cpu")
    assert all(plan(load(file), disk.folder).done)
    assert litter(disk.folder) == []


def test_room_is_for_one_file_and_is_given_back(tmp_path: Path) -> None:
    room = Room(tmp_path / "a", ROOM)
    (taken,) = tmp_path.iterdir()
    assert taken.stat().st_blocks * 512 >= ROOM  # and not a hole
    room.write(tmp_path / "b", b"text")
    room.write(tmp_path / "c", b"more")  # there is no room any more, but on the disk
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"b": b"text", "c": b"more"}
    other = Room(tmp_path / "a", ROOM)
    other.leave()
    assert {path.name for path in tmp_path.iterdir()} == {"b", "c"}


# what a process that is killed leaves ---------------------------------------------------------------------------------


def test_a_training_that_is_killed_goes_on_from_the_last_batch_that_it_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(tmp_path)
    calibrate(tmp_path, PARAMS)
    shutil.copytree(tmp_path, roomy := tmp_path / "roomy")
    wanted = learned(roomy).read_bytes()
    monkeypatch.setattr(checkpoints, "EVERY_SECONDS", 0.0)

    def killed(done: int, total: int, text: str) -> None:
        if text.startswith("final"):
            raise SystemExit  # what ends a process at once keeps nothing: `KeyboardInterrupt` alone does

    with pytest.raises(SystemExit):
        learned(tmp_path, progress=killed)
    words: list[str] = []
    assert learned(tmp_path, progress=lambda done, total, text: words.append(text)).read_bytes() == wanted
    assert {word.split(":")[0] for word in words} == {"final"}


def test_a_model_of_a_cell_that_is_there_takes_its_final_runs_alone(tmp_path: Path) -> None:
    store(tmp_path)
    calibrate(tmp_path, PARAMS)
    before = learned(tmp_path).read_bytes()
    words: list[str] = []
    options = {"models": tmp_path / "model", "progress": lambda done, total, text: words.append(text)}
    assert learned(tmp_path, **options).read_bytes() == before
    assert {word.split(":")[0] for word in words} == {"final"}
    assert (tmp_path / "model/weights.safetensors").exists()
    learned(
        shutil.copytree(tmp_path, tmp_path / "new", ignore=shutil.ignore_patterns("cells")), models=tmp_path / "two"
    )
    files = [(tmp_path / name / "weights.safetensors").read_bytes() for name in ("model", "two")]
    assert files[0] == files[1]
