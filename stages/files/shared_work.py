"""Work that several processes share: claims on what is being made, and processes that help."""

from __future__ import annotations

import contextlib
import fcntl
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

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
    for one in others:
        one.start()
    try:
        yield
        for one in others:
            one.join()
    finally:
        for one in others:
            if one.is_alive():
                one.terminate()
                one.join()


@contextlib.contextmanager
def helping() -> Iterator[None]:
    """In a helper: stop in good order when told to; what goes wrong, the first process finds and says."""

    def stop(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    with contextlib.suppress(KeyboardInterrupt, Exception):
        yield
