"""What a fresh clone brings: make targets, the CI script, pins, and DVC state that needs no `dvc init`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / ".venv" / "bin"


def run(*command: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=300,
    )


def script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/usr/bin/env bash\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A copy of every file that a commit of this working tree would hold, as a repository of its own."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git repository, so there is nothing to clone")
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT).stdout
    copy = tmp_path / "clone"
    for name in listed.split("\0"):
        if name and (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
    run("git", "init", "--quiet", cwd=copy)
    return copy


# make ----------------------------------------------------------------------------------------------------------------


def test_make_alone_says_what_there_is(clone: Path) -> None:
    words = run("make", cwd=clone).stdout
    for target in ("install", "demo", "test", "check", "clean"):
        assert re.search(rf"^make {target} +\S", words, re.MULTILINE), words


def test_an_old_python_is_refused_in_one_line(clone: Path) -> None:
    script(clone / "old", "exit 1")
    answer = run("make", "install", f"PYTHON={clone / 'old'}", cwd=clone)
    assert answer.returncode == 2
    assert "error: needs Python 3.11 or newer" in answer.stderr
    assert not (clone / ".venv").exists()


def test_nothing_is_installed_twice(clone: Path) -> None:
    runs, stamp = clone / ".venv" / ".runs", clone / ".venv" / ".installed"
    assert run("make", "--question", "install", cwd=clone).returncode == 1
    runs.parent.mkdir()
    runs.touch()
    assert run("make", "--question", str(runs.relative_to(clone)), cwd=clone).returncode == 0
    assert run("make", "--question", "install", cwd=clone).returncode == 1  # what tests need is not there yet
    stamp.touch()
    assert run("make", "--question", "install", cwd=clone).returncode == 0
    later = stamp.stat().st_mtime + 10
    for pins in ("constraints.txt", "pyproject.toml"):
        os.utime(clone / pins, (later, later))
        assert run("make", "--question", "install", cwd=clone).returncode == 1, pins
        os.utime(clone / pins, (later - 100, later - 100))


def test_an_installation_that_fails_leaves_no_stamp(clone: Path) -> None:
    script(
        clone / "python",
        f'if [ "$1" = -m ]; then mkdir -p .venv/bin; ln -sf "{clone}/python" .venv/bin/python; fi\n'
        'if [ "${3:-}" = install ]; then exit 7; fi',
    )
    assert run("make", "install", f"PYTHON={clone / 'python'}", cwd=clone).returncode == 2
    assert (clone / ".venv" / "bin" / "python").exists()
    assert not list((clone / ".venv").glob(".*"))


# pins ----------------------------------------------------------------------------------------------------------------


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    wanted = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in wanted}


def extras() -> dict[str, list[Requirement]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = {"": project["dependencies"], **project["optional-dependencies"]}
    return {name: [Requirement(line) for line in lines] for name, lines in groups.items()}


def needed(extra: str) -> set[str]:
    """Return every distribution that an installation with this extra needs on this platform."""
    seen: set[tuple[str, str]] = set()
    todo = [Requirement(f"graphldp[{extra}]")]
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        for part in ("", *requirement.extras):
            if (name, part) in seen:
                continue
            seen.add((name, part))
            if name == "graphldp":
                todo += extras()[part]
            else:
                found = [Requirement(line) for line in metadata.distribution(name).requires or ()]
                todo += [item for item in found if item.marker is None or item.marker.evaluate({"extra": part})]
    return {name for name, _ in seen} - {"graphldp"}


def test_torch_is_pinned_to_the_tested_release() -> None:
    assert pins()["torch"] == "2.13.0"


def test_what_make_installs_is_what_is_pinned() -> None:
    wrong = {
        name: metadata.version(name)
        for name in needed("dev")
        if metadata.version(name).partition("+")[0] != pins().get(name)
    }
    assert not wrong, f"installed and pinned differently, or not pinned: {wrong}"


def test_every_extra_is_pinned() -> None:
    for extra, requirements in extras().items():
        for requirement in requirements:
            name = canonicalize_name(requirement.name)
            assert name == "graphldp" or requirement.specifier.contains(pins()[name]), f"{extra}: {requirement}"


def test_nothing_is_pinned_that_nobody_needs() -> None:
    optional = set().union(*(needed(extra) for extra in extras() if installed(extra)))
    missing = {extra for extra in extras() if not installed(extra)}
    assert missing or set(pins()) == optional, set(pins()) - optional
    for name in set(pins()) - optional:
        assert not is_there(name), f"{name} is pinned and installed, and nothing needs it"


def installed(extra: str) -> bool:
    return all(requirement.name == "graphldp" or is_there(requirement.name) for requirement in extras()[extra])


def is_there(name: str) -> bool:
    return any(metadata.distributions(name=name))


# DVC -----------------------------------------------------------------------------------------------------------------


def test_dvc_says_nothing_home_and_asks_nothing() -> None:
    config = (ROOT / ".dvc" / "config").read_text(encoding="utf-8")
    for line in ("analytics = false", "check_update = false", "autostage = false"):
        assert line in config
    assert "remote" not in config


@pytest.mark.slow
def test_a_fresh_clone_needs_no_dvc_init(clone: Path) -> None:
    # `dvc repro --dry` is of no use here: it stops at the first input that no earlier run has left behind.
    for command in (("status",), ("dag",), ("stage", "list")):
        # DVC shortens descriptions by a sign that a terminal of ASCII does not have.
        answer = run(
            str(PROGRAMS / "dvc"), *command, cwd=clone, PATH=f"{PROGRAMS}:{os.environ['PATH']}", PYTHONUTF8="1"
        )
        assert answer.returncode == 0, f"dvc {command}: {answer.stdout}{answer.stderr}"
    assert "evaluate" in answer.stdout


def stages() -> dict[str, dict[str, Any]]:
    declared = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    return {name: stage.get("do", stage) for name, stage in declared.items()}


@pytest.mark.parametrize("name", list(stages()))
def test_what_a_stage_depends_on_is_there(name: str) -> None:
    """dvc notices neither a module that was renamed nor a parameter that is gone before it runs the stage."""
    stage = stages()[name]
    assert stage["cmd"].startswith("ldp ")
    for path in stage["deps"]:
        assert path.startswith("data/") or (ROOT / path).exists(), f"{name}: {path} is not there"
    params = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    for key in stage.get("params", ()):
        value = params
        for part in key.split("."):
            assert part in value, f"{name}: params.yaml has no {key}"
            value = value[part]


# continuous integration ----------------------------------------------------------------------------------------------


@pytest.fixture
def rehearsal(tmp_path: Path) -> Path:
    """A project in which make, dvc and ldp only write down that they were called, and fail where a file says so."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    body = (
        'word="$(basename "$0") $*"; echo "$word" >> "{0}/calls"; echo "1 passed in 0.01s"; test ! -e "{0}/fail $word"'
    )
    for path in ("bin/make", "bin/chromium", ".venv/bin/dvc", ".venv/bin/ldp"):
        script(tmp_path / path, body.format(tmp_path))
    return tmp_path


def ci(clone: Path) -> subprocess.CompletedProcess[str]:
    return run("bash", ".ci/run", cwd=clone, PATH=f"{clone / 'bin'}:{os.environ['PATH']}", CI="true")


ELSEWHERE = "make test-elsewhere VARIATIONS=mkl-intel mkl-compatible+aten-default+threads-2"
BESIDE = ["make mutations FAULTS=--rotate --jobs 1", "make spotcheck"]  # at once, in either order
CALLS = ["make install", "make test", "dvc repro", "ldp tables --check", ELSEWHERE]


def test_ci_tests_then_runs_the_pipeline_then_compares_the_tables(rehearsal: Path) -> None:
    answer = ci(rehearsal)
    assert answer.returncode == 0, answer.stderr
    calls = (rehearsal / "calls").read_text(encoding="utf-8").splitlines()
    assert calls[: len(CALLS)] == CALLS
    assert sorted(calls[len(CALLS) :]) == BESIDE
    assert "1 passed in 0.01s" in answer.stdout
    for name in ("make test", "default pipeline", "ldp tables --check", "committed cells, a rotating share", "all"):
        assert re.search(rf"^==> {name}: ok, \d+ s$", answer.stdout, re.MULTILINE)


@pytest.mark.parametrize("failing", [*CALLS, *BESIDE])
def test_ci_fails_where_any_step_fails(rehearsal: Path, failing: str) -> None:
    (rehearsal / f"fail {failing}").touch()
    answer = ci(rehearsal)
    assert answer.returncode != 0
    assert answer.stdout.count("FAILED (exit code 1)") == 1
    assert "==> all: ok" not in answer.stdout
    calls = (rehearsal / "calls").read_text(encoding="utf-8").splitlines()
    assert sorted(calls[len(CALLS) :]) == BESIDE if failing in BESIDE else calls[-1] == failing


@pytest.mark.parametrize("owner", ["true", ""])
def test_ci_installs_system_packages_on_its_own_machines_alone(rehearsal: Path, owner: str) -> None:
    (rehearsal / "bin" / "chromium").unlink()
    for name in ("bash", "dirname", "basename", "timeout", "mktemp", "cat", "rm", "python3.11"):
        found = shutil.which(name)
        if found:
            (rehearsal / "bin" / name).symlink_to(found)
    script(rehearsal / "bin" / "apt-get", f'echo "apt-get $*" >> "{rehearsal}/calls"')
    script(rehearsal / "bin" / "id", "echo 0")
    answer = run("bash", ".ci/run", cwd=rehearsal, PATH=str(rehearsal / "bin"), CI=owner)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    calls = (rehearsal / "calls").read_text(encoding="utf-8")
    assert ("install -y -qq --no-install-recommends chromium" in calls) is (owner == "true")
    assert ("missing: " in answer.stdout) is (owner != "true")


def test_the_workflow_does_what_the_script_does() -> None:
    flow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    job = flow["jobs"]["tables"]
    commands = [step.get("run") for step in job["steps"]]
    assert "bash .ci/run" in commands
    assert any(step.get("with", {}).get("path") == "results/" for step in job["steps"])


def test_the_workflow_runs_the_tests_on_other_processors_and_systems() -> None:
    flow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    job = flow["jobs"]["elsewhere"]
    assert job["strategy"]["matrix"]["os"] == ["ubuntu-latest", "ubuntu-24.04-arm", "macos-14"]
    commands = " ".join(step.get("run", "") for step in job["steps"])
    assert "make test " in commands
    assert "make test-elsewhere " in commands
