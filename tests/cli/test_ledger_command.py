"""`ldp ledger`: what a set of artifacts has spent together, and which of them are one release."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cell_factory import NAME, store

from graphldp.stages.grids.cell import Cell
from graphldp.stages.perturb import CollectionFiles, perturb_file, perturb_graph


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    store(Path("data"))
    own = Path("own.csv")
    own.write_text("node,a,b\n" + "".join(f"p{k},0.5,0.25\n" for k in range(4)), encoding="utf-8")
    for path, mechanism, seeds in (("a", "mb", [0, 1]), ("b", "mb", [1, 2]), ("c", "mb", [3]), ("d", "pm", [0])):
        perturb_graph(
            Cell(dataset=NAME, mechanism=mechanism, epsilon=1.0),
            data=Path("data"),
            seeds=seeds,
            output=Path(f"{path}.parquet"),
        )
    for path in ("s", "t"):
        perturb_file(
            Cell(dataset="own", mechanism="mb", epsilon=2.0),
            CollectionFiles(features=own, low=0, high=1, secure=True),
            data=Path("data"),
            seeds=[0],
            output=Path(f"{path}.parquet"),
        )
    return tmp_path


@pytest.mark.parametrize(
    ("given", "lines"),
    [
        (
            "a b",
            [
                "a.parquet: reports, features 1.0 x 2 draws",
                "a.parquet and b.parquet: one release, 1 draw in both: counted once",
                "total epsilon per user: features 1.0 x 3 draws = 3.0",
            ],
        ),
        (
            "a c",
            [
                "a.parquet and c.parquet: one release, other draws of it: each draw spends again",
                "total epsilon per user: features 1.0 x 3 draws = 3.0",
            ],
        ),
        (
            "c d",
            [
                "c.parquet and d.parquet: different releases, both spend: mechanism is mb and pm",
                "total epsilon per user: features 1.0 + features 1.0 = 2.0",
            ],
        ),
        (
            "s t",
            [
                "s.parquet and t.parquet: different releases, both spend: two collections, each drawn from the "
                "devices' own randomness",
                "total epsilon per user: features 2.0 + features 2.0 = 4.0",
            ],
        ),
        ("s s", ["total epsilon per user: features 2.0"]),
    ],
)
def test_it_adds_up_and_says_why(files: Path, ldp, given: str, lines: list[str]) -> None:
    answer = ldp("ledger", *(f"{name}.parquet" for name in given.split()))
    assert answer.err == ""
    for line in lines:
        assert line in answer.out.splitlines()


def test_pairs_of_many_different_releases_are_counted_and_json_has_them(files: Path, ldp) -> None:
    names = [f"{name}.parquet" for name in "abcdst"]
    told = [line for line in ldp("ledger", *names).out.splitlines() if " and " in line or "pairs" in line]
    assert told == [
        "a.parquet and b.parquet: one release, 1 draw in both: counted once",
        "a.parquet and c.parquet: one release, other draws of it: each draw spends again",
        "b.parquet and c.parquet: one release, other draws of it: each draw spends again",
        "12 of 15 pairs are different releases, both spend",
    ]
    assert len(json.loads(ldp("ledger", *names, "--json").out)["relations"]) == 15


def test_what_does_not_say_it_is_unknown_and_a_graph_is_nothing(files: Path, ldp) -> None:
    answer = ldp("ledger", "own.csv", "a.parquet", f"data/graphs/{NAME}")
    assert "own.csv: unknown, anything unknown" in answer.out
    assert f"data/graphs/{NAME}: graph, nothing: a graph is no release" in answer.out
    assert answer.out.splitlines()[-1] == (
        "total epsilon per user: anything unknown + features 1.0 x 2 draws = unknown, and at least 2.0"
    )
    assert answer.code == 2  # a script that asks for a total gets none
    assert answer.line == (
        "error: the total is not known, since nothing says what was spent on own.csv; name what it was made of "
        "instead, or leave it out where no person's data went into it"
    )
    asked = ldp("ledger", "own.csv", "a.parquet", "--json")
    data = json.loads(asked.out)
    assert (asked.code, asked.line, data["known"]) == (2, answer.line, False)
    assert [one["kind"] for one in data["files"]] == ["unknown", "reports"]
    assert data["text"].endswith("= unknown, and at least 2.0")


def test_of_nothing_known_nothing_is_added_up(files: Path, ldp) -> None:
    answer = ldp("ledger", "own.csv")
    assert answer.code == 2
    assert answer.out.splitlines()[-1] == "total epsilon per user: anything unknown = unknown"
    assert ldp("ledger", f"data/graphs/{NAME}").code == 0
    assert json.loads(ldp("ledger", "a.parquet", "--json").out)["known"] is True


def test_a_file_that_is_not_there_is_one_line(files: Path, ldp) -> None:
    answer = ldp("ledger", "nothing.parquet")
    assert answer.code == 2
    assert answer.line.startswith("error: nothing.parquet does not exist")
