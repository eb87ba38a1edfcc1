from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphldp.datasets.own import DECLARED, OCCURRING, Declared, Triples, Wide, at_ends, own_features, own_graph
from graphldp.errors import DataError, OptionError
from graphldp.graph import Graph

WIDE = Wide(node=["b", "a", "c"], columns={"age": [0.5, 0.0, 1.0], "tall": [True, False, False]})
EDGES = (["a", "b", "a", "c", "b"], ["b", "a", "b", "c", "c"])


def own(
    features: Any = WIDE,
    edges: Any = EDGES,
    labels: Any = None,
    low: float = 0,
    high: float = 1,
    vocabulary: Any = None,
) -> Graph:
    return own_graph("mine", features, edges, labels, declared=Declared(low=low, high=high, vocabulary=vocabulary))


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


def test_triples_give_the_same_values_with_nodes_and_features_sorted() -> None:
    triples = Triples(node=["b", "c", "a", "b"], feature=["tall", "age", "tall", "age"], value=[1.0, 1.0, 0.0, 0.5])
    graph = own(triples)
    assert graph.node_ids == ("a", "b", "c")
    assert graph.feature_names == ("age", "tall")
    assert graph.features.toarray().tolist() == [[0, 0], [0.5, 1], [1, 0]]
    assert graph.features.nnz == 3
    assert graph.provenance["vocabulary"] == OCCURRING
    numbered = own(Triples(node=[10, 9], feature=[10, 9], value=[1, 1]), ([9], [10]))
    assert (numbered.node_ids, numbered.feature_names) == (("9", "10"), ("9", "10"))


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
        ({"features": wide(x=[0, 1, 1], label=[0, 1, 0])}, "'label' is called like the classes .* give it as --labels"),
        ({"features": wide(**{"": [0, 1, 0]})}, "column '' is called like the row numbers of a data frame"),
        ({"features": wide(x=[0, 1, 1], y=[0, 1, 0])}, "'y' is called like the classes"),
        ({"features": wide(x=[0, 1, 1], Target=[0, 1, 0])}, "'Target' is called like the classes"),
        ({"features": wide(**{"Unnamed: 0.1.1": [0, 1, 0]})}, "column 'Unnamed: 0.1.1' is called like the row numbers"),
        ({"features": wide(idx=[0, 1, 0])}, "column 'idx' is called like the row numbers of a data frame"),
        ({"features": wide(__index_level_0__=[0, 1, 0])}, "is called like the row numbers of a data frame"),
        ({"features": wide(), "vocabulary": ["x", "y"]}, "column 'y' of the declared vocabulary is not there"),
        ({"features": wide(x=[0, 0, 0], z=[0, 0, 0]), "vocabulary": ["x"]}, "column 'z' is not in the declared"),
        ({"features": wide(), "vocabulary": 1}, "column 'x' is not in the declared vocabulary"),
        ({"features": wide(x=[[1], [0, 1], [1]])}, r"row 2 \(node 'b'\), column 'x' has not 1 numbers \(1 such row\)"),
        ({"features": wide(x=[[1], None, [1]])}, r"row 2 \(node 'b'\), column 'x' has not 1 numbers"),
        ({"features": wide(x=[[1], [1], [9]])}, r"row 3 \(node 'c'\), column 'x\[0\]' lies outside"),
        ({"features": wide(x=[[1], [1], [0]], y=[0, 0, 0])}, "column 'x' holds lists and is not the only one"),
        ({"features": wide(x=[["k"], ["l"], ["m"]])}, r"column 'x' is not numeric \(string\)"),
        ({"features": wide(x=[[], [], []])}, "has no numbers in its first row"),
        ({"features": wide(x=[None, None, None])}, "column 'x' is empty"),
        ({"features": wide(x=[0, np.nan, 1])}, r"row 2 \(node 'b'\), column 'x' is NaN or missing"),
        ({"features": wide(x=[2, 0, None])}, r"row 3 \(node 'c'\), column 'x' is NaN or missing"),
        ({"features": wide(x=[0, 3, -7])}, r"row 2 \(node 'b'\), column 'x' lies outside the declared range 0\.\.1"),
        ({"features": wide(x=[0, np.inf, 1])}, "lies outside the declared range"),
        ({"features": Triples(node=["a"], feature=["x"], value=[1]), "low": 1, "high": 2}, "must hold 0"),
        ({"features": Triples(node=["a", "a"], feature=["x", "x"], value=[1, 0])}, "node and feature of an earlier"),
        ({"features": Triples(node=["a", "b"], feature=["x", "hiv"], value=[1, 1]), "vocabulary": ["x"]},
         r"row 2 \(node 'b'\) names a feature that the declared vocabulary does not have \(1 such row\)"),
        ({"features": Triples(node=["b", "a"], feature=["x", None], value=[1, 1])}, "row 2 .* has a value and no f"),
        ({"features": Triples(node=["a"], feature=["x"], value=[np.nan])}, r"row 1 \(node 'a'\) is NaN"),
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
        ({"labels": (["a", "b"], ["1.5", "2"])}, "labels: label: ids and labels are text or whole numbers"),
    ],
)  # fmt: skip
def test_every_broken_rule_is_one_line_that_says_where(given: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        own(**given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "given",
    [
        {"features": wide(salary=[0, 0, 98765])},
        {"features": wide(salary=[0, 0, 2**53 + 98765])},
        {"features": wide(salary=[0, 98765, "98765"])},
        {"features": wide(salary=["98765", 98765, 0])},
        {"features": wide(salary=[[98765], [0], [0]])},
        {"features": Triples(node=["a"], feature=["f98765"], value=[2])},
        {"features": Triples(node=["a"], feature=["f98765"], value=[None])},
        {"features": Triples(node=["a", "a"], feature=["f98765"] * 2, value=[1, 1])},
        {"features": Triples(node=["a"], feature=["f98765"], value=[1]), "vocabulary": ["x"]},
        {"labels": (["a", "b"], ["98765.5", "1"])},
    ],
)
def test_an_error_does_not_print_a_person_s_value(given: dict[str, Any]) -> None:
    with pytest.raises(DataError) as caught:
        own(**given)
    told: BaseException | None = caught.value
    while told is not None and not told.__suppress_context__:  # what --debug shows, too
        assert "98765" not in str(told)
        told = told.__cause__ or told.__context__


# the declared vocabulary ----------------------------------------------------------------------------------------------


def test_the_vocabulary_fixes_number_and_order_of_the_features() -> None:
    triples = Triples(node=["b", "a", "b"], feature=["tall", "age", "age"], value=[1.0, 1.0, 0.5])
    graph = own(triples, (["a"], ["b"]), vocabulary=["tall", "never", "age"])
    assert graph.feature_names == ("tall", "never", "age")
    assert graph.features.toarray().tolist() == [[0, 0, 1], [1, 0, 0.5]]
    assert graph.provenance["vocabulary"] == DECLARED
    table = Wide(node=["b", "a"], columns={"age": [0.5, 1.0], "label": [0, 1]})
    graph = own(table, (["a"], ["b"]), vocabulary=["label", "age"])  # declared, so it is a feature whatever its name
    assert graph.features.toarray().tolist() == [[0, 0.5], [1, 1]]
    numbered = own(Triples(node=["a", "b"], feature=[3, 0], value=[1, 1]), (["a"], ["b"]), vocabulary=4)
    assert (numbered.feature_names, numbered.features.toarray().tolist()) == (None, [[0, 0, 0, 1], [1, 0, 0, 0]])


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.list_(pa.float32(), 2), pa.large_list(pa.float64())])
def test_a_column_of_lists_is_an_embedding(kind: pa.DataType) -> None:
    lists = pa.array([[0.5, 0], [0, 0.25], [1, 0]], type=kind)
    table = Wide(node=["b", "a", "c"], columns={"vector": lists})
    assert own(table).features.toarray().tolist() == lists.to_pylist()
    assert own(table).feature_names is None
    assert own(table, vocabulary=["x", "y"]).feature_names == ("x", "y")
    read = own_features("mine", table, low=0, high=1)
    assert read.declared is pa.types.is_fixed_size_list(kind)
    assert own_features("mine", table, low=0, high=1, vocabulary=2).declared


def test_a_node_without_features_may_be_listed_without_any() -> None:
    graph = own(Triples(node=["b", "a"], feature=["x", ""], value=[1, None]), (["a"], ["b"]))
    assert (graph.node_ids, graph.feature_names) == (("a", "b"), ("x",))
    assert graph.features.toarray().tolist() == [[0], [1]]


def test_the_order_of_nodes_in_triples_does_not_tell_who_has_what() -> None:
    """A file that goes through the features one by one begins with whoever has the first."""
    orders = []
    for owner in "ab":
        node, feature = [owner, "a", "b"], ["rare", "x", "x"]
        read = own_features("mine", Triples(node=node, feature=feature, value=[1, 1, 1]), low=0, high=1)
        orders.append(read.graph.node_ids)
    assert orders[0] == orders[1]


# on a device ----------------------------------------------------------------------------------------------------------


def test_no_value_stops_a_device() -> None:
    nan, inf = np.nan, np.inf
    table = Wide(
        node=list("abcdefg"), columns={"x": [-inf, -0.1, 0, nan, 1, 1.00001, inf], "w": [None] * 7, "z": [2**60] * 7}
    )
    read = own_features("mine", table, low=0, high=1)
    assert read.graph.features.toarray()[:, 0].tolist() == [0, 0, 0, 0.5, 1, 1, 1]
    assert read.graph.features.toarray()[:, 1:].tolist() == [[0.5, 1]] * 7
    assert (read.mended.outside, read.mended.missing) == (11, 8)
    assert read.mended.words() == "11 values outside the range, moved to its nearer end; 8 values missing, replaced"
    assert read.rules == "values are clamped to [low, high] first; a missing one counts as 0.5"
    assert own_features("mine", table, low=0, high=1, missing=0.25).graph.features.toarray()[3].tolist() == [
        0.25
    ] * 2 + [1]
    with pytest.raises(OptionError, match=r"must lie in the range 0\.\.1, got 2"):
        own_features("mine", table, low=0, high=1, missing=2)


def test_a_column_that_numbers_the_rows_is_known_whatever_the_range() -> None:
    table = Wide(node=list("abc"), columns={"x": [0, 2, 1], "person": [0, 1, 2]})
    assert own_features("mine", table, low=0, high=1).row_numbers == ("person",)
    assert own_features("mine", table, low=0, high=1, vocabulary=["x", "person"]).row_numbers == ()
    two = Wide(node=list("ab"), columns={"x": [0, 1]})  # as likely a feature
    assert own_features("mine", two, low=0, high=1).row_numbers == ()


def test_no_triple_stops_a_device() -> None:
    triples = Triples(
        node=["a", "a", "a", "b", "b", "c"],
        feature=["x", "x", "hiv", None, "y", ""],
        value=pa.array([0.25, 0.75, 7.0, None, None, 1.0]),
    )
    read = own_features("mine", triples, low=0, high=1, vocabulary=["y", "x"])
    assert read.graph.node_ids == ("a", "b", "c")
    assert read.graph.features.toarray().tolist() == [[0, 0.25], [0.5, 0], [0, 0]]
    mended = read.mended
    assert (mended.unknown, mended.repeated, mended.missing, mended.outside) == (2, 1, 1, 0)
    assert "outside the vocabulary, or of one for a second time, is left out" in read.rules


def test_no_list_stops_a_device() -> None:
    table = Wide(node=list("abc"), columns={"v": [[1, 2, 3], None, [0.25]]})
    read = own_features("mine", table, low=0, high=1, vocabulary=2)
    assert read.graph.features.toarray().tolist() == [[1, 1], [0.5, 0.5], [0.25, 0.5]]
    assert (read.mended.unknown, read.mended.missing, read.mended.outside) == (1, 3, 1)
    assert read.rules.endswith("; a list that is too short lacks values, and what one has too much is left out")


def test_values_at_the_ends_are_exactly_those() -> None:
    """float32 has no 0.9, and a set mechanism takes what is not below the high end."""
    features = own(wide(x=[0.9, 0.46, 0.45]), low=0, high=0.9).features
    assert at_ends(features, 0, 0.9).toarray().tolist() == [[0.9], [0.9], [0]]


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
    assert second.node_ids is not None
    place = [second.node_ids.index(str(i)) for i in range(40)]
    assert np.array_equal(second.features.toarray()[place], values.astype(np.float32))
    adjacency = second.adjacency()[place][:, place]
    assert (adjacency != first.adjacency()).nnz == 0
