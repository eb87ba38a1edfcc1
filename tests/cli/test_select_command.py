"""`ldp select`, and the two rounds that it stands between, command by command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cell_factory import NAME, files, store

from graphldp.stages.artifacts import read_meta, read_table
from graphldp.stages.perturb import perturb_graph

FIRST = f"data/perturbed/{NAME}/pm/eps=4.parquet"
SPACE = ("--params", "small.yaml")
PERTURB = ("perturb", "--dataset", NAME, "-m", "pm", "-e", 4, "--seeds", 2, "--search-seeds", 1)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a graph, a first round's reports and a small search, in which the commands run."""
    store(tmp_path / "data")
    perturb_graph(NAME, "pm", 4.0, data=tmp_path / "data", seeds=(0, 1, -1))
    (tmp_path / "small.yaml").write_text(
        "seeds: 2\n"
        "search: {points: 2, seeds: 1, learning_rate: [0.03], weight_decay: [0.01], dropout: [0.25], steps: [1, 2]}\n"
        "train: {hidden: 4, epochs: 10, patience: 5}\n"
    )
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
    ("share", "given"),
    [
        (0.5, ()),
        (0.3, ("method.first=0.3", "method.rho=1", "method.score_by=mi", "method.score_steps=1")),
        (0.5, ("method.m_from=total", "method.reuse=true", "m_rule=2/5")),
    ],
)
def test_rounds_share_out_what_the_method_spends(share: float, given: tuple[str, ...], ldp) -> None:
    """`--epsilon` is of both, each round takes its share, and every number is that of `ldp run`."""
    changes = [word for one in given if one.startswith("method.") for word in ("--set", one)]
    every = [word for one in given for word in ("--set", one)]
    both = ("--dataset", NAME, "--method", "togl-fda", "-e", 10.1)
    ask = ("perturb", *both, "--seeds", 2, "--search-seeds", 1, *every)
    by, steps = ("mi", 1) if "method.score_by=mi" in given else ("fda", 2)
    assert ldp(*ask, "--round", "first", "-o", "a.parquet").code == 0
    scored = ("--reports", "a.parquet", "-o", "s.parquet", "--all-seeds", "--by", by, "--steps", steps)
    assert ldp("select", *scored, *SPACE).code == 0
    assert ldp(*ask, "--round", "second", "--directed", "s.parquet", "-o", "b.parquet").code == 0
    spent = [read_meta(Path(name), "x")["epsilon"] for name in ("a.parquet", "b.parquet")]
    assert spent == [share * 10.1, 10.1 - share * 10.1]
    files = ("--first", "a.parquet", "--reports", "b.parquet")
    answer = ldp("denoise", *both, *files, "-o", "c.parquet", *SPACE, *changes)
    assert answer.code == 0, answer.err
    trained = ldp("train", *both, "--calibrated", "c.parquet", "--json", *SPACE)
    found = json.loads(ldp("run", *both, "--json", "--no-references", *SPACE, *every).out)
    assert json.loads(trained.out)["test_accuracy"] == found[0]["runs"]


def test_a_round_that_was_drawn_for_another_plan_is_refused(ldp) -> None:
    ask = ("perturb", "--dataset", NAME, "--method", "togl-fda", "-e", 8)
    assert ldp(*ask, "--round", "first", "-o", "a.parquet", "--set", "method.m_from=total").code == 0
    assert ldp("select", "-r", "a.parquet", "-o", "s.parquet", "--all-seeds", "--by", "mi", *SPACE).code == 0
    answer = ldp(*ask, "--round", "second", "--directed", "s.parquet", "-o", "b.parquet")
    assert answer.code == 2
    assert "s.parquet ranks the features with score_by mi, and the method means fda" in answer.line
    second = ldp(*ask, "--round", "second", "--directed", "s.parquet", "-o", "b.parquet", "--set", "method.score_by=mi")
    assert second.code == 0, second.err
    files = ("--first", "a.parquet", "--reports", "b.parquet", "--set", "method.score_by=mi")
    answer = ldp("denoise", "--dataset", NAME, "--method", "togl-fda", "-e", 8, *files, "-o", "c.parquet", *SPACE)
    assert answer.code == 2
    assert "a.parquet was drawn with m_from total, and the method means round" in answer.line
    assert not Path("c.parquet").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--round", "first"), "--round first needs --method"),
        (("--method", "togl-fda"), "--method togl-fda needs --round first or second"),
        (
            ("--method", "lpgnn", "--round", "first"),
            "'lpgnn' has no two rounds: leave --round out, or take togl-fda or",
        ),
        (("--method", "frontier", "--round", "first"), "'frontier' has no two rounds"),
        (
            ("--method", "togl-fda", "--round", "second"),
            "directed by the scores of the first: give them with --directed",
        ),
        (("--method", "togl-fda", "--round", "first", "--directed", "s.parquet"), "leave it out of the first"),
        (("--method", "togl-fda", "--round", "first", "--set", "rho=0.5"), "--set method.rho=0.5"),
        (("--method", "togl-fda", "--round", "first", "--set", "method.rho=2"), "rho"),
        (("--method", "togl-fda", "--round", "first", "-m", "1b"), "there is nothing to direct"),
        (("--set", "method.rho=0.5"), "method.rho changes a method"),
    ],
)
def test_rounds_that_cannot_be(arguments: tuple[str, ...], words: str, ldp, here: Path) -> None:
    ldp("select", "-r", FIRST, "-o", "s.parquet", "--all-seeds", *SPACE)
    before = files(here)
    answer = ldp("perturb", "--dataset", NAME, "-e", 4, *arguments)
    assert answer.code == 2
    assert words in answer.line
    assert files(here) == before


def test_a_round_of_real_reports_is_an_ordinary_collection(ldp, here: Path) -> None:
    (here / "own.csv").write_text("node,a,b\nx,0,1\n", encoding="utf-8")
    own = ("perturb", "--input", "own.csv", "--low", 0, "--high", 1, "-e", 4)
    answer = ldp(*own, "--method", "togl-fda", "--round", "first")
    assert answer.code == 2
    assert "--round goes with --dataset" in answer.line


def test_two_rounds_command_by_command_give_what_one_command_gives(ldp) -> None:
    assert ldp("select", "-r", FIRST, "-o", "s.parquet", "--all-seeds", *SPACE).code == 0
    answer = ldp(*PERTURB, "--directed", "s.parquet", "--set", "rho=0.5")
    assert answer.code == 0, answer.err
    assert answer.out.startswith(
        f"data/perturbed/{NAME}/pm-fda/eps=4.parquet: 90 reports of 2 of 24 features x 3 seeds"
    )
    cell = ("--dataset", NAME, "--method", "togl-fda", "-e", 8, *SPACE)
    assert ldp("denoise", *cell).code == 0
    train = json.loads(ldp("train", *cell, "--json").out)
    assert [one["epsilon"] for one in train["ledger"]] == [4.0, 4.0]
    (row,) = json.loads(ldp("run", *cell, "--no-references", "--set", "method.rho=0.5", "--json").out)
    assert row["runs"] == train["test_accuracy"]
    assert (row["epsilon"], row["m"]) == (8.0, 2)


def test_files_elsewhere_are_named(ldp) -> None:
    Path(FIRST).rename("one.parquet")
    ldp("select", "-r", "one.parquet", "-o", "s.parquet", "--all-seeds", *SPACE)
    ldp(*PERTURB, "--directed", "s.parquet", "-o", "two.parquet")
    cell = ("denoise", "--dataset", NAME, "--method", "togl-fda", "-e", 8, "-k", 1)
    answer = ldp(*cell)
    assert (answer.code, answer.line.startswith(f"error: {FIRST} does not exist; make it with `ldp perturb")) == (
        2,
        True,
    )
    assert ldp(*cell, "--first", "one.parquet", "--reports", "two.parquet").code == 0


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            ("select", "-r", FIRST, "-o", "new.parquet", "--all-seeds", "--seed", 1),
            "error: --all-seeds scores seed 1 among the others: give --seed or --all-seeds",
        ),
        (
            ("denoise", "--dataset", NAME, "-e", 4, "--mechanism", "pm", "--first", FIRST),
            "error: method 'lpgnn' has one round: leave --first out, and give its reports with --reports",
        ),
        (
            ("run", "--dataset", NAME, "-e", 4, "--method", "togl-fda", "--set", "rho=0.3"),
            "error: rho is a part of the method: --set method.rho=0.3",
        ),
    ],
)
def test_a_mistake_is_one_line_and_writes_nothing(words: tuple[object, ...], line: str, ldp, here: Path) -> None:
    before = files(here)
    answer = ldp("--quiet", *words)
    assert (answer.code, answer.line) == (2, line)
    assert files(here) == before
