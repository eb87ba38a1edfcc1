"""Words of tables: axes and data sets have one spelling, what is unusual in a search is said, other budgets refused."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
from runs_factory import SEARCH, write_grid, write_runs

from graphldp.datasets import names, spec, title
from graphldp.errors import ArtifactError, OptionError
from graphldp.stages.evaluate import measure
from graphldp.stages.grids.params import Params, RowParams, check, experiments, find, load
from graphldp.stages.pages.wording import at, axis_title, spoken

ROOT = Path(__file__).resolve().parents[3]
GRID = Params(
    epsilons=(1.0,),
    rows=(RowParams(name="lpgnn", method="lpgnn", mechanism="mb"),),
)
WHOLE: dict[str, Any] = {**SEARCH, "strategy": "grid", "points": 30}


def test_the_usual_search_needs_no_words() -> None:
    assert spoken(SEARCH) == spoken({}) == ""
    assert spoken({**SEARCH, "strategy": "random", "space": "shared", "options": {}}) == ""


def test_what_is_unusual_is_said() -> None:
    assert spoken(WHOLE) == "the whole grid"
    more = {"strategy": "grid", "space": "paper", "options": {"m": [1], "method.after": [0.1]}}
    assert spoken(more) == (
        "the whole grid; each method in the space that its paper names, where it names one; "
        "also searched: m, method.after"
    )


def test_the_tables_protocol_says_it(tmp_path: Path) -> None:
    plain, other = tmp_path / "plain", tmp_path / "other"
    write_grid(plain, GRID)
    assert "grid" not in measure(GRID, plain, Path("none")).sections[0].protocol
    for cell in GRID.cells():
        write_runs(other, cell, seeds=10, meta={} if cell.method == "majority" else {"search": WHOLE})
    protocol = measure(GRID, other, Path("none")).sections[0].protocol
    assert "(30 points, 2 seeds, the whole grid" in protocol
    assert protocol.count("chosen by mean validation loss") == 1


@pytest.mark.parametrize("changed", [{"points": 8}, {"seeds": 3}])
def test_a_row_of_another_budget_is_refused(changed: dict[str, Any], tmp_path: Path) -> None:
    for cell in GRID.cells():
        search = WHOLE | (changed if cell.name == "lpgnn" else {})
        write_runs(tmp_path, cell, seeds=10, meta={} if cell.method == "majority" else {"search": search})
    with pytest.raises(ArtifactError, match="one search budget"):
        measure(GRID, tmp_path, Path("none"))


def test_grids_of_the_arms_are_compared_before_anything_runs() -> None:
    search = dataclasses.replace(GRID.search, strategy="grid")
    grid = dataclasses.replace(GRID, search=search)
    check(grid)
    base = RowParams(name="base", method="base", mechanism="mb")
    with pytest.raises(OptionError, match="grid tries 40 points of structure and 8 of base"):
        check(dataclasses.replace(grid, rows=(*grid.rows, base)))


@pytest.mark.parametrize(
    ("axis", "value", "heading", "words"),
    [
        ("train.train_fraction", "0.01", "share of labels", "1 % of the labels"),
        ("train.train_fraction", "0.2", "share of labels", "20 % of the labels"),
        ("search.steps", "4", "filter depth K", "filter depth K = 4"),
        ("epsilon_labels", "inf", "epsilon of labels", "epsilon inf for labels"),
        ("data.features", "0.3", "signal of features", "signal of features 0.3"),
        ("mechanism.noise", "2", "noise", "noise 2"),  # an axis that nobody has words for keeps its name
        ("method.rho", "", "rho", ""),
    ],
)
def test_a_place_on_an_axis_is_said_in_words(axis: str, value: str, heading: str, words: str) -> None:
    assert (axis_title(axis), at(axis, value)) == (heading, words)


def test_no_axis_of_an_experiment_is_called_as_in_its_file() -> None:
    folder = ROOT / "experiments"
    grids = [load(find(name, folder)) for name in experiments(folder)]
    axes = {name for grid in grids for cell in grid.cells() for name, _ in cell.axes if name != "train.task"}
    assert len(axes) > 8
    assert [name for name in sorted(axes) if "_" in axis_title(name)] == []


def test_a_data_set_has_a_title_and_own_ones_their_name() -> None:
    assert all(spec(name).title.lower() == name for name in names())
    assert (title("citeseer"), title("pubmed"), title("twitch-es")) == ("CiteSeer", "PubMed", "Twitch-ES")
    assert title("lastfm-10") == "lastfm-10"
    assert title("mine") == "mine"


def test_what_people_read_spells_data_sets_so() -> None:
    wrong = re.compile(r"\b(Citeseer|Pubmed|Lastfm|Twitch-es|Twitch-engb|Github)\b")
    pages = [
        ROOT / "README.md",
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("results/**/*.html"),
        *ROOT.glob("papers/*.csv"),
    ]
    assert len(pages) > 60
    assert [str(path) for path in pages if wrong.search(path.read_text(encoding="utf-8"))] == []


def test_the_committed_tables_are_markdown() -> None:
    """A rule without a dash is none, and what stands below it is no table then."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "results").rglob("*.md")]
    rules = [line for path in pages for line in path.read_text(encoding="utf-8").splitlines() if line[:3] == "| -"]
    assert len(rules) > 200
    assert [line for line in rules if not re.fullmatch(r"\|( :?-+:? \|)+", line)] == []
