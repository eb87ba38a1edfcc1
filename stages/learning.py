"""One cell of a table, in memory: search, choose, train the final runs, score them.

`ldp train` feeds it from artifacts, `ldp run` from the mechanisms directly; both get the same numbers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from graphldp.graph import Graph
from graphldp.learn import (
    Backbone,
    Interrupted,
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
    fit,
    majority,
    model,
    points,
    runs_of,
    score,
)
from graphldp.methods import Method
from graphldp.randomness import seed_of
from graphldp.server import Estimate, kprop, shift
from graphldp.stages.inputs import Filters, centred, filtered_inputs, plain_inputs, shared, unit_scale
from graphldp.stages.params import Params, TrainParams
from graphldp.stages.resources import Resources
from graphldp.stages.splits import split_of

__all__ = ["CellResult", "Checkpoint", "learn_cell", "learn_majority"]

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


def backbone_of(recipe: Method, train: TrainParams) -> Backbone:
    """Return the method's backbone, or the one that the parameters ask for, with the options that it has."""
    name = train.model or recipe.model
    known = {field.name for field in fields(type(model(name)))}  # type: ignore[arg-type]
    return model(name, **{key: value for key, value in (("hidden", train.hidden),) if key in known})


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
    filters: Filters | None = None,
    device: str = "auto",
    resources: Resources | None = None,
    checkpoint: Checkpoint | None = None,
    on_stop: Callable[[Checkpoint], None] | None = None,
    fingerprint: str = "",
    progress: Progress | None = None,
) -> CellResult:
    """Search on seeds that the final runs never use, choose by validation loss, train and score the final runs.

    `filters` are the calibrations by depth K, those of KProp if left out; the estimates have any threshold before the
    filter behind them. `on_stop` receives a checkpoint when the work is interrupted; given back as `checkpoint`, it
    goes on from there and ends as if it had never stopped.
    """
    if filters is None:
        filters = {k: kprop(k) for k in recipe.steps(params.search.steps)}
    cell = _Cell(graph, estimate_of, recipe, params, filters, device, resources or Resources(), progress)
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
    filters: Filters
    device: str
    resources: Resources
    progress: Progress | None

    def candidates(self) -> tuple[Point, ...]:
        """Return the points to try: as many for every method, drawn from its space by the table's seed."""
        search = self.params.search
        space = Space(
            learning_rate=search.learning_rate,
            weight_decay=search.weight_decay,
            dropout=search.dropout,
            steps=tuple(self.filters),
        )
        return points(space, search.points, self.params.seed)

    def options(self) -> Options:
        """Return the backbone and the loop's options."""
        train = self.params.train
        return Options(
            model=backbone_of(self.recipe, train),
            epochs=train.epochs,
            patience=train.patience,
            max_memory=self.resources.max_memory,
        )

    def fit(
        self, candidates: Sequence[Point], seeds: Sequence[int], phase: str, state: State | None
    ) -> tuple[Problem, list[Run], Outcome]:
        """Train every candidate on every seed, all as one batch; run p * len(seeds) + s is point p on seed s."""
        graph, common = self.graph, shared(self.graph, self.filters)
        replicas = [self.replica(place, seed) for place, seed in enumerate(seeds)]
        estimates = [self.estimate_of(seed) for seed in seeds]
        scales = [1.0] * len(seeds)
        if self.params.train.standardize:
            scales = [unit_scale(one) for one in estimates]
            estimates = [centred(one) for one in estimates]
        depths = sorted({point.steps for point in candidates})
        if common is not None:
            inputs = [plain_inputs(one, scale) for one, scale in zip(estimates, scales, strict=True)]
        else:
            inputs = [
                filtered_inputs(graph, one, self.filters[depth], scale)
                for depth in depths
                for one, scale in zip(estimates, scales, strict=True)
            ]
        problem = Problem(
            shift=shift(graph) if common is None else common.operator,
            adjacency=graph.adjacency(),
            inputs=tuple(inputs),
            classes=graph.classes,
        )
        coefficients = (lambda steps: (1.0,)) if common is None else common.coefficients.__getitem__
        runs = runs_of(candidates, replicas, coefficients)
        if common is None:
            place = {depth: len(seeds) * rank for rank, depth in enumerate(depths)}
            which = [place[point.steps] for point in candidates for _ in seeds]
            runs = [replace(run, inputs=run.inputs + start) for run, start in zip(runs, which, strict=True)]
        outcome = fit(problem, runs, self.options(), device=self.device, progress=self._say(phase), state=state)
        self.resources.tell(phase, outcome)
        return problem, runs, outcome

    def replica(self, place: int, seed: int) -> Replica:
        """Return what all runs of a seed share."""
        split = split_of(self.graph, self.params, seed)
        return Replica(
            inputs=place,
            split=split,
            labels=split.visible(self.graph.labels),
            seed=seed_of(self.params.seed, "train", self.graph.name, seed),
        )

    def search(self, state: State | None) -> list[dict[str, Any]]:
        """Try every point on the search's seeds, and return their rows."""
        seeds = [-1 - k for k in range(self.params.search.seeds)]
        candidates = self.candidates()
        _, runs, outcome = self.fit(candidates, seeds, "search", state)
        pairs = [(index, point, seed) for index, point in enumerate(candidates) for seed in seeds]
        return _measured(
            [
                _row("search", index, seed, asdict(point), run.split)
                for (index, point, seed), run in zip(pairs, runs, strict=True)
            ],
            outcome,
        )

    def final(self, tried: list[dict[str, Any]], state: State | None) -> CellResult:
        """Train the chosen point on the final seeds; only here are test labels opened."""
        seeds = list(range(self.params.seeds))
        candidates = self.candidates()
        losses = np.array([row["validation_loss"] for row in tried]).reshape(len(candidates), -1)
        index = chosen_point(losses)
        point = candidates[index]
        problem, runs, outcome = self.fit([point], seeds, "final", state)
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
