"""Stage code: for each kind of stage a hash of every module that it imports, in one small file on which it depends.

Nobody keeps a list: a stage runs what it imports, itself or through other modules. Of a package that imports its
modules by name, all of them count. A changed comment or docstring changes no hash, so that it runs nothing again; nor
does what is written for people alone, but where that is a stage's work. And DVC reads and writes its lock file at every
stage: one dependency instead of fifty keeps that short.

Every process of a pipeline asks for a hash, and parsing all modules takes a second and a half: what a module's text has
come to is kept beside Python's own compiled files, by the text's hash.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib.util
import json
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import graphldp
from graphldp.errors import ArtifactError, OptionError
from graphldp.stages.files.artifacts import write_json

__all__ = ["KINDS", "code", "code_hash", "hashes"]

KINDS = ("download", "perturb", "denoise", "train", "evaluate")
_LIBRARY, _STAGES = "graphldp", "graphldp.stages"
_PAGES = f"{_STAGES}.pages"  # what people read: no number comes from there, and evaluate alone is about it
_MOST = 2000  # texts that are kept


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
    known = _Known()
    todo = [f"{_STAGES}.{kind}"]
    while todo:
        name = todo.pop()
        page = f"{name}.".startswith(f"{_PAGES}.") and kind != "evaluate"
        path = None if page or name in out else _path(name, homes)
        if path is None:
            continue
        text = path.read_bytes()
        out[name], imported = known.of(text)
        if path.name == "__init__.py" and b"import_module" in text:
            todo += [f"{name}.{one.stem}" for one in sorted(path.parent.glob("[!_]*.py"))]
            todo += [f"{name}.{one.parent.name}" for one in sorted(path.parent.glob("*/__init__.py"))]
        todo += [one for one in imported if one not in out]
    known.keep()
    return dict(sorted(out.items()))


class _Known:
    """What texts have come to, in a file that may be deleted at any time; read as if by this text of this module."""

    def __init__(self) -> None:
        self.path = Path(importlib.util.cache_from_source(__file__)).with_suffix(".json")
        self.found: dict[str, tuple[str, list[str]]] = {}
        self.new = False
        with contextlib.suppress(OSError, ValueError, TypeError):
            kept = json.loads(self.path.read_bytes())
            if kept["reader"] == self._reader():
                self.found = kept["texts"]

    @staticmethod
    @cache
    def _reader() -> str:
        return hashlib.sha256(Path(__file__).read_bytes()).hexdigest()

    def of(self, text: bytes) -> tuple[str, list[str]]:
        """Return a module's hash and what it imports."""
        key = hashlib.sha256(text).hexdigest()
        if key not in self.found:
            self.found[key], self.new = _read(text), True
        name, imported = self.found[key]
        return name, imported

    def keep(self) -> None:
        """Write what is new, where Python may keep what it has compiled."""
        if not self.new or sys.dont_write_bytecode:
            return
        latest = dict(list(self.found.items())[-_MOST:])
        with contextlib.suppress(OSError, ArtifactError):
            write_json(self.path, {"reader": self._reader(), "texts": latest})


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


def _read(text: bytes) -> tuple[str, list[str]]:
    """Return a module's hash, without comments, docstrings and layout, and what it imports, wherever in it.

    Words do not change a number. `from a import b` may mean the module a.b as well as a.
    """
    tree, found = ast.parse(text), []
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and _is_text(body[0]):
            del body[0]
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            parts = name.split(".")
            found += [".".join(parts[:count]) for count in range(2, len(parts) + 1)]
    return "sha256:" + hashlib.sha256(ast.dump(tree).encode()).hexdigest(), list(dict.fromkeys(found))


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
