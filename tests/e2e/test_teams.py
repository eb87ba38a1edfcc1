"""Processes that share the runs of a command: started by `--processes` and by torchrun, stopped, and failing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from cell_factory import NAME, calibrate, files, small_params, store
from ldp_process import environment, forked

pytestmark = pytest.mark.slow

# Two groups of runs, each of as many hidden units as are worth a thread.
TRAIN = ("train", "--dataset", NAME, "--epsilon", "1", "--seeds", "3", "--search-points", "3", "--search-seeds", "2")
TRAIN += ("--epochs", "12", "--hidden", "64", "--quiet")
LDP = (sys.executable, "-m", "graphldp.cli")
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "-m", "graphldp.cli")

# Imported by every Python that starts: what some of two processes do in the middle of their training.
_MEDDLING = """
    import os
    if os.environ.get("RANK", "") in {ranks!r}:
        import time
        from graphldp.learn import engine
        update, calls = engine.Trainer._update, []

        def meddling(*arguments):
            calls.append(1)
            {deed}
            return update(*arguments)

        engine.Trainer._update = meddling
"""


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a calibrated cell, its runs by one process of two threads, and a graph."""
    folder = tmp_path_factory.mktemp("cell")
    store(folder / "data", nodes=2000)
    calibrate(folder / "data", small_params())
    command([*LDP, *TRAIN, "-o", "whole.parquet"], folder, OMP_NUM_THREADS="2")
    return folder


@pytest.fixture(autouse=True)
def untrained(cell: Path) -> None:
    """What was computed before is not looked up: these tests are about computing it."""
    shutil.rmtree(cell / "data/cells", ignore_errors=True)


def command(words: list[str], cwd: Path, **changes: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        cwd=cwd,
        env=environment(**changes),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def meddle(folder: Path, deed: str, ranks: tuple[str, ...] = ("1",)) -> dict[str, str]:
    """Return the environment in which the second process, or those of these ranks, does a deed at each update."""
    text = textwrap.dedent(_MEDDLING.format(deed=deed, ranks=ranks))
    (folder / "sitecustomize.py").write_text(text, encoding="utf-8")
    path = os.pathsep.join(part for part in (str(folder), os.environ.get("PYTHONPATH", "")) if part)
    return {"PYTHONPATH": path}


def test_processes_write_the_bytes_of_one(cell: Path) -> None:
    whole = (cell / "whole.parquet").read_bytes()
    answer = command([*LDP, *TRAIN, "--processes", "2", "-o", "two.parquet"], cell)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout.startswith("two.parquet: lpgnn at epsilon 1.0: test accuracy")
    assert answer.stdout.count("\n") == 1
    assert (cell / "two.parquet").read_bytes() == whole
    shutil.rmtree(cell / "data/cells")
    answer = command([*TORCHRUN, *TRAIN, "-o", "three.parquet"], cell)
    assert (answer.returncode, answer.stdout.count("\n")) == (0, 1), answer.stderr
    assert (cell / "three.parquet").read_bytes() == whole


def test_run_shares_its_runs_too(cell: Path) -> None:
    given = ["run", "--dataset", NAME, "--epsilon", "1", "--seeds", "2", "--search-points", "2", "--search-seeds", "1"]
    given += ["--epochs", "4", "--no-references", "--quiet", "--json"]
    one = forked(*given, cwd=cell)
    two = command([*LDP, *given, "--processes", "2"], cell)
    assert (one.returncode, two.returncode, two.stderr) == (0, 0, "")
    assert one.stdout == two.stdout


def test_what_is_wrong_is_said_once(cell: Path) -> None:
    before = files(cell)
    more = [*TRAIN]
    more[more.index("--seeds") + 1] = "9"
    answer = command([*LDP, *more, "--processes", "2"], cell)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr.count("\n") == 1
    assert "--seeds 9 --search-seeds 2`, then `ldp denoise" in answer.stderr
    assert files(cell) == before
    answer = forked(*TRAIN, "--processes", "0", cwd=cell)
    assert (answer.returncode, answer.stderr.count("\n")) == (2, 1)
    answer = command([*TORCHRUN, *TRAIN, "--processes", "2"], cell)
    assert answer.returncode != 0
    assert answer.stderr.count("error: --processes starts processes itself; under torchrun leave it out") == 1


@pytest.mark.parametrize(
    ("deed", "reason"),
    [
        ("int('meddled with')", "process 1 of 2 failed: ValueError: invalid literal for int"),
        ("os.kill(os.getpid(), 9)", "another process of this training ended without a word: it was killed"),
    ],
)
def test_a_process_that_fails_ends_all_with_one_line(cell: Path, tmp_path: Path, deed: str, reason: str) -> None:
    before = files(cell)
    answer = command([*LDP, *TRAIN, "--processes", "2"], cell, **meddle(tmp_path, f"{deed} if len(calls) > 3 else 0"))
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr.startswith(f"error: {reason}")
    assert answer.stderr.count("\n") == 1
    assert files(cell) == before


def test_ctrl_c_that_one_process_alone_hears_ends_all(cell: Path, tmp_path: Path) -> None:
    target = cell / "heard.parquet"
    answer = command(
        [*LDP, *TRAIN, "--processes", "2", "-o", str(target)], cell, **meddle(tmp_path, "raise KeyboardInterrupt")
    )
    assert (answer.returncode, answer.stdout) == (130, ""), answer.stderr
    assert (
        answer.stderr == "interrupted: ldp train stopped; nothing half-written; the same command goes on from there\n"
    )
    assert not target.exists()


def test_ctrl_c_is_resumed_by_any_number_of_processes(cell: Path, tmp_path: Path) -> None:
    target = cell / "resumed.parquet"
    # Both have begun: on a busy machine the first may still be reading when the second trains, with nothing to keep.
    deed = f"time.sleep(0.3); open({str(tmp_path / 'begun')!r} + os.environ['RANK'], 'w').close()"
    arguments = [*LDP, *TRAIN, "--processes", "2", "-o", str(target)]
    with subprocess.Popen(
        arguments,
        cwd=cell,
        env=environment(**meddle(tmp_path, deed, ranks=("0", "1"))),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        end = time.monotonic() + 60
        while not all((tmp_path / f"begun{rank}").exists() for rank in (0, 1)) and time.monotonic() < end:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, ""), err
    assert err == "interrupted: ldp train stopped; nothing half-written; the same command goes on from there\n"
    assert not target.exists()
    assert len(list((cell / "data/cells").glob("*.resume.json"))) == 1
    answer = command([*LDP, *TRAIN, "-o", str(target)], cell, OMP_NUM_THREADS="2")
    assert answer.returncode == 0
    assert target.read_bytes() == (cell / "whole.parquet").read_bytes()
