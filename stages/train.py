"""Stage train: Calibrated, or answers as they are, in, Runs out; a model to keep where one is asked for."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from graphldp import methods
from graphldp.errors import ArtifactError, OptionError
from graphldp.experiment.cell import learn_majority
from graphldp.experiment.conversation import check_classes
from graphldp.experiment.plan import plan_of
from graphldp.experiment.resources import Resources
from graphldp.experiment.server_view import as_answered
from graphldp.graph import WITHOUT_LABELS
from graphldp.ledger import epsilon_text
from graphldp.progress import Progress
from graphldp.stages.denoise import make_command as denoise_command
from graphldp.stages.files.answers import (
    AnswersFile,
    check_further,
    check_selection,
    draws_in,
    open_answers,
    with_draws,
)
from graphldp.stages.files.answers import make_command as ask_command
from graphldp.stages.files.artifacts import expect, file_hash, is_real, write_json
from graphldp.stages.files.belong import asked_for, check_graph
from graphldp.stages.files.cell_sources import Answered, StoredEstimates
from graphldp.stages.files.cells import Cells, not_lost
from graphldp.stages.files.graphs import graph_hash, read_graph
from graphldp.stages.files.models import save_model
from graphldp.stages.files.paths import calibrated_path, graph_dir, runs_path
from graphldp.stages.files.reports import CalibratedFile
from graphldp.stages.files.runs import found_meta, placed, runs_meta, write_runs
from graphldp.stages.grids.cell import Cell
from graphldp.stages.grids.params import Params
from graphldp.stages.pages.model_card import floor_of

__all__ = ["make_command", "train"]


def make_command(dataset: str, method: str, mechanism: str, epsilon: float) -> str:
    """Return the command that makes a Runs artifact."""
    return f"ldp train --dataset {dataset} --method {method} --mechanism {mechanism} --epsilon {epsilon_text(epsilon)}"


def train(
    cell: Cell,
    *,
    data: Path,
    params: Params,
    device: str = "auto",
    resources: Resources | None = None,
    calibrated: Path | None = None,
    answers: Path | None = None,
    output: Path | None = None,
    models: Path | None = None,
    progress: Progress | None = None,
) -> Path:
    """Train one cell and write its runs; with `models`, keep its best final model there as well.

    What was asked of people with which options, the artifact says, and not the cell.
    `calibrated`, or `answers` of a method that learns from these as they are, is the artifact where it is not in its
    usual place.
    """
    dataset, method, epsilon, name = cell.dataset, cell.method, cell.epsilon, cell.name
    recipe, mechanism = methods.method(method), cell.whole().mechanism
    resources = resources or Resources()
    folder = graph_dir(data, dataset)
    graph = read_graph(folder, features=False)
    if not recipe.model:
        if models is not None:
            raise OptionError(f"method {method!r} learns nothing, so there is no model to save")
        if epsilon:
            raise OptionError(f"method {method!r} spends nothing: epsilon must be 0, got {epsilon}")
        target = output or runs_path(data, dataset, name or method, 0.0, params.train.task, params.further)
        if not resources.leads:
            return target
        meta = runs_meta(graph, folder, recipe, "none", 0.0, name or method, params)
        meta |= placed(params.further)
        return write_runs(target, learn_majority(graph, params), meta)
    name = name or recipe.cell_name(mechanism)
    check_classes(recipe, params.train)
    asked = replace(cell, mechanism=mechanism, name=name, further=params.further)
    source, beside = _source(asked, data, calibrated, answers)
    asking = ask_command(dataset, recipe, mechanism, epsilon, params.further)
    remedy = f"make them again with `{with_draws(asking, source.meta, params)}`"
    remedy += f", then `{source.make}`" if recipe.calibrates else ""
    check_graph(source.path, source.meta, graph, data, remedy)
    _check_seeds(source, params, remedy)
    if "selection" in source.meta:
        check_selection(source.path, source.meta["selection"], params)
    estimated: dict[str, str] = {}
    if WITHOUT_LABELS in graph.provenance and params.further.private_labels:
        sent = source if isinstance(source, AnswersFile) else beside
        assert sent is not None
        graph = as_answered(graph, sent.further_questions(0))
        estimated = {"test": "estimated from the labels that were sent"}
    stored: StoredEstimates | Answered
    if isinstance(source, AnswersFile):
        stored = Answered(graph=graph, file=source, params=params)
    else:
        # The artifact says which filters were meant; the search chooses among them.
        params = replace(params, search=replace(params.search, steps=tuple(source.meta["steps"])))
        stored = StoredEstimates(graph=graph, file=source, params=params, answers=beside)
    plan = plan_of(stored, params)
    if models is not None and recipe.learners:
        raise OptionError(
            f"method {method!r} chooses among {', '.join(recipe.learners)}; to keep a model, train one of them, or "
            "leave --save-model out"
        )
    if models is not None and params.further.private_links:
        raise OptionError(
            "a kept model predicts over a public graph, and links are private here; leave --save-model out"
        )
    if models is not None and stored.recipe.evidence:
        raise OptionError(
            f"method {method!r} learns from evidence that is made of the training labels or the whole graph, so its "
            "model cannot be given reports alone; leave --save-model out"
        )
    target = output or runs_path(data, dataset, name, epsilon, params.train.task, params.further)
    start = time.perf_counter()
    result = Cells(data).learn(
        graph,
        plan,
        params,
        graph_hash(folder),
        device=device,
        resources=resources,
        progress=progress,
        whole=models is not None,
    )
    if not resources.leads:
        return target
    meta = runs_meta(graph, folder, recipe, mechanism, epsilon, name, params, source.meta)
    meta |= {
        ("calibrated" if recipe.calibrates else "answers"): file_hash(source.path),
        **found_meta(plan, result, meta["search"]),
        **placed(params.further),
        **estimated,
    }
    with not_lost(data):
        write_runs(target, result, meta)
        # Wall time belongs to a machine, not to the result: it stands beside the artifact, so that this stays the same.
        seconds = round(time.perf_counter() - start, 3)
        write_json(target.with_suffix(".time.json"), {"seconds": seconds, "device": device})
        if models is not None:
            assert isinstance(source, CalibratedFile)  # who learns from answers as they are has evidence: refused above
            floor = floor_of(data, dataset, meta)
            save_model(models, graph, recipe, result, params, meta, source, floor)
    return target


def _check_seeds(source: CalibratedFile | AnswersFile, params: Params, remedy: str) -> None:
    """Refuse an artifact that lacks draws, and name at once how many of each kind are needed."""
    meta = source.meta
    if meta["deterministic"] or is_real(meta) or set(params.draws) <= set(meta["seeds"]):
        return  # one draw serves every run
    finals, searches = draws_in(meta)
    raise ArtifactError(
        f"{source.path} lacks draws: it has {finals} for final runs and {searches} for the search, where "
        f"{params.seeds} and {params.search.seeds} are needed; {remedy}"
    )


def _source(
    cell: Cell, data: Path, calibrated: Path | None, answers: Path | None
) -> tuple[CalibratedFile | AnswersFile, AnswersFile | None]:
    """Return the artifact that the method learns from, once it is of what was asked for.

    Where people were asked for more than features, the answers that it was made of are the second one.
    """
    recipe, further = methods.method(cell.method), cell.further
    dataset, mechanism, epsilon, name = cell.dataset, cell.mechanism, cell.epsilon, cell.name
    if not recipe.calibrates:
        if calibrated is not None:
            raise OptionError(
                f"method {recipe.name!r} learns from answers as they are: give them with --answers, not --calibrated"
            )
        return open_answers(dataset, recipe, mechanism, epsilon, data, answers, name, further), None
    if answers is not None and not further.asked:
        raise OptionError(
            f"method {recipe.name!r} learns from calibrated answers: give `ldp denoise` the answers with --reports, "
            "and leave --answers out here"
        )
    command = denoise_command(dataset, recipe.name, mechanism, epsilon, further)
    source = CalibratedFile(calibrated or calibrated_path(data, dataset, name, epsilon, further), command)
    check_further(source.path, source.meta, further)
    wanted = {"dataset": dataset, "method": recipe.name, "mechanism": mechanism, "epsilon": float(epsilon)}
    expect(source.meta, source.path, command, method=recipe.name)
    if calibrated is not None or is_real(source.meta):
        asked_for(source.meta, source.path, wanted)
    expect(source.meta, source.path, command, **wanted)
    if not further.asked:
        return source, None
    beside = open_answers(dataset, recipe, mechanism, epsilon, data, answers, name, further)
    if file_hash(beside.path) != source.meta["reports"]:
        raise ArtifactError(f"{source.path} was not made of {beside.path}; make it again with `{command}`")
    return source, beside
