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
    EpsilonLabels,
    EpsilonLinks,
    Eta,
    Labels,
    LinkOption,
    Links,
    MaxMemory,
    Method,
    PairedSeeds,
    Processes,
    ProtocolName,
    Rungs,
    Space,
    Split,
    Strategy,
    Task,
)
from graphldp.cli.processes import joined, machine
from graphldp.cli.settings import Search, Settings, axes, further_of, mechanism_of, parse, parts
from graphldp.cli.train import ParamsFile, asked_under, choose_params
from graphldp.errors import OptionError

if TYPE_CHECKING:
    from graphldp.experiment.running import RunResult
    from graphldp.stages.params import Params

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
    seeds: PairedSeeds = None,
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
    labels: Labels = None,
    epsilon_labels: EpsilonLabels = None,
    protocol: ProtocolName = None,
    links: Links = None,
    epsilon_links: EpsilonLinks = None,
    link_option: LinkOption = None,
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
    is downloaded first where it is not there, and what the floor's learners have come to, for the next time.
    """
    from graphldp import methods
    from graphldp.evaluation import Confidence
    from graphldp.experiment.running import run_rows
    from graphldp.experiment.told import told_of
    from graphldp.stages.graphs import read_graph
    from graphldp.stages.paths import graph_dir

    with joined(processes, device) as team:
        options, changes = parts(parse(settings))
        mechanism = mechanism_of(options, mechanism)
        under, axes_of = asked_under(protocol, method, mechanism, options, changes, axes(search))
        chosen = choose_params(
            params, dataset, seeds=seeds, seed=seed, search_points=search_points, search_seeds=search_seeds,
            search_strategy=search_strategy, search_space=search_space, search_eta=eta, search_rungs=rungs,
            search=axes_of, protocol=under,
            epochs=epochs, batch_size=batch_size, model=model, task=task, split=split,
            further=further_of(
                link_option, labels=labels, epsilon_labels=epsilon_labels, links=links, epsilon_links=epsilon_links
            ),
        )  # fmt: skip
        resources = machine(max_memory, team, data)
        if resources.leads:
            fetch(dataset, data)
        resources.meet()
        recipe = methods.method(method).but(changes)
        if recipe.mechanisms == ("null",) and epsilon != 0:
            raise OptionError(f"method {method!r} asks nobody for anything and spends nothing: say --epsilon 0")
        graph = read_graph(graph_dir(data, dataset))
        with console.progress(f"run {dataset} {method}", None, "epochs") as bar:
            found = run_rows(
                graph, recipe, recipe.choose(mechanism), epsilon, chosen, device=device,
                resources=resources, options=options, references=references, progress=bar,
                confidence=Confidence(level=chosen.evaluate.confidence),
                say=console.note if resources.leads else None,
            )  # fmt: skip
        if resources.leads:
            _show(found, chosen, as_json=as_json)
            estimated = told_of(graph, chosen, recipe).found()
            if estimated:
                console.note(estimated)


def fetch(dataset: str, data: Path) -> None:
    """Download a data set, unless it is there."""
    from graphldp.stages.download import download
    from graphldp.stages.paths import graph_dir

    if graph_dir(data, dataset).exists():
        return
    with console.progress(f"download {dataset}", None, "bytes") as bar:
        download(dataset, data, progress=bar)


def _show(found: RunResult, params: Params, *, as_json: bool) -> None:
    import json

    if as_json:
        console.out.print_json(json.dumps(found.to_dicts()))
        return
    _table(found, params)


def _table(found: RunResult, params: Params) -> None:
    from rich.table import Table

    from graphldp.evaluation import FEW
    from graphldp.experiment.parts import few_tested
    from graphldp.ledger import epsilon_text
    from graphldp.measures import measures_of

    task = measures_of(params.train.task)
    one = task.headline
    show, change = f"{{:.{one.digits}f}}".format, f"{{:+.{one.digits}f}}".format
    percent = f"{100 * params.evaluate.confidence:g} %"
    table = Table(title=f"{found.graph.name}: test {one.heading}", title_justify="left", box=None, pad_edge=False)
    table.add_column("method")
    for name in ("epsilon", "m", "K", one.label, f"{percent} interval", "gain over structure"):
        table.add_column(name, justify="right")
    for row in found.rows:
        mean, gain = row.score, row.gain
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
    for row in found.rows:
        if row.chosen.get("options"):
            chosen = ", ".join(f"{key} {value}" for key, value in row.chosen["options"].items())
            console.note(f"{row.name} chose {chosen}")
        if row.search.get("left_out"):
            console.note(f"{row.name} has no {', '.join(row.search['left_out'])}: searched without")
    few = few_tested(found.graph, params)
    if few:
        console.note(f"warning: {few}")
    if params.seeds < FEW:
        console.note(f"warning: {params.seeds} runs each: from {FEW} on an interval says which method is better")
    searched = next(row.search for row in found.rows if row.search)
    console.note(
        f"{params.seeds} runs each; {_many(searched['points'], 'point')} searched on "
        f"{_many(params.search.seeds, 'other seed')}"
        f"{_unusual(searched)}; the budget is of one person's features; "
        + (f"{task.public} are public" if not params.further.asked else f"in all {found.row.spent.text()}")
    )
    if params.further.asked:
        facts = params.further.facts()
        told = ", ".join(f"{name} {value}" for name, value in facts.items() if name != "link_options")
        console.note(f"{told}: in every row but the ceiling, which has what is true; no true label chooses anything")


def _many(count: int, what: str) -> str:
    """Return '1 point' or '4 points'."""
    return f"{count} {what}{'s' * (count != 1)}"


def _unusual(search: Mapping[str, Any]) -> str:
    from graphldp.stages.spoken import spoken

    words = spoken(search)
    return f" ({words})" if words else ""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run")(run)
