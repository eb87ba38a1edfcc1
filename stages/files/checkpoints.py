"""The files in which an interrupted cell leaves what it had reached, and from which it goes on."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from graphldp.errors import ArtifactError
from graphldp.experiment.result import Checkpoint
from graphldp.stages.files.artifacts import Room, atomic, file_hash, json_text, write_text

__all__ = ["EVERY_SECONDS", "Keeper"]

EVERY_SECONDS = 10.0  # between two notes of what a training has finished, at least


class Keeper:
    """A file of facts, and one for the state of the batch in training.

    Args:
        path: the file for the state; the facts stand beside it.
        room: what was taken for what the work leaves; the facts are small and always fit there.
        note: is told what is kept less of because the disk is full.
    """

    def __init__(self, path: Path, room: Room | None = None, note: Callable[[str], None] | None = None) -> None:
        self._state = path
        self._facts = path.with_suffix(".json")
        self._room, self._note = room, note
        self._saved = time.monotonic()

    def save(self, checkpoint: Checkpoint) -> None:
        """Keep where the work was stopped; where the disk is full, without the batch that was being trained.

        The facts are written last: a checkpoint counts once they are there, and never with another's state.
        """
        state = checkpoint.state
        if state is not None:
            self.clear()
            try:
                with atomic(self._state) as partial:
                    partial.write_bytes(state)
            except ArtifactError as error:
                if self._room is None:
                    raise
                state = None
                if self._note is not None:
                    self._note(f"note: {error}. Kept is all but the part that was being trained")
        content = self._content(checkpoint, state).encode()
        if self._room is not None:
            self._room.write(self._facts, content)
        else:
            write_text(self._facts, content.decode())

    def pass_by(self, checkpoint: Checkpoint) -> None:
        """Keep what is finished now and then, for a process that is killed: all but the batch that it is in then.

        Where the disk is full nothing is kept meanwhile: the room is for the end.
        """
        if time.monotonic() - self._saved < EVERY_SECONDS:
            return
        self._saved = time.monotonic()
        with contextlib.suppress(ArtifactError):
            write_text(self._facts, self._content(checkpoint, None))
            self._state.unlink(missing_ok=True)

    def _content(self, checkpoint: Checkpoint, state: bytes | None) -> str:
        return json_text(
            {
                "fingerprint": checkpoint.fingerprint,
                "phase": checkpoint.phase,
                "rows": checkpoint.rows,
                "records": checkpoint.records,
                "state": None if state is None else file_hash(self._state),
            }
        )

    def load(self, mark: str) -> Checkpoint | None:
        """Return the checkpoint of the same work, or None; one of other work is left to be overwritten."""
        if not self._facts.exists():
            return None
        try:
            facts: dict[str, Any] = json.loads(self._facts.read_bytes())
            if facts["fingerprint"] != mark:
                return None
            # JSON has no infinity, which is the loss of a run that failed, and no NaN, which its measures may be.
            rows = [{**row, **_numbers(row)} for row in facts["rows"]]
            kept = facts["state"]
            if kept is not None and not self._state.exists():
                return None  # it is written before the facts: somebody has removed it
            whole = kept is None or file_hash(self._state) == kept
            checkpoint = Checkpoint(
                fingerprint=mark,
                phase=str(facts["phase"]),
                rows=rows,
                records=list(facts["records"]),
                state=self._state.read_bytes() if whole and kept is not None else None,
            )
        except (ValueError, KeyError, TypeError, AttributeError, OSError):
            whole = False
        if not whole:
            raise ArtifactError(
                f"{self._facts} and {self._state.name} beside it, left by an interrupted training, are damaged; delete "
                "them to start anew"
            )
        return checkpoint

    def clear(self) -> None:
        """Remove it: the work is done."""
        self._facts.unlink(missing_ok=True)
        self._state.unlink(missing_ok=True)


def _numbers(row: Mapping[str, Any]) -> dict[str, float]:
    """Return a row's validation scores, of which those that are no finite numbers are stored as words."""
    words = {key: value for key, value in row.items() if key.startswith("validation_") and isinstance(value, str)}
    return {key: float(value) for key, value in {"validation_loss": row["validation_loss"], **words}.items()}
