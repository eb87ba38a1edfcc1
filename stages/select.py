"""Stage select: reports in, a score of every feature out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from graphldp import __version__
from graphldp.experiment.people import apart_of, split_of
from graphldp.experiment.rounds import score_reports, selection_facts
from graphldp.graph import Graph
from graphldp.ledger import ledger_from_meta
from graphldp.server import AttributeScores
from graphldp.stages.files.answers import AnswersFile
from graphldp.stages.files.artifacts import file_hash, write_table
from graphldp.stages.files.belong import check_graph
from graphldp.stages.files.graphs import read_graph
from graphldp.stages.files.paths import graph_dir
from graphldp.stages.grids.params import Params

__all__ = ["select"]


def select(
    reports: Path,
    *,
    data: Path,
    params: Params,
    by: str = "fda",
    steps: int = 2,
    seed: int | None = 0,
    dataset: str | None = None,
    output: Path,
) -> Path:
    """Denoise one seed's reports, score every feature by the training labels of that seed's split, and write both.

    Without a `seed` every seed of the file is scored, each by its own split. The file carries the reports' ledger:
    whoever asks people again by these scores has spent both.
    """
    source = AnswersFile(reports, "ldp perturb")
    name = dataset or source.says.dataset
    graph = read_graph(graph_dir(data, name), features=False)
    check_graph(reports, source.meta, graph, data, "name their graph with --dataset", content=dataset is None)
    seeds = list(source.says.seeds) if seed is None else [seed]
    found = {}
    for one in seeds:
        split, apart = split_of(graph, params, one), apart_of(graph, params, one)
        found[one] = score_reports(graph, source.load(one), by=by, steps=steps, split=split, apart=apart)
    meta: dict[str, Any] = {
        "kind": "scores",
        "dataset": name,
        "by": by,
        "steps": steps,
        "seeds": seeds,
        "selection": selection_facts(by, steps, params),
        "train_nodes": len(split_of(graph, params, seeds[0]).train),
        "details": {str(one): dict(scores.details) for one, scores in found.items()},
        "reports": file_hash(reports),
        "ledger": ledger_from_meta([source.meta]).of_seeds(seeds).as_json(),
        "library": __version__,
    }
    write_table(output, pa.concat_tables([_table(graph, one, scores) for one, scores in found.items()]), meta)
    return output


def _table(graph: Graph, seed: int, scores: AttributeScores) -> pa.Table:
    rank: NDArray[np.int32] = np.empty(graph.dimensions, dtype=np.int32)
    rank[scores.ranking()] = np.arange(1, graph.dimensions + 1, dtype=np.int32)
    features = graph.feature_names or tuple(str(place) for place in range(graph.dimensions))
    return pa.table(
        {
            "seed": pa.array(np.full(graph.dimensions, seed, dtype=np.int32)),
            "feature": pa.array(features),
            "importance": pa.array(np.maximum(scores.values, 0.0)),
            "rank": pa.array(rank),
        }
    )
