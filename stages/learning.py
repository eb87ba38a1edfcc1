"""One cell of a table, in memory: search, choose, train the final runs, score them.

`ldp train` feeds it from artifacts, `ldp run` from the mechanisms directly; both get the same numbers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from graphldp.graph import Graph
from graphldp.learn import (
    Backbone,
    Interrupted,
    NodeInputs,
    Options,
    Outcome,
    Point,
    Problem,
    Replica,
    Run,
    Space,
    Split,
    State,
    chosen_point,
    final,
    majority,
    model,
    points,
    random_split,
    score,
    search,
)
from graphldp.methods import Method
from graphldp.randomness import generator, seed_of
from graphldp.server import Estimate, shift
from graphldp.stages.params import Params

__all__ = ["CellResult", "Checkpoint", "learn_cell", "learn_majority", "node_inputs", "split_of", "unit_scale"]

Progress = Callable[[int, int, str], None]


@dataclass(slots=True)
class Checkpoint:
    """Where an interrupted cell goes on: the phase it was in, the finished search, the trainer's own state.

    Attributes:
        fingerprint: what the cell computes; a checkpoint of anything else is not taken up.
        phase: `search` or `final`.
        rows: the search's rows, once it is finished.
        state: the trainer's state, as bytes.
    """

    fingerprint: str
    phase: str
    rows: list[dict[str, Any]]
    state: bytes | None


@dataclass(slots=True, kw_only=True, eq=False)
class CellResult:
    """What a cell has become.

    Attributes:
        rows: one per run, search and final.
        chosen: the point that the search chose.
        problem, outcome, runs, backbone: of the final runs, for saving a model; None for a method that learns nothing.
    """

    rows: list[dict[str, Any]]
    chosen: dict[str, Any]
    problem: Problem | None = None
    outcome: Outcome | None = None
    runs: Sequence[Run] = ()
    backbone: Backbone | None = None


def node_inputs(estimate: Estimate, scale: float = 1.0) -> NodeInputs:
    """Return the trainer's view of an estimate, times `scale`.

    It is sparse where few dimensions were reported, dense where all were.
    """
    deviations = estimate.deviations()
    deviations.data = (deviations.data * np.float32(scale)).astype(np.float32)
    nodes, dimensions = deviations.shape
    if deviations.nnz == nodes * dimensions:
        return NodeInputs(deviations=deviations.data.reshape(nodes, dimensions), fill=scale * estimate.fill)
    return NodeInputs(deviations=deviations, fill=scale * estimate.fill)


def unit_scale(estimate: Estimate) -> float:
    """Return the factor at which the estimate's deviations have a mean square of 1 over all n x d coordinates.

    Estimates are as large as their noise: 0.1 for clean bits, 400 for the piecewise mechanism at epsilon 0.1. A
    learning rate only means the same for all of them if their scale does, so every method's inputs are brought to
    this one. The factor is computed from the reports, so it costs no privacy.
    """
    deviations = estimate.deviations()
    mean = float(np.square(deviations.data, dtype=np.float64).sum()) / max(1, np.prod(deviations.shape))
    return 1.0 / np.sqrt(mean) if mean > 0 else 1.0


def split_of(graph: Graph, params: Params, seed: int) -> Split:
    """Return the split of a seed: the same for every method of a table."""
    labelled = np.flatnonzero(graph.labels >= 0)
    return random_split(
        labelled,
        generator(params.seed, "split", graph.name, seed),
        train=params.train.train_fraction,
        validation=params.train.validation_fraction,
    )


def learn_majority(graph: Graph, params: Params) -> CellResult:
    """Score the commonest training class on every final split."""
    rows = []
    for seed in range(params.seeds):
        split = split_of(graph, params, seed)
        guess = majority(graph.labels, split)
        row = _row("final", 0, seed, {}, split)
        row["validation_accuracy"] = float(score(guess, graph.labels, split.validation))
        row["test_accuracy"] = float(score(guess, graph.labels, split.test))
        rows.append(row)
    return CellResult(rows=rows, chosen={})


def learn_cell(
    graph: Graph,
    estimate_of: Callable[[int], Estimate],
    recipe: Method,
    params: Params,
    *,
    device: str = "auto",
    checkpoint: Checkpoint | None = None,
    on_stop: Callable[[Checkpoint], None] | None = None,
    fingerprint: str = "",
    progress: Progress | None = None,
) -> CellResult:
    """Search on seeds that the final runs never use, choose by validation loss, train and score the final runs.

    `on_stop` receives a checkpoint when the work is interrupted; given back as `checkpoint`, it goes on from there
    and ends as if it had never stopped.
    """
    cell = _Cell(graph, estimate_of, recipe, params, device, progress)
    phase, rows, state = "search", [], None
    if checkpoint is not None:
        phase, rows = checkpoint.phase, checkpoint.rows
        state = None if checkpoint.state is None else State.from_bytes(checkpoint.state)
    try:
        if phase == "search":
            rows = cell.search(state)
            phase, state = "final", None
        return cell.final(rows, state)
    except Interrupted as stop:
        if on_stop is not None:
            on_stop(Checkpoint(fingerprint, phase, rows, stop.state.to_bytes()))
        raise KeyboardInterrupt from stop


@dataclass(slots=True)
class _Cell:
    """The two phases of a cell, on the trainer's terms."""

    graph: Graph
    estimate_of: Callable[[int], Estimate]
    recipe: Method
    params: Params
    device: str
    progress: Progress | None

    def candidates(self) -> tuple[Point, ...]:
        """Return the points to try: as many for every method, drawn from its space by the table's seed."""
        search = self.params.search
        space = Space(
            learning_rate=search.learning_rate,
            weight_decay=search.weight_decay,
            dropout=search.dropout,
            steps=self.recipe.steps(search.steps),
        )
        return points(space, search.points, self.params.seed)

    def options(self) -> Options:
        """Return the backbone and the loop's options."""
        train = self.params.train
        return Options(
            model=model(self.recipe.model, hidden=train.hidden), epochs=train.epochs, patience=train.patience
        )

    def inputs(self, seed: int) -> NodeInputs:
        """Return one seed's inputs, on the scale that the parameters ask for."""
        estimate = self.estimate_of(seed)
        return node_inputs(estimate, unit_scale(estimate) if self.params.train.standardize else 1.0)

    def problem(self, seeds: Sequence[int]) -> tuple[Problem, list[Replica]]:
        """Return the inputs of these seeds, and what each seed's runs share."""
        graph = self.graph
        problem = Problem(
            shift=shift(graph),
            adjacency=graph.adjacency(),
            inputs=tuple(self.inputs(seed) for seed in seeds),
            classes=graph.classes,
        )
        splits = [split_of(graph, self.params, seed) for seed in seeds]
        replicas = [
            Replica(
                inputs=place,
                split=split,
                labels=split.visible(graph.labels),
                seed=seed_of(self.params.seed, "train", graph.name, seed),
            )
            for place, (seed, split) in enumerate(zip(seeds, splits, strict=True))
        ]
        return problem, replicas

    def search(self, state: State | None) -> list[dict[str, Any]]:
        """Try every point on the search's seeds, all as one batch, and return their rows."""
        seeds = [-1 - k for k in range(self.params.search.seeds)]
        problem, replicas = self.problem(seeds)
        candidates = self.candidates()
        found = search(
            problem, candidates, replicas, self.options(), device=self.device, progress=self._say("search"), state=state
        )
        rows = [
            _row("search", index, seed, asdict(point), replica.split)
            for index, point in enumerate(candidates)
            for seed, replica in zip(seeds, replicas, strict=True)
        ]
        return _measured(rows, found.outcome)

    def final(self, tried: list[dict[str, Any]], state: State | None) -> CellResult:
        """Train the chosen point on the final seeds; only here are test labels opened."""
        seeds = list(range(self.params.seeds))
        candidates = self.candidates()
        losses = np.array([row["validation_loss"] for row in tried]).reshape(len(candidates), -1)
        index = chosen_point(losses)
        point = candidates[index]
        problem, replicas = self.problem(seeds)
        runs, outcome = final(
            problem, point, replicas, self.options(), device=self.device, progress=self._say("final"), state=state
        )
        rows = [_row("final", index, seed, asdict(point), run.split) for seed, run in zip(seeds, runs, strict=True)]
        for row, run, guess in zip(_measured(rows, outcome), runs, outcome.predictions, strict=True):
            row["test_accuracy"] = float(score(guess, self.graph.labels, run.split.test))
        return CellResult(
            rows=[*tried, *rows],
            chosen=asdict(point),
            problem=problem,
            outcome=outcome,
            runs=runs,
            backbone=self.options().model,
        )

    def _say(self, phase: str) -> Progress | None:
        outer = self.progress
        if outer is None:
            return None
        start = 0.0 if phase == "search" else 0.5
        # Waves change the trainer's own total, so that a phase counts as half of the cell whatever it says.
        whole = 2 * self.params.train.epochs
        return lambda done, total, text: outer(int(whole * (start + 0.5 * done / total)), whole, f"{phase}: {text}")


def _measured(rows: list[dict[str, Any]], outcome: Outcome) -> list[dict[str, Any]]:
    """Return the rows with what became of their runs; a run that failed has an infinite validation loss."""
    for number, row in enumerate(rows):
        failed = bool(outcome.failed[number])
        row["best_epoch"] = int(outcome.best_epoch[number])
        row["epochs"] = int(outcome.epochs[number])
        row["validation_loss"] = np.inf if failed else float(outcome.validation_loss[number])
        row["validation_accuracy"] = float(outcome.validation_accuracy[number])
    return rows


def _row(role: str, point: int, seed: int, values: dict[str, Any], split: Split) -> dict[str, Any]:
    return {
        "role": role,
        "point": point,
        "seed": seed,
        "learning_rate": values.get("learning_rate"),
        "weight_decay": values.get("weight_decay"),
        "dropout": values.get("dropout"),
        "steps": values.get("steps"),
        "best_epoch": None,
        "epochs": None,
        "validation_loss": None,
        "validation_accuracy": None,
        "test_accuracy": None,
        "train_nodes": len(split.train),
        "validation_nodes": len(split.validation),
        "test_nodes": len(split.test),
    }


def fingerprint(*parts: Any) -> str:
    """Return a hash of JSON-able parts: what a checkpoint must agree with to be taken up."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()
