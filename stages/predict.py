"""What kept models predict for reports: of their own graph or of another one with the same features."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow.csv import read_csv, write_csv

from graphldp import __version__
from graphldp.errors import ArtifactError, DataError, OptionError
from graphldp.experiment.estimates import centred, filtered_inputs, plain_inputs
from graphldp.experiment.parts import calibration_over
from graphldp.graph import Graph
from graphldp.learn import PairScorer, Predicted, TrainedModel, predictions
from graphldp.ledger import ledger_from_meta
from graphldp.measures import measures_of
from graphldp.methods import Method, method
from graphldp.server import shift
from graphldp.stages.files.answers import AnswersFile, check_asked, conversation_in
from graphldp.stages.files.artifacts import atomic, expect, file_hash, read_meta, read_table, write_json, write_table
from graphldp.stages.files.belong import check_graph
from graphldp.stages.files.graphs import graph_hash, read_graph
from graphldp.stages.files.model_meta import ModelMeta
from graphldp.stages.files.models import WEIGHTS, load_model
from graphldp.stages.files.own import read_pairs
from graphldp.stages.files.paths import graph_dir
from graphldp.stages.pages.wording import counted

__all__ = ["Wanted", "predict_reports", "read_predictions"]

TOP = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which pairs a link predictor is asked about: those of a file, or so many that score highest; 100 if it says none.

    Attributes:
        pairs: a .csv or .parquet file with the columns `source` and `target`.
        top: how many of the pairs without an edge.
    """

    pairs: Path | None = None
    top: int | None = None

    def __post_init__(self) -> None:
        if self.pairs is not None and self.top is not None:
            raise OptionError("give --pairs FILE or --top K, not both: a file's pairs are all scored")
        if self.top is not None and self.top < 1:
            raise OptionError(f"top must be at least 1, got {self.top}")


def predict_reports(
    folder: Path,
    reports: Path,
    *,
    data: Path,
    dataset: str | None = None,
    seed: int | None = None,
    wanted: Wanted | None = None,
    device: str = "auto",
    output: Path,
) -> Path:
    """Predict from reports of the model's own graph, or of another one for an inductive use.

    A model of classes or numbers predicts them for every node; a link predictor scores pairs, which `wanted` names.
    `seed` says which of the file's reports to take. Left out, these are the ones that the model was trained on, where
    the file has them: with few dimensions reported, a model knows its nodes by their reports more than by what those
    say, and other reports of the same nodes are worth less to it.
    """
    kept = load_model(folder)
    source = AnswersFile(reports, "ldp perturb")
    graph = read_graph(graph_dir(data, dataset or source.says.dataset), features=False)
    _check(kept, source, graph, data, wanted, content=dataset is None)
    if seed is None:
        own, stored = ModelMeta.of(kept.about).seed, source.says.seeds
        seed = own if own in stored or source.says.deterministic else stored[0]
    found = _predicted(kept, graph, source, seed, device)
    if found.pairs is not None:
        columns = _pairs(found.pairs, graph, wanted or Wanted(), calibrated="task_bias" in kept.parameters)
    else:
        columns = _nodes(found, graph)
    facts = {
        "kind": "predictions",
        "task": kept.task.name,
        "dataset": graph.name,
        "model": file_hash(folder / WEIGHTS),
        "reports": file_hash(reports),
        "input": graph_hash(graph_dir(data, graph.name)),
        "seed": seed,
        "ledger": ledger_from_meta([{"ledger": kept.spent.as_json()}, _of_seed(source, seed)]).as_json(),
        "library": __version__,
    }
    if output.suffix.lower() == ".csv":
        with atomic(output) as partial:
            write_csv(pa.table(columns), partial)
        write_json(_facts_of(output), facts)
    else:
        write_table(output, pa.table(columns), facts)
    return output


def _facts_of(path: Path) -> Path:
    """Return where the facts of predictions in CSV stand, which holds none."""
    return path.with_name(f"{path.name}.json")


def read_predictions(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    """Return what `predict_reports` has written, and its facts."""
    if path.suffix.lower() == ".csv":
        return read_csv(path), json.loads(_facts_of(path).read_bytes())
    return read_table(path, "ldp predict"), read_meta(path, "ldp predict")


def _of_seed(source: AnswersFile, seed: int) -> dict[str, Any]:
    """Return the ledger of one seed's reports."""
    return {"ledger": ledger_from_meta([source.meta]).of_seeds([seed]).as_json()}


def _recipe(kept: TrainedModel) -> Method:
    """Return the model's method, with the way of asking that it was trained on."""
    made = ModelMeta.of(kept.about)
    return method(made.method).but(made.rounds)


def _check(
    kept: TrainedModel, source: AnswersFile, graph: Graph, data: Path, wanted: Wanted | None, *, content: bool
) -> None:
    """Refuse what the model cannot be given."""
    made, says, path = ModelMeta.of(kept.about), source.says, source.path
    if wanted is not None and "links" not in measures_of(kept.task.name).learns:
        raise OptionError(
            f"--pairs and --top are for models of link prediction; this one was trained for {kept.task.name} and "
            "predicts for every node"
        )
    recipe = _recipe(kept)
    if source.once != (recipe.asking is None):
        several = "several questions" if recipe.asking is None else "one question"
        raise ArtifactError(
            f"{path} holds answers to {several}, and the model was trained on another way of asking, that of method "
            f"{recipe.name}: they mean something else; make them with `ldp perturb --method {recipe.name}`"
        )
    expect(source.meta, path, "ldp perturb", mechanism=made.mechanism)
    check_asked(path, source.meta, recipe)
    if says.dimensions != kept.dimensions:
        raise DataError(
            f"{path} has {counted(says.dimensions, 'dimension')} and the model takes {kept.dimensions:,}; give reports "
            f"of the features that it was trained on, as those of {made.dataset}"
        )
    if (says.low, says.high) != (made.low, made.high):
        raise DataError(
            f"{path} has values in {says.low} to {says.high} and the model was trained on {made.low} to {made.high}; "
            "give reports with the same public range"
        )
    check_graph(path, source.meta, graph, data, "name their graph with --dataset", content=content)


def _predicted(kept: TrainedModel, graph: Graph, source: AnswersFile, seed: int, device: str) -> Predicted:
    made = ModelMeta.of(kept.about)
    asked = conversation_in(source.meta, graph, _recipe(kept))
    estimate = asked.estimate(source.questions(seed), made.filter)
    calibration = calibration_over(made.filter, made.average_degree, graph)
    if made.standardized:
        estimate = centred(estimate)
    if calibration.linear:
        inputs, operator = plain_inputs(estimate, made.scale), calibration.operator(graph, estimate.weights)
    else:
        inputs, operator = filtered_inputs(graph, estimate, calibration, made.scale), shift(graph)
    return predictions(kept, inputs, operator, graph.adjacency(), device=device)


def _nodes(found: Predicted, graph: Graph) -> dict[str, Any]:
    """Return a row for each node: its class and the probabilities of all, or its numbers."""
    columns: dict[str, Any] = {"node": pa.array(np.arange(graph.nodes, dtype=np.int32))}
    if graph.node_ids is not None:
        columns["id"] = pa.array(list(graph.node_ids))
    if found.probabilities is not None:
        probability = found.probabilities
        likeliest, names = pa.array(probability.argmax(axis=1).astype(np.int32)), graph.provenance.get("class_names")
        columns |= {
            "class": likeliest,
            **({"label": pa.array(names).take(likeliest)} if names else {}),
            "probability": pa.array(probability.max(axis=1)),
            **{f"p{k}": pa.array(np.ascontiguousarray(one)) for k, one in enumerate(probability.T)},
            "labelled": pa.array(graph.labels >= 0),
        }
    if found.values is not None and found.values.ndim == 1:
        columns["value"] = pa.array(found.values)
    elif found.values is not None:
        columns |= {f"value{k}": pa.array(np.ascontiguousarray(one)) for k, one in enumerate(found.values.T)}
    return columns


def _pairs(scorer: PairScorer, graph: Graph, wanted: Wanted, *, calibrated: bool) -> dict[str, Any]:
    """Return a row for each pair: its score, whether it is an edge, and the probability if the model has one."""
    adjacency = graph.adjacency()
    if wanted.pairs is not None:
        pairs = read_pairs(wanted.pairs, graph)
        scores = scorer.scores(pairs)
    else:
        pairs, scores = scorer.highest(wanted.top or TOP, adjacency)
    columns: dict[str, Any] = {}
    for name, nodes in zip(("source", "target"), pairs, strict=True):
        columns[name] = pa.array(nodes.astype(np.int32))
        if graph.node_ids is not None:
            columns[f"{name}_id"] = pa.array([graph.node_ids[node] for node in nodes])
    columns["score"] = pa.array(scores)
    if calibrated:
        columns["probability"] = pa.array(_logistic(scores))
    columns["linked"] = pa.array(np.asarray(adjacency[pairs[0], pairs[1]]).ravel() != 0)
    return columns


def _logistic(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return 1 / (1 + e^-score), without overflow."""
    return np.asarray(0.5 * (1 + np.tanh(0.5 * scores.astype(np.float64))), dtype=np.float32)
