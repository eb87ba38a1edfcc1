"""The wheel, in an environment that holds nothing else: what a device, a shell user and a learner find there."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "graphldp", "cli", "stages")

pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == code, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy, so that nothing left over in build/ can get into it."""
    copy = tmp_path_factory.mktemp("source")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, copy / name)
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", copy / "dist", cwd=copy)
    (built,) = (copy / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def device(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment with the base installation."""
    home = tmp_path_factory.mktemp("device")
    venv.create(home / "env", with_pip=True)
    install(home / "env" / "bin", str(wheel))
    return home / "env" / "bin"


def install(programs: Path, requirement: str) -> None:
    constraints = ROOT / "constraints.txt"
    run(programs / "python", "-m", "pip", "install", "--quiet", requirement, "-c", constraints, cwd=programs)


def test_the_wheel_holds_the_package_and_nothing_beside_it(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    tops = {name.partition("/")[0] for name in names}
    assert tops == {"graphldp", f"graphldp-{wheel.name.split('-')[1]}.dist-info"}
    for folder, place in (("graphldp", "graphldp"), ("cli", "graphldp/cli"), ("stages", "graphldp/stages")):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                assert f"{place}/{path.relative_to(ROOT / folder)}" in names, f"{path} is missing from the wheel"
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_a_device_needs_numpy_alone(device: Path) -> None:
    listed = run(device / "python", "-m", "pip", "list", "--format=freeze", cwd=device).stdout.split()
    assert {line.partition("==")[0] for line in listed} - {"pip", "setuptools"} == {"graphldp", "numpy"}
    program = (
        "import numpy as np\n"
        "from graphldp.client import protocol\n"
        "reports = protocol('mb', 1.0, 8).perturb(np.ones((5, 8)), np.random.default_rng(0))\n"
        "print(reports.value.shape[0], sorted(set(np.abs(np.asarray(reports.value, dtype=int)).ravel().tolist())))\n"
    )
    assert run(device / "python", "-I", "-c", program, cwd=device).stdout == "5 [1]\n"


def test_no_generic_names_in_somebody_elses_environment(device: Path) -> None:
    for name in ("cli", "stages"):
        answer = run(device / "python", "-I", "-c", f"import {name}", cwd=device, code=1)
        assert f"No module named '{name}'" in answer.stderr


def test_extras_are_named_when_they_are_missing(device: Path, wheel: Path) -> None:
    answer = run(device / "ldp", "--help", cwd=device, code=2)
    assert answer.stdout == ""
    assert answer.stderr.count("\n") == 1
    assert "pip install 'graphldp[cli]'" in answer.stderr

    install(device, f"{wheel}[cli]")
    assert "graphldp" in run(device / "ldp", "--version", cwd=device).stdout
    assert "Usage: ldp" in run(device / "ldp", "--help", cwd=device).stdout
    assert "mb" in run(device / "ldp", "list", "mechanisms", cwd=device).stdout

    answer = run(device / "ldp", "list", "models", cwd=device, code=2)
    assert answer.stdout == ""
    assert answer.stderr.count("\n") == 1
    assert "pip install 'graphldp[learn]'" in answer.stderr
