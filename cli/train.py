"""`ldp train`: calibrated estimates in, runs out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphldp.cli import console
from graphldp.cli.cell import CellOptions
from graphldp.cli.command import classes
from graphldp.cli.grid import Grid, alone, grid_of, show
from graphldp.cli.options import Jobs, ParquetOut, Seeds
from graphldp.cli.processes import joined, machine, workers
from graphldp.errors import OptionError

__all__ = ["register"]


@classes
def train(
    ctx: typer.Context,
    cell: CellOptions,
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", "-e", help="The budget of the reports. Left out for method majority.")
    ] = None,
    seeds: Seeds = None,
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
    output: ParquetOut = None,
) -> None:
    """Search, choose by validation loss, train the final runs, and write what became of every one.

    All runs of a phase are one batched model. Ctrl-C keeps what was reached; the same command goes on from there.
    """
    from graphldp import methods
    from graphldp.experiment.options import SearchParams
    from graphldp.experiment.search_space import SearchedRow, check_axes
    from graphldp.stages import train as stage
    from graphldp.stages.grids.cell import Cell
    from graphldp.stages.grids.params import with_axes

    if grid is not None:
        from graphldp.stages.grid import train_grid

        alone(ctx, ("device", "jobs"))
        count = workers(jobs, "--jobs")
        rows, graph = grid_of(grid, cell.dataset)
        with console.progress(f"train {graph}", None, "steps") as bar:
            made = train_grid(
                rows, graph, cell.data, device=cell.device, jobs=count, progress=bar, note=console.noting()
            )
        show(made, as_json=cell.as_json)
        return
    if jobs is not None:
        raise OptionError("--jobs goes with --grid: one cell is shared by --processes")
    with joined(cell.processes, cell.device) as processes:
        if epsilon is None:
            if methods.method(cell.method).model:
                raise OptionError(
                    f"method {cell.method!r} needs --epsilon: the budget of the reports that it learns from"
                )
            epsilon = 0.0
        chosen = cell.chosen(seeds)
        recipe = methods.method(cell.method)
        if cell.search and recipe.model:
            # The file's axes may be other rows'; what was asked for here is this row's, or a slip.
            drop = chosen.further.private_labels
            row = SearchedRow(
                recipe=recipe, mechanism=recipe.choose(cell.mechanism), model=chosen.train.model, drop=drop
            )
            check_axes(with_axes(SearchParams(), cell.axes), [row])
        resources = machine(cell.max_memory, processes, cell.data)
        with console.progress(f"train {cell.dataset} {cell.method}", None, "epochs") as bar:
            one = Cell(
                dataset=cell.dataset, method=cell.method, mechanism=cell.mechanism or "", epsilon=epsilon,
                name=name or "",
            )  # fmt: skip
            path = stage.train(
                one, data=cell.data, params=chosen, device=cell.device, resources=resources, calibrated=calibrated,
                answers=answers, output=output, models=save_model, progress=bar,
            )  # fmt: skip
        if resources.leads:
            _show(path, save_model, cell.data, as_json=cell.as_json)


def _show(path: Path, model: Path | None, data: Path, *, as_json: bool) -> None:
    import json

    import numpy as np

    from graphldp.experiment.parts import FEW_TESTED
    from graphldp.measures import measures_of
    from graphldp.stages.files.artifacts import read_meta, read_table
    from graphldp.stages.files.runs import RunsMeta, final_rows
    from graphldp.stages.pages.model_card import floor_command

    meta = read_meta(path, "ldp train")
    rows = final_rows(read_table(path, "ldp train").to_pylist())
    runs = RunsMeta.of(meta)
    measures = measures_of(runs.task)
    scores = {one.name: [row[f"test_{one.name}"] for row in rows] for one in measures.measures}
    if as_json:
        places = {"path": str(path), "saved_model": None if model is None else str(model)}
        console.out.print_json(
            json.dumps({**meta, **places, **{f"test_{name}": values for name, values in scores.items()}})
        )
        return
    one, cell = measures.headline, runs.cell
    shown = one.factor * np.array(scores[one.name])
    spread = f" (std {np.std(shown, ddof=1):.{one.digits}f})" if len(rows) > 1 else ""
    unit = f" {one.unit}" if one.unit else ""
    console.out.print(
        f"{path}: {cell.name} at epsilon {cell.epsilon}: test {one.label} "
        f"{np.mean(shown):.{one.digits}f}{unit}{spread}, {len(rows)} run{'s' * (len(rows) != 1)}",
        soft_wrap=True,
    )
    tested = [row[f"test_{measures.parts}"] for row in rows]
    if measures.parts == "nodes" and tested and max(tested) < FEW_TESTED:
        console.note(f"warning: {max(tested)} test nodes in each run: too few to tell methods apart; label more nodes")
    if "test" in meta:
        console.note(
            f"note: nobody's true label is known here, so that the test is {meta['test']}: unbiased, and beyond its "
            "spread it has the noise of these labels, the same in every run"
        )
    command = floor_command(data, meta)
    if command:
        console.note(f"note: the floor, which needs nobody's report, is not known here; `{command}` shows it")
    if model is not None:
        console.out.print(f"{model}: the best final model, for `ldp predict`", soft_wrap=True)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("train")(train)
