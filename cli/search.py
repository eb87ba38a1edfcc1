"""`ldp search`: the search alone, every trial of it written down."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

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
    ParquetOut,
    Processes,
    ProtocolName,
    Rungs,
    Space,
    Split,
    Strategy,
    Task,
)
from graphldp.cli.processes import joined, machine
from graphldp.cli.run import fetch
from graphldp.cli.settings import Search, Settings, axes, further_of, mechanism_of, parse, parts
from graphldp.cli.train import ParamsFile, asked_under, choose_params

__all__ = ["register"]

_MOST = 20  # trials that are printed unless more are asked for


def search(
    dataset: Dataset,
    epsilon: Epsilon,
    method: Method = "lpgnn",
    task: Task = None,
    split: Split = None,
    mechanism: Annotated[
        str | None, typer.Option("--mechanism", "-m", help="What is reported; the method's own if left out.")
    ] = None,
    search: Search = None,
    strategy: Strategy = None,
    space: Space = None,
    points: Annotated[int | None, typer.Option("--search-points", help="Points of the search.", min=1)] = None,
    seeds: Annotated[
        int | None, typer.Option("--search-seeds", help="Seeds that each point is tried on.", min=1)
    ] = None,
    eta: Eta = None,
    rungs: Rungs = None,
    finals: Annotated[
        int | None,
        typer.Option("--seeds", help="Final runs, where a method chooses among learners by them.", min=1),
    ] = None,
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
    device: Device = "auto",
    batch_size: BatchSize = None,
    max_memory: MaxMemory = None,
    processes: Processes = None,
    show: Annotated[int, typer.Option("--show", help="How many trials are printed; 0 prints all.", min=0)] = _MOST,
    params: ParamsFile = Path("params.yaml"),
    data: Data = DATA,
    output: ParquetOut = None,
    as_json: AsJson = False,
) -> None:
    """Perturb, denoise and search one cell in memory, write every trial, and print them, the best first.

    No test label is opened. A method that chooses among learners compares those of its finalists on the validation
    part of the final seeds, too. Ctrl-C keeps what was reached; the same command goes on from there. `ldp run` with the
    same options chooses the same point.
    """
    from graphldp.stages import trials as stage

    with joined(processes, device) as team:
        options, changes = parts(parse(settings))
        mechanism = mechanism_of(options, mechanism)
        under, axes_of = asked_under(protocol, method, mechanism, options, changes, axes(search))
        chosen = choose_params(
            params, dataset, seed=seed, search_points=points, search_seeds=seeds, search_strategy=strategy,
            search_space=space, search_eta=eta, search_rungs=rungs, search=axes_of, protocol=under, epochs=epochs,
            model=model, task=task, split=split, seeds=finals, batch_size=batch_size,
            further=further_of(
                link_option, labels=labels, epsilon_labels=epsilon_labels, links=links, epsilon_links=epsilon_links
            ),
        )  # fmt: skip
        resources = machine(max_memory, team, data)
        if resources.leads:
            fetch(dataset, data)
        resources.meet()
        with console.progress(f"search {dataset} {method}", None, "epochs") as bar:
            path = stage.search(
                dataset, method, mechanism, epsilon, data=data, params=chosen, device=device, resources=resources,
                options=options, changes=changes, output=output, progress=bar,
            )  # fmt: skip
        if resources.leads:
            _show(path, show, as_json=as_json)


def _show(path: Path, most: int, *, as_json: bool) -> None:
    import json

    from rich.table import Table

    from graphldp.jsonable import plain
    from graphldp.stages.artifacts import read_meta
    from graphldp.stages.spoken import spoken
    from graphldp.stages.trials import ranking

    found, meta = ranking(path), read_meta(path, "ldp search")
    if as_json:
        console.out.print_json(json.dumps(plain({**meta, "path": str(path), "trials": found})))
        return
    facts = meta["search"]
    names = list(dict.fromkeys(name for trial in found for name in trial if name != "point"))
    # A value that all trials have says nothing about which is best.
    shown = [name for name in names if len({json.dumps(trial.get(name)) for trial in found}) > 1]
    title = f"{meta['dataset']}: {meta['arm']} at epsilon {meta['epsilon']}, trials by mean validation loss"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in shown:
        table.add_column({"steps": "K"}.get(name, name.replace("_", " ")), justify="right")
    for trial in found[: most or None]:
        table.add_row(*(_text(trial.get(name)) for name in shown))
    console.out.print(table)
    words = spoken(facts)
    learner = meta["chosen_point"].get("options", {}).get("learner")
    rest = len(found) - min(len(found), most or len(found))
    console.note(
        f"{path}: {facts['points']} points on {facts['seeds']} seeds{f' ({words})' if words else ''}"
        + (f"; of the learners' best points, {learner}'s was chosen on {meta['seeds']} final seeds" if learner else "")
        + (f"; {rest} more trials are not shown" if rest else "")
        + (f"; without {', '.join(facts['left_out'])}, which {meta['arm']} has not" if "left_out" in facts else "")
    )


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("search")(search)
