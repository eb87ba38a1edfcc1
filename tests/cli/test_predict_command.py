"""`ldp predict`: classes out of reports, and one line for what does not fit together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cell_factory import NAME, files, learn, small_params, store

from graphldp.stages.files.artifacts import read_meta, read_table
from graphldp.stages.grids.cell import Cell
from graphldp.stages.perturb import perturb_graph

REPORTS = f"data/perturbed/{NAME}/mb/eps=1.parquet"
GIVEN = ("predict", "kept", "--reports", REPORTS, "--output", "out.parquet")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    store(folder / "data")
    store(folder / "data", "wide", dimensions=30)
    learn(folder / "data", small_params(), models=folder / "kept")
    for name in ("wide", "pm"):
        mechanism, graph = ("pm", NAME) if name == "pm" else ("mb", name)
        perturb_graph(
            Cell(dataset=graph, mechanism=mechanism, epsilon=1.0),
            data=folder / "data",
            seeds=(0,),
            output=folder / f"{name}.parquet",
        )
    return folder


@pytest.fixture(autouse=True)
def here(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(made)
    (made / "out.parquet").unlink(missing_ok=True)
    return made


def test_it_says_how_many_nodes_are_in_each_class(ldp) -> None:
    answer = ldp(*GIVEN)
    assert (answer.code, answer.err) == (0, "")
    classes = read_table(Path("out.parquet"), "x")["class"].to_pylist()
    counts = sorted(((classes.count(k), k) for k in set(classes)), key=lambda pair: -pair[0])
    shown = ", ".join(f"class {k}: {count}" for count, k in counts)
    assert answer.out == f"out.parquet: 90 nodes; {shown}\n"


def test_json_holds_the_counts_and_the_metadata(ldp) -> None:
    found = json.loads(ldp(*GIVEN, "--json").out, parse_constant=pytest.fail)
    assert found.pop("path") == "out.parquet"
    assert sum(found.pop("nodes_per_class").values()) == 90
    assert found == read_meta(Path("out.parquet"), "x")


def test_the_seed_says_whose_reports(ldp) -> None:
    for seed in (1, -1):
        ldp(*GIVEN, "--seed", seed)
        assert read_meta(Path("out.parquet"), "x")["seed"] == seed


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("predict", "Missing argument 'model'"),
        ("predict kept --output out.parquet", "Missing option '--reports'"),
        (f"predict kept --reports {REPORTS}", "Missing option '--output'"),
        (f"predict none --reports {REPORTS} --output out.parquet", "make it with `ldp train --save-model FOLDER`"),
        ("predict kept --reports none.parquet --output out.parquet", "make it with `ldp perturb`"),
        ("predict kept --reports kept/model.json --output out.parquet", "not a readable Parquet file"),
        (
            f"predict kept --reports data/denoised/{NAME}/lpgnn/eps=1.parquet --output out.parquet",
            "has kind 'calibrated'",
        ),
        (f"predict kept --reports data/runs/{NAME}/lpgnn/eps=1.parquet --output out.parquet", "has kind 'runs'"),
        ("predict kept --reports wide.parquet --output out.parquet", "has 30 dimensions and the model takes 24"),
        ("predict kept --reports pm.parquet --output out.parquet", "has mechanism 'pm' where 'mb' was asked for"),
        (f"predict kept --reports {REPORTS} --output out.parquet --seed 9", "has seeds [0, 1, 2, -1, -2], not 9"),
        (f"predict kept --reports {REPORTS} --output out.parquet --dataset cora", "make it with `ldp download cora`"),
        (f"predict kept --reports {REPORTS} --output out.parquet --device tpu", "got 'tpu'"),
        (f"predict kept --reports {REPORTS} --output .", "'.' is a directory"),
    ],
)
def test_what_cannot_be_is_one_line_and_leaves_nothing(command: str, words: str, ldp, here: Path) -> None:
    before = files(here)
    answer = ldp(*command.split())
    assert answer.code == 2
    assert answer.out == ""
    assert answer.line.startswith("error: ")
    assert words in answer.line
    assert files(here) == before
