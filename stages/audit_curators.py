"""Command audit, of trusted curators: a lower bound on what their graphs lose, from samples alone.

What a curator makes of all links has no law that could be written out: two graphs of five people, one link apart, are
drawn from many times, and what tells them apart bounds epsilon from below. A bound above epsilon convicts; one below
proves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from graphldp.audit.links import curator_bound
from graphldp.errors import OptionError
from graphldp.progress import Progress
from graphldp.randomness import generator
from graphldp.trusted import CAVEAT, CURATORS

__all__ = ["BUDGETS", "HEADS", "SAMPLES", "CuratorRow", "audit_curators", "cells", "section"]

BUDGETS, SAMPLES = (0.1, 1.0, 5.0), 2000
_CHAINS = ("privhrg", "edgerr")
HEADS = ("curator", "epsilon", "lower bound", "verdict")


@dataclass(frozen=True, slots=True, kw_only=True)
class CuratorRow:
    """One curator at one budget.

    Attributes:
        curator, epsilon: who, and the claimed epsilon of one link.
        bound: the lower bound, with 95 % confidence.
        samples: how many graphs of either kind were drawn.
        caveat: what is not proved whatever the bound is; empty where the claim is exact.
    """

    curator: str
    epsilon: float
    bound: float
    samples: int
    caveat: str

    @property
    def fails(self) -> bool:
        """Whether the samples convict the claim."""
        return self.bound > self.epsilon

    def as_json(self) -> dict[str, Any]:
        """Return the row as JSON-able values."""
        return {**asdict(self), "fails": self.fails}


def audit_curators(
    names: Sequence[str],
    epsilons: Sequence[float],
    *,
    samples: int = SAMPLES,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[CuratorRow]:
    """Return a row for each curator and budget."""
    wrong = [value for value in epsilons if not 0 < value <= 700]
    if wrong:
        raise OptionError(f"a curator's epsilon must be above 0 and at most 700, got {wrong[0]:g}")
    todo = [(name, epsilon) for name in names for epsilon in epsilons]
    out = []
    for count, (name, epsilon) in enumerate(todo, start=1):
        found = curator_bound(name, epsilon, generator(seed, "audit", name, epsilon), samples=samples)
        caveat = CAVEAT if name in _CHAINS else ""
        out.append(CuratorRow(curator=name, epsilon=epsilon, bound=found.value, samples=samples, caveat=caveat))
        if progress:
            progress(count, len(todo), f"{name} at epsilon {epsilon:g}")
    return out


def cells(row: CuratorRow) -> list[str]:
    """Return a row's cells as text."""
    verdict = "FAILS" if row.fails else "nothing speaks against it" + (", and no proof" if row.caveat else "")
    return [row.curator, f"{row.epsilon:g}", f"{row.bound:.4g}", verdict]


def section(rows: Sequence[CuratorRow]) -> str:
    """Return the rows as a section of a page, with what they do not say."""
    lines = [
        "## With a trusted curator",
        "",
        "A lower bound on epsilon of one link, from graphs of five people with one link more or less (95 % confidence,",
        f"{rows[0].samples:,} graphs of either kind). Above epsilon it convicts, and below it proves nothing.",
        f"Of `{'` and `'.join(_CHAINS)}` it is a bound on a chain of finitely many steps: {CAVEAT}.",
        f"`{'` and `'.join(name for name in CURATORS if name not in _CHAINS)}` are exact by their formulas.",
        "",
        f"| {' | '.join(HEADS)} |",
        "| --- | ---: | ---: | --- |",
        *(f"| {' | '.join(cells(row))} |" for row in rows),
        "",
    ]
    return "\n".join(lines)
