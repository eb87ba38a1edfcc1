"""What is to be computed, as YAML: the grids of params.yaml and experiments/, the papers' tables and protocols."""

from __future__ import annotations

__all__: list[str] = []
