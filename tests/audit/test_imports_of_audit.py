from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import graphldp.audit


def test_every_public_name_is_there() -> None:
    assert dir(graphldp.audit) == sorted(graphldp.audit.__all__)
    for name in graphldp.audit.__all__:
        value = getattr(graphldp.audit, name)
        module = importlib.import_module(f"graphldp.audit.{graphldp.audit._HOME[name]}")
        assert getattr(module, name) is value
    assert sorted(graphldp.audit._HOME) == sorted(graphldp.audit.__all__)
    with pytest.raises(AttributeError, match="no attribute 'audit_everything'"):
        _ = graphldp.audit.audit_everything


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["perturb", "denoise", "train", "evaluate"])
def test_a_stage_that_adds_up_budgets_leaves_the_audit_alone(stage: str) -> None:
    code = f"import sys, graphldp.stages.{stage}; print(*(name for name in sys.modules if 'graphldp.audit.' in name))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {"graphldp.ledger"}
