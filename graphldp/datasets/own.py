"""A person's own graph from columns of ids, values and labels; every broken rule is one line.

Names of nodes and of columns, and rows, are named in an error; values never, and no feature of a triple: that somebody
has it is a value, too.

On a device nothing that a record holds may stop its report, for its absence would tell. There `missing` is given, and
what the rules refuse elsewhere is mended in a way that the report's claim states.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from graphldp.datasets.assemble import classes_of, undirected
from graphldp.errors import DataError, OptionError
from graphldp.graph import WITHOUT_LABELS, WITHOUT_LINKS, Graph

__all__ = [
    "DECLARED",
    "OCCURRING",
    "ROW_NUMBERS",
    "WITHOUT",
    "Declared",
    "Mended",
    "OwnFeatures",
    "Triples",
    "Vocabulary",
    "Wide",
    "at_ends",
    "declared_classes",
    "own_features",
    "own_graph",
]

Column: TypeAlias = "pa.Array | pa.ChunkedArray | ArrayLike"
Vocabulary: TypeAlias = "Sequence[str] | int"  # the features' names in their order, or how many numbered ones
# Where the features' number and order come from, as a graph's provenance says it.
DECLARED, OCCURRING = "declared", "those that occur"
# What the provenance of a graph says whose features are on people's devices alone, and of which feature every value is
# its row's number.
WITHOUT, ROW_NUMBERS = "without_features", "row_numbers"

# Columns that are no feature unless the declared vocabulary names them: what classes and the row numbers of data
# frames are called.
_LABELS = re.compile("labels?|class|y|target", re.IGNORECASE)
_INDEXES = re.compile(r"|index|idx|level_0|Unnamed: 0(\.\d+)*|__index_level_0__", re.IGNORECASE)
_FRACTIONS = (
    "ids and labels are text or whole numbers, got fractions; write ids as text, and cut measurements into classes, "
    "such as low and high"
)
_COUNTED = 3  # rows from which on 0, 1, 2, ... is no chance


@dataclass(frozen=True, slots=True, kw_only=True)
class Wide:
    """Features as a table: one row per node; one numeric column per feature, or one column of lists of numbers."""

    node: Column
    columns: Mapping[str, Column]


@dataclass(frozen=True, slots=True, kw_only=True)
class Triples:
    """Features as triples: what is not listed is 0.

    A node without features is listed with a value of 0, or without feature and value.
    """

    node: Column
    feature: Column
    value: Column


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What is publicly declared of a graph, whatever its columns hold.

    Attributes:
        low: the lower bound of a feature value.
        high: the upper bound of a feature value.
        vocabulary: the features, in this order. Without one, those of triples are the ones that occur.
        classes: the classes, in this order; a label has to be one of them. Without labels these are people's own and
            never here.
    """

    low: float
    high: float
    vocabulary: Vocabulary | None = None
    classes: Sequence[str] | None = None


@dataclass(slots=True, kw_only=True)
class Mended:
    """How often a device read something else than what was there. It is for the device's own screen alone.

    Attributes:
        outside: values outside the range, which became its nearer end.
        missing: values that were not there, or no number, which became the declared one.
        unknown: triples, or numbers of a list, of features that the vocabulary does not have, which were left out.
        repeated: triples of a node and a feature that an earlier triple had, which were left out.
    """

    outside: int = 0
    missing: int = 0
    unknown: int = 0
    repeated: int = 0

    def words(self) -> str:
        """Return what happened in one sentence, empty if nothing did."""
        parts = (
            (self.outside, "outside the range, moved to its nearer end"),
            (self.missing, "missing, replaced"),
            (self.unknown, "of features outside the vocabulary, left out"),
            (self.repeated, "given again, left out"),
        )
        return "; ".join(f"{count:,} value{'s' * (count > 1)} {what}" for count, what in parts if count)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFeatures:
    """What columns say of people's features.

    Attributes:
        graph: the nodes and their features, without edges.
        declared: whether the features' number and order are the columns' or the vocabulary's. Otherwise they were read
            off people's data, and tell of them.
        row_numbers: columns, not declared by a vocabulary, that number the rows from 0 on.
        rules: what was done, whatever the values were, with those that break the declaration; empty if such values
            were refused.
        mended: how often that was.
    """

    graph: Graph
    declared: bool
    row_numbers: tuple[str, ...] = ()
    rules: str = ""
    mended: Mended = field(default_factory=Mended)


@dataclass(frozen=True, slots=True)
class _Bounds:
    """The declared public range of a feature value, and on a device what a missing one counts as."""

    low: float
    high: float
    missing: float | None = None
    mended: Mended = field(default_factory=Mended)

    @property
    def strict(self) -> bool:
        return self.missing is None

    def outside(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        return ~((values >= self.low) & (values <= self.high))

    def read(self, numbers: NDArray[np.float64], where: Any) -> NDArray[np.float64]:
        """Return values of the range: others are an error, or mended."""
        bad = self.outside(numbers)
        if not bad.any():
            return numbers
        if self.missing is None:
            _refuse(numbers, bad, self, where)
        gone = np.isnan(numbers)
        self.mended.missing += int(gone.sum())
        self.mended.outside += int((bad & ~gone).sum())
        return np.clip(np.where(gone, np.float64(self.missing), numbers), self.low, self.high)


@dataclass(frozen=True, slots=True)
class _Matrix:
    ids: list[str]
    names: tuple[str, ...] | None
    values: sp.csr_array
    declared: bool
    row_numbers: list[str] = field(default_factory=list)


def own_graph(
    name: str,
    features: Wide | Triples | None,
    edges: tuple[Column, Column] | None,
    labels: tuple[Column, Column] | None = None,
    *,
    declared: Declared,
    nodes: Column | None = None,
    provenance: Mapping[str, Any] | None = None,
) -> Graph:
    """Return the graph; ids may be text or whole numbers, and '7' is 7.

    Args:
        name: what to call it.
        features: a table or triples; they say which nodes there are. A table's keep their order, those of triples
            are ordered by their names: in whose order people come up in triples may tell which features they have.
            None where the features are people's own and never here: then the vocabulary has to be declared, and all
            of them are 0.
        edges: sources and targets. Repeated and reversed edges count once, self-loops are set apart. None where links
            are people's own and never here: then who takes part has to be declared, by features or nodes.
        labels: nodes and their classes; a node that is not listed, or whose class is missing, has none.
        declared: range, features and classes.
        nodes: without features, which nodes there are; those of edges and labels if left out.
        provenance: where the columns came from; what was read of edges and labels is added.

    Raises:
        DataError: the first rule that the columns break, with the row, node or column and the remedy.
    """
    bounds, vocabulary, classes = _bounds(declared.low, declared.high), declared.vocabulary, declared.classes
    if features is None:
        read = _no_features(vocabulary, nodes, [*(edges or ()), *([labels[0]] if labels else [])])
    elif nodes is not None:
        raise DataError("nodes: the features say which nodes there are; leave the list of nodes out")
    else:
        read = _matrix(features, bounds, vocabulary)
    known = pa.array(read.ids, type=pa.string())
    pairs, self_loops, facts = _links(edges, known)
    numbers, class_names, facts["minus_one"] = _classes(labels, known, classes)
    return Graph(
        name=name,
        features=read.values,
        edges=pairs,
        self_loops=self_loops,
        labels=numbers,
        classes=len(class_names),
        low=float(declared.low),
        high=float(declared.high),
        provenance={
            "dataset": "own",
            **(provenance or {}),
            "vocabulary": DECLARED if read.declared else OCCURRING,
            "class_names": class_names,
            "rows": facts,
            **({WITHOUT: True} if features is None else {}),
            **({WITHOUT_LINKS: True} if edges is None else {}),
            **({WITHOUT_LABELS: True} if labels is None and classes is not None else {}),
            **({ROW_NUMBERS: read.row_numbers} if read.row_numbers else {}),
        },
        node_ids=tuple(read.ids),
        feature_names=read.names,
    )


def own_features(
    name: str,
    features: Wide | Triples,
    *,
    low: float,
    high: float,
    vocabulary: Vocabulary | None = None,
    missing: float | None = None,
) -> OwnFeatures:
    """Return what a device has, or many of them: features without edges. No value in them is an error.

    Args:
        name: what to call it.
        features: as `own_graph` takes them.
        low: the declared public lower bound of a feature value; a value below it counts as it.
        high: the declared public upper bound; a value above it counts as it.
        vocabulary: the declared features, in this order; what a triple says of another one is left out.
        missing: what a missing value counts as; the middle of the range if left out.

    Raises:
        DataError: what is no matter of values: no ids, a column that is not there or holds text, a node in two rows.
        OptionError: the value for missing ones lies outside the range.
    """
    bounds = _bounds(low, high)
    missing = low / 2 + high / 2 if missing is None else missing
    if bounds.outside(np.array(missing)):
        raise OptionError(f"what a missing value counts as must lie in the range {low:g}..{high:g}, got {missing:g}")
    bounds = _Bounds(low, high, float(missing))
    read = _matrix(features, bounds, vocabulary)
    graph = Graph(
        name=name,
        features=read.values,
        edges=np.empty((2, 0), np.int32),
        labels=np.full(len(read.ids), -1, np.int32),
        classes=0,
        low=float(low),
        high=float(high),
        node_ids=tuple(read.ids),
        feature_names=read.names,
    )
    rules = f"values are clamped to [low, high] first; a missing one counts as {missing:g}"
    if isinstance(features, Triples):
        rules += "; what is said of a feature outside the vocabulary, or of one for a second time, is left out"
    elif any(_is_list(_array(column, "features")) for column in features.columns.values()):
        rules += "; a list that is too short lacks values, and what one has too much is left out"
    return OwnFeatures(
        graph=graph, declared=read.declared, row_numbers=tuple(read.row_numbers), rules=rules, mended=bounds.mended
    )


def at_ends(features: sp.csr_array, low: float, high: float) -> sp.csr_array:
    """Return the features with every stored value at the nearer end of the range; the middle is nearer to `low`."""
    out = features.copy()
    out.data = np.where(out.data > low / 2 + high / 2, float(high), float(low))  # in float32 an end may fall short
    return out


def _bounds(low: float, high: float) -> _Bounds:
    if not -np.inf < low < high < np.inf:
        raise DataError(f"the declared range needs finite low < high, got low {low} and high {high}")
    return _Bounds(low, high)


def _matrix(features: Wide | Triples, bounds: _Bounds, vocabulary: Vocabulary | None) -> _Matrix:
    if isinstance(features, Wide):
        return _wide(features, bounds, vocabulary)
    return _triples(features, bounds, vocabulary)


def _no_features(vocabulary: Vocabulary | None, nodes: Column | None, named: Sequence[Column]) -> _Matrix:
    """Return the nodes and the declared features, none of which is known of anybody."""
    if vocabulary is None:
        raise DataError(
            "features: without them, declare which there are, as on people's devices, with --features-file or "
            "--dimensions"
        )
    if nodes is None and not named:
        raise DataError("nodes: without edges, say who takes part, in the order that was declared, with --nodes")
    if nodes is None:
        ids = _ordered(pa.concat_arrays([_ids(column, "edges or labels: node") for column in named]))
    else:
        listed = _ids(nodes, "nodes: node")
        _refuse_duplicates(listed, "nodes: node {} stands there twice; name every node once")
        ids = listed.to_pylist()
    if not ids:
        raise DataError("nodes: no rows; a graph needs nodes")
    names = _named(vocabulary)
    return _Matrix(ids, _names(vocabulary, names), sp.csr_array((len(ids), len(names)), dtype=np.float32), True)


def _links(
    edges: tuple[Column, Column] | None, known: pa.Array
) -> tuple[NDArray[np.int32], NDArray[np.int32], dict[str, int]]:
    """Return every edge once, the nodes with a self-loop, and how many rows there were of each."""
    if edges is None:
        return np.empty((2, 0), np.int32), np.empty(0, np.int32), {"edges": 0, "self_loops": 0}
    ends = _edges(edges, known)
    pairs, self_loops = undirected(ends, len(known))
    if not pairs.size:
        raise DataError("edges: every edge joins a node with itself; a graph needs one between two nodes")
    loops = int((ends[0] == ends[1]).sum())
    return pairs, self_loops, {"edges": len(ends[0]) - loops, "self_loops": loops}


def _edges(edges: tuple[Column, Column], known: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the nodes' numbers at both ends of every edge."""
    source, target = _places(edges[0], known, "edges: source"), _places(edges[1], known, "edges: target")
    if source.size != target.size:
        raise DataError(f"edges: {source.size} sources and {target.size} targets; every edge needs both")
    if not source.size:
        raise DataError("edges: no rows; a graph needs at least one edge")
    return source, target


def _named(vocabulary: Vocabulary) -> list[str]:
    """Return the names of the declared features; numbered ones are called by their numbers."""
    return [str(place) for place in range(vocabulary)] if isinstance(vocabulary, int) else list(vocabulary)


def _names(vocabulary: Vocabulary | None, otherwise: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return the features' names as a graph has them: none where they are numbers."""
    if isinstance(vocabulary, int):
        return None
    chosen = otherwise if vocabulary is None else vocabulary
    return None if chosen is None else tuple(chosen)


def _wide(features: Wide, bounds: _Bounds, vocabulary: Vocabulary | None) -> _Matrix:
    ids = _ids(features.node, "features: node")
    if not len(ids):
        raise DataError("features: no rows; every node needs one")
    _refuse_duplicates(ids, "features: node {} stands in two rows; every node needs one row")
    if not features.columns:
        raise DataError("features: no feature columns beside `node`; add at least one numeric column")
    given = {name: _array(column, f"features: column {name!r}") for name, column in features.columns.items()}
    lists = [name for name, column in given.items() if _is_list(column)]
    if lists and len(given) > 1:
        raise DataError(
            f"features: column {lists[0]!r} holds lists and is not the only one beside `node`; give one column of "
            "lists, or one numeric column per feature"
        )
    for name, column in given.items():
        if len(column) != len(ids):
            raise DataError(f"features: column {name!r} has {len(column)} rows, the nodes have {len(ids)}")
    if lists:
        (column,) = given.values()
        declared = vocabulary is not None or pa.types.is_fixed_size_list(column.type)
        columns = _unfolded(lists[0], column, ids, bounds, None if vocabulary is None else len(_named(vocabulary)))
        names = _names(vocabulary, None)
    else:
        declared, columns = True, _chosen(given, vocabulary)
        names = _names(vocabulary, list(columns))
    rows, values, counts, row_numbers = [], [], [], []
    for name, column in columns.items():
        what = f"column {name!r}"
        numbers = column if isinstance(column, np.ndarray) else _numbers(column, f"features: {what}", bounds)
        if vocabulary is None and len(ids) >= _COUNTED and np.array_equal(numbers, np.arange(len(ids))):
            row_numbers.append(name)
        numbers = bounds.read(numbers, lambda row, what=what: f"row {row + 1} (node {ids[row].as_py()!r}), {what}")
        stored = np.flatnonzero(numbers)
        rows.append(stored.astype(np.int32))
        values.append(numbers[stored].astype(np.float32))
        counts.append(stored.size)
    starts = np.concatenate([[0], np.cumsum(counts)])
    shape = (len(ids), len(columns))
    matrix = sp.csc_array((np.concatenate(values), np.concatenate(rows), starts), shape=shape).tocsr()
    return _Matrix(ids.to_pylist(), names, _tidy(matrix), declared, row_numbers)


def _chosen(given: Mapping[str, pa.Array], vocabulary: Vocabulary | None) -> dict[str, pa.Array]:
    """Return the columns in the vocabulary's order; without one, those that are called like features."""
    if vocabulary is None:
        for names, what, remedy in (
            (_LABELS, "is called like the classes", "give it as --labels"),
            (_INDEXES, "is called like the row numbers of a data frame", "leave it out"),
        ):
            found = [name for name in given if names.fullmatch(name)]
            if found:
                raise DataError(
                    f"features: column {found[0]!r} {what} and would become a feature; {remedy}, or, if it is a "
                    "feature, declare the features with --features-file"
                )
        return dict(given)
    wanted = _named(vocabulary)
    known = set(wanted)
    for name in given:
        if name not in known:
            raise DataError(f"features: column {name!r} is not in the declared vocabulary; leave it out, or declare it")
    for name in wanted:
        if name not in given:
            raise DataError(f"features: column {name!r} of the declared vocabulary is not there; add it")
    return {name: given[name] for name in wanted}


def _is_list(column: pa.Array) -> bool:
    kind = column.type
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _unfolded(name: str, lists: pa.Array, ids: pa.Array, bounds: _Bounds, width: int | None) -> dict[str, Any]:
    """Return a column for each place of the lists; all lists have the declared width, or that of the first one."""
    lists = lists.cast(pa.large_list(lists.type.value_type))
    lengths = np.asarray(pc.list_value_length(lists).fill_null(0)).astype(np.int64)
    if width is None:
        width = int(lengths[0])
    if not width:
        raise DataError(f"features: column {name!r} has no numbers in its first row; every node needs as many")
    odd = lengths != width
    if bounds.strict and odd.any():
        row = int(odd.argmax())
        raise DataError(
            f"features: row {row + 1} (node {ids[row].as_py()!r}), column {name!r} has not {width} numbers "
            f"({int(odd.sum()):,} such row{'s' * int(odd.sum() > 1)}); every node needs as many"
        )
    owner = np.repeat(np.arange(len(ids)), lengths)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    kept = place < width
    bounds.mended.unknown += int((~kept).sum())
    values = np.full((width, len(ids)), np.nan)
    values[place[kept], owner[kept]] = _numbers(pc.list_flatten(lists), f"features: column {name!r}", bounds)[kept]
    return {f"{name}[{j}]": values[j] for j in range(width)}


def _triples(features: Triples, bounds: _Bounds, vocabulary: Vocabulary | None) -> _Matrix:
    if not bounds.low <= 0 <= bounds.high:
        raise DataError(
            f"features: triples leave zeros out, so the declared range must hold 0, got "
            f"{bounds.low:g}..{bounds.high:g}; widen the range or give the features as a table"
        )
    node = _ids(features.node, "features: node")
    feature = pc.fill_null(_strings(features.feature, "features: feature"), "")
    numbers = _numbers(features.value, "features: column 'value'", bounds)
    if not len(node):
        raise DataError("features: no rows; every node needs at least one triple (its value may be 0)")
    if not len(node) == len(feature) == numbers.size:
        raise DataError("features: node, feature and value need the same number of rows")

    def where(row: int) -> str:
        return f"row {row + 1} (node {node[row].as_py()!r})"

    ids = _ordered(node)
    named = _ordered(feature) if vocabulary is None else _named(vocabulary)
    if not named:
        raise DataError("features: no triple names a feature, and none is declared; declare them with --features-file")
    place = pc.index_in(feature, value_set=pa.array(named, type=pa.string()))
    known, none = np.asarray(pc.is_valid(place)), np.asarray(pc.equal(feature, ""))
    nameless = none & (np.nan_to_num(numbers) != 0)
    if bounds.strict and nameless.any():
        raise DataError(f"features: {where(int(nameless.argmax()))} has a value and no feature; name it")
    unknown = ~known & ~none
    if bounds.strict and unknown.any():
        count = int(unknown.sum())
        raise DataError(
            f"features: {where(int(unknown.argmax()))} names a feature that the declared vocabulary does not have "
            f"({count:,} such row{'s' * (count > 1)}); declare it, or leave the row out"
        )
    # What is said of unknown features is no value, whatever it is.
    rows = np.flatnonzero(known)
    bounds.mended.unknown += int((unknown | nameless).sum())
    numbers = bounds.read(numbers[rows], lambda row: where(int(rows[row])))
    owner = np.asarray(pc.index_in(node, value_set=pa.array(ids, type=pa.string()))).astype(np.int64)[rows]
    column = np.asarray(place.fill_null(0)).astype(np.int64)[rows]
    key = owner * len(named) + column
    by_key = np.argsort(key, kind="stable")
    again = np.concatenate([[False], np.diff(key[by_key]) == 0]) if len(key) else np.zeros(0, dtype=bool)
    if bounds.strict and again.any():
        at = int(rows[by_key[again][0]])
        raise DataError(f"features: {where(at)} has node and feature of an earlier row; give each triple once")
    bounds.mended.repeated += int(again.sum())
    stored = by_key[~again & (numbers[by_key] != 0)]
    index = (owner[stored].astype(np.int32), column[stored].astype(np.int32))
    matrix = sp.coo_array((numbers[stored].astype(np.float32), index), shape=(len(ids), len(named))).tocsr()
    return _Matrix(ids, _names(vocabulary, named), _tidy(matrix), vocabulary is not None)


def _ordered(names: pa.Array) -> list[str]:
    """Return the distinct names, numbers as numbers; an order that is not the file's, which may tell of people."""
    distinct = [name for name in pc.unique(names).to_pylist() if name]
    if not distinct:
        return []
    return [distinct[place] for place in np.argsort(classes_of(_comparable(distinct))[0])]


def _tidy(matrix: sp.csr_array) -> sp.csr_array:
    matrix.eliminate_zeros()  # float32 may have turned a tiny value into 0
    matrix.sort_indices()
    return matrix


def _classes(
    labels: tuple[Column, Column] | None, known: pa.Array, declared: Sequence[str] | None
) -> tuple[NDArray[np.int32], list[str], int]:
    """Return the class of each node, -1 for none; the names of the classes, numbers in their order; how many were -1.

    A label of -1 beside classes that are counted from 0 means that there is none, as in other libraries. Beside 1
    alone it is a class.
    """
    out = np.full(len(known), -1, dtype=np.int32)
    if labels is None:
        return out, list(declared or ()), 0
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
    if declared is not None:
        told = label.filter(pa.array(given)).to_pylist()
        out[places[given]] = declared_classes(told, declared)
        return out, list(declared), 0
    values = _comparable(label.filter(pa.array(given)).to_pylist())
    if _has_fractions(values):
        raise DataError(f"labels: label: {_FRACTIONS}")
    minus = _none(values)
    if minus.any():
        given[np.flatnonzero(given)[minus]] = False
        values = values[~minus]
    out[places[given]], _ = classes_of(values)
    return out, [str(value) for value in np.unique(values)], int(minus.sum())


def declared_classes(labels: Sequence[str], declared: Sequence[str]) -> NDArray[np.int32]:
    """Return each label's number among the declared classes; no message says what a label was."""
    number = {name: place for place, name in enumerate(declared)}
    strange = sum(label not in number for label in labels)
    if strange:
        raise DataError(
            f"labels: {strange} label{'s are' if strange > 1 else ' is'} none of the {len(declared)} declared classes; "
            "write it as it is declared, or leave the row out"
        )
    return np.array([number[label] for label in labels], dtype=np.int32)


def _none(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which labels are -1 and mean none."""
    if values.dtype.kind != "i" or values.min() != -1 or 0 not in values:
        return np.zeros(len(values), dtype=np.bool_)
    return np.asarray(values == -1)


def _has_fractions(values: NDArray[Any]) -> bool:
    """Say whether the texts are numbers, and not whole ones: measurements, not the names of classes."""
    try:
        numbers = values.astype(np.float64)
    except ValueError:
        return False
    return bool(np.isfinite(numbers).all() and (numbers != np.rint(numbers)).any())


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
    except (pa.ArrowException, TypeError):
        raise DataError(f"{what}: not one kind of value; give numbers alone, or text alone") from None
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
        except pa.ArrowInvalid:
            raise DataError(f"{what}: {_FRACTIONS}") from None
    try:
        return values.cast(pa.string())
    except (pa.ArrowException, NotImplementedError):
        raise DataError(f"{what}: ids and labels are text or whole numbers, got {values.type}") from None


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


def _numbers(column: Column, what: str, bounds: _Bounds) -> NDArray[np.float64]:
    """Return numbers, NaN where one is missing."""
    values = _array(column, what)
    kind = values.type
    if pa.types.is_null(kind):
        if bounds.strict:
            raise DataError(f"{what} is empty; give numbers")
        return np.full(len(values), np.nan)  # of one person all values of a column may be missing
    if not (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
    ):
        raise DataError(f"{what} is not numeric ({kind}); turn it into numbers or leave it out")
    if pa.types.is_boolean(kind):
        values = values.cast(pa.int8())
    return np.asarray(values.cast(pa.float64(), safe=False).fill_null(np.nan))


def _refuse(numbers: NDArray[np.float64], bad: NDArray[np.bool_], bounds: _Bounds, where: Any) -> None:
    row = int(bad.argmax())
    if np.isnan(numbers).any():
        row = int(np.isnan(numbers).argmax())
        raise DataError(f"features: {where(row)} is NaN or missing; fill it in or drop the row")
    raise DataError(
        f"features: {where(row)} lies outside the declared range {bounds.low:g}..{bounds.high:g} "
        f"({int(bad.sum()):,} such value{'s' if bad.sum() > 1 else ''} in the column); scale it, or declare the wider "
        "range that is publicly known"
    )
