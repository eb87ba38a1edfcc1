"""What lies on disk: artifacts with their metadata, where they stand, how they are read, checked and kept."""

from __future__ import annotations

__all__: list[str] = []
