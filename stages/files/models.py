"""Kept models: a folder with weights.safetensors, model.json and MODEL_CARD.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from graphldp import __version__
from graphldp.errors import ArtifactError, GraphLDPError
from graphldp.experiment.estimates import average_degree, unit_scale
from graphldp.experiment.people import apart_of
from graphldp.experiment.result import CellResult
from graphldp.graph import Graph
from graphldp.learn import TrainedModel, pack, trained, unpack
from graphldp.ledger import ledger_from_meta
from graphldp.measures import measures_of
from graphldp.methods import Method
from graphldp.stages.files.artifacts import atomic, require, write_json, write_text
from graphldp.stages.files.model_meta import ModelMeta
from graphldp.stages.files.reports import CalibratedFile
from graphldp.stages.files.runs import final_rows
from graphldp.stages.grids.params import Params
from graphldp.stages.pages.model_card import Floor, card_text

__all__ = ["CARD", "RECIPE", "WEIGHTS", "load_model", "save_model"]

WEIGHTS, RECIPE, CARD = "weights.safetensors", "model.json", "MODEL_CARD.md"


def save_model(
    folder: Path,
    graph: Graph,
    recipe: Method,
    result: CellResult,
    params: Params,
    meta: dict[str, Any],
    source: CalibratedFile,
    floor: Floor | None = None,
) -> Path:
    """Keep the final run with the lowest validation loss, with what its people have spent, and its card.

    `source` is what it was trained on; `floor` is what the runs of the floor scored, where they are known.
    """
    assert result.outcome is not None
    assert result.problem is not None
    assert result.setup is not None
    final = final_rows(result.rows)
    best = int(np.argmin([row["validation_loss"] for row in final]))  # infinite where the run failed
    row = final[best]
    seed = int(row["seed"])
    apart = apart_of(graph, params, seed)
    seen = None if apart is None else apart.train
    kept = trained(
        result.problem,
        result.runs[best],
        result.outcome,
        best,
        result.setup.backbone,
        spent=ledger_from_meta([meta]),
        about={
            **{key: meta[key] for key in ("dataset", "method", "mechanism", "options", "input", "m", "arm")},
            "seed": seed,
            "standardized": params.train.standardize,
            "scale": unit_scale(source.load(seed), seen) if params.train.standardize else 1.0,
            "split": params.train.split,
            "filter": result.setup.calibration(result.steps).meta(),
            "filter_name": result.setup.recipe.filter,
            "chosen": result.chosen,
            **({"rounds": meta["rounds"]} if "rounds" in meta else {}),
            "average_degree": average_degree(graph),
            "graph": _origin(graph),
            **({"target": target} if (target := measures_of(params.train.task).given) else {}),
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
    write_text(folder / CARD, card_text(kept, source, meta, final, params, floor))
    write_json(folder / RECIPE, facts)
    return folder


def _origin(graph: Graph) -> dict[str, Any]:
    """Return what its graph is made from: a data set with its options, or somebody's own files."""
    names = ("dataset", "files") if graph.provenance.get("dataset") == "own" else ("dataset", "options")
    return {name: graph.provenance[name] for name in names if name in graph.provenance}


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
        ModelMeta.of(kept.about)
    except GraphLDPError as error:
        raise ArtifactError(f"{folder}: {error}; make it again with `{make}`") from None
    except ValueError as error:
        raise ArtifactError(f"{folder / RECIPE} is damaged ({error}); make it again with `{make}`") from None
    return kept
