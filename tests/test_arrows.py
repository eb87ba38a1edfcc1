"""The house holds: who imports whom, what the library never does, what every module and the wheel declare."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = {"graphldp": ROOT / "graphldp", "graphldp.cli": ROOT / "cli", "graphldp.stages": ROOT / "stages"}

# Slow to import: a command imports them when it runs, never when `ldp --help` does.
HEAVY = {"numpy", "scipy", "torch", "torch_geometric", "sklearn", "pyarrow", "pandas", "matplotlib", "yaml", "dvc"}
HEAVY_OWN = (
    *("graphldp.stages", "graphldp.client", "graphldp.server", "graphldp.learn", "graphldp.datasets"),
    "graphldp.experiment",
)
LIGHT_OWN = {"graphldp", "graphldp.errors", "graphldp.cli"}

# Library modules that touch files, and why they may.
PATHS_ALLOWED: dict[str, str] = {}


def modules() -> dict[str, Path]:
    """Return every module of the package by its import name."""
    found = {}
    for package, folder in FOLDERS.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            name = ".".join((package, *parts)).removesuffix(".__init__")
            found[name] = path
    return found


def within(name: str, *packages: str) -> bool:
    return any(name == package or name.startswith(package + ".") for package in packages)


MODULES = modules()
LIBRARY = sorted(name for name in MODULES if not within(name, "graphldp.cli", "graphldp.stages"))


def parse(name: str) -> ast.Module:
    return ast.parse(MODULES[name].read_text(encoding="utf-8"))


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imports(tree: ast.AST, *, inside_functions: bool = True) -> Iterator[str]:
    """Yield the modules that are imported at run time (not those under TYPE_CHECKING)."""
    for node in ast.iter_child_nodes(tree):
        if is_type_checking(node):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative imports hide the arrows"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif inside_functions or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from imports(node, inside_functions=inside_functions)


def calls(tree: ast.AST) -> set[str]:
    return {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}


@pytest.mark.parametrize("name", LIBRARY)
def test_the_library_knows_neither_pipeline_nor_command_line(name: str) -> None:
    tree = parse(name)
    for imported in imports(tree):
        assert not within(imported, "graphldp.cli", "graphldp.stages", "cli", "stages", "typer", "rich", "dvc"), (
            imported
        )
    assert "print" not in calls(tree)


@pytest.mark.parametrize("name", LIBRARY)
def test_the_library_knows_no_paths(name: str) -> None:
    touching = {i for i in imports(parse(name)) if within(i, "pathlib", "os.path", "tempfile", "shutil", "glob")}
    text = MODULES[name].read_text(encoding="utf-8")
    touching |= {word for word in ("os.path", "open") if word in calls(ast.parse(text))}
    if name in PATHS_ALLOWED:
        assert touching, f"{name} needs no exemption any more"
    else:
        assert not touching


@pytest.mark.parametrize("name", [name for name in MODULES if within(name, "graphldp.stages")])
def test_stages_know_no_command_line(name: str) -> None:
    tree = parse(name)
    for imported in imports(tree):
        assert not within(imported, "graphldp.cli", "cli", "stages", "typer", "rich", "dvc"), imported
    assert "print" not in calls(tree)


@pytest.mark.parametrize("name", [name for name in MODULES if within(name, "graphldp.client")])
def test_the_client_needs_numpy_and_itself(name: str) -> None:
    for imported in imports(parse(name)):
        root = imported.partition(".")[0]
        own = within(imported, "graphldp.client", "graphldp.errors", "graphldp.randomness", "graphldp.registry")
        assert own or root == "numpy" or root in sys.stdlib_module_names, imported


@pytest.mark.parametrize("name", [name for name in MODULES if within(name, "graphldp.cli")])
def test_a_command_imports_what_is_heavy_only_when_it_runs(name: str) -> None:
    for imported in imports(parse(name), inside_functions=False):
        assert imported.partition(".")[0] not in HEAVY, imported
        assert not within(imported, *HEAVY_OWN), imported
        assert not within(imported, "cli", "stages"), f"{imported}: use graphldp.cli and graphldp.stages"


@pytest.mark.parametrize("name", [name for name in MODULES if not name.rpartition(".")[2].startswith("_")])
def test_public_names_exist(name: str) -> None:
    module = importlib.import_module(name)
    assert len(set(module.__all__)) == len(module.__all__)
    for public in module.__all__:
        assert hasattr(module, public), f"{name}.__all__ names {public}, which does not exist"


def test_the_wheel_lists_every_package() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    there = {name for name, path in MODULES.items() if path.name == "__init__.py"}
    assert set(build["packages"]) == there
    homes = {package: str(folder.relative_to(ROOT)) for package, folder in FOLDERS.items()}
    assert build["package-dir"] == homes


def test_every_folder_with_code_is_a_package() -> None:
    for path in MODULES.values():
        assert (path.parent / "__init__.py").is_file(), f"{path.parent} has no __init__.py, so no wheel would hold it"


NUMPY_ALONE = """
    import sys

    class Nothing:
        def find_spec(self, name, path=None, target=None):
            root = name.partition(".")[0]
            if root in ("numpy", "graphldp") or root in sys.stdlib_module_names or root.startswith("__editable__"):
                return None
            raise ModuleNotFoundError(f"a device has numpy alone, not {name}", name=name)

    sys.meta_path.insert(0, Nothing())
    import numpy as np
    from graphldp.client import lookup, names, protocol

    features = np.where(np.linspace(-1.0, 1.0, 24).reshape(3, 8) > 0, 1.0, -1.0)  # sets take nothing between
    budgets = {"identity": float("inf"), "null": 0.0}
    for name in names():
        if lookup(name).kind in ("level", "label"):
            continue  # a part of another mechanism, which contains it
        reports = protocol(name, budgets.get(name, 1.0), 8).perturb(features, np.random.default_rng(0))
        assert len(reports.value) == 3, name

    from graphldp.experiment.options import Further

    assert Further(links="rr", epsilon_links=1.0, labels="krr", epsilon_labels=1.0).asked
    print(",".join(names()))
"""


def test_a_device_perturbs_with_numpy_alone() -> None:
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(NUMPY_ALONE)], capture_output=True, text=True, check=False, timeout=60
    )
    assert run.returncode == 0, run.stderr
    assert "mb" in run.stdout.split(",")
