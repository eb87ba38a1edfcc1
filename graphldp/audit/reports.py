"""Anybody's reports as numbers: flattened, and summed up in statistics from which events are made."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Table", "flatten", "statistics", "table"]

Floats: TypeAlias = NDArray[np.float64]

_NOTHING = 1e200  # stands for a missing part, and for infinity: still a number that can be binned
_MOST_COLUMNS = 64  # coordinates that are looked at one by one


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """Reports as rows of equal width; a shorter report ends in NaN."""

    rows: Floats
    lengths: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, part: slice) -> Table:
        """Return some of the reports."""
        return Table(rows=self.rows[part], lengths=self.lengths[part])


def flatten(report: Any) -> list[float]:
    """Return a report's numbers in order; a word or a missing part becomes a number that stands for it."""
    if report is None:
        return [_NOTHING]
    if isinstance(report, bool | int | float | np.generic):
        return [float(report)] if not isinstance(report, np.str_) else [_code(str(report))]
    if isinstance(report, str | bytes):
        return [_code(str(report))]
    if isinstance(report, np.ndarray):
        return [float(v) for v in np.asarray(report, dtype=np.float64).reshape(-1)]
    if dataclasses.is_dataclass(report) and not isinstance(report, type):
        return flatten([getattr(report, field.name) for field in dataclasses.fields(report) if field.name != "meta"])
    if isinstance(report, Mapping):
        return flatten([(key, report[key]) for key in sorted(report, key=str)])
    if isinstance(report, Iterable):
        return [value for part in report for value in flatten(part)]
    return [float(report)]


def table(reports: list[list[float]]) -> Table:
    """Return flattened reports as one table."""
    lengths = np.array([len(report) for report in reports], dtype=np.int64)
    rows = np.full((len(reports), int(lengths.max(initial=0))), np.nan)
    for row, report in zip(rows, reports, strict=True):
        row[: len(report)] = np.clip(report, -_NOTHING, _NOTHING)
    return Table(rows=rows, lengths=lengths)


def statistics(reports: Table) -> dict[str, Floats]:
    """Return the numbers by which a report may give its input away, by name.

    Each coordinate, and what a proof easily forgets: how many entries are not zero, the size of the largest, the
    length. A report that takes few values also has a code of its own.
    """
    rows = reports.rows
    width = rows.shape[1]
    found = {f"entry {j}": rows[:, j] for j in range(min(width, _MOST_COLUMNS))}
    if width > 1:
        filled = np.nan_to_num(rows)
        found["number of entries that are not 0"] = (filled != 0).sum(axis=1).astype(np.float64)
        found["largest magnitude"] = np.abs(filled).max(axis=1)
        found["smallest magnitude that is not 0"] = _smallest(filled)
        found["sum"] = filled.sum(axis=1)
        found["whole report"] = _whole(rows)
        found["length"] = reports.lengths.astype(np.float64)
    return found


def _smallest(rows: Floats) -> Floats:
    sizes = np.where(rows != 0, np.abs(rows), np.inf).min(axis=1)
    return np.where(np.isfinite(sizes), sizes, -1.0)


def _whole(rows: Floats) -> Floats:
    """Return a number for each report that depends on all of it, equal for equal reports."""
    mixed = np.zeros(len(rows))
    for j in range(rows.shape[1]):
        mixed = np.modf(mixed * 7.389056098930651 + np.nan_to_num(rows[:, j], nan=-12345.678) * 0.5772156649015329)[0]
    return np.asarray(np.round(mixed, 9))


def _code(word: str) -> float:
    return float(sum(ord(letter) * 131**place for place, letter in enumerate(word[:8])))
