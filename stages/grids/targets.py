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
from graphldp.stages.grids.paper_numbers import cells_of, read_transcript, reasons_of
from graphldp.stages.grids.params import Params, RowParams
from graphldp.stages.grids.protocols import Protocol, protocol
from graphldp.stages.grids.yamls import build, read_paper, typed

__all__ = [
    "PROFILES",
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
class PaperTarget:
    """A table, a figure or a bridge of a paper.

    Attributes:
        paper, name: together its address, `togl:table17`.
        short: what people call the paper.
        place: `Table 17`, or `Figure 3`.
        title: what it shows.
        note: what to know of how it is read.
        asked: its rows.
        readings: what the paper leaves open, each by name, with a method, a model or `places`; one with a `profile` is
            run in that alone. Where no number is printed to be near to, the first one is shown.
        ours: the method of our own reading, where the readings have several.
        printed: a table's numbers.
        measured: where a target that trains nothing is measured: its file or page, and the command.
        source: for such a target, which numbers of the file stand beside which printed ones.
        gains: which rows are compared: a row less another one.
        steps: of a bridge: what is set back, one after the other.
        settings: of both columns, as a file of parameters has them.
        few: a figure's budgets where a profile has not all of them; the first and the last if empty.
        vary: axes, by full name.
    """

    paper: str
    short: str
    name: str
    place: str
    title: str
    note: str = ""
    asked: tuple[TargetRow, ...] = ()
    readings: tuple[Mapping[str, Any], ...] = ()
    ours: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    printed: tuple[Printed, ...] = ()
    datasets: tuple[str, ...] = ()
    epsilons: tuple[float, ...] = ()
    few: tuple[float, ...] = ()
    vary: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    measured: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    source: tuple[Mapping[str, Any], ...] = ()
    gains: Mapping[str, str] = dataclasses.field(default_factory=dict)
    steps: tuple[Mapping[str, Any], ...] = ()

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
        readings = [one for one in self.readings if one.get("profile", profile.name) == profile.name] or [{}]
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
        names = ["their protocol", *(str(step["name"]) for step in self.steps)]
        for number, name in enumerate(names):
            if number:
                step = self.steps[number - 1]
                given = given.without(*step.get("back", ()))
                row = asked.row
                if "method" in step:
                    search = {**row.search, **step.get("search", {})}
                    row = RowParams(name=row.name, method=str(step["method"]), mechanism=row.mechanism, search=search)
                asked = dataclasses.replace(asked, row=row, model=str(step.get("model", asked.model)))
            params = self._under(given, base, profile, keep)
            made = self._cells(str(number), params, profile, given, self.datasets, ({"name": name},), one=asked)
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
        readings: Sequence[Mapping[str, Any]],
        *,
        references: bool = False,
        one: TargetRow | None = None,
    ) -> list[TargetCell]:
        out: list[TargetCell] = []
        for dataset in datasets:
            for number, reading in enumerate(readings):
                for asked in self.asked if one is None else (one,):
                    row = dataclasses.replace(
                        asked.row, name=_plain(asked.label), method=str(reading.get("method", asked.row.method))
                    )
                    row = given.row(row, self.vary) if given is not None else row
                    grid = dataclasses.replace(
                        params, datasets=(dataset,), epsilons=self._budgets(dataset, asked, profile), rows=(row,),
                        vary=self._axes(row, profile), overrides={},
                    )  # fmt: skip
                    model = str(reading.get("model", "")) or asked.model
                    for cell in grid.cells():
                        if role_of(cell.method) is not Role.PRIVATE:
                            if references and not any(made.asked is None and made.cell == cell for made in out):
                                out.append(TargetCell(column=column, asked=None, reading="", cell=cell))
                            continue
                        places = {
                            **cell.places,
                            **({"train.model": model} if model else {}),
                            **reading.get("places", {}),
                        }
                        name = cell.name if len(readings) == 1 else f"{cell.name}-{number}"
                        cell = dataclasses.replace(cell, places=places, name=name)
                        out.append(
                            TargetCell(column=column, asked=asked, reading=str(reading.get("name", "")), cell=cell)
                        )
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


_KEYS = {
    *(
        "target",
        "table",
        "figure",
        "title",
        "note",
        "rows",
        "ours",
        "readings",
        "datasets",
        "epsilons",
        "epsilon",
        "few",
    ),
    *("vary", "settings", "measured", "from", "gains", "steps", "bridge"),
}
_ROW = {"printed", "label", "csv", "also", "model"}


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
        for figure in read_paper(papers / f"{paper}.yaml")["figures"]:
            if "why" in figure and re.match(rf"{re.escape(plain)}\b", f"figure{figure['figure']}"):
                raise OptionError(f"{address} is not made again: {figure['why']}")
        raise unknown_name("target", address, [one.key for one in own])
    return found


def _of_paper(path: Path) -> list[PaperTarget]:
    raw = read_paper(path)
    tables: dict[str, list[Mapping[str, Any]]] = {}
    for table in raw.get("tables", []):
        tables.setdefault(str(table["table"]), []).append(table)
    return [_target(path, raw, tables, one) for one in raw.get("reproduce", [])]


def _target(path: Path, paper: Mapping[str, Any], tables: Mapping[str, Any], raw: Mapping[str, Any]) -> PaperTarget:
    where = f"{path}, reproduce {raw.get('target')}"
    unknown = set(raw) - _KEYS
    if unknown or "target" not in raw or not ({"table", "figure", "bridge"} & set(raw)):
        raise DataError(
            f"{where}: has {sorted(unknown) or 'neither table, figure nor bridge'}; known are {sorted(_KEYS)}"
        )
    bridge = raw.get("bridge", {})
    number = str(raw.get("table", bridge.get("table", "")))
    figures = [str(one["figure"]) for one in paper.get("figures", [])]
    if "figure" in raw and str(raw["figure"]) not in figures:
        raise DataError(f"{where}: no figure {raw['figure']!r}; there are {', '.join(figures)}")
    if number and number not in tables:
        raise DataError(f"{where}: no table {number!r}; there are {', '.join(tables)}")
    printed = [one for table in tables.get(number, []) for one in _numbers(path, table)]
    place = f"Table {number}" if number else str(raw["figure"])
    if bridge:
        printed = [
            one for one in printed
            if (one.label, one.dataset, one.epsilon) == (bridge["printed"], bridge["dataset"], bridge["epsilon"])
        ]  # fmt: skip
        if len(printed) != 1:
            raise DataError(f"{where}: bridge names {len(printed)} printed numbers, it takes one")
        place = "bridge"
    elif not number and not place.startswith("Table"):
        place = f"Figure {place}"
    place = place.partition(" (")[0] if place.startswith("Table") else place
    asked = tuple(_asked(where, one) for one in raw.get("rows", []))
    labels = [one.label for one in asked]
    if len(set(labels)) < len(labels):
        raise DataError(f"{where}: two rows have one label; give each its own")
    titles = [str(table["shows"]) for table in tables.get(number, [])]
    epsilons = raw.get("epsilons", [raw["epsilon"]] if "epsilon" in raw else [])
    return PaperTarget(
        paper=str(paper["paper"]),
        short=str(paper["short"]),
        name=str(raw["target"]),
        place=place,
        title=str(raw.get("title", titles[0] if titles else ""))
        or _shows(path, str(paper["paper"]), str(raw["figure"])),
        note=str(raw.get("note", "")),
        asked=asked,
        readings=tuple(raw.get("readings", [])),
        ours=raw.get("ours", {}),
        printed=tuple(printed),
        datasets=tuple(raw.get("datasets", [bridge["dataset"]] if bridge else [])),
        epsilons=tuple(map(float, [bridge["epsilon"]] if bridge else epsilons)),
        few=tuple(map(float, raw.get("few", []))),
        vary=raw.get("vary", {}),
        settings=raw.get("settings", {}),
        measured=raw.get("measured", {}),
        source=tuple(raw.get("from", [])),
        gains=raw.get("gains", {}),
        steps=tuple(raw.get("steps", [])),
    )


def _asked(where: str, raw: Mapping[str, Any]) -> TargetRow:
    row = {key: value for key, value in raw.items() if key not in _ROW}
    if "printed" not in raw:
        raise DataError(f"{where}: a row says which of the paper's it is, with printed")
    params: RowParams = build(RowParams, row, f"{where}: ")
    if params.search:
        typed(SearchParams, params.search, f"{where}: search.")
    label = str(raw.get("label", raw["printed"]))
    return TargetRow(
        printed=str(raw["printed"]),
        label=label,
        csv=tuple(raw.get("csv", [])),
        also=tuple(raw.get("also", [])),
        model=str(raw.get("model", "")),
        row=dataclasses.replace(params, name=_plain(label)).whole(),
    )


def _numbers(path: Path, table: Mapping[str, Any]) -> list[Printed]:
    return [
        Printed(
            file=str(table["file"]), row=cell.row, label=cell.printed, metric=cell.metric, value=cell.value,
            spread=cell.spread, dataset=cell.dataset, epsilon=None if cell.epsilon is None else float(cell.epsilon),
            at=_at(cell.setting), why=" ".join(reasons_of(table, cell)),
        )
        for cell in cells_of(path, table)
    ]  # fmt: skip


_BUDGETS = {"epsilon_label": "epsilon_labels", "epsilon_link": "epsilon_links"}  # the transcripts' names, and ours


def _at(setting: str) -> dict[str, str]:
    """Return the budgets of labels and links that a row of a transcript names beside its own."""
    named = dict(part.split("=", 1) for part in setting.split(";") if "=" in part)
    return {ours: value_text(float(named[name])) for name, ours in _BUDGETS.items() if name in named}


def _shows(path: Path, paper: str, figure: str) -> str:
    found = [
        row["what_it_shows"]
        for row in read_transcript(path.parent / "figures.csv", str(path))
        if (row["paper"], row["figure"]) == (paper, figure)
    ]
    return found[0] if found else ""


def not_at_hand(name: str) -> str:
    """Return why a registered data set could not be had, in the words of every page."""
    source = "it comes from a source beyond the package index" if datasets.spec(name).wheel is None else "no network"
    return f"not at hand: {source}; `ldp download {name}`"


def protocol_of(target: PaperTarget, papers: Path) -> Protocol:
    """Return the protocol of a target's paper."""
    return protocol(target.paper, papers)
