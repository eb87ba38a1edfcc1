"""`ldp run`: one cell between its floor and its ceiling, and nothing written but the graph."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cell_factory import NAME, accuracies, files, learn, small_params, store

from graphldp.stages.experiment import plan, results_of, run_cells
from graphldp.stages.files import floors
from graphldp.stages.grids.params import load

GIVEN = ("run", "--dataset", NAME, "--epsilon", "1", "--seeds", 3, "--params", "small.yaml")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a graph and the parameters of `small_params`, in which the commands run."""
    store(tmp_path / "data")
    text = (
        "seeds: 5\nsearch: {points: 3, seeds: 2, learning_rate: [0.05, 0.02], weight_decay: [0.001], "
        "dropout: [0.25, 0.5], steps: [0, 2]}\ntrain: {hidden: 4, epochs: 15, patience: 8}\n"
    )
    (tmp_path / "small.yaml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_the_table_has_its_floor_and_its_ceiling(ldp) -> None:
    answer = ldp(*GIVEN)
    assert answer.code == 0
    lines = answer.out.splitlines()
    assert lines[0].strip() == f"{NAME}: test accuracy in percent"
    assert " ".join(lines[1].split()) == "method epsilon m K accuracy 95 % interval gain over structure"
    assert [line.split()[:2] for line in lines[2:]] == [
        ["majority", "0"],
        ["structure", "0"],
        ["lpgnn", "1"],
        ["nonpriv", "inf"],
    ]
    assert answer.err.splitlines()[-1].startswith("3 runs each; 3 points searched on 2 other seeds")
    assert ldp(*GIVEN, "--quiet").err == ""


@pytest.mark.slow
def test_json_holds_what_the_stages_would_have_measured(ldp, here: Path) -> None:
    found = json.loads(ldp(*GIVEN, "--json").out, parse_constant=pytest.fail)
    assert [row["name"] for row in found] == ["majority", "structure", "lpgnn", "nonpriv"]
    own = found[2]
    expected = accuracies(learn(here / "elsewhere", small_params())) if store(here / "elsewhere") else None
    assert own["runs"] == expected.tolist()
    assert own["accuracy"] == pytest.approx(100 * np.mean(own["runs"]))
    assert own["low"] <= own["accuracy"] <= own["high"]
    assert own["gain"]["mean"] == pytest.approx(own["accuracy"] - found[1]["accuracy"])
    assert found[3]["epsilon"] == "inf"
    assert [row["gain"] is None for row in found] == [True, True, False, False]


def test_a_limit_of_memory_splits_the_runs_and_says_so(ldp, here: Path) -> None:
    text = (here / "small.yaml").read_text(encoding="utf-8").replace("hidden: 4", "hidden: 64")
    (here / "small.yaml").write_text(text, encoding="utf-8")
    answer = ldp(*GIVEN, "--no-references", "--max-memory", 0.001)
    assert answer.code == 0
    assert answer.err.splitlines()[0].startswith("search: 6 runs in 2 waves of at most")


@pytest.mark.slow
def test_its_intervals_are_those_of_the_table(ldp, here: Path) -> None:
    shown = {row["name"]: row for row in json.loads(ldp(*GIVEN, "--json").out)}
    experiment = load(_experiment(here))
    what = plan(experiment, here / "data", fetch=False)
    run_cells(what, here / "data", "cpu")
    result = results_of(what, here / "data", here / "none")
    assert {row.name for row in result.rows} == set(shown)
    for row in result.rows:
        one = shown[row.name]
        assert (one["accuracy"], one["low"], one["high"]) == (row.score.mean, row.score.low, row.score.high)
        if row.name not in ("majority", "structure"):
            assert one["gain"] == {"mean": row.gain.mean, "low": row.gain.low, "high": row.gain.high}


def _experiment(here: Path) -> Path:
    """Write the experiment of the cell that GIVEN runs, with the same parameters."""
    text = (here / "small.yaml").read_text(encoding="utf-8").replace("seeds: 5\n", "seeds: 3\n")
    arm = "{name: lpgnn, method: lpgnn, mechanism: mb}"
    path = here / "one.yaml"
    path.write_text(f"title: one\ndatasets: [{NAME}]\nepsilons: [1]\nrows:\n  - {arm}\n{text}", encoding="utf-8")
    return path


def test_ldpge_runs_without_privacy_by_its_own_name_and_has_a_bias(ldp) -> None:
    ask = ("run", "--dataset", NAME, "--epsilon", "inf", "--seeds", 3, "--params", "small.yaml", "--json")
    (row,) = json.loads(ldp(*ask, "--method", "ldpge", "--mechanism", "identity", "--no-references").out)
    assert (row["name"], row["epsilon"]) == ("ldpge-identity", "inf")
    assert row["chosen"]["options"] == {"train.bias": True}


def test_nothing_is_written(ldp, here: Path) -> None:
    before = files(here)
    answer = ldp(*GIVEN, "--no-references")
    assert answer.code == 0
    assert files(here) == before
    assert " ".join(answer.out.splitlines()[1].split()) == "method epsilon m K accuracy 95 % interval"


def test_what_people_tell_beside_features_is_added_up(ldp) -> None:
    answer = ldp(*GIVEN, "--no-references", "--labels", "krr", "--epsilon-labels", 2)
    assert (
        "; the budget is of one person's features; total epsilon per user: features 1.0 + labels 2.0 = 3.0"
        in answer.err
    )


@pytest.mark.slow
def test_a_place_where_nothing_can_be_written_is_noted_once(ldp, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, text: str) -> None:
        raise OSError(30, "Read-only file system", str(path))

    monkeypatch.setattr(floors, "write_text", refuse)
    before = files(here)
    answer = ldp(*GIVEN)
    assert answer.code == 0
    assert answer.out.splitlines()[3].split()[0] == "structure"
    noted = [line for line in answer.err.splitlines() if "cannot be written" in line]
    assert noted == [
        f"note: data/floors/{NAME} cannot be written (Read-only file system): the next time the floor's learners are "
        "trained again"
    ]
    assert files(here) == before


def test_without_references_there_is_one_row_and_no_gain(ldp) -> None:
    (row,) = json.loads(ldp(*GIVEN, "--no-references", "--json").out)
    assert (row["name"], row["gain"]) == ("lpgnn", None)


def test_a_graph_that_is_not_there_is_fetched(ldp, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = list(GIVEN)
    command[-1] = str(here / "small.yaml")
    (here / "empty").mkdir()
    monkeypatch.chdir(here / "empty")
    answer = ldp(*command, "--no-references", "--epochs", 1, "--search-points", 1)
    assert answer.code == 0
    assert (here / "empty" / "data" / "graphs" / NAME / "graph.json").exists()


def test_options_of_the_mechanism_and_of_the_calibration(ldp) -> None:
    (row,) = json.loads(ldp(*GIVEN, "--no-references", "--set", "m=5", "--set", "method.filter=hoa", "--json").out)
    assert row["m"] == 5


@pytest.mark.slow
def test_one_run_has_no_interval(ldp, here: Path) -> None:
    text = (here / "small.yaml").read_text(encoding="utf-8").replace("seeds: 5", "seeds: 1", 1)
    (here / "one.yaml").write_text(text, encoding="utf-8")
    answer = ldp("run", "--dataset", NAME, "--epsilon", 1, "--params", "one.yaml")
    assert answer.code == 0
    assert "nan" not in answer.out
    found = json.loads(ldp("run", "--dataset", NAME, "--epsilon", 1, "--params", "one.yaml", "--json").out)
    assert len(found[0]["runs"]) == 1


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("run --dataset synthetic", "Missing option '--epsilon'"),
        ("run --epsilon 1", "Missing option '--dataset'"),
        ("run --dataset synthetic --epsilon 0", "mb: epsilon must be finite and > 0, got 0.0"),
        ("run --dataset synthetic --epsilon 1 --mechanism pmm", "unknown mechanism 'pmm'; did you mean 'pm'?"),
        ("run --dataset synthetic --epsilon 1 --method lpgn", "unknown method 'lpgn'; did you mean 'lpgnn'?"),
        ("run --dataset synthetic --epsilon 1 --method majority", "is a row of every table by itself; choose another"),
        (
            "run --dataset synthetic --epsilon 1 --method structure",
            "asks nobody for anything and spends nothing: say --epsilon 0",
        ),
        ("run --dataset synthetic --epsilon 1 --seeds 1", "Invalid value for '--seeds'"),
        ("run --dataset synthetic --epsilon 1 --set m", "--set takes KEY=VALUE, got 'm'"),
        ("run --dataset synthetic --epsilon 1 --set high=9", "high is no further option of mb, got 9"),
        ("run --dataset synthetic --epsilon 1 --params none.yaml", "none.yaml does not exist"),
        ("run --dataset cor --epsilon 1", "unknown dataset 'cor'; did you mean 'cora'?"),
        ("run --dataset synthetic --epsilon 1 --device tpu", "device must be one of auto, cpu, cuda, mps, got 'tpu'"),
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


def test_a_budget_that_cannot_be_is_said_before_anything_is_trained(ldp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphldp.experiment.running.learn_cell", lambda *_, **__: pytest.fail("trained"))
    assert "mb: epsilon must be finite and > 0" in ldp(*(("-1" if one == "1" else one) for one in GIVEN)).line


def test_one_part_of_a_method_is_changed_by_its_name(ldp) -> None:
    ask = (*GIVEN, "--no-references", "--json", "--method", "upgnet-nh")
    by_set = json.loads(ldp(*ask, "--set", "method.tau=0.25", "--set", "mechanism=pm").out)
    assert by_set == json.loads(ldp(*ask, "--set", "method.before=0.25", "--mechanism", "pm").out)
    assert by_set[0]["mechanism"] == "pm"
    assert by_set != json.loads(ldp(*ask, "--mechanism", "pm").out)
    answer = ldp(*ask, "--mechanism", "pm", "--set", "mechanism=mb")
    assert answer.code == 2
    assert "the mechanism is given twice, as --mechanism pm and with --set" in answer.line


@pytest.mark.slow
def test_another_task_has_its_own_headline(ldp) -> None:
    answer = ldp(*GIVEN, "--task", "regression", "--quiet")
    lines = answer.out.splitlines()
    assert lines[0].strip() == f"{NAME}: test MAE (less is better)"
    assert " ".join(lines[1].split()) == "method epsilon m K MAE 95 % interval gain over structure"
    found = json.loads(ldp(*GIVEN, "--task", "regression", "--json").out)
    assert list(found[2]["measures"]) == ["mae", "rmse", "r2"]
    assert found[2]["gain"]["mean"] == pytest.approx(found[1]["mae"] - found[2]["mae"])  # less is better


def test_an_unknown_task_is_one_line(ldp) -> None:
    answer = ldp(*GIVEN, "--task", "links")
    assert answer.code == 2
    assert answer.line.startswith("error: unknown task 'links'")


LINKS = ("--links", "rr", "--epsilon-links", 5)


def test_a_limit_of_links_says_how_it_is_raised_and_doing_so_is_enough(ldp) -> None:
    command = (*GIVEN, *LINKS[:2], "--epsilon-links", 1, "--no-references")
    refused = ldp(*command, "--link-option", "most=10")
    assert refused.code == 2
    remedy = refused.err.splitlines()[-1].rpartition("or allow more with ")[2].split()
    assert remedy[0] == "--link-option"
    assert ldp(*command, *remedy).code == 0


def test_how_many_links_will_be_reported_is_said_first_and_not_of_what_is_refused(ldp) -> None:
    answer = ldp(*GIVEN, *LINKS, "--no-references")
    assert answer.err.startswith(
        "links by rr, epsilon 5 for a bit and 5 for a relationship: about 27 false ones will be"
    )
    assert "the server's graph of the first run has" in answer.err
    for refused in (("--mechanism", "mbb"), ("--set", "rho=1"), ("--set", "method.nothing=1"), ("--epsilon", 0)):
        assert ldp(*GIVEN, *LINKS, *refused).line.startswith("error:")
    perturb = ("perturb", "--dataset", NAME, "--epsilon", 1, *LINKS)
    assert ldp(*perturb).err.startswith("links by rr")
    assert ldp(*perturb, "--mechanism", "mbb").line.startswith("error: unknown mechanism 'mbb'")
    assert ldp(*perturb, "--method", "togl-fda", "--mechanism", "mbb").line.startswith("error:")
