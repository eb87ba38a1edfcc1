"""What people read: tables, figures, the report page, the pages of the docs that follow from the code."""

from __future__ import annotations

__all__: list[str] = []
