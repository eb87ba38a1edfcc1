"""The loaders of PyG read their real raw formats here, small; ogb's is stood in for, reading ogb's raw files."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import sys
import types
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from graphldp.errors import DataError, DownloadError, MissingExtraError, OptionError
from graphldp.stages.download import obtain, unexpected
from graphldp.stages.files import loaders
from graphldp.stages.files.fetch import FetchOptions
from graphldp.stages.files.graphs import read_graph, read_graph_meta


def flickr(raw: Path) -> None:
    adjacency = sp.csr_matrix(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=bool))
    parts = {part: getattr(adjacency, part) for part in ("data", "indices", "indptr", "shape")}
    np.savez(raw / "adj_full.npz", **parts)
    np.save(raw / "feats.npy", np.array([[0.0, 1.0], [3.0, 0.0], [0.0, 0.0]]))
    (raw / "class_map.json").write_text('{"0": 1, "2": 0}')
    (raw / "role.json").write_text('{"tr": [0], "va": [1], "te": [2]}')


def reddit(raw: Path) -> None:
    facts = {"feature": np.array([[0.5, -9.0], [0.0, 1.0]]), "label": np.array([1, 0]), "node_types": np.array([1, 3])}
    np.savez(raw / "reddit_data.npz", **facts)
    sp.save_npz(raw / "reddit_graph.npz", sp.coo_matrix(np.array([[0, 1], [1, 0]])))


def ppi_files() -> dict[str, bytes]:
    """The files of a small PPI: in each part four proteins in two graphs, a link between these, and one told twice."""
    files = {}
    for number, part in enumerate(("train", "valid", "test")):
        ends = [(0, 1), (1, 0), (2, 3), (1, 2), (3, 3)]
        links = [{"source": one, "target": other} for one, other in ends]
        graph = {"directed": False, "multigraph": False, "graph": {}, "nodes": [{"id": i} for i in range(4)]}
        files[f"{part}_graph.json"] = json.dumps(graph | {"links": links}).encode()
        arrays = {
            "feats": np.full((4, 2), 4.0 * number - 0.5),
            "labels": np.array([[0, 1, 0], [1, 1, 0], [0, 0, 0], [number % 2, 0, 1]]),
            "graph_id": np.array([7, 7, 8, 8]),
        }
        for name, values in arrays.items():
            out = io.BytesIO()
            np.save(out, values)
            files[f"{part}_{name}.npy"] = out.getvalue()
    return files


def ppi_mirror(folder: Path, files: dict[str, bytes]) -> FetchOptions:
    place = folder / "loaders" / "ppi"
    place.mkdir(parents=True)
    with zipfile.ZipFile(place / "ppi.zip", "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return FetchOptions(mirror=str(folder))


def test_flickr_through_pyg(tmp_path: Path) -> None:
    (tmp_path / "raw/loaders/flickr/raw").mkdir(parents=True)
    flickr(tmp_path / "raw/loaders/flickr/raw")
    got = obtain("flickr", tmp_path)
    graph = read_graph(got.path)
    assert graph.edges.T.tolist() == [[0, 1], [1, 2]]
    assert graph.features.toarray().tolist() == [[0, 1], [1, 0], [0, 0]]  # 3 is clamped to the declared 1
    assert graph.labels.tolist() == [1, -1, 0]
    assert got.origin == "PyG's loader"
    assert [Path(source["file"]).name for source in got.sources] == [
        "adj_full.npz", "class_map.json", "feats.npy", "role.json",
    ]  # fmt: skip
    assert not (tmp_path / "raw/loaders/flickr/processed").exists()
    wide = obtain("flickr", tmp_path, settings={"high": 4}, name="flickr-4")
    assert read_graph(wide.path).features.max() == 3
    assert "nodes: 3 where 89,250 were expected" in unexpected(read_graph_meta(got.path))


def test_reddit_through_pyg(tmp_path: Path) -> None:
    (tmp_path / "raw/loaders/reddit/raw").mkdir(parents=True)
    reddit(tmp_path / "raw/loaders/reddit/raw")
    graph = read_graph(obtain("reddit", tmp_path).path)
    assert graph.edges.T.tolist() == [[0, 1]]
    assert graph.features.toarray().tolist() == [[0.5, -5], [0, 1]]
    assert graph.labels.tolist() == [1, 0]


def test_ppi_from_a_mirror_joins_its_graphs_and_keeps_sets_and_parts(tmp_path: Path) -> None:
    files = ppi_files()
    fetching = ppi_mirror(tmp_path / "mirror", files)
    got = obtain("ppi", tmp_path, fetching=fetching)
    graph = read_graph(got.path)
    assert graph.edges.T.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11]]
    assert graph.self_loops.tolist() == [3, 7, 11]
    assert graph.features[:, [0]].toarray().ravel().tolist() == [-0.5] * 4 + [3.5] * 4 + [5.0] * 4  # 7.5 is clamped
    assert graph.label_sets is not None
    assert graph.parts is not None
    assert graph.label_sets.astype(int).tolist() == [
        row for number in range(3) for row in ([0, 1, 0], [1, 1, 0], [0, 0, 0], [number % 2, 0, 1])
    ]
    assert graph.parts.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert (graph.classes, set(graph.labels.tolist())) == (0, {-1})
    assert read_graph_meta(got.path).label_set == 3
    # Nothing is pinned: the record has the hash of what was read, and the archive is gone.
    assert {Path(one["file"]).name: one["sha256"] for one in got.sources} == {
        name: hashlib.sha256(content).hexdigest() for name, content in files.items()
    }
    assert not list((tmp_path / "raw").rglob("*.zip"))
    again = obtain("ppi", tmp_path, force=True, fetching=FetchOptions(mirror=None, github="unused"))
    assert read_graph(again.path).content_hash() == graph.content_hash()  # from the files that are there


def test_ppi_with_one_of_its_labels_as_the_class(tmp_path: Path) -> None:
    fetching = ppi_mirror(tmp_path / "mirror", ppi_files())
    for label, expected in ((0, [0, 1, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0]), (1, [1, 1, 0, 0] * 3)):
        got = obtain("ppi", tmp_path, settings={"label": label}, name=f"ppi-{label}", fetching=fetching)
        graph = read_graph(got.path)
        assert graph.labels.tolist() == expected
        assert graph.label_sets is None
    with pytest.raises(OptionError, match=r"label must be in 0\.\.2, or -1 for a set of all, got 3"):
        obtain("ppi", tmp_path, settings={"label": 3}, name="ppi-3", fetching=fetching)


def broken(name: str, content: bytes | None) -> dict[str, bytes]:
    files = ppi_files()
    return {key: value for key, value in files.items() if key != name} | ({name: content} if content else {})


def array(values: object) -> bytes:
    out = io.BytesIO()
    np.save(out, np.array(values))
    return out.getvalue()


NODES = [{"id": i} for i in range(4)]
BROKEN_PPI = {
    "no file": (broken("test_feats.npy", None), "ppi.zip does not hold PPI's files ('test_feats.npy')"),
    "no JSON": (broken("train_graph.json", b"{"), "train: a file is no PPI file"),
    "no links": (broken("train_graph.json", json.dumps({"nodes": NODES}).encode()), "train: 'links' is missing"),
    "a link to nobody": (
        broken("train_graph.json", json.dumps({"nodes": NODES, "links": [{"source": 0, "target": 4}]}).encode()),
        "train: a link names a node outside 0..3",
    ),
    "a node twice": (
        broken("valid_graph.json", json.dumps({"nodes": [*NODES[:3], NODES[0]], "links": []}).encode()),
        "the nodes of valid_graph.json must be 0..3, each once",
    ),
    "labels of others": (broken("valid_labels.npy", array([[0, 1, 0]])), "valid: 4 nodes need as many rows"),
    "labels above 1": (broken("valid_labels.npy", array([[0, 1, 2]] * 4)), "labels must each be 0 or 1"),
    "another width": (broken("valid_labels.npy", array([[0, 1]] * 4)), "differ in how many features or labels"),
    "an archive that is none": ({}, "ppi.zip does not hold PPI's files"),
}


@pytest.mark.parametrize("case", BROKEN_PPI)
def test_ppi_files_that_are_wrong_are_one_line(case: str, tmp_path: Path) -> None:
    files, message = BROKEN_PPI[case]
    fetching = ppi_mirror(tmp_path / "mirror", files)
    if not files:
        (tmp_path / "mirror/loaders/ppi/ppi.zip").write_bytes(b"no archive")
    with pytest.raises((DataError, DownloadError)) as caught:
        obtain("ppi", tmp_path, fetching=fetching)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "graphs").exists()


def test_ppi_without_a_source_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loaders, "_PPI_ADDRESS", "http://127.0.0.1:9/ppi.zip")
    with pytest.raises(DownloadError, match=r"cannot get ppi\.zip: .*: not there; .*LDP_MIRROR .*loaders/ppi/ppi\.zip"):
        obtain("ppi", tmp_path, fetching=FetchOptions(mirror=str(tmp_path / "empty"), sleep=lambda _: None))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def arxiv_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    class NodePropPredDataset:
        """Reads the raw files that ogb's own loader reads, and leaves the cache that ogb's leaves."""

        def __init__(self, name: str, root: str) -> None:
            folder = Path(root) / "ogbn_arxiv"
            assert name == "ogbn-arxiv"
            assert not (folder / "processed" / "data_processed").exists()
            raw = folder / "raw"
            read = {}
            for part in ("edge", "node-feat", "node-label"):
                text = gzip.decompress((raw / f"{part}.csv.gz").read_bytes())
                read[part] = np.loadtxt(io.BytesIO(text), delimiter=",", ndmin=2)
            (folder / "processed").mkdir(exist_ok=True)
            (folder / "processed" / "data_processed").write_bytes(b"pickle")
            graph = {"edge_index": read["edge"].T.astype(np.int64), "node_feat": read["node-feat"].astype(np.float32)}
            self.item = graph | {"num_nodes": len(read["node-feat"])}, read["node-label"].astype(np.int64)
            print("Saving...")

        def __getitem__(self, index: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
            return self.item

    package, part = types.ModuleType("ogb"), types.ModuleType("ogb.nodeproppred")
    part.NodePropPredDataset = NodePropPredDataset  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ogb", package)
    monkeypatch.setitem(sys.modules, "ogb.nodeproppred", part)


def test_arxiv_through_ogb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    arxiv_stand_in(monkeypatch)
    raw = tmp_path / "raw/loaders/ogbn-arxiv/ogbn_arxiv/raw"
    raw.mkdir(parents=True)
    for part, text in (("edge", "0,1\n2,0\n"), ("node-feat", "0.5,-3\n0,1\n0,0\n"), ("node-label", "4\n0\n2\n")):
        (raw / f"{part}.csv.gz").write_bytes(gzip.compress(text.encode()))
    for name in ("ogbn-arxiv", "again"):
        # A cache from an earlier run of ogb must not be in the way.
        (raw.parent / "processed").mkdir(exist_ok=True)
        (raw.parent / "processed" / "data_processed").write_bytes(b"stale")
        got = obtain("ogbn-arxiv", tmp_path, name=name)
        graph = read_graph(got.path)
        assert graph.edges.T.tolist() == [[0, 1], [0, 2]]
        assert graph.features.toarray().tolist() == [[0.5, -2], [0, 1], [0, 0]]
        assert graph.labels.tolist() == [4, 0, 2]
        assert graph.classes == 5
        assert len(got.sources) == 3
    assert capsys.readouterr().out == ""


def test_without_ogb_one_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ogb", None)
    monkeypatch.setitem(sys.modules, "ogb.nodeproppred", None)
    with pytest.raises(MissingExtraError, match=r"^ogbn-arxiv needs ogb, .*; run: pip install ogb$"):
        obtain("ogbn-arxiv", tmp_path)
    assert not (tmp_path / "graphs").exists()


def test_a_loader_that_fails_is_one_line_and_leaves_no_folder_that_looks_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: object) -> None:
        Path(self.raw_dir, "half").write_bytes(b"x")  # type: ignore[attr-defined]
        raise OSError("two\nlines")

    monkeypatch.setattr("torch_geometric.datasets.Reddit.download", fail)
    with pytest.raises(DownloadError, match=r"^the loader of reddit failed \(two lines\)\. Check the network[^\n]*$"):
        obtain("reddit", tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
