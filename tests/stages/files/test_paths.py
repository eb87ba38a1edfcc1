"""Where artifacts stand, as the pipeline's own paths say it too."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest

from graphldp.stages.files import paths
from graphldp.stages.grids.cell import Cell

ROOT = Path(__file__).parents[3]
DATA = Path("data")


@pytest.mark.parametrize(
    ("epsilon", "text"),
    [(0.0, "0"), (0.1, "0.1"), (1, "1"), (1.0, "1"), (10.0, "10"), (1e-6, "1e-06"), (2.5, "2.5"), (math.inf, "inf")],
)
def test_a_budget_has_one_name(epsilon: float, text: str) -> None:
    assert paths.epsilon_text(epsilon) == text
    assert float(text) == epsilon


def test_neighbouring_budgets_have_different_names() -> None:
    budgets = [0.1, 0.1 + 1e-9, 1 / 3, 0.333333, 1.0, 1.0001]
    assert len({paths.epsilon_text(epsilon) for epsilon in budgets}) == len(budgets)


def test_every_kind_has_a_folder_of_its_own() -> None:
    assert paths.graph_dir(DATA, "cora") == Path("data/graphs/cora")
    assert paths.reports_path(DATA, "cora", "mb", 1.0) == Path("data/perturbed/cora/mb/eps=1.parquet")
    assert paths.calibrated_path(DATA, "cora", "lpgnn-pm", 0.1) == Path("data/denoised/cora/lpgnn-pm/eps=0.1.parquet")
    assert paths.runs_path(DATA, "cora", "nonpriv", math.inf) == Path("data/runs/cora/nonpriv/eps=inf.parquet")


def test_a_cell_has_one_place_for_each_of_its_artifacts() -> None:
    one = Cell(dataset="cora", name="row", method="lpgnn", mechanism="pm", epsilon=1.0)
    assert paths.answers_of(DATA, one) == paths.reports_path(DATA, "cora", "pm", 1.0)  # shared with other rows
    assert paths.calibrated_of(DATA, one) == paths.calibrated_path(DATA, "cora", "row", 1.0)
    assert paths.cell_path(DATA, one) == paths.runs_path(DATA, "cora", "row", 1.0)
    directed = dataclasses.replace(one, method="togl-fda")
    assert paths.answers_of(DATA, directed) == paths.answers_path(DATA, "cora", "row", 1.0)
    other = dataclasses.replace(one, options={"m": 3}, axes=(("mechanism.m", 3),))
    assert paths.answers_of(DATA, other) == Path("data/perturbed/cora/row/mechanism.m=3,eps=1.parquet")
