"""`ldp train`: calibrated estimates in, runs out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphldp.cli import console
from graphldp.cli.grid import Grid, alone, grid_of, show
from graphldp.cli.options import (
    DATA,
    AsJson,
    BatchSize,
    Data,
    Dataset,
    Device,
    EpsilonLabels,
    EpsilonLinks,
    Eta,
    Jobs,
    Labels,
    LinkOption,
    Links,
    MaxMemory,
    Method,
    ParquetOut,
    Processes,
    Rungs,
    Seeds,
    Space,
    Split,
    Strategy,
    Task,
    workers,
)
from graphldp.cli.processes import joined, machine
from graphldp.cli.settings import TRAIN_OPTIONS, Search, axes, further_of
from graphldp.errors import OptionError

if TYPE_CHECKING:
    from graphldp.experiment.options import Further

__all__ = ["ParamsFile", "asked_under", "choose_params", "register"]

ParamsFile = Annotated[
    Path, typer.Option("--params", help="Where search, seeds and training options stand; defaults if there is none.")
]
_PARAMS = Path("params.yaml")
_COMMON = ("learning_rate", "weight_decay", "dropout", "steps")  # the axes of every search


def choose_params(
    file: Path,
    dataset: str,
    *,
    search: Mapping[str, Any] | None = None,
    further: Further | None = None,
    protocol: Any = None,
    **changes: int | str | None,
) -> Any:
    """Return the parameters of the file, or the defaults where the usual file is not there, with the given changes.

    A change is named by its place: `seeds`, `seed`, `search_points`, `search_seeds`, `model`, `epochs`, `hidden`,
    `patience`, `batch_size`, `task`, `split`, and so on. `search` has the values of axes of the search by name,
    `further` is what people are asked for beside features. `protocol` is a paper's, over which the changes count.
    """
    import dataclasses

    from graphldp.stages.params import Params, check_numbers, load_settings, with_axes

    if file != _PARAMS and not file.exists():
        raise OptionError(f"{file} does not exist; leave --params out for the defaults")
    params = load_settings(file) if file.exists() else Params()
    if protocol is not None:
        params = protocol.settings(params)
    given: dict[str, Any] = {key: value for key, value in changes.items() if value is not None}
    searched = [key for key in given if key.startswith("search_")]
    searching: dict[str, Any] = {key.removeprefix("search_"): given.pop(key) for key in searched}
    train: dict[str, Any] = {key: given.pop(key) for key in list(given) if key in TRAIN_OPTIONS}
    out = dataclasses.replace(
        params,
        datasets=(dataset,),
        search=with_axes(dataclasses.replace(params.search, **searching), search or {}),
        train=dataclasses.replace(params.train, **train),
        further=further or params.further,
        **given,
    )
    check_numbers(out)
    return out


def asked_under(
    name: str | None,
    method: str,
    mechanism: str | None,
    options: dict[str, Any],
    changes: dict[str, Any],
    searched: dict[str, list[Any]],
) -> tuple[Any, dict[str, list[Any]]]:
    """Return a paper's protocol and the axes to search under it; add to the options and changes what it asks for.

    What is given already stays as it is.
    """
    if name is None:
        return None, searched
    from graphldp import methods
    from graphldp.methods import PREFIX
    from graphldp.stages.params import RowParams
    from graphldp.stages.protocols import protocol

    found = protocol(name, Path("papers"))
    row = found.row(
        RowParams(
            method=method,
            mechanism=methods.method(method).choose(mechanism),
            options=options,
            set={PREFIX + key: value for key, value in changes.items()},
            search={"options": {key: values for key, values in searched.items() if key not in _COMMON}},
        )
    )
    options |= row.options
    changes |= row.changes
    return found, {**{key: list(values) for key, values in row.search.get("options", {}).items()}, **searched}


def train(
    ctx: typer.Context,
    dataset: Dataset,
    method: Method = "lpgnn",
    mechanism: Annotated[
        str | None, typer.Option("--mechanism", "-m", help="What was reported; the method's own if left out.")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", "-e", help="The budget of the reports. Left out for method majority.")
    ] = None,
    task: Task = None,
    split: Split = None,
    seeds: Seeds = None,
    search_points: Annotated[int | None, typer.Option(help="Points of the search.", min=1)] = None,
    search_seeds: Annotated[int | None, typer.Option(help="Seeds that each point is tried on.", min=1)] = None,
    search: Search = None,
    search_strategy: Strategy = None,
    search_space: Space = None,
    eta: Eta = None,
    rungs: Rungs = None,
    epochs: Annotated[int | None, typer.Option(help="Epochs at most.", min=1)] = None,
    model: Annotated[str | None, typer.Option("--model", help="The backbone; the method's own if left out.")] = None,
    hidden: Annotated[int | None, typer.Option(help="Width of the hidden layer.", min=1)] = None,
    patience: Annotated[int | None, typer.Option(help="Epochs without improvement until a run stops.", min=1)] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="The root of all randomness of an experiment.", min=0)
    ] = None,
    labels: Labels = None,
    epsilon_labels: EpsilonLabels = None,
    links: Links = None,
    epsilon_links: EpsilonLinks = None,
    link_option: LinkOption = None,
    device: Device = "auto",
    batch_size: BatchSize = None,
    max_memory: MaxMemory = None,
    processes: Processes = None,
    params: ParamsFile = _PARAMS,
    name: Annotated[
        str | None, typer.Option(help="The row's name in tables; method and mechanism if left out.")
    ] = None,
    calibrated: Annotated[
        Path | None, typer.Option("--calibrated", help="The Calibrated artifact, where it is not in its usual place.")
    ] = None,
    answers: Annotated[
        Path | None,
        typer.Option(
            "--answers",
            help="With a method that learns from answers as they are, or with --labels: what `ldp perturb` wrote, "
            "likewise.",
        ),
    ] = None,
    save_model: Annotated[
        Path | None,
        typer.Option("--save-model", help="Also keep the best final model in this folder.", file_okay=False),
    ] = None,
    grid: Grid = None,
    jobs: Jobs = None,
    data: Data = DATA,
    output: ParquetOut = None,
    as_json: AsJson = False,
) -> None:
    """Search, choose by validation loss, train the final runs, and write what became of every one.

    All runs of a phase are one batched model. Ctrl-C keeps what was reached; the same command goes on from there.
    """
    from graphldp import methods
    from graphldp.experiment.options import SearchParams
    from graphldp.experiment.space import Row, check_axes
    from graphldp.stages import train as stage
    from graphldp.stages.params import with_axes

    if grid is not None:
        from graphldp.stages.grid import train_grid

        alone(ctx, ("device", "jobs"))
        rows, graph = grid_of(grid, dataset)
        with console.progress(f"train {graph}", None, "steps") as bar:
            made = train_grid(rows, graph, data, device=device, jobs=workers(jobs), progress=bar)
        show(made, as_json=as_json)
        return
    if jobs is not None:
        raise OptionError("--jobs goes with --grid: one cell is shared by --processes")
    with joined(processes, device) as team:
        if epsilon is None:
            if methods.method(method).model:
                raise OptionError(f"method {method!r} needs --epsilon: the budget of the reports that it learns from")
            epsilon = 0.0
        chosen = choose_params(
            params, dataset, seeds=seeds, seed=seed, search_points=search_points, search_seeds=search_seeds,
            search_strategy=search_strategy, search_space=search_space, search_eta=eta, search_rungs=rungs,
            search=axes(search),
            epochs=epochs, hidden=hidden, patience=patience, batch_size=batch_size, model=model, task=task,
            split=split, further=further_of(
                link_option, labels=labels, epsilon_labels=epsilon_labels, links=links, epsilon_links=epsilon_links
            ),
        )  # fmt: skip
        recipe = methods.method(method)
        if search and recipe.model:
            # The file's axes may be other rows'; what was asked for here is this row's, or a slip.
            drop = chosen.further.private_labels
            row = Row(recipe=recipe, mechanism=recipe.choose(mechanism), model=chosen.train.model, drop=drop)
            check_axes(with_axes(SearchParams(), axes(search)), [row])
        resources = machine(max_memory, team, data)
        with console.progress(f"train {dataset} {method}", None, "epochs") as bar:
            path = stage.train(
                dataset, method, mechanism, epsilon, data=data, params=chosen, name=name, device=device,
                resources=resources, calibrated=calibrated, answers=answers, output=output, models=save_model,
                progress=bar,
            )  # fmt: skip
        if resources.leads:
            _show(path, save_model, as_json=as_json)


def _show(path: Path, model: Path | None, *, as_json: bool) -> None:
    import json

    import numpy as np

    from graphldp.experiment.parts import FEW_TESTED
    from graphldp.measures import measures_of
    from graphldp.stages.artifacts import read_meta, read_table

    meta = read_meta(path, "ldp train")
    rows = [row for row in read_table(path, "ldp train").to_pylist() if row["role"] == "final"]
    measures = measures_of(meta["task"])
    scores = {one.name: [row[f"test_{one.name}"] for row in rows] for one in measures.measures}
    if as_json:
        places = {"path": str(path), "saved_model": None if model is None else str(model)}
        console.out.print_json(
            json.dumps({**meta, **places, **{f"test_{name}": values for name, values in scores.items()}})
        )
        return
    one = measures.headline
    shown = one.factor * np.array(scores[one.name])
    spread = f" (std {np.std(shown, ddof=1):.{one.digits}f})" if len(rows) > 1 else ""
    unit = f" {one.unit}" if one.unit else ""
    console.out.print(
        f"{path}: {meta['arm']} at epsilon {meta['epsilon']}: test {one.label} "
        f"{np.mean(shown):.{one.digits}f}{unit}{spread}, {len(rows)} run{'s' * (len(rows) != 1)}",
        soft_wrap=True,
    )
    tested = [row[f"test_{measures.parts}"] for row in rows]
    if meta["task"] != "link-prediction" and tested and max(tested) < FEW_TESTED:
        console.note(f"warning: {max(tested)} test nodes in each run: too few to tell methods apart; label more nodes")
    if model is not None:
        console.out.print(f"{model}: the best final model, for `ldp predict`", soft_wrap=True)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("train")(train)
