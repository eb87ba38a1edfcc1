"""`ldp links`: how near estimated graphs come, on the screen and as files; what is wrong is one line."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from cell_factory import NAME, store

from graphldp.adversary.link_quality import COLUMNS, measure_links


def test_every_way_is_measured_and_written(tmp_path: Path, ldp) -> None:  # type: ignore[no-untyped-def]
    store(tmp_path)
    words = ["links", "-d", NAME, "-e", "2,9", "--seeds", 2, "--rho", "0.2,1", "--data", tmp_path]
    answer = ldp(*words, "--output", tmp_path / "out", "--json")
    assert answer.code == 0, answer.err
    rows = json.loads(answer.out)["rows"]
    assert len(rows) == 2 * (8 + 3 + 2)
    written = list(csv.DictReader((tmp_path / "out" / "links.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["row"] for row in written] == [row["row"] for row in rows]
    assert float(written[0]["walk_1"]) == pytest.approx(rows[0]["measures"]["walk_1"], rel=1e-5)
    page = (tmp_path / "out" / "links.md").read_text(encoding="utf-8")
    assert f"## {NAME}" in page
    assert (tmp_path / "out" / f"walks-{NAME}.svg").read_text(encoding="utf-8").startswith("<?xml")
    drawn = (tmp_path / "out" / f"measures-{NAME}.svg").read_text(encoding="utf-8")
    assert f"(measures-{NAME}.svg)" in page
    for word in ("recall", "precision", "share of pairs that are wrong", "distance of the degrees", "rr reported"):
        assert f">{word}</text>" in drawn
    at = {(row["epsilon"], row["row"].partition(" (")[0]): row["measures"] for row in rows}
    assert at[9.0, "rr reported"]["recall"] > at[2.0, "rr reported"]["recall"]
    assert at[2.0, "edgerr, rho 0.2"]["walk_1"] < at[2.0, "privhrg"]["walk_1"]  # most of its links are public
    assert at[2.0, "nothing"]["recall"] == 0
    assert all(set(COLUMNS) == set(row["measures"]) for row in rows)


def test_the_walk_is_the_one_of_matrices(tmp_path: Path) -> None:
    graph = store(tmp_path)
    rows = measure_links(graph, [3.0], seeds=1, rho=[1.0])
    nothing = next(row for row in rows if row.row == "nothing")
    adjacency = graph.adjacency().toarray().astype(float)
    walk = adjacency / np.maximum(adjacency.sum(axis=1, keepdims=True), 1)
    for hop in range(1, 5):
        expected = np.sqrt((np.linalg.matrix_power(walk, hop) ** 2).mean())
        assert nothing.measures[f"walk_{hop}"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-e", "0"], "--epsilon must be above 0"),
        (["-e", "1", "--rho", "1.5"], "--rho must be above 0 and at most 1"),
        (["-e", "x"], "x"),
        (["-d", "nowhere"], "nowhere"),
    ],
)
def test_what_is_wrong_is_one_line(words: list[str], said: str, tmp_path: Path, ldp) -> None:  # type: ignore[no-untyped-def]
    store(tmp_path)
    dataset = [] if "-d" in words else ["-d", NAME]
    answer = ldp("links", *dataset, *words, "--data", tmp_path)
    assert answer.code == 2
    assert said in answer.err
    assert answer.err.strip().count("\n") == 0
