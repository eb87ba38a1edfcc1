"""Runs pytest again and again, each time in a fork of a process that has imported what takes long to import.

A line of standard input is JSON: pytest's arguments, where its output goes, and how many seconds it may take. A line of
standard output is the exit code. Nothing of graphldp is imported before the fork, so that each run sees the code as it
is then.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import time

# Whatever of these is installed: most of the time of a short test goes into them.
SLOW = (
    "scipy.stats",
    "scipy.optimize",
    "sklearn.metrics",
    "pyarrow.parquet",
    "hypothesis",
    "torch",
    "typer",
    "rich.table",
)


def main() -> None:
    """Answer until standard input ends."""
    import pytest

    sys.path.insert(0, os.getcwd())  # as `python -m pytest` does
    for name in SLOW:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    assert "graphldp" not in sys.modules
    while line := sys.stdin.readline():
        asked = json.loads(line)
        child = os.fork()
        if child == 0:
            nothing, output = os.open(os.devnull, os.O_RDONLY), os.open(asked["output"], os.O_WRONLY | os.O_CREAT)
            for old, new in ((nothing, 0), (output, 1), (output, 2)):
                os.dup2(old, new)
            code = int(pytest.main(asked["arguments"]))
            sys.stdout.flush()
            os._exit(code)
        print(_wait(child, asked["seconds"]), flush=True)


def _wait(child: int, seconds: float) -> int:
    """Return the exit code of a child; one that takes longer is ended, and has -9."""
    end = time.monotonic() + seconds
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.02)


if __name__ == "__main__":
    main()
