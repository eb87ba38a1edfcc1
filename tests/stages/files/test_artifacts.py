"""Files that are whole or not there, and say of themselves what they hold."""

from __future__ import annotations

import errno
import gc
import json
import math
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cell_factory import small_graph
from hypothesis import given, settings
from hypothesis import strategies as st

from graphldp.errors import ArtifactError
from graphldp.jsonable import plain
from graphldp.stages.files.artifacts import (
    METADATA_KEY,
    ParquetSink,
    atomic,
    expect,
    file_hash,
    open_table,
    partial_name,
    read_meta,
    read_table,
    require,
    with_meta,
    write_json,
    write_table,
    write_text,
)
from graphldp.stages.files.graphs import write_graph

MAKE = "ldp make it"
TABLE = pa.table({"node": np.arange(500, dtype=np.int32), "value": np.linspace(0, 1, 500)})
STOPS = [ValueError("a defect"), KeyboardInterrupt(), SystemExit(1)]


def stop_in_text(path: Path, error: BaseException) -> None:
    with atomic(path) as partial:
        partial.write_text("half", encoding="utf-8")
        raise error


def stop_in_table(path: Path, error: BaseException) -> None:
    with ParquetSink(path, TABLE.schema, {"kind": "x"}) as sink:
        sink.write(TABLE)
        assert list(path.parent.glob(".*.partial"))
        raise error


@pytest.mark.parametrize("error", STOPS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("stop", [stop_in_text, stop_in_table])
def test_what_stops_in_the_middle_leaves_nothing(
    stop: Callable[[Path, BaseException], None], error: BaseException, tmp_path: Path
) -> None:
    with pytest.raises(type(error)):
        stop(tmp_path / "deep" / "file", error)
    assert list((tmp_path / "deep").iterdir()) == []


@pytest.mark.parametrize("stop", [stop_in_text, stop_in_table])
def test_what_stops_in_the_middle_leaves_the_earlier_file(
    stop: Callable[[Path, BaseException], None], tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"whole")
    with pytest.raises(KeyboardInterrupt):
        stop(path, KeyboardInterrupt())
    assert path.read_bytes() == b"whole"
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_stands_under_the_name_until_all_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    with ParquetSink(path, TABLE.schema, {}) as sink:
        sink.write(TABLE)
        assert not path.exists()
    assert read_table(path, MAKE).num_rows == 500
    assert list(tmp_path.iterdir()) == [path]


def test_the_temporary_name_is_one_that_git_and_dvc_ignore(tmp_path: Path) -> None:
    with atomic(tmp_path / "a.parquet") as partial:
        assert (partial.parent, partial.suffix) == (tmp_path, ".partial")  # the same file system, a plain rename
        partial.touch()
    root = Path(__file__).parents[3]
    for name in (".gitignore", ".dvcignore"):
        assert "*.partial" in (root / name).read_text(encoding="utf-8").splitlines()


def test_the_same_table_gives_the_same_bytes(tmp_path: Path) -> None:
    meta = {"b": 1, "a": [2.0, math.inf]}
    write_table(tmp_path / "one", TABLE, meta)
    write_table(tmp_path / "two", TABLE, dict(reversed(meta.items())))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_json_is_standard_and_in_one_order(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"b": math.nan, "a": (1, -math.inf), "é": "ü"})
    text = path.read_text(encoding="utf-8")
    assert json.loads(text, parse_constant=pytest.fail) == {"a": [1, "-inf"], "b": "nan", "é": "ü"}
    assert text.index('"a"') < text.index('"b"')
    assert text.endswith("}\n")
    write_text(path, "über\n")
    assert path.read_bytes() == "über\n".encode()


numbers = st.floats(allow_nan=True, allow_infinity=True) | st.integers() | st.booleans() | st.none() | st.text()
trees = st.recursive(numbers, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


@settings(derandomize=True, max_examples=30, deadline=None)
@given(st.dictionaries(st.text(), trees))
def test_metadata_comes_back(meta: dict[str, object]) -> None:
    raw = with_meta(pa.schema([]), meta).metadata[METADATA_KEY]
    assert json.loads(raw, parse_constant=pytest.fail) == plain(meta)


def test_infinite_and_missing_numbers_come_back_as_float_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_table(path, TABLE, {"epsilon": math.inf, "nested": {"list": [-math.inf, math.nan, 1e-6]}})
    meta = read_meta(path, MAKE)
    assert meta == {"epsilon": "inf", "nested": {"list": ["-inf", "nan", 1e-6]}}
    assert float(meta["epsilon"]) == math.inf
    assert math.isnan(float(meta["nested"]["list"][1]))


def test_a_batch_is_one_row_group_however_long(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    lengths = (3, 2**20 + 1)  # beyond 2^20 rows Parquet would start a new row group by itself
    column = [pa.table({"x": np.zeros(length, np.int8)}) for length in lengths]
    with ParquetSink(path, column[0].schema, {}) as sink:
        for table in column:
            sink.write(table)
    with open_table(path, MAKE) as file:
        assert [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)] == list(lengths)


# damage ---------------------------------------------------------------------------------------------------------------


def refused(path: Path) -> str:
    """Return the one line with which a file's metadata and its rows are both refused."""
    with pytest.raises(ArtifactError) as first:
        read_meta(path, MAKE)
    with pytest.raises(ArtifactError) as second:
        read_table(path, MAKE)
    assert str(first.value) == str(second.value)
    line = str(first.value)
    assert "\n" not in line
    assert line.startswith(str(path))
    assert f"`{MAKE}`" in line
    return line


@pytest.fixture
def whole(tmp_path: Path) -> bytes:
    write_table(tmp_path / "whole.parquet", TABLE, {"kind": "x"})
    return (tmp_path / "whole.parquet").read_bytes()


def test_a_file_that_ends_too_early_is_one_line(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "cut.parquet"
    for length in {*range(0, len(whole), 97), *range(12), len(whole) - 1, len(whole) - 8}:
        path.write_bytes(whole[:length])
        assert "not a readable Parquet file" in refused(path)


def test_a_file_that_lost_its_beginning_is_one_line(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "cut.parquet"
    path.write_bytes(whole[:4] + whole[len(whole) // 3 :])
    with pytest.raises(ArtifactError, match=f"is damaged .*; make it again with `{MAKE}`") as error:
        read_table(path, MAKE)
    assert "\n" not in str(error.value)


def test_a_missing_file_says_which_command_makes_it(tmp_path: Path) -> None:
    assert "does not exist; make it with" in refused(tmp_path / "nothing.parquet")
    with pytest.raises(ArtifactError, match="does not exist; make it with `ldp x`"):
        require(tmp_path / "nothing", "ldp x")
    assert require(tmp_path, "ldp x") == tmp_path


def test_what_is_no_parquet_file_is_one_line(tmp_path: Path) -> None:
    text, folder = tmp_path / "notes.parquet", tmp_path / "folder.parquet"
    text.write_text("node,value\n", encoding="utf-8")
    folder.mkdir()
    for path in (text, folder):
        refused(path)


def test_somebody_elses_parquet_file_is_no_artifact(tmp_path: Path) -> None:
    path = tmp_path / "foreign.parquet"
    for table in (TABLE, TABLE.replace_schema_metadata({"pandas": "{}"})):
        pq.write_table(table, path)
        with pytest.raises(ArtifactError, match="is no artifact of graphldp; name the file that `ldp make it` writes"):
            read_meta(path, MAKE)
    assert read_table(path, MAKE).num_rows == 500  # its rows are nobody's secret


def test_an_artifact_that_was_not_asked_for_is_refused(tmp_path: Path) -> None:
    meta = plain({"kind": "reports", "epsilon": math.inf, "m": 3})
    expect(meta, tmp_path, MAKE)
    expect(meta, tmp_path, MAKE, kind="reports", epsilon=math.inf, m=3)
    with pytest.raises(ArtifactError) as error:
        expect(meta, tmp_path, MAKE, kind="reports", m=4, epsilon=1.0)
    assert str(error.value) == f"{tmp_path} has m 3 where 4 was asked for; make the right one with `{MAKE}`"
    with pytest.raises(ArtifactError, match=r"has epsilon 'inf' where 1\.0 was asked for"):
        expect(meta, tmp_path, MAKE, epsilon=1.0)
    with pytest.raises(ArtifactError, match="has dataset None where 'cora' was asked for"):
        expect(meta, tmp_path, MAKE, dataset="cora")


def test_a_hash_is_of_the_content(tmp_path: Path) -> None:
    for name, text in (("a", "x"), ("b", "x"), ("c", "y")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    a, b, c = (file_hash(tmp_path / name) for name in "abc")
    assert a == b != c
    assert a == "sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"


def real(path: Path, text: str) -> Callable[[], None]:
    """Return what writes real reports, of which nothing may stand there when they are whole."""

    def write() -> None:
        with ParquetSink(path, TABLE.schema, {"kind": "reports", "text": text, **REAL}, new=True) as sink:
            sink.write(TABLE)

    return write


REAL = {"random": {"reproducible": False}}


def test_real_reports_are_replaced_by_nothing(tmp_path: Path) -> None:
    path = tmp_path / "real.parquet"
    real(path, "first")()
    before = path.read_bytes()
    for write in (
        real(path, "second"),
        lambda: write_table(path, TABLE, {"kind": "runs"}),
        lambda: write_json(path, {}),
    ):
        with pytest.raises(
            ArtifactError, match="holds real reports, which nobody can draw again: name another --output"
        ):
            write()
    assert [file.name for file in tmp_path.iterdir()] == ["real.parquet"]
    assert path.read_bytes() == before


def test_of_two_collections_that_race_one_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "real.parquet"

    def slow() -> None:
        with ParquetSink(path, TABLE.schema, {"kind": "reports", "text": "slow", **REAL}, new=True) as sink:
            sink.write(TABLE)
            quick = multiprocessing.get_context("fork").Process(target=real(path, "quick"))
            quick.start()
            quick.join()

    with pytest.raises(ArtifactError, match="holds real reports"):
        slow()
    assert read_meta(path, MAKE)["text"] == "quick"
    assert [file.name for file in tmp_path.iterdir()] == ["real.parquet"]


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    gone = multiprocessing.get_context("fork").Process(target=int)
    gone.start()
    gone.join()
    with atomic(tmp_path / "file") as partial:
        partial.write_text("x", encoding="utf-8")
        name = partial.name
    left, alive = (tmp_path / name.replace(str(os.getpid()), str(pid)) for pid in (gone.pid, os.getppid()))
    other = tmp_path / f".file.elsewhere.{gone.pid}.partial"  # of another machine, which may be at work
    for file in (left, alive, other):
        file.write_text("half")
    write_text(tmp_path / "file", "whole")
    assert {file.name for file in tmp_path.iterdir()} == {"file", alive.name, other.name}


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), OSError("Error writing bytes. Detail: [errno 28] No")]
)
def test_a_full_disk_names_the_file(error: OSError, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"a\.json cannot be written: no space left on device; make room, or name"):
        stop_in_text(tmp_path / "a.json", error)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_a_folder_that_is_being_made_has_the_name_that_it_gets(tmp_path: Path) -> None:
    own = partial_name(tmp_path / "mine")
    with pytest.raises(ArtifactError, match=rf"^{tmp_path}/mine cannot be written: no space left on device"):
        stop_in_text(own / "a.json", OSError(errno.ENOSPC, "No space left on device"))


def test_a_file_system_for_reading_only_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(pq, "ParquetWriter", refused)
    monkeypatch.setattr(Path, "unlink", refused)
    with pytest.raises(ArtifactError, match=r"a\.parquet cannot be written: read-only file system"):
        ParquetSink(tmp_path / "a.parquet", TABLE.schema, {})
    gc.collect()  # an unraisable error would fail the test


def test_what_a_killed_process_left_of_a_graph_goes_with_the_next_one(tmp_path: Path) -> None:
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    folder = tmp_path / "mine"
    here = partial_name(folder).name.removesuffix(f".{os.getpid()}.partial")
    left, other = tmp_path / f"{here}.{gone.stdout.strip()}.partial", tmp_path / f"{here}.{os.getppid()}.partial"
    for one in (left, other):
        one.mkdir()
        (one / "edges.parquet").write_bytes(b"half")
    write_graph(small_graph("mine"), folder)
    assert not left.exists()
    assert other.exists()  # of a process that still runs
    assert sorted(path.name for path in folder.iterdir())[0] == "edges.parquet"
