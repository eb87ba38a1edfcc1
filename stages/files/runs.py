"""The Runs artifact: one row for each run of a cell, and what the cell says of itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from graphldp import __version__, methods
from graphldp.experiment.options import Further, Settings
from graphldp.experiment.parts import given_away
from graphldp.experiment.plan import CellPlan
from graphldp.experiment.result import CellResult
from graphldp.experiment.server_view import server_view_of
from graphldp.graph import Graph
from graphldp.ledger import ledger_from_meta
from graphldp.measures import measures_of
from graphldp.stages.code import code_hash
from graphldp.stages.files.answers import further_in
from graphldp.stages.files.artifacts import write_table
from graphldp.stages.files.graphs import graph_hash
from graphldp.stages.grids.cell import Cell
from graphldp.stages.pages.wording import counted

__all__ = [
    "CARRIED",
    "RunsMeta",
    "cell_in",
    "final_rows",
    "found_meta",
    "placed",
    "runs_meta",
    "runs_schema",
    "write_runs",
]

_FLOATS = ("learning_rate", "weight_decay", "dropout")
_PARTS = ("train", "validation", "test")

# What runs say of the reports that they were learned from.
CARRIED = ("options", "epsilon_exact", "delta", "claim", "m", "ledger", "random")


def runs_schema(task: str) -> pa.Schema:
    """Return the columns of a task's runs: each of its measures in validation and in test."""
    measures = measures_of(task)
    scores = [f"{part}_{name}" for name in measures.names for part in _PARTS[1:]]
    return pa.schema(
        [("role", pa.string()), ("point", pa.int32()), ("seed", pa.int32())]
        + [(name, pa.float64()) for name in _FLOATS]
        + [(name, pa.int32()) for name in ("steps", "best_epoch", "epochs")]
        + [("options", pa.string())]
        + [(name, pa.float64()) for name in ("validation_loss", *scores)]
        + [(f"{part}_{measures.parts}", pa.int32()) for part in _PARTS]
    )


def runs_meta(
    graph: Graph,
    folder: Path,
    recipe: methods.Method,
    mechanism: str,
    epsilon: float,
    name: str,
    params: Settings,
    reports: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return what a cell's runs say of themselves; `reports` is the metadata of what they were learned from."""
    content = graph_hash(folder)
    ledger = others = given_away(params.train, content).as_json()
    if reports is not None:
        # The runs, what their search has chosen and what is kept of them come from these draws alone.
        ledger = [*ledger_from_meta([reports]).of_seeds(params.draws).as_json(), *others]
    elif params.further.asked:
        ledger = [*server_view_of(graph, params, recipe).ledger(content, params.draws).as_json(), *others]
    meta = {
        "kind": "runs",
        "dataset": graph.name,
        "method": recipe.name,
        "mechanism": mechanism,
        "epsilon": float(epsilon),
        "arm": name,
        "model": (params.train.model or recipe.model) if recipe.model else "none",
        "task": params.train.task,
        "root": params.seed,
        "seeds": params.seeds,
        "search": {
            **dataclasses.asdict(params.search),
            "steps": recipe.steps(params.search.steps),
            "points": params.search.points if recipe.model else 0,
        },
        "train": dataclasses.asdict(params.train),
        "input": content,
        "library": __version__,
        "code": code_hash("train"),
        "ledger": ledger,
        **({"further": params.further.facts()} if params.further.asked else {}),
    }
    if reports is not None:
        meta |= {key: reports[key] for key in CARRIED if key != "ledger"}
        meta |= {key: reports[key] for key in ("rounds", "selection", "evidence") if key in reports}
        claim = reports["claim"]
        meta["mechanism_claim"] = {
            "claimed": claim["epsilon"],
            "exact": reports["epsilon_exact"],
            "keeps": claim["keeps"],
            "text": claim["reason"],
        }
    return meta


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsMeta:
    """What a cell's runs say of how they were made.

    Attributes:
        cell: whose runs they are.
        task: what was learned.
        root, seeds: the root of all randomness, and how many final runs there are.
        input: the hash of the graph.
        search, train: how the point was searched, and how models were trained.
        rounds: the options of the way in which people were asked, where the method has one of its own.
    """

    cell: Cell
    task: str
    root: int
    seeds: int
    input: str
    search: Mapping[str, Any]
    train: Mapping[str, Any]
    rounds: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, meta: Mapping[str, Any]) -> RunsMeta:
        """Read the metadata of runs; what is lacking is a KeyError with its name."""
        needed = ("task", "root", "seeds", "input", "search", "train")
        return cls(cell=cell_in(meta), rounds=meta.get("rounds"), **{key: meta[key] for key in needed})

    @property
    def tried(self) -> str:
        """How much was searched, in words."""
        return f"{counted(self.search['points'], 'point')} on {counted(self.search['seeds'], 'seed')}"


def final_rows(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return those of a cell's runs that measure what was found; all others are of its search."""
    return [dict(row) for row in rows if row["role"] == "final"]


def cell_in(meta: Mapping[str, Any]) -> Cell:
    """Return the cell whose runs, or whose search, an artifact holds, with what it says of it."""
    return Cell(
        dataset=str(meta["dataset"]), epsilon=float(meta["epsilon"]), method=str(meta["method"]),
        mechanism=str(meta["mechanism"]), name=str(meta["arm"]), options=meta.get("options", {}),
        further=further_in(meta),
    )  # fmt: skip


def placed(further: Further) -> dict[str, Any]:
    """Return the place in a table of runs for which people were asked for more than features."""
    return {"axes": further.budgets()} if further.asked else {}


def found_meta(plan: CellPlan, result: CellResult, search: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a cell's runs say of what was found: the chosen point, its model, and the trainer's notes."""
    assert result.setup is not None
    return {
        "model": result.setup.backbone.name,
        "chosen_point": result.chosen,
        "record": {**result.record, "search": list(result.records)},
        "search": {**search, **plan.facts(result.learners)},
    }


def write_runs(path: Path, result: CellResult, meta: Mapping[str, Any]) -> Path:
    """Write a cell's runs with their metadata, and return where."""
    schema = runs_schema(str(meta["task"]))
    columns = {field.name: [row[field.name] for row in result.rows] for field in schema}
    write_table(path, pa.table(columns, schema=schema), meta)
    return path
