"""Tables on a terminal of 80 columns: whole numbers, whole names, and a note on what was left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cell_factory import NAME, store
from rich.console import Console

from graphldp.cli import console
from graphldp.cli.list import Kind

ROOT = Path(__file__).resolve().parents[2]
QUICK = ("--search-points", 2, "--search-seeds", 1, "--epochs", 5, "--hidden", 4)
# A command line, and what its table has to have in each row: of attack and selection, a mechanism and budget or more.
TABLES = {
    "attack": (
        ("attack", "-d", NAME, "-m", "mb,hds-rectified", "-e", "0.25,7.5", "--seeds", 2, "--attributes", 4),
        r"^(mb|hds-rectified)? +(0\.25|7\.5) ",
        4,
    ),
    "audit": (
        ("audit", "hds-rectified", "ppm", "-e", "0.25,7.5", "--dimensions", 3, "--samples", 1000, "--processes", 1),
        r"^ (ppm|hds-rectified)? +(0\.25|7\.5) .* (keeps|fails, as marked|no power) *$",
        4,
    ),
    "calibration": (
        (*("calibration", "-d", NAME, "-e", "0.25,7.5", "--method", "lpgnn,upgnet-nh", "-m", "hds-rectified"),
         *("-k", "2,16", "--seeds", 2)),
        r"^(lpgnn|upgnet-nh) +hds-rectified +(0\.25|7\.5) +(2|16) ",
        8,
    ),
    "selection": (
        (*("selection", "-d", NAME, "-m", "pm", "-e", "7.5,40", "--by", "chi-square", "--seeds", 2, "--random", 4),),
        r"^(pm|clean data) +chi-square +(7\.5|40|inf) ",
        10,
    ),
    "split": (
        (*("split", "-d", NAME, "-e", "4.25", "--parts", 2, "--seeds", 5, "--search-points", 1, "--search-seeds", 1),
         *("--search", "steps=0", "--epochs", 3)),
        r"^synthetic +4\.25 +(best|nearest to even|dearest) .*\d\.\d \[",
        3,
    ),
    "tables": (("tables", "--results", ROOT / "results"), r"^(base|lpgnn|frontier) +.? +(1|5) ", 6),
    "run": (
        ("run", "-d", NAME, "-e", 0.25, "--method", "upgnet-nh", "-m", "hds-rectified", "--seeds", 2, *QUICK),
        r"^(majority|structure|upgnet-nh.*|nonpriv) +(0|0\.25|inf) ",
        4,
    ),
    "search": (
        ("search", "-d", NAME, "-e", 0.25, "--search", "train.hidden=2,3", "--search", "m=1,2", *QUICK),
        r"^.*at epsilon 0\.25",
        1,
    ),
    **{f"list {kind}": (("list", kind.value), r"^\w", 1) for kind in Kind},
}  # fmt: skip


@pytest.fixture(autouse=True)
def narrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Console:
    """A terminal of 80 columns, in a folder with a graph."""
    store(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(console.out, "width", 80)
    return console.out


@pytest.mark.parametrize("name", [pytest.param(one, marks=[pytest.mark.slow] * (one == "audit")) for one in TABLES])
def test_a_table_fits_80_columns_with_whole_numbers(name: str, ldp) -> None:
    line, row, least = TABLES[name]
    answer = ldp(*line)
    assert answer.code == 0, answer.err
    shown = [one for one in answer.out.splitlines() if not one.startswith(("marked: ", "  its own reason: "))]
    assert max(map(len, shown)) <= 80
    assert "…" not in answer.out
    assert len([one for one in shown if re.search(row, one)]) >= least, answer.out


def test_what_is_left_out_is_said_and_an_option_shows_it(ldp, narrow: Console) -> None:
    line, *_ = TABLES["attack"]
    answer = ldp(*line)
    (said,) = [one for one in answer.err.splitlines() if one.startswith("left out")]
    words = re.fullmatch(r"left out to fit 80 columns: (.*); --json has all", said)
    gone = words[1].split(", ")
    assert gone[:2] == ["right", "sure of yes"]
    assert not any(f" {name} " in answer.out.splitlines()[2] for name in gone)
    explained = [one.partition(":")[0] for one in answer.err.splitlines()]
    assert "adv. law" in explained
    assert not set(explained).intersection(gone)
    narrow.width = 200
    wide = ldp(*line)
    assert "left out" not in wide.err
    assert all(name in wide.out for name in gone)


def test_what_is_remarked_of_rows_stands_below_a_table_that_has_no_room_for_it(ldp, narrow: Console) -> None:
    header, *rows = (ROOT / "results/tables/main.csv").read_text(encoding="utf-8").splitlines()
    keys = header.split(",")
    mine = {"row": "frontier", "remark": "same runs as structure", "paper": "", "paper_accuracy": ""}
    given = dict(zip(keys, next(row for row in rows if ",frontier," in row).split(","), strict=True))
    lines = [",".join((given | mine | {"epsilon": epsilon})[key] for key in keys) for epsilon in ("1", "3")]
    folder = Path("results/mine/tables")
    folder.mkdir(parents=True)
    (folder / "main.csv").write_text("\n".join([header, *lines, ""]), encoding="utf-8")
    answer = ldp("tables", "--results", "results/mine")
    assert "same runs" not in answer.out
    assert "frontier at 1, 3: same runs as structure" in answer.err.splitlines()
    assert "remark" not in answer.err
    narrow.width = 200
    wide = ldp("tables", "--results", "results/mine")
    assert "same runs as structure" in wide.out
    assert "same runs" not in wide.err
    assert "paper" not in wide.out  # nothing stands in this column
    other = ldp("tables", "mine")
    assert (other.code, other.out) == (2, "")
    assert "say `ldp tables --results results/mine`" in other.err


def test_where_nothing_more_is_spare_cells_get_lines_and_lose_nothing(ldp, narrow: Console) -> None:
    narrow.width = 40
    answer = ldp(*TABLES["attack"][0])
    assert max(map(len, answer.out.splitlines())) <= 40
    assert "…" not in answer.out
    assert all(text in answer.out for text in ("hds", "0.25", "7.5", "±"))
