"""`ldp attack`: figures that agree with the law, files that are whole, and one line for what cannot be."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
from cell_factory import NAME, files, store

from graphldp.adversary import advantage_bound
from graphldp.stages.grids.cell import Cell
from graphldp.stages.perturb import perturb_graph

CALL = ("attack", "-d", NAME, "--seeds", 2, "--attributes", 6)
OUT = ("--output", "results/attack")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a graph, in which the commands run."""
    store(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_prints_and_writes_what_every_attacker_gains(ldp) -> None:
    answer = ldp(*CALL, *OUT, "-m", "mb,privset", "-e", "0.5,8", "--json")
    assert answer.code == 0, answer.err
    found = json.loads(answer.out)
    assert found["files"] == ["results/attack/attack.csv", "results/attack/attack.md"]
    rows = found["rows"]
    assert [(row["mechanism"], row["epsilon"]) for row in rows] == [
        ("mb", 0.5), ("mb", 8.0), ("privset", 0.5), ("privset", 8.0),
    ]  # fmt: skip
    for row in rows:
        assert row["bound"] == pytest.approx(advantage_bound(row["exact"]))
        assert row["law"] <= row["bound"]
        assert row["success"] <= row["success_bound"] + 1e-12
        assert row["posterior"] <= row["posterior_bound"] + 1e-12
        assert abs(row["advantage"] - row["law"]) <= 5 * row["advantage_error"]
        assert abs(row["profiles"]) <= row["bound"] + 5 * row["profiles_error"]
        assert (row["informed"] == "nan") == (row["mechanism"] == "mb")
        assert (row["attributes"], row["people"], row["repetitions"]) == (6, 90, 2)
    # What is public does not depend on the reports.
    assert len({row["public"] for row in rows}) == 1
    with Path("results/attack/attack.csv").open() as handle:
        kept = list(csv.DictReader(handle))
    assert [float(row["law"]) for row in kept] == pytest.approx([row["law"] for row in rows], rel=1e-5)
    assert kept[0]["informed"] == ""
    page = Path("results/attack/attack.md").read_text(encoding="utf-8")
    assert page.startswith("| mechanism | eps | m |")
    assert page.count("\n| mb |") == 2


def test_the_same_call_gives_the_same_files(ldp) -> None:
    assert ldp(*CALL, *OUT, "-m", "pm", "-e", 4).code == 0
    before = Path("results/attack/attack.csv").read_bytes()
    assert ldp(*CALL, *OUT, "-m", "pm", "-e", 4).code == 0
    assert Path("results/attack/attack.csv").read_bytes() == before


def test_the_table_names_a_mechanism_once_and_says_what_was_measured(ldp) -> None:
    answer = ldp(*CALL, *OUT, "-m", "mb", "-e", "1,2")
    assert answer.out.startswith(f"{NAME}: 6 attributes of 90 people, 2 repetitions; ")
    assert sum(line.startswith("mb ") for line in answer.out.splitlines()) == 1
    assert "bound: what LDP allows" in answer.err
    assert answer.err.splitlines()[-1] == "written: results/attack/attack.csv, results/attack/attack.md"
    assert ldp(*CALL, "-m", "mb", "-e", 1, "--quiet").err == ""


def test_nothing_is_written_unless_a_folder_is_named(ldp, here: Path) -> None:
    store(here / "data", "other", nodes=60)
    assert ldp(*CALL, *OUT, "-m", "pm", "-e", 4).code == 0
    before = {name: Path(name).read_bytes() for name in files(here)}
    other = ldp("attack", "-d", "other", "-m", "mb", "-e", 1, "--seeds", 1, "--json")
    assert (other.code, json.loads(other.out)["files"]) == (0, [])
    assert {name: Path(name).read_bytes() for name in files(here)} == before


def test_no_more_attributes_are_attacked_than_there_are(ldp) -> None:
    call = ("attack", "-d", NAME, "--seeds", 1, "-m", "mb", "-e", 1)
    answer = ldp(*call, "--attributes", 100_000)
    assert answer.code == 2
    most = int(re.match(r"error: attributes may be at most (\d+), got 100,000: ", answer.line)[1])
    for more in (("--attributes", most), ()):
        assert json.loads(ldp(*call, *more, "--json").out)["rows"][0]["attributes"] == most
    assert ldp(*call, "--attributes", most + 1).code == 2


def test_reports_of_a_file_are_those_of_the_devices(ldp) -> None:
    path = perturb_graph(Cell(dataset=NAME, mechanism="mb", epsilon=4.0), data=Path("data"), seeds=(0, 1, -1), root=0)
    one = json.loads(ldp(*CALL, "-m", "mb", "-e", 4, "--json").out)["rows"]
    two = json.loads(ldp("attack", "-r", path, "--seeds", 2, "--attributes", 6, "--json").out)["rows"]
    assert one == two
    assert one[0]["how"] == "fill mid; filter depth 2; root seed 0"


def test_the_data_itself_is_found_out_and_nothing_is_not(ldp) -> None:
    (open_row,) = json.loads(ldp(*CALL, "-m", "identity", "-e", "inf", "--json").out)["rows"]
    assert (open_row["advantage"], open_row["law"], open_row["success"]) == (1.0, 1.0, 1.0)
    assert open_row["learned"] > 0.95
    assert open_row["profiles"] > 0.95
    (null_row,) = json.loads(ldp(*CALL, "-m", "null", "-e", 0, "--json").out)["rows"]
    assert (null_row["advantage"], null_row["law"], null_row["bound"]) == (0.0, 0.0, 0.0)
    assert null_row["votes"] == 0.0


@pytest.mark.parametrize("name", ["ppm", "ppm-public", "ppm-safe"])
def test_people_of_a_higher_level_are_known_better(ldp, name: str) -> None:
    """Each level's row has a budget of its own; the lowest public level is the mechanism without levels."""
    answer = ldp(*CALL, "-m", f"{name},mb", "-e", 2, "--by-level", "--json")
    assert answer.code == 0, answer.err
    *levels, mb = json.loads(answer.out)["rows"]
    assert [row["mechanism"] for row in levels] == [f"{name}, level {level}" for level in range(1, 6)]
    for column in ("exact", "posterior_bound", "bound"):
        values = [row[column] for row in levels]
        assert values == sorted(values)
        assert values[0] < values[-1]
    for row in levels:
        assert row["law"] <= row["bound"]
        assert row["posterior"] <= row["posterior_bound"] + 1e-9
        assert abs(row["advantage"] - row["law"]) <= 5 * row["advantage_error"]
    if name == "ppm-public":
        assert [row["epsilon"] for row in levels] == [2, 4, 8, 16, 32]
        for key in ("epsilon", "exact", "m", "law", "posterior"):
            assert levels[0][key] == pytest.approx(mb[key])


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("-m", "mb"), "error: name a graph and a budget (--dataset cora --epsilon 1,10), or reports (--reports FILE)"),
        (("-d", NAME, "-e", 1), "error: name what perturbs the features, for example --mechanism mb,pm,privset"),
        (("-d", NAME, "-m", "mb", "-e", "1,x"), "error: --epsilon takes numbers such as 1,10; got 'x'"),
        (("-d", NAME, "-m", "mb,", "-e", 1), "error: --mechanism has an empty value in 'mb,'; leave out the comma"),
        (("-d", NAME, "-m", "mb,mb", "-e", 1), "error: --mechanism names mb twice; leave one out"),
        (("-r", "x.parquet", "-e", 1), "error: --reports says itself what was reported: leave --epsilon out"),
        (("-r", "x.parquet", "--set", "m=2"), "error: --reports says itself with which options: leave --set out"),
        (("-r", "x.parquet", "--by-level"), "error: --reports says itself who has which level: leave --by-level out"),
        (
            ("-d", NAME, "-m", "mb,pm", "-e", 1, "--by-level"),
            "error: no privacy levels in mb, pm, so that there is no row for each level",
        ),
        (
            ("-r", "x.parquet"),
            "error: x.parquet does not exist; make it with `ldp perturb`",
        ),
        (
            ("-d", NAME, "-m", "mb,privset", "-e", 1, "--set", "pad=3"),
            "error: mb has no option 'pad'; it has: m, fill, m_rule",
        ),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(ldp, here: Path, words: tuple[object, ...], line: str) -> None:
    before = files(here)
    answer = ldp("attack", *words)
    assert (answer.code, answer.line) == (2, line)
    assert files(here) == before


def test_unknown_mechanisms_show_before_anything_is_computed(ldp, here: Path) -> None:
    before = files(here)
    answer = ldp(*CALL, "-m", "mb,mbx", "-e", 1)
    assert answer.code == 2
    assert answer.line.startswith("error: unknown mechanism 'mbx'; did you mean 'mb'?")
    assert files(here) == before


def test_one_attribute_is_no_plural(ldp) -> None:  # type: ignore[no-untyped-def]
    answer = ldp("attack", "-d", NAME, "-m", "mb", "-e", 1, "--seeds", 1, "--attributes", 1)
    assert ": 1 attribute of " in answer.out
    assert ", 1 repetition; " in answer.out
