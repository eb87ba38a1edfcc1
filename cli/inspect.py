"""`ldp inspect FILE`: what an artifact says of itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from graphldp.cli.console import out
from graphldp.cli.options import AsJson

if TYPE_CHECKING:
    from graphldp.stages.files.describe import Description

__all__ = ["register"]

_LONGEST_VALUE = 400  # characters of one value in the table; `--json` prints everything


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("inspect")(inspect)


def inspect(
    file: Annotated[
        Path, typer.Argument(help="A Parquet artifact, or the folder of a graph or a model.", show_default=False)
    ],
    as_json: AsJson = False,
) -> None:
    """Show an artifact's metadata: mechanism, budget, seeds, what it was made from.

    Reads no rows, so it is quick for files of any size.
    """
    from graphldp.stages.files.describe import describe
    from graphldp.stages.pages.wording import counted

    found = describe(file)
    if as_json:
        typer.echo(json.dumps(found.as_json(), indent=2, sort_keys=True, ensure_ascii=False))
    else:
        rows = "" if found.rows is None else f", {counted(found.rows, 'row')}"
        out.print(f"{found.path}: {found.kind}{rows}, {_size(found.size)}", markup=False, style="bold", soft_wrap=True)
        out.print(_table(found))


def _table(found: Description) -> Table:
    table = Table(show_header=False)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for key, value in _flat(found.meta):
        table.add_row(escape(key), escape(value))
    if found.meta and found.columns:
        table.add_section()
    for name, kind in found.columns.items():
        table.add_row(escape(name), escape(kind), style="dim")
    return table


def _flat(meta: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield 'search.points', '12' for nested metadata, in sorted order."""
    for key in sorted(meta):
        value = meta[key]
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield f"{prefix}{key}", text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]} ..."


def _size(count: int) -> str:
    """Return '12.3 MB' (decimal units)."""
    size = float(count)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
