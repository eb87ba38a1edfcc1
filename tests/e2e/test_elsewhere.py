"""`tools/elsewhere.py`: each variation is what it says, a failure is told, and what this machine cannot be is named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "elsewhere.py"


def elsewhere(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, TOOL, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def test_it_says_what_there_is() -> None:
    done = elsewhere("--list")
    assert done.returncode == 0
    names = [line.split()[0] for line in done.stdout.splitlines()]
    for name in ("aten-default", "aten-avx2", "aten-avx512", "mkl-compatible", "mkl-intel", "threads-4", "folder"):
        assert name in names


def test_an_unknown_variation_is_refused() -> None:
    done = elsewhere("mkl-amd")
    assert done.returncode == 2
    assert "unknown variation 'mkl-amd'. Valid: aten-default, " in done.stderr


def test_two_variations_that_contradict_each_other_are_refused() -> None:
    done = elsewhere("threads-1+threads-4")
    assert done.returncode == 2
    assert "threads-1+threads-4: two variations set OMP_NUM_THREADS; run them one after the other" in done.stderr


def test_what_torch_alone_uses_is_varied_for_its_tests_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TOOL.parent))
    from elsewhere import NUMERICAL, combined

    assert combined("mkl-intel+aten-default").tests == ("tests/learn", "tests/adversary")
    assert combined("mkl-intel+threads-2").tests == ("tests/learn", "tests/adversary", "tests/server")
    assert combined("aten-default+hash-1").tests == NUMERICAL
    for folder in ("client", "server"):
        found = [path for path in (ROOT / "graphldp" / folder).rglob("*.py") if "import torch" in path.read_text()]
        assert found == [], "its tests use torch: name them in TORCH of tools/elsewhere.py"
    assert all((ROOT / name).exists() for name in NUMERICAL)


def test_where_all_tests_pass_it_ends_with_0(tmp_path: Path) -> None:
    (tmp_path / "test_right.py").write_text("def test_right():\n    pass\n", encoding="utf-8")
    done = elsewhere("hash-0", "--tests", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "1 passed" in done.stdout
    assert "FAILED" not in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "claim"),
    [
        (
            "aten-default+threads-4+hash-1",
            "import os, torch; assert torch.backends.cpu.get_cpu_capability() == 'DEFAULT';"
            " assert torch.get_num_threads() == 4 and os.environ['PYTHONHASHSEED'] == '1'",
        ),
        ("abroad", "import locale, time; assert locale.getpreferredencoding() != 'UTF-8' and time.timezone == -45900"),
        ("numpy-plain", "from numpy._core._multiarray_umath import __cpu_features__ as f; assert not f['X86_V3']"),
        ("mkl-intel", "import os; assert os.environ['LD_PRELOAD'].endswith('libintel.so')"),
    ],
)
def test_a_variation_is_what_it_says_and_a_failure_is_told(name: str, claim: str, tmp_path: Path) -> None:
    (tmp_path / "test_claim.py").write_text(f"def test_claim():\n    {claim}\n", encoding="utf-8")
    (tmp_path / "test_wrong.py").write_text("def test_wrong():\n    assert 'here' == 'there'\n", encoding="utf-8")
    done = elsewhere(name, "--tests", str(tmp_path))
    if "not to be had" in done.stdout:
        assert done.returncode == 0, done.stderr
        pytest.skip(done.stdout.strip())
    assert done.returncode == 1
    assert "FAILED (exit code 1): 1 failed, 1 passed" in done.stdout
    assert "test_wrong" in done.stderr
