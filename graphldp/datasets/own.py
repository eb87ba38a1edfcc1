"""A person's own graph from columns of ids, values and labels; every broken rule is one line.

Names, features and rows are named in an error, values never: they are people's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from graphldp.datasets.assemble import classes_of, undirected
from graphldp.errors import DataError
from graphldp.graph import Graph

__all__ = ["Triples", "Wide", "own_graph"]

Column: TypeAlias = "pa.Array | pa.ChunkedArray | ArrayLike"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wide:
    """Features as a table: one row per node, one numeric column per feature."""

    node: Column
    columns: Mapping[str, Column]


@dataclass(frozen=True, slots=True, kw_only=True)
class Triples:
    """Features as triples: what is not listed is 0. A node without features is listed with a value of 0."""

    node: Column
    feature: Column
    value: Column


@dataclass(frozen=True, slots=True)
class _Range:
    """The declared public range of a feature value."""

    low: float
    high: float

    def outside(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        return ~((values >= self.low) & (values <= self.high))


def own_graph(
    name: str,
    features: Wide | Triples,
    edges: tuple[Column, Column] | None,
    labels: tuple[Column, Column] | None = None,
    *,
    low: float,
    high: float,
    provenance: Mapping[str, Any] | None = None,
) -> Graph:
    """Return the graph; ids may be text or whole numbers, and '7' is 7.

    Args:
        name: what to call it.
        features: a table or triples; they say which nodes there are, in their order.
        edges: sources and targets. Repeated and reversed edges count once, self-loops are set apart. None where only
            the features are there, as on a device.
        labels: nodes and their classes; a node that is not listed, or whose class is missing, has none.
        low: the declared public lower bound of a feature value.
        high: the declared public upper bound of a feature value.
        provenance: where the columns came from.

    Raises:
        DataError: the first rule that the columns break, with the row, node or feature and the remedy.
    """
    if not -np.inf < low < high < np.inf:
        raise DataError(f"the declared range needs finite low < high, got low {low} and high {high}")
    bounds = _Range(low, high)
    ids, names, matrix = _wide(features, bounds) if isinstance(features, Wide) else _triples(features, bounds)
    known = pa.array(ids, type=pa.string())
    pairs, self_loops = undirected(_edges(edges, known), len(ids))
    classes, class_names = _classes(labels, known)
    origin = {"dataset": "own", **(provenance or {}), "class_names": class_names}
    return Graph(
        name=name,
        features=matrix,
        edges=pairs,
        self_loops=self_loops,
        labels=classes,
        classes=len(class_names),
        low=float(low),
        high=float(high),
        provenance=origin,
        node_ids=tuple(ids),
        feature_names=names,
    )


def _edges(edges: tuple[Column, Column] | None, known: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the nodes' numbers at both ends of every edge."""
    if edges is None:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    source, target = _places(edges[0], known, "edges: source"), _places(edges[1], known, "edges: target")
    if source.size != target.size:
        raise DataError(f"edges: {source.size} sources and {target.size} targets; every edge needs both")
    if not source.size:
        raise DataError("edges: no rows; a graph needs at least one edge")
    return source, target


def _wide(features: Wide, bounds: _Range) -> tuple[list[str], tuple[str, ...], sp.csr_array]:
    ids = _ids(features.node, "features: node")
    if not len(ids):
        raise DataError("features: no rows; every node needs one")
    _refuse_duplicates(ids, "features: node {} stands in two rows; every node needs one row")
    if not features.columns:
        raise DataError("features: no feature columns beside `node`; add at least one numeric column")
    rows, values, counts = [], [], []
    for name, column in features.columns.items():
        numbers = _numbers(column, f"features: column {name!r}")
        if numbers.size != len(ids):
            raise DataError(f"features: column {name!r} has {numbers.size} rows, the nodes have {len(ids)}")
        _check(numbers, bounds, lambda row, name=name: f"row {row + 1} (node {ids[row].as_py()!r}), column {name!r}")
        stored = np.flatnonzero(numbers)
        rows.append(stored.astype(np.int32))
        values.append(numbers[stored].astype(np.float32))
        counts.append(stored.size)
    starts = np.concatenate([[0], np.cumsum(counts)])
    shape = (len(ids), len(features.columns))
    matrix = sp.csc_array((np.concatenate(values), np.concatenate(rows), starts), shape=shape).tocsr()
    return ids.to_pylist(), tuple(features.columns), _tidy(matrix)


def _triples(features: Triples, bounds: _Range) -> tuple[list[str], tuple[str, ...], sp.csr_array]:
    if not bounds.low <= 0 <= bounds.high:
        raise DataError(
            f"features: triples leave zeros out, so the declared range must hold 0, got "
            f"{bounds.low:g}..{bounds.high:g}; widen the range or give the features as a table"
        )
    node, feature = _ids(features.node, "features: node"), _ids(features.feature, "features: feature")
    numbers = _numbers(features.value, "features: column 'value'")
    if not len(node):
        raise DataError("features: no rows; every node needs at least one triple (its value may be 0)")
    if not len(node) == len(feature) == numbers.size:
        raise DataError("features: node, feature and value need the same number of rows")
    _check(numbers, bounds, lambda row: f"row {row + 1} (node {node[row].as_py()!r}, {feature[row].as_py()!r})")
    nodes, words = pc.dictionary_encode(node), pc.dictionary_encode(feature)
    ids = nodes.dictionary.to_pylist()
    names = words.dictionary.to_pylist()
    # The nodes keep the order of the file; the features are sorted, numbers as numbers.
    order = np.argsort(classes_of(_comparable(names))[0])
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    row, column = nodes.indices.to_numpy().astype(np.int64), place[words.indices.to_numpy()]
    key = row * len(names) + column
    by_key = np.argsort(key, kind="stable")
    twice = np.flatnonzero(np.diff(key[by_key]) == 0)
    if twice.size:
        at = int(by_key[twice[0] + 1])
        raise DataError(f"features: node {node[at].as_py()!r} has {feature[at].as_py()!r} twice; give each triple once")
    stored = by_key[numbers[by_key] != 0]
    index = (row[stored].astype(np.int32), column[stored].astype(np.int32))
    matrix = sp.coo_array((numbers[stored].astype(np.float32), index), shape=(len(ids), len(names))).tocsr()
    return ids, tuple(names[i] for i in order), _tidy(matrix)


def _tidy(matrix: sp.csr_array) -> sp.csr_array:
    matrix.eliminate_zeros()  # float32 may have turned a tiny value into 0
    matrix.sort_indices()
    return matrix


def _classes(labels: tuple[Column, Column] | None, known: pa.Array) -> tuple[NDArray[np.int32], list[str]]:
    """Return the class of each node, -1 for none, and the names of the classes, numbers in their order."""
    out = np.full(len(known), -1, dtype=np.int32)
    if labels is None:
        return out, []
    node = _ids(labels[0], "labels: node")
    label = _array(labels[1], "labels: label")
    if len(node) != len(label):
        raise DataError(f"labels: {len(node)} nodes and {len(label)} labels; every row needs a node")
    _refuse_duplicates(node, "labels: node {} has two labels; every node needs at most one")
    places = _places(node, known, "labels: node")
    label = _strings(label, "labels: label")
    given = np.asarray(pc.and_kleene(pc.is_valid(label), pc.not_equal(label, "")).fill_null(False))
    if not given.any():
        raise DataError("labels: no rows with a label; leave the labels out if there are none")
    values = _comparable(label.filter(pa.array(given)).to_pylist())
    out[places[given]], _ = classes_of(values)
    return out, [str(value) for value in np.unique(values)]


def _comparable(values: Sequence[str]) -> NDArray[Any]:
    """Return numbers where all are whole numbers, so that 10 comes after 9; otherwise text."""
    try:
        numbers = np.array([int(value) for value in values], dtype=np.int64)
    except (ValueError, OverflowError):
        return np.array(values, dtype=np.str_)
    # '07' and '7' would become one.
    distinct = len(np.unique(numbers)) == len(set(values))
    return numbers if distinct else np.array(values, dtype=np.str_)


def _array(column: Column, what: str) -> pa.Array:
    try:
        values = column if isinstance(column, pa.Array | pa.ChunkedArray) else pa.array(column)
    except (pa.ArrowException, TypeError) as error:
        raise DataError(f"{what}: not one kind of value ({' '.join(str(error).split())})") from error
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _strings(column: Column, what: str) -> pa.Array:
    values = _array(column, what)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_floating(values.type):
        # What once was whole numbers becomes floats where one is missing.
        values = pc.if_else(pc.is_nan(values), None, values)
        try:
            values = values.cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise DataError(f"{what}: ids and labels are text or whole numbers, got fractions") from error
    try:
        return values.cast(pa.string())
    except (pa.ArrowException, NotImplementedError) as error:
        raise DataError(f"{what}: ids and labels are text or whole numbers, got {values.type}") from error


def _ids(column: Column, what: str) -> pa.Array:
    values = _strings(column, what)
    missing = np.asarray(pc.or_kleene(pc.is_null(values), pc.equal(values, "")).fill_null(True))
    if missing.any():
        raise DataError(f"{what}: row {int(missing.argmax()) + 1} is empty; every row needs an id")
    return values


def _places(column: Column, known: pa.Array, what: str) -> NDArray[np.int64]:
    """Return the number of each id's node; an id that no row of the features has is an error."""
    ids = _ids(column, what)
    found = pc.index_in(ids, value_set=known)
    if found.null_count:
        row = int(np.asarray(pc.is_null(found)).argmax())
        raise DataError(
            f"{what} {ids[row].as_py()!r} in row {row + 1} is not a node of the features "
            f"({found.null_count:,} such row{'s' if found.null_count > 1 else ''}); add the node or drop the row"
        )
    return np.asarray(found).astype(np.int64)


def _refuse_duplicates(ids: pa.Array, message: str) -> None:
    encoded = pc.dictionary_encode(ids)
    counts = np.bincount(np.asarray(encoded.indices), minlength=len(encoded.dictionary))
    if (counts > 1).any():
        raise DataError(message.format(repr(encoded.dictionary[int(counts.argmax())].as_py())))


def _numbers(column: Column, what: str) -> NDArray[np.float64]:
    values = _array(column, what)
    kind = values.type
    if pa.types.is_null(kind):
        raise DataError(f"{what} is empty; give numbers")
    if not (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
    ):
        raise DataError(f"{what} is not numeric ({kind}); turn it into numbers or leave it out")
    if pa.types.is_boolean(kind):
        values = values.cast(pa.int8())
    return np.asarray(values.cast(pa.float64()).fill_null(np.nan))


def _check(numbers: NDArray[np.float64], bounds: _Range, where: Any) -> None:
    bad = bounds.outside(numbers)
    if not bad.any():
        return
    row = int(bad.argmax())
    if np.isnan(numbers).any():
        row = int(np.isnan(numbers).argmax())
        raise DataError(f"features: {where(row)} is NaN or missing; fill it in or drop the row")
    raise DataError(
        f"features: {where(row)} lies outside the declared range {bounds.low:g}..{bounds.high:g} "
        f"({int(bad.sum()):,} such value{'s' if bad.sum() > 1 else ''} in the column); scale it, or declare the wider "
        "range that is publicly known"
    )
