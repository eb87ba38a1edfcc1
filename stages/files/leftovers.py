"""Names for what is there for a moment alone, and what killed processes have left under such names."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

__all__ = ["bring_back", "left_behind", "named", "own_name", "partial_name", "remove"]

_HOST = re.sub(r"[^A-Za-z0-9-]", "-", platform.node()) or "here"  # whose processes' numbers such a name has


def partial_name(path: Path) -> Path:
    """Return this process's temporary name beside a file or folder; what killed processes have left there goes."""
    for left, _ in left_behind(path.parent, "partial"):
        remove(left)
    return own_name(path, "partial")


def remove(left: Path) -> None:
    """Remove a file or folder, if that can be done."""
    if left.is_dir():
        shutil.rmtree(left, ignore_errors=True)
        return
    with contextlib.suppress(OSError):
        left.unlink(missing_ok=True)


def own_name(path: Path, kind: str) -> Path:
    """Return this process's own name beside a file or folder, for what is there for a moment alone."""
    return path.with_name(f".{path.name}.{_HOST}.{os.getpid()}.{kind}")


def named(path: str) -> str:
    """Return the name that a file or folder gets in the end, from the one that it has while it is being written."""
    return re.sub(r"(^|/)\.([^/]+?)(?:\.[A-Za-z0-9-]+\.\d+)?\.partial(/.*)?$", r"\1\2", path)


def left_behind(folder: Path, kind: str) -> Iterator[tuple[Path, str]]:
    """Return what processes of this machine that are gone have left under such names, with what it was to be."""
    ending = re.compile(rf"\.(.+)\.{re.escape(_HOST)}\.(\d+)\.{kind}")
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(kind))
    except OSError:
        return
    for name in names:
        found = ending.fullmatch(name)
        if found is not None and not _runs(found[2]):
            yield folder / name, found[1]


def _runs(process: str) -> bool:
    """Return whether a process of this machine, by its number, still runs."""
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except (ValueError, OverflowError, OSError):
        return True
    return True


def bring_back(folder: Path) -> None:
    """Give folders their names back that a killed process had set aside to put others in their place."""
    for old, name in left_behind(folder, "old"):
        if (folder / name).exists():
            remove(old)
        else:
            with contextlib.suppress(OSError):
                old.replace(folder / name)
