from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphldp.errors import DataError, OptionError
from graphldp.experiment.options import Settings
from graphldp.experiment.parts import split_of
from graphldp.graph import Graph
from graphldp.stages.download import import_own, sources_path
from graphldp.stages.files.graphs import read_graph
from graphldp.stages.files.own import OwnFiles, read_own, read_vocabulary

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
    assert graph.node_ids == ("007", "NA", "c")
    assert graph.feature_names == ("07", "7")
    assert graph.features.toarray().tolist() == [[1, 0], [0, 0.5], [0, 0]]
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
        ({"features": "id,age\na,1\n"}, r"features.csv: missing column 'node' \(it has 'id' and 1 more\)"),
        ({"edges": "source,sink\nc,c\n"}, r"missing column 'target' \(it has 'source', 'sink'\)"),
        ({"edges": "ann,bob\nbob,cid\n"}, r"column 'source' \(it has 2 other columns; is its first line a header\?\)"),
        ({"labels": "ann,ann\nbob,sad\n"}, "column of one name stands there twice"),
        ({"features": "node;age\nc;1,5\n"}, "features.csv: its columns are separated by ';'; separate them by commas"),
        ({"edges": "source\ttarget\nc\tc\n"}, "edges.csv: its columns are separated by tabs"),
        (
            {"features": "node,age\nc,1,77777\n"},
            r"not a readable csv file \(a row has 3 fields, and the header has 2\)",
        ),
        ({"features": ",node,age\n0,c,1\n"}, "column '' is called like the row numbers of a data frame"),
        ({"features": "node,age,label\nc,1,1\n"}, "column 'label' is called like the classes"),
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


@pytest.mark.parametrize("role", ["features", "edges", "labels"])
@pytest.mark.parametrize(
    "text", ["node,x\nc,98765,98765\n", "98765,98765\n1,98765\n", "c;98765\n98765;1\n", "c|98765\n", "98765\n\xff\n"]
)
def test_no_piece_of_a_file_is_printed(role: str, text: str, tmp_path: Path) -> None:
    given = files(tmp_path)
    (tmp_path / f"{role}.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(DataError) as caught:
        read(given)
    assert "98765" not in str(caught.value)
    assert caught.value.__cause__ is None or "98765" not in str(caught.value.__cause__)


def test_the_features_are_declared_by_a_file_or_a_number(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("\ufefftall\r\nbig nose\nage\n\n", encoding="utf-8")
    (tmp_path / "names.csv").write_text("feature\n007\n7\n")
    pq.write_table(pa.table({"feature": ["b", "a"]}), tmp_path / "names.parquet")
    assert read_vocabulary(tmp_path / "names.txt") == ("tall", "big nose", "age")
    assert read_vocabulary(tmp_path / "names.csv") == ("007", "7")
    assert read_vocabulary(tmp_path / "names.parquet") == ("b", "a")
    assert (read_vocabulary(None, 5), read_vocabulary(None)) == (5, None)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.txt", "x\ny\nx\n", "a.txt: the features 1 and 3 have one name"),
        ("a.txt", "x\n\ny\n", "a.txt: row 2 is empty"),
        ("a.txt", "\n", "a.txt: it names no feature"),
        ("a.txt", "\xff\n", "not UTF-8"),
        ("a.csv", "x\ny\n", "a.csv: missing column 'feature'"),
        ("a.csv", "feature\n", "a.csv: it names no feature"),
        ("gone.txt", None, "gone.txt: there is no such file; give the features' names"),
    ],
)
def test_a_vocabulary_that_is_none_is_one_line(name: str, text: str | None, message: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / name).write_bytes(text.encode("latin-1"))
    with pytest.raises(DataError, match=message) as caught:
        read_vocabulary(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_a_vocabulary_is_declared_once_and_has_features(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="both say which features there are; give one of them"):
        read_vocabulary(tmp_path / "names.txt", 5)
    with pytest.raises(OptionError, match="--dimensions must be a whole number of at least 1, got 0"):
        read_vocabulary(None, 0)


def test_an_import_says_where_its_features_come_from(tmp_path: Path) -> None:
    given = files(tmp_path, "node,feature,value\n007,b,1\nc,a,0\nNA,a,0.5\n")
    stored = import_own("mine", given, tmp_path, low=0, high=1)
    loops, note, *_ = stored.summary()["notes"]
    assert loops == "1 self-loop set apart, 1 repeated or reversed edge merged"
    assert note.startswith("its features, 2 in all, are those that occur in ")
    (tmp_path / "names.txt").write_text("c\nb\na\n")
    declared = OwnFiles(features=given.features, edges=given.edges, features_file=tmp_path / "names.txt")
    stored = import_own("mine", declared, tmp_path, low=0, high=1, force=True)
    assert not any("occur" in note for note in stored.summary()["notes"])
    graph = read_graph(stored.path)
    assert graph.feature_names == ("c", "b", "a")
    assert graph.features.toarray().tolist() == [[0, 1, 0], [0, 0, 0.5], [0, 0, 0]]
    assert graph.provenance["files"]["features-file"]["name"] == "names.txt"


def test_files_that_cannot_be_read_are_one_line(tmp_path: Path) -> None:
    given = files(tmp_path)
    missing, folder, text, broken = (tmp_path / name for name in ("gone.csv", "folder.csv", "a.txt", "b.parquet"))
    folder.mkdir()
    text.write_text("x")
    broken.write_bytes(b"PAR1 nonsense")
    wide = tmp_path / "utf-16.csv"
    wide.write_bytes("node,x\na,1\n".encode("utf-16"))
    (tmp_path / "latin.csv").write_bytes("node,é\na,1\n".encode("latin1"))
    for path, message in (
        (missing, "there is no such file"),
        (folder, "is a folder; give the features as one .parquet or .csv file"),
        (
            text,
            "features are read from .parquet or .csv files, got '.txt'; save them as .csv, with a header and commas",
        ),
        (wide, r"not a readable csv file \(it is not UTF-8; save it as UTF-8\)"),
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


def notes_of(
    folder: Path, labels: str | None, edges: str = "source,target\na,b\nb,c\n", features: str = ""
) -> list[str]:
    """Return what an import says of files with three nodes."""
    (folder / "f.csv").write_text(features or "node,x\na,1\nb,0\nc,1\n")
    (folder / "e.csv").write_text(edges)
    if labels is not None:
        (folder / "l.csv").write_text(labels)
    given = OwnFiles(
        features=folder / "f.csv", edges=folder / "e.csv", labels=None if labels is None else folder / "l.csv"
    )
    return list(import_own("mine", given, folder, low=0, high=1, force=True).notes)


def test_minus_one_beside_classes_from_zero_is_no_label(tmp_path: Path) -> None:
    (said, left) = notes_of(tmp_path, "node,label\na,0\nb,1\nc,-1\n")
    assert said == "1 node with the label -1 counted as without one; if -1 is a class, give it a name"
    assert left == "1 of 3 nodes has no label"
    graph = read_graph(tmp_path / "graphs" / "mine")
    assert (graph.labels.tolist(), graph.classes) == ([0, 1, -1], 2)
    assert notes_of(tmp_path, "node,label\na,1\nb,1\nc,-1\n") == []  # two classes
    assert read_graph(tmp_path / "graphs" / "mine").labels.tolist() == [1, 1, 0]


def test_an_import_says_what_can_not_be_learned(tmp_path: Path) -> None:
    assert notes_of(tmp_path, "node,label\na,x\nb,x\nc,x\n") == [
        "all its labels are one class, so there is nothing to classify; link prediction needs no classes"
    ]
    many = "source,target\na,b\nb,a\na,a\nc,c\nb,c\n"
    assert notes_of(tmp_path, None, many) == ["2 self-loops set apart, 1 repeated or reversed edge merged"]
    zeros = "node,x\na,0\nb,0\nc,0\n"
    assert notes_of(tmp_path, None, features=zeros) == ["all its features are 0, so nobody's report says anything"]
    with pytest.raises(DataError, match="every edge joins a node with itself; a graph needs one between two nodes"):
        notes_of(tmp_path, None, "source,target\na,a\nb,b\n")


@pytest.mark.parametrize(("column", "known"), [("0", True), ("0.0", True), ("1", False)])
def test_an_import_says_which_column_numbers_the_rows(column: str, known: bool, tmp_path: Path) -> None:
    given = files(tmp_path, f"node,age,person\nNA,1,{column}\n007,0,1\nc,1,2\n")
    stored = import_own("mine", given, tmp_path, low=0, high=2)
    said = "column 'person' numbers the rows from 0 on, and counts as a feature; if it is none, leave it out"
    assert (said in stored.notes) == known
    (tmp_path / "names.txt").write_text("age\nperson\n")
    declared = OwnFiles(features=given.features, edges=given.edges, features_file=tmp_path / "names.txt")
    assert said not in import_own("mine", declared, tmp_path, low=0, high=2, force=True).notes  # it is meant


def test_one_class_is_not_trained_on(tmp_path: Path) -> None:
    notes_of(tmp_path, "node,label\na,x\nb,x\nc,x\n")
    graph = read_graph(tmp_path / "graphs" / "mine")
    with pytest.raises(DataError, match="graph mine has one class, so there is nothing to classify; give labels"):
        split_of(graph, Settings(), 0)
