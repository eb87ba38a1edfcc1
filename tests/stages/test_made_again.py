"""Graphs of one's own, imported or drawn with other options: `ldp download NAME` makes them again, and loses none."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from graphldp.errors import ArtifactError, GraphLDPError, OptionError
from graphldp.graph import Graph
from graphldp.stages.download import StoredGraph, import_own, obtain
from graphldp.stages.files.graphs import graph_hash, read_graph, read_graph_meta, write_graph
from graphldp.stages.files.own import OwnFiles
from graphldp.stages.files.paths import graph_dir, sources_path, stored_graphs


@pytest.fixture
def files(tmp_path: Path) -> OwnFiles:
    """Two people, one link."""
    (tmp_path / "f.csv").write_text("node,x\na,1\nb,0.5\n")
    (tmp_path / "e.csv").write_text("source,target\na,b\n")
    (tmp_path / "l.csv").write_text("node,label\na,red\nb,blue\n")
    return OwnFiles(features=tmp_path / "f.csv", edges=tmp_path / "e.csv", labels=tmp_path / "l.csv")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def mine(files: OwnFiles, data: Path) -> StoredGraph:
    return import_own("mine", files, data, low=0, high=1)


def test_an_own_graph_that_is_there_is_left_alone(mine: StoredGraph, data: Path) -> None:
    stamp = (mine.path / "graph.json").stat().st_mtime_ns
    again = obtain("mine", data)
    assert (again.path, again.built, again.origin) == (mine.path, False, "already there")
    assert again.sources == mine.sources
    assert (mine.path / "graph.json").stat().st_mtime_ns == stamp


@pytest.mark.parametrize("loss", ["gone", "damaged", "forced"])
def test_an_own_graph_is_imported_again_from_the_same_files(loss: str, mine: StoredGraph, data: Path) -> None:
    before = graph_hash(mine.path)
    if loss == "gone":
        shutil.rmtree(mine.path)
    elif loss == "damaged":
        (mine.path / "edges.parquet").write_bytes(b"")
    again = obtain("mine", data, force=loss == "forced")
    assert (again.built, again.origin) == (True, "own files")
    assert graph_hash(mine.path) == before
    read_graph(mine.path)


@pytest.mark.parametrize("change", ["changed", "gone", "no record"])
def test_what_cannot_be_imported_again_is_not_replaced_and_its_loss_is_one_line(
    change: str, mine: StoredGraph, data: Path, files: OwnFiles
) -> None:
    before = graph_hash(mine.path)
    reason = {
        "changed": f"{files.features} has changed since",
        "gone": f"{files.features} is not there any more",
        "no record": "there is no record of its import",
    }[change]
    if change == "changed":
        files.features.write_text("node,x\na,0\nb,0\n")
    elif change == "gone":
        files.features.unlink()
    else:
        sources_path(data, "mine").unlink()
    again = obtain("mine", data, force=True)
    assert (again.built, again.origin) == (False, f"already there ({reason})")
    assert graph_hash(mine.path) == before
    (mine.path / "edges.parquet").write_bytes(b"")
    with pytest.raises(ArtifactError) as caught:
        obtain("mine", data, force=True)
    assert str(caught.value) == (
        f"your own graph {mine.path} is damaged and cannot be imported again as it was ({reason}); run `ldp import "
        f"mine` with its files, or `dvc checkout --force {mine.path}` if the pipeline has had it"
    )


def test_a_record_of_another_import_does_not_replace_the_graph(mine: StoredGraph, data: Path) -> None:
    """As after a `dvc checkout`, or an import that was killed between the graph and its record."""
    graph = read_graph(mine.path)
    write_graph(Graph(**{name: getattr(graph, name) for name in graph.__dataclass_fields__} | {"high": 2.0}), mine.path)
    again = obtain("mine", data, force=True)
    assert again.origin == "already there (it is not the graph that was imported)"
    assert read_graph_meta(mine.path).high == 2.0


def test_a_graph_that_a_program_wrote_is_an_own_one(data: Path) -> None:
    graph = Graph(
        name="written",
        features=sp.csr_array(np.eye(2, dtype=np.float32)),
        edges=np.array([[0], [1]], dtype=np.int32),
        self_loops=np.array([], dtype=np.int32),
        labels=np.array([0, 1], dtype=np.int32),
        classes=2,
        low=0.0,
        high=1.0,
        provenance={},
    )
    write_graph(graph, graph_dir(data, "written"))
    before = graph_hash(graph_dir(data, "written"))
    assert not obtain("written", data).built
    assert not obtain("written", data, force=True).built
    assert graph_hash(graph_dir(data, "written")) == before


@pytest.mark.parametrize("loss", ["gone", "damaged", "forced", None])
def test_a_named_variant_is_made_again_with_its_options(loss: str | None, data: Path) -> None:
    first = obtain("synthetic", data, settings={"nodes": 90, "seed": 3}, name="drawn")
    before = graph_hash(first.path)
    if loss == "gone":
        shutil.rmtree(first.path)
    elif loss == "damaged":
        (first.path / "graph.json").write_bytes(b"{")
    again = obtain("drawn", data, force=loss == "forced")
    assert (again.path, again.built) == (first.path, loss is not None)
    assert graph_hash(first.path) == before
    assert again.summary()["made_from"] == "synthetic, nodes=90, seed=3"
    with pytest.raises(OptionError, match=r"holds synthetic with .*nodes=90, .*add --force to replace it"):
        obtain("drawn", data, settings={"nodes": 91})
    assert read_graph(obtain("drawn", data, settings={"nodes": 91}, force=True).path).nodes == 91


def test_without_settings_a_registered_name_keeps_its_options_too(data: Path) -> None:
    first = obtain("synthetic", data, settings={"nodes": 90})
    before = graph_hash(first.path)
    assert not obtain("synthetic", data).built
    assert obtain("synthetic", data, force=True).built
    assert graph_hash(first.path) == before
    shutil.rmtree(first.path)  # then there are none to keep
    assert read_graph(obtain("synthetic", data).path).nodes == 1000


def test_own_names_are_suggested_whatever_their_case(mine: StoredGraph, data: Path) -> None:
    obtain("synthetic", data, settings={"nodes": 200}, name="Drawn")
    assert stored_graphs(data) == ("Drawn", "mine")
    for name, near in (("mien", "mine"), ("MINE", "mine"), ("drawn", "Drawn"), ("CORA", "cora")):
        with pytest.raises(
            OptionError, match=rf"unknown dataset '{name}'; did you mean '{near}'\? Valid: Drawn, .*, mine,"
        ):
            obtain(name, data)
        with pytest.raises(GraphLDPError, match=rf"unknown graph '{name}'; did you mean '{near}'\?"):
            read_graph(graph_dir(data, name))


def test_a_graph_that_can_be_made_is_offered_by_its_command(mine: StoredGraph, data: Path) -> None:
    shutil.rmtree(mine.path)
    for name in ("mine", "facebook"):
        with pytest.raises(ArtifactError, match=f"does not exist; make it with `ldp download {name}`"):
            read_graph(graph_dir(data, name))


def test_options_that_an_own_graph_does_not_have_are_refused(mine: StoredGraph, data: Path) -> None:
    with pytest.raises(OptionError, match="mine is your own graph and has no options, got low"):
        obtain("mine", data, settings={"low": 0})
    with pytest.raises(OptionError, match="--name goes with a registered dataset; mine is a graph that has its name"):
        obtain("mine", data, name="yours")
