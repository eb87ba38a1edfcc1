"""`ldp` as a process of its own: with its exit code, its streams, and a hand on its Ctrl-C."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

# Say on standard output that the work has begun, and wait for a line: what comes then comes in the middle of it.
_PAUSING = """
    import signal, sys
    from graphldp.cli import app, console

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background may have it ignored
    show, words, calls = console.Bar._show, sys.argv.pop(1), [int(sys.argv.pop(1))]

    def pausing(bar, done, total, text):
        show(bar, done, total, text)
        if text.startswith(words):
            calls[0] -= 1
            if calls[0] == 0:
                print("begun", flush=True)
                sys.stdin.readline()

    console.Bar._show = pausing
    sys.exit(app.main(sys.argv[1:]))
"""


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
        timeout=120,
    )


def stopped(number: int, words: str, call: int, *arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run one command line, and send it a signal at the n-th report of progress that begins with `words`."""
    command = [sys.executable, "-c", textwrap.dedent(_PAUSING), words, str(call), *(str(word) for word in arguments)]
    with subprocess.Popen(
        command,
        cwd=cwd,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        begun = process.stdout.readline()
        if begun == "begun\n":
            process.send_signal(number)
        try:
            out, err = process.communicate("\n" if begun else None, timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert begun == "begun\n", err
    return subprocess.CompletedProcess(command, process.returncode, out, err)
