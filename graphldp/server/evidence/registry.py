"""Evidence by name."""

from __future__ import annotations

from typing import Any

from graphldp.registry import Registry
from graphldp.server.evidence.base import Evidence

__all__ = ["evidence_class", "evidence_names", "make_evidence", "register"]

EVIDENCE: Registry[type[Evidence]] = Registry("evidence")
register = EVIDENCE.register
evidence_class = EVIDENCE.__getitem__


def evidence_names() -> list[str]:
    """Return the registered names, sorted."""
    return list(EVIDENCE)


def make_evidence(name: str, **options: Any) -> Evidence:
    """Return the evidence of that name with its options, for example `make_evidence('random', width=64)`."""
    return EVIDENCE.make(name, options)
