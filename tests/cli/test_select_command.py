"""`ldp select`: a ranking of the features from people's reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cell_factory import NAME, files, store

from graphldp.stages.files.artifacts import read_meta, read_table
from graphldp.stages.grids.cell import Cell
from graphldp.stages.perturb import perturb_graph

FIRST = f"data/perturbed/{NAME}/pm/eps=4.parquet"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a graph, people's reports, in which the commands run."""
    store(tmp_path / "data")
    perturb_graph(Cell(dataset=NAME, mechanism="pm", epsilon=4.0), data=tmp_path / "data", seeds=(0, 1, -1))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_says_the_best_and_what_was_spent(ldp) -> None:
    answer = ldp("select", "-r", FIRST, "-o", "s.parquet", "--top", 3)
    assert answer.code == 0
    rows = sorted(read_table(Path("s.parquet"), "x").to_pylist(), key=lambda row: row["rank"])
    best = ", ".join(f"{row['feature']} ({row['importance']:.3g})" for row in rows[:3])
    assert answer.out == f"s.parquet: best by fda: {best}\n"
    assert answer.line == "total epsilon per user: features 4.0"
    assert {row["seed"] for row in rows} == {0}


def test_every_seed_is_scored_by_its_own_labels(ldp) -> None:
    answer = ldp("select", "-r", FIRST, "-o", "s.parquet", "--all-seeds", "--by", "sma", "--quiet")
    assert answer.out.startswith("s.parquet: best by sma for seed 0, of 3: ")
    assert read_meta(Path("s.parquet"), "x")["seeds"] == [0, 1, -1]
    whole = read_table(Path("s.parquet"), "x").to_pylist()
    ldp("select", "-r", FIRST, "-o", "one.parquet", "--seed", 1, "--by", "sma")
    assert read_table(Path("one.parquet"), "x").to_pylist() == [row for row in whole if row["seed"] == 1]
    found = json.loads(ldp("select", "-r", FIRST, "-o", "s.parquet", "--all-seeds", "--json", "--top", 2).out)
    assert [row["rank"] for row in found["top"]] == [1, 2]
    assert found["selection"]["score_by"] == "fda"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            ("select", "-r", FIRST, "-o", "new.parquet", "--all-seeds", "--seed", 1),
            "error: --all-seeds scores seed 1 among the others: give --seed or --all-seeds",
        ),
        (
            ("select", "-r", "none.parquet", "-o", "new.parquet"),
            "error: none.parquet does not exist; make it with `ldp perturb`",
        ),
    ],
)
def test_a_mistake_is_one_line_and_writes_nothing(words: tuple[object, ...], line: str, ldp, here: Path) -> None:
    before = files(here)
    answer = ldp("--quiet", *words)
    assert (answer.code, answer.line) == (2, line)
    assert files(here) == before
