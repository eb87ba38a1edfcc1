"""Where artifacts stand, as the pipeline's own paths say it too."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import yaml

from graphldp.stages import paths

ROOT = Path(__file__).parents[2]
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
    assert paths.resume_path(DATA, "cora", "base", 3) == Path("data/resume/cora/base/eps=3.safetensors")


def test_the_pipeline_writes_where_the_commands_would() -> None:
    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    item = {"dataset": "D", "mechanism": "M", "epsilon": "1", "row": {"mechanism": "M", "name": "N", "epsilon": "1"}}

    def out(name: str) -> Path:
        (text,) = stages[name]["outs"]
        for key, value in item.items():
            if isinstance(value, dict):
                for part, word in value.items():
                    text = text.replace(f"${{item.{key}.{part}}}", word)
            else:
                text = text.replace(f"${{item.{key}}}", value)
        return Path(text)

    # Of references there may be several with one mechanism and one budget.
    assert out("perturb") == paths.reports_path(DATA, "D", "M", 1)
    for suffix in ("-rounds", "-surveys"):
        assert out(f"perturb{suffix}") == paths.answers_path(DATA, "D", "N", 1)
    for suffix in ("", "-reference", "-rounds"):
        assert out(f"denoise{suffix}") == paths.calibrated_path(DATA, "D", "N", 1)
    for suffix in ("", "-reference", "-rounds", "-surveys"):
        assert out(f"train{suffix}") == paths.runs_path(DATA, "D", "N", 1)
    (majority,) = stages["majority"]["do"]["outs"]
    assert Path(majority.replace("${item}", "D")) == paths.runs_path(DATA, "D", "majority", 0)
