"""A disk that is full: said before a measurement begins, and where it fills up meanwhile the result is printed."""

from __future__ import annotations

import errno
import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from cell_factory import NAME, files, store

from graphldp.cli import console
from graphldp.stages.files import artifacts

# Of each command a short measurement, the first file that it writes, and what its result has.
LINES = {
    "attack": (f"attack -d {NAME} -m mb -e 1 --seeds 1 --attributes 2 --output deep/out", "attack.csv", "mb"),
    "audit": ("audit mb -e 1 --dimensions 2 --samples 1000 --processes 1 --output deep/out", "audit.json", "keeps"),
    "calibration": (f"calibration -d {NAME} -e 1 -k 2 --seeds 1 --output deep/out/c.csv", "c.csv", "lpgnn"),
    "influence": (f"influence -d {NAME} -e 8 --people 20 --output deep/out", "influence.csv", "public links"),
    "labels": (f"labels -d {NAME} -e 1 --seeds 1 --output deep/out", "labels.csv", "as sent"),
    "links": (f"links -d {NAME} -e 1 --seeds 1 --rho 0.5 --output deep/out", "links.csv", "privhrg"),
    "selection": (
        f"selection -d {NAME} -e 5 --by chi-square --seeds 2 --random 2 --output deep/out",
        "selection.csv",
        "chi-square",
    ),
    "split": (
        f"split -d {NAME} -e 4 --parts 2 --seeds 2 --search-points 1 --search-seeds 1 --epochs 2 --output deep/out",
        "split.csv",
        "best",
    ),
}
SLOW = {"audit", "influence", "links"}
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    store(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", LINES)
def test_a_full_disk_is_said_before_anything_is_measured(
    name: str, ldp: Callable[..., Any], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Path.open

    def refused(path: Path, *given: Any, **options: Any) -> Any:
        if ".room." in path.name:
            opened(path, *given, **options).close()
            raise FULL
        return opened(path, *given, **options)

    def measured(*_: object, **__: object) -> Iterator[None]:
        raise AssertionError("it has begun")

    monkeypatch.setattr(Path, "open", refused)
    for module in (console, __import__(f"graphldp.cli.{name}", fromlist=["progress"])):
        if hasattr(module, "progress"):
            monkeypatch.setattr(module, "progress", measured)
    before = files(here)
    answer = ldp(*shlex.split(LINES[name][0]))
    assert (answer.code, answer.out) == (2, "")
    assert answer.line == (
        "error: deep/out has no room for 1 MB, which keep what is computed: it cannot be written: no space left on "
        "device; make room, or name another place"
    )
    assert files(here) == before
    assert not (here / "deep").exists()


@pytest.mark.parametrize("name", [pytest.param(one, marks=[pytest.mark.slow] * (one in SLOW)) for one in LINES])
@pytest.mark.parametrize("flag", ["", "--json"])
def test_a_result_that_cannot_be_written_is_printed(
    name: str, flag: str, ldp: Callable[..., Any], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = artifacts._whole

    def full(path: Path, new: bool) -> AbstractContextManager[Path]:
        if path.is_relative_to("deep"):
            raise FULL
        return whole(path, new)

    monkeypatch.setattr(artifacts, "_whole", full)
    line, first, shown = LINES[name]
    answer = ldp(*shlex.split(f"{line} {flag} --quiet"))
    assert answer.code == 2
    assert shown in answer.out
    assert answer.line == (
        f"error: deep/out/{first} cannot be written: no space left on device; make room, or name another place"
    )
