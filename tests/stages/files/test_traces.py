"""What a committed table says it was made of, and whether that is still so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from runs_factory import write_grid

from graphldp.stages.code import code_hash
from graphldp.stages.evaluate import evaluate
from graphldp.stages.files import traces as module
from graphldp.stages.files.traces import FILE, traces
from graphldp.stages.grids.params import load

PAPERS = Path(__file__).parents[3] / "papers"
GRID: dict[str, Any] = {"datasets": ["cora"], "epsilons": [1], "seeds": 10, "rows": [{"method": "lpgnn"}]}


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("params.yaml").write_text(yaml.safe_dump(GRID), encoding="utf-8")
    params = load(Path("params.yaml"))
    write_grid(Path("data"), params, meta={"code": code_hash("train")})
    evaluate(params, Path("data"), Path("results"), PAPERS)
    return Path("results")


def stale(results: Path) -> tuple[str, ...]:
    (one,) = traces(results)
    return one.stale


def test_a_table_says_what_it_was_made_of(results: Path) -> None:
    made = json.loads((results / FILE).read_bytes())
    assert made["code"] == [code_hash("train")]
    assert set(made["graphs"]) == {"cora"}
    (one,) = traces(results)
    assert one.text == "results: made by this code, of these parameters"


def test_other_parameters_make_it_stale_and_other_words_do_not(results: Path) -> None:
    Path("params.yaml").write_text(yaml.safe_dump({**GRID, "evaluate": {"confidence": 0.9}}), encoding="utf-8")
    assert stale(results) == ()
    Path("params.yaml").write_text(yaml.safe_dump({**GRID, "epsilons": [1, 2]}), encoding="utf-8")
    assert stale(results) == ("params.yaml has changed",)
    (one,) = traces(results)
    assert one.text == "results: params.yaml has changed; make it again with `dvc repro`"


def test_other_code_makes_it_stale(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "code_hash", lambda kind: "another")
    assert stale(results) == ("made by other code",)


def test_a_table_without_a_trace_is_stale(results: Path) -> None:
    (results / FILE).unlink()
    assert stale(results) == ("it does not say what it was made of",)
