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
import scipy.sparse as sp
from numpy.typing import NDArray

from graphldp.errors import DataError
from graphldp.graph import Graph
from graphldp.learn import (
    NodeInputs,
    Options,
    Outcome,
    Problem,
    Run,
    Space,
    Split,
    fit,
    majority,
    model,
    points,
    random_split,
    score,
)
from graphldp.methods import Method
from graphldp.randomness import generator, seed_of
from graphldp.server import Estimate, kprop, shift
from graphldp.stages.params import Params

__all__ = ["CellResult", "Checkpoint", "learn_cell", "learn_majority", "node_inputs", "split_of"]

Progress = Callable[[int, int, str], None]
Point = dict[str, Any]


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
        problem, outcome: of the final runs, for saving a model; None for a method that learns nothing.
    """

    rows: list[dict[str, Any]]
    chosen: Point
    problem: Problem | None = None
    outcome: Outcome | None = None
    runs: Sequence[Run] = ()


def node_inputs(estimate: Estimate) -> NodeInputs:
    """Return the trainer's view of an estimate: sparse where few dimensions were reported, dense where all were."""
    deviations = estimate.deviations()
    nodes, dimensions = deviations.shape
    if deviations.nnz == nodes * dimensions:
        return NodeInputs(deviations=deviations.data.reshape(nodes, dimensions), fill=estimate.fill)
    return NodeInputs(deviations=deviations, fill=estimate.fill)


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
    inputs_of: Callable[[int], NodeInputs],
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
    trainer = _Trainer(graph, inputs_of, recipe, params, device, fingerprint, on_stop, progress)
    tried = trainer.points()
    if checkpoint is not None and checkpoint.phase == "final":
        rows, state = checkpoint.rows, checkpoint.state
    else:
        rows, state = trainer.search(tried, checkpoint.state if checkpoint else None), None
    index = _best(rows, len(tried))
    return trainer.final(tried[index], index, rows, state)


def _best(rows: Sequence[dict[str, Any]], count: int) -> int:
    """Return the point with the lowest mean validation loss over the search's seeds."""
    losses = [[row["validation_loss"] for row in rows if row["point"] == point] for point in range(count)]
    means = np.array([np.mean(part) for part in losses])
    if not np.isfinite(means).any():
        raise DataError("no point of the search reached a finite validation loss; lower search.learning_rate")
    return int(np.nanargmin(np.where(np.isfinite(means), means, np.inf)))


@dataclass(slots=True)
class _Trainer:
    graph: Graph
    inputs_of: Callable[[int], NodeInputs]
    recipe: Method
    params: Params
    device: str
    fingerprint: str
    on_stop: Callable[[Checkpoint], None] | None
    progress: Progress | None

    def points(self) -> list[Point]:
        """Return the points to try: as many for every method, drawn from its space by the table's seed."""
        search = self.params.search
        space = Space(
            learning_rate=search.learning_rate,
            weight_decay=search.weight_decay,
            dropout=search.dropout,
            steps=self.recipe.steps(search.steps),
        )
        return [asdict(point) for point in points(space, search.points, seed_of(self.params.seed, "search"))]

    def search(self, tried: Sequence[Point], state: bytes | None) -> list[dict[str, Any]]:
        """Train all points on all search seeds as one batch, and return their rows."""
        seeds = [-1 - k for k in range(self.params.search.seeds)]
        pairs = [(index, point, seed) for index, point in enumerate(tried) for seed in seeds]
        _, _, _, rows = self._fit("search", pairs, seeds, [], state)
        return rows

    def final(
        self, point: Point, index: int, search: list[dict[str, Any]], state: bytes | None
    ) -> CellResult:
        """Train the chosen point on the final seeds; only here are test labels opened."""
        seeds = list(range(self.params.seeds))
        pairs = [(index, point, seed) for seed in seeds]
        problem, runs, outcome, rows = self._fit("final", pairs, seeds, search, state)
        for row, run, guess in zip(rows, runs, outcome.predictions, strict=True):
            row["test_accuracy"] = float(score(guess, self.graph.labels, run.split.test))
        return CellResult(rows=[*search, *rows], chosen=point, problem=problem, outcome=outcome, runs=runs)

    def _fit(
        self,
        phase: str,
        pairs: Sequence[tuple[int, Point, int]],
        seeds: Sequence[int],
        rows: list[dict[str, Any]],
        state: bytes | None,
    ) -> tuple[Problem, list[Run], Outcome, list[dict[str, Any]]]:
        from graphldp.learn import Interrupted, State

        problem = Problem(
            shift=shift(self.graph),
            adjacency=self.graph.adjacency(),
            inputs=tuple(self.inputs_of(seed) for seed in seeds),
            classes=self.graph.classes,
        )
        splits = {seed: split_of(self.graph, self.params, seed) for seed in seeds}
        runs = [self._run(point, seed, seeds.index(seed), splits[seed]) for _, point, seed in pairs]
        train = self.params.train
        options = Options(
            model=model(self.recipe.model, hidden=train.hidden), epochs=train.epochs, patience=train.patience
        )
        try:
            outcome = fit(
                problem,
                runs,
                options,
                device=self.device,
                progress=self._say(phase),
                state=None if state is None else State.from_bytes(state),
            )
        except Interrupted as stop:
            if self.on_stop is not None:
                self.on_stop(Checkpoint(self.fingerprint, phase, rows, stop.state.to_bytes()))
            raise KeyboardInterrupt from stop
        found = [_row(phase, index, seed, point, splits[seed]) for index, point, seed in pairs]
        for number, row in enumerate(found):
            row["best_epoch"] = int(outcome.best_epoch[number])
            row["epochs"] = int(outcome.epochs[number])
            row["validation_loss"] = float(outcome.validation_loss[number])
            row["validation_accuracy"] = float(outcome.validation_accuracy[number])
        return problem, runs, outcome, found

    def _run(self, point: Point, seed: int, inputs: int, split: Split) -> Run:
        return Run(
            inputs=inputs,
            split=split,
            labels=split.visible(self.graph.labels),
            seed=seed_of(self.params.seed, "train", self.graph.name, seed),
            learning_rate=point["learning_rate"],
            weight_decay=point["weight_decay"],
            dropout=point["dropout"],
            coefficients=kprop(point["steps"]).coefficients,
        )

    def _say(self, phase: str) -> Progress | None:
        outer = self.progress
        if outer is None:
            return None
        half = self.params.train.epochs
        start = 0 if phase == "search" else half
        return lambda done, total, text: outer(start + done, 2 * half, f"{phase}: {text}")


def _row(role: str, point: int, seed: int, values: Point, split: Split) -> dict[str, Any]:
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
