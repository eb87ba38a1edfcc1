"""The floor's learners on disk: what they have made of a graph is computed once, whatever command asks for it.

Each file is one learner's search, its playoff or its final runs, by all that decides it: graph, split, search,
training, learner and code. With the files or without them every artifact has the same bytes, so that the folder may be
deleted at any time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from graphldp import __version__
from graphldp.errors import ArtifactError
from graphldp.experiment.resources import Rows
from graphldp.stages.code import code_hash
from graphldp.stages.files.artifacts import write_text
from graphldp.stages.files.paths import floor_path

__all__ = ["Floors"]


class Floors:
    """A memo in files below a data folder.

    Processes may share the folder: a file is there as a whole or not at all, and two that compute the same write the
    same. A file that is damaged is computed anew, and one of other code is not looked at. Where nothing can be written
    the work goes on, and `note` is told.
    """

    def __init__(self, data: Path, note: Callable[[str], None] | None = None) -> None:
        self.data, self.note = data, note

    def get(self, graph: str, key: str) -> tuple[Rows, Rows] | None:
        """Return what was put there under the key; None where nothing was, or what is there is not whole."""
        try:
            kept = json.loads(self._path(graph, key).read_bytes())
            rows, records = kept["rows"], kept["records"]
            whole = kept["key"] == json.loads(key) and kept["content"] == _hash(rows, records)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return (rows, records) if whole else None

    def put(self, graph: str, key: str, rows: Rows, records: Rows) -> None:
        """Write rows and records; a failed run's infinite loss is written as Python reads it."""
        kept = {"key": json.loads(key), "content": _hash(rows, records), "rows": rows, "records": records}
        path = self._path(graph, key)
        try:
            write_text(path, json.dumps(kept) + "\n")
        except (OSError, ArtifactError) as error:
            cause = error.__cause__ or error
            if self.note is not None:
                self.note(
                    f"note: {path.parent} cannot be written ({getattr(cause, 'strerror', None) or cause}): the next "
                    "time the floor's learners are trained again"
                )
            self.note = None

    def _path(self, graph: str, key: str) -> Path:
        return floor_path(self.data, graph, _hash(key, code_hash("train"), __version__)[:32])


def _hash(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
