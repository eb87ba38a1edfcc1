"""Every key and value of every file that people write, made wrong in turn: each is one line that names the place.

The files are the repository's own, so that a new key is walked over by itself.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from graphldp.errors import GraphLDPError
from graphldp.stages.grids import paper_numbers, params, protocols, targets
from graphldp.stages.grids.yamls import read_yaml

ROOT = Path(__file__).resolve().parents[3]
GRIDS = [ROOT / "params.yaml", *sorted((ROOT / "experiments").glob("*.yaml"))]
PAPERS = sorted((ROOT / "papers").glob("*.yaml"))
LONG = {"togl", "ppgnn"}  # files with the most places
STRANGE = "zzqq"
# Mappings whose keys are others' names: a data set's, a mechanism's, an axis's. Whether they are known is asked when a
# cell is planned (`ldp experiment --dry`), as it depends on the row; and of a paper's own words on measured files.
OPEN = {"data", "options", "link_options", "set", "places", "along", "where", "gains"}


def _walk(value: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    yield place, value
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from _walk(part, (*place, key))


def _levels(path: Path) -> list[tuple[tuple[str | int, ...], Any]]:
    """Return every level of a file once: of a list's parts, the first that has it."""
    found: dict[tuple[str, ...], tuple[tuple[str | int, ...], Any]] = {}
    for place, value in _walk(read_yaml(path, "")):
        found.setdefault(tuple("*" if isinstance(part, int) else part for part in place), (place, value))
    return list(found.values())


def _put(raw: Any, place: tuple[str | int, ...], value: Any) -> Any:
    if not place:
        return value
    out = at = copy.deepcopy(raw)
    for part in place[:-1]:
        at = at[part]
    at[place[-1]] = value
    return out


def _said(place: tuple[str | int, ...]) -> list[str]:
    """Return the names of a place that a message is to have."""
    return [str(part) for part in place if isinstance(part, str)][-1:]


@pytest.fixture
def refused(tmp_path: Path) -> Callable[[Path, Any], str]:
    """Return a function that reads a file with other content, and gives what is said of it; empty if it is taken."""
    for one in ("tables", "figures.csv"):
        (tmp_path / one).symlink_to(ROOT / "papers" / one)

    def read(path: Path, raw: Any) -> str:
        copied = tmp_path / path.name
        copied.write_text(raw if isinstance(raw, str) else yaml.dump(raw, Dumper=_Dumper), encoding="utf-8")
        try:
            if path in PAPERS:
                _read_paper(copied)
            else:
                params.load(copied)
        except GraphLDPError as error:
            said = str(error)
        else:
            return ""
        assert "\n" not in said
        assert path.name in said
        return said

    return read


_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def _read_paper(path: Path) -> None:
    for one in targets.targets(path.parent):
        protocols.protocol(one.paper, path.parent)
        break
    paper_numbers.load_papers(path.parent)


@pytest.mark.parametrize("path", [*GRIDS, *PAPERS], ids=lambda path: path.stem)
def test_the_files_themselves_are_sound(path: Path, refused: Callable[[Path, Any], str]) -> None:
    assert refused(path, read_yaml(path, "")) == ""


@pytest.mark.parametrize("path", [*GRIDS, *PAPERS], ids=lambda path: path.stem)
def test_an_unknown_key_is_refused_at_every_level_with_its_place_and_the_valid_ones(
    path: Path, refused: Callable[[Path, Any], str]
) -> None:
    raw, wrong = read_yaml(path, ""), []
    for place, value in _levels(path):
        if not isinstance(value, dict) or OPEN & set(map(str, place)):
            continue
        said = refused(path, _put(raw, place, {**value, STRANGE: 1}))
        named = STRANGE in said and all(part in said for part in _said(place))
        if not named:
            wrong.append((place, said))
    assert wrong == []


@pytest.mark.parametrize("path", [*GRIDS, *PAPERS], ids=lambda path: path.stem)
def test_a_misspelt_key_is_refused_with_the_nearest(path: Path, refused: Callable[[Path, Any], str]) -> None:
    raw, wrong = read_yaml(path, ""), []
    for place, value in _levels(path):
        if not isinstance(value, dict) or OPEN & set(map(str, place)):
            continue
        for key in value:
            slip = f"{key[:-2]}{key[-1]}"
            if len(key) < 5 or "." in key or place in (("overrides",), ("vary",)):
                continue
            said = refused(path, _put(raw, place, {slip if one == key else one: part for one, part in value.items()}))
            if f"did you mean {key!r}?" not in said:
                wrong.append((place, slip, said))
    assert wrong == []


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[pytest.mark.slow] * (path.stem in LONG), id=path.stem) for path in (*GRIDS, *PAPERS)],
)
def test_another_kind_of_value_is_refused_with_its_place(path: Path, refused: Callable[[Path, Any], str]) -> None:
    """A mapping for a list and the reverse, text for either, null, and for one value several or a mapping."""
    raw, wrong = read_yaml(path, ""), []
    for place, value in _levels(path):
        if not place or OPEN & set(map(str, place[:-1])) or "value" in place:
            continue
        others: list[Any] = [{STRANGE: 1}, [[1]], [None]]
        if isinstance(value, dict):
            others = [[1], STRANGE, None]
        elif isinstance(value, list):
            others = [{STRANGE: 1}, STRANGE, 3, None, [None]]
        for other in others:
            if other is None and place[-1] in _MAY_BE_NULL:
                continue
            said = refused(path, _put(raw, place, other))
            # A rule of a paper that names other cells is of the right kind, and leaves some cells without a place.
            if not said or not (all(part in said for part in _said(place)) or "must stand beside" in said):
                wrong.append((place, other, said))
    assert wrong == []


_MAY_BE_NULL = {"epsilons", "dataset", "model", "epsilon"}  # of a paper's figures and cells


@pytest.mark.parametrize("path", [*GRIDS, *PAPERS], ids=lambda path: path.stem)
def test_a_key_that_stands_twice_is_refused(path: Path, refused: Callable[[Path, Any], str]) -> None:
    text = path.read_text(encoding="utf-8")
    key = next(line.partition(":")[0] for line in text.splitlines() if line[:1].isalpha())
    assert f"the key {key!r} stands twice" in refused(path, f"{text}\n{key}: x\n")


@pytest.mark.parametrize("path", [*GRIDS, *PAPERS], ids=lambda path: path.stem)
@pytest.mark.parametrize("raw", [None, [], "text", [1], 3, {3: 1}])
def test_a_file_of_another_kind_is_refused(path: Path, raw: Any, refused: Callable[[Path, Any], str]) -> None:
    if path not in PAPERS and raw in (None, []):
        return  # params.yaml may be empty: everything has a default
    assert refused(path, raw)


@pytest.mark.parametrize("path", GRIDS[:1], ids=lambda path: path.stem)
def test_what_one_cell_reads_of_the_file_is_as_strict(path: Path, tmp_path: Path) -> None:
    """`--params` reads seeds, search and training; a table's rows need not be sound there."""
    raw, copied = read_yaml(path, ""), tmp_path / path.name
    for place, value in _levels(path):
        if place and place[0] in ("search", "train", "seed", "seeds", "evaluate"):
            other = {**value, STRANGE: 1} if isinstance(value, dict) else {STRANGE: 1}
            copied.write_text(yaml.dump(_put(raw, place, other), Dumper=_Dumper), encoding="utf-8")
            with pytest.raises(GraphLDPError) as caught:
                params.load_settings(copied)
            assert all(part in str(caught.value) for part in _said(place))


def test_a_papers_file_says_what_is_wrong_where_its_protocol_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "tables").symlink_to(ROOT / "papers" / "tables")
    raw = read_yaml(PAPERS[0], "")
    raw["protocl"] = raw.pop("protocol")
    (tmp_path / PAPERS[0].name).write_text(yaml.dump(raw, Dumper=_Dumper), encoding="utf-8")
    with pytest.raises(GraphLDPError, match="did you mean 'protocol'"):
        protocols.protocol(PAPERS[0].stem, tmp_path)


def test_numbers_taken_from_elsewhere_are_named_as_the_file_names_them(refused: Callable[[Path, Any], str]) -> None:
    path = next(path for path in PAPERS if path.stem == "togl")
    raw = read_yaml(path, "")
    entry = next(one for one in raw["reproduce"] if "from" in one)
    entry["from"][0][STRANGE] = 1
    assert f"from[0].{STRANGE}" in refused(path, raw)
    entry["from"] = 3
    assert "from must be a list, got 3" in refused(path, raw)
