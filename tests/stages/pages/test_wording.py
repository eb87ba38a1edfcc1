"""What is unusual in a search stands in the table, and rows of other budgets do not."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from runs_factory import SEARCH, write_grid, write_runs

from graphldp.errors import ArtifactError, OptionError
from graphldp.stages.evaluate import measure
from graphldp.stages.grids.params import Params, RowParams, check
from graphldp.stages.pages.wording import spoken

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
