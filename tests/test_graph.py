"""The graph object: whatever is no undirected graph with labels is refused when it is made."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from graphldp.errors import DataError
from graphldp.graph import Graph

EDGES = [[0, 0, 1], [1, 2, 3]]


def graph(**changes: Any) -> Graph:
    parts: dict[str, Any] = {
        "name": "toy",
        "features": sp.csr_array(np.eye(4, 3, dtype=np.float32)),
        "edges": np.array(EDGES, dtype=np.int32),
        "labels": np.array([0, 1, -1, 1], dtype=np.int32),
        "classes": 2,
        "low": 0.0,
        "high": 1.0,
    }
    return Graph(**{**parts, **changes})


def test_what_it_says_of_itself() -> None:
    one = graph()
    assert (one.nodes, one.dimensions, one.classes) == (4, 3, 2)
    assert one.self_loops.size == 0
    assert one.provenance == {}
    assert one.node_ids is None
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.low = -1.0  # type: ignore[misc]


def test_the_adjacency_is_symmetric_and_has_no_self_loops() -> None:
    matrix = graph(self_loops=np.array([2], np.int32)).adjacency()
    expected = np.zeros((4, 4))
    for u, v in zip(*EDGES, strict=True):
        expected[u, v] = expected[v, u] = 1
    np.testing.assert_array_equal(matrix.toarray(), expected)
    assert matrix.dtype == np.float32
    assert matrix.has_sorted_indices


def test_a_graph_may_be_without_edges_or_without_labels() -> None:
    bare = graph(edges=np.empty((2, 0), np.int32), labels=np.full(4, -1, np.int32), classes=0)
    assert bare.adjacency().nnz == 0
    assert bare.adjacency().shape == (4, 4)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"low": 1.0}, "the value range needs low < high, got low 1.0 and high 1.0"),
        ({"high": np.nan}, "the value range needs low < high, got low 0.0 and high nan"),
        ({"edges": np.array([0, 1], np.int32)}, r"edges need the shape 2 x E, got \(2,\)"),
        ({"edges": np.array(EDGES, np.int32).T}, r"edges need the shape 2 x E, got \(3, 2\)"),
        ({"edges": np.array([[0], [4]], np.int32)}, "an edge names a node outside 0..3"),
        ({"edges": np.array([[-1], [0]], np.int32)}, "an edge names a node outside 0..3"),
        ({"edges": np.array([[1], [0]], np.int32)}, "edges must stand once each, smaller node first, self-loops apart"),
        ({"edges": np.array([[1], [1]], np.int32)}, "edges must stand once each, smaller node first, self-loops apart"),
        ({"labels": np.zeros(3, np.int32)}, r"4 nodes need 4 labels, got \(3,\)"),
        ({"labels": np.array([0, 1, 2, 0], np.int32)}, r"labels must be -1 \(none\) or a class in 0..1"),
        ({"labels": np.array([0, 1, -2, 0], np.int32)}, r"labels must be -1 \(none\) or a class in 0..1"),
    ],
)
def test_what_is_no_graph_is_one_line_with_its_name(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=f"^toy: {words}") as error:
        graph(**changes)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("edges", [[[0, 0], [1, 1]], [[1, 0], [3, 2]]], ids=["twice", "unsorted"])
def test_edges_stand_once_each_and_sorted(edges: list[list[int]]) -> None:
    with pytest.raises(DataError, match="toy: edges must stand once each, in the order"):
        graph(edges=np.array(edges, np.int32))
