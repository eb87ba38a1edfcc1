"""The format of MUSAE and FEATHER: edges as CSV, features as JSON (node -> feature ids), targets as CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphldp.datasets.assemble import (
    binary_rows,
    classes_of,
    member,
    permutation,
    quantile_classes,
    subgraph,
    undirected,
)
from graphldp.errors import DataError, OptionError
from graphldp.graph import Graph

__all__ = ["parse_musae"]

# Which column of the targets is the class; where it is none of these, `target`.
_TARGETS = {"facebook": "page_type", "github": "ml_target", "twitch-es": "mature", "twitch-engb": "mature"}
# The games of all of Twitch's graphs share one numbering, of which each graph uses a part.
_VOCABULARY = {"twitch-es": 3170, "twitch-engb": 3170}


def parse_musae(
    files: Mapping[str, bytes],
    *,
    name: str,
    dataset: str,
    provenance: Mapping[str, Any],
    quantiles: int = 0,
    largest_classes: int = 0,
) -> Graph:
    """Return the graph; node ids are those of the edges file.

    With `quantiles`, the target is a number and the classes are its quantiles. With `largest_classes`, only the nodes
    of that many largest classes stay (of equally large ones, the first), numbered anew.
    """
    target = _table(member(files, "target.csv"), "the targets")
    # Twitch's own user numbers stand in `id`; edges and features speak of `new_id`.
    ids = permutation(_integers(target, "new_id" if "new_id" in target else "id"), f"{dataset}: the targets' node ids")
    nodes = ids.size
    values = _column(target, _TARGETS.get(dataset, "target"))
    labels = np.empty(nodes, dtype=np.int32)
    if quantiles:
        labels[ids], classes = quantile_classes(np.array(values, dtype=np.float64), quantiles), quantiles
    else:
        labels[ids], classes = classes_of(_comparable(values))
    edges, self_loops = undirected(_edges(member(files, "edges.csv")), nodes)
    row, column = _features(member(files, ".json"))
    dimensions = max(_VOCABULARY.get(dataset, 0), int(column.max(initial=-1)) + 1)
    features = binary_rows(row, column, (nodes, dimensions))
    if largest_classes:
        if largest_classes > classes:
            raise OptionError(f"largest_classes must be at most {dataset}'s {classes} classes, got {largest_classes}")
        counts = np.bincount(labels, minlength=classes)
        chosen = np.sort(np.argsort(-counts, kind="stable")[:largest_classes])
        keep = np.isin(labels, chosen)
        edges, self_loops = subgraph(keep, edges, self_loops)
        features, labels = features[keep], np.searchsorted(chosen, labels[keep]).astype(np.int32)
        classes = largest_classes
    return Graph(
        name=name,
        features=features,
        edges=edges,
        self_loops=self_loops,
        labels=labels,
        classes=classes,
        low=0.0,
        high=1.0,
        provenance=dict(provenance),
    )


def _table(content: bytes, what: str) -> dict[str, list[str]]:
    rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        raise DataError(f"{what} are not a CSV table with one header and rows of the same length")
    return {heading: [row[place] for row in rows[1:]] for place, heading in enumerate(rows[0])}


def _column(table: Mapping[str, list[str]], heading: str) -> list[str]:
    if heading not in table:
        raise DataError(f"the targets have no column {heading!r}, only {', '.join(table)}")
    return table[heading]


def _integers(table: Mapping[str, list[str]], heading: str) -> NDArray[np.int64]:
    return np.array(_column(table, heading), dtype=np.int64)


def _comparable(values: list[str]) -> NDArray[Any]:
    """Return numbers where all values are numbers, so that class 10 comes after class 9; otherwise the text."""
    try:
        return np.array(values, dtype=np.int64)
    except ValueError:
        return np.array(values)


def _edges(content: bytes) -> NDArray[np.int64]:
    return np.loadtxt(io.BytesIO(content), delimiter=",", skiprows=1, dtype=np.int64, ndmin=2).reshape(-1, 2).T


def _features(content: bytes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    lists: dict[str, list[int]] = json.loads(content)
    counts = [len(ids) for ids in lists.values()]
    row = np.repeat(np.array([int(node) for node in lists], dtype=np.int64), counts)
    return row, np.fromiter((int(i) for ids in lists.values() for i in ids), np.int64, row.size)
