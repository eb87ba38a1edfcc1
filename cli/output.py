"""What is measured for minutes and written at its end: that it can be written is known before, and nothing is lost."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from graphldp.errors import ArtifactError

__all__ = ["check_room", "written"]

_ROOM = 2**20  # bytes; what the committed measurements wrote takes at most 372 kB


def check_room(output: Path | None) -> None:
    """Refuse a folder, or the place of a file, in which nothing can be written; leave everything as it was."""
    if output is None:
        return
    from graphldp.stages.files.artifacts import Room

    place = output.parent if output.suffix else output
    new = [folder for folder in (place, *place.parents) if not folder.exists()]
    try:
        Room(place / "results", _ROOM).leave()
    finally:
        for folder in new:
            with contextlib.suppress(OSError):
                folder.rmdir()


@contextlib.contextmanager
def written(output: Path | None, write: Callable[[Path], list[Path]]) -> Iterator[list[Path]]:
    """Write what was measured and yield the files; where that fails, yield none and fail after it has been shown."""
    files, failed = [], None
    if output is not None:
        try:
            files = write(output)
        except (ArtifactError, OSError) as error:
            failed = error
    try:
        yield files
    finally:
        if failed is not None:
            raise failed
