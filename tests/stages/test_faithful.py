"""What the papers say and what rows are: in the committed tables, in the protocols, and in README's sentences."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from graphldp.client.m_rules import best_m
from graphldp.experiment.rounds import Rounds
from graphldp.stages.grids.protocols import protocol
from graphldp.stages.grids.targets import PROFILES, find, protocol_of

ROOT = Path(__file__).parents[2]
PAPERS, RESULTS = ROOT / "papers", ROOT / "results"
TABLES = [*sorted(RESULTS.glob("*/tables/main.csv")), RESULTS / "tables" / "main.csv"]


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.parent.parent.name)
def test_rows_whose_second_round_is_random_and_rows_of_equal_runs_say_so(path: Path) -> None:
    rows = _rows(path)
    rounds = [row for row in rows if row.get("method", "").startswith("togl")]
    same = {}
    for row in rounds:
        numbers = tuple(row[key] for key in row if key.startswith(("accuracy", "auc", "gain", "macro")))
        place = (row["dataset"], row["mechanism"], row["epsilon"], numbers)
        if place in same:
            assert "same runs as" in row["remark"], (path, row["row"])
            assert "m* = 0" in row["remark"] or "rho" in row["remark"], (path, row["row"])
        same[place] = row


def test_togl_is_directed_at_epsilon_5_of_the_default_table_and_not_above_the_floor() -> None:
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert "at epsilon 5 its second round is directed; it is not above the floor there either" in text
    rounds = [row for row in _rows(RESULTS / "tables" / "main.csv") if row["method"].startswith("togl")]
    assert {(row["epsilon"], "m* = 0" in row["remark"]) for row in rounds} == {("1", True), ("5", False)}
    assert all(float(row["gain_low"]) <= 0 for row in rounds)


@pytest.mark.parametrize("name", ["methods", "methods-facebook", "label-rates", "inductive", "heterophily"])
def test_what_readme_says_of_togl_is_so(name: str) -> None:
    """None of its rows in these tables is directed, and README says that they are not the paper's method."""
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert (
        "TOGL is not among them: at the budgets of these tables nothing is directed in its rows' second round" in text
    )
    rounds = [row for row in _rows(RESULTS / name / "tables" / "main.csv") if row["method"].startswith("togl")]
    assert rounds
    assert all("m* = 0" in row["remark"] for row in rounds)


def test_the_papers_own_rule_directs_the_second_round_where_ours_does_not() -> None:
    ours = best_m("pm", 2.5, 1433)  # half of epsilon 5
    theirs = best_m("pm", 5.0, 1433, rule="2/5")
    assert (ours, theirs) == (1, 2)
    rounds = Rounds(score_by="sma", rho=0.5)
    assert rounds.remark(ours) == "m* = 0: second round random"
    assert rounds.remark(theirs) == ""
    entries = {one.place: one.value for one in protocol("togl", PAPERS).entries}
    assert entries["mechanism.m_rule"] == "2/5"
    assert entries["method.m_from"] == "total"


@pytest.mark.parametrize(
    ("paper", "expected"),
    [
        ("togl", {"train.hidden": 64, "train.activation": "relu", "train.epochs": 300, "method.score_steps": 3,
                  "search.steps": (0,), "method.rectification": "paper"}),
        ("ppgnn", {"mechanism.levels": 6, "train.epochs": 500, "train.patience": 500, "train.standardize": False,
                   "search.dropout": (0.0, 0.25, 0.5, 0.75)}),
        ("upgnet", {"train.standardize": False, "search.steps": (0, 2, 4, 8, 16, 32, 64)}),
        ("ldpge", {"train.hidden": 64, "train.activation": "relu"}),
    ],
)  # fmt: skip
def test_a_protocol_has_what_the_paper_says(paper: str, expected: dict[str, object]) -> None:
    entries = {one.place: one.value for one in protocol(paper, PAPERS).entries}
    found = {place: tuple(value) if isinstance(value := entries[place], list) else value for place in expected}
    assert found == expected


def _cells(address: str) -> list:  # type: ignore[type-arg]
    (target,) = find(address, PAPERS)
    made = target.columns(PROFILES["paper"], protocol_of(target, PAPERS), ["cora"])["theirs"][1]
    return [one for one in made if one.asked is not None]


def test_rows_of_the_papers_are_read_as_they_say() -> None:
    for figure in ("6", "7a", "7b", "8"):  # GraphSAGE, Section IV-F
        assert {one.cell.places["train.model"] for one in _cells(f"ppgnn:figure{figure}")} == {"sage"}, figure
    assert {one.asked.row.mechanism for one in _cells("upgnet:table4")} == {"mb"}
    starred = [one for one in _cells("upgnet:table2") if one.asked.label.endswith("*")]
    assert {tuple(one.asked.row.search["options"]["method.before"]) for one in starred} == {(0.1, 0.3, 0.5, 0.7, 0.9)}
    assert {one.cell.epsilon for one in _cells("togl:figure3")} == {5.0, 7.5, 10.0, 12.5, 15.0}


def test_the_text_of_the_methods_table_names_figures_that_have_its_cells() -> None:
    text = (ROOT / "experiments" / "methods.yaml").read_text(encoding="utf-8")
    assert "LDP-GE's Figure 2" in text
    assert "LDP-GE's Table II" not in text


def test_bridges_start_at_the_four_headline_numbers() -> None:
    found = {}
    for paper, address in (("ppgnn", "3"), ("togl", "17"), ("upgnet", "2"), ("ldpge", "3")):
        (target,) = find(f"{paper}:bridge", PAPERS)
        (printed,) = target.printed
        assert f"_table{address}" in printed.file
        assert len(target.steps) >= 4
        found[paper] = (printed.label, printed.value)
    assert found == {
        "ppgnn": ("MB", "55.1"), "togl": ("Baseline", "79.4"), "upgnet": ("MBM", "64.5"), "ldpge": ("HDS", "82.43"),
    }  # fmt: skip
