"""How long work says how far it has come."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

__all__ = ["Progress", "nested"]

Progress: TypeAlias = Callable[[int, int, str], None]  # is told (done, total, text)


def nested(progress: Progress | None, count: int, parts: int, words: str = "") -> Progress | None:
    """Return the progress of one of so many equal parts, of which `count` are done; `words` go before its own."""
    if progress is None:
        return None
    before = f"{words}: " if words else ""
    return lambda done, total, text: progress(count * total + done, parts * total, f"{before}{text}")
