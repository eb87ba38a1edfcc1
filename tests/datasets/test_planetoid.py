from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import python2_pickles as old
import scipy.sparse as sp

from graphldp.datasets import spec
from graphldp.datasets.build import parse
from graphldp.datasets.options import NoOptions, ValueRange
from graphldp.datasets.pickles import load_array
from graphldp.errors import DataError, OptionError
from graphldp.graph import Graph


def one_hot(labels: list[int]) -> np.ndarray:
    return np.eye(3, dtype="<i4")[labels]


def files(name: str = "citeseer", **changes: bytes) -> dict[str, bytes]:
    """Nodes 0..2 are in allx; 6, 4, 3 are the test rows in this order; node 5 is described by no block."""
    allx = sp.csr_array(np.array([[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0]], dtype="<f4"))
    tx = sp.csr_array(np.array([[0, 0, 0, 0.5], [0, 0, 1, 0], [0, 0, 1, 2]], dtype="<f4"))
    graph = {0: [1, 2, 1], 1: [0], 2: [0, 2], 3: [4], 4: [3], 6: [0]}
    parts = {
        "allx": old.whole(old.sparse(allx)),
        "tx": old.whole(old.sparse(tx)),
        "ally": old.whole(old.array(one_hot([0, 1, 2]))),
        "ty": old.whole(old.array(one_hot([2, 1, 0]))),
        "graph": old.whole(old.adjacency(graph)),
        "test.index": b"6\n4\n3\n",
    }
    return {f"ind.{name}.{part}": content for part, content in (parts | changes).items()}


def dense(graph: Graph) -> list[list[float]]:
    return graph.features.toarray().tolist()


def test_rows_of_the_test_block_go_to_the_ids_that_its_index_lists() -> None:
    graph = parse(spec("citeseer"), files())
    assert graph.nodes == 7
    assert dense(graph)[3:] == [[0, 0, 1, 1], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0.5]]  # 2 is clamped to 1
    assert graph.labels.tolist() == [0, 1, 2, 0, 1, -1, 2]
    assert graph.classes == 3
    assert graph.edges.T.tolist() == [[0, 1], [0, 2], [0, 6], [3, 4]]
    assert graph.self_loops.tolist() == [2]
    assert (graph.low, graph.high) == (0.0, 1.0)


def test_a_row_without_a_one_is_a_node_without_a_class() -> None:
    rows = one_hot([0, 1, 2])
    rows[1] = 0
    assert parse(spec("citeseer"), files(ally=old.whole(old.array(rows)))).labels[:3].tolist() == [0, -1, 2]


def test_pubmed_is_clamped_to_the_range_that_its_options_declare() -> None:
    assert dense(parse(spec("pubmed"), files("pubmed")))[3] == [0, 0, 1, 1.5]
    wide = parse(spec("pubmed"), files("pubmed"), options=ValueRange(low=-1, high=3))
    assert dense(wide)[3] == [0, 0, 1, 2]
    assert (wide.low, wide.high) == (-1, 3)
    with pytest.raises(OptionError, match="pubmed takes ValueRange, got NoOptions"):
        parse(spec("pubmed"), files("pubmed"), options=NoOptions())


def test_cora_comes_in_canonical_order_whatever_the_order_of_its_test_rows() -> None:
    shuffled = files("cora")
    rows = np.array([[0, 0, 1, 2], [0, 0, 0, 0.5], [0, 0, 1, 0]], dtype="<f4")
    shuffled["ind.cora.test.index"] = b"3\n6\n4\n"
    shuffled["ind.cora.tx"] = old.whole(old.sparse(sp.csr_array(rows)))
    shuffled["ind.cora.ty"] = old.whole(old.array(one_hot([0, 2, 1])))
    first, second = parse(spec("cora"), files("cora")), parse(spec("cora"), shuffled)
    assert dense(first) == dense(second)
    assert np.array_equal(first.edges, second.edges)
    assert np.array_equal(first.labels, second.labels)


class Malicious:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch owned",)


def test_a_pickle_that_asks_for_anything_else_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"ind.citeseer.ally: the pickle asks for posix.system"):
        parse(spec("citeseer"), files(ally=pickle.dumps(Malicious(), protocol=2)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["eval", "getattr", "__import__", "exec"])
def test_no_builtin_but_list_is_admitted(name: str) -> None:
    with pytest.raises(DataError, match=f"asks for __builtin__.{name}"):
        load_array(old.whole(f"c__builtin__\n{name}\n".encode()), "x")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"allx": b"\x80\x02junk"}, "ind.citeseer.allx: not a readable pickle"),
        ({"allx": b""}, "ind.citeseer.allx: not a readable pickle"),
        ({"allx": old.whole(old.array(np.zeros(3)))}, "expected a sparse matrix"),
        ({"ty": old.whole(old.adjacency({}))}, "expected an array"),
        ({"graph": old.whole(old.array(np.zeros(3)))}, "expected a dictionary"),
        ({"test.index": b"6\n4\n"}, "do not fit each other"),
        ({"test.index": b"6\n4\n4\n"}, "do not fit each other"),
        ({"test.index": b"6\n4\n1\n"}, "a test node lies among the first 3 nodes"),
        ({"graph": old.whole(old.adjacency({0: [9]}))}, r"an edge names a node outside 0\.\.6"),
    ],
)
def test_blocks_that_do_not_fit_are_one_line(changes: dict[str, bytes], message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        parse(spec("citeseer"), files(**changes))
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named() -> None:
    some = files()
    del some["ind.citeseer.tx"]
    with pytest.raises(DataError, match=r"one file ending in '\.tx'"):
        parse(spec("citeseer"), some)
