"""How long work says how far it has come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

__all__ = ["Progress", "nested"]

Progress: TypeAlias = Callable[[int, int, str], None]  # is told (done, total, text)


def nested(progress: Progress | None, count: int, parts: int | Sequence[float], words: str = "") -> Progress | None:
    """Return the progress of one of several parts, of which `count` are done; `words` go before its own.

    `parts` says how many equal ones there are, or how much of the whole each of them is.
    """
    if progress is None:
        return None
    before = f"{words}: " if words else ""
    shares = [1.0] * parts if isinstance(parts, int) else parts
    start, own, whole = sum(shares[:count]), shares[count], sum(shares)

    def say(done: int, total: int, text: str) -> None:
        of_all = len(shares) * total
        progress(int(of_all * (start + own * done / total) / whole + 1e-6), of_all, f"{before}{text}")

    return say
