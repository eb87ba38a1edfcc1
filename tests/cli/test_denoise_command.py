"""`ldp denoise`: what it prints, its depths, and the dense embedding."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cell_factory import NAME, files, store

from graphldp.stages.files.artifacts import read_meta
from graphldp.stages.grids.cell import Cell
from graphldp.stages.perturb import perturb_graph

GIVEN = ("denoise", "--dataset", NAME, "--epsilon", "1")
REPORTS = f"data/perturbed/{NAME}/mb/eps=1.parquet"
MADE = Path(f"data/denoised/{NAME}/lpgnn/eps=1.parquet")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a graph and its reports, in which the commands run."""
    store(tmp_path / "data")
    perturb_graph(Cell(dataset=NAME, mechanism="mb", epsilon=1.0), data=tmp_path / "data", seeds=(0, 1, -1))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_says_what_was_written(ldp) -> None:
    answer = ldp(*GIVEN, "--steps", "2,4")
    assert (answer.code, answer.out, answer.err) == (0, f"{MADE}: mb rectified, filter depth K in [2, 4]\n", "")
    assert read_meta(MADE, "x")["steps"] == [2, 4]


def test_json_is_the_metadata(ldp) -> None:
    found = json.loads(ldp(*GIVEN, "--json").out, parse_constant=pytest.fail)
    assert found.pop("path") == str(MADE)
    assert found.pop("embedding") is None
    assert found == read_meta(MADE, "x")


def test_the_depths_are_those_that_are_searched(ldp, here: Path) -> None:
    ldp(*GIVEN)
    assert read_meta(MADE, "x")["steps"] == [0, 2, 4, 8, 16]
    (here / "params.yaml").write_text("search: {points: 1, steps: [3, 5]}\n", encoding="utf-8")
    ldp(*GIVEN)
    assert read_meta(MADE, "x")["steps"] == [3, 5]
    (here / "other.yaml").write_text("search: {points: 1, steps: [7]}\n", encoding="utf-8")
    ldp(*GIVEN, "--params", "other.yaml")
    assert read_meta(MADE, "x")["steps"] == [7]
    ldp(*GIVEN, "--params", "other.yaml", "--steps", 1)
    assert read_meta(MADE, "x")["steps"] == [1]


def test_the_embedding_is_named(ldp) -> None:
    answer = ldp(*GIVEN, "--steps", 2, "--materialize", "e.parquet", "--seed", "-1")
    assert answer.out.splitlines()[1] == "e.parquet: 90 x 24 dense"
    meta = read_meta(Path("e.parquet"), "x")
    assert (meta["steps"], meta["seed"]) == (2, -1)
    found = json.loads(ldp(*GIVEN, "--steps", 2, "--materialize", "e.parquet", "--json").out)
    assert found["embedding"] == "e.parquet"


def test_a_method_without_a_depth_needs_none(ldp) -> None:
    assert ldp(*GIVEN, "--method", "base", "--materialize", "e.parquet").code == 0
    assert read_meta(Path("e.parquet"), "x")["steps"] == 0
    # A depth that the method does not have is not applied either.
    assert ldp(*GIVEN, "--method", "base", "--steps", 3, "--materialize", "e.parquet").code == 0
    assert read_meta(Path("e.parquet"), "x")["steps"] == 0


def test_quiet_is_silent(ldp) -> None:
    assert ldp(*GIVEN, "--quiet").err == ""


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("denoise --dataset synthetic", "Missing option '--epsilon'"),
        ("denoise --epsilon 1", "Missing option '--dataset'"),
        (
            "denoise --dataset synthetic --epsilon 2",
            "make it with `ldp perturb --dataset synthetic --mechanism mb --eps",
        ),
        (f"denoise --dataset synthetic --epsilon 2 --reports {REPORTS}", "has epsilon 1 where 2 was asked for"),
        (
            f"denoise --dataset synthetic --epsilon 1 -m pm --reports {REPORTS}",
            "has mechanism mb where pm was asked for; say --mechanism mb",
        ),
        (
            f"denoise --dataset cora --epsilon 1 --reports {REPORTS}",
            "data/graphs/cora/graph.json does not exist",
        ),
        (
            "denoise --dataset synthetic --epsilon 1 --reports data/graphs/synthetic/edges.parquet",
            "has kind 'graph-edges'",
        ),
        (
            "denoise --dataset synthetic --epsilon 1 --reports data/graphs/synthetic/graph.json",
            "not a readable Parquet",
        ),
        ("denoise --dataset synthetic --epsilon 1 --method lpgn", "unknown method 'lpgn'; did you mean 'lpgnn'?"),
        ("denoise --dataset synthetic --epsilon 1 --method majority", "method 'majority' sends nothing"),
        ("denoise --dataset synthetic --epsilon 1 --steps -1", "--steps takes whole numbers from 0 on"),
        ("denoise --dataset synthetic --epsilon 1 --steps two", "--steps takes whole numbers from 0 on"),
        ("denoise --dataset synthetic --epsilon 1 --params none.yaml", "none.yaml does not exist"),
        (
            "denoise --dataset synthetic --epsilon 1 --materialize e.parquet",
            "--materialize needs one depth: choose with",
        ),
        ("denoise --dataset synthetic --epsilon 1 --materialize .", "'.' is a directory"),
        ("denoise --dataset synthetic --epsilon 1 --max-memory 0", "Invalid value for '--max-memory'"),
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


def test_too_large_an_embedding_leaves_the_sparse_artifact(ldp, here: Path) -> None:
    store(here / "data", "large", nodes=8000, dimensions=64)
    perturb_graph(Cell(dataset="large", mechanism="mb", epsilon=1.0), data=here / "data", seeds=(0,))
    command = ("denoise", "--dataset", "large", "--epsilon", 1, "--steps", 2, "--materialize", "e.parquet")
    answer = ldp(*command, "--max-memory", 0.001)
    assert answer.code == 2
    assert (
        "the embedding of 8,000 nodes x 64 dimensions needs 0.0041 GB, the limit is 0.001 GB; raise it" in answer.line
    )
    assert not (here / "e.parquet").exists()
    assert (here / "data/denoised/large/lpgnn/eps=1.parquet").exists()
    assert ldp(*command, "--max-memory", 0.1).code == 0
