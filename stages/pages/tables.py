"""A table for each task: its rows and its texts (CSV, Markdown, LaTeX, JSON).

A table is about its task's headline (`graphldp.measures`): accuracy, AUC or MAE; shares are percent. The CSV is the
record, one line per cell, with the task's other measures behind; the other texts are renderings of it for people. No
text holds a time, a host or a path, so the same runs give the same bytes.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from graphldp.datasets import title
from graphldp.evaluation import Confidence, Interval
from graphldp.ledger import Ledger, Spend
from graphldp.measures import DEFAULT_TASK, Measure, measures_of
from graphldp.methods import Role, role_of
from graphldp.stages.grids.paper_numbers import PaperNumber
from graphldp.stages.pages.wording import at, axis_title, counted, listed, short
from graphldp.tasks import TaskEntry

__all__ = [
    "FORMS",
    "Background",
    "ClaimMark",
    "Column",
    "Result",
    "Section",
    "TableRow",
    "axis_columns",
    "columns",
    "csv_text",
    "daggers",
    "footnotes",
    "latex_text",
    "markdown_text",
    "marks",
    "metrics",
    "number",
    "plots_text",
    "read_csv",
    "shown_in",
    "signed",
    "span",
    "table_columns",
]

# Behind the sizes of the parts, where these are graphs of their own.
_APART = "; each part is a graph of its own, without the links to the others"
DAGGER = "†"
_MINUS = "−"  # as wide as a plus, unlike the hyphen


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimMark:
    """Whether a mechanism keeps the epsilon that its paper claims, and if not, what it spends."""

    keeps: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One cell of the grid, measured.

    Attributes:
        measures: how its task is measured.
        score: the headline, as it is shown: shares in percent.
        gain, gap: how much better it is than the floor and the ceiling; below 0 it is worse, whichever end is good.
        others: the task's other measures, by name.
        degenerate: which part of its method does nothing at this budget, in words; empty where all of it works.
        same_as: the row above whose runs are equal to its own to the last digit; empty where there is none.
        repeats: whether that row is a private one, too, so that this one is no result of its own.
    """

    dataset: str
    name: str
    method: str
    mechanism: str
    epsilon: float
    ledger: Ledger
    model: str
    runs: int
    steps: tuple[int, ...]
    measures: TaskEntry
    score: Interval
    others: Mapping[str, Interval]
    gain: Interval | None
    gap: Interval | None
    papers: tuple[PaperNumber, ...]
    claim: ClaimMark
    axes: tuple[tuple[str, str], ...] = ()
    degenerate: str = ""
    same_as: str = ""
    repeats: bool = False

    @property
    def remark(self) -> str:
        """What has to be said of the row itself: a part that does nothing, runs that are another row's."""
        return "; ".join(filter(None, [self.degenerate, f"same runs as {self.same_as}" if self.same_as else ""]))

    @property
    def role(self) -> Role:
        """What the row is in its table: one of the references, or a method that spends a budget."""
        return role_of(self.method)

    @property
    def spent(self) -> str:
        """What the epsilon of one user was spent on."""
        if self.role is Role.CEILING:
            return "features, unprotected"
        if self.role is not Role.PRIVATE and not self.ledger.spends:
            return "nothing"
        return self.ledger.text().replace("total epsilon ", "").removeprefix("per user: ")

    @property
    def totals(self) -> tuple[tuple[str, float], ...]:
        """What was spent of each unit's budget: of a user, and of a link where links are private."""
        return tuple((unit, round(self.ledger.total(unit).epsilon, 9)) for unit in self.ledger.units())

    @property
    def total(self) -> Spend:
        """What one user spent in all: the nominal budget, the users' mean and largest, and delta."""
        return self.ledger.total()

    @property
    def mean_epsilon(self) -> float:
        """The mean of the users' total budgets."""
        return self.total.epsilon if self.total.mean is None else self.total.mean

    @property
    def max_epsilon(self) -> float:
        """The largest of the users' total budgets."""
        return self.total.epsilon if self.total.max is None else self.total.max

    @property
    def steps_text(self) -> str:
        """The depth K that the search chose; empty where there is none."""
        return "/".join(str(step) for step in self.steps)

    @property
    def where(self) -> str:
        """The dataset, and the task where it is not the default one."""
        task = [] if self.measures.task == DEFAULT_TASK else [self.measures.title]
        return ", ".join([self.dataset, *task])

    @property
    def mean_text(self) -> str:
        """The mean of its headline as people read it."""
        return f"{self.score.mean:.{self.measures.headline.digits}f}"

    def shown(self, interval: Interval | None, *, sign: bool = False) -> str:
        """Return one of its intervals of the headline as people read it."""
        return span(interval, sign=sign, digits=self.measures.headline.digits)

    @property
    def label(self) -> str:
        """The row's name, with a dagger where the mechanism does not keep its claim."""
        return f"{self.name}{self.mark}"

    @property
    def mark(self) -> str:
        """The dagger, where the mechanism does not keep its claim."""
        return "" if self.claim.keeps else f" {DAGGER}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """The rows of one dataset and one task, and the protocol that all of them share.

    Attributes:
        sizes: how many nodes, or edges, are trained on, selected by and tested on.
        search: what is unusual in the search, in words.
        learner: which of the learners that know the structure alone was the best by validation: the floor.
        ceiling: which learner was the best by validation with everybody's true features beside what the floor knows.
        labelled: which share of the labels is learned from, where that is this data set's own.
        asked: what people are asked for beside features, `links` or `labels`; empty where both are public.
        asked_beside: the same in words, with how and at which budget.
        learners: the floor's, where the people of each part are a graph of their own; else empty.
    """

    dataset: str
    measures: TaskEntry
    rows: tuple[TableRow, ...]
    runs: int
    points: int
    search_seeds: int
    sizes: tuple[int, int, int]
    setting: tuple[tuple[str, str], ...] = ()
    search: str = ""
    learner: str = ""
    ceiling: str = ""
    learners: tuple[str, ...] = ()
    labelled: str = ""
    asked: tuple[str, ...] = ()
    asked_beside: str = ""

    @property
    def inductive(self) -> bool:
        """Whether those that are tested were not seen in training, nor their links."""
        return bool(self.learners)

    @property
    def measure(self) -> Measure:
        """What the table is about."""
        return self.measures.headline

    @property
    def title(self) -> str:
        """The dataset, and what is set for all of its rows: 'Cora, 5 % of the labels'."""
        task = [] if self.measures.task == DEFAULT_TASK else [self.measures.title]
        own = [self.labelled] if self.labelled else []
        return ", ".join([title(self.dataset), *task, *own, *(at(name, value) for name, value in self.setting)])

    @property
    def slug(self) -> str:
        """The same as part of a file's name or an anchor."""
        return "-".join([self.place, *(f"{short(name)}{value}" for name, value in self.setting)])

    @property
    def where(self) -> str:
        """The dataset, and the task where it is not the default one, for people."""
        return ", ".join([title(self.dataset), *([] if self.measures.task == DEFAULT_TASK else [self.measures.title])])

    @property
    def place(self) -> str:
        """The dataset and the task as part of a file's name; the default task goes without saying."""
        return self.dataset if self.measures.task == DEFAULT_TASK else f"{self.dataset}-{self.measures.task}"

    @property
    def own_axes(self) -> tuple[str, ...]:
        """The axes on which its rows differ."""
        shared = dict(self.setting)
        return tuple(dict.fromkeys(name for row in self.rows for name, _ in row.axes if name not in shared))

    def called(self, row: TableRow) -> str:
        """Return what one of its rows is called, with its place on the axes on which they differ."""
        return ", ".join([row.name, *self.place_of(row)])

    def place_of(self, row: TableRow) -> list[str]:
        """Return a row's place on the axes on which rows differ, in words: 'rho = 0.5'."""
        return [at(name, value) for name, value in row.axes if name in self.own_axes]

    def named(self, row: TableRow) -> str:
        """Return what a sentence calls a row: one of which a part does nothing is not called by its name alone."""
        return f"{self.called(row)} ({row.degenerate})" if row.degenerate else self.called(row)

    @property
    def protocol(self) -> str:
        """One line: how every row of this table was made."""
        train, validation, test = self.sizes
        parts = self.measures.parts
        return (
            f"{self.title}: every trained row had the same search ({counted(self.points, 'point')}, "
            f"{counted(self.search_seeds, 'seed')}, {f'{self.search}, ' if self.search else ''}"
            f"chosen by mean validation loss) and then "
            f"{counted(self.runs, 'run')} on the same splits ({train} {parts} to train, "
            f"{validation} to validate, {test} to test{_APART * self.inductive})."
            + f" The floor is the best of its learners, each with this search, by validation: {self.learner}."
            * bool(self.learner)
            + f" It had {' and '.join(self.learners)}: what the others know means nothing in a graph that was not seen."
            * self.inductive
            + " The ceiling (nonpriv, epsilon infinite) is the best of these and of the same with everybody's true "
            f"features, by validation: {self.ceiling}."
            * bool(self.ceiling)
            + (
                f" {self.asked_beside}, in every row but the ceiling, which has what is true; that is spent beside the "
                "epsilon of features, and `spent` has the sum. No true label chooses anything."
            )
            * bool(self.asked_beside)
            + self.unlike
        )

    @property
    def unlike(self) -> str:
        """What is said where rows of one epsilon have not spent the same in all; empty where they have."""
        unlike: dict[float, list[TableRow]] = {}
        for row in self.private:
            unlike.setdefault(row.epsilon, []).append(row)
        groups = [rows for rows in unlike.values() if len({row.totals for row in rows}) > 1]
        if not groups:
            return ""
        every = [{row.totals: f"{self.called(row)} {row.spent}" for row in reversed(rows)} for rows in groups]
        first = list(every[0].values())[::-1]
        more = f" (and so at {len(groups) - 1} other budgets)" if len(groups) > 1 else ""
        return (
            f" Rows do not all spend the same in all: at epsilon {number(groups[0][0].epsilon)} {', but '.join(first)}"
            f"{more}; a comparison of these is none at equal epsilon."
        )

    @property
    def private(self) -> tuple[TableRow, ...]:
        """The rows that spend a budget."""
        return tuple(row for row in self.rows if row.role is Role.PRIVATE)

    @property
    def perturbed(self) -> bool:
        """Whether any row perturbs features: where all have them as they are, links or labels alone are private."""
        return any(math.isfinite(row.epsilon) for row in self.private)

    @property
    def results(self) -> tuple[TableRow, ...]:
        """Those of them that are results of their own: none whose runs are an earlier one's."""
        return tuple(row for row in self.private if not row.repeats)

    def reference(self, role: Role) -> TableRow:
        """Return the row that is the guess, the floor or the ceiling."""
        return next(row for row in self.rows if row.role is role)


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """What can be known without training anything, in bits, along one axis of a data set.

    Attributes:
        dataset, axis: where it belongs.
        columns: what each number is, in one or two short lines.
        values: the numbers at each value of the axis.
    """

    dataset: str
    axis: str
    columns: tuple[str, ...]
    values: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Everything that an evaluation says: one section per dataset and task, notes, and how sure it is.

    `made` is what the runs came from, `commit` the code that says it, where git knows.
    """

    sections: tuple[Section, ...]
    confidence: Confidence
    seed: int
    notes: tuple[str, ...]
    version: str
    title: str = ""
    about: str = ""
    experiment: str = ""
    made: Mapping[str, Any] = field(default_factory=dict)
    commit: str = ""
    backgrounds: tuple[Background, ...] = ()

    @property
    def rows(self) -> Iterator[TableRow]:
        """All rows, in the order of the table."""
        for section in self.sections:
            yield from section.rows

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes of the experiment beside epsilon, by full name; each task has a table of its own."""
        return tuple(dict.fromkeys(name for row in self.rows for name, _ in row.axes))

    @property
    def tables(self) -> dict[str, Result]:
        """The result in parts of one task each: the first one's is `main`, the others have their task's name."""
        parts = dict.fromkeys(section.measures.task for section in self.sections)
        out = {}
        for place, task in enumerate(parts):
            own = tuple(section for section in self.sections if section.measures.task == task)
            out["main" if place == 0 else task] = replace(self, sections=own)
        return out

    @property
    def measures(self) -> TaskEntry:
        """How the first section's task is measured; of a part, every section's."""
        return self.sections[0].measures if self.sections else measures_of(DEFAULT_TASK)

    @property
    def heading(self) -> str:
        """What a table is headed with."""
        label = self.measures.headline.label
        return self.title or f"{label[:1].upper()}{label[1:]}, gain over the floor, gap to the ceiling"

    @property
    def reading(self) -> str:
        """One line: what the columns of a part are."""
        one = self.measures.headline
        units = f", in {one.difference}" if one.difference else ""
        better = "" if one.best == "high" else "; above 0 is better, as everywhere here"
        beside = any(section.asked_beside for section in self.sections)
        public = "what people tell beside their features" if beside else listed(self.measures.known())
        whole = "Epsilon is what one user spends on features." if beside else "Epsilon is all that one user spends."
        return (
            f"{one.heading[:1].upper()}{one.heading[1:]}, mean over runs with an interval of "
            f"{self.confidence.words}. Gain over structure (epsilon 0: {public}, "
            "nobody's features) and gap to nonpriv (the features as they are) are means of differences "
            f"within the same split{units}{better}. {whole}"
        )


def number(value: float) -> str:
    """Return a number as short as it can be said: 0, 0.1, 1, inf."""
    return "inf" if value == math.inf else f"{value:g}"


def signed(value: float, digits: int = 1) -> str:
    """Return '+0.2', '−0.3' or '0.0' for a difference; never '-0.0'."""
    rounded = round(value, digits)
    if rounded == 0:
        return f"{0:.{digits}f}"
    return f"{'+' if rounded > 0 else _MINUS}{abs(rounded):.{digits}f}"


def span(interval: Interval | None, *, sign: bool = False, digits: int = 1) -> str:
    """Return '84.2 [83.9, 84.6]'; with `sign`, '+0.2 [−0.3, +0.7]'; '0.0 exactly'; of one run the mean alone."""
    if interval is None:
        return ""

    if sign and interval.known and interval.mean == interval.low == interval.high == 0:
        return f"{0:.{digits}f} exactly"  # runs less themselves: there is no doubt to show
    near = sign and interval.known and any(end and not round(end, digits) for end in (interval.low, interval.high))
    digits += near  # "[0.0, +0.7]" would not say on which side of 0 it ends

    def show(value: float) -> str:
        return signed(value, digits) if sign else f"{value:.{digits}f}"

    ends = f" [{show(interval.low)}, {show(interval.high)}]" if interval.known else ""
    return f"{show(interval.mean)}{ends}"


FORMS = ("csv", "md", "tex", "html", "terminal", "brief", "overview")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a table, wherever it is shown: its heading and its text stand together, so that none can shift.

    Attributes:
        key: its name, as the record has it.
        heading: what stands above it; the record has the key.
        text: what it says of a row.
        where: in which forms it stands: `csv`, the record; `md`, `tex` and `html`; `terminal`, what `ldp tables`
            prints of a record; `brief`, what `ldp experiment` prints; `overview`, the page of all results.
        left: whether it is words, set to the left; numbers are set to the right.
        kind, label: of a page: its cells' class, and what they are called where headings have no room.
        headings, texts: of forms that have another heading, or another text.
        interval: of a column of means: what the record has as three columns, KEY, KEY_low and KEY_high.
        recorded: what is said of a row of a record, where that is not what stands in its column of this name.
        spare: the higher it is, the sooner a narrow terminal leaves it out; never at 0.
    """

    key: str
    heading: str
    text: Callable[[TableRow], str]
    where: tuple[str, ...]
    left: bool = False
    kind: str = ""
    label: str = ""
    headings: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, Callable[[TableRow], str]] = field(default_factory=dict)
    interval: Callable[[TableRow], Interval | None] | None = None
    recorded: Callable[[Mapping[str, str]], str] | None = None
    spare: int = 0

    def head(self, form: str) -> str:
        """Return what stands above it in a form."""
        return self.headings.get(form, self.key if form == "csv" else self.heading)

    def says(self, form: str, row: TableRow) -> str:
        """Return what it says of a row in a form."""
        return self.texts.get(form, self.text)(row)

    def reads(self, record: Mapping[str, str]) -> str:
        """Return what it says of a row of a record; nothing of a record that is older than the column."""
        return self.recorded(record) if self.recorded else record.get(self.key, "")


def shown_in(form: str, columns: Iterable[Column]) -> list[Column]:
    """Return those of the columns that stand in a form."""
    return [column for column in columns if form in column.where]


def table_columns(measures: TaskEntry, axes: Sequence[str] = (), section: Section | None = None) -> tuple[Column, ...]:
    """Return every column in the order in which they stand, whatever the form; `axes` are the record's.

    Of a section its own axes are shown, and how its papers' numbers are marked; one that never has a remark has no
    such column but in the record.
    """
    head, *others = measures.measures
    letters = {} if section is None else marks(section.rows)
    own = axes if section is None else section.own_axes
    remarked = section is None or any(row.remark for row in section.rows)

    def paper(note: str) -> Callable[[TableRow], str]:
        return lambda row: f"{row.papers[0].text}{note.format(letters[row.papers[0].note])}" if row.papers else ""

    def placed(row: TableRow) -> str:
        return row.label if section is None else ", ".join([row.label, *section.place_of(row)])

    def cited(record: Mapping[str, str]) -> str:
        return f"{record.get('paper', '')} {record.get(f'paper_{head.name}', '')}".strip()

    def only(key: str, text: Callable[[TableRow], str]) -> Column:
        return Column(key=key, heading=key, text=text, where=("csv",))

    def spread(key: str, heading: str, interval: Callable[[TableRow], Interval | None], **more: Any) -> Column:
        sign = key != head.name
        return Column(
            key=key, heading=heading, text=lambda row: row.shown(interval(row), sign=sign), interval=interval, **more
        )

    def other(measure: Measure) -> Column:
        return spread(measure.name, measure.label, lambda row: row.others[measure.name], where=("csv",))

    gain = {"html": f"Gain over floor, {head.step}", "overview": "gain"}
    gap = {"html": f"Gap to ceiling, {head.step}", "overview": "gap"}
    return (
        Column(
            key="dataset", heading="dataset", text=lambda row: row.dataset, where=("csv", "overview"),
            headings={"overview": "data"},
        ),
        *(only(axis, _on(axis)) for axis in axes),
        Column(
            key="row", heading="row", text=lambda row: row.label, where=FORMS, left=True,
            headings={"html": "Method"}, texts={"csv": lambda row: row.name, "tex": placed},
        ),
        only("method", lambda row: row.method),
        Column(
            key="mechanism", heading="mechanism", text=lambda row: "" if row.role is Role.GUESS else row.mechanism,
            where=("csv", "md", "tex", "terminal", "brief", "overview"), left=True, headings={"tex": "mech."},
            texts={"csv": lambda row: row.mechanism}, spare=3,
        ),
        *(
            Column(
                key=axis, heading=axis_title(axis), text=_on(axis), where=("md", "brief", "overview"),
                headings={"overview": axis},
            )
            for axis in own
        ),
        Column(
            key="epsilon", heading="epsilon", text=lambda row: number(row.epsilon),
            where=("csv", "md", "terminal", "brief", "overview"),
        ),
        Column(
            key="epsilon_mean", heading="spent", text=lambda row: number(row.mean_epsilon), where=("csv", "overview"),
        ),
        only("epsilon_max", lambda row: number(row.max_epsilon)),
        only("delta", lambda row: f"{row.total.delta:g}"),
        Column(key="spent_on", heading="spent on", text=lambda row: row.spent, where=("csv", "md"), left=True),
        only("model", lambda row: row.model),
        Column(key="steps", heading="K", text=lambda row: row.steps_text, where=("csv", "md", "tex", "brief")),
        only("runs", lambda row: str(row.runs)),
        spread(
            head.name, head.label, lambda row: row.score, where=FORMS, kind="num",
            headings={"overview": head.name, "html": _capital(head)},
        ),
        spread("gain", "gain over structure", lambda row: row.gain, where=FORMS, kind="num gain-cell", headings=gain),
        Column(key="bars", heading="worse · better", text=lambda row: "", where=("html",), kind="bars"),
        Column(key="verdict", heading="Verdict", text=lambda row: "", where=("html",), kind="verdict-cell"),
        spread(
            "gap", "gap to nonpriv", lambda row: row.gap, where=("csv", "md", "tex", "html", "terminal", "overview"),
            kind="num", label="gap to ceiling", headings=gap, spare=1,
        ),
        Column(key="steps", heading="K", text=lambda row: row.steps_text, where=("terminal",), spare=2),
        Column(
            key=f"paper_{head.name}", heading="paper", text=lambda row: row.papers[0].value if row.papers else "",
            where=("csv", "terminal"), spare=4,
        ),
        Column(
            key="paper", heading="paper", text=paper(" ({})"), where=("csv", "md", "tex", "html", "overview"),
            kind="num", label="in a paper", headings={"html": "In a paper", "overview": "in a paper"}, recorded=cited,
            texts={
                "csv": lambda row: row.papers[0].reference if row.papers else "",
                "tex": paper(f"{_RAISED}{{}}{_RAISED}"),
            },
        ),
        only("claim", lambda row: "keeps" if row.claim.keeps else f"fails: {row.claim.text}"),
        Column(  # in LaTeX it is a line of its own below its row, on a page it stands beside the row's name
            key="remark", heading="remark", text=lambda row: row.remark, left=True, spare=5,
            where=("csv", *(("md", "terminal", "overview") if remarked else ())),
        ),
        *(other(measure) for measure in others),
    )  # fmt: skip


def _capital(head: Measure) -> str:
    return f"{head.axis[:1].upper()}{head.axis[1:]}{'' if head.best == 'high' else ' (less is better)'}"


def _on(axis: str) -> Callable[[TableRow], str]:
    """Return where a row stands on an axis; empty where it has none."""
    return lambda row: dict(row.axes).get(axis, "")


def columns(measures: TaskEntry) -> tuple[str, ...]:
    """Return the columns of a task's record, without the axes of an experiment."""
    return tuple(name for column in shown_in("csv", table_columns(measures)) for name in _recorded(column))


def _recorded(column: Column) -> list[str]:
    """Return the names of a column in the record."""
    name = column.head("csv")
    return [name] if column.interval is None else [f"{name}{end}" for end in ("", "_low", "_high")]


def csv_text(result: Result) -> str:
    """Return the record of a part: one line per cell."""
    record = shown_in("csv", table_columns(result.measures, result.axes))
    measured = {one.name: one for one in result.measures.measures}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(name for column in record for name in _recorded(column))
    for row in result.rows:
        line: list[str] = []
        for column in record:
            if column.interval is None:
                line.append(column.says("csv", row))
            else:
                line += _ends(column.interval(row), measured.get(column.key, result.measures.headline))
        writer.writerow(line)
    return out.getvalue()


def _places(row: TableRow, axes: Sequence[str]) -> list[str]:
    """Return where a row stands on each axis; empty where it has none."""
    there = dict(row.axes)
    return [there.get(axis, "") for axis in axes]


def read_csv(text: str) -> list[dict[str, str]]:
    """Return the rows of a CSV text."""
    return list(csv.DictReader(io.StringIO(text)))


def axis_columns(columns: Iterable[str]) -> list[str]:
    """Return which columns of a CSV text are the axes of its grid: those between the data set and the row's name."""
    names = list(columns)
    return names[names.index("dataset") + 1 : names.index("row")]


def plots_text(result: Result) -> str:
    """Return the headline against epsilon, to be plotted: references appear at every epsilon, as level lines."""
    head = result.measures.headline
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    axes = result.axes
    writer.writerow(("dataset", *axes, "row", "epsilon", *(f"{head.name}{end}" for end in ("", "_low", "_high"))))
    for section in result.sections:
        epsilons = sorted({row.epsilon for row in section.private})
        for row in section.rows:
            for epsilon in [row.epsilon] if row.role is Role.PRIVATE else epsilons:
                writer.writerow((row.dataset, *_places(row, axes), row.name, number(epsilon), *_ends(row.score, head)))
    return out.getvalue()


def metrics(result: Result) -> dict[str, Any]:
    """Return what `dvc metrics diff` compares: dataset, task, row, epsilon; the headline and the gain, rounded."""
    out: dict[str, Any] = {}
    for row in result.rows:
        head = row.measures.headline
        values = {head.name: round(row.score.mean, head.digits + 1)}
        if row.gain is not None and row.role is not Role.GUESS:
            values["gain"] = round(row.gain.mean, head.digits + 1) + 0.0
        here = out.setdefault(row.dataset, {})
        axes = list(row.axes)
        if row.measures.task != DEFAULT_TASK:
            axes.insert(0, ("task", row.measures.task))
        for axis, value in axes:
            here = here.setdefault(f"{axis}={value}", {})
        if row.role is Role.PRIVATE:
            here.setdefault(row.name, {})[number(row.epsilon)] = values
        else:
            here[row.name] = values
    return out


def footnotes(rows: Sequence[TableRow]) -> list[tuple[str, list[PaperNumber]]]:
    """Return the notes on papers' numbers, each once, with the numbers it goes with, in the order of the table."""
    found: dict[str, list[PaperNumber]] = {}
    for row in rows:
        for paper in row.papers[:1]:
            found.setdefault(paper.note, []).append(paper)
    return list(found.items())


def marks(rows: Sequence[TableRow]) -> dict[str, str]:
    """Return the letter of each footnote: a, b, c, ..."""
    return {note: chr(ord("a") + place) for place, (note, _) in enumerate(footnotes(rows))}


def daggers(rows: Sequence[TableRow]) -> list[str]:
    """Return why rows carry a dagger, each reason once; where a mechanism has several, with the place of each."""
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        if not row.claim.keeps:
            place = [*(at(name, value) for name, value in row.axes), f"epsilon {number(row.epsilon)}"]
            found.setdefault(row.mechanism, {}).setdefault(row.claim.text, ", ".join([row.mechanism, *place]))
    return [
        f"{place if len(reasons) > 1 else mechanism}: {reason}"
        for mechanism, reasons in found.items()
        for reason, place in reasons.items()
    ]


def markdown_text(result: Result) -> str:
    """Return the table for a README or a review."""
    parts = [f"# {result.heading}", "", *([result.about, ""] if result.about else []), result.reading, ""]
    for section in result.sections:
        letters = marks(section.rows)
        shown = shown_in("md", table_columns(section.measures, (), section))
        body = [tuple(column.head("md") for column in shown)]
        body += [tuple(column.says("md", row) for column in shown) for row in section.rows]
        widths = [max(2, *(len(line[place]) for line in body)) for place in range(len(shown))]  # a rule has a dash
        right = [not column.left for column in shown]
        rule = [("-" * (width - 1) + ":") if flag else "-" * width for width, flag in zip(widths, right, strict=True)]
        lines = [body[0], tuple(rule), *body[1:]]
        parts += [f"## {section.title}", ""]
        parts += ["| " + " | ".join(_pad(line, widths, right)) + " |" for line in lines]
        parts += ["", section.protocol, ""]
        parts += [f"- ({letters[note]}) {note}" for note, _ in footnotes(section.rows)]
        parts += [f"- {DAGGER} {reason}" for reason in daggers(section.rows)]
        parts += [""] if letters or daggers(section.rows) else []
    parts += [f"- {note}" for note in result.notes]
    return "\n".join(parts).rstrip() + "\n"


def _pad(line: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> list[str]:
    return [
        text.rjust(width) if flag else text.ljust(width) for text, width, flag in zip(line, widths, right, strict=True)
    ]


def latex_text(result: Result) -> str:
    """Return table environments for LaTeX; they need the package booktabs and fit a text width of 345 points."""
    parts = ["% Needs \\usepackage{booktabs}."]
    for section in result.sections:
        letters = marks(section.rows)
        shown = shown_in("tex", table_columns(section.measures, (), section))
        aligned = "".join("l" if column.left else "r" for column in shown)
        parts += [
            "\\begin{table}",
            "\\centering\\scriptsize\\setlength{\\tabcolsep}{2pt}",
            f"\\caption{{{_tex(section.protocol)} {_tex(result.reading)}}}",
            f"\\label{{tab:main-{section.slug}}}",
            f"\\smallskip\\begin{{tabular}}{{@{{}}{aligned}@{{}}}}",
            "\\toprule",
            " & ".join(_tex(column.head("tex")) for column in shown) + " \\\\",
        ]

        def across(text: str, width: int = len(shown)) -> str:
            return f"\\multicolumn{{{width}}}{{@{{}}l}}{{{text}}} \\\\"

        before = ""
        for row in section.rows:
            group = f"epsilon {number(row.epsilon)}, spent on: {row.spent}"
            if group != before:
                parts += ["\\midrule", across(f"\\emph{{{_tex(group)}}}")]
                before = group
            parts.append(" & ".join(_tex(column.says("tex", row)) for column in shown) + " \\\\")
            parts += [across(f"\\quad {_tex(row.remark)}")] if row.remark else []
        parts += ["\\bottomrule", "\\end{tabular}"]
        notes = [f"({letters[note]}) {note}" for note, _ in footnotes(section.rows)]
        notes += [f"{DAGGER} {reason}" for reason in daggers(section.rows)]
        parts += [f"\\par\\smallskip\\raggedright\\scriptsize {_tex(' '.join(notes))}"] if notes else []
        parts += ["\\end{table}", ""]
    return "\n".join(parts).rstrip() + "\n"


_RAISED = "\x1e"  # on both sides of what is raised
_TEX = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    DAGGER: "\\textdagger{}",
    "±": "$\\pm$",
    _MINUS: "$-$",
}


def _tex(text: str) -> str:
    plain = "".join(_TEX.get(character, character) for character in text)
    return re.sub(f"{_RAISED}(.*?){_RAISED}", r"\\textsuperscript{\1}", plain)


def _ends(interval: Interval | None, one: Measure) -> tuple[str, str, str]:
    if interval is None:
        return "", "", ""
    low, high = (_plain(interval.low, one), _plain(interval.high, one)) if interval.known else ("", "")
    return _plain(interval.mean, one), low, high


def _plain(value: float, one: Measure) -> str:
    """Return a number as the record has it: with one decimal more than people are shown."""
    return f"{round(value, one.digits + 1) + 0.0:.{one.digits + 1}f}"
