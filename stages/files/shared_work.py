"""Work that several processes share: claims on what is being made, and processes that help."""

from __future__ import annotations

import contextlib
import fcntl
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from pathlib import Path
from types import FrameType
from typing import Any

from graphldp.interrupts import heard

__all__ = ["claimed", "helpers", "helping"]


@contextlib.contextmanager
def claimed(path: Path, *, wait: bool, create: bool = True) -> Iterator[bool]:
    """Hold an exclusive lock, which the system takes from a process that ends; yield whether it is ours."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | (os.O_CREAT if create else 0), 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True
    finally:
        os.close(handle)


@contextlib.contextmanager
def helpers(count: int, target: Callable[..., None], *given: Any) -> Iterator[None]:
    """Have so many processes call a function meanwhile; in the end wait for them, or stop them if this one was."""
    spawn = multiprocessing.get_context("spawn")
    others = [spawn.Process(target=target, args=given, daemon=True) for _ in range(count)]
    try:
        with _without_interrupts():
            for one in others:
                one.start()
        yield
        for one in others:
            one.join()
    finally:
        begun = [one for one in others if one.pid is not None]
        try:
            for one in begun:
                one.terminate()
            for one in begun:
                one.join()
        finally:  # also on a second Ctrl-C, while they end their epoch
            for one in begun:
                one.kill()


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Start processes that a terminal's Ctrl-C does not reach: they are told by the one that started them, and once."""
    resource_tracker.ensure_running()  # which would lift the block when it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def helping() -> Iterator[None]:
    """In a helper: stop in good order when told to, or when the first process is gone; what goes wrong, that one says.

    A signal to the whole group arrives twice, from outside and from the first process: only the first one counts, as a
    training that is interrupted a second time leaves its batch.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        interrupt = signal.getsignal(signal.SIGINT)  # a training holds it back until its epoch is over
        assert callable(interrupt)
        interrupt(signal.SIGINT, frame)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, stop)
    threading.Thread(target=_end_with_the_first, daemon=True).start()
    with contextlib.suppress(KeyboardInterrupt, Exception), heard():
        yield
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # nothing is left to keep


def _end_with_the_first() -> None:
    first = multiprocessing.parent_process()
    assert first is not None
    first.join()
    os.kill(os.getpid(), signal.SIGTERM)
