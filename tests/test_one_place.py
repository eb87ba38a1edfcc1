"""What code tells apart by a name stands in one place: another module that spells the name would have to be found."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphldp import methods
from graphldp.client import lookup, own_budget
from graphldp.client import names as mechanism_names
from graphldp.measures import tasks
from graphldp.methods import Role

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("graphldp", "stages", "cli")


def modules(*without: str) -> Iterator[tuple[str, str]]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if not name.startswith(without or ("/",)):
                yield name, path.read_text(encoding="utf-8")


def constants(text: str) -> set[str]:
    """Return the texts of a module that are nothing but one word."""
    nodes = ast.walk(ast.parse(text))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


@pytest.mark.parametrize("task", tasks())
def test_a_task_is_named_by_its_own_files_alone(task: str) -> None:
    own = ("graphldp/tasks/", "graphldp/learn/tasks/", "graphldp/measures.py")  # the last one says which is the default
    assert not [name for name, text in modules(*own) if {task, task.replace("-", "_")} & constants(text)]


@pytest.mark.parametrize("name", [one.name for one in methods.references()])
def test_a_reference_is_named_by_its_recipe_alone(name: str) -> None:
    # What else has that name: a dial of synthetic graphs, the function that finds the commonest class.
    other = {"structure": ("graphldp/datasets/",), "majority": ("graphldp/splits.py", "graphldp/learn/__init__.py")}
    own = ("graphldp/methods.py", *other.get(name, ()))
    assert not [module for module, text in modules(*own) if name in constants(text)]


def test_there_is_one_guess_one_floor_and_one_ceiling_and_they_have_a_budget_of_their_own() -> None:
    found = methods.references()
    assert [one.role for one in found if one.role is not Role.BESIDE] == [Role.GUESS, Role.FLOOR, Role.CEILING]
    assert found[0].role is Role.GUESS
    assert found[-1].role is Role.CEILING
    assert all(one.budget is not None for one in found)
    assert [one.name for one in found if not one.model] == [found[0].name]


def test_a_mechanism_says_whether_it_has_one_budget() -> None:
    assert {name: own_budget(name) for name in mechanism_names() if own_budget(name) is not None} == {
        "null": 0.0,
        "identity": float("inf"),
    }
    assert lookup("mb").own_budget is None


def test_progress_is_told_in_one_way() -> None:
    alias = re.compile(r"Callable\[\[int, int, str\], None\]")
    assert [name for name, text in modules() if alias.search(text)] == ["graphldp/progress.py"]
