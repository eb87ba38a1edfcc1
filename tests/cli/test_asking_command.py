"""`ldp perturb --method`: everything that people send for a row, in one command, and the row from file to file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cell_factory import NAME, files, store

from graphldp.methods import method as recipe_of
from graphldp.stages.files.artifacts import read_meta
from graphldp.stages.files.paths import answers_path, reports_path

PARAMS = ("--params", "small.yaml")


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


def ask(method: str, epsilon: float, *more: object) -> tuple[object, ...]:
    return ("perturb", "--dataset", NAME, "--method", method, "--epsilon", epsilon, *PARAMS, *more)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "epsilon", "options"),
    [
        ("lpgnn", 1, ()),
        ("upgnet-nh", 1, ("method.before=0.3",)),
        ("lpgnn", 4, ("mechanism=pm", "m=2")),
        ("togl-fda", 10.1, ()),
        ("togl-fda", 10.1, ("method.first=0.3", "method.rho=1", "method.score_by=mi", "method.score_steps=1")),
        ("togl-sma", 10.1, ("method.m_from=total", "method.reuse=true", "m_rule=2/5")),
        ("votes", 3, ("method.teachers=0.3", "method.features=5", "method.kind=all")),
        ("frontier", 3, ("mechanism=mb", "m=2", "method.teachers=0.3")),
    ],
)
def test_stage_by_stage_gives_what_one_command_gives(
    method: str, epsilon: float, options: tuple[str, ...], ldp
) -> None:
    cell = ("--dataset", NAME, "--method", method, "--epsilon", epsilon, *PARAMS)
    every = [word for one in options for word in ("--set", one)]
    mechanism = next((one.removeprefix("mechanism=") for one in options if one.startswith("mechanism=")), None)
    named = () if mechanism is None else ("--mechanism", mechanism)
    given = [word for one in options if not one.startswith("mechanism=") for word in ("--set", one)]
    answer = ldp("perturb", *cell, *named, *given, "-o", "answers.parquet")
    assert answer.code == 0, answer.err
    assert read_meta(Path("answers.parquet"), "x")["epsilon"] == pytest.approx(epsilon)
    last = ("--answers", "answers.parquet")
    if recipe_of(method).calibrates:
        # The artifact of a row's own remembers how its people were asked; what reports once are made of is said here.
        changed = [word for one in options if one == "method.before=0.3" for word in ("--set", one)]
        answer = ldp("denoise", *cell, *named, *changed, "--reports", "answers.parquet", "-o", "estimates.parquet")
        assert answer.code == 0, answer.err
        last = ("--calibrated", "estimates.parquet")
    answer = ldp("train", *cell, *named, *last, "--json")
    assert answer.code == 0, answer.err
    trained = json.loads(answer.out)
    (found,) = json.loads(ldp("run", *cell, *every, "--no-references", "--json").out)
    assert trained["test_accuracy"] == found["runs"]
    assert trained["m"] == found["m"]


def test_it_says_what_was_asked_and_what_was_spent(ldp) -> None:
    answer = ldp(*ask("frontier", 3))
    path = answers_path(Path("data"), NAME, "frontier", 3.0)
    assert answer.code == 0
    assert answer.out == (
        f"{path}: answers of 90 people x 3 seeds (first, narrowed 1, narrowed 2, narrowed 3, vote), privset, epsilon 3 "
        "claimed for all answers of a person, 3 exact\n"
    )
    assert answer.line == "total epsilon per user: features 3.0 x 3 draws = 9.0, if all of it leaves the devices"
    assert read_meta(path, "x")["seeds"] == [0, 1, -1]
    answer = ldp(*ask("togl-fda", 4, "--seeds", 1, "--search-seeds", 0))
    assert answer.out == (
        f"{answers_path(Path('data'), NAME, 'togl-fda', 4.0)}: answers of 90 people (first, second), pm, epsilon 4 "
        "claimed for all answers of a person, 4 exact\n"
    )


def test_json_is_the_metadata(ldp) -> None:
    more = ("--mechanism", "mb", "--set", "method.teachers=0.25", "--set", "m=2")
    found = json.loads(ldp(*ask("votes", 3, *more), "--seeds", 1, "--search-seeds", 2, "--seed", 4, "--json").out)
    path = Path(found.pop("path"))
    assert found == read_meta(path, "x")
    assert (found["kind"], found["name"], found["m"], found["seeds"]) == ("answers", "votes-mb", 2, [0, -1, -2])
    assert (found["rounds"]["teachers"], found["changes"], found["random"]["root"]) == (0.25, {"teachers": 0.25}, 4)


def test_rows_that_send_the_same_reports_share_one_artifact(ldp, here: Path) -> None:
    path = reports_path(Path("data"), NAME, "mb", 1.0)
    assert ldp(*ask("lpgnn", 1)).code == 0
    before = files(here), path.read_bytes()
    assert ldp(*ask("upgnet-nh", 1, "--set", "method.before=0.3")).code == 0
    assert ldp("perturb", "--dataset", NAME, "-m", "mb", "-e", 1, "--seeds", 2, "--search-seeds", 1).code == 0
    assert (files(here), path.read_bytes()) == before


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (ask("majority", 1), "method 'majority' asks nobody for anything"),
        (ask("frontier", 3, "--set", "method.gate=3"), "to change gate, run one of them"),
        (ask("frontier", 3, "--set", "method.teachers=3"), "teachers is a share above 0 and below 1, got 3"),
        (ask("votes", 3, "--set", "teachers=0.3"), "teachers is a part of the method: --set method.teachers=0.3"),
        (ask("votes", 3, "--mechanism", "ppm"), "cannot be surveyed"),
        (ask("votes", "inf"), "epsilon"),
        (ask("togl-fda", 4, "--set", "rho=0.5"), "--set method.rho=0.5"),
        (ask("togl-fda", 4, "--set", "method.rho=2"), "rho"),
        (ask("togl-fda", 4, "--set", "denoise.rho=1"), "denoise.rho is no option: what changes a method"),
        (ask("togl-fda", 4, "--mechanism", "1b"), "there is nothing to direct"),
        (ask("togl-fda", 4, "--scores", "small.yaml"), "--scores shares a budget out by feature"),
        (("perturb", "-d", NAME, "-e", 4, "--set", "method.rho=0.5"), "name it with --method"),
        (
            ("perturb", "--input", "small.yaml", "--low", 0, "--high", 1, "-e", 4, "--method", "togl-fda"),
            "--method goes with --dataset",
        ),
        (("denoise", "-d", NAME, "-e", 3, "--method", "votes"), "train from what `ldp perturb --method votes` writes"),
        (
            ("denoise", "-d", NAME, "-e", 3, "--method", "togl-fda"),
            "with `ldp perturb --dataset synthetic --method togl-fda",
        ),
        (("train", "-d", NAME, "-e", 3, "--method", "votes", "--calibrated", "x"), "give them with --answers"),
        (("train", "-d", NAME, "-e", 3, "--method", "lpgnn", "--answers", "x"), "leave --answers out"),
        (("run", "-d", NAME, "-e", 4, "--method", "togl-fda", "--set", "denoise.rho=1"), "is written method.rho"),
        (("run", "-d", NAME, "-e", 4, "--search", "denoise.filter=hoa"), "is written method.filter"),
    ],
)
def test_a_mistake_is_one_line_and_writes_nothing(words: tuple[object, ...], line: str, ldp, here: Path) -> None:
    before = files(here)
    answer = ldp("--quiet", *words)
    assert (answer.code, line in answer.line) == (2, True), answer.line
    assert files(here) == before
