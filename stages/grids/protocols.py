"""A paper's own protocol: how it trains, searches and asks, each entry with the place that says so.

Each `papers/NAME.yaml` has a list `protocol`. An entry is one place of the parameters (`train.hidden`,
`search.dropout`, `seeds`), an option of the mechanism (`mechanism.m_rule`), a part of the method
(`method.score_steps`), a further axis of the search (`axis.gamma`), or `selection`. It is `cited` by section, or
`unstated` with what was chosen and why.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphldp import methods
from graphldp.client import option_names
from graphldp.errors import DataError, OptionError, unknown_name
from graphldp.experiment.options import SearchParams, TrainParams, check_settings
from graphldp.experiment.search_space import SearchedRow
from graphldp.jsonable import plain
from graphldp.stages.grids.paper_numbers import Paper
from graphldp.stages.grids.params import Params, RowParams
from graphldp.stages.grids.yamls import build, read_paper, typed

__all__ = ["SELECTION", "Entry", "Protocol", "protocol", "protocol_names"]

SELECTION = "validation loss"  # by which every run here is chosen
_SHARED = {"train": TrainParams, "search": SearchParams}
_PARTS = (*_SHARED, "mechanism", "method", "axis")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One thing that a paper's protocol sets.

    Attributes:
        place: what it sets.
        value: to what.
        cited: the section that says so; empty where the paper leaves it open.
        unstated: then what was chosen, and why.
    """

    place: str
    value: Any
    cited: str = ""
    unstated: str = ""

    @property
    def part(self) -> str:
        """The part of the parameters that it belongs to."""
        return self.place.partition(".")[0]

    @property
    def key(self) -> str:
        """Its name in that part."""
        return self.place.partition(".")[2]

    @property
    def source(self) -> str:
        """Where it comes from, for people."""
        return self.cited or f"unstated: {self.unstated}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """All that a paper's own runs set; `paper` is its short name in options, `short` what people call it."""

    paper: str
    short: str
    entries: tuple[Entry, ...]

    def without(self, *places: str) -> Protocol:
        """Return the protocol without some places; `train` stands for all of its own."""
        left = tuple(one for one in self.entries if one.place not in places and one.part not in places)
        return dataclasses.replace(self, entries=left)

    def settings(self, params: Params, *, keep: tuple[str, ...] = ()) -> Params:
        """Return parameters with what the protocol sets for every row; the places in `keep` stay as they are."""
        changed: dict[str, dict[str, Any]] = {part: {} for part in _SHARED}
        seeds = params.seeds
        for one in self.entries:
            if one.place in keep:
                continue
            if one.place == "seeds":
                seeds = one.value
            elif one.part in changed:
                changed[one.part][one.key] = one.value
        parts = {part: dataclasses.replace(getattr(params, part), **values) for part, values in changed.items()}
        out = dataclasses.replace(params, seeds=seeds, **parts)
        check_settings(out)
        return out

    def row(self, row: RowParams, varied: Iterable[str] = ()) -> RowParams:
        """Return a row with those options, parts of the method and axes that it has and leaves open.

        What the grid varies is not searched.
        """
        recipe = methods.method(row.method)
        if not recipe.model or recipe.learners:
            return row
        options, changes = dict(row.options), dict(row.set)
        given = {*options, *changes, *(name.removeprefix("mechanism.") for name in varied)}
        search = {key: value for key, value in row.search.items() if key != "options"}
        axes = {name: list(values) for name, values in dict(row.search.get("options", {})).items()}
        there = SearchedRow(recipe=recipe.but(row.changes), mechanism=row.mechanism)
        for one in self.entries:
            if one.part == "mechanism" and one.key in option_names(row.mechanism):
                options.setdefault(one.key, one.value)
            elif one.part == "method" and there.has(one.place, {}) and one.place not in axes:
                changes.setdefault(one.place, one.value)
            elif one.part == "axis" and there.has(one.key, {}) and one.key not in given:
                axes.setdefault(one.key, list(one.value))
        if axes:
            search["options"] = axes
        return dataclasses.replace(row, options=options, set=changes, search=search)

    def grid(self, params: Params) -> Params:
        """Return a whole grid under this protocol, in a folder of its own."""
        out = self.settings(params)
        rows = tuple(self.row(row, params.vary if row.vary is None else row.vary) for row in params.rows)
        return dataclasses.replace(out, name=f"{params.name}-{self.paper}" if params.name else self.paper, rows=rows)


def protocol_names(papers: Path) -> list[str]:
    """Return the papers that say how they train."""
    return [path.stem for path in sorted(papers.glob("*.yaml")) if _entries(path)]


def protocol(name: str, papers: Path) -> Protocol:
    """Return a paper's protocol, every entry checked."""
    path = papers / f"{name}.yaml"
    if not papers.is_dir():
        raise OptionError(f"{papers} does not exist; a protocol stands in the folder of papers, name it with --papers")
    if path.is_file() and not _entries(path):
        Paper.from_yaml(path)  # whose key may be misspelt
    if not path.is_file() or not _entries(path):
        raise unknown_name("protocol", name, protocol_names(papers))
    raw = read_paper(path)
    entries = tuple(_entry(path, count, one) for count, one in enumerate(_entries(path)))
    places = [one.place for one in entries]
    twice = sorted({place for place in places if places.count(place) > 1})
    if twice:
        raise DataError(f"{path}: protocol sets {twice[0]} twice")
    return Protocol(paper=str(raw["paper"]), short=str(raw["short"]), entries=entries)


def _entries(path: Path) -> list[Any]:
    found = read_paper(path)
    entries = found.get("protocol", []) if isinstance(found, Mapping) else []
    if not isinstance(entries, list):
        raise DataError(f"{path}: protocol must be a list, got {entries!r}")
    return entries


def _entry(path: Path, count: int, raw: Any) -> Entry:
    try:
        one: Entry = build(Entry, raw, f"protocol[{count}].")
    except OptionError as error:
        raise DataError(f"{path}: {error}") from None
    if bool(one.cited) == bool(one.unstated):
        raise DataError(f"{path}: {one.place} is either cited by section or unstated with a reason")
    if one.place == "selection":
        if one.value != SELECTION:
            raise DataError(f"{path}: runs are selected by {SELECTION} here, not by {one.value!r}")
        return one
    if one.place == "seeds":
        if isinstance(one.value, bool) or not isinstance(one.value, int) or one.value < 1:
            raise DataError(f"{path}: seeds is a number of runs, got {one.value!r}")
        return one
    if one.part not in _PARTS or not one.key:
        raise DataError(
            f"{path}: {one.place} is no place of a protocol: seeds, selection, or {'.KEY, '.join(_PARTS)}.KEY"
        )
    if one.part in _SHARED:
        value = typed(_SHARED[one.part], {one.key: plain(one.value)}, f"{path}: {one.part}.")[one.key]
        return dataclasses.replace(one, value=value)
    if one.part == "axis" and not (isinstance(one.value, list) and one.value):
        raise DataError(f"{path}: {one.place} is a list of values to search, got {one.value!r}")
    return one
