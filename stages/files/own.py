"""Read a person's own Parquet or CSV files into a Graph."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from graphldp.datasets.own import (
    Declared,
    OwnFeatures,
    Triples,
    Vocabulary,
    Wide,
    own_features,
    own_graph,
)
from graphldp.errors import DataError, OptionError
from graphldp.experiment.collection import UNDECLARED
from graphldp.graph import Graph
from graphldp.stages.files.artifacts import file_hash

__all__ = [
    "OwnFiles",
    "OwnLinks",
    "read_classes",
    "read_columns",
    "read_features",
    "read_labels",
    "read_links",
    "read_own",
    "read_pairs",
    "read_people",
    "read_vocabulary",
    "row_number_words",
]

_TRIPLES = ("node", "feature", "value")
_EDGES = ("source", "target")
_LABELS = ("node", "label")
# Columns that hold names, not numbers: '007' stays '007'. In a table of features every column but `node` is a number.
_NAMES = ("node", "source", "target", "label")
# What such columns are called elsewhere. A file without a header begins with somebody's values, so of names that are
# not ours only these are ever printed.
_USUAL = (
    *("id", "ids", "name", "nodes", "node_id", "user", "user_id", "person", "src", "dst", "from", "to", "u", "v"),
    *("class", "classes", "labels", "target", "y", "features", "values", "weight"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFiles:
    """Where a person's own graph lies.

    Attributes:
        features: `node` and one numeric column per feature, or one column of lists; or exactly `node`, `feature`,
            `value`. None where they are on people's devices alone.
        edges: `source`, `target`. None where links are on people's devices alone.
        labels: `node`, `label`, if there are any.
        features_file: the declared names of the features, in their order.
        nodes: `node`, without features.
        classes_file: the declared names of the classes, in their order.
    """

    features: Path | None
    edges: Path | None
    labels: Path | None = None
    features_file: Path | None = None
    nodes: Path | None = None
    classes_file: Path | None = None

    def roles(self) -> dict[str, Path]:
        """Return the files that there are, each by the option that names it."""
        every = {"features": self.features, "edges": self.edges, "labels": self.labels}
        every |= {"features-file": self.features_file, "nodes": self.nodes, "classes-file": self.classes_file}
        return {role: path for role, path in every.items() if path is not None}

    def given(self) -> tuple[Path, ...]:
        """Return the files that there are."""
        return tuple(self.roles().values())


def read_own(name: str, files: OwnFiles, *, low: float, high: float, dimensions: int | None = None) -> Graph:
    """Return the graph of the files; the first rule that they break is an error of one line with the file's name.

    `dimensions` declares how many features there are, where they are numbers.
    """
    vocabulary = read_vocabulary(files.features_file, dimensions)
    features = None if files.features is None else _features(files.features, _read(files.features, "features"))
    nodes = None if files.nodes is None else _exactly(files.nodes, _read(files.nodes, "nodes"), ("node",))
    edges = None if files.edges is None else _exactly(files.edges, _read(files.edges, "edges"), _EDGES)
    labels = None
    if files.labels is not None:
        labels = _exactly(files.labels, _read(files.labels, "labels"), _LABELS)
    roles = files.roles()
    provenance: dict[str, Any] = {"files": {role: _origin(path) for role, path in roles.items()}}
    if dimensions is not None:
        provenance["dimensions"] = dimensions
    try:
        return own_graph(
            name,
            features,
            None if edges is None else (edges["source"], edges["target"]),
            None if labels is None else (labels["node"], labels["label"]),
            declared=Declared(
                low=low,
                high=high,
                vocabulary=vocabulary,
                classes=None if files.classes_file is None else read_classes(files.classes_file),
            ),
            nodes=None if nodes is None else nodes["node"],
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


def row_number_words(name: str) -> str:
    """Return what is worth knowing of a column of features that numbers the rows."""
    return f"column {name!r} numbers the rows from 0 on, and counts as a feature; if it is none, leave it out"


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
    """Return the names of the columns; of a file whose first line may be no header only the usual ones."""
    every = table.column_names
    known = every if _has_header(every) else [name for name in every if name.lower() in (*_NAMES, *_USUAL)]
    named = [repr(name) for name in known[:most]]
    rest = len(every) - len(named)
    if not named:
        return f"{rest} other column{'s' * (rest > 1)}; is its first line a header?"
    return ", ".join(named) + (f" and {rest} more" if rest else "")


def _has_header(names: list[str]) -> bool:
    """Say whether the names of the columns are names, and not the first row of a file without a header."""
    return any(name in (*_NAMES, *_TRIPLES) for name in names)


def _read(path: Path, role: str) -> pa.Table:
    """Return the table of a .parquet or .csv file. What a file holds stands in no error: it is people's."""
    if path.is_dir():
        raise DataError(f"{path}: is a folder; give the {role} as one .parquet or .csv file")
    if not path.is_file():
        raise DataError(f"{path}: there is no such file; give the {role} as .parquet or .csv")
    if path.stat().st_size == 0:
        raise DataError(f"{path}: the file is empty; it needs a header and rows")
    readers: dict[str, Any] = {".parquet": pq.read_table, ".csv": _read_csv}
    if path.suffix.lower() not in readers:
        raise DataError(
            f"{path}: {role} are read from .parquet or .csv files, got {path.suffix or 'no suffix'!r}; save them as "
            ".csv, with a header and commas, or as .parquet"
        )
    try:
        table = readers[path.suffix.lower()](path)
    except (pa.ArrowException, OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: not a readable {path.suffix.lower()[1:]} file ({_reason(error)})") from None
    twice = {name for name in table.column_names if table.column_names.count(name) > 1}
    if twice:
        which = repr(sorted(twice)[0]) if _has_header(table.column_names) else "of one name"
        raise DataError(f"{path}: column {which} stands there twice; every column needs its own name")
    return table


def _reason(error: Exception) -> str:
    """Return why a file cannot be read, without the piece of it that the reader's own words may quote."""
    text = str(error)
    rows = re.search(r"Expected (\d+) columns, got (\d+)", text)
    if rows:
        return f"a row has {rows[2]} fields, and the header has {rows[1]}"
    if isinstance(error, UnicodeDecodeError) or "UTF8" in text.upper().replace("-", ""):
        return "it is not UTF-8; save it as UTF-8"
    return "it is damaged, cut off, or of another format"


def _read_csv(path: Path) -> pa.Table:
    with path.open(newline="", encoding="utf-8-sig") as handle:
        header = next(csv.reader(handle), [])
    other = [sign for sign in (";", "\t", "|") if len(header) == 1 and sign in header[0]]
    if other:
        name = "tabs" if other[0] == "\t" else repr(other[0])
        raise DataError(f"{path}: its columns are separated by {name}; separate them by commas, with points in numbers")
    names = _TRIPLES[:2] if set(header) == set(_TRIPLES) else _NAMES if len(header) <= 2 else _NAMES[:1]
    if header[:1] == ["feature"]:  # a table of scores, or the names of the features
        names = _TRIPLES[1:2]
    return pc.read_csv(path, convert_options=pc.ConvertOptions(column_types=dict.fromkeys(names, pa.string())))


def read_vocabulary(path: Path | None, dimensions: int | None = None) -> Vocabulary | None:
    """Return the declared features: the names in a file, or how many numbered ones; None where nothing is declared.

    The file has one name per line; as .csv or .parquet it has a column `feature`.
    """
    if dimensions is not None:
        if path is not None:
            raise OptionError("--features-file and --dimensions both say which features there are; give one of them")
        if dimensions < 1:
            raise OptionError(f"--dimensions must be a whole number of at least 1, got {dimensions}")
        return dimensions
    return None if path is None else _declared(path, "feature", "features")


def read_classes(path: Path) -> tuple[str, ...]:
    """Return the declared classes, in their order; written as `read_vocabulary` reads features, in a column `class`."""
    names = _declared(path, "class", "classes")
    if len(names) < 2:
        raise DataError(f"{path}: it names one class; a label is one of two or more")
    return names


def _declared(path: Path, column: str, role: str) -> tuple[str, ...]:
    """Return the names that a file declares, each once."""
    if path.suffix.lower() in (".csv", ".parquet"):
        table = read_columns(path, role, (column,))
        names = [None if name is None else str(name) for name in table[column].to_pylist()]
    else:
        names = list(_lines(path, role))
    place: dict[str, int] = {}
    for row, name in enumerate(names, start=1):
        if not name:
            raise DataError(f"{path}: row {row} is empty; every {column} needs a name")
        if name in place:
            raise DataError(f"{path}: the {role} {place[name]} and {row} have one name; every one needs its own")
        place[name] = row
    if not names:
        raise DataError(f"{path}: it names no {column}; name at least one")
    return tuple(place)


def _lines(path: Path, role: str) -> list[str]:
    if not path.is_file():
        raise DataError(f"{path}: there is no such file; give the {role}' names, one per line")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{path}: not a readable list of names (it is not UTF-8; save it as UTF-8)") from None
    return [line.strip() for line in text.rstrip().split("\n")] if text.strip() else []


def read_people(path: Path) -> tuple[str, ...]:
    """Return the names of everybody who takes part, in the order that is declared: a table with the column `node`."""
    names = ["" if name is None else str(name) for name in read_columns(path, "people", ("node",))["node"].to_pylist()]
    if "" in names:
        raise DataError(f"{path}: row {names.index('') + 1} names nobody; every row needs a name")
    if len(set(names)) < len(names):
        raise DataError(f"{path}: somebody stands there twice; name everybody once")
    if len(names) < 2:
        raise DataError(f"{path}: it names fewer than 2 people, between whom there is no link")
    return tuple(names)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OwnLinks:
    """The links of some people, as a device reads them: no row in the file is an error.

    Attributes:
        pairs: 2 x E, whose list a link is on and whom it names, as numbers among everybody who takes part.
        loops, strangers, others, twice: rows that were left out: of a person with herself, with somebody who does not
            take part, between people who do not report here, and of a link that stands there already, in either order.
    """

    pairs: NDArray[np.int64]
    loops: int
    strangers: int
    others: int
    twice: int

    def words(self) -> str:
        """Return what was read otherwise than it stands there; empty where nothing was."""
        left = (
            (self.loops, "of a person with herself"),
            (self.strangers, "with somebody who does not take part"),
            (self.others, "between people who do not report here"),
            (self.twice, "that stood there already, in either order"),
        )
        said = ", ".join(f"{count} {what}" for count, what in left if count)
        return f"links left out: {said}" if said else ""


def read_links(path: Path, people: tuple[str, ...], own: tuple[str, ...]) -> OwnLinks:
    """Return the links of the people `own` that a table of `source` and `target` names, each in either order, once."""
    table = _exactly(path, _read(path, "links"), _EDGES)
    number = {name: place for place, name in enumerate(people)}
    ends = [[number.get(str(name), -1) for name in table[column].to_pylist()] for column in _EDGES]
    pairs = np.array(ends, dtype=np.int64).reshape(2, -1)
    known = (pairs >= 0).all(axis=0)
    loop = known & (pairs[0] == pairs[1])
    ours = np.isin(pairs, [number[name] for name in own if name in number]).any(axis=0)
    kept = pairs[:, known & ~loop & ours]
    single = np.unique(np.sort(kept, axis=0), axis=1)
    twice = kept.shape[1] - single.shape[1]
    others = int((known & ~loop & ~ours).sum())
    return OwnLinks(pairs=single, loops=int(loop.sum()), strangers=int((~known).sum()), others=others, twice=twice)


def read_labels(path: Path, ids: tuple[str, ...], classes: tuple[str, ...]) -> NDArray[np.int32]:
    """Return each person's label as a number of the declared classes, -1 where she has none, or `UNDECLARED`."""
    table = _exactly(path, _read(path, "labels"), _LABELS)
    place = {name: at for at, name in enumerate(ids)}
    out = np.full(len(ids), -1, dtype=np.int32)
    rows = [(str(who), str(label)) for who, label in zip(*(table[name].to_pylist() for name in _LABELS), strict=True)
            if label is not None and str(label) and str(who) in place]  # fmt: skip
    if len({who for who, _ in rows}) < len(rows):
        raise DataError(f"{path}: somebody has two labels; every person needs at most one")
    number = {name: at for at, name in enumerate(classes)}
    out[[place[who] for who, _ in rows]] = [number.get(label, UNDECLARED) for _, label in rows]
    return out


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


def read_features(
    name: str,
    path: Path,
    *,
    low: float,
    high: float,
    vocabulary: Vocabulary | None = None,
    missing: float | None = None,
) -> OwnFeatures:
    """Return people's own features, as a device reads them: no value in the file is an error."""
    features = _features(path, _read(path, "features"))
    try:
        return own_features(name, features, low=low, high=high, vocabulary=vocabulary, missing=missing)
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
