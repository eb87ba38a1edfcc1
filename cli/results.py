"""`ldp results`: one page with all results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphldp.cli import console
from graphldp.errors import OptionError

__all__ = ["register"]


def results(
    folder: Annotated[
        Path, typer.Option("--results", help="The folder of results; index.html goes there.", file_okay=False)
    ] = Path("results"),
    docs: Annotated[Path, typer.Option("--docs", help="Where the audit's table stands.", file_okay=False)] = Path("docs"),
) -> None:
    """Write results/index.html: the papers' tables, figures and claims, our tables, privacy, errata, cost.

    It opens from disk and computes nothing: it shows what `ldp reproduce`, `ldp claims`, `ldp experiment` and the
    pipeline have written.
    """
    from graphldp.stages.results_page import write_page

    if not folder.is_dir():
        raise OptionError(f"{folder} does not exist; run where results are, or name the folder with --results")
    console.out.print(str(write_page(folder, docs)), markup=False, soft_wrap=True)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("results")(results)
