from __future__ import annotations

import dataclasses

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from graphldp.datasets.assemble import undirected
from graphldp.datasets.canonical import canonical, canonical_order
from graphldp.graph import Graph


def renumbered(graph: Graph, order: np.ndarray) -> Graph:
    number = np.empty_like(order)
    number[order] = np.arange(order.size)
    edges, _ = undirected(number[graph.edges], graph.nodes)
    return dataclasses.replace(
        graph,
        features=graph.features[order],
        edges=edges,
        self_loops=np.sort(number[graph.self_loops]).astype(np.int32),
        labels=graph.labels[order],
    )


def same(first: Graph, second: Graph) -> bool:
    return (
        np.array_equal(first.features.toarray(), second.features.toarray())
        and np.array_equal(first.edges, second.edges)
        and np.array_equal(first.labels, second.labels)
        and np.array_equal(first.self_loops, second.self_loops)
    )


def build(nodes: int, pairs: list[tuple[int, int]], columns: list[int], labels: list[int]) -> Graph:
    links = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    edges, loops = undirected(links, nodes)
    features = sp.csr_array(np.eye(3, dtype=np.float32)[columns])
    return Graph(
        name="x", features=features, edges=edges, self_loops=loops, labels=np.array(labels, dtype=np.int32), classes=2,
        low=0.0, high=1.0,
    )  # fmt: skip


# Trees, paths and stars of few kinds of nodes: full of twins, and colour refinement tells all non-twins apart.
@st.composite
def forests(draw: st.DrawFn) -> tuple[Graph, np.ndarray]:
    nodes = draw(st.integers(1, 9))
    pairs = [(node, draw(st.integers(0, node - 1))) for node in range(1, nodes) if draw(st.booleans())]
    pairs += [(node, node) for node in range(nodes) if draw(st.integers(0, 5)) == 0]
    kinds = draw(st.lists(st.integers(0, 1), min_size=nodes, max_size=nodes))
    labels = draw(st.lists(st.integers(-1, 1), min_size=nodes, max_size=nodes))
    return build(nodes, pairs, kinds, labels), np.array(draw(st.permutations(range(nodes))))


@given(forests())
@settings(max_examples=200, deadline=None, derandomize=True)
def test_any_order_of_the_nodes_gives_the_same_graph(case: tuple[Graph, np.ndarray]) -> None:
    graph, order = case
    first = canonical(graph)
    assert same(first, canonical(renumbered(graph, order)))
    assert same(first, canonical(first))
    assert sorted(canonical_order(graph).tolist()) == list(range(graph.nodes))


def test_twins_with_a_tail_each_are_numbered_along_with_their_tails() -> None:
    # Two equal stars of two: pairing a centre with the other's tail would give another list of edges.
    graph = build(4, [(0, 1), (2, 3)], [0, 1, 0, 1], [0, 0, 0, 0])
    for order in ([0, 1, 2, 3], [2, 1, 0, 3], [3, 0, 1, 2], [0, 3, 2, 1]):
        assert same(canonical(graph), canonical(renumbered(graph, np.array(order))))


def test_what_differs_stays_different() -> None:
    base = build(3, [(0, 1)], [0, 0, 0], [0, 0, 0])
    others = (
        build(3, [(0, 1), (1, 2)], [0, 0, 0], [0, 0, 0]),
        build(3, [(0, 1)], [0, 0, 1], [0, 0, 0]),
        build(3, [(0, 1)], [0, 0, 0], [0, 0, 1]),
        build(3, [(0, 1), (2, 2)], [0, 0, 0], [0, 0, 0]),
    )
    assert not any(same(canonical(base), canonical(other)) for other in others)
