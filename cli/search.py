"""`ldp search`: the search alone, every trial of it written down."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any

import typer

from graphldp.cli import console
from graphldp.cli.cell import MemoryOptions, fetch
from graphldp.cli.command import classes
from graphldp.cli.options import Epsilon, ParquetOut
from graphldp.cli.processes import joined, machine

__all__ = ["register"]

_MOST = 20  # trials that are printed unless more are asked for


@classes
def search(
    cell: MemoryOptions,
    epsilon: Epsilon,
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", help="Final runs, where a method chooses among learners by them.", min=1),
    ] = None,
    show: Annotated[int, typer.Option("--show", help="How many trials are printed; 0 prints all.", min=0)] = _MOST,
    output: ParquetOut = None,
) -> None:
    """Perturb, denoise and search one cell in memory, write every trial, and print them, the best first.

    No test label is opened. A method that chooses among learners compares those of its finalists on the validation
    part of the final seeds, too. Ctrl-C keeps what was reached; the same command goes on from there. `ldp run` with the
    same options chooses the same point.
    """
    from graphldp.stages import search as stage
    from graphldp.stages.grids.cell import Cell

    with joined(cell.processes, cell.device) as processes:
        chosen, mechanism, options, changes = cell.asked(seeds)
        resources = machine(cell.max_memory, processes, cell.data)
        if resources.leads:
            fetch(cell.dataset, cell.data)
        resources.meet()
        with console.progress(f"search {cell.dataset} {cell.method}", None, "epochs") as bar:
            one = Cell(
                dataset=cell.dataset, method=cell.method, mechanism=mechanism or "", epsilon=epsilon, options=options,
                changes=changes,
            )  # fmt: skip
            path = stage.search(
                one, data=cell.data, params=chosen, device=cell.device, resources=resources, output=output, progress=bar
            )
        if resources.leads:
            _show(path, show, as_json=cell.as_json)


def _show(path: Path, most: int, *, as_json: bool) -> None:
    import json

    from rich.table import Table

    from graphldp.jsonable import plain
    from graphldp.stages.files.artifacts import read_meta
    from graphldp.stages.files.runs import RunsMeta
    from graphldp.stages.pages.wording import counted, spoken
    from graphldp.stages.search import ranking

    found, meta = ranking(path), read_meta(path, "ldp search")
    if as_json:
        console.out.print_json(json.dumps(plain({**meta, "path": str(path), "trials": found})))
        return
    runs = RunsMeta.of(meta)
    cell, facts = runs.cell, runs.search
    names = list(dict.fromkeys(name for trial in found for name in trial if name != "point"))
    # A value that all trials have says nothing about which is best.
    shown = [name for name in names if len({json.dumps(trial.get(name)) for trial in found}) > 1]
    title = f"{cell.dataset}: {cell.name} at epsilon {cell.epsilon}, trials by mean validation loss"

    def build(without: Collection[str]) -> Table:
        table = Table(title=title, title_justify="left", box=None, pad_edge=False)
        there = [name for name in shown if _heading(name) not in without]
        for name in there:
            table.add_column(_heading(name), justify="right", no_wrap=True)
        for trial in found[: most or None]:
            table.add_row(*(_text(trial.get(name)) for name in there))
        return table

    # Never what a trial is, or the loss by which it is ranked.
    spare = [_heading(name) for name in shown if name.startswith("validation_") and name != "validation_loss"]
    table, gone = console.fitted(build, spare)
    console.out.print(table)
    console.left_out(gone)
    words = spoken(facts)
    learner = meta["chosen_point"].get("options", {}).get("learner")
    rest = len(found) - min(len(found), most or len(found))
    console.note(
        f"{path}: {runs.tried}"
        + (f" ({words})" if words else "")
        + (
            f"; of the learners' best points, {learner}'s was chosen on {counted(runs.seeds, 'final seed')}"
            if learner
            else ""
        )
        + (f"; {counted(rest, 'more trial')} {'is' if rest == 1 else 'are'} not shown" if rest else "")
        + (f"; without {', '.join(facts['left_out'])}, which {cell.name} has not" if "left_out" in facts else "")
    )


def _heading(name: str) -> str:
    return {"steps": "K"}.get(name, name.replace("_", " "))


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("search")(search)
