from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphldp.datasets.own import Triples, Wide, own_graph
from graphldp.errors import DataError
from graphldp.graph import Graph

WIDE = Wide(node=["b", "a", "c"], columns={"age": [0.5, 0.0, 1.0], "tall": [True, False, False]})
EDGES = (["a", "b", "a", "c", "b"], ["b", "a", "b", "c", "c"])


def own(features: Any = WIDE, edges: Any = EDGES, labels: Any = None, low: float = 0, high: float = 1) -> Graph:
    return own_graph("mine", features, edges, labels, low=low, high=high)


def test_nodes_keep_the_order_of_the_features_and_edges_are_merged() -> None:
    graph = own(labels=(["c", "b"], ["z", "y"]))
    assert graph.node_ids == ("b", "a", "c")
    assert graph.feature_names == ("age", "tall")
    assert graph.features.toarray().tolist() == [[0.5, 1], [0, 0], [1, 0]]
    assert graph.features.nnz == 3
    assert graph.edges.T.tolist() == [[0, 1], [0, 2]]
    assert graph.self_loops.tolist() == [2]
    assert graph.labels.tolist() == [0, -1, 1]
    assert graph.classes == 2
    assert graph.provenance["class_names"] == ["y", "z"]


def test_triples_give_the_same_values_with_the_features_sorted() -> None:
    triples = Triples(node=["b", "c", "a", "b"], feature=["tall", "age", "tall", "age"], value=[1.0, 1.0, 0.0, 0.5])
    graph = own(triples)
    assert graph.node_ids == ("b", "c", "a")
    assert graph.feature_names == ("age", "tall")
    assert graph.features.toarray().tolist() == [[0.5, 1], [1, 0], [0, 0]]
    assert graph.features.nnz == 3
    numbered = Triples(node=[1, 2], feature=[10, 9], value=[1, 1])
    assert own(numbered, ([1], [2])).feature_names == ("9", "10")


def test_ids_may_be_numbers_in_one_file_and_text_in_the_other() -> None:
    features = Wide(node=np.array([7, 8]), columns={"x": np.array([0, 1], dtype=np.uint8)})
    graph = own(features, (pa.array(["7"]), np.array([8.0])), (np.array([8, 7]), np.array([10, 9])))
    assert graph.edges.tolist() == [[0], [1]]
    assert graph.labels.tolist() == [0, 1]
    assert graph.provenance["class_names"] == ["9", "10"]


def test_a_missing_label_is_no_label() -> None:
    for labels in (pa.array([None, "x", None]), np.array([np.nan, 4, np.nan]), ["", "x", ""]):
        graph = own(labels=(["a", "b", "c"], labels))
        assert graph.labels.tolist() == [0, -1, -1]
        assert graph.classes == 1


def test_a_table_may_have_a_range_without_zero_and_keeps_stored_values() -> None:
    graph = own(Wide(node=["a", "b"], columns={"stars": [1, 5]}), (["a"], ["b"]), low=1, high=5)
    assert graph.features.toarray().tolist() == [[1], [5]]
    assert (graph.low, graph.high) == (1, 5)


def wide(**columns: Any) -> Wide:
    return Wide(node=["a", "b", "c"], columns=columns or {"x": [0, 0, 1]})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"low": 1, "high": 1}, "the declared range needs finite low < high, got low 1 and high 1"),
        ({"low": float("nan")}, "the declared range needs finite"),
        ({"features": Wide(node=[], columns={"x": []})}, "features: no rows"),
        ({"features": Wide(node=["a", "b", "a"], columns={"x": [1, 1, 1]})}, "features: node 'a' stands in two rows"),
        ({"features": Wide(node=["a", None, "c"], columns={"x": [1, 1, 1]})}, "features: node: row 2 is empty"),
        ({"features": Wide(node=[1.5, 2.0], columns={"x": [1, 1]})}, "text or whole numbers, got fractions"),
        ({"features": Wide(node=[[1], [2]], columns={"x": [1, 1]})}, "text or whole numbers, got list"),
        ({"features": Wide(node=["a"], columns={})}, "no feature columns"),
        ({"features": Wide(node=["a", 1], columns={"x": [1, 1]})}, "features: node: not one kind of value"),
        ({"features": wide(x=[1, 1])}, "column 'x' has 2 rows, the nodes have 3"),
        ({"features": wide(x=["1", "2", "3"])}, r"column 'x' is not numeric \(string\)"),
        ({"features": wide(x=[None, None, None])}, "column 'x' is empty"),
        ({"features": wide(x=[0, np.nan, 1])}, r"row 2 \(node 'b'\), column 'x' is NaN or missing"),
        ({"features": wide(x=[2, 0, None])}, r"row 3 \(node 'c'\), column 'x' is NaN or missing"),
        ({"features": wide(x=[0, 3, -7])}, r"row 2 \(node 'b'\), column 'x' lies outside the declared range 0\.\.1"),
        ({"features": wide(x=[0, np.inf, 1])}, "lies outside the declared range"),
        ({"features": Triples(node=["a"], feature=["x"], value=[1]), "low": 1, "high": 2}, "must hold 0"),
        ({"features": Triples(node=["a", "a"], feature=["x", "x"], value=[1, 0])}, "node 'a' has 'x' twice"),
        ({"features": Triples(node=["a"], feature=[None], value=[1])}, "features: feature: row 1 is empty"),
        ({"features": Triples(node=["a"], feature=["x"], value=[np.nan])}, r"row 1 \(node 'a', 'x'\) is NaN"),
        ({"features": Triples(node=["a"], feature=["x"], value=[9])}, "lies outside the declared range"),
        ({"features": Triples(node=[], feature=[], value=pa.array([], pa.int8()))}, "features: no rows"),
        ({"features": Triples(node=["a", "b"], feature=["x"], value=[1])}, "the same number of rows"),
        ({"edges": ([], [])}, "edges: no rows"),
        ({"edges": (["a"], ["a", "b"])}, "1 sources and 2 targets"),
        ({"edges": (["a", "x", "y"], ["b", "b", "b"])}, r"edges: source 'x' in row 2 is not a node .* \(2 such rows\)"),
        ({"edges": (["a"], ["q"])}, r"edges: target 'q' in row 1 is not a node .* \(1 such row\)"),
        ({"edges": (["a"], [""])}, "edges: target: row 1 is empty"),
        ({"labels": (["a", "q"], [1, 2])}, "labels: node 'q' in row 2 is not a node"),
        ({"labels": (["a", "a"], [1, 2])}, "labels: node 'a' has two labels"),
        ({"labels": (["a"], [1, 2])}, "1 nodes and 2 labels"),
        ({"labels": (["a", "b"], pa.nulls(2))}, "labels: no rows with a label"),
        ({"labels": (["a", "b"], [1.5, 2.0])}, "labels: label: ids and labels are text or whole numbers"),
    ],
)  # fmt: skip
def test_every_broken_rule_is_one_line_that_says_where(given: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        own(**given)
    assert "\n" not in str(caught.value)


def test_an_error_does_not_print_a_person_s_value() -> None:
    with pytest.raises(DataError) as caught:
        own(wide(salary=[0, 0, 98765]))
    assert "98765" not in str(caught.value)


def test_every_value_of_a_random_table_arrives() -> None:
    rng = np.random.default_rng(5)
    values = np.where(rng.random((40, 7)) < 0.5, 0, rng.random((40, 7)) * 2 - 1)
    names = [f"f{i}" for i in range(7)]
    table = Wide(node=np.arange(40), columns={name: values[:, i] for i, name in enumerate(names)})
    edges = (rng.integers(0, 40, 90), rng.integers(0, 40, 90))
    first = own(table, edges, low=-1, high=1)
    assert np.array_equal(first.features.toarray(), values.astype(np.float32))
    order = rng.permutation(280)
    node, feature = np.divmod(order, 7)
    triples = Triples(node=node, feature=[names[i] for i in feature], value=values[node, feature])
    second = own(triples, edges, low=-1, high=1)
    place = [second.node_ids.index(str(i)) for i in range(40)]
    assert np.array_equal(second.features.toarray()[place], values.astype(np.float32))
    adjacency = second.adjacency()[place][:, place]
    assert (adjacency != first.adjacency()).nnz == 0
