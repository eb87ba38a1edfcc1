"""`ldp` as a process of its own: with its exit code, its streams, and a hand on its Ctrl-C.

`ldp` starts Python, as a shell does. `forked` and `stopped` fork this process, which has imported everything already:
importing takes most of the time of a small command.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from graphldp.cli import app, console

LIMIT = 120  # seconds that a command may take


def environment(**changes: str) -> dict[str, str]:
    """Return an environment in which `ldp` is on the path, uses one thread and prints without colour."""
    programs = str(Path(sys.executable).parent)
    path = f"{programs}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", "NO_COLOR": "1", "DVC_NO_ANALYTICS": "1", **changes}


def ldp(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run one command line to its end."""
    return subprocess.run(
        [sys.executable, "-m", "graphldp.cli", *(str(argument) for argument in arguments)],
        cwd=cwd,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )


class _Fork:
    """A fork of this process that runs one command line."""

    def __init__(self, arguments: tuple[object, ...], cwd: Path, prepare: Callable[[], None]) -> None:
        self.words = [str(argument) for argument in arguments]
        self._err = tempfile.TemporaryFile()  # noqa: SIM115
        given, self._in = os.pipe()
        self._out, said = os.pipe()
        self.process = multiprocessing.get_context("fork").Process(
            target=self._run, args=(cwd, prepare, (given, said, self._err.fileno()))
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # other threads of this process hold nothing it needs
            self.process.start()
        os.close(given)
        os.close(said)
        self.stdout = os.fdopen(self._out, encoding="utf-8")

    def _run(self, cwd: Path, prepare: Callable[[], None], streams: tuple[int, ...]) -> None:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.close(self._in)
        os.close(self._out)
        sys.stdin = os.fdopen(0, encoding="utf-8")
        sys.stdout, sys.stderr = (os.fdopen(number, "w", encoding="utf-8") for number in (1, 2))
        os.environ.update(environment())
        os.chdir(cwd)
        torch.set_num_threads(1)  # a fork has none of this process's threads
        prepare()
        try:
            code = app.main(self.words)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        finally:
            os._exit(70)

    def end(self, answer: str = "") -> subprocess.CompletedProcess[str]:
        """Give it a line to read, wait for its end, and return what it said."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._in, answer.encode())
        os.close(self._in)
        self.process.join(LIMIT)
        if self.process.is_alive():
            self.process.kill()
            raise subprocess.TimeoutExpired(self.words, LIMIT)
        with self.stdout, self._err:
            self._err.seek(0)
            err, out = self._err.read().decode(), self.stdout.read()
        return subprocess.CompletedProcess(self.words, self.process.exitcode or 0, out, err)


def forked(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run one command line to its end in a fork of this process."""
    return _Fork(arguments, cwd, lambda: None).end()


def stopped(number: int, words: str, call: int, *arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run one command line in a fork, and send it a signal at the n-th report of progress that begins with `words`."""

    def pausing() -> None:
        """Say on standard output that the work has begun, and wait for a line: what comes then comes in between."""
        take, left = console.Bar._take, [call]

        def slow(bar: Any, done: float, total: float | None, text: str) -> None:
            take(bar, done, total, text)
            if text.startswith(words):
                left[0] -= 1
                if left[0] == 0:
                    print("begun", flush=True)
                    sys.stdin.readline()

        console.Bar._take = slow  # type: ignore[method-assign]

    fork = _Fork(arguments, cwd, pausing)
    begun = fork.stdout.readline()
    if begun == "begun\n":
        assert fork.process.pid is not None
        os.kill(fork.process.pid, number)
    answer = fork.end("\n")
    assert begun == "begun\n", answer.stderr
    return answer
