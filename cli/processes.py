"""Several processes for one command: started here with `--processes`, or anywhere by `torchrun`.

`torchrun` sets RANK, WORLD_SIZE and where the first process listens; `--processes` does the same for processes of this
machine. The first one speaks and writes, the others do neither.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import typer

from graphldp.cli import console
from graphldp.cli.failures import REFUSED, complain
from graphldp.errors import OptionError

if TYPE_CHECKING:
    from graphldp.experiment.resources import Resources
    from graphldp.learn.processes import Processes

__all__ = ["COMMANDS", "follows", "joined", "machine", "started_here", "workers"]

# The commands that share their work; any other, started several times, is as many commands.
COMMANDS = ("train", "run", "search")
# Set for processes that were started here: what they would say is read by the one that started them.
_OWN = "GRAPHLDP_PROCESSES"
_LOOK_SECONDS = 0.05
_EACH = 4  # processes of one processor, at most
# How long the others have to end by themselves after one has failed; an epoch of a large graph takes a while.
_GRACE_SECONDS = 60.0


def follows() -> bool:
    """Return whether this is one of several processes, and not the first."""
    return _size() > 1 and os.environ.get("RANK") != "0"


def started_here() -> bool:
    """Return whether `--processes` has started this process: it may say why it fails, which is shown if need be."""
    return _OWN in os.environ


def _size() -> int:
    text = os.environ.get("WORLD_SIZE", "")
    return int(text) if text.isdigit() and "RANK" in os.environ else 1


def workers(count: int | None, option: str = "--processes") -> int:
    """Return how many processes to work on, one for each processor if it is not said; refuse far more than these."""
    processors = _processors()
    if count is not None and count > _EACH * processors:
        raise OptionError(
            f"{option} may be at most {_EACH * processors} on {processors} processor{'s' * (processors > 1)}, "
            f"got {count}: each holds the data, and more are slower"
        )
    return count or processors


@contextlib.contextmanager
def joined(count: int | None, device: str) -> Iterator[Processes | None]:
    """Join the other processes, if there are any, and yield what joins them; None alone.

    With `count` above 1, and none of them there yet, start them with this command line, wait for them, and exit as they
    did.
    """
    if not started_here():
        if count is not None and _size() > 1:
            raise OptionError("--processes starts processes itself; under torchrun leave it out")
        workers(count)
        if count is not None and count > 1:
            raise typer.Exit(_supervise(count, console.arguments()))
    if _size() == 1:
        yield None
        return
    import torch

    from graphldp.learn import resolve_device
    from graphldp.learn.processes import DistributedProcesses

    where = resolve_device(device)
    if where.type == "cuda":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    with DistributedProcesses(where if where.type == "cuda" else torch.device("cpu")) as processes:
        yield processes


def machine(max_memory: float | None, processes: Processes | None, data: Path) -> Resources:
    """Return what this machine gives a training.

    Below `data` lies what its memory does not hold, meanwhile, and what is known of the floor's learners, for good.
    """
    from functools import partial

    from graphldp.experiment.resources import Resources, memory_bytes
    from graphldp.stages.files.filtered_inputs import ArrowStores
    from graphldp.stages.files.floors import Floors

    limit = memory_bytes(max_memory)
    return Resources(
        max_memory=limit,
        processes=processes,
        stores=partial(ArrowStores, data),
        note=console.note,
        memo=Floors(data, console.note),
    )


class _Child:
    """One process; what a follower says is kept, in case that nobody hears of it otherwise."""

    def __init__(
        self, rank: int, arguments: Sequence[str], environment: dict[str, str], said: IO[bytes] | None
    ) -> None:
        self.rank, self.said = rank, said
        self.process = subprocess.Popen(
            [sys.executable, "-m", "graphldp.cli", *arguments],
            env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if rank else None,
            stderr=said,
            start_new_session=True,  # Ctrl-C reaches it through `_supervise`, and once
        )

    def send(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.process.poll() is None:
            self.process.send_signal(number)

    def last_words(self, count: int) -> str:
        """Return the line that says why it ended."""
        code = self.process.returncode
        if code < 0:
            hint = "; if memory ran out, use --max-memory" if code == -signal.SIGKILL else ""
            return f"error: process {self.rank} of {count} was ended by {signal.Signals(-code).name}{hint}"
        text = ""
        if self.said is not None:
            self.said.seek(0)
            text = self.said.read().decode(errors="replace").strip()
        line = text.splitlines()[-1].removeprefix("error: ") if text else f"exit code {code}"
        return f"error: process {self.rank} of {count} failed: {line}"


def _supervise(count: int, arguments: Sequence[str]) -> int:
    """Run the command in so many processes of this machine and return the exit code of the first, or of who failed."""
    environment = _environment(count)
    children: list[_Child] = []

    def forward(number: int, frame: Any) -> None:
        for child in children:
            child.send(number)

    handlers = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM)}
    with contextlib.ExitStack() as files:
        try:
            for rank in range(count):
                said = files.enter_context(tempfile.TemporaryFile()) if rank else None
                children.append(_Child(rank, arguments, environment, said))
            failed = _wait(children)
        finally:
            for child in children:
                child.send(signal.SIGKILL)
                child.process.wait()
            for number, handler in handlers.items():
                signal.signal(number, handler)
        first = children[0].process.wait()
        if failed is not None and first in (-signal.SIGKILL, 0):
            complain(failed.last_words(count))
            first = REFUSED if failed.process.returncode < 0 else failed.process.returncode
    console.mute()  # whatever was to be said has been
    return first if first >= 0 else REFUSED


def _wait(children: Sequence[_Child]) -> _Child | None:
    """Wait until all have ended, or until the grace after a failure is over; return who failed first."""
    failed: _Child | None = None
    end = float("inf")
    while time.monotonic() < end and any(child.process.poll() is None for child in children):
        for child in children:
            if failed is None and child.process.poll() not in (None, 0):
                failed, end = child, time.monotonic() + _GRACE_SECONDS
        time.sleep(_LOOK_SECONDS)
    return failed or next((child for child in children if child.process.poll() != 0), None)


def _processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _environment(count: int) -> dict[str, str]:
    """Return what `torchrun` would set, with the processors shared out unless somebody has said how many threads."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return {
        "OMP_NUM_THREADS": str(max(1, _processors() // count)),
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        _OWN: str(count),
    }
