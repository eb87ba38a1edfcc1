"""The Graph artifact: a folder with three Parquet files and graph.json, which holds their hashes.

    features.parquet   one row per node: `index` list<int32>, `value` list<float32>
    edges.parquet      `source`, `target`: each undirected edge once, source < target, sorted; no self-loops
    labels.parquet     one row per node: `label` int32 (null: none), `self_loop` bool, `node` string where the source
                       has its own names of the nodes, `label_set` list<int32> where a node has a set of labels, and
                       `part` int8 (0 train, 1 validation, 2 test) where the source has a split of its own
    graph.json         name, n, d, counts, classes, the public value range, provenance, the files' sha256

The same graph gives the same bytes, wherever its files came from.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray

from graphldp.datasets.own import WITHOUT
from graphldp.datasets.registry import names
from graphldp.errors import ArtifactError, DataError, unknown_name
from graphldp.graph import Graph
from graphldp.stages.files.artifacts import file_hash, read_table, require, write_json, write_table
from graphldp.stages.files.leftovers import bring_back, own_name, partial_name, remove
from graphldp.stages.files.paths import sources_path, stored_graphs

__all__ = ["FILES", "GraphMeta", "graph_hash", "read_graph", "read_graph_meta", "write_graph"]

FORMAT = 1
FILES = ("features.parquet", "edges.parquet", "labels.parquet")
_META = "graph.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphMeta:
    """What graph.json says: `n` nodes, `d` features, `values` of them not 0; labels of a set only where there are."""

    name: str
    n: int
    d: int
    edges: int
    self_loops: int
    values: int
    classes: int
    low: float
    high: float
    provenance: dict[str, Any]
    files: dict[str, str]
    feature_names: list[str] | None = None
    label_set: int | None = None


_SCALARS: dict[Any, Any] = {"str": str, "int": int, "float": (int, float)}  # by annotation; all others are objects


def write_graph(graph: Graph, directory: Path) -> None:
    """Write the artifact; the folder appears under its name only when it is whole, in place of one that was there."""
    tables = {
        "features.parquet": _features_table(graph),
        "edges.parquet": pa.table({"source": graph.edges[0], "target": graph.edges[1]}),
        "labels.parquet": _labels_table(graph),
    }
    with _atomic_directory(directory) as partial:
        for name, table in tables.items():
            kind = f"graph-{name.removesuffix('.parquet')}"
            write_table(partial / name, table, {"kind": kind, "name": graph.name, "n": graph.nodes})
        meta = GraphMeta(
            name=graph.name,
            n=graph.nodes,
            d=graph.dimensions,
            edges=int(graph.edges.shape[1]),
            self_loops=int(graph.self_loops.size),
            values=int(graph.features.nnz),
            classes=graph.classes,
            low=graph.low,
            high=graph.high,
            provenance=dict(graph.provenance),
            feature_names=None if graph.feature_names is None else list(graph.feature_names),
            label_set=None if graph.label_sets is None else int(graph.label_sets.shape[1]),
            files={name: file_hash(partial / name) for name in FILES},
        )
        facts = {key: value for key, value in asdict(meta).items() if key != "label_set" or value is not None}
        write_json(partial / _META, {"format": FORMAT, "kind": "graph", **facts})


def read_graph(directory: Path | str, *, features: bool = True) -> Graph:
    """Read the artifact; a missing, damaged or edited file is an error of one line that says how to make it again.

    `features` says whether people's true features are needed: a graph without them is refused then.
    """
    directory = Path(directory)
    meta = read_graph_meta(directory)
    if features and meta.provenance.get(WITHOUT):
        raise ArtifactError(
            f"the graph {directory.name} was imported without features, which are on people's devices: merge their "
            "reports with `ldp merge`, then `ldp denoise` and `ldp train`"
        )
    make = _make(directory)
    for name in FILES:
        if file_hash(require(directory / name, make)) != meta.files.get(name):
            raise ArtifactError(
                f"{directory / name} does not have the hash that {_META} says, so it was damaged or edited; "
                f"make it again with `{make} --force`"
            )
    held = read_table(directory / "features.parquet", make)
    edges = read_table(directory / "edges.parquet", make)
    labels = read_table(directory / "labels.parquet", make)
    nodes, dimensions = meta.n, meta.d
    if not held.num_rows == labels.num_rows == nodes:
        raise ArtifactError(f"{directory} has files of another graph; make it again with `{make} --force`")
    try:
        return Graph(
            name=meta.name,
            features=_csr(held, (nodes, dimensions)),
            edges=np.stack([edges["source"].to_numpy(), edges["target"].to_numpy()]),
            self_loops=np.flatnonzero(labels["self_loop"].to_numpy()).astype(np.int32),
            labels=labels["label"].fill_null(-1).to_numpy().copy(),
            classes=meta.classes,
            low=float(meta.low),
            high=float(meta.high),
            provenance=meta.provenance,
            node_ids=tuple(labels["node"].to_pylist()) if "node" in labels.column_names else None,
            feature_names=None if meta.feature_names is None else tuple(meta.feature_names),
            label_sets=_sets(labels, meta.label_set or 0) if "label_set" in labels.column_names else None,
            parts=labels["part"].to_numpy() if "part" in labels.column_names else None,
        )
    except (DataError, KeyError) as error:
        raise ArtifactError(
            f"{directory} is not a sound graph ({error}); make it again with `{make} --force`"
        ) from error


def read_graph_meta(directory: Path) -> GraphMeta:
    """Return what graph.json says, without reading the tables."""
    make = _make(directory)
    if not directory.exists():
        _check_name(directory)
    path = require(directory / _META, make)
    try:
        facts = json.loads(path.read_bytes())
    except ValueError as error:
        raise ArtifactError(f"{path} is damaged ({error}); make it again with `{make} --force`") from error
    if not isinstance(facts, dict) or facts.pop("kind", None) != "graph":
        raise ArtifactError(f"{path} does not describe a graph; make it again with `{make} --force`")
    if (written := facts.pop("format", None)) != FORMAT:
        raise ArtifactError(
            f"{path} has format {written}, this version reads {FORMAT}; make it again with `{make} --force`"
        )
    known = fields(GraphMeta)
    needed = {one.name: _SCALARS.get(one.type, dict) for one in known if one.default is MISSING}
    wrong = [name for name, kind in needed.items() if not isinstance(facts.get(name), kind)]
    if wrong:
        raise ArtifactError(f"{path} has no valid {', '.join(wrong)}; make it again with `{make} --force`")
    return GraphMeta(**{one.name: facts[one.name] for one in known if one.name in facts})


def graph_hash(directory: Path) -> str:
    """Return the hash of the whole artifact: graph.json holds the hashes of the other files."""
    out: str = file_hash(require(directory / _META, _make(directory)))
    return out


def _make(directory: Path) -> str:
    return f"ldp download {directory.name}"


def _check_name(directory: Path) -> None:
    """Refuse the name of a graph that is not there and that no `ldp download` would make."""
    data, name = directory.parent.parent, directory.name
    if name not in names() and not sources_path(data, name).exists():
        raise unknown_name("graph", name, {*names(), *stored_graphs(data)})


def _features_table(graph: Graph) -> pa.Table:
    matrix = graph.features
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if matrix.nnz >= 2**31:
        raise DataError(f"{graph.name}: {matrix.nnz:,} feature values are more than an artifact holds (2^31 - 1)")
    starts = pa.array(matrix.indptr.astype(np.int32, copy=False))
    return pa.table(
        {
            "index": pa.ListArray.from_arrays(starts, pa.array(matrix.indices.astype(np.int32, copy=False))),
            "value": pa.ListArray.from_arrays(starts, pa.array(matrix.data.astype(np.float32, copy=False))),
        }
    )


def _labels_table(graph: Graph) -> pa.Table:
    loops = np.zeros(graph.nodes, dtype=bool)
    loops[graph.self_loops] = True
    columns: dict[str, pa.Array] = {
        "label": pa.array(graph.labels.astype(np.int32, copy=False), mask=graph.labels < 0),
        "self_loop": pa.array(loops),
    }
    if graph.node_ids is not None:
        columns["node"] = pa.array(graph.node_ids, type=pa.string())
    if graph.label_sets is not None:
        rows, chosen = np.nonzero(graph.label_sets)
        starts = np.searchsorted(rows, np.arange(graph.nodes + 1)).astype(np.int32)
        columns["label_set"] = pa.ListArray.from_arrays(pa.array(starts), pa.array(chosen.astype(np.int32)))
    if graph.parts is not None:
        columns["part"] = pa.array(graph.parts.astype(np.int8))
    return pa.table(columns)


def _sets(table: pa.Table, labels: int) -> NDArray[np.bool_]:
    """Return which of so many labels each node has."""
    column = table["label_set"].combine_chunks()
    chosen, starts = column.flatten().to_numpy(), column.offsets.to_numpy()
    if chosen.size and not (chosen.min() >= 0 and chosen.max() < labels):
        raise DataError(f"labels.parquet names a label outside 0..{labels - 1}")
    out = np.zeros((table.num_rows, labels), dtype=bool)
    out[np.repeat(np.arange(table.num_rows), np.diff(starts)), chosen] = True
    return out


def _csr(table: pa.Table, shape: tuple[int, int]) -> sp.csr_array:
    index = table["index"].combine_chunks()
    values = table["value"].combine_chunks().flatten().to_numpy()
    indices = index.flatten().to_numpy()
    starts = index.offsets.to_numpy()
    if indices.size != values.size or (indices.size and not (indices.min() >= 0 and indices.max() < shape[1])):
        raise DataError("features.parquet holds indices that do not fit its values or d")
    matrix = sp.csr_array((values, indices, starts - starts[0]), shape=shape)
    # Arrow lends its memory for reading only; whoever gets the graph may sort or scale a copy, so hand out our own.
    return matrix.copy()


@contextlib.contextmanager
def _atomic_directory(directory: Path) -> Iterator[Path]:
    """Yield an empty folder beside `directory`; it takes the name on success and goes away on failure or Ctrl-C."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    bring_back(directory.parent)
    partial = partial_name(directory)
    remove(partial)
    partial.mkdir()
    old = own_name(directory, "old")
    try:
        yield partial
        if directory.exists():
            directory.replace(old)
        try:
            partial.replace(directory)
        except BaseException:
            if old.exists():
                old.replace(directory)
            raise
    finally:
        remove(partial)
        remove(old)
