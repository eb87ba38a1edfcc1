"""Pages of committed tables, written by today's code from what stands in the table's folder: nothing is computed.

A table that does not name the code which made it is of earlier code: its ceiling is one model and not the best of
several learners, and its intervals are a bootstrap's. Its record (`tables/main.csv`, and the words of
`tables/main.md`) is never touched. Its page and figures are made again from that record, so that they look and link as
all others do, and say at their head whose the numbers are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphldp import __version__
from graphldp.datasets import title
from graphldp.errors import ArtifactError, DataError
from graphldp.evaluation import Confidence, Interval
from graphldp.ledger import Ledger
from graphldp.measures import Measure, measures_of, tasks
from graphldp.methods import Role, role_of
from graphldp.stages.files.artifacts import write_text
from graphldp.stages.files.commit import code_commit, file_commit
from graphldp.stages.files.traces import FILE
from graphldp.stages.grids.paper_numbers import PaperNumber, PaperNumbers, load_papers
from graphldp.stages.grids.params import Params, find, load
from graphldp.stages.pages.class_information import backgrounds_of
from graphldp.stages.pages.figures import budget_figure
from graphldp.stages.pages.maps import drawn, map_figure, maps
from graphldp.stages.pages.report import report_page
from graphldp.stages.pages.tables import ClaimMark, Result, Section, TableRow, axis_columns, columns, read_csv
from graphldp.stages.pages.wording import at, short
from graphldp.tasks import TaskEntry

__all__ = ["earlier", "read_committed", "write_pages"]

_BOOTSTRAP = "percentile bootstrap interval (1000 resamples)"
_SEARCH = re.compile(r"same search \((\d+) points?, (\d+) seeds?, (.*?)chosen by")
_SAME = "same runs as "
_NUMBER = re.compile(r"[-−+]?\d+\.\d+")
_MINUS = "−"
_SHOWN = ("gain over structure", "gap to nonpriv")  # what the words' columns call the record's `gain` and `gap`


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bootstrap(Confidence):
    """Intervals of earlier code, with what simulations say of them (`bench/intervals.py`)."""

    @property
    def words(self) -> str:
        """What a table says of its intervals."""
        return "95 % (a bootstrap's, too narrow for few runs: in simulations ten runs cover 91 %, five 84, three 74)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row(TableRow):
    """A row as its record has it: what was spent stands there in words."""

    said: str

    @property
    def spent(self) -> str:
        """What the epsilon of one user was spent on."""
        return self.said


@dataclass(frozen=True, slots=True, kw_only=True)
class _Section(Section):
    """A table as its record has it: its title and its protocol stand there in words."""

    headed: str
    said: str

    @property
    def title(self) -> str:
        """The data set, and what is set for all of its rows, in today's words."""
        words = {f"{short(name)} {value}": at(name, value) for name, value in self.setting}
        first, *rest = self.headed.split(", ")
        return ", ".join([title(first), *(words.get(part, part) for part in rest)])

    @property
    def protocol(self) -> str:
        """One line: how every row of this table was made."""
        said = f"{self.title}{self.said.removeprefix(self.headed)}"
        return f"{said} The ceiling (nonpriv, epsilon infinite) is one model with everybody's true features."

    @property
    def worth(self) -> str:
        """Who reaches the ceiling."""
        return "one model with everybody’s true features reaches"

    @property
    def against(self) -> str:
        """Why a ceiling may lie below its floor."""
        return "the learner behind the floor makes more of graph and labels than that one model of all features"


def earlier(results: Path) -> list[Path]:
    """Return the folders of tables that do not name the code which made them."""
    folders = (path.parents[1] for path in results.glob("*/tables/main.csv"))
    return sorted(folder for folder in folders if not (folder / FILE).is_file())


def write_pages(results: Path, papers: Path, experiments: Path) -> Iterator[Path]:
    """Write the page and the figures of each of these tables again, and take figures away that it no longer shows."""
    printed = load_papers(papers)
    for folder in earlier(results):
        found = read_committed(folder, printed, load(find(folder.name, experiments)))
        figures = {one.file: budget_figure(one) for one in drawn(found)}
        figures |= {one.file: map_figure(one, width=760) for one in maps(found)}
        for name, text in figures.items():
            write_text(folder / "figures" / name, text)
        for path in (folder / "figures").glob("*.svg"):
            if path.name not in figures:
                path.unlink()
        write_text(folder / "report.html", report_page(found))
        yield folder / "report.html"


def read_committed(folder: Path, printed: PaperNumbers, experiment: Params) -> Result:
    """Return what a folder's table says, by its record."""
    record, words = folder / "tables" / "main.csv", folder / "tables" / "main.md"
    lines = words.read_text(encoding="utf-8").splitlines()
    rows = read_csv(record.read_text(encoding="utf-8"))
    if not rows or not lines or _BOOTSTRAP not in "".join(lines[:8]):
        raise ArtifactError(
            f"{words} is no table of earlier code, with a {_BOOTSTRAP}; `ldp experiment` makes its page"
        )
    axes = axis_columns(rows[0])
    measures = _measures(set(rows[0]) - set(axes), record)
    sections, start = [], 0
    for called, shown, said in _tables(lines, words):
        here = rows[start : start + len(shown)]
        start += len(shown)
        if len(here) != len(shown):
            raise ArtifactError(f"{record} has {len(rows)} rows, and {words} has more; make both again")
        own = [_settled(row, words_of, measures, record) for row, words_of in zip(here, shown, strict=True)]
        sections.append(_section(called, said, own, axes, measures, printed, record))
    if start != len(rows):
        raise ArtifactError(f"{record} has {len(rows)} rows, and {words} has {start}; make both again")
    before = lines[: next(place for place, line in enumerate(lines) if line.startswith("## "))]
    about = [line for line in before[1:] if line and _BOOTSTRAP not in line]
    notes = [
        "Read from a record of two digits: an interval that ends within 0.005 of zero counts as one that holds it."
    ]
    notes += [line[2:] for line in _behind(lines) if line.startswith("- ") and not re.match(r"- (\([a-z]\)|†) ", line)]
    of = file_commit(record)
    return Result(
        sections=tuple(sections),
        confidence=_Bootstrap(),
        seed=experiment.seed,
        notes=tuple(notes),
        version=__version__,
        title=before[0].removeprefix("# "),
        about=" ".join(about),
        experiment=folder.name,
        commit=code_commit(),
        earlier=(
            "Measured by earlier code. "
            f"The numbers are those of the committed table{f' (commit {of})' if of else ''}, and none was computed "
            "again: the ceiling is one model with everybody’s true features, and intervals are a bootstrap’s, too "
            "narrow for few runs. Today the ceiling is the best of several learners, and intervals are Student’s. "
            "Words and figures are of today."
        ),
        backgrounds=backgrounds_of(experiment.cells(), experiment.seed),
    )


def _measures(names: set[str], record: Path) -> TaskEntry:
    for task in tasks():
        if set(columns(measures_of(task))) == names:
            return measures_of(task)
    raise ArtifactError(f"{record} has not the columns of any task's table; make it again")


def _tables(lines: Sequence[str], words: Path) -> Iterator[tuple[str, list[dict[str, str]], str]]:
    """Return of each table of a Markdown file its title, its rows as people read them, and its protocol."""
    heads = [place for place, line in enumerate(lines) if line.startswith("## ")]
    for start, end in zip(heads, [*heads[1:], len(lines)], strict=True):
        called, inside = lines[start].removeprefix("## "), lines[start:end]
        said = [line for line in inside if line.startswith(f"{called}: every trained row had the same search")]
        if len(said) != 1:
            raise ArtifactError(f"{words} does not say how the rows of {called} were made; make it again")
        heads_of, _, *body = [[cell.strip() for cell in line.split("|")[1:-1]] for line in inside if line[:1] == "|"]
        yield called, [dict(zip(heads_of, cells, strict=True)) for cells in body], said[0]


def _settled(row: Mapping[str, str], shown: Mapping[str, str], measures: TaskEntry, record: Path) -> dict[str, str]:
    """Return a row of the record such that it is rounded to what people were shown of it.

    Both were rounded from the same number, so that 0.35 may be shown as 0.3 or 0.4; a page that rounds once more must
    not say the other one.
    """
    if row["row"] != shown["row"].removesuffix(" †"):
        raise ArtifactError(f"{record} has row {row['row']!r} where the words beside it have {shown['row']!r}")
    head, out = measures.headline, dict(row)
    for name, heading in zip((head.name, "gain", "gap"), (head.label, *_SHOWN), strict=True):
        told = [float(text.replace(_MINUS, "-")) for text in _NUMBER.findall(shown[heading])]
        kept = [f"{name}{end}" for end in ("", "_low", "_high") if row[f"{name}{end}"]]
        if len(told) != len(kept):
            raise ArtifactError(f"{record} and the words beside it differ in {name} of {row['row']!r}")
        for key, value in zip(kept, told, strict=True):
            apart = value - float(row[key])
            if abs(apart) > 0.51 * 10**-head.digits:
                raise ArtifactError(f"{record} has {key} {row[key]} of {row['row']!r}, and its words {value:g}")
            if round(float(row[key]), head.digits) != value:
                out[key] = repr(float(row[key]) + math.copysign(0.1 * 10**-head.digits / 10, apart))
    return out


def _behind(lines: Sequence[str]) -> Sequence[str]:
    """Return the lines behind the last table."""
    last = max(place for place, line in enumerate(lines) if line.startswith("|"))
    return lines[last + 1 :]


def _section(
    called: str,
    said: str,
    rows: Sequence[Mapping[str, str]],
    axes: Sequence[str],
    measures: TaskEntry,
    printed: PaperNumbers,
    record: Path,
) -> _Section:
    search = _SEARCH.search(said)
    if search is None:
        raise ArtifactError(f"{record}: no search in {said!r}; make the table again")
    parts = called.split(", ")
    setting = [
        (axis, rows[0][axis]) for axis in axes if {row[axis] for row in rows} == {rows[0][axis]}
        and f"{short(axis)} {rows[0][axis]}" in parts
    ]  # fmt: skip
    private = {row["row"] for row in rows if role_of(row["method"]) is Role.PRIVATE}
    return _Section(
        dataset=rows[0]["dataset"],
        measures=measures,
        rows=tuple(_row(row, axes, measures, printed, private, record) for row in rows),
        runs=int(rows[0]["runs"]),
        points=int(search[1]),
        search_seeds=int(search[2]),
        search=search[3].rstrip(", "),
        sizes=(0, 0, 0),  # the protocol says them
        setting=tuple(setting),
        headed=called,
        said=said,
    )


def _row(
    row: Mapping[str, str],
    axes: Sequence[str],
    measures: TaskEntry,
    printed: PaperNumbers,
    private: set[str],
    record: Path,
) -> _Row:
    head, *others = measures.measures
    runs = int(row["runs"])
    score = _interval(row, head.name, runs)
    if score is None:
        raise ArtifactError(f"{record} has a row without {head.label}; make it again")
    keeps, _, broken = row["claim"].partition(": ")
    remarks = row["remark"].split("; ") if row["remark"] else []
    same = next((one.removeprefix(_SAME) for one in remarks if one.startswith(_SAME)), "")
    return _Row(
        dataset=row["dataset"],
        name=row["row"],
        method=row["method"],
        mechanism=row["mechanism"],
        epsilon=float(row["epsilon"]),
        ledger=Ledger(spends=()),
        model=row["model"],
        runs=runs,
        steps=tuple(int(step) for step in row["steps"].split("/") if step),
        measures=measures,
        score=score,
        others={one.name: _interval(row, one.name, runs) or _nothing(runs) for one in others},
        gain=_interval(row, "gain", runs),
        gap=_interval(row, "gap", runs),
        papers=_paper(row, head, printed, record),
        claim=ClaimMark(keeps=keeps == "keeps", text=broken),
        axes=tuple((axis, row[axis]) for axis in axes if row[axis]),
        degenerate="; ".join(one for one in remarks if not one.startswith(_SAME)),
        same_as=same,
        repeats=same.partition(" at epsilon ")[0].partition(", ")[0] in private,
        said=row["spent_on"],
    )


def _nothing(runs: int) -> Interval:
    return Interval(mean=math.nan, low=math.nan, high=math.nan, runs=runs)


def _interval(row: Mapping[str, str], name: str, runs: int) -> Interval | None:
    if not row[name]:
        return None
    mean, low, high = (float(row[f"{name}{end}"] or "nan") for end in ("", "_low", "_high"))
    return Interval(mean=mean, low=low, high=high, runs=runs)


def _paper(row: Mapping[str, str], head: Measure, printed: PaperNumbers, record: Path) -> tuple[PaperNumber, ...]:
    """Return the printed number that the record has beside a row, with what is to be known of it."""
    value, reference = row[f"paper_{head.name}"], row["paper"]
    if not value:
        return ()
    own = (row["dataset"], row["method"], row["mechanism"])
    found = [
        one for one in printed.entries if (one.number.value, one.number.reference) == (value, reference)
        and (one.rule.dataset, one.rule.method, one.rule.mechanism) == own
    ]  # fmt: skip
    if not found:
        raise DataError(f"{record}: no paper prints {value} at {reference} for {own}; make the table again")
    return (found[0].number,)
