"""`ldp inspect`: what an artifact says of itself, and one line for what is none."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file

from graphldp.stages.files.artifacts import write_json, write_table

META = {"kind": "reports", "mechanism": "mb", "epsilon": 1.0, "search": {"points": 12}, "seeds": [0, 1]}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "eps=1.parquet"
    write_table(path, pa.table({"seed": np.arange(1234, dtype=np.int32)}), META)
    return path


def test_a_table(ldp, table: Path) -> None:
    answer = ldp("inspect", table)
    assert answer.code == 0
    assert "eps=1.parquet: reports, 1,234 rows" in answer.out
    words = answer.out.split()
    for word in ("mechanism", "mb", "search.points", "12", "seed", "int32"):
        assert word in words


def test_a_table_as_json(ldp, table: Path) -> None:
    answer = ldp("inspect", table, "--json")
    assert json.loads(answer.out) == {
        "path": str(table),
        "kind": "reports",
        "bytes": table.stat().st_size,
        "rows": 1234,
        "columns": {"seed": "int32"},
        "meta": META,
    }


def test_names_with_brackets_are_not_markup(ldp, tmp_path: Path) -> None:
    path = tmp_path / "[bold]x[/bold].parquet"
    write_table(path, pa.table({"[red]c": [1]}), {"kind": "runs", "note": "[/nonsense]"})
    answer = ldp("inspect", path)
    assert answer.code == 0
    for word in ("[bold]x[/bold].parquet", "[red]c", "[/nonsense]"):
        assert word in answer.out


def test_a_graph(ldp, tmp_path: Path) -> None:
    write_json(tmp_path / "graph.json", {"name": "toy", "nodes": 3})
    pq.write_table(pa.table({"source": [0, 1]}), tmp_path / "edges.parquet")
    for path in (tmp_path, tmp_path / "graph.json"):
        answer = ldp("inspect", path, "--json")
        found = json.loads(answer.out)
        assert (found["kind"], found["meta"]["name"], found["rows"]) == ("graph", "toy", None)
        assert found["columns"] == {"edges.parquet": "2 rows"}
    assert "toy" in ldp("inspect", tmp_path).out


def test_a_model(ldp, tmp_path: Path) -> None:
    weights = tmp_path / "weights.safetensors"
    save_file({"weight": np.zeros((4, 2), np.float32)}, weights, metadata={"format": "any"})
    write_json(tmp_path / "model.json", {"model": "gcn", "options": {"hidden": 16}})
    for path in (tmp_path, weights, tmp_path / "model.json"):
        found = json.loads(ldp("inspect", path, "--json").out)
        assert (found["kind"], found["meta"]["model"]) == ("model", "gcn")
        assert found["columns"] == {"weight": "F32 [4, 2]"}
        assert found["path"] == str(tmp_path)
        assert found["bytes"] == sum(file.stat().st_size for file in tmp_path.iterdir())
    assert "options.hidden" in ldp("inspect", tmp_path).out


def refused(tmp_path: Path) -> dict[str, Path]:
    foreign, cut, text = tmp_path / "foreign.parquet", tmp_path / "cut.parquet", tmp_path / "notes.txt"
    pq.write_table(pa.table({"a": [1]}), foreign)
    cut.write_bytes(foreign.read_bytes()[:-20])
    text.write_text("hello", encoding="utf-8")
    damaged, folder, metrics = (
        tmp_path / "model" / "weights.safetensors",
        tmp_path / "folder",
        tmp_path / "metrics.json",
    )
    write_json(damaged.with_name("model.json"), {})
    damaged.write_bytes(b"\xff" * 40)
    bare, empty = tmp_path / "bare" / "weights.safetensors", tmp_path / "empty" / "model.json"
    bare.parent.mkdir()
    save_file({"weight": np.zeros(2, np.float32)}, bare)
    write_json(empty, {})
    folder.mkdir()
    metrics.write_text("{}", encoding="utf-8")
    graph = tmp_path / "graph" / "graph.json"
    graph.parent.mkdir()
    graph.write_text("{", encoding="utf-8")
    bad_table = tmp_path / "bad_table" / "graph.json"
    write_json(bad_table, {"name": "toy"})
    (bad_table.parent / "edges.parquet").write_bytes(b"PAR1 and no more")
    return {
        "is no artifact of graphldp": foreign,
        "not a readable Parquet file": cut,
        "is not an artifact": text,
        "weights.safetensors is damaged": damaged,
        "holds weights and no model.json": bare,
        "holds no weights": empty,
        "holds neither graph.json nor model.json": folder,
        "expected a .parquet file": metrics,
        "its description is no JSON": graph,
        "edges.parquet is damaged": bad_table,
        "does not exist": tmp_path / "nothing.parquet",
    }


def test_what_is_no_artifact_is_refused_in_one_line(ldp, tmp_path: Path) -> None:
    for words, path in refused(tmp_path).items():
        answer = ldp("inspect", path)
        assert answer.code == 2, path
        assert answer.line.startswith("error: ")
        assert words in answer.line
