"""`--processes`: who speaks, and what becomes of processes that fail alone."""

from __future__ import annotations

import stat
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphldp.cli import app, console, processes

GIVEN = ("train", "--dataset", "none", "--epsilon", 1)


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    yield
    console.mute(False)


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function that has a shell script run in place of the processes."""

    def install(text: str) -> None:
        script = tmp_path / "python"
        script.write_text("#!/bin/sh\n" + textwrap.dedent(text), encoding="utf-8")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setattr(processes.sys, "executable", str(script))

    return install


def test_only_the_first_of_several_processes_speaks(ldp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    assert not processes.follows()
    assert ldp("train", "--nonsense").line.startswith("error: No such option: --nonsense")
    monkeypatch.setenv("RANK", "1")
    assert processes.follows()
    assert ldp("train", "--nonsense") == type(ldp("train", "--nonsense"))(2, "", "")
    assert ldp("list", "--nonsense").code == 2
    assert ldp("list", "--nonsense").line  # a command that shares no work speaks for itself
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert not processes.follows()
    assert ldp("train", "--nonsense").line


def test_one_process_is_this_one(ldp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_supervise", lambda *_: pytest.fail("started processes"))
    assert "none" in ldp(*GIVEN, "--processes", 1).line
    assert ldp(*GIVEN, "--processes", 0).code == 2


def test_processes_get_the_command_line_and_their_place(ldp, stand_in, tmp_path: Path) -> None:
    stand_in(f'echo "$RANK $WORLD_SIZE $MASTER_ADDR $OMP_NUM_THREADS $@" > {tmp_path}/said$RANK')
    app_code = ldp("--quiet", *GIVEN, "--processes", 2).code
    assert app_code == 0
    words = "-m graphldp.cli --quiet train --dataset none --epsilon 1 --processes 2"
    for rank in range(2):
        said = (tmp_path / f"said{rank}").read_text(encoding="utf-8").split(" ", 4)
        assert said[:3] == [str(rank), "2", "127.0.0.1"]
        assert said[3].isdigit()
        assert said[4].strip() == words


@pytest.mark.parametrize(
    ("deed", "line", "code"),
    [
        ("echo 'error: no room' >&2; exit 2", "error: process 1 of 2 failed: no room", 2),
        ("exit 3", "error: process 1 of 2 failed: exit code 3", 3),
        ("kill -9 $$", "error: process 1 of 2 was ended by SIGKILL; if memory ran out, use --max-memory", 2),
    ],
)
def test_a_process_that_nobody_hears_of_ends_the_others(
    ldp, stand_in, monkeypatch: pytest.MonkeyPatch, deed: str, line: str, code: int
) -> None:
    monkeypatch.setattr(processes, "_GRACE_SECONDS", 0.1)
    stand_in(f"if [ $RANK = 1 ]; then {deed}; else exec sleep 60; fi")
    answer = ldp(*GIVEN, "--processes", 2)
    assert (answer.code, answer.out, answer.line) == (code, "", line)


def test_the_first_process_speaks_for_itself(ldp, stand_in) -> None:
    """Its streams are those of the command, so nothing is said twice."""
    stand_in("[ $RANK = 1 ] || exit 5")
    answer = ldp(*GIVEN, "--processes", 2)
    assert (answer.code, answer.out, answer.err) == (5, "", "")


def test_torchruns_processes_start_no_others(ldp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    assert ldp(*GIVEN, "--processes", 2).line == (
        "error: --processes starts processes itself; under torchrun leave it out"
    )


def test_the_command_line_is_kept() -> None:
    app.main(["--version"])
    assert console.arguments() == ("--version",)
