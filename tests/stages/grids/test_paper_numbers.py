from __future__ import annotations

import csv
import math
from collections import Counter
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from graphldp import datasets
from graphldp.client import option_names
from graphldp.errors import DataError, OptionError
from graphldp.experiment.options import Further, SearchParams
from graphldp.experiment.rounds import Rounds
from graphldp.learn import models
from graphldp.measures import measures_of, tasks
from graphldp.methods import method
from graphldp.server.filters import SHARED_OPTIONS
from graphldp.stages.evaluate import printed_of
from graphldp.stages.grids.cell import Cell
from graphldp.stages.grids.paper_numbers import PaperNumbers, Rule, changes_of, load_papers
from graphldp.stages.grids.params import load

PAPERS = Path(__file__).parents[3] / "papers"
YAMLS = sorted(PAPERS.glob("*.yaml"))
HEADER = "paper,table,dataset,method,mechanism,model,task,epsilon,setting,metric,value,spread,spread_kind"
# What the papers' transcripts hold, number by number: each stands here once, wherever it may be compared.
PRINTED = {
    "ldpge_table3": 120, "ppgnn_table3": 90, "togl_table4": 4, "togl_table5": 8, "togl_table6": 4, "togl_table8": 8,
    "togl_table9": 2, "togl_table10": 4, "togl_table11": 4, "togl_table12": 4, "togl_table13": 4, "togl_table14": 4,
    "togl_table15": 4, "togl_table16": 4, "togl_table17": 18, "togl_table18": 35, "upgnet_table2": 48,
    "upgnet_table2_gains": 32, "upgnet_table4": 12,
}  # fmt: skip
TASKS = {"multitask_classification": "multi_task", "multitask_regression": "multi_task"}  # one task of ours has both


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
            assert ours["task"] == TASKS.get(row["task"], row["task"])
            assert ours["epsilon"] == (float(row["epsilon"]) if row["epsilon"] else None)
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


def test_every_printed_number_stands_beside_rows_or_says_why_not(numbers: PaperNumbers) -> None:
    found: dict[str, set[int]] = {}
    for one in (*numbers.entries, *numbers.alone):
        found.setdefault(Path(one.file).stem, set()).add(one.row)
    assert found == {name: set(range(1, count + 1)) for name, count in PRINTED.items()}
    beside = {(entry.file, entry.row) for entry in numbers.entries}
    assert beside.isdisjoint((one.file, one.row) for one in numbers.alone)
    assert (len(beside), len(numbers.alone)) == (302, 107)
    assert all(one.why.strip().endswith(".") for one in numbers.alone)


def _known(rule: Rule) -> None:
    """Refuse an address that no row of ours can have."""
    recipe = method(rule.method)
    assert recipe.choose(rule.mechanism) == rule.mechanism
    assert datasets.spec(rule.dataset)
    assert rule.task.replace("_", "-") in tasks()
    assert rule.model is None or rule.model in models()
    for key, values in rule.settings.items():
        part, _, name = key.rpartition(".")
        valid = {"method": _CALIBRATION, "search": _SEARCH, "": option_names(rule.mechanism)}
        assert part == "data" or name in valid[part], key
        for value in values:
            if part == "method" and value not in ("default", "any"):
                recipe.but({name: yaml.safe_load(value)})
    if any(key.startswith("data.") for key in rule.settings):
        Options = datasets.spec(rule.dataset).options
        assert {key.partition(".")[2] for key in rule.settings} <= {one.name for one in fields(Options)}


_SEARCH = {one.name for one in fields(SearchParams)}
_CALIBRATION = {"filter", "before", "after", *SHARED_OPTIONS, *(one.name for one in fields(Rounds))}


def test_every_address_is_one_that_a_row_of_ours_can_have(numbers: PaperNumbers) -> None:
    for rule in {entry.rule.address: entry.rule for entry in numbers.entries}.values():
        _known(rule)


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "togl"},
        {"method": "upgnet"},
        {"mechanism": "laplace"},
        {"dataset": "twitch"},
        {"settings": {"method.tau_one": ("any",)}},
        {"settings": {"method.rho": ("2",)}},
    ],
)
def test_an_address_of_nothing_is_refused(numbers: PaperNumbers, changes: dict[str, Any]) -> None:
    rule = next(entry.rule for entry in numbers.entries if entry.rule.method == "togl-fda")
    _known(rule)
    with pytest.raises((AssertionError, OptionError)):
        _known(replace(rule, **changes))


def test_no_address_is_printed_twice_with_one_rank(numbers: PaperNumbers) -> None:
    seen = Counter((entry.rule.address, entry.metric, entry.number.rank) for entry in numbers.entries)
    assert [address for address, count in seen.items() if count > 1] == []


def _values(
    numbers: PaperNumbers, method: str, mechanism: str, epsilon: float, model: str = "gcn", **changes: object
) -> list[str]:
    found = numbers.lookup(
        dataset="cora", method=method, mechanism=mechanism, model=model, epsilon=epsilon,
        changes={key.replace("__", "."): value for key, value in changes.items()},
    )  # fmt: skip
    return [f"{number.reference} {number.text}" for number in found]


def test_which_number_stands_beside_a_row(numbers: PaperNumbers) -> None:
    # UPGNet's multi-bit rows are uncalibrated (its Table 4 repeats the starred ones as 'without aggregator').
    assert _values(numbers, "base", "mb", 0.1) == ["UPGNet Table 2 (MBM) 77.9", "PPGNN Table 3 (MB) 72.3 ± 1.6"]
    assert _values(numbers, "lpgnn", "mb", 1) == ["PPGNN Table 3 (MB) 78.9 ± 1.2"]
    assert _values(numbers, "lpgnn", "lp", 0.1) == ["PPGNN Table 3 (LP) 32.5 ± 0.9"]
    assert _values(numbers, "lpgnn", "pm", 10, search__steps=(3,)) == ["TOGL Table 16 (Baseline*) 83.7"]
    assert _values(numbers, "lpgnn", "pm", 10) == []  # its depth is searched
    assert _values(numbers, "ldpge", "identity", math.inf, "mlp") == []  # a link predictor's, not a classifier's


def test_a_row_that_changes_anything_has_only_the_numbers_that_name_it(numbers: PaperNumbers) -> None:
    assert _values(numbers, "base", "mb", 0.01, method__before=0.5) == [
        "UPGNet Table 2 (MBM*) 71.3",
        "UPGNet Table 4 (ours_nfr) 71.3",
    ]
    assert _values(numbers, "base", "pm", 0.01, method__before=0.25) == ["UPGNet Table 2 (PM*) 72.0"]
    group = {"method__before": 0.5, "method__shrinkage": "group"}
    assert _values(numbers, "base", "mb", 0.01, **group) == ["UPGNet Table 4 (group_lasso) 57.6"]
    assert _values(numbers, "base", "pm", 0.01, **group) == []
    for changes in ({"method__filter": "hoa"}, {"search__steps": (64,)}, {"gamma": 0.1}, {"levels": 1}, {"m": 4}):
        assert _values(numbers, "lpgnn", "mb", 0.01, **changes) == []
        assert _values(numbers, "ppgnn", "ppm", 0.01, **changes) == []
    printed = {"m_rule": "2/5", "method__m_from": "total", "search__steps": (0,)}
    assert _values(numbers, "togl-sma", "pm", 10, **printed) == [
        "TOGL Table 17 (SMA) 81.6",
        "TOGL Table 15 (TOGL) 81.6",
        "TOGL Table 18 (SMA) 81.6",
    ]
    assert _values(numbers, "togl-sma", "pm", 10) == []


VARIED = """
title: Parts that are varied
datasets: [cora]
epsilons: [0.01]
vary: {method.before: [0, 0.5], mechanism.levels: [4, 5], search.steps: [8]}
rows:
  - {name: nfr, method: base, mechanism: mb, vary: [method.before]}
  - {name: ppgnn, method: ppgnn, mechanism: ppm, vary: [mechanism.levels]}
  - name: residual
    method: lpgnn
    mechanism: mb
    set: {method.filter: residual, method.source: previous}
    vary: [search.steps]
"""


def _cell(path: Path, arm: str, **axes: object) -> Cell:
    return next(cell for cell in load(path).cells() if cell.name == arm and axes.items() <= dict(cell.axes).items())


def test_a_cell_says_all_that_it_changes_and_nothing_that_is_the_default(tmp_path: Path) -> None:
    path = tmp_path / "varied.yaml"
    path.write_text(VARIED, encoding="utf-8")
    assert changes_of(_cell(path, "nfr", **{"method.before": 0})) == {}
    assert changes_of(_cell(path, "nfr", **{"method.before": 0.5})) == {"method.before": 0.5}
    assert changes_of(_cell(path, "ppgnn", **{"mechanism.levels": 5})) == {}
    assert changes_of(_cell(path, "ppgnn", **{"mechanism.levels": 4})) == {"levels": 4}
    assert changes_of(_cell(path, "residual", **{"search.steps": 8})) == {
        "method.filter": "residual",
        "method.source": "previous",
        "search.steps": (8,),
    }
    assert changes_of(_cell(PAPERS.parent / "experiments" / "dials.yaml", "lpgnn"))["data.nodes"] == 1000
    default = load(PAPERS.parent / "params.yaml")
    changed = {(cell.dataset, cell.name) for cell in default.cells() if changes_of(cell)}
    assert {name for dataset, name in changed if dataset == "cora"} == {"togl-fda"}  # the paper's own m
    assert {name for dataset, name in changed if dataset == "citeseer"} == {
        cell.name for cell in default.cells()
    }  # few labels


def test_what_no_paper_prints_stays_empty(numbers: PaperNumbers) -> None:
    assert _values(numbers, "lpgnn", "mb", 3) == []
    assert _values(numbers, "lpgnn", "pm", 1) == []
    assert _values(numbers, "structure", "null", 0) == []
    assert _values(numbers, "nonpriv", "identity", math.inf) == []
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
    ours = {"dataset": "cora", "model": "gcn", "task": "t", "epsilon": 1.0}
    why = changes.pop("alone", [{"why": "It is a test."}])
    beside = changes.pop("beside", [])
    cell = {"row": 1, "printed": "MB", "metric": "accuracy", "value": "78.9", "ours": ours} | changes
    table = {"table": "1", "file": "tables/t.csv", "shows": "x", "beside": beside, "alone": why, "cells": [cell]}
    text = yaml.safe_dump(
        {"paper": "p", "short": "P", "title": "t", "reference": "r", "tables": [table], "figures": []}
    )
    (tmp_path / "p.yaml").write_text(text)
    return tmp_path


def test_a_sound_paper_loads(tmp_path: Path) -> None:
    found = load_papers(_paper(tmp_path))
    assert found.entries == ()
    assert [one.why for one in found.alone] == ["It is a test."]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"value": "79.9"}, "value is '79.9' here and '78.9' in the CSV"),
        ({"row": 2}, "row 2 is not in its CSV"),
        ({"printed": "PM"}, "printed is 'PM' here"),
        ({"ours": {"dataset": "cora"}}, r"tables\[0\].cells\[0\].ours lacks model, task, epsilon"),
        ({"extra": 1}, r"unknown key .tables\[0\].cells\[0\].extra.. Valid: row"),
        ({"alone": []}, "must stand beside rows of ours or say once why not; it has 0 rules of beside and 0 of alone"),
        ({"alone": [{"why": "a"}, {"why": "b"}]}, "it has 0 rules of beside and 2 of alone"),
        ({"alone": [{"printed": "PM", "why": "a"}]}, "it has 0 rules"),
        ({"beside": [{"printed": "MB", "method": "base", "mechanism": "mb", "rank": 1, "note": "n"}]}, "has 1 rules"),
        ({"alone": [{"reason": "a"}]}, r"unknown key .tables\[0\].alone\[0\].reason"),
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


def test_no_printed_number_stands_beside_a_row_that_asks_for_more_than_features() -> None:
    cell = Cell(dataset="cora", name="lpgnn", method="lpgnn", mechanism="mb", epsilon=1.0)
    measures = measures_of("node-classification")
    papers = load_papers(PAPERS)
    train = {"train_fraction": 0.5}
    assert printed_of(cell, train, "gcn", measures, papers)
    for further in (Further(labels="krr", epsilon_labels=1.0), Further(links="blink", epsilon_links=4.0)):
        assert printed_of(cell, train, "gcn", measures, papers, further) == ()
