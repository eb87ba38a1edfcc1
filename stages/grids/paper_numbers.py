"""The numbers that papers print, and which of them may stand beside a row of ours.

`papers/` holds one YAML per paper and the printed tables as CSV. It belongs to the repository, not to the wheel. A
printed number stands beside a row of ours only where a rule of the paper's YAML (`beside`) names everything that the
row is: its method and mechanism, and whatever it changes in them (`set`). A number that stands nowhere says why
(`alone`).
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from graphldp import methods
from graphldp.client import protocol
from graphldp.errors import DataError, OptionError
from graphldp.experiment.options import SearchParams, TrainParams
from graphldp.measures import DEFAULT_TASK
from graphldp.stages.grids.cell import Cell, value_text
from graphldp.stages.grids.yamls import EMPTY, build, read_paper
from graphldp.stages.pages.wording import counted

__all__ = [
    "Alone",
    "Paper",
    "PaperCell",
    "PaperNumber",
    "PaperNumbers",
    "PaperTable",
    "Rule",
    "changes_of",
    "load_papers",
    "read_transcript",
]

DEFAULT, ANY = "default", "any"  # of a setting: as the method has it; any other value


# A paper's file as it is written: which keys stand where, and of what kind their values are.


@dataclass(frozen=True, slots=True, kw_only=True)
class _Which:
    """Of which cells a rule is: each value one, or several."""

    printed: str | tuple[str, ...] = ()
    dataset: str | tuple[str, ...] | None = field(default=(), metadata={EMPTY: True})
    epsilon: float | tuple[float, ...] | None = field(default=(), metadata={EMPTY: True})
    metric: str | tuple[str, ...] = ()
    task: str | tuple[str, ...] = ()

    def given(self) -> dict[str, tuple[Any, ...]]:
        """Return what it says, by the name of what it is about."""
        values = {one.name: getattr(self, one.name) for one in fields(_Which)}
        return {key: one if isinstance(one, tuple) else (one,) for key, one in values.items() if one != ()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Alone(_Which):
    """An entry of `alone`: why cells stand beside no row of ours."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Beside(_Which):
    """An entry of `beside`: beside which row of ours cells stand, and what the row must `set`."""

    printed: str | tuple[str, ...]
    method: str
    mechanism: str
    rank: int
    note: str
    set: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _OursText:
    """What a cell is about, in our words."""

    dataset: str | None = field(metadata={EMPTY: True})
    model: str | None = field(metadata={EMPTY: True})
    task: str
    epsilon: float | None = field(metadata={EMPTY: True})


@dataclass(frozen=True, slots=True, kw_only=True)
class _CellText:
    """An entry of `cells`."""

    row: int
    printed: str
    metric: str
    value: str
    ours: _OursText


@dataclass(frozen=True, slots=True, kw_only=True)
class _TableText:
    """An entry of `tables`."""

    table: str
    file: str
    shows: str
    beside: tuple[_Beside, ...]
    cells: tuple[_CellText, ...]
    alone: tuple[_Alone, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _FigureText:
    """An entry of `figures`."""

    figure: str
    datasets: tuple[str, ...]
    epsilons: tuple[float, ...] | None = field(metadata={EMPTY: True})
    printed: tuple[str, ...]
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _PaperText:
    """The whole file; `protocol` and `reproduce` are read where they are needed."""

    paper: str
    short: str
    title: str
    reference: str
    tables: tuple[_TableText, ...]
    figures: tuple[_FigureText, ...]
    here: tuple[str, ...] = ()
    protocol: tuple[Mapping[str, Any], ...] = ()
    reproduce: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperCell:
    """A cell of a printed table: `row` is its place in the table's CSV; data set to budget are in our words."""

    row: int
    printed: str
    metric: str
    value: str
    spread: str
    spread_kind: str
    setting: str
    dataset: str | None
    model: str | None
    task: str
    epsilon: float | None

    def meant(self, rule: _Which) -> bool:
        """Whether a rule or a reason is about it: it names the cell's value wherever it names any."""
        return all(getattr(self, key) in values for key, values in rule.given().items())


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperTable:
    """A table of a paper's file: what it shows, its cells, and beside which rows they stand or, alone, why not."""

    where: str
    table: str
    file: str
    shows: str
    cells: tuple[PaperCell, ...]
    beside: tuple[_Beside, ...]
    alone: tuple[_Alone, ...]

    @classmethod
    def of(cls, path: Path, said: _TableText) -> PaperTable:
        """Return a table whose cells say what its CSV says."""
        where = f"{path}, table {said.table}"
        printed = read_transcript(path.parent / said.file, where)
        return cls(
            where=where, table=said.table, file=said.file, shows=said.shows, beside=said.beside, alone=said.alone,
            cells=tuple(_paper_cell(where, printed, one) for one in said.cells),
        )  # fmt: skip

    def reasons(self, cell: PaperCell) -> list[str]:
        """Return why a cell stands beside no row of ours; nothing where it does."""
        return [reason.why for reason in self.alone if cell.meant(reason)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """What a paper's file says: what of the paper is `here`, why figures are not made again, what to `reproduce`."""

    paper: str
    short: str
    title: str
    reference: str
    tables: tuple[PaperTable, ...]
    figures: Mapping[str, str]
    here: Sequence[str] = ()
    protocol: Sequence[Any] = ()
    reproduce: Sequence[Mapping[str, Any]] = ()

    @classmethod
    def from_yaml(cls, path: Path) -> Paper:
        """Return a paper, every table of it checked."""
        raw = read_paper(path)
        if not isinstance(raw, Mapping):
            raise DataError(f"{path} must be a mapping, as the other papers' files are")
        try:
            said: _PaperText = build(_PaperText, raw)
        except OptionError as error:
            raise DataError(f"{path}: {error}") from None
        return cls(
            paper=said.paper, short=said.short, title=said.title, reference=said.reference, here=said.here,
            tables=tuple(PaperTable.of(path, one) for one in said.tables),
            figures={one.figure: one.why for one in said.figures}, protocol=said.protocol, reproduce=said.reproduce,
        )  # fmt: skip


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
class Rule:
    """Beside which rows of ours a printed number may stand: all of this together is its address.

    Attributes:
        dataset, model, task, epsilon: as printed; a paper that does not name its model stands beside any of ours.
        method, mechanism: by their registered names.
        settings: what the row must change in its method, each as the texts of the values that fit. `default` is the
            method's own, `any` every other. A row that changes anything else is another row.
    """

    dataset: str
    method: str
    mechanism: str
    model: str | None
    task: str
    epsilon: float
    settings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def address(self) -> tuple[Any, ...]:
        """Return all of it, to be compared."""
        settings = tuple(sorted(self.settings.items()))
        return self.dataset, self.method, self.mechanism, self.model, self.task, self.epsilon, settings

    def fits(
        self,
        dataset: str,
        method: str,
        mechanism: str,
        model: str,
        task: str,
        epsilon: float,
        changes: Mapping[str, Any],
    ) -> bool:
        """Whether a row is the one that is meant: `changes` is what it changes in its method (`changes_of`)."""
        return (
            (self.dataset, self.method, self.mechanism, self.task) == (dataset, method, mechanism, task)
            and self.model in (None, model)
            and (self.epsilon == epsilon or math.isclose(self.epsilon, epsilon, rel_tol=1e-9))
            and all(_fits(self.settings.get(key, (DEFAULT,)), changes.get(key)) for key in {*self.settings, *changes})
        )


def _fits(allowed: Sequence[str], value: Any) -> bool:
    if value is None:
        return DEFAULT in allowed
    return ANY in allowed or _text(value) in allowed


def _text(value: Any) -> str:
    return "/".join(map(value_text, value)) if isinstance(value, list | tuple) else value_text(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """A printed number that stands beside no row, and why."""

    paper: str
    table: str
    file: str
    row: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    rule: Rule
    metric: str
    number: PaperNumber
    file: str
    row: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperNumbers:
    """All numbers of a folder of papers; `folder` is None when there was none to read."""

    folder: Path | None
    entries: tuple[_Entry, ...]
    alone: tuple[Alone, ...] = ()

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
        task: str = DEFAULT_TASK.replace("-", "_"),
        metric: str = "accuracy",
        changes: Mapping[str, Any] | None = None,
    ) -> list[PaperNumber]:
        """Return the printed numbers that may stand beside a row, the closest first.

        `changes` is what the row changes in its method; a number whose rule does not name it all is of another row.
        """
        row = (dataset, method, mechanism, model, task, epsilon, changes or {})
        found = [entry.number for entry in self.entries if entry.metric == metric and entry.rule.fits(*row)]
        return sorted(found, key=lambda number: (number.rank, number.paper, number.table, number.printed))


def changes_of(cell: Cell) -> dict[str, Any]:
    """Return what a cell changes in its method, its mechanism, its search, its training and its data set.

    Keys are written as an experiment's axes are (`method.before`, `search.steps`, `gamma`); what is said and is the
    default is no change. The backbone and the task are parts of an address by themselves.
    """
    recipe = methods.method(cell.method)
    out = {f"method.{key}": value for key, value in cell.changes.items() if _changes(recipe, key, value)}
    if cell.options:
        device = protocol(cell.mechanism, 1.0, 64).options()
        usual = {"m_rule": "optimal", **device}
        out |= {key: value for key, value in cell.options.items() if _text(value) != _text(usual.get(key, ""))}
    shared = {"search": SearchParams(), "train": TrainParams()}
    for place, value in cell.places.items():
        part, _, key = place.partition(".")
        if place not in ("train.model", "train.task") and getattr(shared[part], key) != value:
            out[place] = value
    return out | {f"data.{key}": value for key, value in cell.data.items()}


def _changes(recipe: methods.Method, key: str, value: Any) -> bool:
    """Whether a part of a recipe is another one with that value."""
    if key in recipe.asking_options():
        return bool(getattr(recipe.asking, key) != value)
    try:
        return recipe.but({key: value}) != recipe
    except OptionError:  # it needs a change beside it, such as another filter
        return True


def load_papers(folder: Path) -> PaperNumbers:
    """Read every `*.yaml` of the folder with its CSVs. A folder that is not there gives an empty, marked result."""
    if not folder.is_dir():
        return PaperNumbers(folder=None, entries=())
    entries: list[_Entry] = []
    alone: list[Alone] = []
    for path in sorted(folder.glob("*.yaml")):
        paper = Paper.from_yaml(path)
        for table in paper.tables:
            found, without = _table_entries(paper, table)
            entries += found
            alone += without
    return PaperNumbers(folder=folder, entries=tuple(entries), alone=tuple(alone))


def _table_entries(paper: Paper, table: PaperTable) -> tuple[list[_Entry], list[Alone]]:
    """Return the numbers of a table: those that stand beside rows, once for each rule, and those that stand alone."""
    source = f"{paper.title}. {paper.reference}."
    entries, alone = [], []
    for cell in table.cells:
        rules = [rule for rule in table.beside if cell.meant(rule)]
        reasons = table.reasons(cell)
        if bool(rules) == bool(reasons) or len(reasons) > 1:
            raise DataError(
                f"{table.where}, row {cell.row} ({cell.printed}) must stand beside rows of ours or say once why not; "
                f"it has {len(rules)} rules of beside and {len(reasons)} of alone"
            )
        alone += [
            Alone(paper=paper.short, table=table.table, file=table.file, row=cell.row, why=why) for why in reasons
        ]
        for rule in rules:
            number = PaperNumber(
                paper=paper.short, source=source, table=table.table, printed=cell.printed, value=cell.value,
                spread=cell.spread, spread_kind=cell.spread_kind, note=rule.note, rank=rule.rank,
            )  # fmt: skip
            one = _rule(table.where, rule, cell)
            entries.append(_Entry(rule=one, metric=cell.metric, number=number, file=table.file, row=cell.row))
    return entries, alone


def _rule(where: str, rule: _Beside, cell: PaperCell) -> Rule:
    if cell.epsilon is None or cell.dataset is None:
        raise DataError(f"{where}, row {cell.row}: a number without a budget stands beside no row; say why in alone")
    return Rule(
        dataset=cell.dataset,
        method=rule.method,
        mechanism=rule.mechanism,
        model=cell.model,
        task=cell.task,
        epsilon=float(cell.epsilon),
        settings={key: tuple(map(_text, _listed(value))) for key, value in rule.set.items()},
    )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def read_transcript(path: Path, where: str) -> list[dict[str, str]]:
    """Return the rows of a CSV of the papers' folder."""
    if not path.is_file():
        raise DataError(f"{where}: {path} does not exist; `file` must name a CSV of the papers' folder")
    with path.open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def _paper_cell(where: str, rows: list[dict[str, str]], said: _CellText) -> PaperCell:
    """Return a cell, after checking that its CSV row says the same."""
    row, ours = said.row, said.ours
    if not 1 <= row <= len(rows):
        raise DataError(f"{where}: row {row} is not in its CSV, which has {counted(len(rows), 'row')}")
    there = rows[row - 1]
    for key in ("printed", "metric", "value"):
        here, other = getattr(said, key), there["method" if key == "printed" else key]
        if other != here:
            raise DataError(f"{where}, row {row}: {key} is {here!r} here and {other!r} in the CSV")
    in_csv = {key: there[key] for key in ("spread", "spread_kind", "setting")}
    return PaperCell(
        row=row, printed=said.printed, metric=said.metric, value=said.value, dataset=ours.dataset, model=ours.model,
        task=ours.task, epsilon=ours.epsilon, **in_csv,
    )  # fmt: skip
