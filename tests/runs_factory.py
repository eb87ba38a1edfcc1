"""Runs artifacts as training writes them, with accuracies that a test chooses."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from graphldp.randomness import generator
from graphldp.stages.files.artifacts import write_table
from graphldp.stages.files.paths import cell_path
from graphldp.stages.grids.cell import Cell
from graphldp.stages.grids.params import EvaluateParams, Params, RowParams

MEANS = {
    "majority": 0.302,
    "structure": 0.847,
    "nonpriv": 0.864,
    "base": 0.805,
    "lpgnn": 0.845,
    "lpgnn-pm": 0.843,
    "lpgnn-lp": 0.838,
}
SEARCH = {"points": 12, "seeds": 2}


def grid(
    *, datasets: tuple[str, ...] = ("cora",), epsilons: tuple[float, ...] = (0.1, 1.0, 3.0), seeds: int = 10
) -> Params:
    """Return a grid with four methods."""
    return Params(
        datasets=datasets,
        epsilons=epsilons,
        seeds=seeds,
        rows=(
            RowParams(name="base", method="base", mechanism="mb"),
            RowParams(name="lpgnn", method="lpgnn", mechanism="mb"),
            RowParams(name="lpgnn-pm", method="lpgnn", mechanism="pm"),
            RowParams(name="lpgnn-lp", method="lpgnn", mechanism="lp"),
        ),
        evaluate=EvaluateParams(confidence=0.95),
    )


def write_runs(
    data: Path,
    cell: Cell,
    *,
    seeds: int,
    mean: float | None = None,
    values: list[float] | None = None,
    path: Path | None = None,
    meta: Mapping[str, Any] | None = None,
    columns: Mapping[str, list[Any]] | None = None,
) -> Path:
    """Write one cell's runs: two search rows and `seeds` final ones around `mean` on shared splits."""
    split = generator(0, "split", cell.dataset).normal(0.0, 0.008, size=seeds)
    own = generator(0, "own", cell.dataset, cell.name, cell.epsilon).normal(0.0, 0.004, size=seeds)
    middle = MEANS.get(cell.name, 0.84) if mean is None else mean
    accuracy = values if values is not None else [float(v) for v in (middle + split + own).clip(0, 1)]
    rows = 2 + seeds
    trained = cell.method != "majority"
    table: dict[str, list[Any]] = {
        "role": ["search"] * 2 + ["final"] * seeds,
        "point": [0, 1] + [1] * seeds,
        "seed": [-1, -1, *range(seeds)],
        "steps": [16 if trained else None] * rows,
        "test_accuracy": [None, None, *accuracy],
        "test_macro_f1": [None, None, *(0.98 * value for value in accuracy)],
        "train_nodes": [1354] * rows,
        "validation_nodes": [677] * rows,
        "test_nodes": [677] * rows,
    } | dict(columns or {})
    about: dict[str, Any] = {
        "kind": "runs",
        "dataset": cell.dataset,
        "method": cell.method,
        "mechanism": cell.mechanism,
        "epsilon": "inf" if cell.epsilon == float("inf") else cell.epsilon,
        "delta": 0.0,
        "arm": cell.name,
        "axes": dict(cell.axes),
        "model": "gcn" if trained else "none",
        "search": SEARCH | {"steps": [0, 16] if cell.method != "base" else [0]}
        if trained
        else {"points": 0, "seeds": 2},
        "root": 0,
        "input": f"sha256:{cell.dataset}",
        "train": {"hidden": 16, "train_fraction": 0.5},
        "mechanism_claim": {"claimed": cell.epsilon, "exact": cell.epsilon, "text": "exact"} if trained else None,
    }
    target = path or cell_path(data, cell)
    write_table(target, pa.table(table), {**about, **(meta or {})})
    return target


def write_grid(
    data: Path, params: Params, means: Mapping[str, float] | None = None, meta: Mapping[str, Any] | None = None
) -> None:
    """Write every cell of a grid."""
    for cell in params.cells():
        write_runs(data, cell, seeds=params.seeds, mean=(means or {}).get(cell.name), meta=meta)
