"""The files in which an interrupted cell leaves what it had reached, and from which it goes on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphldp.errors import ArtifactError
from graphldp.experiment.result import Checkpoint
from graphldp.stages.files.artifacts import atomic, file_hash, write_json

__all__ = ["Keeper"]


class Keeper:
    """A file of facts, and one for the state of the batch in training."""

    def __init__(self, path: Path) -> None:
        self._state = path
        self._facts = path.with_suffix(".json")

    def save(self, checkpoint: Checkpoint) -> None:
        """Write the facts last: a checkpoint counts once they are there, and never with another's state."""
        self.clear()
        if checkpoint.state is not None:
            with atomic(self._state) as partial:
                partial.write_bytes(checkpoint.state)
        facts = {
            "fingerprint": checkpoint.fingerprint,
            "phase": checkpoint.phase,
            "rows": checkpoint.rows,
            "records": checkpoint.records,
            "state": None if checkpoint.state is None else file_hash(self._state),
        }
        write_json(self._facts, facts)

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
