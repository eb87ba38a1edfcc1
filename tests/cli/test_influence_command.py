"""`ldp influence`: what models tell of links, on the screen and as files; what is wrong is one line."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from cell_factory import NAME, store


def test_every_graph_is_attacked_and_written(tmp_path: Path, ldp) -> None:  # type: ignore[no-untyped-def]
    store(tmp_path)
    answer = ldp(
        *("influence", "-d", NAME, "-e", 9, "--people", 40, "--data", tmp_path, "--output", tmp_path / "out", "--json")
    )
    assert answer.code == 0, answer.err
    rows = {row["row"]: row for row in json.loads(answer.out)["rows"]}
    assert len(rows) == 2 + 4 + 4
    assert rows["public links"]["attack"]["area"] > 0.8
    assert rows["features alone"]["attack"]["area"] == 0.5
    assert rows["features alone"]["attack"]["area"] < rows["rr"]["attack"]["area"] < 1
    with (tmp_path / "out" / "influence.csv").open(encoding="utf-8") as handle:
        written = {row["row"]: row for row in csv.DictReader(handle)}
    assert list(written) == list(rows)
    assert float(written["blink"]["precision"]) == pytest.approx(rows["blink"]["attack"]["precision"], rel=1e-5)
    page = (tmp_path / "out" / "influence.md").read_text(encoding="utf-8")
    assert f"`ldp influence --dataset {NAME} --epsilon 9 --people 40`" in page
    assert "| 9 | edgerr, a curator |" in page


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-e", "0"], "--epsilon must be above 0"),
        (["-e", "x"], "x"),
        (["-d", "nowhere"], "nowhere"),
        (["--people", "2"], "--people"),
    ],
)
def test_what_is_wrong_is_one_line(words: list[str], said: str, tmp_path: Path, ldp) -> None:  # type: ignore[no-untyped-def]
    store(tmp_path)
    dataset = [] if "-d" in words else ["-d", NAME]
    answer = ldp("influence", *dataset, *words, "--data", tmp_path, "--output", tmp_path / "out")
    assert answer.code == 2
    assert said in answer.err
    assert answer.err.strip().count("\n") == 0
    assert not (tmp_path / "out").exists()
