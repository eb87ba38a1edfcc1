"""Which code, parameters and graphs a committed table was made of, and whether these are others by now."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphldp.jsonable import plain
from graphldp.stages.code import code_hash
from graphldp.stages.grids.params import EXPERIMENTS, PARAMS, Params, load

__all__ = ["FILE", "Trace", "grid_hash", "trace", "traces"]

FILE, _TABLE = "tables/made.json", "tables/main.csv"
_WORDS = ("name", "title", "about", "evaluate")  # what changes no run


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One folder of results.

    Attributes:
        folder: where it stands.
        stale: why it may say other numbers when it is made again; empty where it may not.
        make: the command that makes it.
    """

    folder: Path
    stale: tuple[str, ...]
    make: str

    @property
    def text(self) -> str:
        """One line for people."""
        if not self.stale:
            return f"{self.folder}: made by this code, of these parameters"
        return f"{self.folder}: {'; '.join(self.stale)}; make it again with `{self.make}`"


def grid_hash(params: Params) -> str:
    """Return a hash of what a grid computes."""
    facts = {key: value for key, value in dataclasses.asdict(params).items() if key not in _WORDS}
    del facts["further"]  # a cell's own
    empty = ("labels", "epsilon_labels", "links", "epsilon_links", "link_options")
    facts = {key: value for key, value in facts.items() if value or key not in empty}
    return "sha256:" + hashlib.sha256(json.dumps(plain(facts), sort_keys=True).encode()).hexdigest()


def traces(results: Path) -> list[Trace]:
    """Return what became of every table below a folder of results, the default one first."""
    folders = [results, *sorted(path for path in results.iterdir() if path.is_dir())]
    return [trace(folder, default=folder == results) for folder in folders if (folder / _TABLE).exists()]


def trace(folder: Path, *, default: bool) -> Trace:
    """Return what became of the table in a folder of results; the default one is that of params.yaml."""
    grid = PARAMS if default else EXPERIMENTS / f"{folder.name}.yaml"
    make = "dvc repro" if default else f"ldp experiment {folder.name}"
    try:
        made: Mapping[str, Any] = json.loads((folder / FILE).read_bytes())
    except (OSError, ValueError):
        return Trace(folder=folder, stale=("it does not say what it was made of",), make=make)
    reasons = []
    if made.get("code") != [code_hash("train")]:
        reasons.append("made by other code")
    if not grid.exists():
        reasons.append(f"{grid} is not there")
    elif made.get("grid") != grid_hash(load(grid)):
        reasons.append(f"{grid} has changed")
    return Trace(folder=folder, stale=tuple(reasons), make=make)
