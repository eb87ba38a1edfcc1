"""Stage train: Calibrated in, Runs out; a model to keep where one is asked for."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from graphldp import __version__, methods
from graphldp.errors import OptionError
from graphldp.experiment.cell import learn_cell, learn_majority
from graphldp.experiment.options import report_seeds
from graphldp.experiment.parts import check_classes
from graphldp.experiment.plan import Plan, plan_of
from graphldp.experiment.resources import Resources
from graphldp.experiment.result import CellResult, Checkpoint, fingerprint
from graphldp.graph import Graph
from graphldp.ledger import Ledger, Spend, epsilon_text, ledger_from_meta
from graphldp.measures import measures_of
from graphldp.stages.answers import SurveyFile
from graphldp.stages.artifacts import expect, file_hash, write_json, write_table
from graphldp.stages.cards import floor_of
from graphldp.stages.denoise import make_command as denoise_command
from graphldp.stages.graphs import graph_hash, read_graph
from graphldp.stages.keeper import Keeper
from graphldp.stages.models import save_model
from graphldp.stages.params import Params
from graphldp.stages.paths import calibrated_path, graph_dir, resume_path, runs_path, survey_path
from graphldp.stages.perturb import check_nodes
from graphldp.stages.perturb import make_command as perturb_command
from graphldp.stages.reports import CalibratedFile
from graphldp.stages.rounds import check_selection
from graphldp.stages.stored import Answered, Stored
from graphldp.stages.survey import make_command as survey_command

__all__ = [
    "CARRIED",
    "found_meta",
    "make_command",
    "runs_meta",
    "runs_schema",
    "taken_up",
    "train",
    "write_runs",
]

Progress = Callable[[int, int, str], None]

_FLOATS = ("learning_rate", "weight_decay", "dropout")
_PARTS = ("train", "validation", "test")


def runs_schema(task: str) -> pa.Schema:
    """Return the columns of a task's runs: each of its measures in validation and in test."""
    measures = measures_of(task)
    scores = [f"{part}_{name}" for name in measures.names for part in _PARTS[1:]]
    return pa.schema(
        [("role", pa.string()), ("point", pa.int32()), ("seed", pa.int32())]
        + [(name, pa.float64()) for name in _FLOATS]
        + [(name, pa.int32()) for name in ("steps", "best_epoch", "epochs")]
        + [("options", pa.string()), ("rung", pa.int32())]
        + [(name, pa.float64()) for name in ("validation_loss", *scores)]
        + [(f"{part}_{measures.parts}", pa.int32()) for part in _PARTS]
    )


_GIVERS = "person of the training and validation part"  # whose number to learn is known as it is

# What runs say of the reports that they were learned from.
CARRIED = ("options", "epsilon_exact", "delta", "claim", "m", "ledger", "random")


def make_command(dataset: str, method: str, mechanism: str, epsilon: float) -> str:
    """Return the command that makes a Runs artifact."""
    return f"ldp train --dataset {dataset} --method {method} --mechanism {mechanism} --epsilon {epsilon_text(epsilon)}"


def train(
    dataset: str,
    method: str,
    mechanism: str | None,
    epsilon: float,
    *,
    data: Path,
    params: Params,
    name: str | None = None,
    device: str = "auto",
    resources: Resources | None = None,
    calibrated: Path | None = None,
    survey: Path | None = None,
    output: Path | None = None,
    models: Path | None = None,
    progress: Progress | None = None,
) -> Path:
    """Train one cell and write its runs; with `models`, keep its best final model there as well.

    `calibrated`, or `survey` of a method that asks people in turn, is the artifact where it is not in its usual place.
    """
    recipe = methods.method(method)
    mechanism = recipe.choose(mechanism)
    resources = resources or Resources()
    folder = graph_dir(data, dataset)
    graph = read_graph(folder)
    if not recipe.model:
        if models is not None:
            raise OptionError(f"method {method!r} learns nothing, so there is no model to save")
        if epsilon:
            raise OptionError(f"method {method!r} spends nothing: epsilon must be 0, got {epsilon}")
        target = output or runs_path(data, dataset, name or method, 0.0, params.train.task)
        if not resources.leads:
            return target
        meta = runs_meta(graph, folder, recipe, "none", 0.0, name or method, params)
        return write_runs(target, learn_majority(graph, params), meta)
    name = name or recipe.cell_name(mechanism)
    if recipe.asks_in_turn:
        check_classes(recipe, params.train)
    source = _source(recipe, dataset, mechanism, epsilon, data, calibrated, survey, name)
    remedy = f"make them again with `{perturb_command(dataset, mechanism, epsilon)}`, then `{source.make}`"
    check_nodes(source.path, source.meta, graph, f"ask again with `{source.make}`" if recipe.asks_in_turn else remedy)
    if "selection" in source.meta:
        check_selection(source.path, source.meta["selection"], params, _begin_of(recipe))
        if models is not None and source.meta["rounds"].get("reuse"):
            raise OptionError("a model of both rounds cannot be given reports of one; to keep it, leave reuse out")
        if models is not None and source.meta["rounds"].get("rectification", "inclusion") != "inclusion":
            raise OptionError(
                "a model keeps no printed rectification, so that reports given to it later would be other inputs; to "
                "keep it, leave rectification out"
            )
    stored: Stored | Answered
    if isinstance(source, SurveyFile):
        stored = Answered(graph=graph, file=source, params=params)
    else:
        # The artifact says which filters were meant; the search chooses among them.
        params = replace(params, search=replace(params.search, steps=tuple(source.meta["steps"])))
        stored = Stored(graph=graph, file=source, params=params)
    plan = plan_of(stored, params)
    if models is not None and recipe.learners:
        raise OptionError(
            f"method {method!r} chooses among {', '.join(recipe.learners)}; to keep a model, train one of them, or "
            "leave --save-model out"
        )
    if models is not None and stored.recipe.evidence:
        raise OptionError(
            f"method {method!r} learns from evidence that is made of the training labels or the whole graph, so its "
            "model cannot be given reports alone; leave --save-model out"
        )
    target = output or runs_path(data, dataset, name, epsilon, params.train.task)
    content = (file_hash(source.path), graph_hash(folder))
    mark = fingerprint(content, dataclasses.asdict(params), method, name, __version__)

    keeper = Keeper(resume_path(data, dataset, name, epsilon, params.train.task))
    start = time.perf_counter()
    result = learn_cell(
        graph,
        plan,
        params,
        device=device,
        resources=resources,
        checkpoint=taken_up(keeper, mark, resources),
        on_stop=keeper.save if resources.leads else None,
        fingerprint=mark,
        progress=progress,
    )
    if not resources.leads:
        return target
    meta = runs_meta(graph, folder, recipe, mechanism, epsilon, name, params, source.meta)
    meta |= {
        ("survey" if recipe.asks_in_turn else "calibrated"): content[0],
        **found_meta(plan, result, meta["search"]),
    }
    write_runs(target, result, meta)
    # Wall time belongs to a machine, not to the result: it stands beside the artifact, so that this stays reproducible.
    write_json(target.with_suffix(".time.json"), {"seconds": round(time.perf_counter() - start, 3), "device": device})
    if models is not None:
        assert isinstance(source, CalibratedFile)  # what is learned from a survey is refused above
        floor = floor_of(data, dataset, meta)
        save_model(models, graph, recipe, result, params, meta, source, floor)
    keeper.clear()
    return target


def _begin_of(recipe: methods.Method) -> str:
    """Return the first command that read training labels on the way to a method's runs."""
    return "ldp survey" if recipe.asks_in_turn else "ldp select"


def _source(
    recipe: methods.Method,
    dataset: str,
    mechanism: str,
    epsilon: float,
    data: Path,
    calibrated: Path | None,
    survey: Path | None,
    name: str,
) -> CalibratedFile | SurveyFile:
    """Return the artifact that the method learns from, once it is of what was asked for."""
    source: CalibratedFile | SurveyFile
    if recipe.asks_in_turn:
        if calibrated is not None:
            raise OptionError(f"method {recipe.name!r} learns from a survey: give it with --survey, not --calibrated")
        command = survey_command(dataset, recipe.name, mechanism, epsilon)
        source = SurveyFile(survey or survey_path(data, dataset, name, epsilon), command)
    else:
        if survey is not None:
            raise OptionError(f"method {recipe.name!r} asks nobody in turn: leave --survey out")
        command = denoise_command(dataset, recipe.name, mechanism, epsilon)
        source = CalibratedFile(calibrated or calibrated_path(data, dataset, name, epsilon), command)
    wanted = {"dataset": dataset, "method": recipe.name, "mechanism": mechanism, "epsilon": float(epsilon)}
    expect(source.meta, source.path, command, **wanted)
    return source


def runs_meta(
    graph: Graph,
    folder: Path,
    recipe: methods.Method,
    mechanism: str,
    epsilon: float,
    name: str,
    params: Params,
    reports: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return what a cell's runs say of themselves; `reports` is the metadata of what they were learned from."""
    meta = {
        "kind": "runs",
        "dataset": graph.name,
        "method": recipe.name,
        "mechanism": mechanism,
        "epsilon": float(epsilon),
        "arm": name,
        "model": (params.train.model or recipe.model) if recipe.model else "none",
        "task": params.train.task,
        "root": params.seed,
        "seeds": params.seeds,
        "search": {
            **dataclasses.asdict(params.search),
            "steps": recipe.steps(params.search.steps),
            "points": params.search.points if recipe.model else 0,
        },
        "train": dataclasses.asdict(params.train),
        "input": graph_hash(folder),
        "library": __version__,
    }
    target = measures_of(params.train.task).target
    given = Spend(what=target, epsilon=math.inf, per=_GIVERS, source=f"{target} of {meta['input']}") if target else None
    others = Ledger(spends=(given,) if given else ()).as_json()
    meta["ledger"] = others
    if reports is not None:
        meta |= {key: reports[key] for key in CARRIED if key != "ledger"}
        meta |= {key: reports[key] for key in ("rounds", "selection", "evidence") if key in reports}
        # The runs, what their search has chosen and what is kept of them come from these draws alone.
        used = report_seeds(params.seeds, params.search.seeds)
        meta["ledger"] = [*ledger_from_meta([reports]).of_seeds(used).as_json(), *others]
        claim = reports["claim"]
        meta["mechanism_claim"] = {
            "claimed": claim["epsilon"],
            "exact": reports["epsilon_exact"],
            "keeps": claim["keeps"],
            "text": claim["reason"],
        }
    return meta


def found_meta(plan: Plan, result: CellResult, search: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a cell's runs say of what was found: the chosen point, its model, and the trainer's notes."""
    assert result.setup is not None
    assert result.outcome is not None
    return {
        "model": result.setup.backbone.name,
        "chosen_point": result.chosen,
        "record": {**result.outcome.record, "search": list(result.records)},
        "search": {**search, **plan.facts(result.learners)},
    }


def write_runs(path: Path, result: CellResult, meta: Mapping[str, Any]) -> Path:
    """Write a cell's runs with their metadata, and return where."""
    schema = runs_schema(str(meta["task"]))
    columns = {field.name: [row[field.name] for row in result.rows] for field in schema}
    write_table(path, pa.table(columns, schema=schema), meta)
    return path


def taken_up(keeper: Keeper, mark: str, resources: Resources) -> Checkpoint | None:
    """Return the checkpoint to go on from, the first process's in all of them."""
    found = keeper.load(mark) if resources.leads else None
    if resources.team is None:
        return found
    data = resources.team.gather(b"" if found is None else found.to_bytes())[0]
    return Checkpoint.from_bytes(data) if data else None
