"""Small steps that every parser takes: undirected edges, sparse rows, classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from graphldp.errors import DataError

__all__ = [
    "binary_rows",
    "clamped",
    "classes_of",
    "member",
    "permutation",
    "quantile_classes",
    "sorted_unique",
    "subgraph",
    "undirected",
]

Integers = NDArray[np.int32]


def undirected(links: Sequence[ArrayLike] | NDArray[Any], nodes: int) -> tuple[Integers, Integers]:
    """Return (edges, self_loops) of the pairs (links[0], links[1]): each edge once, sorted, smaller node first."""
    source, target = links
    u, v = np.asarray(source, dtype=np.int64), np.asarray(target, dtype=np.int64)
    if u.size and not (min(u.min(), v.min()) >= 0 and max(u.max(), v.max()) < nodes):
        raise DataError(f"an edge names a node outside 0..{nodes - 1}")
    loops = np.unique(u[u == v]).astype(np.int32)
    # One integer per edge sorts much faster than a pair, and nodes < 2^31 keeps it below 2^62.
    key = np.minimum(u, v) * nodes + np.maximum(u, v)
    key = sorted_unique(key[u != v])
    edges = np.empty((2, key.size), dtype=np.int32)
    if key.size:
        np.divmod(key, nodes, out=(edges[0], edges[1]), casting="unsafe")
    return edges, loops


def sorted_unique(key: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the distinct values, sorted. Sorts in place: `key` is spent."""
    key.sort()
    if key.size < 2:
        return key
    keep = np.empty(key.size, dtype=bool)
    keep[0] = True
    np.not_equal(key[1:], key[:-1], out=keep[1:])
    return key[keep]


def binary_rows(row: ArrayLike, column: ArrayLike, shape: tuple[int, int]) -> sp.csr_array:
    """Return the 0/1 matrix that has a one wherever (row, column) is listed, however often."""
    nodes, dimensions = shape
    rows, columns = np.asarray(row, dtype=np.int64), np.asarray(column, dtype=np.int64)
    if rows.size and not (rows.min() >= 0 and rows.max() < nodes):
        raise DataError(f"features name a node outside 0..{nodes - 1}")
    if columns.size and not (columns.min() >= 0 and columns.max() < dimensions):
        raise DataError(f"a feature id lies outside 0..{dimensions - 1}")
    key = sorted_unique(rows * dimensions + columns)
    if key.size >= 2**31:
        raise DataError(f"{key.size:,} feature values are more than an artifact holds (2^31 - 1); use fewer nodes")
    indices = np.empty(key.size, dtype=np.int32)
    if key.size:
        np.remainder(key, dimensions, out=indices, casting="unsafe")
    starts = np.searchsorted(key, np.arange(nodes + 1, dtype=np.int64) * dimensions).astype(np.int32)
    return sp.csr_array((np.ones(key.size, dtype=np.float32), indices, starts), shape=shape)


def clamped(values: Any, low: float, high: float) -> sp.csr_array:
    """Return dense or sparse values as CSR, clamped to the declared range, zeros left out.

    A zero that is not stored stays a zero, so the range has to hold it.
    """
    if not low <= 0 <= high:
        raise DataError(f"the declared range must hold 0, which sparse features do not store; got {low:g}..{high:g}")
    matrix = sp.csr_array(values, dtype=np.float32)
    matrix.sum_duplicates()
    if not np.isfinite(matrix.data).all():
        raise DataError("the features hold values that are not finite")
    np.clip(matrix.data, np.float32(low), np.float32(high), out=matrix.data)
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix


def classes_of(values: ArrayLike) -> tuple[Integers, int]:
    """Return (labels, classes): the distinct values in sorted order become 0, 1, 2, ..."""
    distinct, labels = np.unique(np.asarray(values), return_inverse=True)
    return labels.astype(np.int32), len(distinct)


def quantile_classes(values: ArrayLike, classes: int) -> Integers:
    """Return the quantile class 0..classes-1 of each value; a value on a border belongs to the lower class."""
    numbers = np.asarray(values, dtype=np.float64)
    borders = np.quantile(numbers, np.arange(1, classes) / classes)
    return np.searchsorted(borders, numbers, side="left").astype(np.int32)


def permutation(ids: ArrayLike, what: str) -> NDArray[np.int64]:
    """Return `ids` as integers after checking that they are 0..n-1 in some order."""
    numbers = np.asarray(ids, dtype=np.int64)
    if not np.array_equal(np.sort(numbers), np.arange(numbers.size)):
        raise DataError(f"{what} must be 0..{numbers.size - 1}, each once")
    return numbers


def member(files: Mapping[str, bytes], ending: str) -> bytes:
    """Return the content of the file whose name ends so."""
    found = [name for name in files if name.endswith(ending)]
    if len(found) != 1:
        raise DataError(f"expected one file ending in {ending!r} among {', '.join(sorted(files)) or 'no files'}")
    return files[found[0]]


def subgraph(keep: NDArray[np.bool_], edges: Integers, self_loops: Integers) -> tuple[Integers, Integers]:
    """Return the edges and self-loops among the kept nodes, which are numbered anew in their order."""
    number = np.cumsum(keep, dtype=np.int64).astype(np.int32) - np.int32(1)
    inside = keep[edges[0]] & keep[edges[1]]
    return number[edges[:, inside]], number[self_loops[keep[self_loops]]]
