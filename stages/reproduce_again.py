"""A few cells of a committed reproduction computed again, and compared with what is committed.

Continuous integration takes other cells at each commit, so that a change that moves a reproduced number is found
without making everything again.
"""

from __future__ import annotations

import csv
import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphldp.stages.experiment import plan, run_cells
from graphldp.stages.params import Params
from graphldp.stages.reproduce import axes_text, cell_seconds, read_outcome
from graphldp.stages.tables import number
from graphldp.stages.targets import Made, Profile, Target, protocol_of

__all__ = ["Again", "again", "candidates", "committed", "rotated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """A cell, and the committed number that it has to come to.

    Attributes:
        params: those of its column.
        column: of the committed table.
        row: of the committed table.
    """

    target: Target
    made: Made
    params: Params
    column: str
    row: Mapping[str, str]

    @property
    def title(self) -> str:
        """What people call it."""
        row = self.row
        place = [row["dataset"], row["row"], row["place"], f"epsilon {row['epsilon']}", self.column]
        return f"{self.target.key}: {', '.join(filter(None, place))}"


def committed(target: Target, profile: Profile, results: Path) -> list[dict[str, str]]:
    """Return the rows of a committed table; none where nothing is committed."""
    path = results / "reproduce" / target.slug / profile.name / "table.csv"
    if not target.trains or not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def candidates(target: Target, profile: Profile, results: Path, papers: Path, dataset: str) -> Iterator[Again]:
    """Yield every cell of a data set that has a committed number with an interval."""
    rows = [row for row in committed(target, profile, results) if row["dataset"] == dataset]
    if not rows:
        return
    for name, (params, made) in target.columns(profile, protocol_of(target, papers), [dataset]).items():
        column = "theirs" if target.steps else name
        for one in made:
            found = next((row for row in rows if _is_of(one, row, column, bool(target.steps))), None)
            if found is not None and found[f"{column}_low"]:
                yield Again(target=target, made=one, params=params, column=column, row=found)


def _is_of(made: Made, row: Mapping[str, str], column: str, steps: bool) -> bool:
    if made.asked is None or row["metric"].endswith("gain") or not row[column]:
        return False
    place = made.reading if steps else axes_text(made.cell.axes)
    label = made.asked.printed if steps else made.asked.label
    same = (row["row"], row["place"], row["epsilon"]) == (label, place, number(made.cell.epsilon))
    return same and (steps or column == "ours" or row["reading"] in ("", made.reading))


def rotated(found: Sequence[Again], commit: str) -> list[Again]:
    """Return them in an order that a commit's hash decides."""
    return sorted(found, key=lambda one: hashlib.sha256(f"{commit} {one.title}".encode()).hexdigest())


def again(found: Sequence[Again], data: Path, seconds: float) -> tuple[list[str], list[str]]:
    """Compute what fits in so many seconds of a core; return the titles of what was computed, and what has moved."""
    names, moved, start = [], [], time.process_time()
    for one in found:
        left = seconds - (time.process_time() - start)
        if cell_seconds(one.params, one.made.cell, data) > left:
            continue
        what = plan(one.params, data, cells=[one.made.cell], fetch=False)
        run_cells(what, data)
        scores = read_outcome(one.made, what.paths[0])
        measure = scores.measure(one.row["metric"])
        mean = measure.factor * float(scores.scores[measure.name].mean())
        names.append(one.title)
        low, high = (float(one.row[f"{one.column}_{end}"]) for end in ("low", "high"))
        if not low <= mean <= high:
            moved.append(f"{one.title}: was {one.row[one.column]} [{low:g}, {high:g}], is {mean:.3f}")
    return names, moved
