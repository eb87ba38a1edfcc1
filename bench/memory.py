"""How much memory a program has used, for the benchmarks and the tests of memory."""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["peak"]


def peak() -> int:
    """Return the peak resident size so far, in bytes; of this program alone, where the system can say so."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        # What follows may count what the process was started from: a child begins with the peak of its parent.
        pass
    import resource

    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else size * 1024
