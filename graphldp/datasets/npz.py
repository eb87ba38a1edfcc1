"""The graphs of gnn-benchmark: one .npz with the CSR parts of adjacency and attributes, and the labels."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphldp.datasets.assemble import clamped, undirected
from graphldp.errors import DataError
from graphldp.graph import Graph

__all__ = ["parse_npz"]

_PARTS = ("data", "indices", "indptr", "shape")


def parse_npz(files: Mapping[str, bytes], *, name: str, provenance: Mapping[str, Any]) -> Graph:
    """Return the graph: undirected, and an attribute counts as present or absent, as everybody uses these graphs."""
    (file, content), *rest = files.items()
    if rest:
        raise DataError(f"{name}: expected one .npz file, got {', '.join(files)}")
    try:
        # allow_pickle=False: the object arrays with names inside are never opened.
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            adjacency, features = _matrix(archive, "adj"), _matrix(archive, "attr")
            labels = np.asarray(archive["labels"]).astype(np.int32)
    except (KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
        raise DataError(f"{file}: not a graph of gnn-benchmark ({error})") from error
    links = adjacency.tocoo()
    kept = links.data != 0
    edges, self_loops = undirected((links.coords[0][kept], links.coords[1][kept]), adjacency.shape[0])
    features.data = (features.data > 0).astype(np.float32)
    return Graph(
        name=name,
        features=clamped(features, 0.0, 1.0),
        edges=edges,
        self_loops=self_loops,
        labels=labels,
        classes=int(labels.max(initial=-1)) + 1,
        low=0.0,
        high=1.0,
        provenance=dict(provenance),
    )


def _matrix(archive: Mapping[str, NDArray[Any]], prefix: str) -> sp.csr_array:
    data, indices, indptr, shape = (archive[f"{prefix}_{part}"] for part in _PARTS)
    return sp.csr_array((data, indices, indptr), shape=tuple(int(size) for size in shape))
