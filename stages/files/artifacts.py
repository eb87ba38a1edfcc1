"""Files that are whole or not there: atomic writes, and Parquet with JSON metadata.

Nothing here knows a mechanism or a model; the stages say what their artifacts hold.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from graphldp.errors import ArtifactError
from graphldp.jsonable import plain
from graphldp.stages.files.leftovers import named, partial_name

__all__ = [
    "METADATA_KEY",
    "ParquetSink",
    "Room",
    "atomic",
    "expect",
    "file_hash",
    "is_collected",
    "is_real",
    "json_text",
    "keep_real",
    "open_table",
    "read_meta",
    "read_table",
    "require",
    "table_bytes",
    "with_meta",
    "writable",
    "write_json",
    "write_table",
    "write_text",
]

METADATA_KEY = b"graphldp"
_CANNOT_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.EFBIG)
_COMPRESSION = "zstd"
_ZEROS = 2**20  # bytes written at once


@contextlib.contextmanager
def atomic(path: Path, *, new: bool = False) -> Iterator[Path]:
    """Yield a temporary name beside `path`; rename it to `path` on success, remove it on any failure or Ctrl-C.

    Real reports that stand under `path` are never replaced: nobody can draw them again. With `new` nothing is, not even
    what another process has put there meanwhile.
    """
    with writable(str(path)), _whole(path, new) as partial:
        yield partial


@contextlib.contextmanager
def writable(what: str) -> Iterator[None]:
    """Say in one line what cannot be written, and why; it is called by the name that it was to have in the end."""
    try:
        yield
    except OSError as error:
        reason = _reason(error)
        if reason is None:
            raise
        raise ArtifactError(f"{named(what)} cannot be written: {reason}; make room, or name another place") from error


class Room:
    """Room on a disk, taken before long work begins: what the work finds fits there, however full the disk is by then.

    It is a file of zeros under a temporary name in the folder in which the file is to stand. One file is written into
    it, in place, and gets its name; as no new block is asked for, no other process can take the room away meanwhile.
    (A file system that writes every change to new blocks, such as Btrfs or ZFS, may still refuse.)
    """

    def __init__(self, path: Path, size: int) -> None:
        """Take `size` bytes beside `path`; where there is no such room, say so now."""
        self._left: Path | None = partial_name(path.with_name(f"{path.name}.room"))
        with writable(f"{path.parent} has no room for {size / 2**20:.0f} MB, which keep what is computed: it"):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                with self._left.open("wb") as handle:
                    for start in range(0, size, _ZEROS):
                        handle.write(bytes(min(_ZEROS, size - start)))
            except OSError:
                self.leave()
                raise

    def write(self, path: Path, content: bytes) -> None:
        """Write a file of this folder, whole or not at all; into the room, if nothing was written there yet."""
        left, self._left = self._left, None
        if left is None:
            with atomic(path) as partial:
                partial.write_bytes(content)
            return
        with writable(str(path)):
            try:
                keep_real(path)
                with left.open("r+b") as handle:
                    handle.write(content)
                    handle.truncate()
                left.replace(path)
            finally:
                with contextlib.suppress(OSError):
                    left.unlink(missing_ok=True)

    def leave(self) -> None:
        """Give the room back, if nothing was written into it."""
        left, self._left = self._left, None
        if left is not None:
            with contextlib.suppress(OSError):
                left.unlink(missing_ok=True)


@contextlib.contextmanager
def _whole(path: Path, new: bool) -> Iterator[Path]:
    path.parent.mkdir(parents=True, exist_ok=True)
    keep_real(path)
    partial = partial_name(path)
    try:
        yield partial
        if new:
            _place(partial, path)
        else:
            keep_real(path)
            partial.replace(path)
    finally:
        with contextlib.suppress(OSError):  # where nothing can be removed, nothing was written
            partial.unlink(missing_ok=True)


def _place(partial: Path, path: Path) -> None:
    """Give a file its name, which nothing else has."""
    try:
        os.link(partial, path)
    except FileExistsError:
        keep_real(path)
        raise ArtifactError(f"{path} is there already, and is not replaced: name another --output") from None
    except OSError:  # a file system without links
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
        partial.replace(path)


def is_real(meta: Mapping[str, Any]) -> bool:
    """Return whether metadata is of real reports, or of what was made from them: nobody can draw these again."""
    random = meta.get("random")
    return isinstance(random, Mapping) and not random.get("reproducible", True)


def is_collected(meta: Mapping[str, Any]) -> bool:
    """Return whether metadata is of what people have really sent, and not of what was made of it."""
    return meta.get("kind") in ("reports", "answers") and is_real(meta)


def keep_real(path: Path) -> None:
    """Refuse to replace real reports."""
    if not path.is_file():
        return
    try:
        raw = (pq.read_schema(path).metadata or {}).get(METADATA_KEY, b"{}")
        meta = json.loads(raw)
    except (pa.ArrowException, OSError, ValueError):
        return
    if is_collected(meta):
        raise ArtifactError(f"{path} holds real reports, which nobody can draw again: name another --output")


def _reason(error: OSError) -> str | None:
    """Return why nothing can be written, in the system's words; None of another failure. Arrow names it in its text."""
    told = re.search(r"errno (\d+)", str(error), flags=re.IGNORECASE)
    number = error.errno or (int(told[1]) if told else None)
    return os.strerror(number).lower() if number in _CANNOT_WRITE else None


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with atomic(path) as partial:
        partial.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write JSON atomically, keys sorted, so that the same value gives the same bytes."""
    write_text(path, json_text(value))


def json_text(value: Any) -> str:
    """Return what stands in a JSON file."""
    return json.dumps(plain(value), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def file_hash(path: Path) -> str:
    """Return 'sha256:...' of a file's content."""
    with path.open("rb") as handle:
        return "sha256:" + hashlib.file_digest(handle, "sha256").hexdigest()


def require(path: Path, make: str) -> Path:
    """Return `path` if it is there; otherwise say which command makes it."""
    if not path.exists():
        raise ArtifactError(f"{path} does not exist; make it with `{make}`")
    return path


def with_meta(schema: pa.Schema, meta: Mapping[str, Any]) -> pa.Schema:
    """Return the schema with `meta` as its JSON metadata."""
    text = json.dumps(plain(meta), sort_keys=True, allow_nan=False)
    return schema.with_metadata({METADATA_KEY: text.encode()})


class ParquetSink:
    """Write a Parquet file one batch at a time; it appears under its name only when it is whole."""

    def __init__(
        self, path: Path, schema: pa.Schema, meta: Mapping[str, Any], *, noise: bool = False, new: bool = False
    ) -> None:
        """Open the file. `noise`: random numbers, which no encoding makes smaller; `new`: as `atomic` takes it."""
        self._schema = with_meta(schema, meta)
        with contextlib.ExitStack() as stack:
            partial = stack.enter_context(atomic(path, new=new))
            self._writer = stack.enter_context(_writer(partial, self._schema, noise=noise))
            self._stack = stack.pop_all()

    def __enter__(self) -> ParquetSink:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def write(self, table: pa.Table) -> None:
        """Append a table as one row group."""
        same = table if table.schema == self._schema else table.cast(self._schema)
        self._writer.write_table(same, row_group_size=max(1, same.num_rows))


def _writer(where: Path | io.BytesIO, schema: pa.Schema, *, noise: bool = False) -> pq.ParquetWriter:
    return pq.ParquetWriter(
        where, schema, compression="none" if noise else _COMPRESSION, use_dictionary=not noise, store_schema=True
    )


def write_table(path: Path, table: pa.Table, meta: Mapping[str, Any]) -> None:
    """Write one table with its metadata, atomically."""
    with ParquetSink(path, table.schema, meta) as sink:
        sink.write(table)


def table_bytes(table: pa.Table, meta: Mapping[str, Any]) -> bytes:
    """Return what `write_table` writes, of a table that is small."""
    out, schema = io.BytesIO(), with_meta(table.schema, meta)
    with _writer(out, schema) as writer:
        writer.write_table(table.cast(schema), row_group_size=max(1, table.num_rows))
    return out.getvalue()


def open_table(path: Path, make: str) -> pq.ParquetFile:
    """Open a Parquet file without reading its rows; `make` is the command that produces it."""
    require(path, make)
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        what = "is a folder, not a file" if path.is_dir() else "is not a readable Parquet file"
        raise ArtifactError(f"{path} {what}; name the file that `{make}` writes, or make it again") from error


def read_meta(path: Path, make: str) -> dict[str, Any]:
    """Return the JSON metadata of a Parquet artifact without reading its rows."""
    with open_table(path, make) as file:
        raw = (file.schema_arrow.metadata or {}).get(METADATA_KEY)
    if raw is None:
        raise ArtifactError(f"{path} is no artifact of graphldp; name the file that `{make}` writes")
    meta: dict[str, Any] = json.loads(raw)
    return meta


def expect(meta: Mapping[str, Any], path: Path, make: str, **wanted: Any) -> None:
    """Refuse an artifact whose metadata is not what was asked for: the first difference is the error."""
    for key, value in plain(wanted).items():
        found = meta.get(key)
        if found != value:
            raise ArtifactError(
                f"{path} has {key} {found!r} where {value!r} was asked for; make the right one with `{make}`"
            )


def read_table(path: Path, make: str, **options: Any) -> pa.Table:
    """Read a Parquet file; a damaged one is an error of one line that says how to make it again.

    `make` is the command that produces the file. `options` go to `pyarrow.parquet.read_table`.
    """
    open_table(path, make).close()
    try:
        return pq.read_table(path, **options)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise ArtifactError(f"{path} is damaged ({reason}); make it again with `{make}`") from error
