from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from graphldp.datasets.own import Declared, Wide, own_graph
from graphldp.datasets.synthetic import synthetic
from graphldp.errors import ArtifactError
from graphldp.graph import Graph
from graphldp.stages.files import graphs as module
from graphldp.stages.files.describe import describe
from graphldp.stages.files.graphs import FILES, graph_hash, read_graph, read_graph_meta, write_graph
from graphldp.stages.files.leftovers import own_name
from graphldp.stages.files.paths import graph_dir, stored_graphs


def small(**changes: object) -> Graph:
    facts: dict[str, object] = {
        "name": "small",
        "features": sp.csr_array(np.array([[0.5, 0, 0], [0, 0, 0], [1, 0, -1], [0, 0, 0]], dtype=np.float32)),
        "edges": np.array([[0, 0], [1, 2]], dtype=np.int32),
        "labels": np.array([1, -1, 0, 1], dtype=np.int32),
        "classes": 2,
        "low": -1.0,
        "high": 1.0,
        "self_loops": np.array([3], dtype=np.int32),
        "provenance": {"dataset": "small", "options": {"a": 1}},
    }
    return Graph(**(facts | changes))  # type: ignore[arg-type]


def assert_same(first: Graph, second: Graph) -> None:
    for field in dataclasses.fields(Graph):
        one, two = getattr(first, field.name), getattr(second, field.name)
        if field.name == "features":
            assert one.shape == two.shape
            for part in ("data", "indices", "indptr"):
                assert np.array_equal(getattr(one, part), getattr(two, part))
                assert getattr(two, part).dtype == (np.float32 if part == "data" else np.int32)
        elif isinstance(one, np.ndarray):
            assert np.array_equal(one, two)
            assert two.dtype == np.int32
        else:
            assert one == two


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.mark.parametrize(
    "graph",
    [
        small(),
        small(node_ids=("a", "NA", "", "ü"), feature_names=("x", "y", "1")),
        small(features=sp.csr_array((4, 3), dtype=np.float32)),
        small(edges=np.empty((2, 0), dtype=np.int32), self_loops=np.empty(0, dtype=np.int32)),
        small(labels=np.full(4, -1, dtype=np.int32), classes=0),
        small(features=sp.csr_array((4, 0), dtype=np.float32)),
        synthetic(nodes=300, words=3),
        own_graph(
            "own",
            Wide(node=["b", "a"], columns={"x": [1.5, 0]}),
            (["a"], ["b"]),
            (["a"], ["y"]),
            declared=Declared(low=-2, high=2),
        ),
    ],
    ids=["small", "named", "no features", "no edges", "no labels", "no dimensions", "synthetic", "own"],
)
def test_what_is_written_is_read_and_written_again_it_is_the_same_bytes(graph: Graph, tmp_path: Path) -> None:
    write_graph(graph, tmp_path / "one")
    back = read_graph(tmp_path / "one")
    assert_same(graph, back)
    write_graph(back, tmp_path / "two")
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert graph_hash(tmp_path / "one") == graph_hash(tmp_path / "two")


def test_the_tables_are_what_the_format_says(tmp_path: Path) -> None:
    write_graph(small(), tmp_path / "g")
    assert sorted(contents(tmp_path / "g")) == sorted([*FILES, "graph.json"])
    features = pq.read_table(tmp_path / "g" / "features.parquet")
    assert features.to_pydict() == {"index": [[0], [], [0, 2], []], "value": [[0.5], [], [1, -1], []]}
    assert [str(field.type) for field in features.schema] == ["list<element: int32>", "list<element: float>"]
    assert pq.read_table(tmp_path / "g" / "edges.parquet").to_pydict() == {"source": [0, 0], "target": [1, 2]}
    assert pq.read_table(tmp_path / "g" / "labels.parquet").to_pydict() == {
        "label": [1, None, 0, 1],
        "self_loop": [False, False, False, True],
    }
    meta = read_graph_meta(tmp_path / "g")
    facts = {
        "name": "small",
        "n": 4,
        "d": 3,
        "edges": 2,
        "self_loops": 1,
        "values": 3,
        "classes": 2,
        "low": -1,
        "high": 1,
    }
    assert {key: getattr(meta, key) for key in facts} == facts


def test_what_is_read_may_be_changed_by_its_reader(tmp_path: Path) -> None:
    write_graph(small(), tmp_path / "g")
    graph = read_graph(tmp_path / "g")
    graph.features.data[:] = 0
    graph.labels[:] = 0
    graph.edges[:] = 0


def test_unsorted_rows_are_stored_sorted_and_the_graph_is_left_alone(tmp_path: Path) -> None:
    matrix = sp.csr_array(
        (np.array([1, 0.5], np.float32), np.array([2, 0], np.int32), np.array([0, 2, 2, 2, 2], np.int32)), shape=(4, 3)
    )
    write_graph(small(features=matrix), tmp_path / "g")
    assert read_graph(tmp_path / "g").features.indices.tolist() == [0, 2]
    assert matrix.indices.tolist() == [2, 0]


@pytest.mark.parametrize(
    "change",
    [
        {"low": -2.0},
        {"name": "other"},
        {"labels": np.array([1, 1, 0, 1], dtype=np.int32)},
        {"edges": np.array([[0, 1], [1, 2]], dtype=np.int32)},
        {"self_loops": np.array([2], dtype=np.int32)},
        {"provenance": {}},
        {"feature_names": ("a", "b", "c")},
    ],
)
def test_the_hash_covers_everything(change: dict[str, object], tmp_path: Path) -> None:
    write_graph(small(), tmp_path / "one")
    write_graph(small(**change), tmp_path / "two")
    assert graph_hash(tmp_path / "one") != graph_hash(tmp_path / "two")


# (An edit that leaves graph.json a sound description gives another graph, with another hash.)
@pytest.mark.parametrize(
    ("file", "damage"),
    [(file, damage) for file in FILES for damage in ("missing", "truncated", "edited", "empty")]
    + [("graph.json", damage) for damage in ("missing", "truncated", "empty")],
)
def test_damage_is_one_line_that_names_the_file(file: str, damage: str, tmp_path: Path) -> None:
    directory = tmp_path / "cora"
    write_graph(small(), directory)
    path = directory / file
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        middle = len(content) // 2
        edited = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        path.write_bytes({"truncated": content[:middle], "edited": edited, "empty": b""}[damage])
    with pytest.raises(ArtifactError) as caught:
        read_graph(directory)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    assert "ldp download cora" in message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "has format 2, this version reads 1"),
        ({"kind": "runs"}, "does not describe a graph"),
        ({"n": "4"}, "has no valid n"),
        ({"n": 5}, "files of another graph"),
        ({"d": 2}, "indices that do not fit"),
        ({"classes": 1}, "is not a sound graph"),
    ],
)
def test_a_description_that_does_not_fit_is_one_line(change: dict[str, object], message: str, tmp_path: Path) -> None:
    write_graph(small(), tmp_path / "g")
    path = tmp_path / "g" / "graph.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | change))
    with pytest.raises(ArtifactError, match=message) as caught:
        read_graph(tmp_path / "g")
    assert "\n" not in str(caught.value)
    assert "ldp download g" in str(caught.value)


def test_a_folder_that_is_not_there_says_which_command_makes_it(tmp_path: Path) -> None:
    for reader in (read_graph, read_graph_meta, graph_hash):
        with pytest.raises(ArtifactError, match=r"graph.json does not exist; make it with `ldp download facebook`"):
            reader(tmp_path / "facebook")


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError])
def test_an_interrupted_write_leaves_what_was_there(
    before: bool, failure: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "graphs" / "g"
    if before:
        write_graph(small(), directory)
    old = contents(directory) if before else None

    def fail(*_: object) -> None:
        raise failure

    monkeypatch.setattr(module, "write_json", fail)
    with pytest.raises(failure):
        write_graph(small(name="new"), directory)
    assert (contents(directory) if directory.exists() else None) == old
    assert [path.name for path in directory.parent.iterdir()] == (["g"] if before else [])
    monkeypatch.undo()
    write_graph(small(name="new"), directory)
    assert read_graph(directory).name == "new"
    assert [path.name for path in directory.parent.iterdir()] == ["g"]


def test_a_graph_that_a_killed_process_had_set_aside_gets_its_name_back(tmp_path: Path) -> None:
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    folder = graph_dir(tmp_path, "mine")
    write_graph(small(name="mine"), folder)
    hashed = graph_hash(folder)
    aside = own_name(folder, "old")
    dead = aside.with_name(aside.name.replace(f".{os.getpid()}.", f".{gone.stdout.strip()}."))
    folder.replace(dead)  # killed between the two names: there is no other copy
    assert stored_graphs(tmp_path) == ("mine",)
    assert graph_hash(graph_dir(tmp_path, "mine")) == hashed
    assert not dead.exists()
    folder.replace(dead)
    assert describe(folder).kind == "graph"  # as one that is named by its folder
    shutil.copytree(folder, dead)  # killed behind them: the new one stands, and what was set aside goes with the next
    write_graph(small(name="mine"), folder)
    shutil.copytree(folder, aside.with_name(aside.name.replace(f".{os.getpid()}.", f".{os.getppid()}.")))
    assert sorted(path.name for path in folder.parent.iterdir() if path != folder) == [
        aside.name.replace(f".{os.getpid()}.", f".{os.getppid()}.")  # of a process that still runs
    ]
