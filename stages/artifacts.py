"""Files that are whole or not there: atomic writes, and Parquet with JSON metadata.

Nothing here knows a mechanism or a model; the stages say what their artifacts hold.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from graphldp.errors import ArtifactError
from graphldp.jsonable import plain

__all__ = [
    "METADATA_KEY",
    "ParquetSink",
    "atomic",
    "expect",
    "file_hash",
    "open_table",
    "read_meta",
    "read_table",
    "require",
    "with_meta",
    "write_json",
    "write_table",
    "write_text",
]

METADATA_KEY = b"graphldp"
_COMPRESSION = "zstd"


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yield a temporary name beside `path`; rename it to `path` on success, remove it on any failure or Ctrl-C."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with atomic(path) as partial:
        partial.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write JSON atomically, keys sorted, so that the same value gives the same bytes."""
    write_text(path, json.dumps(plain(value), indent=2, sort_keys=True, ensure_ascii=False) + "\n")


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

    def __init__(self, path: Path, schema: pa.Schema, meta: Mapping[str, Any], *, noise: bool = False) -> None:
        """Open the file. `noise` says that the values are random numbers, which no encoding makes smaller."""
        self._schema = with_meta(schema, meta)
        self._stack = contextlib.ExitStack()
        partial = self._stack.enter_context(atomic(path))
        self._writer = self._stack.enter_context(
            pq.ParquetWriter(
                partial,
                self._schema,
                compression="none" if noise else _COMPRESSION,
                use_dictionary=not noise,
                store_schema=True,
            )
        )

    def __enter__(self) -> ParquetSink:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def write(self, table: pa.Table) -> None:
        """Append a table as one row group."""
        same = table if table.schema == self._schema else table.cast(self._schema)
        self._writer.write_table(same, row_group_size=max(1, same.num_rows))


def write_table(path: Path, table: pa.Table, meta: Mapping[str, Any]) -> None:
    """Write one table with its metadata, atomically."""
    with ParquetSink(path, table.schema, meta) as sink:
        sink.write(table)


def open_table(path: Path, make: str) -> pq.ParquetFile:
    """Open a Parquet file without reading its rows; `make` is the command that produces it."""
    require(path, make)
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise ArtifactError(
            f"{path} is not a readable Parquet file ({reason}); delete it and make it again with `{make}`"
        ) from error


def read_meta(path: Path, make: str) -> dict[str, Any]:
    """Return the JSON metadata of a Parquet artifact without reading its rows."""
    with open_table(path, make) as file:
        raw = (file.schema_arrow.metadata or {}).get(METADATA_KEY)
    if raw is None:
        raise ArtifactError(f"{path} carries no graphldp metadata, so it is not an artifact; make it with `{make}`")
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
        raise ArtifactError(f"{path} is damaged ({reason}); delete it and make it again with `{make}`") from error
