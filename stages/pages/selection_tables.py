"""What was measured of a selection as tables: for a terminal, in Markdown, as CSV; TOGL's numbers beside ours."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from graphldp.adversary import Rate
from graphldp.ledger import epsilon_text
from graphldp.stages.attack import percent, rate_text, write_rows
from graphldp.stages.files.artifacts import write_text
from graphldp.stages.selection import GroupRow, Selected, SelectionRow

__all__ = ["TableText", "flat", "markdown", "tables", "write_selection"]


def flat(row: Any) -> dict[str, Any]:
    """Return a row with a column for each number: a rate has two, the second its standard error."""
    out: dict[str, Any] = {}
    for part in fields(row):
        value = getattr(row, part.name)
        if isinstance(value, Rate):
            out |= {part.name: value.value, f"{part.name}_error": value.error}
        else:
            out[part.name] = value
    return out


@dataclass(frozen=True, slots=True, kw_only=True)
class TableText:
    """A table ready to be shown.

    Attributes:
        title: what it is.
        names: of the columns; the first two are text.
        rows: cells.
        notes: what the columns mean, and what was measured.
    """

    title: str
    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]


def tables(found: Selected, papers: Path) -> list[TableText]:
    """Return the three tables, with the number that TOGL prints beside the rows that it printed it for."""
    printed = _Printed.of(papers)
    return [_stable(found, printed), _fair(found, printed), _exposed(found, printed)]


def _stable(found: Selected, printed: _Printed) -> TableText:
    one = found.rows[0]
    return TableText(
        title=f"{one.dataset}: stability of the top {one.top} over {one.repetitions} repetitions (TOGL's Table 9)",
        names=("mechanism", "by", "eps", "m", "Jaccard", "by chance", "as on clean data", "TOGL"),
        rows=tuple(
            (
                row.mechanism,
                row.by,
                epsilon_text(row.epsilon),
                str(row.m),
                _two(row.jaccard),
                f"{row.chance:.3f}",
                f"{row.hits:.1f} of {row.top}",
                printed.number("9", row, "jaccard_similarity", "TOGL"),
            )
            for row in found.rows
        ),
        notes=(
            found.how,
            "Jaccard: mean over all pairs of repetitions, each with its own noise and split; +- is the jackknife error",
            "as on clean data: of the selected, how many the same scorer selects on the true features",
        ),
    )


def _fair(found: Selected, printed: _Printed) -> TableText:
    one = found.rows[0]
    return TableText(
        title=f"{one.dataset}: absolute correlation with the degree (TOGL's Table 6)",
        names=("mechanism", "by", "eps", "selected", "random", "selected, sent", "random, sent", "TOGL", "TOGL random"),
        rows=tuple(
            (
                row.mechanism,
                row.by,
                epsilon_text(row.epsilon),
                *(f"{v:.3f}" for v in (row.degree_selected, row.degree_random, row.sent_selected, row.sent_random)),
                printed.number("6", row, "pearson_correlation", "TOGL"),
                printed.number("6", row, "pearson_correlation", "Baseline"),
            )
            for row in found.rows
        ),
        notes=(
            "mean over attributes and repetitions; random: over all attributes, so what a random selection has",
            "sent: of the second round's rectified reports instead of the true attributes",
        ),
    )


def _exposed(found: Selected, printed: _Printed) -> TableText:
    bounds = sorted({(row.epsilon, row.bound) for row in found.groups})
    return TableText(
        title="single attributes: how well one tells the class, and what an attacker learns of it (TOGL's Table 10)",
        names=(
            *("mechanism", "by", "eps", "which", "utility", "clean", "law", "measured", "right (guess)"),
            *("votes", "learned", "public", "TOGL", "attack"),
        ),
        rows=tuple(
            (
                row.mechanism,
                row.by,
                epsilon_text(row.epsilon),
                row.group,
                rate_text(row.utility),
                percent(row.clean.value),
                percent(row.law, 2),
                rate_text(row.advantage),
                f"{percent(row.success.value)} ({percent(row.commonest.value)})",
                rate_text(row.votes),
                rate_text(row.learned),
                rate_text(row.public),
                printed.number("10", row, "accuracy", "TOGL", row.group),
                printed.number("10", row, "attack_accuracy", "TOGL", row.group),
            )
            for row in found.groups
        ),
        notes=(
            "asked: everybody reports them in the second round; selected: the others of the top; random: of the rest",
            "utility: test accuracy of a discriminant on one attribute's denoised values; clean: on its true ones; the "
            f"commonest class is {percent(found.groups[0].majority)}",
            "law, measured: true less false positives of the best guess from both reports of a person; LDP allows "
            + ", ".join(f"{percent(bound)} at {epsilon_text(epsilon)}" for epsilon, bound in bounds),
            "votes, learned, public: the same of the other attackers of `ldp attack`, the last without any report",
            "right: how often that guess is, and how often the guess of the commonest value",
            "TOGL, attack: the utility and the attack's accuracy that the paper prints, in percent",
        ),
    )


def _two(rate: Rate) -> str:
    return f"{rate.value:.3f}" if math.isnan(rate.error) else f"{rate.value:.3f} ± {rate.error:.3f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Number:
    table: str
    dataset: str
    method: str
    mechanism: str
    metric: str
    setting: str
    value: str
    epsilon: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Printed:
    """The numbers of TOGL's tables, as printed; none where the papers' folder is not there."""

    rows: tuple[_Number, ...]

    @classmethod
    def of(cls, papers: Path) -> _Printed:
        found, names = [], [one.name for one in fields(_Number) if one.name != "epsilon"]
        for table in ("6", "9", "10"):
            path = papers / "tables" / f"togl_table{table}.csv"
            if path.is_file():
                with path.open(encoding="utf-8", newline="") as handle:
                    rows = list(csv.DictReader(handle))
                found += [_Number(epsilon=float(row["epsilon"]), **{name: row[name] for name in names}) for row in rows]
        return cls(rows=tuple(found))

    def number(self, table: str, row: SelectionRow | GroupRow, metric: str, method: str, group: str = "") -> str:
        """Return the number for a row; empty where the paper prints none."""
        chosen = {"asked": "yes", "selected": "yes", "random": "no"}.get(group)
        for one in self.rows:
            same = (one.table, one.metric, one.method) == (table, metric, method)
            place = (one.dataset, one.mechanism, one.epsilon) == (row.dataset, row.mechanism, row.epsilon)
            if same and place and (chosen is None or f"selected={chosen}" in one.setting):
                return one.value
        return ""


def markdown(found: Selected, papers: Path) -> str:
    """Return the three tables in Markdown."""
    parts = []
    for table in tables(found, papers):
        parts += [f"## {table.title[:1].upper()}{table.title[1:]}", ""]
        parts += ["| " + " | ".join(table.names) + " |"]
        parts += ["| --- | --- |" + " ---: |" * (len(table.names) - 2)]
        parts += ["| " + " | ".join(row) + " |" for row in table.rows]
        parts += ["", *(f"- {note}" for note in table.notes), ""]
    return "# Selection, measured\n\n" + "\n".join(parts).rstrip() + "\n"


def write_selection(found: Selected, folder: Path, papers: Path) -> list[Path]:
    """Write selection.csv, groups.csv, attributes.csv and selection.md; return their paths."""
    names = ("selection.csv", "groups.csv", "attributes.csv", "selection.md")
    files = [folder / name for name in names]
    for path, rows in zip(files[:3], (found.rows, found.groups, found.attributes), strict=True):
        write_rows(path, [flat(row) for row in rows])
    write_text(files[3], markdown(found, papers))
    return files
