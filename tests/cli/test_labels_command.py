"""`ldp labels`: before and after, on the screen and as files; what is wrong is one line."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from cell_factory import NAME, store


def test_labels_are_measured_and_written(tmp_path: Path, ldp) -> None:  # type: ignore[no-untyped-def]
    store(tmp_path)
    words = ["labels", "-d", NAME, "-e", "0.5,6", "--seeds", 3, "--data", tmp_path]
    answer = ldp(*words, "--output", tmp_path / "out", "--json")
    assert answer.code == 0, answer.err
    rows = json.loads(answer.out)["rows"]
    assert len(rows) == 2 * (2 + 4 + 4)
    at = {(row["epsilon"], row["row"]): row for row in rows}
    assert at[6.0, "as sent"]["right"]["mean"] > 0.97 > 0.6 > at[0.5, "as sent"]["right"]["mean"]
    written = list(csv.DictReader((tmp_path / "out" / "labels.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["row"] for row in written] == [row["row"] for row in rows]
    assert float(written[0]["right"]) == pytest.approx(rows[0]["right"]["mean"], rel=1e-5)
    page = (tmp_path / "out" / "labels.md").read_text(encoding="utf-8")
    assert f"`ldp labels --dataset {NAME} --epsilon 0.5,6 --seeds 3`" in page
    drawn = (tmp_path / "out" / f"labels-{NAME}.svg").read_text(encoding="utf-8")
    assert f"(labels-{NAME}.svg)" in page
    for word in ("as sent", "propagated, 2", "at most, of one answer", "epsilon of a label"):
        assert f">{word}</text>" in drawn


def test_neighbours_are_those_that_the_server_estimates(tmp_path: Path, ldp) -> None:  # type: ignore[no-untyped-def]
    store(tmp_path)
    words = ["labels", "-d", NAME, "-e", 2, "--seeds", 3, "--data", tmp_path, "--json"]
    public = json.loads(ldp(*words).out)["rows"]
    answer = ldp(*words, "--links", "rr", "--epsilon-links", 1, "--link-option", "report=both")
    assert "about 2,154 false ones will be reported by 90 people" in answer.err
    private = json.loads(answer.out)["rows"]
    for one, other in zip(public, private, strict=True):
        assert (one["right"] == other["right"]) == (one["row"] in ("as sent", "best guess"))
    best = max(row["right"]["mean"] for row in private if row["row"].startswith("propagated"))
    assert best < max(row["right"]["mean"] for row in public if row["row"].startswith("propagated"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-e", "0"], "--epsilon must be above 0"),
        (["-e", "x"], "x"),
        (["-d", "nowhere"], "nowhere"),
        (["--links", "rr"], "--links rr needs --epsilon-links"),
        (["--epsilon-links", "2"], "--epsilon-links 2 goes with --links"),
        (["--links", "rr", "--epsilon-links", "0.1", "--link-option", "most=9"], "false links would be reported"),
    ],
)
def test_what_is_wrong_is_one_line(words: list[str], said: str, tmp_path: Path, ldp) -> None:  # type: ignore[no-untyped-def]
    store(tmp_path)
    dataset = [] if "-d" in words else ["-d", NAME]
    answer = ldp("labels", *dataset, *words, "--data", tmp_path, "--output", tmp_path / "out")
    assert answer.code == 2
    assert said in answer.err.strip().splitlines()[-1]
    assert not (tmp_path / "out").exists()
