"""The search alone: its trials as an artifact, best first, and nothing of the test part opened."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from graphldp import methods
from graphldp.errors import ArtifactError, OptionError
from graphldp.experiment.cell import search_cell
from graphldp.experiment.options import report_seeds
from graphldp.experiment.plan import Devices, plan_of
from graphldp.experiment.resources import Resources
from graphldp.experiment.result import fingerprint
from graphldp.experiment.search_space import check_axes
from graphldp.ledger import epsilon_text
from graphldp.measures import measures_of
from graphldp.points import AXES
from graphldp.progress import Progress
from graphldp.stages.code import code_hash
from graphldp.stages.files.artifacts import expect, read_meta, read_table
from graphldp.stages.files.cells import kept
from graphldp.stages.files.graphs import graph_hash, read_graph
from graphldp.stages.files.paths import graph_dir, trials_path
from graphldp.stages.files.runs import runs_meta, runs_schema
from graphldp.stages.grids.cell import Cell
from graphldp.stages.grids.params import Params

__all__ = ["Trial", "make_command", "ranking", "search"]

Trial = dict[str, Any]


def make_command(dataset: str, method: str, mechanism: str, epsilon: float) -> str:
    """Return the command that makes a Trials artifact."""
    return f"ldp search --dataset {dataset} --method {method} --mechanism {mechanism} --epsilon {epsilon_text(epsilon)}"


def search(
    cell: Cell,
    *,
    data: Path,
    params: Params,
    device: str = "auto",
    resources: Resources | None = None,
    output: Path | None = None,
    progress: Progress | None = None,
) -> Path:
    """Perturb, calibrate and search one cell in memory, as `ldp run` does, and write every trial.

    Of a method that chooses among learners, the rows of the playoff are there as well, of role `playoff`.

    A file that holds this very search is left as it is. Stopped, the same search goes on from there.
    """
    if not methods.method(cell.method).model:
        raise OptionError(f"method {cell.method!r} learns nothing, so there is nothing to search")
    dataset, method, epsilon, recipe = cell.dataset, cell.method, cell.epsilon, cell.recipe
    mechanism, folder, resources = cell.whole().mechanism, graph_dir(data, dataset), resources or Resources()
    graph = read_graph(folder)
    source = Devices(
        graph=graph, recipe=recipe, mechanism=mechanism, epsilon=float(epsilon), options=dict(cell.options),
        params=params,
    )  # fmt: skip
    check_axes(params.search, [source.row])
    plan = plan_of(source, params)
    finals = params.seeds if len(plan.learners) > 1 else 0  # on which learners are compared
    name = recipe.cell_name(mechanism)
    target = output or trials_path(data, dataset, name, epsilon, params.train.task)
    given = (dict(cell.options), dict(cell.changes))
    searching: dict[str, Any] = {"seed": params.seed, "search": asdict(params.search), "train": asdict(params.train)}
    if finals:
        searching["seeds"] = finals
    mark = fingerprint(
        searching, dataset, method, mechanism, float(epsilon), given, graph_hash(folder), code_hash("train")
    )
    if _holds(target, mark):
        return target
    with kept(target, target.with_name(f".{target.stem}.resume.safetensors"), mark, resources) as (pause, keep):
        result = search_cell(graph, plan, params, device=device, resources=resources, pause=pause, progress=progress)
        assert result.setup is not None
        reports = result.setup.meta(graph_hash(folder), report_seeds(finals, params.search.seeds))
        meta = runs_meta(graph, folder, recipe, mechanism, epsilon, name, params, reports)
        meta |= {
            "kind": "trials",
            "seeds": finals,
            "model": result.setup.backbone.name,
            "chosen_point": result.chosen,
            "search": {**meta["search"], **plan.facts(result.learners)},
            "changes": dict(cell.changes),
            "record": {"search": list(result.records)},
            "fingerprint": mark,
        }
        if resources.leads:
            schema = pa.schema([one for one in runs_schema(params.train.task) if not one.name.startswith("test_")])
            columns = {one.name: [row[one.name] for row in result.rows] for one in schema}
            keep(pa.table(columns, schema=schema), meta)
    return target


def _holds(path: Path, mark: str) -> bool:
    if not path.exists():
        return False
    try:
        return read_meta(path, "ldp search").get("fingerprint") == mark
    except ArtifactError:
        return False


def ranking(path: Path) -> list[Trial]:
    """Return the trials of a Trials artifact, by mean validation loss, best first."""
    meta = read_meta(path, "ldp search")
    expect(meta, path, "ldp search", kind="trials")
    headline = measures_of(meta["task"]).headline
    trials: dict[int, list[dict[str, Any]]] = {}
    for row in read_table(path, "ldp search").to_pylist():
        if row["role"] != "search":
            continue
        trials.setdefault(row["point"], []).append(row)
    out = []
    for point, rows in trials.items():
        scores = [row[f"validation_{headline.name}"] for row in rows]
        out.append(
            {
                "point": point,
                **{name: rows[0][name] for name in AXES},
                **json.loads(rows[0]["options"]),
                "validation_loss": float(np.mean([row["validation_loss"] for row in rows])),
                f"validation_{headline.name}": float(np.mean(scores)) if None not in scores else None,
            }
        )
    return sorted(out, key=lambda one: (one["validation_loss"], one["point"]))
