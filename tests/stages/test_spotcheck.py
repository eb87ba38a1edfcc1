"""Cells of committed experiments are found again, others for another number, and a moved one is noticed."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
import yaml
from cell_factory import NAME, store
from test_experiment import GRID

from graphldp.stages.experiment import plan, results_of, run_cells, write_results
from graphldp.stages.grids.params import load
from graphldp.stages.spotcheck import look, of_experiments, rotated


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an experiment's file, its results and the graph."""
    folder = tmp_path_factory.mktemp("spots")
    store(folder)
    file = folder / "small.yaml"
    grid = {**GRID, "vary": {"method.filter": ["kprop", "hoa"]}}
    file.write_text(yaml.safe_dump(grid, sort_keys=False), encoding="utf-8")
    what = plan(load(file), folder)
    run_cells(what, folder, "cpu")
    write_results(what, results_of(what, folder, Path("papers")), folder / "results")
    return folder


def test_every_row_that_learns_by_itself_is_there(committed: Path) -> None:
    names = [str(committed / "small.yaml")]
    among = list(of_experiments(committed / "results", [NAME], names))
    assert {spot.cell.name for spot in among} == {"lpgnn", "togl"}
    assert len(among) == len({spot.title for spot in among}) == 8  # two rows, two budgets, two filters
    assert list(of_experiments(committed / "results", ["cora"], names)) == []
    one, two = rotated(among, "a" * 40), rotated(among, "c" * 40)
    assert one == rotated(among, "a" * 40) != two
    assert {spot.title for spot in one} == {spot.title for spot in two}


def test_what_has_no_note_of_its_code_is_passed_over(committed: Path, tmp_path: Path) -> None:
    assert list(of_experiments(tmp_path, [NAME], [str(committed / "small.yaml")])) == []


def test_a_moved_cell_is_noticed_and_others_hold(committed: Path, tmp_path: Path) -> None:
    names = [str(committed / "small.yaml")]
    store(tmp_path)
    first = next(of_experiments(committed / "results", [NAME], names))
    assert look([first], tmp_path, 60.0, "cpu") == ([first.title], [])
    assert look([first], tmp_path, 0.0, "cpu") == ([], [])
    table = committed / "results" / "small" / "tables" / "main.csv"
    rows = list(csv.DictReader(io.StringIO(table.read_text(encoding="utf-8"))))
    for row in rows:
        row["accuracy_low"] = row["accuracy_high"] = f"{float(row['accuracy']) + 1:.2f}"
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    table.write_text(out.getvalue(), encoding="utf-8")
    again = next(of_experiments(committed / "results", [NAME], names))
    computed, moved = look([again], tmp_path, 60.0, "cpu")
    assert (computed, len(moved)) == ([first.title], 1)
    assert moved[0].startswith(f"{first.title}, accuracy: was ")
