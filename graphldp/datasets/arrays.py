"""Graphs that a loader of another library hands over as arrays: dense features, directed edge lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphldp.datasets.assemble import clamped, undirected
from graphldp.errors import DataError
from graphldp.graph import Graph

__all__ = ["from_arrays"]


def from_arrays(
    *,
    name: str,
    features: NDArray[Any],
    edges: NDArray[Any],
    labels: NDArray[Any],
    value_range: tuple[float, float],
    provenance: Mapping[str, Any],
    parts: NDArray[np.int8] | None = None,
) -> Graph:
    """Return the graph of dense features, a 2 x E edge list in any direction, and labels (-1 for none).

    Values are clamped to the declared range. NaN labels, as some loaders mark a missing one, become -1. Labels with two
    columns or more are yes/no labels, of which a node has a set. `parts` is the source's own split, if it has one.
    """
    low, high = value_range
    sets: NDArray[np.bool_] | None = None
    if labels.ndim == 2 and labels.shape[1] > 1:
        if not np.isin(labels, (0, 1)).all():
            raise DataError(f"{name}: several labels for a node are each 0 or 1")
        sets, labels = labels.astype(bool), np.full(len(labels), -1)
    flat = np.asarray(labels, dtype=np.float64).reshape(-1)
    if flat.size != features.shape[0]:
        raise DataError(f"{name}: {features.shape[0]} nodes need {features.shape[0]} labels, got {flat.size}")
    classes = np.where(np.isnan(flat), -1, flat).astype(np.int32)
    pairs, self_loops = undirected(edges, features.shape[0])
    return Graph(
        name=name,
        features=clamped(features, low, high),
        edges=pairs,
        self_loops=self_loops,
        labels=classes,
        classes=int(classes.max(initial=-1)) + 1,
        low=low,
        high=high,
        provenance=dict(provenance),
        label_sets=sets,
        parts=parts,
    )
