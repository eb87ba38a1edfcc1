"""Stage select: a first round's reports in, a score of every feature out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from graphldp import __version__
from graphldp.server import Filtered, kprop, rectify, score_attributes
from graphldp.stages.artifacts import file_hash, write_table
from graphldp.stages.graphs import read_graph
from graphldp.stages.learning import split_of
from graphldp.stages.params import Params
from graphldp.stages.paths import graph_dir
from graphldp.stages.perturb import check_nodes
from graphldp.stages.reports import ReportsFile

__all__ = ["select"]


def select(
    reports: Path,
    *,
    data: Path,
    params: Params,
    by: str = "fda",
    steps: int = 2,
    seed: int = 0,
    dataset: str | None = None,
    output: Path,
) -> Path:
    """Denoise one seed's reports, score every feature by the training labels of that seed's split, and write both.

    The file carries the reports' ledger: whoever uses the scores in a second round has spent both.
    """
    source = ReportsFile(reports, "ldp perturb")
    name = dataset or str(source.meta["dataset"])
    graph = read_graph(graph_dir(data, name))
    check_nodes(reports, source.meta, graph, "name their graph with --dataset")
    calibration = kprop(steps)
    denoised = Filtered.of(rectify(source.load(seed)), calibration, calibration.operator(graph))
    split = split_of(graph, params, seed)
    scores = score_attributes(by, denoised, graph.labels, split.train)
    rank = np.empty(graph.dimensions, dtype=np.int32)
    rank[scores.ranking()] = np.arange(1, graph.dimensions + 1, dtype=np.int32)
    features = graph.feature_names or tuple(str(place) for place in range(graph.dimensions))
    table = pa.table(
        {
            "feature": pa.array(features),
            "importance": pa.array(np.maximum(scores.values, 0.0)),
            "rank": pa.array(rank),
        }
    )
    meta: dict[str, Any] = {
        "kind": "scores",
        "dataset": name,
        "by": by,
        "steps": steps,
        "seed": seed,
        "root": params.seed,
        "train_nodes": len(split.train),
        "details": dict(scores.details),
        "reports": file_hash(reports),
        "ledger": source.meta["ledger"],
        "library": __version__,
    }
    write_table(output, table, meta)
    return output
