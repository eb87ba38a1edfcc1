"""What the pages say is so: links lead somewhere, commands and options exist, Python examples run."""

from __future__ import annotations

import functools
import math
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from graphldp.cli.app import build
from graphldp.stages.grids.params import load

ROOT = Path(__file__).resolve().parents[1]
TOP = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
PAGES = [*(ROOT / name for name in TOP), *sorted((ROOT / "docs").rglob("*.md"))]
GLOBAL = {"--debug", "--quiet"}
# torch_geometric compiles a class with torch.jit as it is imported.
NOT_OURS = "`torch.jit.script` is deprecated:DeprecationWarning"


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@functools.cache
def app() -> Any:
    """Return `ldp` with all its commands."""
    return typer.main.get_command(build())


def command_lines(page: Path) -> list[list[str]]:
    """Return the `ldp` commands of the page's shell blocks, as words."""
    lines = [line for block in blocks(page, "sh") for line in block.replace("\\\n", " ").splitlines()]
    words = [shlex.split(line, comments=True) for line in lines]
    return [line for line in words if line[:1] == ["ldp"]]


def test_a_copy_of_the_grid_is_an_experiment_and_nothing_rewrites_it(tmp_path: Path) -> None:
    """`dvc exp run -S` writes params.yaml anew, and dvc's plots and graph of stages are no help: none is advised."""
    for page in PAGES:
        if page.name != "CHANGELOG.md":
            assert not re.search(r"dvc (exp|plots|dag)\b", page.read_text(encoding="utf-8")), page
    (line,) = (line for line in blocks(ROOT / "README.md", "sh") if "experiments/mine.yaml" in line)
    (tmp_path / "experiments").mkdir()
    shutil.copy(ROOT / "params.yaml", tmp_path)
    subprocess.run(["bash", "-c", line.partition("\n")[0]], cwd=tmp_path, check=True)
    experiment, grid = load(tmp_path / "experiments" / "mine.yaml"), load(ROOT / "params.yaml")
    assert (experiment.name, experiment.seeds, grid.seeds) == ("mine", 10, 5)
    assert experiment.cells() == grid.cells()


def test_the_picture_of_the_page_is_one_and_small() -> None:
    shown = re.findall(r"\]\((docs/[a-z]+\.png)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert shown == ["docs/report.png"]
    picture = (ROOT / "docs/report.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) < 150_000
    assert int.from_bytes(picture[16:20], "big") >= 600  # its width
    assert "--screenshot=docs/report.png" in (ROOT / "docs/tables.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" not in target:
            assert (page.parent / target.partition("#")[0]).exists(), target


def test_the_index_lists_every_page() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for page in PAGES:
        if page.parent.name == "docs" and page.name != "index.md":
            assert f"]({page.name})" in index


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_and_options_exist(page: Path) -> None:
    group = app()
    for words in command_lines(page):
        rest = [word for word in words[1:] if word not in GLOBAL]
        command = group.commands.get(rest[0]) if rest and not rest[0].startswith("-") else group
        assert command is not None, f"{' '.join(words)}: no such command"
        there = {option for item in command.params for option in (*item.opts, *item.secondary_opts)}
        for word in rest:
            if word.startswith("-") and not re.fullmatch(r"-\d.*", word):
                option = word.partition("=")[0]
                assert option in there | {"--help", "-h"}, f"{' '.join(words)}: no option {option}"


@pytest.mark.slow
@pytest.mark.filterwarnings(f"ignore:{NOT_OURS}")
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name)
def test_python_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each in a namespace of its own; in this process, unless it adds parts: importing takes longer than the rest."""
    monkeypatch.chdir(tmp_path)
    for block in blocks(page, "python"):
        if "register(" not in block:
            exec(compile(block, f"{page.name}: {block}", "exec"), {"__name__": "__main__"})
            continue
        command = [sys.executable, "-W", "error", "-W", f"ignore:{NOT_OURS}", "-c", block]
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert run.returncode == 0, f"{block}\n{run.stderr}"


def test_the_command_page_is_what_the_app_says() -> None:
    run = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "cli_page.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr


def test_the_readme_names_the_pipeline_and_the_test_command() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for command in (
        "download",
        "perturb",
        "denoise",
        "train",
        "evaluate",
        "run",
        "predict",
        "import",
        "list",
        "inspect",
    ):
        assert f"ldp {command}" in text, command
    for words in ("make demo", "make test", "bash .ci/run", "ldp tables --check", "docs/cli.md"):
        assert words in text, words


def test_what_epsilon_means_is_a_bound_and_a_tight_one() -> None:
    text = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d.]+) \| ([\d.]+) \| ([\d.]+) % \|$", text, re.MULTILINE)
    assert len(rows) == 4
    for epsilon, odds, right in ((float(one), float(two), float(three)) for one, two, three in rows):
        assert math.exp(epsilon) <= odds < 1.01 * math.exp(epsilon)
        assert 100 / (1 + math.exp(-epsilon)) <= right < 100 / (1 + math.exp(-epsilon)) + 0.1
