"""What has moved between a committed table and a regenerated one.

The rule: a cell may move within the interval that was committed beside it, ends included, and no further. A cell
that was committed without an interval may not move at all. Every other column must say the same, save `steps`, as the
search may choose another depth of equal worth, and `remark`, as another machine may tell two rows' runs apart: both are
mentioned and do not fail. Neither does a column that is new, of which nothing was committed. Rows that came or went
and columns that went are listed like moved cells.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from graphldp.errors import ArtifactError
from graphldp.stages.pages.tables import axis_columns, read_csv

__all__ = ["Difference", "check", "committed", "compare", "is_committed"]

# A measured column has its interval's ends beside it, with these endings.
_ENDS = ("_low", "_high")
_KEY = ("dataset", "row", "epsilon")
_MENTIONED = ("steps", "remark")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing that is not as it was committed; `fails` says whether the rule forbids it."""

    table: str
    cell: str
    column: str
    old: str
    new: str
    allowed: str
    fails: bool

    @property
    def text(self) -> str:
        """One line: what, from what, to what, and what would have been allowed."""
        allowed = f" (allowed: {self.allowed})" if self.allowed else ""
        return f"{self.table}: {self.cell}, {self.column}: {self.old or 'nothing'} -> {self.new or 'nothing'}{allowed}"


def check(results: Path, revision: str) -> list[Difference]:
    """Compare every table below `results` with the one committed at `revision`."""
    folder = results / "tables"
    here = {path.stem: path for path in sorted(folder.glob("*.csv"))}
    if not here:
        raise ArtifactError(f"{folder} has no table to compare; make it with `ldp evaluate`")
    there = committed(folder, revision)
    if not there:
        raise ArtifactError(
            f"no table is committed below {folder} at {revision}, so there is nothing to compare with; commit "
            f"{folder} first"
        )
    differences: list[Difference] = []
    for name in sorted({*here, *there}):
        old = read_csv(there[name]) if name in there else None
        new = read_csv(here[name].read_text(encoding="utf-8")) if name in here else None
        if old is None or new is None:
            state = ("", "added") if old is None else ("committed", "")
            differences.append(_structural(name, "the whole table", "presence", *state))
        else:
            differences += compare(name, old, new)
    return differences


def is_committed(results: Path, revision: str) -> bool:
    """Return whether every table below `results` is the committed one, to the byte: nothing may have made it again."""
    folder = results / "tables"
    here = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.csv")}
    return here == committed(folder, revision)


def committed(folder: Path, revision: str) -> dict[str, str]:
    """Return the text of every CSV of the folder at a revision, by its stem."""
    if not folder.is_dir():
        raise ArtifactError(f"{folder} does not exist; make it with `ldp evaluate`")
    names = _git(folder, "ls-tree", "--name-only", revision, "./").splitlines()
    return {Path(name).stem: _git(folder, "show", f"{revision}:./{name}") for name in names if name.endswith(".csv")}


def compare(table: str, old: list[dict[str, str]], new: list[dict[str, str]]) -> list[Difference]:
    """Return what differs between two tables, in the order of the committed one."""
    before, after = _by_key(table, old), _by_key(table, new)
    columns_before = list(old[0]) if old else []
    columns_after = list(new[0]) if new else []
    found = [
        _structural(table, "every row", f"column {column}", "there", "")
        for column in columns_before
        if column not in columns_after
    ]
    found += [
        _structural(table, "every row", f"column {column}", "", "there", fails=False)
        for column in columns_after
        if column not in columns_before
    ]
    shared = [column for column in columns_before if column in columns_after]
    for key, row in before.items():
        if key not in after:
            found.append(_structural(table, _cell(key), "row", "there", ""))
        else:
            found += _row(table, key, shared, row, after[key])
    found += [_structural(table, _cell(key), "row", "", "there") for key in after if key not in before]
    return found


def _row(
    table: str, key: tuple[str, ...], columns: list[str], old: dict[str, str], new: dict[str, str]
) -> Iterator[Difference]:
    for column in columns:
        if column.endswith(_ENDS) or old[column] == new[column]:
            continue
        allowed = old[column] or "nothing"
        low, high = (old.get(f"{column}{end}", "") for end in _ENDS)
        if low and high:
            allowed = f"{low} to {high}"
            if new[column] and float(low) <= float(new[column]) <= float(high):
                continue
        yield Difference(
            table=table,
            cell=_cell(key),
            column=column,
            old=old[column],
            new=new[column],
            allowed="any" if column in _MENTIONED else allowed,
            fails=column not in _MENTIONED,
        )


def _structural(table: str, cell: str, column: str, old: str, new: str, *, fails: bool = True) -> Difference:
    return Difference(table=table, cell=cell, column=column, old=old, new=new, allowed="", fails=fails)


def _by_key(table: str, rows: list[dict[str, str]]) -> dict[tuple[str, ...], dict[str, str]]:
    out: dict[tuple[str, ...], dict[str, str]] = {}
    names = axis_columns(rows[0]) if rows else []  # a place on an experiment's axes belongs to a row's name
    for row in rows:
        axes = [f"{column}={row[column]}" for column in names if row[column]]
        key = (*(row.get(column) or "" for column in _KEY), *axes)
        if key in out:
            raise ArtifactError(f"table {table} has two rows for {_cell(key)}; make it again")
        out[key] = row
    return out


def _cell(key: tuple[str, ...]) -> str:
    dataset, row, epsilon, *axes = key
    return ", ".join([f"{dataset} {row} at epsilon {epsilon}", *axes])


def _git(folder: Path, *arguments: str) -> str:
    """Run git in the folder; a failure is one line that says what git said."""
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise ArtifactError("git is not installed, so no committed table can be read; install git") from error
    if done.returncode != 0:
        said = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
        raise ArtifactError(f"the committed tables of {folder} cannot be read: {said}")
    return done.stdout
