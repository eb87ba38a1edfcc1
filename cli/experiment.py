"""`ldp experiment`: a whole grid of a file, from perturbing to its tables, in one process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphldp.cli import console
from graphldp.cli.options import DATA, AsJson, Data, Device, Jobs, ProtocolName
from graphldp.cli.processes import workers
from graphldp.errors import OptionError

if TYPE_CHECKING:
    from rich.table import Table

    from graphldp.stages.experiment import GridPlan
    from graphldp.stages.pages.tables import Result, Section

__all__ = ["register"]

_FOLDER = Path("experiments")


def _complete(incomplete: str) -> list[str]:
    return [path.stem for path in sorted(_FOLDER.glob("*.yaml")) if path.stem.startswith(incomplete)]


def experiment(
    name: Annotated[
        str | None,
        typer.Argument(help="The experiment: a name from the folder experiments, or a file.", autocompletion=_complete),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            help="Compute and print a part: dataset=, row=, epsilon= or an axis, values separated by commas; may be "
            "given several times.",
            metavar="KEY=VALUES",
        ),
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="Say which experiments there are and what they show.")] = False,
    dry: Annotated[bool, typer.Option("--dry", help="Say what there is to compute, and compute nothing.")] = False,
    protocol: ProtocolName = None,
    device: Device = "auto",
    jobs: Jobs = None,
    data: Data = DATA,
    results: Annotated[
        Path, typer.Option("--results", help="Tables, figures and page go to its folder NAME.", file_okay=False)
    ] = Path("results"),
    papers: Annotated[
        Path, typer.Option("--papers", help="Folder of the papers' printed numbers.", file_okay=False)
    ] = Path("papers"),
    as_json: AsJson = False,
) -> None:
    """Run every cell of an experiment's file in memory, then make its tables, figures and page in results/NAME.

    Cells are kept in data/experiments/NAME. One that is there, of the same parameters, graph and code, is not computed
    again, so that Ctrl-C and the same command go on where it was. With --only a part is computed and printed, and
    results/NAME stays as it is. Under a paper's --protocol, NAME is followed by its name.
    """
    from graphldp.stages import experiment as stage
    from graphldp.stages.files.cells import not_lost
    from graphldp.stages.grids.params import find, load

    if listed:
        if name is not None:
            raise OptionError(f"--list says which experiments there are; leave {name!r} out")
        _list(as_json=as_json)
        return
    if name is None:
        raise OptionError("which experiment? `ldp experiment --list` says which there are")
    count = workers(jobs, "--jobs")
    grid = load(find(name))
    if protocol is not None:
        from graphldp.stages.grids.protocols import protocol as find_protocol

        grid = find_protocol(protocol, papers).grid(grid)
    with console.progress("download", None, "bytes") as bar:
        what = stage.plan(grid, data, only or (), progress=bar, fetch=not dry, device=device)
    if dry:
        missing = stage.check(what, data, device)
        _say_plan(what, as_json=as_json)
        if missing:
            console.note(f"not here, so that options which depend on them are not checked: {', '.join(missing)}")
        return
    with console.progress(f"experiment {grid.name}", None, "steps") as bar:
        stage.run_cells(what, data, device, progress=bar, jobs=count, note=console.noting())
    found = stage.results_of(what, data, papers)
    with not_lost(data):
        files = [] if only else stage.write_results(what, found, results)
    _show(found, what, files, as_json=as_json)


def _list(*, as_json: bool) -> None:
    from rich.table import Table

    from graphldp.stages.grids.params import experiments, find, load
    from graphldp.stages.pages.wording import counted

    if not experiments():
        raise OptionError(f"the folder {_FOLDER} holds no experiment; run where it is, or name a file")
    grids = [load(find(name)) for name in experiments()]
    if as_json:
        facts = [
            {"name": one.name, "title": one.title, "about": one.about.strip(), "cells": len(one.cells())}
            for one in grids
        ]
        typer.echo(json.dumps(facts, indent=2, ensure_ascii=False))
        return
    table = Table(show_edge=False, pad_edge=False, show_header=False, box=None, padding=(0, 2, 1, 0))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for one in grids:
        table.add_row(
            one.name, counted(len(one.cells()), "cell"), f"{one.title}\n{' '.join(one.about.split())}".strip()
        )
    console.out.print(table)


def _say_plan(what: GridPlan, *, as_json: bool) -> None:
    from graphldp.stages.experiment import cell_title
    from graphldp.stages.pages.wording import counted

    if as_json:
        rows = [
            {"cell": cell_title(cell), "path": str(path), "done": done}
            for cell, path, done in zip(what.cells, what.paths, what.done, strict=True)
        ]
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    for cell, done in zip(what.cells, what.done, strict=True):
        console.out.print(f"{'there  ' if done else 'to do  '}{cell_title(cell)}", markup=False, soft_wrap=True)
    console.note(f"of {counted(len(what.cells), 'cell')}, {len(what.todo)} to compute")


def _show(found: Result, what: GridPlan, files: list[Path], *, as_json: bool) -> None:
    from graphldp.stages.pages.findings import find
    from graphldp.stages.pages.tables import metrics

    findings = [find(section) for section in found.sections]
    if as_json:
        answer = {
            "metrics": metrics(found),
            "findings": [finding.headline for finding in findings],
            "notes": list(found.notes),
            "files": [str(path) for path in files],
        }
        typer.echo(json.dumps(answer, indent=2, sort_keys=True, ensure_ascii=False))
        return
    for section in found.sections:
        console.out.print(_table(section))
    for finding in findings:
        console.out.print(finding.headline, markup=False, soft_wrap=True, style="bold")
    for text in found.notes:
        console.out.print(text, markup=False, soft_wrap=True)
    if files:
        folder = files[-1].parent
        console.out.print(f"table: {folder / 'tables' / 'main.md'}", markup=False, soft_wrap=True)
        console.out.print(f"page:  {folder / 'report.html'}", markup=False, soft_wrap=True)
    else:
        console.note(f"a part of {what.experiment.name}: results/{what.experiment.name} stays as it is")


def _table(section: Section) -> Table:
    from rich.markup import escape
    from rich.table import Table

    from graphldp.stages.pages.tables import shown_in, table_columns

    table = Table(
        title=f"{section.title}: test {section.measure.heading}", title_justify="left", box=None, pad_edge=False
    )
    shown = shown_in("brief", table_columns(section.measures, (), section))
    for one in shown:
        table.add_column(one.heading, justify="left" if one.left else "right", no_wrap=one.key != "mechanism")
    for row in section.rows:
        table.add_row(*(escape(one.says("brief", row)) for one in shown))
    return table


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("experiment")(experiment)
