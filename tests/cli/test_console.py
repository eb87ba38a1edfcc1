"""Progress: an estimate on a terminal, plain lines elsewhere, nothing with --quiet; colour only where it is wanted."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Sequence

import pytest
from rich.console import Console
from rich.table import Table

from graphldp.cli import console


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, as a list of one number."""
    now = [100.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(console, "_PLAIN_SECONDS", 10.0)
    return now


def test_plain_lines_are_few_and_carry_an_estimate(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with console.progress("perturb cora mb", 40, "runs") as bar:
        for _ in range(20):
            clock[0] += 1.0
            bar.advance(loss=0.53)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "perturb cora mb: 10/40 runs, 10 s, about 30 s left, loss 0.53"
    assert len(lines) == 3
    assert lines[-1].startswith("perturb cora mb: 20/40 runs, 20 s")


def test_short_work_says_nothing(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with console.progress("short", 3) as bar:
        bar.advance(3)
    assert capsys.readouterr().err == ""


def test_a_stage_may_bring_the_total(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with console.progress("train", unit="epochs") as bar:
        clock[0] += 200
        bar(250, 500, "validation loss 0.9")
    assert "train: 250/500 epochs, 3 min 20 s, about 3 min 20 s left, validation loss 0.9" in capsys.readouterr().err


def test_what_was_done_before_is_no_sign_of_the_pace(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with console.progress("train", unit="epochs") as bar:
        clock[0] += 1
        bar(400, 500, "goes on from a checkpoint")
        clock[0] += 9
        bar(418, 500, "epoch 418")
    assert "train: 418/500 epochs, 10 s, about 41 s left, epoch 418" in capsys.readouterr().err


def test_the_first_seconds_promise_nothing(clock: list[float]) -> None:
    with console.progress("run", 3000) as bar:
        clock[0] += 12  # to read and to prepare
        bar(0)
        clock[0] += 4
        bar(1)
        assert bar.left() is None
        clock[0] += 6
        bar(1000)
        assert bar.left() == pytest.approx(20.0)


def test_a_terminal_shows_the_same_time_left(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(console, "err", Console(file=screen, width=120, force_terminal=True, color_system=None))
    with console.progress("run", 3000) as bar:
        bar(0)
        clock[0] += 10
        bar(1000)
        bar._screen.refresh()  # type: ignore[attr-defined]
    assert "0:00:20" in screen.getvalue()


def test_quiet_is_quiet(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    console.set_quiet(True)
    try:
        with console.progress("train", 10) as bar:
            clock[0] += 100
            bar.advance(5)
        console.note("a note")
    finally:
        console.set_quiet(False)
    assert capsys.readouterr().err == ""
    assert bar.done == 5


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Console(file=io.StringIO(), force_terminal=True, width=120, _environ={"TERM": "xterm"})
    monkeypatch.setattr(console, "err", screen)
    with console.progress("train cora", 10, "epochs") as bar:
        bar.advance(4, loss=1.25)
        bar.advance(1, loss=1.0)
    assert bar.done == 5
    text = screen.file.getvalue()  # type: ignore[attr-defined]
    assert "train cora" in text
    assert "5/10" in text
    assert "loss 1" in text


def test_an_error_inside_leaves_the_bar(clock: list[float]) -> None:
    with pytest.raises(ValueError, match="inside"), console.progress("train", 10):
        raise ValueError("inside")


@pytest.mark.parametrize(("extra", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_no_color_is_respected(extra: dict[str, str], coloured: bool) -> None:
    environment = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLORTERM", "CI")}
    environment |= {"FORCE_COLOR": "1", "TERM": "xterm-256color", **extra}
    program = "from graphldp.cli.console import out; out.print('[red]word[/red]')"
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert ("\x1b[31m" in run.stdout) is coloured


def test_a_pipe_gets_no_colour_and_unbroken_lines() -> None:
    environment = {key: value for key, value in os.environ.items() if key not in ("FORCE_COLOR", "COLUMNS")}
    program = "from graphldp.cli.console import out; out.print('[red]' + 'word ' * 25 + '[/red]')"
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == " ".join(["word"] * 25)


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_a_bar_keeps_its_count_and_its_times_at_any_width(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(console, "err", Console(file=screen, width=width, force_terminal=True, color_system=None))
    words = "search spectral, batch 1 of 2: epoch 51 of 500, 2 of 2 runs training, best validation loss 0.3"
    with console.progress("run a-graph-with-a-long-name upgnet-nh", 3000, "epochs") as bar:
        bar(2810, 3000, words)
        bar._screen.refresh()  # type: ignore[attr-defined]
    (line, *_) = [one for one in screen.getvalue().replace("\r", "\n").split("\n") if "2810/3000" in one]
    line = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line)
    assert line.startswith("run a-graph-w")
    assert "0:00:0" in line
    assert line.count(":") >= 4  # elapsed and left
    assert len(line) <= width
    assert "━" in line
    assert "search" in line or width == 80


def test_a_table_drops_columns_in_their_order_until_it_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(without: Sequence[str]) -> Table:
        table = Table(box=None)
        for name in ("row", "epsilon", "gain", "paper", "remark"):
            if name not in without:
                table.add_column(name, no_wrap=True)
        table.add_row(*(["x" * 20] * len(table.columns)))
        return table

    for width, gone in ((120, []), (100, ["remark"]), (80, ["remark", "paper"]), (20, ["remark", "paper"])):
        monkeypatch.setattr(console, "out", Console(file=io.StringIO(), width=width))
        table, left_out = console.fitted(build, ["remark", "paper"])
        assert list(left_out) == gone
        assert [column.header for column in table.columns][:3] == ["row", "epsilon", "gain"]
