"""`ldp` as scripts see it: exit codes, streams, JSON, in a process of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cell_factory import NAME, calibrate, files, small_params, store
from ldp_process import ldp

PERTURB = ("perturb", "--dataset", NAME, "--epsilon", 1)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    store(tmp_path / "data")
    return tmp_path


def test_a_result_is_on_standard_output_and_json_is_all_of_it(here: Path) -> None:
    answer = ldp(*PERTURB, "--json", cwd=here)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert json.loads(answer.stdout, parse_constant=pytest.fail)["nodes"] == 90


def test_a_mistake_is_one_line_on_standard_error(here: Path) -> None:
    before = files(here)
    answer = ldp(*PERTURB, "--mechanism", "mbb", cwd=here)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr.startswith("error: unknown mechanism 'mbb'; did you mean 'mb'?")
    assert answer.stderr.count("\n") == 1
    assert files(here) == before


@pytest.mark.slow
def test_quiet_is_silent_beside_the_result(here: Path) -> None:
    calibrate(here / "data", small_params())
    answer = ldp("train", "--quiet", "--dataset", NAME, "--epsilon", 1, "--seeds", 3, "--search-points", 1, cwd=here)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout.count("\n") == 1
