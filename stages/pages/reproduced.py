"""What a target of `ldp reproduce` has become: its lines, kept as CSV, and the texts and the figure made of them.

The CSV is the record: whatever else stands beside it is made of it, and can be made again without any run
(`read`, `write`). So a folder of results that other code has computed is brought here by its CSV alone.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphldp.errors import ArtifactError, OptionError
from graphldp.evaluation import MANY, Interval
from graphldp.measures import measures_of, tasks
from graphldp.stages.files.artifacts import write_json, write_text
from graphldp.stages.grids.cell import value_text
from graphldp.stages.grids.targets import PROFILES, PaperTarget, Printed, Profile
from graphldp.stages.pages.reproduced_figure import target_figure
from graphldp.stages.pages.tables import number, span

__all__ = [
    "COLUMNS",
    "Line",
    "Reproduction",
    "axes_text",
    "bare",
    "bring",
    "completed",
    "csv_text",
    "decimal",
    "filled",
    "folder_of",
    "latex_text",
    "lines_of",
    "lost_of",
    "markdown_text",
    "protocol_words",
    "read",
    "record",
    "restate",
    "rows_of",
    "with_earlier",
    "write",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One row of what was made again.

    Attributes:
        place: the row's place on the target's axes, in words; of a bridge the step.
        printed: as the paper has it, with its spread; empty of a figure.
        theirs, ours: under the paper's protocol, in the reading that comes nearest, and under ours.
        floor, ceiling: of the same data set under our protocol.
        to_printed: theirs less what is printed.
        apart: theirs less ours, on the same splits.
        mean_epsilon: what people spend on average.
        readings: what every reading of the paper came to.
        remark: what has to be said of the row itself.
        why: why there is no number.
        number: the printed number's row in the table's transcript.
        theirs_seconds, ours_seconds: what the cells took, all readings together, on whatever else the machine did.
    """

    dataset: str
    row: str
    place: str
    epsilon: float | None
    metric: str
    printed: str
    spread: str
    theirs: Interval | None
    ours: Interval | None
    floor: Interval | None
    ceiling: Interval | None
    to_printed: Interval | None
    apart: Interval | None
    mean_epsilon: float | None
    readings: tuple[tuple[str, Interval], ...] = ()
    reading: str = ""
    remark: str = ""
    why: str = ""
    number: int | None = None
    digits: int = 1
    theirs_seconds: float | None = None
    ours_seconds: float | None = None

    @property
    def ran(self) -> bool:
        """Whether any number of ours stands here."""
        return self.theirs is not None or self.ours is not None

    @property
    def gain(self) -> bool:
        """Whether its numbers are differences of two rows."""
        return self.metric.endswith("gain")

    @property
    def runs(self) -> int | None:
        """How many runs the intervals are of; None where nothing was trained for them."""
        made = self.theirs or self.ours
        return None if made is None or made.runs == MANY else made.runs

    @property
    def epsilon_text(self) -> str:
        """Its budget as tables write it; empty where it has none."""
        return "" if self.epsilon is None else number(self.epsilon)

    @property
    def printed_text(self) -> str:
        """What is printed, with its spread."""
        return f"{self.printed} ± {self.spread}" if self.spread else self.printed

    @property
    def readings_text(self) -> str:
        """What every reading of the paper came to."""
        return "; ".join(f"{name}: {span(one, digits=self.digits)}" for name, one in self.readings)

    @property
    def within(self) -> bool | None:
        """Whether the printed number lies in the interval under its protocol; None where one of the two is missing."""
        value = decimal(self.printed)
        return None if value is None or self.theirs is None or not self.theirs.known else self.theirs.contains(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """All lines of a target, how they were made, and how long that took."""

    target: PaperTarget
    profile: Profile
    lines: tuple[Line, ...]
    made: Mapping[str, Any]

    @property
    def notes(self) -> tuple[str, ...]:
        """What has to be said of the whole: how it is read, what is left out and why, what is of an earlier run."""
        own = (self.target.note,) if self.target.note else ()
        left = (f"{name} is left out: {reason}." for name, reason in self.made["missing"].items())
        kept = (f"{name} is of an earlier run, by code {code}." for name, code in self.made.get("kept", {}).items())
        return (*own, *left, *kept)


COLUMNS = (
    "dataset", "row", "place", "epsilon", "mean_epsilon", "metric", "printed", "spread", "runs", "theirs",
    "theirs_low", "theirs_high", "ours", "ours_low", "ours_high", "floor", "floor_low", "floor_high", "ceiling",
    "ceiling_low", "ceiling_high", "to_printed", "to_printed_low", "to_printed_high", "apart", "apart_low",
    "apart_high", "within", "reading", "readings", "remark", "why", "number", "theirs_seconds", "ours_seconds",
)  # fmt: skip


def record(line: Line) -> dict[str, str]:
    """Return a line as the CSV has it."""

    def ends(name: str, interval: Interval | None) -> dict[str, str]:
        show = f"{{:.{line.digits + 2}f}}".format
        if interval is None:
            return {name: "", f"{name}_low": "", f"{name}_high": ""}
        low, high = (show(end) if interval.known else "" for end in (interval.low, interval.high))
        return {name: show(interval.mean), f"{name}_low": low, f"{name}_high": high}

    return {
        "dataset": line.dataset, "row": line.row, "place": line.place, "epsilon": line.epsilon_text,
        "mean_epsilon": "" if line.mean_epsilon is None else f"{line.mean_epsilon:.6g}", "metric": line.metric,
        "printed": line.printed, "spread": line.spread, "runs": "" if line.runs is None else str(line.runs),
        **ends("theirs", line.theirs), **ends("ours", line.ours),
        **ends("floor", line.floor), **ends("ceiling", line.ceiling),
        **ends("to_printed", line.to_printed), **ends("apart", line.apart),
        "within": "" if line.within is None else value_text(line.within), "reading": line.reading,
        "readings": line.readings_text,
        "remark": line.remark, "why": line.why, "number": "" if line.number is None else str(line.number),
        **{
            f"{name}_seconds": "" if took is None else f"{took:.1f}"
            for name, took in (("theirs", line.theirs_seconds), ("ours", line.ours_seconds))
        },
    }  # fmt: skip


def csv_text(found: Reproduction) -> str:
    """Return all lines as CSV: the record, of which the other texts are renderings."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(record(line) for line in found.lines)
    return out.getvalue()


_PLAIN = {one.name for one in (measures_of(name).headline for name in tasks()) if one.unit}  # go without saying
_SHOWN = ("data", "row", "place", "epsilon", "printed", "their protocol", "less printed", "ours", "theirs less ours",
          "floor", "ceiling", "spent", "remark")  # fmt: skip


def _shown(line: Line) -> list[str]:
    def show(interval: Interval | None, *, sign: bool = False) -> str:
        return span(interval, sign=sign, digits=line.digits)

    gain = line.gain
    name = line.row if line.metric in _PLAIN else f"{line.row}, {line.metric.replace('_', ' ')}"
    return [
        line.dataset, name, line.place, line.epsilon_text, line.printed_text,
        show(line.theirs, sign=gain), show(line.to_printed, sign=True), show(line.ours, sign=gain),
        show(line.apart, sign=True),
        show(line.floor), show(line.ceiling), "" if line.mean_epsilon is None else f"{line.mean_epsilon:.4g}",
        "; ".join(filter(None, [line.remark, line.why])),
    ]  # fmt: skip


def filled(found: Reproduction) -> tuple[list[str], list[list[str]]]:
    """Return the headings and rows of the columns that hold anything."""
    rows = [_shown(line) for line in found.lines]
    heads = list(_SHOWN)
    if found.target.steps:
        heads[5], heads[8], heads[2] = "so far", "this step", "step"
    kept = [place for place in range(len(heads)) if any(row[place] for row in rows)]
    return [heads[place] for place in kept], [[row[place] for place in kept] for row in rows]


def markdown_text(found: Reproduction) -> str:
    """Return the table for people."""
    heads, rows = filled(found)
    escape = str.maketrans({"|": "\\|", "*": "\\*"})
    lines = [f"# {found.target.heading}: {found.target.title}", ""]
    how = found.made.get("how", "by earlier code, which does not say how")
    lines += [f"Profile {found.profile.name}: {how}; differences of the two protocols are of the same splits.", ""]
    lines += ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    lines += ["| " + " | ".join(cell.translate(escape) for cell in row) + " |" for row in rows]
    if any(line.readings for line in found.lines):
        lines += ["", "What the paper leaves open, in each reading (their protocol; the nearest one stands above):", ""]
        lines += [
            f"- {', '.join(filter(None, [line.dataset, line.row, _budget(line)]))}, printed {line.printed}: "
            + "; ".join(f"{name} {span(one, digits=line.digits)}" for name, one in line.readings)
            for line in found.lines if line.readings
        ]  # fmt: skip
    lines += ["", *(f"- {note}" for note in found.notes)] if found.notes else []
    if facts := protocol_words(found.made):
        lines += ["", "Their protocol:", "", *(f"- {fact}" for fact in facts)]
    return "\n".join(lines) + "\n"


def protocol_words(made: Mapping[str, Any]) -> list[str]:
    """Return each entry of the protocol under which a target was made: its place, its value, and who says so."""
    return ["`{place}` {value} ({source})".format_map(one) for one in made["protocol"]]


def _budget(line: Line) -> str:
    return line.epsilon_text and f"epsilon {line.epsilon_text}"


_TEX = {"\\": r"\textbackslash{}", "±": r"$\pm$", "−": "$-$", **{char: f"\\{char}" for char in "&%$#_{}"},
        "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}  # fmt: skip


def latex_text(found: Reproduction) -> str:
    """Return the table for a paper."""
    heads, rows = filled(found)

    def escape(text: str) -> str:
        return "".join(_TEX.get(char, char) for char in text)

    lines = [f"\\begin{{tabular}}{{{'l' * len(heads)}}}", " & ".join(map(escape, heads)) + r" \\", r"\hline"]
    # A bracket behind `\\` would be read as its argument.
    lines += [" & ".join("{" + escape(cell) + "}" for cell in row) + r" \\" for row in rows]
    return "\n".join([*lines, r"\end{tabular}"]) + "\n"


_SAME = "same as"


def _with_same(lines: list[Line]) -> list[Line]:
    """Return the lines, each whose numbers are those of an earlier one saying so."""
    first: dict[Any, Line] = {}
    out = []
    for line in lines:
        key = (line.dataset, line.metric, line.theirs, line.ours)
        if line.theirs is not None and key in first and first[key].row != line.row:
            line = dataclasses.replace(line, remark="; ".join(filter(None, [line.remark, f"{_SAME} {first[key].row}"])))
        first.setdefault(key, line)
        out.append(line)
    return out


def axes_text(axes: Sequence[tuple[str, Any]]) -> str:
    """Return a row's place on its target's axes in words."""
    return ", ".join(f"{name.rpartition('.')[2]} {value_text(value)}" for name, value in axes)


def bare(one: Printed) -> Line:
    """Return the line of a printed number without anything of ours."""
    return Line(
        dataset=one.dataset or "all", row=one.label, place="", epsilon=one.epsilon, metric=one.metric,
        printed=one.value, spread=one.spread, theirs=None, ours=None, floor=None, ceiling=None, to_printed=None,
        apart=None,
        mean_epsilon=None, number=one.row,
    )  # fmt: skip


def decimal(text: str) -> float | None:
    """Return a text's number; None where it is none."""
    try:
        return float(text)
    except ValueError:
        return None


def folder_of(target: PaperTarget, profile: str, results: Path) -> Path:
    """Return where what a target has become stands."""
    return results / "reproduce" / target.slug / profile


def write(found: Reproduction, results: Path) -> list[Path]:
    """Write a target's table as CSV, Markdown and LaTeX, its figure, and how it was made; return their paths."""
    folder = folder_of(found.target, found.profile.name, results)
    # What is made of the CSV must not depend on digits that the CSV does not have.
    found = dataclasses.replace(found, lines=tuple(_line(record(line)) for line in found.lines))
    texts = {"table.csv": csv_text(found), "table.md": markdown_text(found), "table.tex": latex_text(found)}
    if picture := target_figure(found.target, found.lines):
        texts["figure.svg"] = picture
    for name, text in texts.items():
        write_text(folder / name, text)
    facts = {**found.made, "title": found.target.title, "heading": found.target.heading, "notes": list(found.notes)}
    write_json(folder / "time.json", facts)
    return [*(folder / name for name in texts), folder / "time.json"]


def read(target: PaperTarget, profile: str, results: Path) -> Reproduction:
    """Return what stands in a target's folder, completed by what the papers' files say today."""
    folder = folder_of(target, profile, results)
    if not (folder / "table.csv").is_file() or not (folder / "time.json").is_file():
        raise ArtifactError(f"{folder} has no table.csv with its time.json; `ldp reproduce {target.key}` makes them")
    lines = completed(lines_of(folder / "table.csv"), target)
    made = json.loads((folder / "time.json").read_bytes())
    facts = {key: value for key, value in made.items() if key not in ("title", "heading", "notes")}
    return Reproduction(target=target, profile=PROFILES[profile], lines=tuple(lines), made=facts)


def restate(every: Sequence[PaperTarget], results: Path) -> list[Path]:
    """Write all texts and figures again from the CSV files that stand there; return the folders."""
    folders = []
    for target in every:
        for profile in PROFILES:
            folder = folder_of(target, profile, results)
            if (folder / "table.csv").is_file() and (folder / "time.json").is_file():
                write(read(target, profile, results), results)
                folders.append(folder)
    return folders


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file; none where there is no file."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def lines_of(path: Path) -> list[Line]:
    """Return the lines of a target's CSV file; none where there is no file."""
    return [_line(row) for row in rows_of(path)]


def with_earlier(found: Reproduction, results: Path) -> Reproduction:
    """Return a result with the lines of those data sets that it has no run of, and that were run before.

    They stay as they are, with the code that made them, as long as they were made the same way.
    """
    path = folder_of(found.target, found.profile.name, results) / "table.csv"
    if not path.is_file() or not path.with_name("time.json").is_file():
        return found
    before = read(found.target, found.profile.name, results)
    if any(before.made.get(name) != found.made.get(name) for name in ("protocol", "how")):
        return found
    codes, here = before.made.get("kept", {}), _ran(found.lines)
    kept = {name: codes.get(name, before.made["code"]) for name in _ran(before.lines) if name not in here}
    if not kept:
        return found
    lines = [line for line in found.lines if line.dataset not in kept]
    lines += [line for line in before.lines if line.dataset in kept]
    missing = {name: reason for name, reason in found.made["missing"].items() if name not in kept}
    made = {**found.made, "missing": missing, "kept": {**found.made.get("kept", {}), **kept}}
    return dataclasses.replace(found, lines=tuple(completed(lines, found.target)), made=made)


def lost_of(before: Sequence[Line], later: Mapping[str, tuple[bool, Collection[str]]]) -> str:
    """Return what lines have of a data set that later ones lack, which stand in their place; empty where nothing.

    `later` is, by the data set, whether they have our column, and which readings.
    """
    for line in before:
        ours, readings = later.get(line.dataset, (True, [name for name, _ in line.readings]))
        if line.ours is not None and not ours:
            return f"ours, floor and ceiling of {line.dataset}"
        if unread := [name for name, _ in line.readings if name not in readings]:
            return f"the reading {unread[0]!r} of {line.dataset}"
    return ""


def _ran(lines: Sequence[Line]) -> list[str]:
    return list(dict.fromkeys(line.dataset for line in lines if line.ran))


def bring(every: Sequence[PaperTarget], other: Path, results: Path) -> list[Path]:
    """Take over what another folder of results has: its data sets in place of ours, ours where it has none.

    What is measured without training stands beside its own files, and is made of these.
    """
    places = [(target, profile) for target in every if target.trains for profile in PROFILES]
    there = [(one, profile) for one, profile in places if (folder_of(one, profile, other) / "table.csv").is_file()]
    # All of it is read before anything is written: one that cannot be read leaves the results as they are.
    brought = [read(target, profile, other) for target, profile in there]
    for one in brought:
        path = folder_of(one.target, one.profile.name, results) / "table.csv"
        later = {
            name: (
                any(line.ours for line in one.lines if line.dataset == name),
                {reading for line in one.lines if line.dataset == name for reading, _ in line.readings},
            )
            for name in _ran(one.lines)
        }
        if lost := lost_of(lines_of(path), later):
            raise OptionError(f"{path} has {lost}, which would be lost; run all of it in {other} first")
    found = [with_earlier(one, results) for one in brought]
    for one in found:
        write(one, results)
    return [folder_of(target, profile, results) for target, profile in there]


def completed(lines: Sequence[Line], target: PaperTarget) -> list[Line]:
    """Return the lines with what follows from others, in the papers' order of data sets.

    A number that a paper prints several times for one run stands beside that run each time; a mean of gains has the
    mean of ours. A line whose numbers are those of an earlier one says so.
    """
    out = [dataclasses.replace(line, remark=_without_same(line.remark)) for line in lines]
    out = [line if line.ran else _follows(line, out, target) for line in out]
    order = [*target.graphs(), "all"]
    ran = [line for line in out if line.ran]
    rest = [line for line in out if not line.ran]
    place = {name: index for index, name in enumerate(order)}
    ran.sort(key=lambda line: place.get(line.dataset, len(order)))
    return _with_same([*ran, *rest])


def _without_same(remark: str) -> str:
    return "; ".join(part for part in remark.split("; ") if part and not part.startswith(f"{_SAME} "))


def _follows(line: Line, lines: Sequence[Line], target: PaperTarget) -> Line:
    """Return the line of a printed number that has no run of its own, with what it can be told from."""
    one = next((p for p in target.printed if p.row == line.number and _is_line(p, line)), None)
    if one is None:
        return line
    value, other = decimal(one.value), target.gains.get(one.label)
    if one.metric.endswith("_gain") and one.epsilon is None and other is not None:
        name = f"{one.label} less {other}"
        same = [gain for gain in lines if gain.row == name and gain.dataset == line.dataset]
        gains = [gain for gain in same if gain.epsilon is not None and gain.theirs is not None]
        if not gains:
            return line
        theirs, ours = (
            _mean([interval for gain in gains if (interval := getattr(gain, column)) is not None])
            for column in ("theirs", "ours")
        )
        return dataclasses.replace(
            line, row=name, place="mean", metric=gains[0].metric, theirs=theirs, ours=ours, why="",
            to_printed=None if value is None or theirs is None else theirs.less(value), digits=gains[0].digits,
            remark=f"the mean over {len(gains)} budgets, whose interval needs the runs themselves",
        )  # fmt: skip
    owner = next((asked for asked in target.asked if one.label in asked.also), None)
    if owner is None:
        return line
    run = next(
        (run for run in lines if run.row == owner.label and run.dataset == line.dataset and run.epsilon == line.epsilon
         and run.theirs is not None), None,
    )  # fmt: skip
    if run is None:
        return line
    return dataclasses.replace(
        run, row=f"{owner.label}, printed for {one.label}", printed=one.value, spread=one.spread, number=one.row,
        to_printed=None if value is None or run.theirs is None else run.theirs.less(value),
    )  # fmt: skip


def _is_line(one: Printed, line: Line) -> bool:
    """Whether a line without a run is that of a printed number; two files of a table may count rows alike."""
    same = (one.dataset or "all", one.value, one.metric) == (line.dataset, line.printed, line.metric)
    return same and one.label == line.row


def _mean(gains: Sequence[Interval]) -> Interval | None:
    """Return the mean of several results; it has no interval here, for they are of the same splits."""
    if not gains:
        return None
    mean = sum(gain.mean for gain in gains) / len(gains)
    return Interval(mean=mean, low=math.nan, high=math.nan, runs=min(gain.runs for gain in gains))


_READ: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(("dataset", "row", "place", "metric", "printed", "spread", "reading", "remark", "why"), str),
    **dict.fromkeys(("epsilon", "mean_epsilon"), decimal),
    "number": lambda text: int(text) if text else None,
    "readings": lambda text: tuple(_reading(part) for part in text.split("; ") if part),
}  # fmt: skip


def _line(row: Mapping[str, str]) -> Line:
    """Return a line as the CSV has it."""
    runs = int(row["runs"] or MANY)

    def interval(name: str) -> Interval | None:
        if not row.get(name):
            return None
        low, high = (float(row.get(f"{name}_{end}") or "nan") for end in ("low", "high"))
        return Interval(mean=float(row[name]), low=low, high=high, runs=runs)

    shown = next((row[name] for name in ("theirs", "ours") if row[name]), "")
    values: dict[str, Any] = {name: read(row[name]) for name, read in _READ.items()}
    values |= {name: interval(name) for name in ("theirs", "ours", "floor", "ceiling", "to_printed", "apart")}
    values |= {name: decimal(row.get(name, "")) for name in ("theirs_seconds", "ours_seconds")}
    return Line(**values, digits=max(1, len(shown.partition(".")[2]) - 2))


def _reading(text: str) -> tuple[str, Interval]:
    name, _, rest = text.rpartition(": ")
    numbers = [float(found) for found in re.findall(r"-?\d+(?:\.\d+)?", rest.replace("−", "-"))]
    mean, low, high = numbers if len(numbers) == 3 else (numbers[0], math.nan, math.nan)
    return name, Interval(mean=mean, low=low, high=high, runs=MANY)
