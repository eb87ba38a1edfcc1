"""Reports and Calibrated artifacts: what stands in the file is what left the devices."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from cell_factory import NAME, SMALL, files, store

from graphldp import client
from graphldp.client import Reports, protocol
from graphldp.errors import ArtifactError
from graphldp.experiment.addresses import source_of
from graphldp.experiment.options import report_seeds
from graphldp.randomness import generator
from graphldp.server import rectify
from graphldp.stages.files.answers import AnswersFile
from graphldp.stages.files.reports import CARRIED, CalibratedFile, write_calibrated, write_reports
from graphldp.stages.grids.cell import Cell
from graphldp.stages.perturb import perturb_graph

MAKE = "ldp perturb --dataset synthetic"
BUDGETS = {"identity": math.inf, "null": 0.0}
FACTS = {
    **{**dict.fromkeys(CARRIED, 0), "kind": "reports", "deterministic": False, "random": {"reproducible": True}},
    **{"claim": {"epsilon": 0.0}, "ledger": [], "seeds": [0]},
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    store(folder)
    return folder


def reports(data: Path, mechanism: str, epsilon: float = 1.0, seeds: tuple[int, ...] = (0, 1, -1), **options) -> Path:
    return perturb_graph(
        Cell(dataset=NAME, mechanism=mechanism, epsilon=epsilon, options=options), data=data, seeds=seeds
    )


def schema(path: Path) -> dict[str, str]:
    return {field.name: str(field.type) for field in pq.read_schema(path)}


def test_signs_are_bytes_beside_their_dimensions(data: Path) -> None:
    path = reports(data, "mb", 4.0, m=3)
    assert schema(path) == {
        "seed": "int32",
        "node": "int32",
        "index": "fixed_size_list<element: int32 not null>[3]",
        "value": "fixed_size_list<element: int8 not null>[3]",
    }
    table = pq.read_table(path)
    assert table["seed"].to_pylist() == [seed for seed in (0, 1, -1) for _ in range(SMALL["nodes"])]
    assert table["node"].to_pylist() == list(range(SMALL["nodes"])) * 3
    # Nothing rectified: an estimate of a value in 0..1 would be some fraction far outside.
    assert set(np.concatenate(table["value"].to_pylist()).tolist()) == {-1, 1}
    index = np.array(table["index"].to_pylist())
    assert (np.diff(index, axis=1) > 0).all()
    assert index.min() >= 0
    assert index.max() < SMALL["dimensions"]


def test_real_numbers_are_single_precision(data: Path) -> None:
    width = SMALL["dimensions"]
    assert schema(reports(data, "pm", 1.0, m=2))["value"] == "fixed_size_list<element: float not null>[2]"
    every = schema(reports(data, "lp"))
    assert every["value"] == f"fixed_size_list<element: float not null>[{width}]"
    assert "index" not in every  # all dimensions, in their order


def test_a_level_stands_beside_the_values_that_it_is_about(data: Path) -> None:
    path = reports(data, "ppm-public", seeds=(0,))
    assert schema(path)["level"] == "int32"
    table = pq.read_table(path)
    loaded = AnswersFile(path, MAKE).load(0)
    assert loaded.level is not None
    assert loaded.level.tolist() == table["level"].to_pylist()
    assert len(set(loaded.level.tolist())) > 1
    assert "level" not in schema(reports(data, "mb"))


@pytest.mark.parametrize("mechanism", [*client.names("scalar"), *client.names("vector")])
def test_what_was_sent_comes_back_as_it_was_sent(mechanism: str, data: Path) -> None:
    graph = store(data)
    epsilon = BUDGETS.get(mechanism, 1.0)
    device = protocol(mechanism, epsilon, graph.dimensions, graph.low, graph.high)
    sent = device.perturb(graph.features, source_of(0, NAME, device, -1))
    got = AnswersFile(reports(data, mechanism, epsilon), MAKE).load(-1)
    for name in ("index", "value", "level"):
        ours, theirs = getattr(sent, name), getattr(got, name)
        if ours is None:
            assert theirs is None, name
        else:
            np.testing.assert_array_equal(theirs, ours, err_msg=name)
            assert theirs.dtype == ours.dtype, name
    assert got.meta["epsilon"] == epsilon  # a number again, infinite or not
    np.testing.assert_array_equal(rectify(got).dense(), rectify(sent).dense())


def test_one_seed_is_read_alone(data: Path) -> None:
    path = reports(data, "mb")
    file = AnswersFile(path, MAKE)
    assert pq.ParquetFile(path).num_row_groups == 3
    found = {seed: file.load(seed) for seed in (1, -1, 0)}
    for seed, one in found.items():
        assert one.nodes == SMALL["nodes"]
        np.testing.assert_array_equal(one.value, file.load(seed).value)
    assert not np.array_equal(found[0].value, found[1].value)


def test_the_data_itself_are_stored_once_and_serve_every_seed(data: Path) -> None:
    path = reports(data, "identity", math.inf, seeds=(0, 1, 2, -1))
    file = AnswersFile(path, MAKE)
    assert file.meta["seeds"] == [0]
    assert pq.ParquetFile(path).num_row_groups == 1
    for seed in (0, 1, 2, -1, 17):
        np.testing.assert_array_equal(rectify(file.load(seed)).dense(), store(data).features.toarray())


@pytest.mark.parametrize(("seed", "option"), [(3, "--seeds 4"), (-2, "--search-seeds 2")])
def test_a_seed_that_is_not_there_says_how_to_get_it(seed: int, option: str, data: Path) -> None:
    path = reports(data, "mb")
    with pytest.raises(ArtifactError) as error:
        AnswersFile(path, MAKE).load(seed)
    assert str(error.value) == (
        f"{path} has seeds [0, 1, -1], not {seed}; perturb again with {option}, for example `{MAKE} {option}`"
    )


def test_seeds_of_the_search_are_not_those_of_the_final_runs() -> None:
    assert report_seeds(3, 2) == [0, 1, 2, -1, -2]
    assert report_seeds(1, 0) == [0]
    for final, search in ((3, 2), (5, 2), (3, 4)):
        assert set(range(3)) <= {seed for seed in report_seeds(final, search) if seed >= 0}
        assert {-1, -2} <= {seed for seed in report_seeds(final, search) if seed < 0}


# estimates ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mechanism", "epsilon"), [("mb", 1.0), ("lp", 1.0), ("identity", math.inf), ("ppm", 1.0)])
def test_estimates_come_back(mechanism: str, epsilon: float, data: Path, tmp_path: Path) -> None:
    file = AnswersFile(reports(data, mechanism, epsilon), MAKE)
    estimate = rectify(file.load(0))
    meta = {**file.meta, "kind": "calibrated", "fill": estimate.fill, "seeds": [0, 1]}
    write_calibrated(tmp_path / "a.parquet", ((seed, estimate) for seed in (0, 1)), meta)
    got = CalibratedFile(tmp_path / "a.parquet", "ldp denoise").load(1)
    assert got.fill == estimate.fill
    np.testing.assert_array_equal(got.dense(), estimate.dense())
    # A stored 0 is an estimate, not a coordinate that was left out.
    np.testing.assert_array_equal(got.matrix.indices, estimate.matrix.indices)


def test_a_seed_that_was_not_estimated_sends_back_to_perturb(data: Path, tmp_path: Path) -> None:
    file = AnswersFile(reports(data, "mb"), MAKE)
    meta = {**file.meta, "kind": "calibrated", "fill": 0.5, "seeds": [0]}
    path = tmp_path / "a.parquet"
    write_calibrated(path, [(0, rectify(file.load(0)))], meta)
    with pytest.raises(ArtifactError, match="perturb again with --search-seeds 1, then run `ldp denoise --dataset x`"):
        CalibratedFile(path, "ldp denoise --dataset x").load(-1)


# failures -------------------------------------------------------------------------------------------------------------


def some(count: int, error: BaseException) -> Iterator[tuple[int, Reports]]:
    for seed in range(count):
        rng = generator(0, seed)
        yield seed, Reports(value=rng.integers(0, 2, (40, 2)).astype(np.int8), index=np.tile([0, 1], (40, 1)))
    raise error


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_stop_between_two_seeds_leaves_nothing(count: int, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        write_reports(tmp_path / "a" / "b.parquet", some(count, KeyboardInterrupt()), FACTS)
    assert files(tmp_path) == []


def test_no_seed_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="there is no seed to write"):
        write_reports(tmp_path / "b.parquet", iter(()), FACTS)
    with pytest.raises(ArtifactError, match="there is no seed to write"):
        write_calibrated(tmp_path / "b.parquet", iter(()), FACTS)
    assert files(tmp_path) == []


def test_many_nodes_are_one_row_group_per_seed(tmp_path: Path) -> None:
    nodes = 2**20 + 7
    values = {seed: np.full((nodes, 1), 2 * seed - 1, np.int8) for seed in (0, 1)}
    path = tmp_path / "a.parquet"
    runs = ((seed, Reports(value=value, index=np.zeros((nodes, 1), np.int32))) for seed, value in values.items())
    write_reports(path, runs, {**FACTS, "seeds": [0, 1], "epsilon": 1.0})
    file = AnswersFile(path, MAKE)
    for seed, value in values.items():
        np.testing.assert_array_equal(file.load(seed).value, value)


def test_a_file_without_all_its_seeds_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_reports(
        path, list(zip((0,), (Reports(value=np.ones((4, 1), np.int8)),), strict=True)), {**FACTS, "seeds": [0, 1]}
    )
    with pytest.raises(ArtifactError, match=f"lacks some of its seeds; make it again with `{MAKE}`"):
        AnswersFile(path, MAKE)


@pytest.mark.parametrize("wrong", [{"claim": 0}, {"claim": {"promise": 1}}, {"epsilon": "much"}, {"ledger": 0}])
def test_metadata_that_cannot_be_read_is_an_error_of_one_line(wrong: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_reports(path, [(0, Reports(value=np.ones((4, 1), np.int8)))], {**FACTS, **wrong})
    with pytest.raises(ArtifactError, match=f"has damaged metadata .*; make it again with `{MAKE}`"):
        AnswersFile(path, MAKE)


def test_an_artifact_of_another_kind_is_refused(data: Path, tmp_path: Path) -> None:
    path = reports(data, "mb")
    with pytest.raises(ArtifactError, match="has kind 'reports' where 'calibrated' was asked for"):
        CalibratedFile(path, "ldp denoise")
    features = data / "graphs" / NAME / "features.parquet"
    with pytest.raises(ArtifactError, match="has kind 'graph-features' where 'reports' was asked for"):
        AnswersFile(features, MAKE)


def test_damage_anywhere_is_one_line_or_harmless(data: Path, tmp_path: Path) -> None:
    path = reports(data, "mb")
    whole, intact, cut = path.read_bytes(), AnswersFile(path, MAKE), tmp_path / "cut.parquet"
    refused: list[str] = []
    for start in range(0, len(whole), len(whole) // 40):
        cut.write_bytes(whole[:start] + whole[start + 50 :])
        try:
            file = AnswersFile(cut, MAKE)
            for seed in (0, 1, -1):
                np.testing.assert_array_equal(file.load(seed).value, intact.load(seed).value)
        except ArtifactError as error:
            refused.append(str(error))
    assert len(refused) >= 40
    for line in refused:
        assert "\n" not in line
        assert str(cut) in line
        assert MAKE in line


def test_an_artifact_of_another_version_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    facts = {key: value for key, value in FACTS.items() if key not in ("nodes_hash", "ledger")}
    runs = [(0, Reports(value=np.ones((4, 1), np.int8)))]
    write_reports(path, runs, {**facts, "seeds": [0], "library": "0.0.1"})
    with pytest.raises(ArtifactError, match=r"lacks nodes_hash, ledger: another version .* wrote it \(0\.0\.1\); make"):
        AnswersFile(path, MAKE)
