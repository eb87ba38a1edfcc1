from __future__ import annotations

import json

import numpy as np
import pytest

from graphldp.datasets import spec
from graphldp.datasets.build import parse
from graphldp.datasets.options import LargestClasses, Traffic
from graphldp.errors import DataError, OptionError

EDGES = b"id_1,id_2\n0,1\n1,0\n0,1\n2,2\n3,2\n"
FEATURES = {"3": [4, 0], "0": [1], "1": [], "2": [2, 2, 1]}


def files(target: str, edges: bytes = EDGES, features: object = FEATURES) -> dict[str, bytes]:
    return {"x_edges.csv": edges, "x.json": json.dumps(features).encode(), "x_target.csv": target.encode()}


FACEBOOK = (
    'id,facebook_id,page_name,page_type\n1,5,"Bread, butter ""& more""",tvshow\n0,6,"two\nlines",company\n'
    "3,7,Ünïcode 中国,politician\n2,8,x,tvshow\n"
)


def test_facebook_s_class_is_the_page_type_and_rows_may_come_in_any_order() -> None:
    graph = parse(spec("facebook"), files(FACEBOOK))
    assert graph.labels.tolist() == [0, 2, 2, 1]
    assert graph.classes == 3
    assert graph.edges.T.tolist() == [[0, 1], [2, 3]]
    assert graph.self_loops.tolist() == [2]
    assert graph.features.toarray().tolist() == [
        [0, 1, 0, 0, 0],
        [0, 0, 0, 0, 0],
        [0, 1, 1, 0, 0],
        [1, 0, 0, 0, 1],
    ]
    assert graph.features.has_sorted_indices
    assert set(graph.features.data) == {1.0}


def test_twitch_s_class_is_mature_of_the_new_id_and_the_vocabulary_is_shared() -> None:
    rows = "99,1,True,3,False,2", "98,1,False,3,True,0", "0,1,True,3,False,1", "1,2,False,1,True,3"
    target = "\n".join(("id,days,mature,views,partner,new_id", *rows))
    graph = parse(spec("twitch-es"), files(target))
    assert graph.labels.tolist() == [0, 1, 1, 0]
    assert graph.dimensions == 3170


def test_github_s_class_is_ml_target() -> None:
    graph = parse(spec("github"), files("id,name,ml_target\n0,a,0\n1,b,1\n2,c,1\n3,d,0\n"))
    assert graph.labels.tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize(("classes", "labels"), [(2, [0, 1, 1, 0]), (4, [0, 3, 2, 1])])
def test_traffic_becomes_quantile_classes(classes: int, labels: list[int]) -> None:
    target = "id,target\n0,1\n1,1000000\n2,60\n3,50\n"
    graph = parse(spec("wikipedia"), files(target), options=Traffic(classes=classes))
    assert graph.labels.tolist() == labels
    assert graph.classes == classes
    assert graph.provenance["options"] == {"classes": classes}


def test_a_value_on_a_border_belongs_to_the_lower_class() -> None:
    graph = parse(spec("wikipedia"), files("id,target\n0,1\n1,2\n2,2\n3,3\n"))
    assert graph.labels.tolist() == [0, 0, 0, 1]


def test_numbers_as_classes_keep_their_order() -> None:
    graph = parse(spec("lastfm"), files("id,target\n0,10\n1,9\n2,2\n3,9\n"))
    assert graph.labels.tolist() == [2, 1, 0, 1]


def test_largest_classes_keeps_their_nodes_and_numbers_everything_anew() -> None:
    rows = "id,target\n0,5\n1,7\n2,9\n3,9\n4,7\n5,3\n"
    edges = b"node_1,node_2\n0,1\n1,2\n2,3\n4,5\n4,4\n5,5\n3,1\n"
    features = {str(node): [node] for node in range(6)}
    graph = parse(spec("lastfm"), files(rows, edges, features), options=LargestClasses(largest_classes=2))
    assert graph.nodes == 4  # nodes 1, 2, 3, 4
    assert graph.labels.tolist() == [0, 1, 1, 0]
    assert graph.classes == 2
    assert graph.edges.T.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert graph.self_loops.tolist() == [3]
    assert graph.features.indices.tolist() == [1, 2, 3, 4]
    assert graph.dimensions == 6
    with pytest.raises(OptionError, match="at most lastfm's 4 classes, got 5"):
        parse(spec("lastfm"), files(rows, edges, features), options=LargestClasses(largest_classes=5))


def test_of_equally_large_classes_the_first_stay() -> None:
    rows = "id,target\n0,1\n1,2\n2,3\n3,3\n"
    graph = parse(spec("lastfm"), files(rows), options=LargestClasses(largest_classes=2))
    assert graph.labels.tolist() == [0, 1, 1]
    assert graph.edges.T.tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (files("id,target\n0,1\n"), "an edge names a node"),
        (files("id,target\n0,1\n0,1\n"), r"node ids must be 0\.\.1, each once"),
        (files("id,other\n0,1\n"), "no column 'target', only id, other"),
        (files("id,target\n0\n"), "rows of the same length"),
        (files("id,target\n0,1\n1,1\n2,1\n3,1\n", features={"4": [1]}), r"features name a node outside 0\.\.3"),
        (files("id,target\n0,1\n1,1\n2,1\n3,1\n", features={"0": [-1]}), "a feature id lies outside"),
    ],
)
def test_files_that_do_not_fit_are_one_line(given: dict[str, bytes], message: str) -> None:
    with pytest.raises(DataError, match=message):
        parse(spec("deezer"), given)


def test_no_feature_at_all_is_a_graph_without_dimensions() -> None:
    graph = parse(spec("deezer"), files("id,target\n0,1\n1,1\n2,1\n3,0\n", features={}))
    assert graph.features.shape == (4, 0)
    assert np.array_equal(graph.features.indptr, np.zeros(5))
