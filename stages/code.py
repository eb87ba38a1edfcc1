"""Stage code: a hash of every module that a kind of stage runs, in one small file on which those stages depend.

The modules are listed once, as dependencies of `code-KIND` in dvc.yaml. A changed comment or docstring changes no hash,
so that it runs nothing again. And DVC reads and writes its lock file at every stage: one dependency instead of twenty
keeps that short.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from pathlib import Path

from graphldp.errors import OptionError, unknown_name
from graphldp.stages.artifacts import write_json
from graphldp.stages.params import read_yaml

__all__ = ["bare", "code"]

_PREFIX = "code-"


def code(kind: str, pipeline: Path, output: Path) -> Path:
    """Write the hashes of the modules that `code-KIND` depends on in a pipeline's file."""
    stages = read_yaml(pipeline, "run where it is, or name the file with --pipeline")["stages"]
    kinds = [name.removeprefix(_PREFIX) for name in stages if name.startswith(_PREFIX)]
    if kind not in kinds:
        raise unknown_name("kind of stage", kind, kinds)
    hashes = {str(path): _hash(path) for path in _modules([Path(name) for name in stages[_PREFIX + kind]["deps"]])}
    write_json(output, {"kind": "code", "stage": kind, "modules": hashes})
    return output


def _modules(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.exists():
            raise OptionError(f"{path} does not exist; run where the pipeline's file is, or take it out of there")
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def _hash(path: Path) -> str:
    return "sha256:" + hashlib.sha256(ast.dump(bare(path)).encode()).hexdigest()


def bare(path: Path) -> ast.AST:
    """Return a module without comments, docstrings and layout: words do not change a number."""
    tree: ast.AST = _Bare().visit(ast.parse(path.read_bytes()))
    return tree


class _Bare(ast.NodeTransformer):
    """Takes out docstrings."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            first = body[0].value
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                node.body = body[1:]  # type: ignore[attr-defined]
        return node
