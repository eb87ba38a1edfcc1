"""What a machine gives a training: it changes how the work is done, never what is computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from graphldp.errors import OptionError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from graphldp.learn import Outcome
    from graphldp.learn.processes import Processes
    from graphldp.learn.row_store import Stores

__all__ = ["InMemory", "Memo", "Resources", "Rows", "memory_bytes"]

GIGABYTE = 10**9


Rows = list[dict[str, Any]]


class Memo(Protocol):
    """What learners that nobody tells anything have made of a graph, for the other cells that ask them again.

    The floor's learners stand in every cell of a method that falls back on them, and are the same at every budget. A
    key names all that decides a learner's runs, so what is taken from here is what would be computed.
    """

    def get(self, graph: str, key: str) -> tuple[Rows, Rows] | None:
        """Return rows and records; None of what was never computed. The key names the graph, too."""
        ...

    def put(self, graph: str, key: str, rows: Rows, records: Rows) -> None:
        """Keep rows and records, of values that JSON has."""
        ...


class InMemory:
    """A memo for the cells of one process."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Rows, Rows]] = {}

    def get(self, graph: str, key: str) -> tuple[Rows, Rows] | None:
        """Return what was put there under the key."""
        return self._known.get(key)

    def put(self, graph: str, key: str, rows: Rows, records: Rows) -> None:
        """Keep rows and records."""
        self._known[key] = (rows, records)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Within which bounds a cell is trained.

    Attributes:
        max_memory: bytes that training may take beside the data, by estimate; None is no bound.
        processes: those that share the runs; None alone.
        stores: opens where filtered inputs that memory does not hold may be for a while; None is nowhere.
        note: is told, in one line, what the bound has changed.
        memo: what other cells of the same graphs have computed already; None computes everything.
    """

    max_memory: int | None = None
    processes: Processes | None = None
    stores: Callable[[], AbstractContextManager[Stores]] | None = None
    note: Callable[[str], None] | None = None
    memo: Memo | None = None

    def __post_init__(self) -> None:
        if self.max_memory is not None and self.max_memory < 1:
            raise OptionError(f"max_memory must be at least 1 byte, got {self.max_memory}")

    @property
    def leads(self) -> bool:
        """Whether this is the process that writes."""
        return self.processes is None or self.processes.leads

    def meet(self) -> None:
        """Wait for the other processes to come here."""
        if self.processes is not None:
            self.processes.gather(b"")

    def tell(self, phase: str, outcome: Outcome) -> None:
        """Say what a phase was split into, if it was."""
        if self.note is None or self.max_memory is None:
            return
        limit = f"{self.max_memory / GIGABYTE:.3g} GB"
        batches, waves = outcome.record.get("batches"), outcome.record["waves"]
        if batches is not None and batches["automatic"]:
            self.note(
                f"{phase}: in batches of {batches['size']} training nodes, as in full batch a single run takes more "
                f"than {limit}"
            )
        if len(waves) > 1:
            self.note(
                f"{phase}: {sum(waves)} runs in {len(waves)} waves of at most {max(waves)}, to stay within {limit}"
            )


def memory_bytes(gigabytes: float | None) -> int | None:
    """Return a limit in bytes from one in GB, as the command line takes it."""
    return None if gigabytes is None else int(gigabytes * GIGABYTE)
