"""What a cell has become, and where an interrupted one goes on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from graphldp.learn import Outcome, Problem, Run

if TYPE_CHECKING:
    from graphldp.experiment.plan import Setup

__all__ = ["CellResult", "Checkpoint", "Pause", "fingerprint"]


@dataclass(slots=True)
class Checkpoint:
    """Where an interrupted cell goes on: the phase it was in, what is finished, the trainer's state.

    Attributes:
        fingerprint: what the cell computes; a checkpoint of anything else is not taken up.
        phase: `search` or `final`.
        rows: the rows of the search's finished batches, and of the playoff.
        records: what the trainer noted of these batches.
        state: of the batch that was being trained, as bytes; None between two batches.
    """

    fingerprint: str
    phase: str
    rows: list[dict[str, Any]]
    records: list[dict[str, Any]]
    state: bytes | None

    def to_bytes(self) -> bytes:
        """Return it as one piece, for other processes."""
        names = ("fingerprint", "phase", "rows", "records")
        facts = {name: getattr(self, name) for name in names}
        head = json.dumps({**facts, "begun": self.state is not None}).encode()
        return b"%d\n%b%b" % (len(head), head, self.state or b"")

    @classmethod
    def from_bytes(cls, data: bytes) -> Checkpoint:
        """Read it back."""
        length, _, rest = data.partition(b"\n")
        facts = json.loads(rest[: int(length)])
        begun = facts.pop("begun")
        return cls(**facts, state=rest[int(length) :] if begun else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Where a cell goes on, and what becomes of it when it is interrupted.

    Attributes:
        checkpoint: where it goes on; None from the start.
        on_stop: receives a checkpoint when the work is interrupted.
        on_way: receives one, without a batch in training, whenever a batch is finished.
        fingerprint: what the checkpoint says that the cell computes.
    """

    checkpoint: Checkpoint | None = None
    on_stop: Callable[[Checkpoint], None] | None = None
    on_way: Callable[[Checkpoint], None] | None = None
    fingerprint: str = ""


@dataclass(slots=True, kw_only=True, eq=False)
class CellResult:
    """What a cell has become.

    Attributes:
        rows: one per run, search and final.
        chosen: the point that the search chose.
        steps: its depth K.
        setup: what it means.
        problem, outcome, runs: of the final runs, for saving a model. They are not there for a method that learns
            nothing, nor for a cell that was computed before.
        records: what the trainer noted of each batch of the search.
        record: what it noted of the final runs.
        learners: which learners were tried; one without a name where there is only one.
    """

    rows: list[dict[str, Any]]
    chosen: dict[str, Any]
    steps: int = 0
    setup: Setup | None = None
    problem: Problem | None = None
    outcome: Outcome | None = None
    runs: Sequence[Run] = ()
    records: Sequence[dict[str, Any]] = ()
    record: dict[str, Any] = field(default_factory=dict)
    learners: tuple[str, ...] = ()


def fingerprint(*parts: Any) -> str:
    """Return a hash of JSON-able parts: what a checkpoint must agree with to be taken up."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()
