"""The audit's artifacts: JSON, Markdown and the docs page say the same, and the same twice."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from graphldp.audit import AuditOptions, audit_rows
from graphldp.stages.audit import (
    audit_mechanisms,
    loss_text,
    markdown_table,
    problem_lines,
    proven,
    table_json,
    write_audit,
)

OPTIONS = AuditOptions(dimensions=3, samples=3000)


@pytest.fixture(scope="module")
def audit():
    return audit_mechanisms(["mb", "ppm", "gm", "identity"], [1.0, 10.0], OPTIONS)


def test_three_files_with_the_same_rows(audit, tmp_path: Path) -> None:
    paths = write_audit(audit, tmp_path)
    data = json.loads(paths[0].read_text(encoding="utf-8"))
    assert [(row["mechanism"], float(row["nominal"])) for row in data["rows"]] == [
        ("mb", 1.0),
        ("mb", 10.0),
        ("ppm", 1.0),
        ("ppm", 10.0),
        ("gm", 1.0),
        ("identity", math.inf),
    ]
    assert data["refused"][0]["mechanism"] == "gm"
    table = paths[1].read_text(encoding="utf-8")
    assert table == markdown_table(audit)
    assert table in paths[2].read_text(encoding="utf-8")
    assert len({line.count("|") for line in table.splitlines()}) == 1


def test_the_same_options_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = (write_audit(audit_mechanisms(["mb"], [1.0], OPTIONS), tmp_path / name) for name in ("a", "b"))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_a_marked_mechanism_carries_its_mark_and_reason(audit, tmp_path: Path) -> None:
    page = write_audit(audit, tmp_path)[2].read_text(encoding="utf-8")
    assert "**fails**, as marked" in page
    assert "## Marked: the claim fails\n\n- `ppm`: the size of a reported value names the level" in page
    lines = problem_lines(audit)
    assert lines[0].startswith("marked: ppm at epsilon 1 (also at 10) does not keep its claim")
    assert not audit.fails


@pytest.mark.slow
def test_budgets_of_each_row_and_what_it_would_take(tmp_path: Path) -> None:
    found = audit_mechanisms(["mb"], [1e-6, 0.1, 1.0], OPTIONS)
    assert proven(found.rows) == {"mb": "no power at 1e-06; keeps from 0.1 to 1"}
    page = write_audit(found, tmp_path)[2].read_text(encoding="utf-8")
    assert "| mb | no power at 1e-06; keeps from 0.1 to 1 |" in page
    assert "## No power: what it would take\n\n- `mb` at 1e-06: a budget 1.5" in page
    assert not found.fails
    assert problem_lines(found)[0].startswith("mb at epsilon 1e-06: no power")


@pytest.mark.slow
def test_two_processes_give_the_same_rows() -> None:
    one, two = (audit_rows(["mb", "null"], [1.0], OPTIONS, processes=n) for n in (1, 2))
    assert one == two


def test_json_holds_no_bare_infinity(audit, tmp_path: Path) -> None:
    text = write_audit(audit, tmp_path)[0].read_text(encoding="utf-8")
    json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert table_json(audit)["rows"][2]["exact"] == math.inf


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1"), (1.0000000000001, "1"), (1.00001, "1.0001"), (0.0123456, "0.012346"), (math.inf, "inf"), (0.0, "0")],
)
def test_losses_are_rounded_up(value: float, text: str) -> None:
    assert loss_text(value) == text
