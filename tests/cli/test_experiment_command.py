"""`ldp experiment`: what it prints, what it writes, and what it refuses."""

from __future__ import annotations

import errno
import json
import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
import yaml
from cell_factory import NAME, files, store

from graphldp.stages.files import artifacts

FILE = f"""\
title: A small grid
about: What the tests look at.
datasets: [{NAME}]
epsilons: [1, 3]
seeds: 2
rows:
  - {{name: lpgnn, method: lpgnn, mechanism: mb}}
  - {{name: base, method: base, mechanism: mb}}
search: {{points: 1, seeds: 1, learning_rate: [0.05], weight_decay: [0.001], dropout: [0.25], steps: [2]}}
train: {{hidden: 4, epochs: 8, patience: 8}}
evaluate: {{confidence: 0.9}}
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a graph and an experiment, in which the commands run."""
    store(tmp_path / "data")
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "small.yaml").write_text(FILE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_the_whole_grid_is_written_and_printed(ldp, here: Path) -> None:
    answer = ldp("experiment", "small", "--jobs", 1)
    assert answer.code == 0, answer.err
    rows = [line.split()[0] for line in answer.out.splitlines()[1:9]]
    assert rows == ["row", "majority", "structure", "lpgnn", "base", "lpgnn", "base", "nonpriv"]
    assert "page:  results/small/report.html" in answer.out
    for name in ("tables/main.csv", "metrics.json", "time.json", "report.html", f"figures/accuracy-{NAME}.svg"):
        assert (here / "results" / "small" / name).is_file(), name
    before = {name: (here / name).read_bytes() for name in files(here)}
    assert ldp("experiment", "small", "--jobs", 1, "--quiet").err == ""
    assert {name: (here / name).read_bytes() for name in files(here)} == before


@pytest.mark.slow
def test_results_that_cannot_be_written_lose_nothing(ldp, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = artifacts._whole

    def full(path: Path, new: bool) -> AbstractContextManager[Path]:
        if path.is_relative_to("results"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return whole(path, new)

    monkeypatch.setattr(artifacts, "_whole", full)
    answer = ldp("experiment", "small", "--jobs", 1, "--quiet")
    assert answer.code == 2
    assert answer.line == (
        "error: results/small/tables/main.csv cannot be written: no space left on device; make room, or name another "
        "place. What was trained is kept in data/cells: run the same again"
    )
    assert not [path for path in (here / "results").rglob("*") if path.is_file()]


@pytest.mark.slow
def test_a_part_is_printed_and_leaves_the_results_alone(ldp, here: Path) -> None:
    answer = ldp("experiment", "small", "--jobs", 1, "--only", "row=base", "--only", "epsilon=3")
    assert answer.code == 0
    rows = [line.split()[0] for line in answer.out.splitlines()[1:6]]
    assert rows == ["row", "majority", "structure", "base", "nonpriv"]
    assert answer.err.splitlines()[-1] == "a part of small: results/small stays as it is"
    assert not (here / "results").exists()
    plan = json.loads(ldp("experiment", "small", "--dry", "--json").out)
    done = {row["cell"]: row["done"] for row in plan}
    assert {cell.removeprefix(f"{NAME}, ") for cell, there in done.items() if there} == {
        "majority, epsilon 0",
        "structure, epsilon 0",
        "nonpriv, epsilon inf",
        "base, epsilon 3",
    }


def test_dry_computes_nothing(ldp, here: Path) -> None:
    before = files(here)
    answer = ldp("experiment", "small", "--dry")
    assert answer.out.splitlines()[0] == f"to do  {NAME}, majority, epsilon 0"
    assert answer.line == "of 7 cells, 7 to compute"
    assert files(here) == before


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"datasets": ["coraa"]}, "unknown dataset 'coraa'; did you mean 'cora'?"),
        ({"rows": [{"method": "lpgnn", "set": {"method.rhoo": 1}}]}, "has no option 'rhoo'"),
        ({"rows": [{"method": "lpgnn", "options": {"gama": 1}}]}, "has no option 'gama'"),
    ],
)
def test_dry_refuses_what_the_experiment_would(ldp, here: Path, changes: dict[str, Any], says: str) -> None:
    path = here / "experiments" / "small.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text(encoding="utf-8")) | changes), encoding="utf-8")
    answer = ldp("experiment", "small", "--dry")
    assert answer.code == 2
    assert says in answer.line
    assert ldp("experiment", "small").line == answer.line


def test_dry_says_of_which_graphs_it_knows_the_name_alone(ldp, here: Path) -> None:
    path = here / "experiments" / "small.yaml"
    grid = yaml.safe_load(path.read_text(encoding="utf-8")) | {"datasets": [NAME, "citeseer"]}
    path.write_text(yaml.safe_dump(grid), encoding="utf-8")
    answer = ldp("experiment", "small", "--dry")
    assert answer.code == 0
    assert answer.err.splitlines()[-1] == "not here, so that options which depend on them are not checked: citeseer"


def test_the_list_says_what_each_shows(ldp, here: Path) -> None:
    out = ldp("experiment", "--list").out
    assert " ".join(out.split()) == "small 7 cells A small grid What the tests look at."
    (one,) = json.loads(ldp("experiment", "--list", "--json").out)
    assert one == {"name": "small", "title": "A small grid", "about": "What the tests look at.", "cells": 7}


def test_json_is_for_scripts(ldp) -> None:
    found = json.loads(ldp("experiment", "small", "--jobs", 1, "--json").out)
    assert set(found["metrics"][NAME]) == {"majority", "structure", "nonpriv", "lpgnn", "base"}
    assert "results/small/time.json" in found["files"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((), "which experiment? `ldp experiment --list` says which there are"),
        (("smal",), "unknown experiment 'smal'; did you mean 'small'? Valid: small"),
        (("small", "--list"), "leave 'small' out"),
        (("other.yaml",), "other.yaml does not exist; see `ldp experiment --list`"),
        (("small", "--only", "row=x"), "unknown row 'x'"),
    ],
)
def test_what_cannot_be_is_one_line(given: tuple[str, ...], words: str, ldp, here: Path) -> None:
    before = files(here)
    answer = ldp("experiment", *given)
    assert answer.code == 2
    assert words in answer.line
    assert files(here) == before


def test_without_a_folder_of_experiments(ldp, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here / "data")
    assert "the folder experiments holds no experiment" in ldp("experiment", "--list").line
