"""`ldp run`: the whole chain in memory, for one cell."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphldp.cli import console
from graphldp.cli.options import (
    DATA,
    AsJson,
    BatchSize,
    Data,
    Dataset,
    Device,
    Epsilon,
    Eta,
    MaxMemory,
    Method,
    Processes,
    Rungs,
    Space,
    Split,
    Strategy,
    Task,
)
from graphldp.cli.processes import joined
from graphldp.cli.settings import Search, Settings, axes, mechanism_of, parse, parts
from graphldp.cli.train import ParamsFile, choose_params

if TYPE_CHECKING:
    from graphldp.stages.run import Outcome

__all__ = ["fetch", "register"]


def run(
    dataset: Dataset,
    epsilon: Epsilon,
    method: Method = "lpgnn",
    task: Task = None,
    split: Split = None,
    mechanism: Annotated[
        str | None, typer.Option("--mechanism", "-m", help="What is reported; the method's own if left out.")
    ] = None,
    seeds: Annotated[int | None, typer.Option("--seeds", help="Final runs.", min=2)] = None,
    search_points: Annotated[int | None, typer.Option(help="Points of the search.", min=1)] = None,
    search_seeds: Annotated[int | None, typer.Option(help="Seeds that each point is tried on.", min=1)] = None,
    search: Search = None,
    search_strategy: Strategy = None,
    search_space: Space = None,
    eta: Eta = None,
    rungs: Rungs = None,
    epochs: Annotated[int | None, typer.Option(help="Epochs at most.", min=1)] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="The root of all randomness.", min=0)] = None,
    model: Annotated[str | None, typer.Option("--model", help="The backbone; the method's own if left out.")] = None,
    settings: Settings = None,
    references: Annotated[
        bool, typer.Option("--references/--no-references", help="Also train the floor and the ceiling.")
    ] = True,
    device: Device = "auto",
    batch_size: BatchSize = None,
    max_memory: MaxMemory = None,
    processes: Processes = None,
    params: ParamsFile = Path("params.yaml"),
    data: Data = DATA,
    as_json: AsJson = False,
) -> None:
    """Perturb, denoise, search, train and score one cell in memory, and print it between its floor and its ceiling.

    The numbers are those that the pipeline would give for the same parameters; nothing is written but the graph, which
    is downloaded first where it is not there.
    """
    from graphldp.stages import run as stage
    from graphldp.stages.resources import Resources, memory_bytes

    with joined(processes, device) as team:
        chosen = choose_params(
            params, dataset, seeds=seeds, seed=seed, search_points=search_points, search_seeds=search_seeds,
            search_strategy=search_strategy, search_space=search_space, search_eta=eta, search_rungs=rungs,
            search=axes(search),
            epochs=epochs, batch_size=batch_size, model=model, task=task, split=split,
        )  # fmt: skip
        resources = Resources(max_memory=memory_bytes(max_memory), team=team, scratch=data, note=console.note)
        if resources.leads:
            fetch(dataset, data)
        resources.meet()
        options, changes = parts(parse(settings))
        mechanism = mechanism_of(options, mechanism)
        with console.progress(f"run {dataset} {method}", None, "epochs") as bar:
            rows = stage.run(
                dataset, method, mechanism, epsilon, data=data, params=chosen, device=device, resources=resources,
                options=options, changes=changes, references=references, progress=bar,
            )  # fmt: skip
        if resources.leads:
            _show(rows, dataset, chosen, as_json=as_json)


def fetch(dataset: str, data: Path) -> None:
    """Download a data set, unless it is there."""
    from graphldp.stages.download import download
    from graphldp.stages.paths import graph_dir

    if graph_dir(data, dataset).exists():
        return
    with console.progress(f"download {dataset}", None, "bytes") as bar:
        download(dataset, data, progress=bar)


def _show(rows: list[Outcome], dataset: str, params: Any, *, as_json: bool) -> None:
    import json

    from graphldp.evaluation import Bootstrap
    from graphldp.measures import measures_of
    from graphldp.stages.artifacts import plain
    from graphldp.stages.evaluate import measured

    measures = measures_of(params.train.task)
    headline = measures.headline
    rule = Bootstrap(resamples=params.evaluate.resamples, confidence=params.evaluate.confidence, seed=params.seed)
    floor = next((row for row in rows if row.name == "structure"), None)
    found = []
    for row in rows:
        below = None if floor is None or row.name in ("majority", "structure") else floor.scores
        one = measured(row.scores, below, None, measures, rule, dataset, row.name, row.epsilon)
        found.append((row, one.score, one.gain))
    if as_json:
        facts = [
            {
                "dataset": dataset, "name": row.name, "mechanism": row.mechanism, "epsilon": row.epsilon, "m": row.m,
                "task": params.train.task, "chosen": row.chosen, headline.name: mean.mean,
                "low": mean.low, "high": mean.high,
                "gain": None if gain is None else {"mean": gain.mean, "low": gain.low, "high": gain.high},
                "runs": row.headline.tolist(), "search": dict(row.search),
                "measures": {name: values.tolist() for name, values in row.scores.items()},
            }
            for row, mean, gain in found
        ]  # fmt: skip
        console.out.print_json(json.dumps(plain(facts)))
        return
    _table(found, dataset, params)


def _table(found: list[Any], dataset: str, params: Any) -> None:
    from rich.table import Table

    from graphldp.measures import measures_of
    from graphldp.stages.paths import epsilon_text

    task = measures_of(params.train.task)
    one = task.headline
    show, change = f"{{:.{one.digits}f}}".format, f"{{:+.{one.digits}f}}".format
    percent = f"{100 * params.evaluate.confidence:g} %"
    table = Table(title=f"{dataset}: test {one.heading}", title_justify="left", box=None, pad_edge=False)
    table.add_column("method")
    for name in ("epsilon", "m", "K", one.label, f"{percent} interval", "gain over structure"):
        table.add_column(name, justify="right")
    for row, mean, gain in found:
        table.add_row(
            row.name,
            epsilon_text(row.epsilon),
            "" if row.m is None else str(row.m),
            str(row.chosen.get("steps", "")),
            show(mean.mean),
            f"{show(mean.low)} to {show(mean.high)}" if mean.known else "",
            "" if gain is None else change(gain.mean) + f" ({change(gain.low)} to {change(gain.high)})" * gain.known,
        )
    console.out.print(table)
    for row, *_ in found:
        if row.chosen.get("options"):
            chosen = ", ".join(f"{key} {value}" for key, value in row.chosen["options"].items())
            console.note(f"{row.name} chose {chosen}")
        if row.search.get("left_out"):
            console.note(f"{row.name} has no {', '.join(row.search['left_out'])}: searched without")
    searched = next(row.search for row, *_ in found if row.search)
    console.note(
        f"{params.seeds} runs each; {searched['points']} points searched on {params.search.seeds} other seeds"
        f"{_unusual(searched)}; the budget is of one person's features; {task.public} are public"
    )


def _unusual(search: Mapping[str, Any]) -> str:
    from graphldp.stages.spoken import spoken

    words = spoken(search)
    return f" ({words})" if words else ""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run")(run)
