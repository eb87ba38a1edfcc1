"""`ldp survey`: what it prints, and that what cannot be is one line and leaves nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cell_factory import NAME, files, store

from graphldp.stages.artifacts import read_meta
from graphldp.stages.paths import survey_path

GIVEN = ("survey", "--dataset", NAME, "--epsilon", 3, "--params", "small.yaml")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a graph and a small search, in which the commands run."""
    store(tmp_path / "data")
    (tmp_path / "small.yaml").write_text(
        "seeds: 2\n"
        "search: {points: 2, seeds: 1, learning_rate: [0.03], weight_decay: [0.01], dropout: [0.25], steps: [1, 2]}\n"
        "train: {hidden: 4, epochs: 10, patience: 5}\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_says_who_was_asked_and_what_was_spent(ldp) -> None:
    answer = ldp(*GIVEN)
    path = survey_path(Path("data"), NAME, "frontier", 3.0)
    assert answer.code == 0
    assert answer.out == (
        f"{path}: 90 people asked once x 3 seeds: 50 % report features with privset, the others vote; epsilon 3 "
        "claimed, 3 exact\n"
    )
    assert answer.line == "total epsilon per user: features 3.0 x 3 draws = 9.0"
    assert read_meta(path, "x")["seeds"] == [0, 1, -1]


def test_json_is_the_metadata(ldp) -> None:
    asked = ("--method", "votes", "--mechanism", "mb", "--set", "method.teachers=0.25", "--set", "m=2")
    found = json.loads(ldp(*GIVEN, *asked, "--seeds", 1, "--search-seeds", 2, "--seed", 4, "--json").out)
    path = Path(found.pop("path"))
    assert found == read_meta(path, "x")
    assert (found["kind"], found["name"], found["m"], found["seeds"]) == ("survey", "votes-mb", 2, [0, -1, -2])
    assert (found["rounds"]["teachers"], found["changes"], found["random"]["root"]) == (0.25, {"teachers": 0.25}, 4)


@pytest.mark.parametrize("method", ["votes", "frontier"])
def test_stage_by_stage_gives_what_one_command_gives(method: str, ldp) -> None:
    changed = ("--set", "method.features=5", "--set", "method.teachers=0.3")
    cell = ("--dataset", NAME, "--method", method, "--epsilon", 3, "--params", "small.yaml")
    assert ldp("survey", *cell, *changed, "-o", "said.parquet").code == 0
    trained = json.loads(ldp("train", *cell, "--survey", "said.parquet", "--json").out)
    (found,) = json.loads(ldp("run", *cell, *changed, "--no-references", "--json").out)
    assert trained["test_accuracy"] == found["runs"]
    assert trained["m"] == found["m"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--method", "lpgnn"), "method 'lpgnn' asks nobody in turn: its people report with `ldp perturb`"),
        (("--method", "togl-fda"), "method 'togl-fda' asks nobody in turn"),
        (("--method", "frontier", "--set", "method.gate=3"), "to change gate, run one of them"),
        (("--method", "frontier", "--set", "method.teachers=3"), "teachers is a share above 0 and below 1, got 3"),
        (
            ("--method", "votes", "--set", "teachers=0.3"),
            "teachers is a part of the method: --set method.teachers=0.3",
        ),
        (("--mechanism", "ppm"), "cannot be surveyed"),
        (("--epsilon", "inf"), "epsilon"),
    ],
)
def test_what_cannot_be_asked(arguments: tuple[object, ...], words: str, ldp, here: Path) -> None:
    before = files(here)
    answer = ldp(*GIVEN, *arguments)
    assert answer.code == 2
    assert words in answer.line
    assert files(here) == before
