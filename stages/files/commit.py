"""Which state of the code wrote a page: the last commit that changed it, where git knows one."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

__all__ = ["code_commit"]

_CODE = ("graphldp", "stages")  # what decides numbers and pages; a commit of anything else changes neither
_DIGITS = 12
_SECONDS = 20


@cache
def code_commit(root: Path | None = None) -> str:
    """Return '0123456789ab of 2026-01-31' for this code, or that of another root; empty where it is in no repository.

    The date is the commit's, not that of a run, so that the same code gives the same words.
    """
    root = root or Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return ""
    found = _git(root, "log", "-1", f"--abbrev={_DIGITS}", "--format=%h of %cs", "--", *_CODE)
    if not found:
        return ""
    return f"{found}, with changes since" if _git(root, "status", "--porcelain", "--", *_CODE) else found


def _git(root: Path, *arguments: str) -> str:
    """Return what git says; nothing where it is not installed or refuses."""
    known = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],
            capture_output=True, text=True, check=True, timeout=_SECONDS, env=known | {"LC_ALL": "C"},
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
