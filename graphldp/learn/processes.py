"""Several processes that share the runs of one training: torch.distributed, on one machine or many.

Every process makes the same plan (the waves, and the groups of each), trains some of the groups, and receives the
others' results at the end of each wave. The plan depends on how many threads all of them have together, so that the
result is, to the last bit, that of one process with as many threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.rendezvous import rendezvous

from graphldp.errors import GraphLDPError, ProcessError
from graphldp.learn.state import Interrupted

__all__ = ["DistributedProcesses", "Processes"]

# How long a process may work on its groups while others wait for it.
PATIENCE = timedelta(days=30)
# How long to wait for all processes to appear.
ARRIVAL = timedelta(minutes=10)
# Between two looks at what the others say.
LOOK_SECONDS = 0.2
WAIT_SECONDS = 0.01
# How long a process that failed waits for the first one to hear of it, which says so to the user.
FAREWELL_SECONDS = 10.0
GONE = "another process of this training ended without a word: it was killed, or out of memory (max_memory bounds it)"
FAILED, STOPPED, HEARD = "graphldp/failed", "graphldp/stopped", "graphldp/heard"
PRESSED = "Ctrl-C"  # in the place of a failure, of a process that was not training


class Processes:
    """The process that trains alone; `DistributedProcesses` is one of several."""

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """Whether this is the process that speaks and writes."""
        return self.rank == 0

    @property
    def threads(self) -> int:
        """How many threads torch uses in all processes together."""
        return torch.get_num_threads()

    def gather(self, data: bytes, tick: Callable[[], Any] | None = None) -> list[bytes]:
        """Return what every process has given, in their order; `tick` is called while waiting."""
        return [data]

    def stop(self) -> None:
        """Ask all processes to stop between two epochs."""

    def stopping(self) -> bool:
        """Return whether a process has asked to stop; a process that failed raises its error here."""
        return False


class DistributedProcesses(Processes):
    """One of several processes, as `torchrun` starts them: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT are set.

    Use as a context. An error that leaves it is told to the others, who end with it; so that somebody sees it, the
    first process raises it as a `ProcessError`. Ctrl-C is no failure: one that stops a training has been agreed on, and
    any other one is Ctrl-C to the others, too.

    Args:
        device: on which data travel: the CPU by gloo, CUDA by nccl.
    """

    def __init__(self, device: torch.device):
        self.device = device
        self._looked = 0.0
        self._stopped = False

    def __enter__(self) -> DistributedProcesses:
        """Wait until all are there."""
        try:
            self._store, self.rank, self.size = next(rendezvous("env://", timeout=ARRIVAL))
            backend = "nccl" if self.device.type == "cuda" else "gloo"
            dist.init_process_group(backend, store=self._store, rank=self.rank, world_size=self.size, timeout=PATIENCE)
            self._threads = sum(int(part) for part in self.gather(str(torch.get_num_threads()).encode()))
        except (RuntimeError, ValueError) as error:
            raise ProcessError(f"the processes did not find each other: {_line(error)}") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Leave; tell the others of a failure."""
        if error is not None:
            self._farewell(error)
        elif dist.is_initialized():
            dist.destroy_process_group()

    @property
    def threads(self) -> int:
        """How many threads torch uses in all processes together."""
        return self._threads

    def gather(self, data: bytes, tick: Callable[[], Any] | None = None) -> list[bytes]:
        """Return what every process has given, in their order; `tick` is called while waiting."""
        length = torch.tensor([len(data)], dtype=torch.int64, device=self.device)
        lengths = [torch.empty_like(length) for _ in range(self.size)]
        self._wait(lengths, length, tick)
        sizes = [int(one) for one in lengths]
        padded = torch.zeros(max(sizes), dtype=torch.uint8)
        padded[: len(data)] = torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else padded[:0]
        padded = padded.to(self.device)
        parts = [torch.empty_like(padded) for _ in range(self.size)]
        self._wait(parts, padded, tick)
        return [part[:size].cpu().numpy().tobytes() for part, size in zip(parts, sizes, strict=True)]

    def _wait(self, parts: list[torch.Tensor], part: torch.Tensor, tick: Callable[[], Any] | None) -> None:
        """Gather, and stay reachable for Ctrl-C and for a process that fails meanwhile."""
        try:
            work = dist.all_gather(parts, part, async_op=True)
            while not work.is_completed():
                time.sleep(WAIT_SECONDS)
                self.stopping()
                if tick is not None:
                    tick()
            work.wait()
        except RuntimeError as error:
            self._look()
            raise ProcessError(GONE) from error

    def stop(self) -> None:
        """Ask all processes to stop between two epochs."""
        if not self._stopped:
            self._stopped = True
            self._store.set(STOPPED, "yes")

    def stopping(self) -> bool:
        """Return whether a process has asked to stop; a process that failed raises its error here."""
        now = time.monotonic()
        if now - self._looked >= LOOK_SECONDS:
            self._looked = now
            self._look()
        return self._stopped

    def _look(self) -> None:
        """Look at what the others have left in the store."""
        try:
            if self._store.check([FAILED]):
                why = self._store.get(FAILED).decode()
                raise KeyboardInterrupt if why == PRESSED else ProcessError(why)
            self._stopped = self._stopped or self._store.check([STOPPED])
        except RuntimeError as error:  # of torch: the store has ended with the process that keeps it
            raise ProcessError(GONE) from error

    def _farewell(self, error: BaseException) -> None:
        """Leave the reason where the others look, and wait until the first process has taken it."""
        if isinstance(error, Interrupted) or isinstance(error.__cause__, Interrupted):
            return  # all of them stop there; who leaves first has not failed
        who = "the first process" if self.leads else f"process {self.rank} of {self.size}"
        why = PRESSED if isinstance(error, KeyboardInterrupt) else f"{who} failed: {_line(error)}"
        try:
            if self.leads:
                self._store.set(FAILED, why)
                self._store.set(HEARD, "yes")
                return
            if not isinstance(error, ProcessError):
                self._store.compare_set(FAILED, "", why)
                self._store.wait([HEARD], timedelta(seconds=FAREWELL_SECONDS))
        except RuntimeError:
            return  # nobody is left to hear it


def _line(error: BaseException) -> str:
    """Return what one line can say of an error; a defect is named by its type."""
    text = " ".join(str(error).split("\n")[0].split())
    return text if isinstance(error, GraphLDPError) else f"{type(error).__name__}{': ' if text else ''}{text}"
