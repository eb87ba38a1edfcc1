from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphldp.errors import DataError, OptionError
from graphldp.graph import Graph
from graphldp.stages.download import import_own, sources_path
from graphldp.stages.graphs import read_graph
from graphldp.stages.own import OwnFiles, read_own

FEATURES = "node,age,tall\n007,1,0\nNA,0.5,1\nc,0,0\n"
EDGES = "source,target\n007,NA\nNA,007\nc,c\nc,NA\n"
LABELS = "node,label\n007,10\nNA,9\nc,\n"


def files(folder: Path, features: str = FEATURES, edges: str = EDGES, labels: str | None = LABELS) -> OwnFiles:
    given = {"features": features, "edges": edges} | ({} if labels is None else {"labels": labels})
    for role, text in given.items():
        (folder / f"{role}.csv").write_text(text, encoding="utf-8")
    return OwnFiles(**{role: folder / f"{role}.csv" for role in given})


def read(given: OwnFiles, low: float = 0, high: float = 1) -> Graph:
    return read_own("mine", given, low=low, high=high)


def test_csv_ids_stay_as_they_are_written(tmp_path: Path) -> None:
    graph = read(files(tmp_path))
    assert graph.node_ids == ("007", "NA", "c")
    assert graph.feature_names == ("age", "tall")
    assert graph.features.toarray().tolist() == [[1, 0], [0.5, 1], [0, 0]]
    assert graph.edges.T.tolist() == [[0, 1], [1, 2]]
    assert graph.self_loops.tolist() == [2]
    assert graph.labels.tolist() == [1, 0, -1]
    assert graph.provenance["class_names"] == ["9", "10"]
    assert graph.provenance["files"]["edges"]["name"] == "edges.csv"


def test_triples_are_recognised_by_their_columns(tmp_path: Path) -> None:
    graph = read(files(tmp_path, "value,feature,node\n1,07,007\n0,07,c\n0.5,7,NA\n", labels=None))
    assert graph.node_ids == ("007", "c", "NA")
    assert graph.feature_names == ("07", "7")
    assert graph.features.toarray().tolist() == [[1, 0], [0, 0], [0, 0.5]]
    assert graph.labels.tolist() == [-1, -1, -1]
    assert graph.classes == 0


def test_parquet_and_csv_may_be_mixed_and_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    given = files(tmp_path, edges="\ufeff" + EDGES)
    path = tmp_path / "features.parquet"
    pq.write_table(pa.table({"node": ["007", "NA", "c"], "age": [1, 0.5, 0], "tall": [False, True, False]}), path)
    mixed = read(OwnFiles(features=path, edges=given.edges, labels=given.labels))
    plain = read(given)
    assert mixed.features.toarray().tolist() == plain.features.toarray().tolist()
    assert mixed.edges.tolist() == plain.edges.tolist()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": "id,age\na,1\n"}, r"features.csv: missing column 'node' \(it has 'id', 'age'\)"),
        ({"edges": "from,to\nc,c\n"}, r"edges.csv: missing column 'source' .*; it needs source and target"),
        ({"edges": "source,target,weight\nc,c,1\n"}, "edges.csv: unknown column 'weight'"),
        ({"labels": "node,class\nc,1\n"}, "labels.csv: missing column 'label'"),
        ({"features": ""}, "features.csv: the file is empty"),
        ({"edges": ""}, "edges.csv: the file is empty"),
        ({"features": "node,age\n"}, "features.csv: features: no rows"),
        ({"edges": "source,target\n"}, "edges.csv: edges: no rows"),
        ({"labels": "node,label\n"}, "labels.csv: labels: no rows"),
        ({"features": "node,age,age\nc,1,1\n"}, "features.csv: column 'age' stands there twice"),
        ({"features": "node,age\nc,1,1\n"}, "features.csv: not a readable csv file"),
        ({"features": FEATURES + "d,old,1\n"}, r"features.csv: .*column 'age' is not numeric"),
        ({"features": FEATURES + "d,,1\n"}, r"features.csv: .*row 4 \(node 'd'\), column 'age' is NaN or missing"),
        ({"features": FEATURES + "d,nan,1\n"}, r"row 4 \(node 'd'\), column 'age' is NaN or missing"),
        ({"features": FEATURES + "d,2,1\n"}, r"features.csv: .*row 4 \(node 'd'\), column 'age' lies outside"),
        ({"features": FEATURES + "c,1,1\n"}, "features.csv: features: node 'c' stands in two rows"),
        ({"features": FEATURES + ",1,1\n"}, "features.csv: features: node: row 4 is empty"),
        ({"edges": EDGES + "c,zz\n"}, "edges.csv: edges: target 'zz' in row 5 is not a node"),
        ({"edges": EDGES + "7,c\n"}, "edges.csv: edges: source '7' in row 5 is not a node"),
        ({"labels": LABELS + "zz,1\n"}, "labels.csv: labels: node 'zz' in row 4 is not a node"),
        ({"labels": LABELS + "c,1\n"}, "labels.csv: labels: node 'c' has two labels"),
    ],
)
def test_every_bad_file_is_one_line_with_its_name(changes: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read(files(tmp_path, **changes))
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_files_that_cannot_be_read_are_one_line(tmp_path: Path) -> None:
    given = files(tmp_path)
    missing, folder, text, broken = (tmp_path / name for name in ("gone.csv", "folder.csv", "a.txt", "b.parquet"))
    folder.mkdir()
    text.write_text("x")
    broken.write_bytes(b"PAR1 nonsense")
    (tmp_path / "latin.csv").write_bytes("node,é\na,1\n".encode("latin1"))
    for path, message in (
        (missing, "there is no such file"),
        (folder, "there is no such file"),
        (text, "features are read from .parquet or .csv files, got '.txt'"),
        (broken, "not a readable parquet file"),
        (tmp_path / "latin.csv", "not a readable csv file"),
    ):
        with pytest.raises(DataError, match=message) as caught:
            read(OwnFiles(features=path, edges=given.edges))
        assert "\n" not in str(caught.value)
        assert str(path) in str(caught.value)


def test_the_artifact_keeps_names_and_replaces_nothing_unasked(tmp_path: Path) -> None:
    given, data = files(tmp_path), tmp_path / "data"
    stored = import_own("mine", given, data, low=0, high=1)
    graph = read_graph(stored.path)
    assert stored.path == data / "graphs" / "mine"
    assert (graph.name, graph.node_ids, graph.feature_names) == ("mine", ("007", "NA", "c"), ("age", "tall"))
    assert (graph.low, graph.high) == (0, 1)
    assert stored.summary()["unexpected"] == []
    assert sources_path(data, "mine").is_file()
    with pytest.raises(OptionError, match="is there already; choose another name, or add --force"):
        import_own("mine", given, data, low=0, high=1)
    import_own("mine", given, data, low=0, high=2, force=True)
    assert read_graph(stored.path).high == 2
    with pytest.raises(OptionError, match="'cora' is the name of a registered dataset"):
        import_own("cora", given, data, low=0, high=1)
    for name in ("", "../x", ".x", "a/b", "a b"):
        with pytest.raises(OptionError, match="a graph's name needs letters, digits"):
            import_own(name, given, data, low=0, high=1)


def test_a_bad_file_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        import_own("mine", files(tmp_path, edges="source,target\nx,y\n"), tmp_path / "data", low=0, high=1)
    assert not (tmp_path / "data").exists()
