"""Cora, CiteSeer and PubMed as Planetoid stores them: pickled blocks of rows, the test rows shuffled apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphldp.datasets.assemble import clamped, member, undirected
from graphldp.datasets.pickles import load_adjacency, load_array, load_sparse
from graphldp.errors import DataError
from graphldp.graph import Graph

__all__ = ["parse_planetoid"]


def parse_planetoid(
    files: Mapping[str, bytes], *, name: str, dataset: str, low: float, high: float, provenance: Mapping[str, Any]
) -> Graph:
    """Return the graph in Planetoid's own node order.

    `allx`/`ally` are nodes 0..k-1; `tx`/`ty` are the nodes that `test.index` lists, in that order. CiteSeer has 15
    ids above k that no block describes: nodes with neighbours, but without features and without a label.
    """
    allx, tx = (load_sparse(member(files, f".{part}"), f"ind.{dataset}.{part}") for part in ("allx", "tx"))
    ally, ty = (load_array(member(files, f".{part}"), f"ind.{dataset}.{part}") for part in ("ally", "ty"))
    graph = load_adjacency(member(files, ".graph"), f"ind.{dataset}.graph")
    test = np.array(member(files, ".test.index").split(), dtype=np.int64)
    first = allx.shape[0]
    if not (test.size == tx.shape[0] == ty.shape[0] and ally.shape[0] == first and np.unique(test).size == test.size):
        raise DataError(f"{name}: the blocks of rows do not fit each other")
    nodes = int(max(test.max(initial=-1), first - 1, max(graph, default=-1))) + 1
    if test.size and test.min() < first:
        raise DataError(f"{name}: a test node lies among the first {first} nodes")
    source = np.repeat(np.fromiter(graph, np.int64, len(graph)), [len(ends) for ends in graph.values()])
    target = np.fromiter((end for ends in graph.values() for end in ends), np.int64, source.size)
    edges, self_loops = undirected((source, target), nodes)
    return Graph(
        name=name,
        features=clamped(_rows(allx, tx, test, nodes), low, high),
        edges=edges,
        self_loops=self_loops,
        labels=_labels(ally, ty, test, nodes),
        classes=int(ally.shape[1]),
        low=low,
        high=high,
        provenance=dict(provenance),
    )


def _rows(allx: sp.csr_array, tx: sp.csr_array, test: NDArray[np.int64], nodes: int) -> sp.csr_array:
    """Return all rows in the order of the ids; ids that no block describes get an empty row."""
    stacked = sp.vstack([allx, tx, sp.csr_array((1, allx.shape[1]), dtype=allx.dtype)], format="csr")
    where = np.full(nodes, stacked.shape[0] - 1)
    where[: allx.shape[0]] = np.arange(allx.shape[0])
    where[test] = allx.shape[0] + np.arange(test.size)
    return stacked[where]


def _labels(ally: NDArray[Any], ty: NDArray[Any], test: NDArray[np.int64], nodes: int) -> NDArray[np.int32]:
    """Return the class of each node, -1 where no block describes it."""
    labels = np.full(nodes, -1, dtype=np.int32)
    labels[: ally.shape[0]] = _one_hot(ally)
    labels[test] = _one_hot(ty)
    return labels


def _one_hot(rows: NDArray[Any]) -> NDArray[np.int32]:
    # A row without a one is a node without a class.
    return np.where(rows.any(axis=1), rows.argmax(axis=1), -1).astype(np.int32)
