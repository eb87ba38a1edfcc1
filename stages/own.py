"""Read a person's own Parquet or CSV files into a Graph."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from graphldp.datasets.own import Triples, Wide, own_graph
from graphldp.errors import DataError
from graphldp.graph import Graph
from graphldp.stages.artifacts import file_hash

__all__ = ["OwnFiles", "read_columns", "read_features", "read_own", "read_pairs"]

_TRIPLES = ("node", "feature", "value")
_EDGES = ("source", "target")
_LABELS = ("node", "label")
# Columns that hold names, not numbers: '007' stays '007'. In a table of features every column but `node` is a number.
_NAMES = ("node", "source", "target", "label")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFiles:
    """Where a person's own graph lies.

    Attributes:
        features: `node` and one numeric column per feature; or exactly `node`, `feature`, `value`.
        edges: `source`, `target`.
        labels: `node`, `label`, if there are any.
    """

    features: Path
    edges: Path
    labels: Path | None = None

    def given(self) -> tuple[Path, ...]:
        """Return the files that there are."""
        return (self.features, self.edges, *([self.labels] if self.labels is not None else []))


def read_own(name: str, files: OwnFiles, *, low: float, high: float) -> Graph:
    """Return the graph of the files; the first rule that they break is an error of one line with the file's name."""
    features = _read(files.features, "features")
    edges = _exactly(files.edges, _read(files.edges, "edges"), _EDGES)
    labels = None
    if files.labels is not None:
        labels = _exactly(files.labels, _read(files.labels, "labels"), _LABELS)
    roles = {"features": files.features, "edges": files.edges, "labels": files.labels}
    provenance = {"files": {role: _origin(path) for role, path in roles.items() if path is not None}}
    try:
        return own_graph(
            name,
            _features(files.features, features),
            (edges["source"], edges["target"]),
            None if labels is None else (labels["node"], labels["label"]),
            low=low,
            high=high,
            provenance=provenance,
        )
    except DataError as error:
        role = str(error).partition(":")[0]
        path = roles.get(role)
        raise DataError(f"{path}: {error}" if path is not None else str(error)) from error


def read_columns(path: Path, role: str, needed: tuple[str, ...], optional: tuple[str, ...] = ()) -> pa.Table:
    """Return a small table of a person's own: the needed columns, and those of the optional ones that are there."""
    table = _read(path, role)
    return _exactly(path, table, (*needed, *(name for name in optional if name in table.column_names)))


def _origin(path: Path) -> dict[str, str]:
    return {"name": path.name, "sha256": file_hash(path).removeprefix("sha256:")}


def _features(path: Path, table: pa.Table) -> Wide | Triples:
    if set(table.column_names) == set(_TRIPLES):
        return Triples(node=table["node"], feature=table["feature"], value=table["value"])
    if "node" not in table.column_names:
        raise DataError(
            f"{path}: missing column 'node' (it has {_listed(table)}); name the column with the nodes' ids `node`"
        )
    return Wide(node=table["node"], columns={name: table[name] for name in table.column_names if name != "node"})


def _exactly(path: Path, table: pa.Table, columns: tuple[str, ...]) -> pa.Table:
    wanted = " and ".join(columns)
    for name in columns:
        if name not in table.column_names:
            raise DataError(f"{path}: missing column {name!r} (it has {_listed(table)}); it needs {wanted}")
    for name in table.column_names:
        if name not in columns:
            raise DataError(f"{path}: unknown column {name!r}; it needs {wanted} and nothing else")
    return table


def _listed(table: pa.Table, most: int = 6) -> str:
    names = [repr(name) for name in table.column_names]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _read(path: Path, role: str) -> pa.Table:
    """Return the table of a .parquet or .csv file."""
    if not path.is_file():
        raise DataError(f"{path}: there is no such file; give the {role} as .parquet or .csv")
    if path.stat().st_size == 0:
        raise DataError(f"{path}: the file is empty; it needs a header and rows")
    readers: dict[str, Any] = {".parquet": pq.read_table, ".csv": _read_csv}
    if path.suffix.lower() not in readers:
        raise DataError(f"{path}: {role} are read from .parquet or .csv files, got {path.suffix or 'no suffix'!r}")
    try:
        table = readers[path.suffix.lower()](path)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{path}: not a readable {path.suffix.lower()[1:]} file ({reason})") from error
    twice = {name for name in table.column_names if table.column_names.count(name) > 1}
    if twice:
        raise DataError(f"{path}: column {sorted(twice)[0]!r} stands there twice; every column needs its own name")
    return table


def _read_csv(path: Path) -> pa.Table:
    with path.open(newline="", encoding="utf-8-sig") as handle:
        header = next(csv.reader(handle), [])
    names = _TRIPLES[:2] if set(header) == set(_TRIPLES) else _NAMES if len(header) == 2 else _NAMES[:1]
    if header[:1] == ["feature"]:  # a table of scores
        names = _TRIPLES[1:2]
    return pc.read_csv(path, convert_options=pc.ConvertOptions(column_types=dict.fromkeys(names, pa.string())))


def read_pairs(path: Path, graph: Graph) -> NDArray[np.int64]:
    """Return the pairs of nodes (2 x K) that a file names in `source` and `target`, as the graph names its nodes."""
    table = _exactly(path, _read(path, "pairs"), _EDGES)
    names = [str(node) for node in (range(graph.nodes) if graph.node_ids is None else graph.node_ids)]
    place = {name: index for index, name in enumerate(names)}
    out = np.empty((2, table.num_rows), dtype=np.int64)
    for row, column in enumerate(_EDGES):
        for at, name in enumerate(str(value) for value in table[column].to_pylist()):
            if name not in place:
                raise DataError(f"{path}: row {at + 1} names the {column} {name!r}, which is no node of {graph.name}")
            out[row, at] = place[name]
    same = np.flatnonzero(out[0] == out[1])
    if same.size:
        raise DataError(f"{path}: row {same[0] + 1} pairs a node with itself")
    return out


def read_features(name: str, path: Path, *, low: float, high: float) -> Graph:
    """Return a person's own features as a graph without edges: what a device has, in the order of the file's nodes."""
    features = _read(path, "features")
    try:
        return own_graph(
            name,
            _features(path, features),
            None,
            None,
            low=low,
            high=high,
            provenance={"files": {"features": _origin(path)}},
        )
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
