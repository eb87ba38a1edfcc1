"""What an artifact says of itself: its metadata, its columns and its size, without reading its rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from graphldp.errors import ArtifactError
from graphldp.stages.files.artifacts import read_meta
from graphldp.stages.files.leftovers import bring_back
from graphldp.stages.pages.wording import counted

__all__ = ["Description", "describe"]

_MAKERS = "ldp download, perturb, merge, select, denoise, train or search"
_GRAPH = "graph.json"
_MODEL = "model.json"  # beside its weights
_LONGEST_HEADER = 1 << 20  # bytes of JSON that the header of a model of ours can have at most


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """An artifact without its content.

    Attributes:
        path: the file, or the folder of a graph or a model.
        kind: 'graph', 'model', or what the file's metadata says it is.
        size: bytes on disk.
        rows: rows of a table, None for what is no table.
        columns: column (or file, or tensor) and its type or shape.
        meta: the JSON metadata.
    """

    path: Path
    kind: str
    size: int
    rows: int | None
    columns: Mapping[str, str] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON-able values."""
        return {
            "path": str(self.path),
            "kind": self.kind,
            "bytes": self.size,
            "rows": self.rows,
            "columns": dict(self.columns),
            "meta": dict(self.meta),
        }


def describe(path: Path) -> Description:
    """Describe a Parquet artifact, the folder of a graph, or a saved model; refuse anything else."""
    if not path.exists():
        bring_back(path.parent)
    if not path.exists():
        raise ArtifactError(f"{path} does not exist; artifacts are made with `{_MAKERS}`")
    folder = path if path.is_dir() else path.parent
    if path.is_dir() or path.name in (_GRAPH, _MODEL):
        if path.name == _MODEL or (path.is_dir() and (folder / _MODEL).is_file()):
            return _model(folder)
        return _graph(folder)
    if path.suffix == ".safetensors":
        return _model(folder)
    if path.suffix != ".parquet":
        raise ArtifactError(
            f"{path} is not an artifact: expected a .parquet file, or a folder with {_GRAPH} or {_MODEL}"
        )
    return _table(path)


def _table(path: Path) -> Description:
    meta = read_meta(path, _MAKERS)
    with pq.ParquetFile(path) as file:
        columns = {item.name: str(item.type) for item in file.schema_arrow}
        rows = file.metadata.num_rows
    kind = str(meta.get("kind", "table"))
    return Description(path=path, kind=kind, size=path.stat().st_size, rows=rows, columns=columns, meta=meta)


def _graph(folder: Path) -> Description:
    about = folder / _GRAPH
    if not about.is_file():
        raise ArtifactError(f"{folder} holds neither {_GRAPH} nor {_MODEL}, so it is not an artifact; see `ldp --help`")
    meta = _json(about.read_bytes(), about)
    files = sorted(item for item in folder.iterdir() if item.is_file() and not item.name.startswith("."))
    columns = {item.name: counted(_rows(item), "row") for item in files if item.suffix == ".parquet"}
    size = sum(item.stat().st_size for item in files)
    return Description(path=folder, kind="graph", size=size, rows=None, columns=columns, meta=meta)


def _rows(path: Path) -> int:
    try:
        return int(pq.read_metadata(path).num_rows)
    except (pa.ArrowException, OSError) as error:
        raise ArtifactError(f"{path} is damaged; make the graph again with `ldp download`") from error


def _model(folder: Path) -> Description:
    """Describe a kept model: its recipe, and the tensors that the headers of its weights list."""
    about = folder / _MODEL
    if not about.is_file():
        raise ArtifactError(f"{folder} holds weights and no {_MODEL}: it is no model; see `ldp train --save-model`")
    meta = _json(about.read_bytes(), about)
    weights = sorted(folder.glob("*.safetensors"))
    if not weights:
        raise ArtifactError(f"{folder} holds no weights: it is no model; see `ldp train --save-model`")
    columns = {name: kind for path in weights for name, kind in _tensors(path)}
    size = about.stat().st_size + sum(path.stat().st_size for path in weights)
    return Description(path=folder, kind="model", size=size, rows=None, columns=columns, meta=meta)


def _tensors(path: Path) -> list[tuple[str, str]]:
    """Read the header of a safetensors file: its length in 8 bytes, then JSON."""
    with path.open("rb") as handle:
        length = int.from_bytes(handle.read(8), "little")
        raw = handle.read(length) if length <= _LONGEST_HEADER else b""
    header = _json(raw, path)
    header.pop("__metadata__", None)
    return [(name, f"{tensor['dtype']} {tensor['shape']}") for name, tensor in sorted(header.items())]


def _json(raw: bytes, path: Path) -> dict[str, Any]:
    try:
        value = json.loads(raw)
    except ValueError as error:
        raise ArtifactError(f"{path} is damaged: its description is no JSON; make it again with `{_MAKERS}`") from error
    if not isinstance(value, dict):
        raise ArtifactError(f"{path} is not an artifact: its description is no JSON object")
    return value
