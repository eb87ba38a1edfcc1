"""`tools/mutations.py`: the list fits the code, faults are planted where Python imports from, verdicts are told."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "mutations.py"
ENTRY = """
[[mutation]]
name = "{name}"
breaks = "what it breaks"
file = "{file}"
before = '{before}'
after = '{after}'
tests = ["{test}"]
"""


def mutations(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, TOOL, *(str(argument) for argument in arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def entry(name: str, file: str, before: str, after: str, test: object = "tests/test_graph.py") -> str:
    return ENTRY.format(name=name, file=file, before=before, after=after, test=test)


@pytest.mark.parametrize(("group", "least"), [("privacy", 60), ("other", 40)])
def test_every_fault_of_the_list_fits_the_code(group: str, least: int) -> None:
    done = mutations("--list", "--group", group)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) >= least


@pytest.mark.parametrize(
    ("file", "before", "after", "words"),
    [
        ("graphldp/graph.py", "def adjacencies(self)", "", "graphldp/graph.py; the nearest line is graphldp/graph.py:"),
        ("graphldp/graph.py", "return", "", " times in graphldp/graph.py; the nearest line is "),
        ("graphldp/graph.py", "def adjacency(", "def (", "graphldp/graph.py is no Python any more: line "),
        ("graphldp/graph.py", "def adjacency(", "def adjacency(", "before and after are the same"),
        ("graphldp/grapf.py", "def", "", "there is no file graphldp/grapf.py"),
    ],
)
def test_a_fault_that_does_not_fit_is_an_error(file: str, before: str, after: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "list.toml").write_text(entry("moved", file, before, after), encoding="utf-8")
    done = mutations("--from", tmp_path / "list.toml")
    assert done.returncode == 1
    assert done.stderr.startswith("error: moved: ")
    assert words in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--only", "last-row-cleer"), "unknown fault 'last-row-cleer', near last-row-clear"),
        (("--share", "3/2"), "--share must be K/N with 1 <= K <= N, got '3/2'"),
        (("--group", "private"), "unknown group 'private'. Valid: other, privacy"),
        (("--jobs", "0"), "--jobs must be at least 1, got 0"),
    ],
)
def test_options_that_cannot_be_are_refused(arguments: tuple[str, ...], words: str) -> None:
    done = mutations(*arguments)
    assert done.returncode == 2
    assert words in done.stderr


def test_shares_are_the_list_an_order_is_the_commits_own_and_what_is_caught_is_well() -> None:
    sys.path.insert(0, str(TOOL.parent))
    try:
        import mutations as tool
    finally:
        sys.path.remove(str(TOOL.parent))
    every = tool.read_list(sorted(tool.LIST.glob("*.toml")))
    caught = tool.FaultVerdict(mutation=every[0], verdict=tool.CAUGHT, seconds=1.0, noticed=("a test",))
    assert tool._summary([caught], len(every)) == 0
    assert tool._summary([caught, dataclasses.replace(caught, audit="acquitted")], len(every)) == 1
    names = [one.name for one in every]
    parts = [[one.name for one in tool.share_of(f"{number}/7", every)] for number in range(1, 8)]
    assert sorted(name for part in parts for name in part) == sorted(names)
    one, two = ([each.name for each in tool.rotated(every, commit)] for commit in ("a" * 40, "b" * 40))
    assert sorted(one) == sorted(two) == sorted(names)
    assert one != two
    assert one == [each.name for each in tool.rotated(every, "a" * 40)]


@pytest.mark.slow
def test_what_becomes_of_a_fault_is_told(tmp_path: Path) -> None:
    tests = {
        "library": "import graphldp.graph",
        "command": "import graphldp.cli.app",
        "stage": "import graphldp.stages.files.paths",
        "process": "import subprocess, sys; subprocess.check_call([sys.executable, '-c', 'import graphldp.cli.app'])",
        "wrong": "import graphldp.graph; assert 'here' == 'there'",
    }
    for name, body in tests.items():
        text = f"def test_{name}():\n    {body}\n"
        (tmp_path / f"test_{name}.py").write_text(text, encoding="utf-8")
    first, raised = (
        "from __future__ import annotations",
        'from __future__ import annotations; raise ImportError("planted")',
    )
    planted = [
        ("library-gone", "graphldp/graph.py", first, raised, "library"),
        ("command-gone", "cli/app.py", first, raised, "command"),
        ("stage-gone", "stages/files/paths.py", first, raised, "stage"),
        ("process-gone", "cli/app.py", first, raised, "process"),
        ("nobody-looks", "graphldp/graph.py", "where they have any.", "where they have some.", "library"),
        ("fails-anyway", "graphldp/graph.py", "where they have any.", "where they have some.", "wrong"),
    ]
    text = "".join(entry(*some, tmp_path / f"test_{test}.py") for *some, test in planted)
    (tmp_path / "list.toml").write_text(text, encoding="utf-8")
    done = mutations("--from", tmp_path / "list.toml", "--jobs", 1, "--json", tmp_path / "found.json")
    assert done.returncode == 1, done.stderr
    found = {row["mutation"]["name"]: row for row in json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))}
    for name in ("library-gone", "command-gone", "stage-gone", "process-gone"):
        assert found[name]["verdict"] == "caught", found[name]
    assert "planted" in found["stage-gone"]["reason"]
    assert found["nobody-looks"]["verdict"] == "NOT CAUGHT"
    assert "its tests fail without it" in found["fails-anyway"]["verdict"]
    assert "4 of 6 faults are caught by the tests (6 in the list)" in done.stdout
    assert "nobody-looks: NOT CAUGHT: what it breaks" in done.stderr
    # The tree is as it was.
    assert first in (ROOT / "stages" / "files" / "paths.py").read_text(encoding="utf-8").splitlines()
