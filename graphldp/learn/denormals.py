"""Numbers below float32's normal range count as 0 while a thread trains.

The gradients of confident predictions are full of them, and processors take many times as long for each. They are
below 1.2e-38: nothing that is learned depends on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

__all__ = ["flushed_denormals"]


def _flushes() -> bool:
    """Return whether this thread flushes them already."""
    return not bool(torch.full((1,), 1e-30, dtype=torch.float32).mul_(1e-10).count_nonzero())


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """While it lasts, this thread rounds such numbers to 0; afterwards it does as before."""
    before = _flushes()
    # False where the processor cannot: training is then merely slower.
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)
