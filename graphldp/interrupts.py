"""Ctrl-C and SIGTERM, which mean the same to a command and to the processes that help it."""

from __future__ import annotations

import _thread
import contextlib
import signal
import sys
import threading
from collections.abc import Iterator

__all__ = ["heard", "terminated_as_interrupted"]

_MOMENT = 0.05  # seconds, by which the callback has ended


@contextlib.contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Let SIGTERM do as Ctrl-C does, and none of both be lost."""
    handler = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with heard():
            yield
    finally:
        signal.signal(signal.SIGTERM, handler)


@contextlib.contextmanager
def heard() -> Iterator[None]:
    """Take an interrupt that falls into a callback of the garbage collector, where Python drops it, a moment later."""
    hook, sys.unraisablehook = sys.unraisablehook, _hear_again
    try:
        yield
    finally:
        sys.unraisablehook = hook


def _hear_again(lost: sys.UnraisableHookArgs) -> None:
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
        return
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN  # as in the background of a script
    again = threading.Timer(_MOMENT, _thread.interrupt_main, (signal.SIGTERM if ignored else signal.SIGINT,))
    again.daemon = True
    again.start()
