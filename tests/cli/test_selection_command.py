"""`ldp selection`: from devices as from artifacts, whole files, and one line for what cannot be."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow.compute as pc
import pytest
from cell_factory import NAME, files, store

from graphldp.stages.files.artifacts import ParquetSink, read_meta, read_table

CALL = ("selection", "-d", NAME, "--seeds", 2, "--top", 3, "--random", 4)
FOLDER = ("--output", "results/selection")
OUT = [f"results/selection/{name}" for name in ("selection.csv", "groups.csv", "attributes.csv", "selection.md")]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a graph, in which the commands run."""
    store(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows_of(name: str) -> list[dict[str, str]]:
    with Path(f"results/selection/{name}.csv").open() as handle:
        return list(csv.DictReader(handle))


def test_it_prints_three_tables_and_writes_them(ldp) -> None:
    answer = ldp(*CALL, *FOLDER, "-m", "pm,mb", "-e", "8,40", "--by", "fda", "--set", "method.rho=1.0")
    assert answer.code == 0, answer.err
    titles = [line for line in answer.out.splitlines() if "TOGL's Table" in line]
    assert [title.rpartition("(")[2].strip() for title in titles] == [f"TOGL's Table {n})" for n in (9, 6, 10)]
    assert answer.err.splitlines()[-1] == f"written: {', '.join(OUT)}"
    assert [(row["mechanism"], row["epsilon"]) for row in rows_of("selection")] == [
        ("pm", "8"), ("pm", "40"), ("mb", "8"), ("mb", "40"), ("clean data", "inf"),
    ]  # fmt: skip
    assert {row["group"] for row in rows_of("groups")} == {"asked", "selected", "random"}
    assert len([row for row in rows_of("attributes") if row["group"] == "random"]) == 4 * 2 * 4
    page = Path(OUT[3]).read_text(encoding="utf-8")
    for row in rows_of("selection"):
        assert f"| {row['mechanism']} | fda | {row['epsilon']} |" in page


def test_the_same_call_gives_the_same_files(ldp) -> None:
    call = (*CALL, *FOLDER, "-e", 8)
    answer = json.loads(ldp(*call, "--json").out)
    assert answer["files"] == OUT
    assert [(row["mechanism"], row["by"]) for row in answer["selection"]] == [
        ("pm", "fda"), ("pm", "sma"), ("clean data", "fda"), ("clean data", "sma"),
    ]  # fmt: skip
    before = [Path(name).read_bytes() for name in OUT]
    assert ldp(*call, "--quiet").err == ""
    assert [Path(name).read_bytes() for name in OUT] == before


def test_nothing_is_written_unless_a_folder_is_named(ldp, here: Path) -> None:
    store(here / "data", "other", nodes=60)
    assert ldp(*CALL, *FOLDER, "-e", 8).code == 0
    before = {name: Path(name).read_bytes() for name in files(here)}
    other = ldp("selection", "-d", "other", "-e", 8, "--by", "fda", "--seeds", 2, "--random", 4, "--json")
    assert (other.code, json.loads(other.out)["files"]) == (0, [])
    assert {name: Path(name).read_bytes() for name in files(here)} == before


def answers(ldp, *more: object) -> str:
    path = "answers.parquet"
    answer = ldp("perturb", "-d", NAME, "--method", "togl-fda", "-e", 8, "--seeds", 2, "-o", path, *more)
    assert answer.code == 0, answer.err
    return path


def test_artifacts_say_what_devices_say(ldp, here: Path) -> None:
    one = json.loads(ldp(*CALL, "-m", "pm", "-e", 8, "--by", "fda", "--json").out)
    call = ("selection", "--seeds", 2, "--top", 3, "--random", 4, "--answers")
    assert json.loads(ldp(*call, answers(ldp), "--json").out) == one
    before = files(here)
    assert ldp("perturb", "-d", NAME, "-m", "pm", "-e", 8, "-o", "once.parquet").code == 0
    assert "once.parquet holds no two rounds" in ldp(*call, "once.parquet").line
    assert [name for name in files(here) if name not in before] == ["once.parquet"]


def test_a_second_round_by_another_ranking_is_refused(ldp) -> None:
    path = Path(answers(ldp))
    meta = read_meta(path, "x")
    for asked in meta["questions"].values():
        asked["second"]["options"]["ranking"].reverse()
        asked["second"]["options"]["ranking"][0] = 23
    table = read_table(path, "x")
    with ParquetSink(path, table.schema, meta) as sink:
        for seed in meta["seeds"]:
            sink.write(table.filter(pc.equal(table["seed"], seed)))
    answer = ldp("selection", "--answers", path, "--seeds", 2)
    assert (answer.code, f"{path} was directed by another ranking than its first round gives" in answer.line) == (
        2,
        True,
    )


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            ("-d", NAME),
            "error: name a graph and a budget (--dataset cora --epsilon 5,10), or an artifact of both rounds "
            "(--answers)",
        ),
        (
            ("--answers", "a", "--by", "fda"),
            "error: the artifact says itself how it was made: leave --by out",
        ),
        (("--answers", "a"), "error: a does not exist; make it with `ldp perturb --method togl-fda`"),
        (
            ("-d", NAME, "-e", 4, "--by", "fdx"),
            "error: unknown score_by 'fdx'; did you mean 'fda'? Valid: chi-square, fda, mi, pca, sma",
        ),
        (("-d", NAME, "-e", 0), "error: two rounds need a finite budget above 0, got 0.0"),
        (
            ("-d", NAME, "-e", 4, "-m", "lp"),
            "error: lp reports every dimension: there is nothing to direct; take pm or mb",
        ),
        (
            ("-d", NAME, "-e", 4, "--set", "rho=0.3"),
            "error: rho is a part of the method: --set method.rho=0.3",
        ),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(ldp, here: Path, words: tuple[object, ...], line: str) -> None:
    before = files(here)
    answer = ldp("selection", *words)
    assert (answer.code, answer.line) == (2, line)
    assert files(here) == before
