"""Counts, and a search, in words, for tables and for the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["counted", "spoken"]


def counted(count: int, what: str) -> str:
    """Return '1 point' or '4 points'."""
    return f"{count:,} {what}{'s' * (count != 1)}"


def spoken(search: Mapping[str, Any]) -> str:
    """Return in words what is unusual in a search, from what its artifact says; empty where nothing is."""
    parts = []
    if search.get("strategy") == "grid":
        parts.append("the whole grid")
    if search.get("space") == "paper":
        parts.append("each method in the space that its paper names, where it names one")
    options = sorted(search.get("options") or {})
    return "; ".join([*parts, *([f"also searched: {', '.join(options)}"] if options else [])])
