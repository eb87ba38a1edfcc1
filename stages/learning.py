"""One cell of a table, in memory: search, choose, train the final runs, score them.

`ldp train` feeds it from artifacts, `ldp run` from the mechanisms directly; both get the same numbers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphldp.graph import Graph
from graphldp.learn import (
    Interrupted,
    NodeInputs,
    Options,
    Outcome,
    Problem,
    Run,
    State,
    chosen_point,
    fit,
    runs_of,
)
from graphldp.measures import measures_of
from graphldp.randomness import seed_of
from graphldp.server import Calibration, Estimate, shift
from graphldp.server.evidence import Setting
from graphldp.stages.inputs import centred, evidence_inputs, filtered_inputs, plain_inputs, unit_scale
from graphldp.stages.params import Params
from graphldp.stages.resources import Resources
from graphldp.stages.setups import Plan, Setup
from graphldp.stages.tasks import Part, calibration_over, final_scores, part_of, problem_of, task_of

__all__ = ["CellResult", "Checkpoint", "learn_cell", "learn_majority"]

Progress = Callable[[int, int, str], None]


@dataclass(slots=True)
class Checkpoint:
    """Where an interrupted cell goes on: the phase it was in, the finished search, the trainer's own state.

    Attributes:
        fingerprint: what the cell computes; a checkpoint of anything else is not taken up.
        phase: `search` or `final`.
        rows: the rows of the search's finished batches.
        state: the trainer's state, as bytes.
    """

    fingerprint: str
    phase: str
    rows: list[dict[str, Any]]
    state: bytes | None

    def to_bytes(self) -> bytes:
        """Return it as one piece, for other processes."""
        facts = json.dumps({"fingerprint": self.fingerprint, "phase": self.phase, "rows": self.rows}).encode()
        return b"%d\n%b%b" % (len(facts), facts, self.state or b"")

    @classmethod
    def from_bytes(cls, data: bytes) -> Checkpoint:
        """Read it back."""
        length, _, rest = data.partition(b"\n")
        facts = json.loads(rest[: int(length)])
        return cls(**facts, state=rest[int(length) :] or None)


@dataclass(slots=True, kw_only=True, eq=False)
class CellResult:
    """What a cell has become.

    Attributes:
        rows: one per run, search and final.
        chosen: the point that the search chose.
        steps: its depth K.
        setup: what it means.
        problem, outcome, runs: of the final runs, for saving a model. All of them are None for a method that learns
            nothing.
    """

    rows: list[dict[str, Any]]
    chosen: dict[str, Any]
    steps: int = 0
    setup: Setup | None = None
    problem: Problem | None = None
    outcome: Outcome | None = None
    runs: Sequence[Run] = ()


def learn_majority(graph: Graph, params: Params) -> CellResult:
    """Score on every final split what looks at neither features nor edges: the commonest class, the mean, chance."""
    rows = []
    for seed in range(params.seeds):
        part = part_of(graph, params, seed)
        row = _row("final", 0, seed, {}, part)
        for name, scores in zip(("validation", "test"), part.guess(), strict=True):
            row |= {f"{name}_{key}": value for key, value in scores.items()}
        rows.append(row)
    return CellResult(rows=rows, chosen={})


def learn_cell(
    graph: Graph,
    plan: Plan,
    params: Params,
    *,
    device: str = "auto",
    resources: Resources | None = None,
    checkpoint: Checkpoint | None = None,
    on_stop: Callable[[Checkpoint], None] | None = None,
    fingerprint: str = "",
    progress: Progress | None = None,
) -> CellResult:
    """Search on seeds that the final runs never use, choose by validation loss, train and score the final runs.

    `on_stop` receives a checkpoint when the work is interrupted; given back as `checkpoint`, it goes on from there and
    ends as if it had never stopped.
    """
    cell = _Cell(graph, plan, params, device, resources or Resources(), progress)
    phase, state = "search", None
    if checkpoint is not None:
        phase, cell.tried = checkpoint.phase, checkpoint.rows
        state = None if checkpoint.state is None else State.from_bytes(checkpoint.state)
    try:
        if phase == "search":
            cell.search(state)
            phase, state = "final", None
        return cell.final(state)
    except Interrupted as stop:
        if on_stop is not None:
            on_stop(Checkpoint(fingerprint, phase, cell.tried, stop.state.to_bytes()))
        raise KeyboardInterrupt from stop


@dataclass(slots=True)
class _Cell:
    """The two phases of a cell, on the trainer's terms.

    Attributes:
        tried: the rows of the search's batches that are finished.
        estimates, matrices: estimates and evidence by their key and seed, as long as a batch needs them.
        parts: what is trained on, selected by and tested on, by seed.
    """

    graph: Graph
    plan: Plan
    params: Params
    device: str
    resources: Resources
    progress: Progress | None
    tried: list[dict[str, Any]] = field(default_factory=list)
    estimates: dict[tuple[str, int], Estimate] = field(default_factory=dict)
    matrices: dict[tuple[str, int], NDArray[np.float32]] = field(default_factory=dict)
    parts: dict[int, Part] = field(default_factory=dict)

    def options(self, setup: Setup) -> Options:
        """Return the backbone and the loop's options."""
        return Options(
            model=setup.backbone,
            task=task_of(self.params.train),
            epochs=self.params.train.epochs,
            patience=setup.patience,
            max_memory=self.resources.max_memory,
        )

    def batches(self, chosen: Sequence[int]) -> list[list[int]]:
        """Return points in groups that are trained as one batch: one backbone, and one operator where there is one."""
        groups: dict[tuple[Any, ...], list[int]] = {}
        for index in chosen:
            setup, steps = self.plan.setups[index], self.plan.points[index].steps
            # Evidence is as wide as it likes, and a batch has one width.
            width = _input_key(setup) if setup.evidence is not None else ""
            key = (repr(self.options(setup)), width, _operator_key(setup, steps))
            groups.setdefault(key, []).append(index)
        return list(groups.values())

    def fit(
        self, batch: Sequence[int], seeds: Sequence[int], say: Progress | None, state: State | None
    ) -> tuple[Problem, list[Run], Outcome]:
        """Train every point of a batch on every seed; run p * len(seeds) + s is its p-th point on the s-th seed."""
        parts = [self.part(seed) for seed in seeds]
        replicas = [
            part.replica(place, seed_of(self.params.seed, "train", self.graph.name, seed))
            for place, (part, seed) in enumerate(zip(parts, seeds, strict=True))
        ]
        points = [self.plan.points[index] for index in batch]
        setups = [self.plan.setups[index] for index in batch]
        filters = [setup.calibration(point.steps) for setup, point in zip(setups, points, strict=True)]
        common = _operator_key(setups[0], points[0].steps) is not None
        # Where the filter commutes with the weights, points that differ in it alone have the same inputs.
        keys: list[Any] = [_input_key(setup) for setup in setups]
        if not common:
            first = [setups.index(setup) for setup in setups]
            keys = list(zip(first, (point.steps for point in points), strict=True))
        slots = list(dict.fromkeys(keys if common else sorted(keys)))
        inputs = []
        for slot in slots:
            place = keys.index(slot)
            inputs += [self.inputs(setups[place], None if common else filters[place], seed) for seed in seeds]
        problem = problem_of(parts, inputs, filters[0].operator if common else shift)
        runs = [
            replace(run, inputs=run.inputs + len(seeds) * slots.index(key))
            for point, one, key in zip(points, filters, keys, strict=True)
            for run in runs_of([point], replicas, _constant(one.coefficients if common else (1.0,)))
        ]
        outcome = fit(
            problem,
            runs,
            self.options(setups[0]),
            device=self.device,
            progress=say,
            state=state,
            team=self.resources.team,
        )
        self.resources.tell("search" if seeds[0] < 0 else "final", outcome)
        return problem, runs, outcome

    def inputs(self, setup: Setup, calibration: Calibration | None, seed: int) -> NodeInputs:
        """Return what a model is given for a seed; with `calibration`, filtered by it."""
        if setup.evidence is not None:
            over = None if setup.recipe.propagates else self.part(seed).graph.adjacency()
            return evidence_inputs(self.evidence(setup, seed), self.unit, over=over)
        estimate, scale = self.estimate(setup, seed), 1.0
        if self.unit:
            scale, estimate = unit_scale(estimate), centred(estimate)
        if calibration is None:
            return plain_inputs(estimate, scale)
        seen = self.part(seed).graph
        return filtered_inputs(seen, estimate, calibration_over(calibration, self.graph, seen), scale)

    @property
    def unit(self) -> bool:
        """Whether all inputs are brought to one scale."""
        return self.params.train.standardize

    def estimate(self, setup: Setup, seed: int) -> Estimate:
        """Return a seed's estimate, computed once."""
        key = (setup.key, seed)
        if key not in self.estimates:
            self.estimates[key] = setup.estimate(seed)
        return self.estimates[key]

    def evidence(self, setup: Setup, seed: int) -> NDArray[np.float32]:
        """Return a seed's evidence, computed once, from labels of the seed's training nodes alone."""
        key = (_input_key(setup), seed)
        if key not in self.matrices:
            assert setup.evidence is not None
            part = self.part(seed)
            estimate = self.estimate(setup, seed) if setup.evidence.reads else None
            root = seed_of(self.params.seed, "evidence", self.graph.name, seed)
            setting = Setting.of(part.graph, estimate, setup.device, part.labelled, root)
            self.matrices[key] = setup.evidence.matrix(setting)
        return self.matrices[key]

    def forget(self, batches: Sequence[Sequence[int]]) -> None:
        """Drop what none of these batches needs."""
        setups = [self.plan.setups[index] for batch in batches for index in batch]
        estimates, matrices = {setup.key for setup in setups}, {_input_key(setup) for setup in setups}
        self.estimates = {key: one for key, one in self.estimates.items() if key[0] in estimates}
        self.matrices = {key: one for key, one in self.matrices.items() if key[0] in matrices}

    def part(self, seed: int) -> Part:
        """Return what a seed's runs are trained on, selected by and tested on; made once."""
        if seed not in self.parts:
            self.parts[seed] = part_of(self.graph, self.params, seed)
        return self.parts[seed]

    def search(self, state: State | None) -> None:
        """Try every point on the search's seeds; a checkpoint's batches are not tried again."""
        seeds = [-1 - k for k in range(self.params.search.seeds)]
        points = self.plan.points
        done = {row["point"] for row in self.tried}
        batches = self.batches(range(len(points)))
        for count, batch in enumerate(batches):
            if done.issuperset(batch):
                continue
            *_, outcome = self.fit(batch, seeds, self._say("search", count, len(batches)), state)
            rows = [
                _row("search", index, seed, points[index].values(), self.part(seed))
                for index in batch
                for seed in seeds
            ]
            self.tried = [*self.tried, *_measured(rows, outcome)]
            state = None
            self.forget(batches[count + 1 :])
        self.tried.sort(key=lambda row: (row["point"], -row["seed"]))

    def final(self, state: State | None) -> CellResult:
        """Train the chosen point on the final seeds; only here are test labels opened."""
        seeds = list(range(self.params.seeds))
        losses = np.array([row["validation_loss"] for row in self.tried]).reshape(len(self.plan.points), -1)
        index = chosen_point(losses)
        point, setup = self.plan.points[index], self.plan.setups[index]
        problem, runs, outcome = self.fit([index], seeds, self._say("final", 0, 1), state)
        parts = [self.part(seed) for seed in seeds]
        rows = [_row("final", index, seed, point.values(), part) for seed, part in zip(seeds, parts, strict=True)]
        scores = final_scores(parts, problem, runs, self.options(setup), outcome, self.device)
        for row, found in zip(_measured(rows, outcome), scores, strict=True):
            row |= {f"test_{name}": value for name, value in found.items()}
        return CellResult(
            rows=[*self.tried, *rows],
            chosen=point.values(),
            steps=point.steps,
            setup=setup,
            problem=problem,
            outcome=outcome,
            runs=runs,
        )

    def _say(self, phase: str, count: int, parts: int) -> Progress | None:
        outer = self.progress
        if outer is None:
            return None
        start = 0.0 if phase == "search" else 0.5
        # Waves change the trainer's own total, so that a phase counts as half of the cell whatever it says.
        whole = 2 * self.params.train.epochs
        batch = f" {count + 1} of {parts}" if parts > 1 else ""
        return lambda done, total, text: outer(
            int(whole * (start + 0.5 * (count + done / total) / parts)), whole, f"{phase}{batch}: {text}"
        )


def _operator_key(setup: Setup, steps: int) -> tuple[float, bool] | None:
    """Return what the filter's S depends on, or None where the filter must be applied before learning.

    A linear filter without node weights commutes with the model's first weight matrix, and the trainer picks the
    cheaper order. A threshold after the filter does not, and node weights differ from seed to seed.
    """
    one = setup.calibration(steps)
    return (one.r, one.self_loops) if one.linear and one.weighting == "none" else None


def _constant(coefficients: tuple[float, ...]) -> Callable[[int], tuple[float, ...]]:
    return lambda steps: coefficients


def _input_key(setup: Setup) -> str:
    """Return what a model's inputs before the filter depend on."""
    return setup.key if setup.evidence is None else f"{setup.evidence!r} of {setup.key if setup.evidence.reads else ''}"


def _measured(rows: list[dict[str, Any]], outcome: Outcome) -> list[dict[str, Any]]:
    """Return the rows with what became of their runs; a run that failed has an infinite validation loss."""
    for number, row in enumerate(rows):
        failed = bool(outcome.failed[number])
        row["best_epoch"] = int(outcome.best_epoch[number])
        row["epochs"] = int(outcome.epochs[number])
        row["validation_loss"] = np.inf if failed else float(outcome.validation_loss[number])
        row |= {f"validation_{name}": float(values[number]) for name, values in outcome.metrics.items()}
    return rows


def _row(role: str, point: int, seed: int, values: dict[str, Any], part: Part) -> dict[str, Any]:
    measures = measures_of(part.task)
    scores = [f"{name}_{measure}" for name in ("validation", "test") for measure in measures.names]
    sizes = zip(("train", "validation", "test"), part.sizes, strict=True)
    return {
        "role": role,
        "point": point,
        "seed": seed,
        "learning_rate": values.get("learning_rate"),
        "weight_decay": values.get("weight_decay"),
        "dropout": values.get("dropout"),
        "steps": values.get("steps"),
        "options": json.dumps(values.get("options", {}), sort_keys=True),
        "best_epoch": None,
        "epochs": None,
        "validation_loss": None,
        **dict.fromkeys(scores),
        **{f"{name}_{measures.parts}": size for name, size in sizes},
    }


def fingerprint(*parts: Any) -> str:
    """Return a hash of JSON-able parts: what a checkpoint must agree with to be taken up."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()
