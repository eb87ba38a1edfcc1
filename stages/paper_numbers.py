"""The numbers that papers print, and which of them may stand beside a row of ours.

`papers/` holds one YAML per paper and the printed tables as CSV. It belongs to the repository, not to the wheel. A
printed number stands beside one of our rows only where the paper's YAML says so (`beside`), with a note on what the
paper leaves open; what no paper prints stays empty.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphldp.errors import DataError

__all__ = ["PaperNumber", "PaperNumbers", "load_papers"]

_PAPER_KEYS = {"paper", "short", "title", "reference", "tables", "figures"}
_CELL_KEYS = {"row", "printed", "metric", "value", "ours"}
_OURS_KEYS = {"dataset", "method", "mechanism", "model", "task", "epsilon"}
_BESIDE_KEYS = {"printed", "method", "mechanism", "rank", "note"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperNumber:
    """One printed number: where it stands, its value and spread as printed, and what to know before comparing.

    `paper` is the paper's short name, `source` its title and reference.
    """

    paper: str
    source: str
    table: str
    printed: str
    value: str
    spread: str
    spread_kind: str
    note: str
    rank: int

    @property
    def reference(self) -> str:
        """Name the place, for example 'UPGNet Table 2 (MBM)'."""
        return f"{self.paper} Table {self.table} ({self.printed})"

    @property
    def text(self) -> str:
        """The number as printed, with its spread where one is printed."""
        return f"{self.value} ± {self.spread}" if self.spread else self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    cell: tuple[str | None, str, str | None, str | None, str, float | None]
    metric: str
    number: PaperNumber


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperNumbers:
    """All comparable numbers of a folder of papers; `folder` is None when there was none to read."""

    folder: Path | None
    entries: tuple[_Entry, ...]

    @property
    def missing(self) -> bool:
        """Whether no folder was read, so that an empty column means nothing."""
        return self.folder is None

    def lookup(
        self,
        *,
        dataset: str,
        method: str,
        mechanism: str,
        model: str,
        epsilon: float,
        task: str = "node_classification",
        metric: str = "accuracy",
    ) -> list[PaperNumber]:
        """Return the printed numbers that may stand beside a cell, the closest first.

        A paper that does not name its model stands beside any model of ours; its note says so.
        """
        found = [
            entry.number
            for entry in self.entries
            if entry.metric == metric
            and entry.cell[:3] == (dataset, method, mechanism)
            and entry.cell[3] in (None, model)
            and entry.cell[4] == task
            and entry.cell[5] is not None
            and (entry.cell[5] == epsilon or math.isclose(entry.cell[5], epsilon, rel_tol=1e-9))
        ]
        return sorted(found, key=lambda number: (number.rank, number.paper, number.table, number.printed))


def load_papers(folder: Path) -> PaperNumbers:
    """Read every `*.yaml` of the folder with its CSVs. A folder that is not there gives an empty, marked result."""
    if not folder.is_dir():
        return PaperNumbers(folder=None, entries=())
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same language, read ten times as fast
    entries: list[_Entry] = []
    for path in sorted(folder.glob("*.yaml")):
        try:
            paper = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)
        except yaml.YAMLError as error:
            raise DataError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
        if not isinstance(paper, dict) or not set(paper) >= _PAPER_KEYS:
            raise DataError(f"{path} needs the keys {', '.join(sorted(_PAPER_KEYS))}")
        for table in paper["tables"]:
            entries.extend(_table_entries(path, paper, table))
    return PaperNumbers(folder=folder, entries=tuple(entries))


def _table_entries(path: Path, paper: Mapping[str, Any], table: Mapping[str, Any]) -> list[_Entry]:
    where = f"{path}, table {table.get('table')}"
    printed = _read_csv(path.parent / table["file"], where)
    for rule in table["beside"]:
        _check_keys(where, "beside", rule, _BESIDE_KEYS)
    entries = []
    for cell in table["cells"]:
        _check_keys(where, "cells", cell, _CELL_KEYS)
        _check_keys(where, "ours", cell["ours"], _OURS_KEYS, optional={"variant"})
        row = _printed_row(where, printed, cell)
        ours = cell["ours"]
        for rule in table["beside"]:
            if rule["printed"] != cell["printed"]:
                continue
            number = PaperNumber(
                paper=str(paper["short"]),
                source=f"{paper['title']}. {paper['reference']}.",
                table=str(table["table"]),
                printed=cell["printed"],
                value=row["value"],
                spread=row["spread"],
                spread_kind=row["spread_kind"],
                note=rule["note"],
                rank=int(rule["rank"]),
            )
            epsilon = None if ours["epsilon"] is None else float(ours["epsilon"])
            address = (ours["dataset"], rule["method"], rule["mechanism"], ours["model"], ours["task"], epsilon)
            entries.append(_Entry(cell=address, metric=cell["metric"], number=number))
    return entries


def _read_csv(path: Path, where: str) -> list[dict[str, str]]:
    if not path.is_file():
        raise DataError(f"{where}: {path} does not exist; `file` must name a CSV of the papers' folder")
    with path.open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def _printed_row(where: str, printed: list[dict[str, str]], cell: Mapping[str, Any]) -> dict[str, str]:
    """Return the CSV row of a cell, after checking that both say the same."""
    number = int(cell["row"])
    if not 1 <= number <= len(printed):
        raise DataError(f"{where}: row {number} is not in its CSV, which has {len(printed)} rows")
    row: dict[str, str] = printed[number - 1]
    for key, column in (("printed", "method"), ("metric", "metric"), ("value", "value")):
        if row[column] != cell[key]:
            raise DataError(f"{where}, row {number}: {key} is {cell[key]!r} here and {row[column]!r} in the CSV")
    return row


def _check_keys(
    where: str, part: str, entry: Mapping[str, Any], keys: set[str], *, optional: set[str] | None = None
) -> None:
    names = set(entry)
    if not keys <= names or names - keys - (optional or set()):
        raise DataError(f"{where}: an entry of {part} has the keys {sorted(names)}, expected {sorted(keys)}")
