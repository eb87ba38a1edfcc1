from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest
import yaml

from graphldp.errors import DataError
from graphldp.stages.paper_numbers import PaperNumbers, load_papers

PAPERS = Path(__file__).parents[2] / "papers"
YAMLS = sorted(PAPERS.glob("*.yaml"))
HEADER = "paper,table,dataset,method,mechanism,model,task,epsilon,setting,metric,value,spread,spread_kind"
METHODS = {"base", "lpgnn", "upgnet", "ppgnn", "togl", "ldpge", "nonpriv"}


@pytest.fixture(scope="module")
def numbers() -> PaperNumbers:
    return load_papers(PAPERS)


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def test_five_papers() -> None:
    assert [path.stem for path in YAMLS] == ["heterorr", "ldpge", "ppgnn", "togl", "upgnet"]


@pytest.mark.parametrize("path", YAMLS, ids=lambda path: path.stem)
def test_yaml_and_csv_say_the_same_cell_by_cell(path: Path) -> None:
    paper = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert paper["paper"] == path.stem
    for table in paper["tables"]:
        rows = _rows(PAPERS / table["file"])
        # Each printed number is reached exactly once.
        assert [cell["row"] for cell in table["cells"]] == list(range(1, len(rows) + 1)), table["file"]
        for cell, row in zip(table["cells"], rows, strict=True):
            ours = cell["ours"]
            assert (cell["printed"], cell["metric"], cell["value"]) == (row["method"], row["metric"], row["value"])
            assert (ours["dataset"] or "") == row["dataset"]
            assert (ours["model"] or "") == row["model"]
            assert ours["task"] == row["task"]
            assert ours["epsilon"] == (float(row["epsilon"]) if row["epsilon"] else None)
            assert ours["method"] in METHODS
            assert ours["mechanism"] == ("identity" if ours["method"] == "nonpriv" else row["mechanism"])
        for rule in table["beside"]:
            assert rule["printed"] in {row["method"] for row in rows}
            assert rule["note"].strip()


@pytest.mark.parametrize("path", YAMLS, ids=lambda path: path.stem)
def test_figures_are_those_described(path: Path) -> None:
    paper = yaml.safe_load(path.read_text(encoding="utf-8"))
    described = [row["figure"] for row in _rows(PAPERS / "figures.csv") if row["paper"] == path.stem]
    assert [figure["figure"] for figure in paper["figures"]] == described
    assert described


def test_every_table_belongs_to_a_paper() -> None:
    named = [table["file"] for path in YAMLS for table in yaml.safe_load(path.read_text(encoding="utf-8"))["tables"]]
    assert sorted(named) == sorted(f"tables/{path.name}" for path in (PAPERS / "tables").glob("*.csv"))
    assert all((PAPERS / name).read_text(encoding="utf-8").splitlines()[0] == HEADER for name in named)


def test_no_address_is_printed_twice_with_one_rank(numbers: PaperNumbers) -> None:
    seen = Counter((entry.cell, entry.metric, entry.number.rank) for entry in numbers.entries)
    assert [address for address, count in seen.items() if count > 1] == []


def _values(numbers: PaperNumbers, method: str, mechanism: str, epsilon: float, model: str = "gcn") -> list[str]:
    found = numbers.lookup(dataset="cora", method=method, mechanism=mechanism, model=model, epsilon=epsilon)
    return [f"{number.reference} {number.text}" for number in found]


def test_which_number_stands_beside_a_row(numbers: PaperNumbers) -> None:
    # UPGNet's multi-bit rows are uncalibrated (its Table 4 repeats the starred ones as 'without aggregator').
    assert _values(numbers, "base", "mb", 0.1) == ["UPGNet Table 2 (MBM) 77.9", "PPGNN Table 3 (MB) 72.3 ± 1.6"]
    assert _values(numbers, "lpgnn", "mb", 1) == ["PPGNN Table 3 (MB) 78.9 ± 1.2"]
    assert _values(numbers, "lpgnn", "lp", 0.1) == ["PPGNN Table 3 (LP) 32.5 ± 0.9"]
    assert _values(numbers, "lpgnn", "pm", 10) == ["TOGL Table 16 (Baseline*) 83.7"]


def test_what_no_paper_prints_stays_empty(numbers: PaperNumbers) -> None:
    assert _values(numbers, "lpgnn", "mb", 3) == []
    assert _values(numbers, "lpgnn", "pm", 1) == []
    assert _values(numbers, "structure", "null", 0) == []
    assert _values(numbers, "nonpriv", "identity", float("inf")) == []
    # UPGNet names its model, PPGNN does not.
    assert _values(numbers, "base", "mb", 1.0, model="sage") == ["PPGNN Table 3 (MB) 78.9 ± 1.2"]


def test_upgnet_repeats_its_table_2_without_the_aggregator() -> None:
    # The evidence on which MBM stands beside base.
    starred = {
        row["dataset"]: row["value"]
        for row in _rows(PAPERS / "tables" / "upgnet_table2.csv")
        if row["method"] == "MBM*" and row["epsilon"] == "0.01"
    }
    alone = {
        row["dataset"]: row["value"]
        for row in _rows(PAPERS / "tables" / "upgnet_table4.csv")
        if row["method"] == "ours_nfr" and "hoa=no" in row["setting"]
    }
    assert len(starred) == 4
    assert starred == alone


def test_a_missing_folder_is_marked(tmp_path: Path) -> None:
    numbers = load_papers(tmp_path / "none")
    assert numbers.missing
    assert numbers.lookup(dataset="cora", method="base", mechanism="mb", model="gcn", epsilon=1.0) == []


def _paper(tmp_path: Path, **changes: object) -> Path:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "t.csv").write_text(
        f"{HEADER}\np,1,cora,MB,mb,gcn,node_classification,1.0,,accuracy,78.9,,\n"
    )
    ours = {"dataset": "cora", "method": "base", "mechanism": "mb", "model": "gcn", "task": "t", "epsilon": 1.0}
    cell = {"row": 1, "printed": "MB", "metric": "accuracy", "value": "78.9", "ours": ours} | changes
    table = {"table": "1", "file": "tables/t.csv", "shows": "x", "beside": [], "cells": [cell]}
    text = yaml.safe_dump(
        {"paper": "p", "short": "P", "title": "t", "reference": "r", "tables": [table], "figures": []}
    )
    (tmp_path / "p.yaml").write_text(text)
    return tmp_path


def test_a_sound_paper_loads(tmp_path: Path) -> None:
    assert load_papers(_paper(tmp_path)).entries == ()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"value": "79.9"}, "value is '79.9' here and '78.9' in the CSV"),
        ({"row": 2}, "row 2 is not in its CSV"),
        ({"printed": "PM"}, "printed is 'PM' here"),
        ({"ours": {"dataset": "cora"}}, "an entry of ours has the keys"),
        ({"extra": 1}, "an entry of cells has the keys"),
    ],
)
def test_a_paper_that_contradicts_its_csv_is_refused(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_papers(_paper(tmp_path, **changes))


def test_yaml_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("a: [1")
    with pytest.raises(DataError, match="not valid YAML") as caught:
        load_papers(tmp_path)
    assert "\n" not in str(caught.value)
