"""`ldp reproduce`, `ldp claims`, `ldp results` and `--protocol`: what they say, and what they refuse."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from cell_factory import store

ROOT = Path(__file__).parents[2]
PAPERS = ROOT / "papers"


def test_what_there_is_to_make_again_is_listed(ldp) -> None:
    answer = ldp("reproduce", "--list", "--json", "--papers", PAPERS)
    assert answer.code == 0, answer.err
    names = [one["target"] for one in json.loads(answer.out)]
    assert {"ppgnn:table3", "togl:table17", "upgnet:figure6", "ldpge:bridge"} <= set(names)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "what is to be made again?"),
        (("togl:99",), "unknown target 'togl:99'"),
        (("nobody",), "unknown paper 'nobody'"),
        (("togl:17", "--profile", "slow"), "--profile must be quick or paper, got 'slow'"),
        (("togl:17", "--datasets", "crocodile"), "togl:table17 is not about 'crocodile'"),
        (("togl:17", "--reading", "x"), "togl:table17 is not read as 'x'; it has one reading"),
        (("--list", "togl"), "--list says what there is to reproduce; leave 'togl' out"),
    ],
)
def test_a_slip_is_one_line(ldp, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    answer = ldp("reproduce", *words, "--papers", PAPERS, "--data", tmp_path / "data", "--dry")
    assert answer.code == 2
    assert said in answer.err
    assert len(answer.err.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_dry_says_what_is_missing_and_computes_nothing(ldp, tmp_path: Path) -> None:
    answer = ldp("reproduce", "togl:17", "--papers", PAPERS, "--data", tmp_path / "data", "--dry")
    assert answer.code == 0, answer.err
    assert "togl:table17: without lastfm: not downloaded; `ldp download lastfm`" in answer.out
    assert "1 to make again, 0 cells, 0 of them there" in answer.out
    assert not (tmp_path / "data").exists()
    answer = ldp("reproduce", "togl", "--papers", PAPERS, "--data", tmp_path / "data", "--dry")
    lines = [line for line in answer.out.splitlines() if "without lastfm" in line]
    assert len(lines) == 1  # what several targets lack is said once
    assert "targets: without lastfm: not downloaded" in lines[0]


@pytest.mark.parametrize("less", [("--theirs",), ("--reading", "GCN, KProp")], ids=["theirs", "reading"])
def test_less_than_what_stands_there_is_refused_and_not_computed(ldp, tmp_path: Path, less: tuple[str, ...]) -> None:
    store(tmp_path / "data", "cora")
    table = Path("reproduce/ppgnn-table3/quick")
    shutil.copytree(ROOT / "results" / table, tmp_path / "results" / table)
    before = {path: path.read_bytes() for path in (tmp_path / "results").rglob("*.*")}
    words = ("--datasets", "cora", "--papers", PAPERS, "--data", tmp_path / "data", "--results", tmp_path / "results")
    answer = ldp("reproduce", "ppgnn:table3", *less, *words, "--quiet")
    assert answer.code == 2
    assert "of cora, which would be lost; leave --theirs and --reading out" in answer.err
    assert len(answer.err.strip().splitlines()) == 1
    assert {path: path.read_bytes() for path in (tmp_path / "results").rglob("*.*")} == before
    assert not (tmp_path / "data" / "cells").exists()


def test_a_folder_that_is_not_there_is_one_line(ldp, tmp_path: Path) -> None:
    for words in (("reproduce", "all"), ("claims",)):
        answer = ldp(*words, "--papers", tmp_path / "none")
        assert answer.code == 2
        assert "does not exist" in answer.err
    answer = ldp("results", "--results", tmp_path / "none", "--papers", PAPERS)
    assert answer.code == 2
    assert "run where results are" in answer.err
    (tmp_path / "results").mkdir()
    words = ("--results", tmp_path / "results", "--papers", PAPERS, "--docs", tmp_path, "--merge", tmp_path)
    answer = ldp("results", *words)
    assert answer.code == 2
    assert "has no folder reproduce; name another folder of results with --merge" in answer.err
    assert list((tmp_path / "results").iterdir()) == []


@pytest.mark.slow
def test_claims_of_one_paper_are_printed_and_nothing_is_written(ldp, tmp_path: Path) -> None:
    answer = ldp("claims", "heterorr", "--papers", PAPERS, "--results", tmp_path, "--docs", tmp_path, "--json")
    assert answer.code == 0, answer.err
    assert [one["claim"]["number"] for one in json.loads(answer.out)] == [22, 23, 24]
    assert list(tmp_path.iterdir()) == []
    assert ldp("claims", "nobody", "--papers", PAPERS, "--results", tmp_path).code == 2
    answer = ldp("claims", "--check", "--papers", PAPERS, "--results", tmp_path, "--docs", tmp_path)
    assert answer.code == 1


def test_a_protocol_that_is_none_is_one_line(ldp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    answer = ldp("run", "--dataset", "cora", "--epsilon", 1, "--protocol", "nobody")
    assert answer.code == 2
    assert "unknown protocol 'nobody'. Valid: heterorr, ldpge, ppgnn, togl, upgnet" in answer.err


def test_what_a_figure_shows_is_measured_first(ldp, tmp_path: Path) -> None:
    papers, data, results = tmp_path / "papers", tmp_path / "data", tmp_path / "results"
    shutil.copytree(PAPERS, papers)
    text = (papers / "heterorr.yaml").read_text(encoding="utf-8")
    assert text.count("ldp links --dataset cora --epsilon 1,2,4,8") == 1
    text = text.replace("ldp links --dataset cora --epsilon 1,2,4,8", "ldp links --dataset synthetic --epsilon 1")
    (papers / "heterorr.yaml").write_text(text, encoding="utf-8")
    small = ("--set", "nodes=60", "--set", "degree=6")
    assert ldp("download", "synthetic", *small, "--data", data).code == 0
    command = ("reproduce", "heterorr:figure11", "--papers", papers, "--data", data, "--results", results)
    dry = ldp(*command, "--dry")
    assert "measured first, by `ldp links --dataset synthetic" in dry.out
    (planned,) = json.loads(ldp(*command, "--dry", "--json").out)["measured_first"]
    assert planned.startswith("ldp links --dataset synthetic")
    assert not results.exists()
    answer = ldp(*command, "--json", "--quiet")
    assert (answer.code, answer.err) == (0, "")
    (made,) = json.loads(answer.out)
    table = results / "reproduce/heterorr-figure11/quick/table.csv"
    assert str(table) in made["files"]
    assert table.read_text(encoding="utf-8").count("synthetic,") == 6 * 4
    assert (results / "links-private/links.md").is_file()
    assert "measured first" not in ldp(*command).err
