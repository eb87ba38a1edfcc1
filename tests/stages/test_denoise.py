"""Stage denoise: estimates that are right on average, for the reports that were asked for, and the dense embedding."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cell_factory import NAME, SMALL, calibrate, cell_of, files, small_graph, small_params, store
from numpy.typing import NDArray

from graphldp.client import protocol
from graphldp.errors import ArtifactError, OptionError
from graphldp.graph import Graph
from graphldp.server import rectify
from graphldp.stages.denoise import denoise, make_command, materialize
from graphldp.stages.files.answers import AnswersFile
from graphldp.stages.files.artifacts import file_hash, read_meta, read_table
from graphldp.stages.files.graphs import read_graph, write_graph
from graphldp.stages.files.paths import calibrated_path, graph_dir, reports_path
from graphldp.stages.files.reports import CalibratedFile
from graphldp.stages.grids.cell import Cell
from graphldp.stages.perturb import perturb_graph

MAKE = "ldp denoise"
STEPS = (0, 2, 4)
STANDARD_ERRORS = 5.0  # four times 66 sums: a false alarm is below 1 in 5000


@pytest.fixture
def data(tmp_path: Path) -> Path:
    store(tmp_path / "data")
    perturb_graph(Cell(dataset=NAME, mechanism="mb", epsilon=1.0), data=tmp_path / "data", seeds=(0, 1, -1))
    return tmp_path / "data"


def run(data: Path, method: str = "lpgnn", mechanism: str | None = None, epsilon: float = 1.0, **options: Any) -> Path:
    given = {"method": method, "mechanism": mechanism, "epsilon": epsilon, "data": data, "steps": STEPS, **options}
    cell, others = cell_of({"dataset": NAME, **given})
    return denoise(cell, **others)


# estimates ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mechanism", "epsilon"), [("mb", 1.0), ("mb", 8.0), ("pm", 2.0), ("lp", 20.0)])
def test_estimates_are_right_on_average(mechanism: str, epsilon: float, tmp_path: Path) -> None:
    graph = store(tmp_path, nodes=40)
    x = graph.features.toarray().astype(np.float64)
    seeds = range(150)
    perturb_graph(Cell(dataset=NAME, mechanism=mechanism, epsilon=epsilon), data=tmp_path, seeds=seeds)
    file = CalibratedFile(run(tmp_path, "lpgnn", mechanism, epsilon), MAKE)
    error = sum(file.load(seed).dense() - x for seed in seeds)
    device = protocol(mechanism, epsilon, graph.dimensions, graph.low, graph.high)
    variance = len(seeds) * device.variance(x)
    # Sums that are long enough to be normal: each dimension, each node, zeros and ones apart.
    errors = [*error.sum(axis=0), *error.sum(axis=1), error[x == 0].sum(), error[x == 1].sum()]
    variances = [*variance.sum(axis=0), *variance.sum(axis=1), variance[x == 0].sum(), variance[x == 1].sum()]
    assert np.abs(np.array(errors) / np.sqrt(variances)).max() < STANDARD_ERRORS


def test_estimates_are_the_rectified_reports(data: Path) -> None:
    file = CalibratedFile(run(data), MAKE)
    reports = AnswersFile(reports_path(data, NAME, "mb", 1.0), "ldp perturb")
    for seed in (0, 1, -1):
        np.testing.assert_array_equal(file.load(seed).dense(), rectify(reports.load(seed)).dense())
    assert file.load(0).fill == 0.5


def test_the_ceiling_is_the_data(data: Path) -> None:
    perturb_graph(Cell(dataset=NAME, mechanism="identity", epsilon=math.inf), data=data, seeds=(0, 1))
    file = CalibratedFile(run(data, "nonpriv", epsilon=math.inf), MAKE)
    for seed in (0, 1, 5):
        np.testing.assert_array_equal(file.load(seed).dense(), read_graph(graph_dir(data, NAME)).features.toarray())


# what is written ------------------------------------------------------------------------------------------------------


def test_metadata_go_on_and_say_which_filters_are_meant(data: Path) -> None:
    path = run(data)
    assert path == calibrated_path(data, NAME, "lpgnn", 1.0)
    reports = reports_path(data, NAME, "mb", 1.0)
    before, meta = read_meta(reports, "ldp perturb"), read_meta(path, MAKE)
    for key in (
        "dataset",
        "mechanism",
        "epsilon",
        "epsilon_exact",
        "delta",
        "m",
        "claim",
        "seeds",
        "nodes_hash",
        "random",
    ):
        assert meta[key] == before[key], key
    assert (meta["kind"], meta["method"], meta["name"]) == ("calibrated", "lpgnn", "lpgnn")
    assert meta["steps"] == list(STEPS)
    assert len(meta["filters"]) == len(STEPS)
    assert meta["reports"] == file_hash(reports)


def test_a_method_that_does_not_filter_has_one_depth(data: Path) -> None:
    assert read_meta(run(data, "base"), MAKE)["steps"] == [0]


def test_another_mechanism_has_a_row_of_its_own(data: Path) -> None:
    perturb_graph(Cell(dataset=NAME, mechanism="pm", epsilon=1.0), data=data, seeds=(0,))
    path = run(data, "lpgnn", "pm")
    assert path == calibrated_path(data, NAME, "lpgnn-pm", 1.0)
    assert read_meta(path, MAKE)["name"] == "lpgnn-pm"


def test_again_is_byte_for_byte(data: Path, tmp_path: Path) -> None:
    one, two = run(data), run(data, output=tmp_path / "two.parquet")
    assert one.read_bytes() == two.read_bytes()


def test_a_stop_leaves_nothing(data: Path) -> None:
    before = files(data)

    def stop(done: int, total: int, text: str) -> None:
        assert (total, text) == (3, "mb at epsilon 1")
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(data, progress=stop)
    assert files(data) == before


# what is refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"epsilon": 2.0}, "has epsilon 1 where 2 was asked for; say --epsilon 1"),
        ({"mechanism": "pm"}, "has mechanism mb where pm was asked for; say --mechanism mb"),
        ({"dataset": "cora"}, "graphs/cora/graph.json does not exist"),
        ({"method": "structure", "epsilon": 0.0}, "has mechanism mb where null was asked for"),
        ({"method": "nonpriv", "epsilon": math.inf}, "has mechanism mb where identity was asked for"),
    ],
)
def test_reports_of_something_else_are_refused(given: dict[str, Any], words: str, data: Path) -> None:
    before = files(data)
    options = {"dataset": NAME, "method": "lpgnn", "mechanism": None, "epsilon": 1.0, **given}
    path = reports_path(data, NAME, "mb", 1.0)
    with pytest.raises(ArtifactError) as error:
        denoise(cell_of(options)[0], data=data, steps=STEPS, reports=path)
    assert words in str(error.value)
    assert "\n" not in str(error.value)
    assert files(data) == before


def test_what_is_no_reports_artifact_is_refused(data: Path) -> None:
    for path in (run(data), data / "graphs" / NAME / "edges.parquet", data / "graphs" / NAME / "graph.json"):
        with pytest.raises(ArtifactError, match="ldp perturb --dataset synthetic --mechanism mb --epsilon 1") as error:
            run(data, reports=path)
        assert "\n" not in str(error.value)


def test_reports_that_are_not_there_say_how_to_make_them(data: Path) -> None:
    command = "ldp perturb --dataset synthetic --mechanism mb --epsilon 3"
    with pytest.raises(ArtifactError, match=f"does not exist; make it with `{command}`"):
        run(data, epsilon=3.0)


@pytest.mark.parametrize(
    ("method", "mechanism", "words"),
    [
        ("majority", None, "method 'majority' sends nothing, so there is nothing to denoise"),
        ("lpgn", None, "unknown method 'lpgn'; did you mean 'lpgnn'?"),
        ("structure", "mb", "method 'structure' means mechanism null, got 'mb'"),
    ],
)
def test_methods_that_cannot_be(method: str, mechanism: str | None, words: str, data: Path) -> None:
    with pytest.raises(OptionError) as error:
        run(data, method, mechanism)
    assert words in str(error.value)


def test_the_command_that_makes_it() -> None:
    command = make_command("cora", "lpgnn", "pm", 0.1)
    assert command == "ldp denoise --dataset cora --method lpgnn --mechanism pm --epsilon 0.1"


# the dense embedding --------------------------------------------------------------------------------------------------


def dense_formula(graph: Graph, x: NDArray[np.float32], steps: int) -> NDArray[np.float64]:
    """Return (D^-1/2 A D^-1/2)^K X, the slow way."""
    adjacency = graph.adjacency().toarray().astype(np.float64)
    degree = adjacency.sum(axis=1)
    scale = np.divide(1.0, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
    out = x.astype(np.float64)
    for _ in range(steps):
        out = (scale[:, None] * adjacency * scale) @ out
    return out


@pytest.mark.parametrize("steps", [0, 1, 4])
@pytest.mark.parametrize(("mechanism", "epsilon"), [("mb", 1.0), ("lp", 1.0)])
def test_the_embedding_is_the_dense_formula(mechanism: str, epsilon: float, steps: int, tmp_path: Path) -> None:
    graph = store(tmp_path, degree=2.0)  # some nodes have no neighbour
    assert (graph.adjacency().sum(axis=1) == 0).any()
    path = calibrate(tmp_path, small_params(steps=(steps,)), "lpgnn", mechanism, epsilon)
    materialize(path, data=tmp_path, seed=1, output=tmp_path / "e.parquet")
    table = read_table(tmp_path / "e.parquet", MAKE)
    assert table.column_names == ["node", *(f"f{j}" for j in range(SMALL["dimensions"]))]
    assert table["node"].to_pylist() == list(range(SMALL["nodes"]))
    found = np.stack([table[f"f{j}"].to_numpy() for j in range(SMALL["dimensions"])], axis=1)
    assert found.dtype == np.float32
    expected = dense_formula(graph, CalibratedFile(path, MAKE).load(1).dense(), steps)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
    meta = read_meta(tmp_path / "e.parquet", MAKE)
    assert (meta["kind"], meta["steps"], meta["seed"], meta["mechanism"]) == ("embedding", steps, 1, mechanism)


def test_an_open_depth_has_to_be_chosen(data: Path, tmp_path: Path) -> None:
    output = tmp_path / "e.parquet"
    with pytest.raises(OptionError, match="the filter's depth is open: choose --steps from"):
        materialize(run(data), data=data, output=output)
    assert not output.exists()
    materialize(run(data), data=data, steps=4, output=output)
    assert read_meta(output, MAKE)["steps"] == 4


def test_an_embedding_that_would_not_fit_is_refused(data: Path, tmp_path: Path) -> None:
    path, output = run(data, steps=(2,)), tmp_path / "e.parquet"
    need = 2 * 4 * SMALL["nodes"] * SMALL["dimensions"]
    with pytest.raises(
        OptionError, match=r"needs 1\.73e-05 GB, the limit is 1\.73e-05 GB; raise it with --max-memory, or train"
    ):
        materialize(path, data=data, output=output, max_memory=need - 1)
    assert not output.exists()
    materialize(path, data=data, output=output, max_memory=need)


def test_a_graph_of_other_nodes_is_refused(data: Path, tmp_path: Path) -> None:
    path = run(data, steps=(2,))
    store(data, nodes=60)
    with pytest.raises(ArtifactError, match="holds reports of other nodes than the graph synthetic has"):
        materialize(path, data=data, output=tmp_path / "e.parquet")
    assert not (tmp_path / "e.parquet").exists()


def test_only_estimates_become_an_embedding(data: Path, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="has kind 'reports' where 'calibrated' was asked for"):
        materialize(reports_path(data, NAME, "mb", 1.0), data=data, output=tmp_path / "e.parquet")
    with pytest.raises(ArtifactError, match=r"has seeds \[0, 1, -1\], not 7"):
        materialize(run(data), data=data, steps=0, seed=7, output=tmp_path / "e.parquet")


@pytest.mark.parametrize("value", ["x", None, True, [], {}, -1, math.nan], ids=repr)
@pytest.mark.parametrize("option", ["filter", "before", "after", "convolution", "normalization", "shrinkage", "decay"])
def test_a_part_of_the_calibration_of_a_wrong_kind_is_one_line(option: str, value: Any, data: Path) -> None:
    """`--set method.KEY=VALUE` brings whatever JSON can say."""
    before = files(data)
    changes = {option: value} if option != "decay" else {"filter": "ppr", "decay": value}
    with pytest.raises(OptionError, match=option) as error:
        run(data, changes=changes)
    assert "\n" not in str(error.value)
    assert files(data) == before


def test_reports_of_the_graph_that_stood_here_before_are_refused(tmp_path: Path) -> None:
    """Its people and its dimensions are the same; what they have is not."""
    store(tmp_path)
    perturb_graph(Cell(dataset=NAME, mechanism="mb", epsilon=1.0), data=tmp_path, seeds=[0, 1, 2, -1, -2])
    graph = small_graph()
    write_graph(dataclasses.replace(graph, features=graph.features[::-1].tocsr()), graph_dir(tmp_path, NAME))
    before = files(tmp_path)
    with pytest.raises(
        ArtifactError, match="was made from another graph than the synthetic that is there now"
    ) as error:
        denoise(Cell(dataset=NAME, method="lpgnn", epsilon=1.0), data=tmp_path, steps=STEPS)
    assert str(error.value).endswith("--mechanism mb --epsilon 1 --seeds 3 --search-seeds 2`")  # as many as there were
    assert files(tmp_path) == before
    perturb_graph(Cell(dataset=NAME, mechanism="mb", epsilon=1.0), data=tmp_path, seeds=[0, 1, 2, -1, -2])
    denoise(Cell(dataset=NAME, method="lpgnn", epsilon=1.0), data=tmp_path, steps=STEPS)
