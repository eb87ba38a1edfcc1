"""One module per stage or command: read artifacts, call the library, write artifacts. No mathematics here."""

from __future__ import annotations

__all__: list[str] = []
