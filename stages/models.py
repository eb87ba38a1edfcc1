"""Kept models: a folder with weights.safetensors and model.json; and what they predict for reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from graphldp import __version__
from graphldp.errors import ArtifactError, DataError, GraphLDPError
from graphldp.graph import Graph
from graphldp.learn import TrainedModel, pack, predict, trained, unpack
from graphldp.measures import measures_of
from graphldp.methods import Method
from graphldp.server import Calibration, shift
from graphldp.stages.artifacts import atomic, expect, file_hash, require, write_json, write_table
from graphldp.stages.graphs import graph_hash, read_graph
from graphldp.stages.inputs import centred, estimate_of, filtered_inputs, plain_inputs, unit_scale
from graphldp.stages.learning import CellResult
from graphldp.stages.params import Params
from graphldp.stages.paths import graph_dir
from graphldp.stages.perturb import check_nodes
from graphldp.stages.reports import CalibratedFile, ReportsFile

__all__ = ["RECIPE", "WEIGHTS", "load_model", "predict_reports", "save_model"]

WEIGHTS, RECIPE = "weights.safetensors", "model.json"


def save_model(
    folder: Path,
    graph: Graph,
    recipe: Method,
    result: CellResult,
    params: Params,
    meta: dict[str, Any],
    source: CalibratedFile,
) -> Path:
    """Keep the final run with the lowest validation loss, with the budget that its reports spent.

    `source` is what it was trained on.
    """
    assert result.outcome is not None
    assert result.problem is not None
    assert result.setup is not None
    final = [row for row in result.rows if row["role"] == "final"]
    best = int(np.argmin([row["validation_loss"] for row in final]))  # infinite where the run failed
    row = final[best]
    kept = trained(
        result.problem,
        result.runs[best],
        result.outcome,
        best,
        result.setup.backbone,
        spent={"features": meta["epsilon"], "delta": meta["delta"], "per": "user"},
        about={
            **{key: meta[key] for key in ("dataset", "method", "mechanism", "options", "input", "m", "arm")},
            "seed": row["seed"],
            "standardized": params.train.standardize,
            "scale": unit_scale(source.load(row["seed"])) if params.train.standardize else 1.0,
            "filter": result.setup.calibration(result.steps).meta(),
            "chosen": result.chosen,
            **{key: row[key] for part in ("validation", "test") for key in _keys(part, params.train.task)},
            "low": graph.low,
            "high": graph.high,
            f"train_{measures_of(params.train.task).parts}": row[f"train_{measures_of(params.train.task).parts}"],
            "root": params.seed,
            "summary": recipe.summary,
            "library": __version__,
        },
    )
    weights, facts = pack(kept)
    # The recipe comes last and holds the weights' hash: a folder without it, or with another's, is not a model.
    with atomic(folder / WEIGHTS) as partial:
        partial.write_bytes(weights)
    write_json(folder / RECIPE, facts)
    return folder


def _keys(part: str, task: str) -> list[str]:
    return [f"{part}_{name}" for name in measures_of(task).names]


def load_model(folder: Path) -> TrainedModel:
    """Read a kept model; a missing or damaged one is an error of one line."""
    make = "ldp train --save-model FOLDER"
    for name in (RECIPE, WEIGHTS):
        require(folder / name, make)
    try:
        facts = json.loads((folder / RECIPE).read_bytes())
        if not isinstance(facts, dict):
            raise ArtifactError(f"{RECIPE} is no recipe")
        kept = unpack((folder / WEIGHTS).read_bytes(), facts)
        lacking = {"mechanism", "dataset"} - set(kept.about)
        if lacking:
            raise ArtifactError(f"{RECIPE} does not say its {min(lacking)}")
    except GraphLDPError as error:
        raise ArtifactError(f"{folder}: {error}; make it again with `{make}`") from None
    except ValueError as error:
        raise ArtifactError(f"{folder / RECIPE} is damaged ({error}); make it again with `{make}`") from None
    return kept


def predict_reports(
    folder: Path,
    reports: Path,
    *,
    data: Path,
    dataset: str | None = None,
    seed: int | None = None,
    device: str = "auto",
    output: Path,
) -> Path:
    """Predict every node's class from reports of the model's own graph, or of another one for an inductive use.

    `seed` says which of the file's reports to take. Left out, these are the ones that the model was trained on, where
    the file has them: with few dimensions reported, a model knows its nodes by their reports more than by what those
    say, and other reports of the same nodes are worth less to it.
    """
    kept = load_model(folder)
    about = kept.about
    source = ReportsFile(reports, "ldp perturb")
    expect(source.meta, reports, "ldp perturb", kind="reports", mechanism=about["mechanism"])
    name = dataset or str(source.meta["dataset"])
    graph = read_graph(graph_dir(data, name))
    if source.meta["dimensions"] != kept.dimensions:
        raise DataError(
            f"{reports} has {source.meta['dimensions']} dimensions and the model takes {kept.dimensions}; give reports "
            f"of the features that it was trained on, as those of {about['dataset']}"
        )
    check_nodes(reports, source.meta, graph, "name their graph with --dataset")
    if seed is None:
        stored = source.meta["seeds"]
        seed = int(about["seed"]) if about["seed"] in stored or source.meta["deterministic"] else int(stored[0])
    calibration = Calibration.from_meta(about["filter"])
    estimate = estimate_of(source.load(seed), calibration)
    if about["standardized"]:
        estimate = centred(estimate)
    if calibration.linear:
        inputs, operator = plain_inputs(estimate, float(about["scale"])), calibration.operator(graph, estimate.weights)
    else:
        inputs, operator = filtered_inputs(graph, estimate, calibration, float(about["scale"])), shift(graph)
    probability = predict(kept, inputs, operator, graph.adjacency(), device=device)
    columns: dict[str, Any] = {"node": pa.array(np.arange(graph.nodes, dtype=np.int32))}
    if graph.node_ids is not None:
        columns["id"] = pa.array(list(graph.node_ids))
    columns["class"] = pa.array(probability.argmax(axis=1).astype(np.int32))
    names = graph.provenance.get("class_names")
    if names:
        columns["label"] = pa.array(names).take(columns["class"])
    columns["probability"] = pa.array(probability.max(axis=1))
    columns |= {f"p{k}": pa.array(np.ascontiguousarray(probability[:, k])) for k in range(probability.shape[1])}
    facts = {
        "kind": "predictions",
        "dataset": name,
        "model": file_hash(folder / WEIGHTS),
        "reports": file_hash(reports),
        "input": graph_hash(graph_dir(data, name)),
        "seed": seed,
        "spent": {**kept.spent, "reports": source.meta["epsilon"]},
        "library": __version__,
    }
    write_table(output, pa.table(columns), facts)
    return output
