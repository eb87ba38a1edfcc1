"""`ldp search`, and what `--search` means to the commands that train."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cell_factory import NAME, files, store
from typer.main import get_command

from graphldp.cli.app import build
from graphldp.cli.settings import axes
from graphldp.errors import OptionError
from graphldp.stages.files.artifacts import read_meta, read_table
from graphldp.stages.files.paths import trials_path

GIVEN = ("--dataset", NAME, "--epsilon", "1", "--params", "small.yaml")
MADE = trials_path(Path("data"), NAME, "lpgnn", 1.0)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a graph and parameters that train in milliseconds, in which the commands run."""
    store(tmp_path / "data")
    text = (
        "seeds: 2\nsearch: {points: 3, seeds: 2, learning_rate: [0.05, 0.02], weight_decay: [0.001], "
        "dropout: [0.25, 0.5], steps: [0, 2]}\ntrain: {hidden: 4, epochs: 15, patience: 8}\n"
    )
    (tmp_path / "small.yaml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (["m=1,2"], {"m": [1, 2]}),
        (["method.filter=kprop, ppr", "x=a"], {"method.filter": ["kprop", "ppr"], "x": ["a"]}),
        (['k=[1, "a", null, [2, 3]]'], {"k": [1, "a", None, [2, 3]]}),
        (["b=true,false,0.5,1e-3"], {"b": [True, False, 0.5, 1e-3]}),
        (None, {}),
    ],
)
def test_axes_are_read_from_lists_and_from_text_with_commas(given: list[str] | None, found: dict[str, object]) -> None:
    assert axes(given) == found


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["m"], "takes KEY=VALUE,VALUE"),
        (["m="], "takes KEY=VALUE,VALUE"),
        (["=1"], "takes KEY=VALUE,VALUE"),
        (["m=1", "m=2"], "gives 'm' twice"),
        (["m=[1,"], r"--search m: '\[1,' is no JSON list"),
    ],
)
def test_axes_that_are_none_are_refused(given: list[str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        axes(given)


def test_trials_are_ranked_and_written(ldp, here: Path) -> None:
    answer = ldp("search", *GIVEN, "--search", "m=1,2", "--search-points", 6)
    assert answer.code == 0
    lines = answer.out.splitlines()
    assert lines[0].strip() == f"{NAME}: lpgnn at epsilon 1.0, trials by mean validation loss"
    assert lines[1].split()[-2:] == ["validation", "accuracy"]
    assert len(lines) == 2 + 6
    assert answer.line == f"{MADE}: 6 points on 2 seeds (also searched: m)"
    found = json.loads(ldp("search", *GIVEN, "--search", "m=1,2", "--search-points", 6, "--json").out)
    losses = [trial["validation_loss"] for trial in found["trials"]]
    assert losses == sorted(losses)
    assert {trial["m"] for trial in found["trials"]} == {1, 2}
    best = found["trials"][0]
    assert found["chosen_point"]["options"] == {"m": best["m"]}
    assert found["chosen_point"]["steps"] == best["steps"]
    meta = read_meta(MADE, "x")
    assert (meta["kind"], meta["search"]["tried"]["m"]) == ("trials", [1, 2])
    assert not any(name.startswith("test_") for name in read_table(MADE, "x").column_names)
    assert not [name for name in files(here) if "resume" in name]


def test_run_chooses_what_the_search_chose(ldp) -> None:
    more = ("--search", "m=1,2", "--search", "train.hidden=3,5", "--search-points", 4)
    chosen = json.loads(ldp("search", *GIVEN, *more, "--json").out)["chosen_point"]
    answer = ldp("run", *GIVEN, *more, "--no-references", "--json")
    (row,) = json.loads(answer.out)
    assert row["chosen"] == chosen
    assert row["search"]["points"] == 4


def test_run_says_how_it_was_chosen(ldp) -> None:
    answer = ldp("run", *GIVEN, "--search", "m=1,2", "--search", "method.rho=0.1,0.9", "--search-points", 4)
    assert answer.code == 2  # neither the floor, nor lpgnn, nor the ceiling has rho
    assert "search.options has 'method.rho', which no row of the table has" in answer.line
    answer = ldp("run", *GIVEN, "--search", "m=1,2", "--search-points", 4)
    lines = answer.err.splitlines()
    assert [line.split(" chose ")[0] for line in lines if " chose " in line] == ["structure", "lpgnn", "nonpriv"]
    assert "nonpriv has no m: searched without" in lines
    assert lines[-1].startswith("2 runs each; 4 points searched on 2 other seeds (also searched: m); the budget is of")


def test_common_axes_are_given_by_their_names(ldp) -> None:
    found = json.loads(
        ldp("search", *GIVEN, "--search", "steps=1,3", "--search", "weight_decay=[0.0, 0.5]", "--json").out
    )
    assert found["search"]["steps"] == [1, 3]
    assert found["search"]["weight_decay"] == [0.0, 0.5]
    assert found["search"]["options"] == {}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--search", "dropout=0.5,1.5"), "search.dropout must be in [0, 1), got 1.5"),
        (("--search", "steps=a"), "search.steps[0] must be a whole number, got 'a'"),
        (("--search", "m=1,1"), "search.options.m must be distinct values, got [1, 1]"),
        (("--search-strategy", "gird"), "unknown search.strategy 'gird'; did you mean 'grid'?"),
        (("--search-space", "papers"), "unknown search.space 'papers'; did you mean 'paper'?"),
        (("--search-points", 9), "the search space has 8 points, fewer than the budget of 9"),
        (("--method", "majority"), "method 'majority' learns nothing, so there is nothing to search"),
    ],
)
def test_what_cannot_be_searched_is_one_line(ldp, here: Path, given: tuple[object, ...], message: str) -> None:
    before = files(here)
    answer = ldp("search", *GIVEN, *given)
    assert answer.code == 2
    assert message in answer.line
    assert files(here) == before


def test_fewer_trials_can_be_shown(ldp) -> None:
    answer = ldp("search", *GIVEN, "--show", 1)
    assert len(answer.out.splitlines()) == 3
    assert answer.line.endswith("; 2 more trials are not shown")


def test_inspect_says_what_was_tried(ldp) -> None:
    ldp("search", *GIVEN, "--search", "method.after=0.1,0.3", "--quiet")
    facts = json.loads(ldp("inspect", MADE, "--json").out)
    assert facts["kind"] == "trials"
    assert facts["meta"]["search"]["tried"]["method.after"] == [0.1, 0.3]
    assert "search.tried.method.after" in ldp("inspect", MADE).out


def test_train_takes_axes_too(ldp) -> None:
    assert (
        ldp("perturb", "--dataset", NAME, "--mechanism", "mb", "--epsilon", 1, "--seeds", 2, "--search-seeds", 2).code
        == 0
    )
    assert ldp("denoise", *GIVEN).code == 0
    answer = ldp("train", *GIVEN, "--search", "train.hidden=3,5", "--search-strategy", "grid", "--json")
    assert answer.code == 0, answer.err
    assert json.loads(answer.out)["search"]["points"] == 16
    answer = ldp("train", *GIVEN, "--search", "m=1,2")
    assert answer.code == 2
    assert "was made with its m, so that cannot be searched here: `ldp run` perturbs" in answer.line


def test_whatever_may_be_said_of_a_search_may_be_said_of_a_run() -> None:
    """The help says that both choose the same point with the same options."""
    group: Any = get_command(build())
    options = {name: {one.opts[0] for one in group.commands[name].params} for name in ("search", "run")}
    assert options["search"] - options["run"] == {"--show", "--output"}
    assert options["run"] - options["search"] == {"--references"}
