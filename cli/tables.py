"""`ldp tables`: print the regenerated tables, or say what has moved against the committed ones."""

from __future__ import annotations

import enum
import json
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from graphldp.cli.console import fitted, left_out, note, out
from graphldp.cli.options import AsJson

if TYPE_CHECKING:
    from graphldp.measures import Measure
    from graphldp.stages.pages.compare import Difference
    from graphldp.stages.pages.tables import Column

__all__ = ["register"]

_REMARK = "remark"  # stands below a table that has no room for it
_MOVED = 1  # exit code: a cell left its interval


class Format(enum.StrEnum):
    """How a table is printed."""

    rich = "rich"
    md = "md"
    csv = "csv"
    tex = "tex"
    json = "json"


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("tables")(tables)


def tables(
    name: Annotated[str, typer.Argument(help="Which table; --list shows them.")] = "main",
    form: Annotated[Format, typer.Option("--format", help="How to print it.")] = Format.rich,
    listed: Annotated[bool, typer.Option("--list", help="Only name the tables that are there.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Compare with the committed tables; exit 1 if a cell left its interval.")
    ] = False,
    stale: Annotated[
        bool, typer.Option("--stale", help="Say which committed tables other code or parameters have made.")
    ] = False,
    against: Annotated[str, typer.Option("--against", help="The git revision to compare with.")] = "HEAD",
    results: Annotated[Path, typer.Option("--results", help="Folder of the results.", file_okay=False)] = Path(
        "results"
    ),
    as_json: AsJson = False,
) -> None:
    """Print the regenerated tables, or check them against the committed ones.

    With --check a cell may move within the interval that was committed beside it, and no further. Exit code 0: all
    within; 1: cells moved, each is listed with its old and new value; 2: there is nothing to compare.
    """
    if stale:
        _stale(results, as_json=as_json)
        return
    if check:
        _check(results, against, as_json)
        return
    from graphldp.errors import DataError, unknown_name
    from graphldp.stages.files.artifacts import require

    found = {path.stem: path for path in sorted((results / "tables").glob("*.csv"))}
    if listed:
        typer.echo(json.dumps(list(found)) if as_json else "\n".join(found))
        return
    own = results / name
    if name not in found and (own / "tables" / "main.csv").is_file():
        raise DataError(f"{name} has a folder of its own in {results}; say `ldp tables --results {own}`")
    if found and name not in found:
        raise unknown_name("table", name, found)
    path = require(results / "tables" / f"{name}.csv", "ldp evaluate")
    _show(path, Format.json if as_json else form)


def _show(path: Path, form: Format) -> None:
    from graphldp.datasets import title
    from graphldp.measures import measures_of, tasks
    from graphldp.stages.files.artifacts import require
    from graphldp.stages.pages.tables import axis_columns, read_csv, shown_in, table_columns
    from graphldp.stages.pages.wording import at, axis_title

    rows = read_csv(path.read_text(encoding="utf-8"))
    if form is Format.json:
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
    elif form is Format.rich:
        gone: dict[str, None] = {}
        # A table for each place on the axes that all rows have, the floor's too; other axes are columns.
        axes = axis_columns(rows[0]) if rows else []
        places = ["dataset", *(axis for axis in axes if all(row[axis] for row in rows))]
        beside = {axis_title(axis): axis for axis in axes if axis not in places}
        for count, place in enumerate(dict.fromkeys(tuple(row[key] for key in places) for row in rows)):
            own = [row for row in rows if tuple(row[key] for key in places) == place]
            here = ", ".join(
                [title(place[0]), *(at(key, value) for key, value in zip(places[1:], place[1:], strict=True))]
            )
            entry = next(one for one in map(measures_of, tasks()) if one.headline.name in own[0])
            said = shown_in("terminal", table_columns(entry))
            spared = sorted((one for one in said if one.spare), key=lambda one: -one.spare)
            table, spare = fitted(
                partial(_table, here, own, beside, entry.headline, said), [one.heading for one in spared]
            )
            if count:
                out.print()
            out.print(table)
            if _REMARK in spare:
                for line in _remarks(own):
                    note(line)
            gone.update(dict.fromkeys(name for name in spare if name != _REMARK))
        left_out(gone, "--format csv")
    else:
        text = require(path.with_suffix(f".{form}"), "ldp evaluate").read_text(encoding="utf-8")
        typer.echo(text, nl=False)


def _table(
    place: str,
    rows: list[dict[str, str]],
    axes: Mapping[str, str],
    measure: Measure,
    columns: Sequence[Column],
    without: Collection[str] = (),
) -> Table:
    steps = f", differences in {measure.difference}" if measure.difference else ""
    title = f"{escape(place)}: {measure.heading}{steps}"
    table = Table(title=title, title_justify="left", show_edge=False, pad_edge=False)
    shown = [one for one in columns if one.heading not in without and any(_cell(one, row) for row in rows)]
    beside = [name for name in axes if name not in without]
    for name in beside:
        table.add_column(name, justify="right", no_wrap=True)
    for one in shown:
        table.add_column(one.heading, justify="left" if one.left else "right", no_wrap=True)
    group = None
    for row in rows:
        here = [row[column] for column in (*axes.values(), "epsilon")]
        if group is not None and here != group:
            table.add_section()
        group = here
        table.add_row(*(row[axes[name]] for name in beside), *(_cell(one, row) for one in shown))
    return table


def _remarks(rows: list[dict[str, str]]) -> list[str]:
    """Return what is remarked of rows, a line for each remark, where the table has no room for it."""
    said: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.get("remark"):  # tables of earlier versions have no such column
            said.setdefault((row["row"], row["remark"]), []).append(row["epsilon"])
    return [f"{name} at {', '.join(budgets)}: {remark}" for (name, remark), budgets in said.items()]


def _cell(column: Column, row: dict[str, str]) -> str:
    from graphldp.methods import Role, role_of

    if column.interval is None:
        broken = " †" if column.key == "row" and row["claim"] != "keeps" else ""
        return escape(column.reads(row)) + broken
    judged = column.key == "gain" and role_of(row["method"]) not in (Role.GUESS, Role.CEILING)
    return _interval(row, column.key, colour=judged)


def _interval(row: dict[str, str], column: str, *, colour: bool = False) -> str:
    from graphldp.evaluation import FEW

    mean, low, high = (row[f"{column}{end}"] for end in ("", "_low", "_high"))
    ends = f" [dim]{low} to {high}[/dim]" if low and high else ""
    style = ""
    if colour and ends:
        few = row["runs"].isdigit() and int(row["runs"]) < FEW
        style = "" if few else "green" if float(low) > 0 else "red" if float(high) < 0 else ""
    return (f"[{style}]{mean}[/{style}]" if style else mean) + ends


def _stale(results: Path, *, as_json: bool) -> None:
    from graphldp.errors import OptionError
    from graphldp.stages.files.traces import traces

    if not results.is_dir():
        raise OptionError(f"{results} does not exist; make it with `ldp evaluate`")
    found = traces(results)
    if as_json:
        facts = [{"folder": str(one.folder), "stale": list(one.stale), "make": one.make} for one in found]
        typer.echo(json.dumps(facts, indent=2, ensure_ascii=False))
        return
    for one in found:
        out.print(one.text, markup=False, soft_wrap=True)


def _check(results: Path, revision: str, as_json: bool) -> None:
    from graphldp.stages.files.traces import trace
    from graphldp.stages.grids.params import EXPERIMENTS
    from graphldp.stages.pages.compare import check, is_committed

    found = check(results, revision)
    failed = [difference for difference in found if difference.fails]
    if as_json:
        typer.echo(json.dumps([_plain(difference) for difference in found], indent=2, ensure_ascii=False))
    else:
        for difference in found:
            out.print(("moved: " if difference.fails else "note: ") + difference.text, markup=False, soft_wrap=True)
    if failed:
        note(f"{len(failed)} {'cell' if len(failed) == 1 else 'cells'} left what {revision} allows")
        raise typer.Exit(_MOVED)
    if as_json:
        return
    if not is_committed(results, revision):
        out.print(f"tables: every cell is within its interval at {revision}", markup=False, soft_wrap=True)
        return
    made = trace(results, default=not (EXPERIMENTS / f"{results.name}.yaml").exists())
    if made.stale:
        note(f"nothing is checked: {results} has the tables of {revision} themselves ({'; '.join(made.stale)}); make "
             f"them again with `{made.make}`")  # fmt: skip
    else:
        out.print(f"tables: the same as at {revision}, to the byte; this code makes them", markup=False, soft_wrap=True)


def _plain(difference: Difference) -> dict[str, str | bool]:
    return {
        "table": difference.table,
        "cell": difference.cell,
        "column": difference.column,
        "old": difference.old,
        "new": difference.new,
        "allowed": difference.allowed,
        "fails": difference.fails,
    }
