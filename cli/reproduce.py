"""`ldp reproduce`: a paper's tables and figures, under its own protocol and under ours."""

from __future__ import annotations

import contextlib
import io
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphldp.cli import console
from graphldp.cli.options import DATA, AsJson, Data, Device, Jobs
from graphldp.cli.processes import workers
from graphldp.errors import OptionError

if TYPE_CHECKING:
    from graphldp.stages.pages.reproduced import Reproduction
    from graphldp.stages.reproduce import Order

__all__ = ["PapersFolder", "register"]

PapersFolder = Annotated[Path, typer.Option("--papers", help="Folder of the papers' printed numbers.", file_okay=False)]
_PAPERS = Path("papers")


def _complete(incomplete: str) -> list[str]:
    from graphldp.stages.grids.targets import targets

    if not _PAPERS.is_dir():
        return []
    every = targets(_PAPERS)
    names = ["all", *dict.fromkeys(one.paper for one in every), *(one.key for one in every)]
    return [name for name in names if name.startswith(incomplete)]


def reproduce(
    address: Annotated[
        str | None,
        typer.Argument(
            help="all, a paper (togl), or one of its tables and figures (togl:table17).", autocompletion=_complete
        ),
    ] = None,
    profile: Annotated[
        str,
        typer.Option(
            "--profile", help="quick: minutes a table, mostly on its first graph; paper: the papers' own size."
        ),
    ] = "quick",
    datasets: Annotated[
        str | None, typer.Option("--datasets", help="Only these data sets, separated by commas.", show_default=False)
    ] = None,
    theirs: Annotated[
        bool, typer.Option("--theirs", help="The paper's own protocol alone, without ours, floor and ceiling.")
    ] = False,
    reading: Annotated[
        str,
        typer.Option("--reading", help="One of the readings of what a paper leaves open.", show_default=False),
    ] = "",
    listed: Annotated[bool, typer.Option("--list", help="Say what there is to reproduce.")] = False,
    dry: Annotated[bool, typer.Option("--dry", help="Say what there is to compute, and compute nothing.")] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="Compare with the results that are there instead of writing; 1 if any moved."),
    ] = False,
    device: Device = "auto",
    jobs: Jobs = None,
    data: Data = DATA,
    results: Annotated[
        Path,
        typer.Option(
            "--results", help="Everything goes to its folder reproduce/PAPER-TARGET/PROFILE.", file_okay=False
        ),
    ] = Path("results"),
    papers: PapersFolder = _PAPERS,
    as_json: AsJson = False,
) -> None:
    """Make a paper's table or figure again: as printed, under the paper's own protocol, under ours, floor and ceiling.

    Says which data are not at hand and why, and what the cells that are not there will take; then computes them as any
    grid's. After Ctrl-C the same command goes on where it was, and a second run computes nothing.
    """
    from graphldp.stages import reproduce as stage
    from graphldp.stages.files.cells import not_lost
    from graphldp.stages.grids.targets import PROFILES, find, targets
    from graphldp.stages.pages.reproduced import with_earlier, write

    if listed:
        if address is not None:
            raise OptionError(f"--list says what there is to reproduce; leave {address!r} out")
        _list(targets(papers), as_json=as_json)
        return
    if address is None:
        raise OptionError("what is to be made again? `ldp reproduce --list` says what there is")
    if profile not in PROFILES:
        raise OptionError(f"--profile must be {' or '.join(PROFILES)}, got {profile!r}")
    count = workers(jobs, "--jobs")
    wanted = [name for name in (datasets or "").split(",") if name]
    chosen = find(address, papers)
    orders = []
    with console.progress("reproduce", None, "bytes") as bar:
        for one in chosen:
            own = [name for name in wanted if name in one.graphs()] if len(chosen) > 1 else wanted
            if wanted and not own and one.trains:
                continue
            orders.append(
                stage.order(
                    one,
                    stage.Extent(
                        profile=PROFILES[profile], datasets=own, theirs=theirs, reading=reading, fetch=not dry
                    ),
                    data=data,
                    papers=papers,
                    device=device,
                    progress=bar,
                )
            )
    lacking = dict.fromkeys(command for one in orders if (command := stage.missing_measurement(one.target, results)))
    first = [shlex.join(["ldp", *command]) for command in lacking]
    if dry and as_json:
        facts = [
            {"target": one.target.key, "cells": one.cells, "to_do": one.todo, "without": dict(one.missing)}
            for one in orders
        ]
        typer.echo(json.dumps({"targets": facts, "measured_first": first}, indent=2, ensure_ascii=False))
        return
    for text in [] if as_json else _plan(orders, first, data):
        if dry:
            console.out.print(text, markup=False, soft_wrap=True)
        else:
            console.note(text)
    if dry:
        return
    for what in [] if check else orders:
        stage.check_keeps(what, results)
    for command in lacking:
        _run((*command, "--data", str(data)))
    moved: dict[str, list[str]] = {}
    made: list[tuple[Reproduction, list[Path]]] = []
    name = f"reproduce {orders[0].target.key}" if len(orders) == 1 else "reproduce"
    with console.progress(name, None, "steps") as bar:
        for what, new in stage.reproduce_all(
            orders, data=data, results=results, device=device, jobs=count, progress=bar, note=console.noting()
        ):
            found = with_earlier(new, results)
            if check:
                moved[what.target.key] = stage.compare(found, results)
                continue
            with not_lost(data):
                made.append((found, write(found, results)))
    if as_json and not check:
        answers = [{"target": found.target.key, "files": [str(path) for path in files]} for found, files in made]
        typer.echo(json.dumps(answers, indent=2))
    elif not check:
        for found, files in made:
            _show(found, files)
    if check:
        for key, texts in moved.items():
            for text in texts:
                console.out.print(f"{key}: {text}", markup=False, soft_wrap=True)
        if any(moved.values()):
            raise typer.Exit(1)
        console.out.print(f"{len(moved)} made again, every number within its committed interval")


def _run(command: tuple[str, ...]) -> None:
    """Run another command of ours, which measures what a target shows; its answer is shown if it fails."""
    from typer.main import get_command

    from graphldp.cli.app import build

    said = ["--quiet"] * console.is_quiet() + ["--debug"] * console.wants_traceback()
    result = io.StringIO()
    try:
        with contextlib.redirect_stdout(result):
            get_command(build(command[0])).main([*said, *command], prog_name="ldp", standalone_mode=False)
    except BaseException:
        typer.echo(result.getvalue(), nl=False)
        raise


def _list(every: list, *, as_json: bool) -> None:  # type: ignore[type-arg]
    from rich.table import Table

    if as_json:
        facts = [
            {"target": one.key, "heading": one.heading, "title": one.title, "datasets": one.graphs()} for one in every
        ]
        typer.echo(json.dumps(facts, indent=2, ensure_ascii=False))
        return
    table = Table(show_edge=False, pad_edge=False, show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for one in every:
        table.add_row(one.key, f"{one.heading}: {one.title}")
    console.out.print(table)


def _plan(orders: list[Order], first: list[str], data: Path) -> Iterator[str]:
    """Say what is not at hand, what is there, what the rest will take, and what is measured first."""
    from graphldp.stages.pages.wording import counted
    from graphldp.stages.reproduce import estimate, estimates

    without: dict[tuple[str, str], list[str]] = {}
    for one in orders:
        for left in one.missing.items():
            without.setdefault(left, []).append(one.target.key)
    for (name, reason), keys in without.items():
        where = keys[0] if len(keys) == 1 else counted(len(keys), "target")
        yield f"{where}: without {name}: {reason}"
    for one, own in zip(orders, estimates(orders, data), strict=True):
        if one.todo and len(orders) > 1:
            yield f"{one.target.key}: {counted(one.cells, 'cell')}, {one.cells - one.todo} there; {own.text}"
    cells, todo = sum(one.cells for one in orders), sum(one.todo for one in orders)
    rest = f"; the others will take {estimate(orders, data).text}" if todo else ""
    yield f"{len(orders)} to make again, {counted(cells, 'cell')}, {cells - todo} of them there{rest}"
    for command in first:
        yield f"measured first, by `{command}`"


def _show(found: Reproduction, files: list[Path]) -> None:
    from rich.markup import escape
    from rich.table import Table

    from graphldp.stages.pages.reproduced import filled

    heads, rows = filled(found)
    table = Table(title=f"{found.target.heading}: {found.target.title}", title_justify="left", box=None, pad_edge=False)
    for name in heads:
        table.add_column(name, no_wrap=name not in ("remark", "step", "place"))
    for row in rows:
        table.add_row(*map(escape, row))
    console.out.print(table)
    for note in found.notes:
        console.out.print(note, markup=False, soft_wrap=True)
    console.out.print(f"table: {files[1]}", markup=False, soft_wrap=True)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("reproduce")(reproduce)
