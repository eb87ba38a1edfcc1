"""Cora as the PyPI package graphdatascience carries it: two Parquet files, nodes in another order."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from graphldp.datasets.assemble import clamped, undirected
from graphldp.datasets.wheels import CORA_NODES, CORA_RELATIONS
from graphldp.errors import DataError
from graphldp.graph import Graph

__all__ = ["parse_cora_wheel"]

# The subject that each of Planetoid's classes 0..6 is called by in the package.
_SUBJECTS = (4, 2, 5, 0, 3, 6, 1)


def parse_cora_wheel(files: Mapping[str, bytes], *, name: str, provenance: Mapping[str, Any]) -> Graph:
    """Return Cora in the package's own node order, with Planetoid's classes."""
    import pyarrow.parquet as pq

    table = pq.read_table(io.BytesIO(files[CORA_NODES]), columns=["nodeId", "subject", "features"])
    links = pq.read_table(io.BytesIO(files[CORA_RELATIONS]), columns=["sourceNodeId", "targetNodeId"])
    ids = table["nodeId"].to_numpy()
    nodes = ids.size
    features = table["features"].combine_chunks().flatten().to_numpy().reshape(nodes, -1)
    order = np.argsort(ids)
    ends = np.stack([links["sourceNodeId"].to_numpy(), links["targetNodeId"].to_numpy()])
    found = np.minimum(np.searchsorted(ids[order], ends), nodes - 1)
    if not np.array_equal(ids[order][found], ends):
        raise DataError(f"{CORA_RELATIONS}: a relation names a node that {CORA_NODES} does not list")
    edges, self_loops = undirected(order[found], nodes)
    labels = np.empty(len(_SUBJECTS), dtype=np.int32)
    labels[list(_SUBJECTS)] = np.arange(len(_SUBJECTS))
    return Graph(
        name=name,
        features=clamped(sp.csr_array(features), 0.0, 1.0),
        edges=edges,
        self_loops=self_loops,
        labels=labels[table["subject"].to_numpy()],
        classes=len(_SUBJECTS),
        low=0.0,
        high=1.0,
        provenance=dict(provenance),
    )
