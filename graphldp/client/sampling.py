"""Which dimensions a device reports, and their values, in time and memory proportional to what is reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphldp.errors import DataError
from graphldp.randomness import UniformSource

__all__ = ["check_features", "choose", "gather", "is_sparse", "one_record", "present", "rows", "sorted_rows"]


def choose(nodes: int, dimensions: int, m: int, source: UniformSource) -> NDArray[np.int32]:
    """Return, for each node, a uniform set of m of the dimensions, increasing; it depends on no data.

    The distinct values of a stream of uniform draws are a uniform random order, so a row's repeats are redrawn until
    it has m distinct ones. Above half of the dimensions the complement is drawn instead.
    """
    if m > dimensions // 2:
        left_out = np.ones((nodes, dimensions), dtype=bool)
        if m < dimensions:
            drop = choose(nodes, dimensions, dimensions - m, source)
            np.put_along_axis(left_out, drop, False, axis=1)
        return np.nonzero(left_out)[1].astype(np.int32).reshape(nodes, m)
    chosen = np.sort(source.integers(0, dimensions, (nodes, m)).astype(np.int32), axis=1)
    pending = np.arange(nodes)
    while pending.size and m > 1:
        part = chosen[pending]
        repeat = np.zeros(part.shape, dtype=bool)
        repeat[:, 1:] = part[:, 1:] == part[:, :-1]
        again = repeat.any(axis=1)
        pending, part, repeat = pending[again], part[again], repeat[again]
        part[repeat] = source.integers(0, dimensions, int(repeat.sum())).astype(np.int32)
        chosen[pending] = np.sort(part, axis=1)
    return chosen


def is_sparse(features: Any) -> bool:
    """Say whether the features are a CSR matrix (scipy's, or anything with the same three arrays)."""
    return all(hasattr(features, part) for part in ("indptr", "indices", "data", "shape"))


@dataclass(frozen=True, slots=True, eq=False)
class _SortedRows:
    """A CSR matrix whose rows name their dimensions in increasing order, each at most once."""

    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: NDArray[Any]
    shape: tuple[int, int]


def sorted_rows(features: Any) -> Any:
    """Return a CSR matrix whose rows name their dimensions in increasing order, each at most once.

    A value that is stored in parts is their sum, as it is for scipy: what a report says about a person follows from
    her values, and never from how they are stored.
    """
    if isinstance(features, _SortedRows):
        return features
    nodes, dimensions = (int(size) for size in features.shape)
    columns = np.asarray(features.indices)
    if columns.size and not (columns.min() >= 0 and columns.max() < dimensions):
        raise DataError(f"the sparse features name a dimension outside 0..{dimensions - 1}; mend their indices")
    owners = np.repeat(np.arange(nodes, dtype=np.int64), np.diff(features.indptr))
    stored = owners * dimensions + columns
    if (np.diff(stored) > 0).all():
        return features
    place, part = np.unique(stored, return_inverse=True)
    values = np.zeros(place.size)
    # What sums to no number (infinity and its opposite) is NaN, and refused as such.
    with np.errstate(invalid="ignore"):
        np.add.at(values, part, np.asarray(features.data).astype(np.float64))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(place // dimensions, minlength=nodes))])
    return _SortedRows(offsets, (place % dimensions).astype(np.int32), values, (nodes, dimensions))


def check_features(features: Any, dimensions: int) -> Any:
    """Return the features as every mechanism reads them: a dense matrix, or the sparse one with `sorted_rows`.

    Anything but an n x d matrix of numbers without NaN is an error. The message tells how many nodes are affected and
    never a value.
    """
    if is_sparse(features):
        if getattr(features, "format", "csr") != "csr":
            raise DataError(f"sparse features must be CSR, got {features.format}; convert with .tocsr()")
        values = features.data
    else:
        values = features = np.asarray(features)
        if features.ndim != 2:
            raise DataError(f"features must be a matrix (nodes x dimensions), got {features.ndim} dimension(s)")
    if values.dtype.kind not in "fiub":
        raise DataError(f"features must be numbers, got the type {values.dtype}")
    if features.shape[1] != dimensions:
        raise DataError(f"features have {features.shape[1]} dimensions, the mechanism was made for {dimensions}")
    if is_sparse(features):
        features = sorted_rows(features)
        values = features.data
    if values.dtype.kind == "f" and np.isnan(values).any():
        wrong = np.isnan(values)
        if is_sparse(features):
            owners = np.searchsorted(features.indptr, np.flatnonzero(wrong), side="right")
            count = len(np.unique(owners))
        else:
            count = int(wrong.any(axis=1).sum())
        raise DataError(f"the features of {count} node(s) hold NaN; fill them in or leave these nodes out")
    return one_record(features) if features.shape[0] == 1 else features


def one_record(features: Any) -> NDArray[np.float64]:
    """Return one person's features as her device reads them, whatever form they have: the time of a call hides it.

    Sparse features take longer the more there are, and numbers below 2^-1022 longer than others; they count as 0.
    """
    record = rows(features, 0, 1)
    return np.where(np.abs(record) < np.finfo(np.float64).tiny, 0.0, record)


def gather(features: Any, index: NDArray[np.int32], members: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
    """Return the values at the chosen dimensions of each node, or of some nodes, never making a sparse matrix dense."""
    if members is None:
        members = np.arange(features.shape[0], dtype=np.int64)
    if not is_sparse(features):
        return np.asarray(features)[members[:, None], index].astype(np.float64)
    features = sorted_rows(features)
    nodes, dimensions = features.shape
    stored = np.repeat(np.arange(nodes, dtype=np.int64), np.diff(features.indptr)) * dimensions + features.indices
    wanted = members[:, None] * dimensions + index
    if not stored.size:
        return np.zeros(index.shape)
    place = np.minimum(np.searchsorted(stored, wanted), stored.size - 1)
    return np.where(stored[place] == wanted, np.asarray(features.data)[place], 0).astype(np.float64)


def rows(features: Any, start: int, stop: int) -> NDArray[np.float64]:
    """Return a block of rows, as `check_features` returns them, as a dense array."""
    if not is_sparse(features):
        return np.asarray(features)[start:stop].astype(np.float64)
    first, last = int(features.indptr[start]), int(features.indptr[stop])
    block = np.zeros((stop - start, features.shape[1]))
    owners = np.repeat(np.arange(stop - start), np.diff(features.indptr[start : stop + 1]))
    block[owners, features.indices[first:last]] = features.data[first:last]
    return block


def present(features: Any) -> NDArray[np.int32] | None:
    """Return, of sparse features, the dimensions in which each node has a value, as many as the fullest node has.

    A node with fewer is filled up with dimensions in which it truly has 0, so that the rows have one length. None
    stands for all dimensions, where the features are dense or full.
    """
    if not is_sparse(features):
        return None
    nodes, dimensions = features.shape
    width = int(np.diff(features.indptr).max(initial=0))
    if 2 * width > dimensions:
        return None
    index = np.empty((nodes, width), dtype=np.int32)
    for node in range(nodes):
        own = features.indices[features.indptr[node] : features.indptr[node + 1]]
        spare = np.setdiff1d(np.arange(min(dimensions, width + len(own))), own)[: width - len(own)]
        index[node] = np.sort(np.concatenate([own, spare]))
    return index
