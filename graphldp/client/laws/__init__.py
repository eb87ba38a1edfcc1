"""What laws of reports share: densities, finite outputs, coded numbers, bits, noise that is added, sets."""

from __future__ import annotations

__all__: list[str] = []
