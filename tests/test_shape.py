"""What grows unless somebody looks: how many parameters a function has, and names that mean two things."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST = 8

# Functions with more parameters than that: who takes one away lowers its number here, and nobody adds one. A command's
# parameters are its options, so commands are not here.
KNOWN = {
    "graphldp/client/directed.py:second_round": 9,
    "graphldp/trusted/hrg.py:edge_rr": 9,
    "graphldp/server/pushing.py:push_columns": 10,
    "stages/train.py:train": 10,
    "graphldp/experiment/running.py:run": 14,  # what a person writes in Python: `graphldp.run`
    "graphldp/trusted/dendrogram.py:moves": 14,  # compiled, where arrays stand for an object
}


def trees(*folders: str) -> Iterator[tuple[str, ast.Module]]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    given = function.args
    every = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len(every) - (every[:1] in (["self"], ["cls"]))


def wide() -> dict[str, int]:
    """Return the functions of library and stages with more than so many parameters, and how many each has."""
    found = {}
    for name, tree in trees("graphldp", "stages"):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and parameters(node) > MOST:
                found[f"{name}:{node.name}"] = parameters(node)
    return found


def test_no_function_has_more_parameters_than_before() -> None:
    assert wide() == KNOWN


def test_a_public_class_has_a_name_of_its_own() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for name, tree in trees("graphldp", "stages", "cli", "tools"):
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(name)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
