"""The loaders of PyG read their real raw formats here, small; ogb's is stood in for, reading ogb's raw files."""

from __future__ import annotations

import gzip
import io
import json
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from graphldp.errors import DownloadError, MissingExtraError, OptionError
from graphldp.stages.download import obtain, unexpected
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


def ppi(raw: Path) -> None:
    for number, split in enumerate(("train", "valid", "test")):
        links = [{"source": 0, "target": 1}, {"source": 1, "target": 0}, {"source": 2, "target": 3}]
        graph = {"directed": False, "multigraph": False, "graph": {}, "nodes": [{"id": i} for i in range(4)]}
        (raw / f"{split}_graph.json").write_text(json.dumps(graph | {"links": links}))
        np.save(raw / f"{split}_feats.npy", np.full((4, 2), number - 0.5))
        np.save(raw / f"{split}_labels.npy", np.array([[0, 1], [1, 1], [0, 0], [number, 0]]))
        np.save(raw / f"{split}_graph_id.npy", np.array([7, 7, 8, 8]))


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


def test_ppi_through_pyg_joins_its_graphs_and_takes_one_function(tmp_path: Path) -> None:
    (tmp_path / "raw/loaders/ppi/raw").mkdir(parents=True)
    ppi(tmp_path / "raw/loaders/ppi/raw")
    graph = read_graph(obtain("ppi", tmp_path, settings={"label": 0}).path)
    assert graph.edges.T.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11]]
    assert graph.labels.tolist() == [0, 1, 0, 0, 0, 1, 0, 1, 0, 1, 0, 2]
    assert graph.features[:, [0]].toarray().ravel().tolist() == [-0.5] * 4 + [0.5] * 4 + [1.5] * 4
    second = read_graph(obtain("ppi", tmp_path, settings={"label": 1}, name="ppi-1").path)
    assert second.labels.tolist() == [1, 1, 0, 0] * 3
    with pytest.raises(OptionError, match=r"label must be in 0\.\.1, got 2"):
        obtain("ppi", tmp_path, settings={"label": 2}, name="ppi-2")


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
