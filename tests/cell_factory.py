"""Small cells: a synthetic graph as an artifact, parameters that train in milliseconds, the stages in a row."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from graphldp import methods
from graphldp.datasets.options import Synthetic
from graphldp.datasets.synthetic import synthetic_graph
from graphldp.experiment.options import SearchParams, TrainParams
from graphldp.experiment.plan import Devices
from graphldp.experiment.running import RowResult, run_rows
from graphldp.graph import Graph
from graphldp.measures import measures_of
from graphldp.stages.denoise import denoise
from graphldp.stages.files.artifacts import read_table
from graphldp.stages.files.graphs import read_graph, write_graph
from graphldp.stages.files.paths import graph_dir
from graphldp.stages.grids.cell import Cell
from graphldp.stages.grids.params import Params
from graphldp.stages.perturb import perturb_method
from graphldp.stages.train import train

SMALL: Mapping[str, Any] = {"nodes": 90, "classes": 3, "degree": 6.0, "dimensions": 24, "words": 6.0}
NAME = "synthetic"


def small_graph(name: str = NAME, **changes: Any) -> Graph:
    """Return a graph of 90 nodes with 24 features, or as the changes say."""
    return synthetic_graph(Synthetic(**{**SMALL, **changes}), name=name, provenance={"dataset": "synthetic"})


def graph_for(task: str) -> Graph:
    """Return the small graph; for a task of sets, with a set of labels in the place of each class."""
    graph = small_graph()
    if not measures_of(task).sets:
        return graph
    sets = np.eye(graph.classes + 1, dtype=bool)[graph.labels] | (np.arange(graph.nodes) % 3 == 0)[:, None]
    return dataclasses.replace(graph, label_sets=sets, labels=np.full_like(graph.labels, -1), classes=0)


def store(data: Path, name: str = NAME, **changes: Any) -> Graph:
    """Write a small graph as an artifact and return it."""
    graph = small_graph(name, **changes)
    write_graph(graph, graph_dir(data, name))
    return graph


def run(
    dataset: str,
    method: str,
    mechanism: str | None,
    epsilon: float,
    *,
    data: Path,
    params: Params,
    changes: Mapping[str, Any] | None = None,
    **options: Any,
) -> list[RowResult]:
    """Run a method on a stored graph in memory, as `ldp run` does, and return its rows."""
    recipe = methods.method(method).but(changes or {})
    graph = read_graph(graph_dir(data, dataset))
    chosen, given = recipe.choose(mechanism), options.pop("options", {})
    own = Devices(graph=graph, recipe=recipe, mechanism=chosen, epsilon=epsilon, options=given, params=params)
    return list(run_rows(own, **options).rows)


def small_params(
    *,
    seeds: int = 3,
    points: int = 3,
    search_seeds: int = 2,
    steps: tuple[int, ...] = (0, 2),
    epochs: int = 15,
    **changes: Any,
) -> Params:
    """Return parameters of a search and final runs that take a fraction of a second."""
    search = SearchParams(
        points=points,
        seeds=search_seeds,
        learning_rate=(0.05, 0.02),
        weight_decay=(0.001,),
        dropout=(0.25, 0.5),
        steps=steps,
    )
    train_options = TrainParams(hidden=4, epochs=epochs, patience=8)
    return dataclasses.replace(Params(seeds=seeds, search=search, train=train_options), **changes)


def calibrate(
    data: Path,
    params: Params,
    method: str = "lpgnn",
    mechanism: str = "mb",
    epsilon: float = 1.0,
    *,
    name: str = NAME,
    **options: Any,
) -> Path:
    """Ask people for one cell, and denoise their answers where the method has it; return the last artifact."""
    cell = Cell(dataset=name, method=method, mechanism=mechanism, epsilon=epsilon, further=params.further)
    answers = perturb_method(dataclasses.replace(cell, options=options), data=data, settings=params)
    if not methods.method(method).calibrates:
        return answers
    return denoise(cell, data=data, steps=params.search.steps)


def learn(
    data: Path,
    params: Params,
    method: str = "lpgnn",
    mechanism: str = "mb",
    epsilon: float = 1.0,
    *,
    name: str = NAME,
    **options: Any,
) -> Path:
    """Perturb, denoise and train one cell; return its Runs artifact. `options` are those of `train`."""
    calibrate(data, params, method, mechanism, epsilon, name=name)
    cell = Cell(dataset=name, method=method, mechanism=mechanism, epsilon=epsilon)
    return train(cell, data=data, params=params, **options)


def cell_of(given: Mapping[str, Any]) -> tuple[Cell, dict[str, Any]]:
    """Return the cell that these arguments name, and the other arguments."""
    own = {one.name for one in dataclasses.fields(Cell)} - {"data"}  # here the folder, not what a data set is made with
    named = {key: value for key, value in given.items() if key in own and value is not None}
    return Cell(**named), {key: value for key, value in given.items() if key not in own}


def rows(path: Path, role: str | None = None) -> list[dict[str, Any]]:
    """Return the rows of a Runs artifact, all or of one role."""
    table: pa.Table = read_table(path, "ldp train")
    return [row for row in table.to_pylist() if role in (None, row["role"])]


def accuracies(path: Path) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the test accuracies of the final runs."""
    return np.array([row["test_accuracy"] for row in rows(path, "final")])


def files(folder: Path) -> list[str]:
    """Return everything below a folder, hidden files too."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
