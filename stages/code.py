"""Stage code: for each kind of stage a hash of every module that it imports, in one small file on which it depends.

Nobody keeps a list: a stage runs what it imports, itself or through other modules. Of a package that imports its
modules by name, all of them count. A changed comment or docstring changes no hash, so that it runs nothing again. And
DVC reads and writes its lock file at every stage: one dependency instead of fifty keeps that short.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import graphldp
from graphldp.errors import OptionError
from graphldp.stages.artifacts import write_json

__all__ = ["KINDS", "bare", "code", "code_hash", "hashes"]

KINDS = ("download", "perturb", "denoise", "train", "evaluate")
_LIBRARY, _STAGES = "graphldp", "graphldp.stages"


def code(output: Path, root: Path = Path()) -> list[Path]:
    """Write `KIND.json` into a folder for every kind of stage: the hashes of what stands below `root`."""
    homes = {_LIBRARY: root / "graphldp", _STAGES: root / "stages"}
    for home in homes.values():
        if not home.is_dir():
            raise OptionError(f"{home} does not exist; run where dvc.yaml is")
    found = {kind: hashes(kind, homes) for kind in KINDS}
    for kind, modules in found.items():
        write_json(output / f"{kind}.json", {"kind": "code", "stage": kind, "modules": modules})
    return [output / f"{kind}.json" for kind in KINDS]


@cache
def code_hash(kind: str) -> str:
    """Return one hash of what a kind of stage runs here."""
    here = {_LIBRARY: Path(graphldp.__file__).parent, _STAGES: Path(__file__).parent}
    return hashlib.sha256(json.dumps(hashes(kind, here), sort_keys=True).encode()).hexdigest()


def hashes(kind: str, homes: Mapping[str, Path]) -> dict[str, str]:
    """Return the hash of each module that a stage runs, by its dotted name; `homes` says where the packages stand."""
    out: dict[str, str] = {}
    todo = [f"{_STAGES}.{kind}"]
    while todo:
        name = todo.pop()
        path = None if name in out else _path(name, homes)
        if path is None:
            continue
        out[name] = "sha256:" + hashlib.sha256(ast.dump(bare(path)).encode()).hexdigest()
        if path.name == "__init__.py" and "import_module" in path.read_text(encoding="utf-8"):
            todo += [f"{name}.{one.stem}" for one in sorted(path.parent.glob("[!_]*.py"))]
            todo += [f"{name}.{one.parent.name}" for one in sorted(path.parent.glob("*/__init__.py"))]
        todo += _imports(path)
    return dict(sorted(out.items()))


def _path(name: str, homes: Mapping[str, Path]) -> Path | None:
    """Return the file of a module of ours; None for everything else, and for the name of what is in a module."""
    for prefix in sorted(homes, key=len, reverse=True):
        if name == prefix or name.startswith(f"{prefix}."):
            place = homes[prefix].joinpath(*name.removeprefix(prefix).strip(".").split("."))
            for path in (place / "__init__.py", place.with_name(f"{place.name}.py")):
                if path.is_file():
                    return path
            return None
    return None


def _imports(path: Path) -> Iterator[str]:
    """Yield what a module imports, wherever in it: `from a import b` may mean the module a.b as well as a."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            parts = name.split(".")
            yield from (".".join(parts[:count]) for count in range(2, len(parts) + 1))


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
