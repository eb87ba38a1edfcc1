"""`ldp calibration`: figures of what calibrations do, against their definitions."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
from cell_factory import NAME, files, store

from graphldp.experiment.addresses import source_of
from graphldp.experiment.devices import device_for
from graphldp.experiment.estimates import estimate_of
from graphldp.graph import Graph
from graphldp.methods import method


@pytest.fixture(autouse=True)
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Graph:
    """A folder with a graph, in which the commands run."""
    found = store(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    return found


def _energy(values: np.ndarray, adjacency: np.ndarray) -> float:
    gaps = values[:, None, :] - values[None, :, :]
    return float((adjacency[:, :, None] * gaps**2).sum() / len(values))


@pytest.mark.parametrize("name", ["lpgnn", "upgnet-nh"])
def test_it_prints_what_the_definitions_say(ldp, graph: Graph, name: str) -> None:
    answer = ldp(
        "calibration", "-d", NAME, "-e", "1,4", "--method", name, "-m", "pm", "-k", "0,3", "--seeds", 2, "--json"
    )
    assert answer.code == 0, answer.err
    rows = json.loads(answer.out)["rows"]
    assert [(row["epsilon"], row["steps"]) for row in rows] == [(1.0, 0), (1.0, 3), (4.0, 0), (4.0, 3)]
    found = rows[3]
    # By hand: dense walks with numpy, on the reports that `ldp run` would draw.
    adjacency = graph.adjacency().toarray().astype(np.float64)
    truth = graph.features.toarray().astype(np.float64)
    degree = adjacency.sum(axis=1)
    root = np.sqrt(np.where(degree > 0, degree, np.inf))
    walk = adjacency / root[:, None] / root[None, :]
    device = device_for(graph, "pm", 4.0, {})
    calibration = method(name).calibration(3, device, float(degree.mean()))

    def filtered(values: np.ndarray) -> np.ndarray:
        operator = calibration.operator(graph).toarray().astype(np.float64)
        powers = [np.linalg.matrix_power(operator, power) @ values for power in (1, 2, 3)]
        return powers[-1] if name == "lpgnn" else sum(powers) / 3

    energies, errors, reported, ratios = [], [], [], []
    for seed in (0, 1):
        reports = device.perturb(graph.features, source_of(0, NAME, device, seed))
        estimate = estimate_of(reports, calibration)
        values = estimate.deviations().toarray().astype(np.float64) + estimate.fill
        reported.append(_energy(values, adjacency))
        energies.append(_energy(filtered(values), adjacency))
        gap = filtered(values) - filtered(truth)
        errors.append(((gap**2).sum(axis=1).mean(), np.abs(gap).max(axis=1).mean()))
        powers = [np.linalg.matrix_power(walk, power) @ values for power in (1, 2, 3)]
        above = sum(_energy(sum(powers[:k]) / k, adjacency) for k in (1, 2, 3))
        ratios.append(above / sum(_energy(power, adjacency) for power in powers))
    clean = filtered(truth)
    assert found["reported"] == pytest.approx(np.mean(reported), rel=1e-4)
    assert found["energy"] == pytest.approx(np.mean(energies), rel=1e-4)
    assert found["clean"] == pytest.approx(_energy(clean, adjacency), rel=1e-4)
    assert found["phi"] == pytest.approx(np.mean(ratios), rel=1e-4)
    assert found["error"] == pytest.approx(math.sqrt(np.mean([square for square, _ in errors])), rel=1e-4)
    assert found["largest"] == pytest.approx(np.mean([largest for _, largest in errors]), rel=1e-4)
    assert found["signal"] == pytest.approx(math.sqrt(((clean - clean.mean(axis=0)) ** 2).sum(axis=1).mean()), rel=1e-4)


def test_true_features_have_no_error(ldp) -> None:
    row = json.loads(ldp("calibration", "-d", NAME, "-e", "inf", "--method", "features", "-k", 2, "--json").out)[
        "rows"
    ][0]
    assert row["error"] == 0
    assert row["energy"] == pytest.approx(row["clean"])
    assert row["rate"] == "nan"
    assert row["signal"] > 0


def test_it_shows_a_table_and_writes_every_figure(ldp) -> None:
    answer = ldp(
        "calibration", "-d", NAME, "-e", 1, "--method", "lpgnn,ldpge,togl-fda", "--seeds", 1, "-o", "figures.csv"
    )
    assert answer.code == 0, answer.err
    assert answer.out.splitlines()[0].startswith(
        f"{NAME}: what calibrations do to signal and noise, means over 1 set of"
    )
    assert answer.err.splitlines()[-1] == "written: figures.csv"
    with Path("figures.csv").open() as handle:
        rows = list(csv.DictReader(handle))
    assert [(row["method"], row["steps"]) for row in rows if row["method"] == "ldpge"] == [("ldpge", "0")]
    assert {row["method"] for row in rows} == {"lpgnn", "ldpge", "togl-fda"}
    assert all(float(row["error"]) > 0 for row in rows)


def test_figures_are_json_where_the_name_says_so(ldp) -> None:
    answer = ldp("calibration", "-d", NAME, "-e", 1, "-k", 2, "--seeds", 1, "-o", "figures.json", "--json")
    assert answer.code == 0, answer.err
    written = json.loads(Path("figures.json").read_text(encoding="utf-8"))
    assert [(row["method"], row["steps"]) for row in written] == [("lpgnn", 2)]
    assert written == json.loads(answer.out)["rows"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-d", NAME), "name a budget, or several: --epsilon 0.1,1"),
        (("-d", NAME, "-e", 1, "--method", "structure"), "method 'structure' filters no reports"),
        (("-d", NAME, "-e", 1, "--method", "votes"), "method 'votes' filters no reports"),
        (("-d", NAME, "-e", 1, "--method", "base", "-k", 2), "the filter of method 'base' has no depth K"),
        (("-d", NAME, "-e", 1, "--method", "lpgn"), "unknown method 'lpgn'; did you mean 'lpgnn'?"),
        (("-d", NAME, "-e", 1, "--set", "method.nosuch=1"), "nosuch"),
    ],
)
def test_what_cannot_be_is_one_line(ldp, words: tuple[object, ...], message: str) -> None:
    before = files(Path())
    answer = ldp("calibration", *words, "-o", "figures.csv")
    assert answer.code == 2
    assert message in answer.err
    assert len(answer.err.strip().splitlines()) == 1
    assert files(Path()) == before
