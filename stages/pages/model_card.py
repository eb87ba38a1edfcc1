"""The model card: what a person should know of a kept model before using it, in Markdown, from what is recorded."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from graphldp.client import from_meta
from graphldp.client.levels import Personalised
from graphldp.datasets.own import WITHOUT
from graphldp.experiment.options import INDUCTIVE, Further
from graphldp.graph import WITHOUT_LABELS, WITHOUT_LINKS
from graphldp.jsonable import plain
from graphldp.learn import TrainedModel
from graphldp.ledger import Ledger, epsilon_text, ledger_from_meta, number
from graphldp.measures import DEFAULT_TASK, Measure, measures_of
from graphldp.methods import Role, method, reference, role_of
from graphldp.stages.files.artifacts import read_meta, read_table
from graphldp.stages.files.graphs import read_graph_meta
from graphldp.stages.files.model_meta import ModelMeta
from graphldp.stages.files.paths import graph_dir, runs_path
from graphldp.stages.files.reports import SeedFile
from graphldp.stages.files.runs import RunsMeta, final_rows
from graphldp.stages.grids.params import Params
from graphldp.stages.pages.wording import counted, listed
from graphldp.tasks import TaskEntry

__all__ = ["Floor", "card_text", "floor_command", "floor_of"]

_FLOOR = reference(Role.FLOOR).name


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """What the floor's final runs score on the same splits: epsilon 0, nobody's features; by measure."""

    scores: Mapping[str, tuple[float, ...]]


def floor_of(data: Path, dataset: str, meta: Mapping[str, Any]) -> Floor | None:
    """Return the floor of such runs, if it stands in its usual place and was measured on the same splits."""
    runs = RunsMeta.of(meta)
    path = runs_path(data, dataset, _FLOOR, 0.0, runs.task, runs.cell.further)
    if not path.exists():
        return None
    found = read_meta(path, "ldp train")
    alike = ("root", "input", "train", "seeds", "task", "further")
    if found.get("method") != _FLOOR or any(found.get(key) != meta.get(key) for key in alike):
        return None
    searched = RunsMeta.of(found).search
    if any(searched.get(key) != runs.search.get(key) for key in ("points", "seeds", "strategy")):
        return None
    rows = final_rows(read_table(path, "ldp train").to_pylist())
    names = measures_of(runs.task).names
    return Floor(scores={name: tuple(float(row[f"test_{name}"]) for row in rows) for name in names})


def floor_command(data: Path, meta: Mapping[str, Any]) -> str:
    """Return the command that shows such runs' floor; empty where it is known, or stands in the tables.

    Tables are of public graphs. People whose features never were here cannot be asked again in memory.
    """
    runs = RunsMeta.of(meta)
    cell, dataset, further = runs.cell, runs.cell.dataset, runs.cell.further
    origin = read_graph_meta(graph_dir(data, dataset)).provenance
    if origin.get("dataset") != "own" or role_of(cell.method) in (Role.FLOOR, Role.GUESS):
        return ""
    if WITHOUT_LINKS in origin or WITHOUT_LABELS in origin:  # what was told beside features cannot be asked again
        return ""
    if floor_of(data, dataset, meta) is not None:
        return ""
    options = "" if runs.task == DEFAULT_TASK else f" --task {runs.task}"
    options += further.command()
    if WITHOUT in origin:
        return f"ldp train -d {quote(dataset)} -e 0 --method {_FLOOR}{options}"
    usual = cell.mechanism == method(cell.method).mechanism
    asked = cell.method if usual else f"{cell.method} --mechanism {cell.mechanism}"
    return f"ldp run -d {quote(dataset)} -e {epsilon_text(cell.epsilon)} --method {asked}{options}"


def card_text(
    kept: TrainedModel,
    source: SeedFile,
    meta: Mapping[str, Any],
    final: Sequence[Mapping[str, Any]],
    params: Params,
    floor: Floor | None,
) -> str:
    """Return the card of a model.

    `source` is what it was trained on, `meta` and `final` what its cell's runs say of themselves and the final ones.
    """
    made, runs = ModelMeta.of(kept.about), RunsMeta.of(meta)
    cell, task = runs.cell, measures_of(runs.task)
    title = f"# Model card: {cell.name} on {cell.dataset}, {task.title}"
    intro = f"A {kept.backbone.name} trained for {task.title} on locally private reports. {made.summary}"
    parts = [title, intro, "## What it is", _table(_facts(kept, made, runs, task))]
    parts += ["## Privacy", *_privacy(source, ledger_from_meta([meta]), task, cell.further)]
    parts += [task.disclosed] if task.disclosed else []
    parts += ["## How good it is", *_scores(made, runs, final, task.measures, floor)]
    parts += ["## What it is for", *_uses(task.predicts)]
    parts += ["## How to make it again", _commands(made, runs, params, drawn=source.says.reproducible)]
    return "\n\n".join(parts) + "\n"


def _table(rows: Sequence[tuple[str, str]]) -> str:
    return "\n".join(["| | |", "| --- | --- |", *(f"| {name} | {value.replace('|', '/')} |" for name, value in rows)])


def _facts(kept: TrainedModel, made: ModelMeta, runs: RunsMeta, task: TaskEntry) -> list[tuple[str, str]]:
    cell = runs.cell
    options, learned = (_listed(asdict(one)) for one in (kept.backbone, kept.task))  # type: ignore[call-overload]
    learned_from = counted(int(made.run[f"train_{task.parts}"]), task.parts.removesuffix("s"))
    inductive = made.split == INDUCTIVE
    apart = ", seen alone: the people of the other parts were in graphs without a link to them" * inductive
    chosen = _listed({key: value for key, value in made.chosen.items() if value not in ({}, None)})
    return [
        ("task", f"{task.title} ({learned})" if learned else task.title),
        ("data set", f"{cell.dataset}, `{runs.input}`"),
        ("method", cell.method),
        ("mechanism", f"{cell.mechanism}, {made.m} of {counted(kept.dimensions, 'feature')} of a person reported"),
        ("values", f"in the public range {made.low} to {made.high}"),
        ("filter", f"{made.filter_name}, depth K {made.chosen.get('steps', 0)}"),
        ("backbone", f"{kept.backbone.name} ({options})"),
        ("found by", f"{runs.tried}, by validation loss: {chosen}"),
        ("trained on", f"{learned_from}{apart}, with the reports of seed {made.seed}"),
        ("made by", f"graphldp {made.library}"),
    ]


def _listed(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in options.items())


def _privacy(source: SeedFile, ledger: Ledger, task: TaskEntry, further: Further) -> list[str]:
    claim, delta, exact = source.says.claim, source.says.delta, source.says.epsilon_exact
    rows = [
        ("claimed epsilon of one report", number(claim.epsilon)),
        ("exact epsilon of one report, from the mechanism's law", "infinite" if math.isinf(exact) else f"{exact:.6g}"),
        ("delta of one report", f"{delta:g}"),
        ("keeps its claim", "yes" if claim.keeps else f"**no**: {claim.reason}"),
    ]
    if further.private_labels:  # links are public here: a kept model predicts over a graph that is
        how = f"reported by `{further.labels}` at epsilon {number(further.epsilon_labels)}"
        rows.append(("labels, which are not public", how))
    rows.append(("spent in all", ledger.text()))
    levels = _levels(source.meta)
    if levels:
        rows.append(("a report's budget by the person's level" + " (not kept)" * (not claim.keeps), levels))
    known = task.known(further.facts())
    return [
        _table(rows),
        *_draws(ledger),
        "Everything behind the reports (calibration, training, this model, its predictions) spends nothing more. A new "
        "report of the same person does: its epsilon adds up.",
        f"Not protected: {listed([*known, 'who takes part'])}. What is known of somebody without a report on her "
        "features is the floor below.",
    ]


def _draws(ledger: Ledger) -> list[str]:
    """Return why a person has spent more than one report costs, where she has."""
    most = max((spend.times for spend in ledger.spends), default=1)
    if most == 1:
        return []
    return [
        f"**This model is made of {most} reports of each person**: its hyper-parameters were chosen on the search's "
        "draws, and it was kept as the best of the final runs, each of which has a draw of its own. So their budgets "
        "add up. A model of one collection (`ldp perturb --input FILE --secure`) spends one report: search and all "
        "runs share it."
    ]


def _levels(reports: Mapping[str, Any]) -> str:
    """Return the budget of each level, where people have levels."""
    device = from_meta(dict(reports))
    if not isinstance(device, Personalised):
        return ""
    return ", ".join(f"level {level}: {number(budget)}" for level, budget in enumerate(device.budgets, start=1))


def _scores(
    made: ModelMeta,
    runs: RunsMeta,
    final: Sequence[Mapping[str, Any]],
    measures: Sequence[Measure],
    floor: Floor | None,
) -> list[str]:
    lines = ["| measure | this run, validation | this run, test | all final runs, test | floor, test |"]
    lines.append("| --- | ---: | ---: | ---: | ---: |")
    for one in measures:
        every = [one.factor * float(row[f"test_{one.name}"]) for row in final]
        own = [one.number(one.factor * float(made.run[f"{part}_{one.name}"])) for part in ("validation", "test")]
        low = "not known" if floor is None else _spread([one.factor * value for value in floor.scores[one.name]], one)
        heading = one.label if one.best == "high" else f"{one.label} (less is better)"
        lines.append(f"| {heading} | {own[0]} | {own[1]} | {_spread(every, one)} | {low} |")
    further = runs.cell.further
    known = "the public graph" + " and the same labels" * further.private_labels
    text = (
        f"The floor is what is known without anybody's report on features (epsilon 0): the best of several learners of "
        f"{known}, searched alike, on the same splits. What a model is worth is what it adds to that."
    )
    if floor is None:
        what = f"--dataset {runs.cell.dataset} --method {_FLOOR} --mechanism null --epsilon 0 --task {runs.task}"
        what += further.command()
        text += (
            f" It was not there when this model was kept: `ldp train {what}` measures it, after `ldp perturb` and `ldp "
            "denoise` of the same."
        )
    return [
        "\n".join(lines),
        f"This run is the one of {len(final)} with the lowest validation loss. Means over runs, with their standard "
        "deviation.",
        text,
    ]


def _spread(values: Sequence[float], one: Measure) -> str:
    spread = f" ± {np.std(values, ddof=1):.{one.digits}f}" if len(values) > 1 else ""
    return f"{one.number(float(np.mean(values)))}{spread}"


def _uses(predicts: str) -> list[str]:
    return [
        f"`ldp predict` gives {predicts}, from reports of the same mechanism and the same features: of the people that "
        "it was trained on, or of another graph.",
        "- With few features reported, it knows its own people by their reports: others, and new reports of the same "
        "people, are predicted worse than the scores above say.\n"
        "- The scores are of one graph and its random splits; other graphs and times are other.\n"
        "- It must not decide about single people: a prediction is made of noise and of what neighbours are like.\n"
        "- What a prediction about a person takes from her links and from other people is not covered by her epsilon.",
    ]


def _graph_command(made: ModelMeta, dataset: str) -> str:
    """Return the command that made the graph: of a registered one with its options, or of somebody's own files."""
    origin = made.graph
    name = quote(dataset)
    if origin.get("dataset") == "own":
        files = " ".join(f"--{role} {quote(one['name'])}" for role, one in sorted(origin["files"].items()))
        count = f" --dimensions {origin['dimensions']}" if "dimensions" in origin else ""
        return f"ldp import {name} {files} --low {made.low:g} --high {made.high:g}{count}"
    source = str(origin.get("dataset", dataset))
    given = {key: value for key, value in sorted(origin.get("options", {}).items()) if value is not None}
    changes = [f"--set {quote(f'{key}={value}')}" for key, value in given.items()]
    return " ".join(["ldp download", source, *changes, *([f"--name {name}"] if source != dataset else [])])


def _commands(made: ModelMeta, runs: RunsMeta, params: Params, *, drawn: bool) -> str:
    cell = runs.cell
    dataset, reports = cell.dataset, f"--mechanism {cell.mechanism} --epsilon {epsilon_text(cell.epsilon)}"
    row = f"--dataset {dataset} --method {cell.method} {reports}"
    seeds = f"--seeds {params.seeds} --search-seeds {params.search.seeds} --seed {params.seed}"
    split = "" if params.train.split == "random" else f" --split {params.train.split}"
    options = [f"--{key.replace('_', '-')} {value}" for key, value in sorted(cell.options.items()) if key == "m"]
    asked = row if runs.rounds is not None else f"--dataset {dataset} {reports}"
    beside = cell.further.command()
    asked += "".join(f" --set {quote(f'method.{key}={value}')}" for key, value in (runs.rounds or {}).items())
    lines = [
        _graph_command(made, dataset),
        " ".join([f"ldp perturb {asked}{beside}", seeds, *options]),
        f"ldp denoise {row}{beside}",
        f"ldp train {row}{beside} --task {runs.task}{split} --seeds {params.seeds} --seed {params.seed} "
        "--save-model FOLDER",
    ]
    if not drawn:
        lines[1] = "# the reports came from people's devices, and are not drawn again"
    record = {"search": runs.search, "train": runs.train, "options": cell.options}
    return (
        "```sh\n" + "\n".join(lines) + "\n```\n\n"
        "with these `search` and `train` in `params.yaml`, and these options of the mechanism:\n\n"
        f"```json\n{json.dumps(plain(record), indent=2, sort_keys=True)}\n```"
    )
