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
) -> Graph:
    """Return the graph of dense features, a 2 x E edge list in any direction, and labels (-1 for none).

    Values are clamped to the declared range. NaN labels, as some loaders mark a missing one, become -1.
    """
    low, high = value_range
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
    )
