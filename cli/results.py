"""`ldp results`: one page with all results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphldp.cli import console
from graphldp.cli.reproduce import PapersFolder
from graphldp.errors import OptionError

__all__ = ["register"]


def results(
    folder: Annotated[
        Path, typer.Option("--results", help="The folder of results; index.html goes there.", file_okay=False)
    ] = Path("results"),
    docs: Annotated[
        Path,
        typer.Option("--docs", help="Where the audit's table stands; the papers' pages go there.", file_okay=False),
    ] = Path("docs"),
    papers: PapersFolder = Path("papers"),
    pages: Annotated[
        bool,
        typer.Option("--pages", help="Also write the pages of tables that earlier code measured, from these tables."),
    ] = False,
) -> None:
    """Write results/index.html: the papers' tables, figures and claims, our tables, privacy, errata, cost.

    And docs/papers/NAME.md for each paper: what of it is here, how to make it again, what came out. The page opens from
    disk. Nothing is computed: both show what `ldp reproduce`, `ldp claims`, `ldp experiment` and the pipeline have
    written.

    With --pages the page and the figures of each table that does not name its code are written again as well, by
    today's rules from the committed numbers, and say so at their head.
    """
    from graphldp.stages.grids.params import EXPERIMENTS
    from graphldp.stages.pages.committed import write_pages
    from graphldp.stages.pages.paper_pages import tally, write_papers
    from graphldp.stages.pages.results_page import write_page

    if not folder.is_dir():
        raise OptionError(f"{folder} does not exist; run where results are, or name the folder with --results")
    for path in write_pages(folder, papers, EXPERIMENTS) if pages else ():
        console.out.print(str(path), markup=False, soft_wrap=True)
    for path in (write_page(folder, docs), *write_papers(papers, folder, docs)):
        console.out.print(str(path), markup=False, soft_wrap=True)
    printed, beside, within = tally(papers, folder)
    console.note(f"{printed} printed numbers, {beside} beside a row of ours, {within} of these within its interval")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("results")(results)
