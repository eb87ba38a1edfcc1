"""Ctrl-C that waits for the end of an epoch, and groups of runs that train side by side.

The runs of a batch do not depend on each other, so that the cores share them best by taking some runs each: threads
that share every single operation wait for each other hundreds of times an epoch, which on a busy machine costs far more
than the work itself.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

import torch

__all__ = ["deferred_interrupt", "group_count", "side_by_side", "spread", "thread_share", "work"]

# Fewer hidden units than this (nodes * runs * width) are not worth a thread more.
LEAST_UNITS = 2**17
# So many hops of a backbone's own walk take as long as everything else that is done with a hidden unit in an epoch.
HOPS = 4
# Python itself runs one thread at a time: more groups than this wait for it.
MOST_GROUPS = 8
POLL_SECONDS = 0.1


@contextmanager
def deferred_interrupt() -> Iterator[Callable[[], bool]]:
    """Hold Ctrl-C back until the end of the epoch, as inside one the parameters are half updated.

    Yields a function that says whether it was pressed. A second Ctrl-C interrupts at once. SIGTERM is held back where
    it interrupts as Ctrl-C does. Signals can only be held in the main thread; elsewhere, and where somebody else
    handles them, nothing is changed.
    """
    pressed: list[int] = []

    def handler(number: int, frame: Any) -> None:
        if pressed:
            raise KeyboardInterrupt
        pressed.append(number)

    held = [one for one in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(one) is signal.default_int_handler]
    if threading.current_thread() is not threading.main_thread():
        held = []
    for one in held:
        signal.signal(one, handler)
    try:
        yield lambda: bool(pressed)
    finally:
        for one in held:
            signal.signal(one, signal.default_int_handler)


def group_count(runs: int, units: int, threads: int, processes: int = 1) -> int:
    """Return into how many groups to spread runs that have so many hidden units each; threads are of all processes."""
    return max(1, min(threads, runs, MOST_GROUPS * processes, runs * units // LEAST_UNITS))


def work(units: int, hops: int) -> int:
    """Return the hidden units of one run, weighed with the hops that they are walked in each pass."""
    return units * (HOPS + hops) // HOPS


def thread_share(groups: int, units: int, threads: int) -> int:
    """Return how many threads each of the groups uses, all of them having so many hidden units together."""
    return max(1, min(threads // groups, units // groups // LEAST_UNITS))


def spread(runs: Sequence[int], count: int) -> list[list[int]]:
    """Deal the runs out: each group gets a fair share of long and short filters and keeps the order."""
    return [list(runs[start::count]) for start in range(count)]


def side_by_side(
    tasks: Sequence[Callable[[Callable[[], bool]], None]],
    tick: Callable[[], bool],
    share: int,
    most: int | None = None,
) -> bool:
    """Do tasks at the same time and return whether they were stopped.

    Args:
        tasks: each is given a function that says whether to stop, which it asks at each point where it can.
        tick: called in this thread, now and then, and before each stop of a single task; says whether to stop.
        share: how many threads torch may use for each.
        most: how many are done at the same time, if not all.
    """
    stopped = threading.Event()

    def ask() -> bool:
        if not stopped.is_set() and tick():
            stopped.set()
        return stopped.is_set()

    threads = torch.get_num_threads()
    try:
        if len(tasks) == 1:
            torch.set_num_threads(share)
            tasks[0](ask)
            return stopped.is_set()
        with ThreadPoolExecutor(
            min(len(tasks), most or len(tasks)), initializer=torch.set_num_threads, initargs=(share,)
        ) as pool:
            futures = [pool.submit(task, stopped.is_set) for task in tasks]
            try:
                while wait(futures, POLL_SECONDS, FIRST_EXCEPTION).not_done:
                    if any(future.done() and future.exception() for future in futures):
                        stopped.set()
                    ask()
            except BaseException:
                stopped.set()
                raise
            for future in futures:
                future.result()
    finally:
        # Also after workers: their number became the default of threads to come.
        torch.set_num_threads(threads)
    return stopped.is_set()
