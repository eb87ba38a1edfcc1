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
    other: Annotated[
        Path | None,
        typer.Option(
            "--merge",
            help="First take over the papers' tables of another folder of results.",
            file_okay=False,
            show_default=False,
        ),
    ] = None,
    readme: Annotated[
        Path, typer.Option("--readme", help="Whose counted lines are written, if it has them.", dir_okay=False)
    ] = Path("README.md"),
) -> None:
    """Write what is made of results: the papers' tables, figures, claims and pages, README's counts, and index.html.

    The CSV files are the record. Of those in results/reproduce the Markdown, LaTeX and figures are written again, then
    the verdicts of `ldp claims`, docs/papers/NAME.md for each paper, the lines of README.md that count, and
    results/index.html with all of it, which opens from disk. Nothing is computed: `ldp reproduce`, `ldp experiment`
    and the pipeline make the numbers.
    """
    from graphldp.stages.claims import write_claims
    from graphldp.stages.grids.targets import targets
    from graphldp.stages.pages.paper_pages import tally, write_papers
    from graphldp.stages.pages.readme import counts_something, write_readme
    from graphldp.stages.pages.reproduced import bring, restate
    from graphldp.stages.pages.results_page import write_page

    if not folder.is_dir():
        raise OptionError(f"{folder} does not exist; run where results are, or name the folder with --results")
    if other is not None:
        if not (other / "reproduce").is_dir():
            raise OptionError(f"{other} has no folder reproduce; name another folder of results with --merge")
        bring(targets(papers), other, folder)
    paths = [*restate(targets(papers), folder), *write_claims(papers, folder, docs)]
    paths += [*write_papers(papers, folder, docs), write_page(folder, docs)]
    if counts_something(readme):
        paths.append(write_readme(papers, folder, readme))
    for path in paths:
        console.out.print(str(path), markup=False, soft_wrap=True)
    found = tally(papers, folder)
    console.note(
        f"{found.printed} printed numbers, {found.beside} beside a row of ours; {found.theirs} with an interval "
        f"under their protocol, {found.within} of these within it; {found.drawn} of {found.figures} figures"
    )


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("results")(results)
