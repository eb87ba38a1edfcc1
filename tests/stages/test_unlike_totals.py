"""A table says where its rows have not spent the same in all: nobody reads them as equals."""

from __future__ import annotations

from pathlib import Path

import pytest
from cell_factory import NAME, store

from graphldp.stages.experiment import plan, results_of, run_cells
from graphldp.stages.grids.params import load
from graphldp.stages.pages.tables import markdown_text

ROOT = Path(__file__).resolve().parents[2]
GRID = """
title: Two ways
datasets: [{name}]
epsilons: [1, 2]
seeds: 2
links: {links}
epsilon_links: [4]
rows:
{rows}
search: {{points: 1, seeds: 1, steps: [1]}}
train: {{epochs: 2, hidden: 2}}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("links", "rows", "said"),
    [
        ("rr", ["lpgnn", "mlp"], "Rows do not all spend the same in all: at epsilon 1 lpgnn features 1.0; per edge: "
                                 "links 4.0, but mlp features 1.0 (and so at 1 other budgets)"),
        ("rr", ["lpgnn", "base"], ""),
        ("lapgraph", ["lpgnn", "base"], ""),
    ],
)  # fmt: skip
def test_rows_of_unlike_totals_are_named(links: str, rows: list[str], said: str, tmp_path: Path) -> None:
    store(tmp_path / "data")
    file = tmp_path / "two.yaml"
    text = GRID.format(name=NAME, links=links, rows="\n".join(f"  - {{method: {row}}}" for row in rows))
    file.write_text(text, encoding="utf-8")
    what = plan(load(file), tmp_path / "data")
    run_cells(what, tmp_path / "data", "cpu")
    result = results_of(what, tmp_path / "data", ROOT / "papers")
    (section,) = result.sections
    assert section.unlike.strip().startswith(said)
    assert bool(section.unlike) == bool(said)
    assert section.unlike in markdown_text(result)
    assert ("those of the trusted curator lapgraph" in section.asked_beside) == (links == "lapgraph")
