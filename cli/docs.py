"""`ldp docs`: write again the pages of the docs that follow from the code."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphldp.cli.console import out, progress

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("docs")(docs)


def docs(
    output: Annotated[Path, typer.Option("--output", help="Folder of the docs.", file_okay=False)] = Path("docs"),
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit code 1 if a page's text is not what the code says.")
    ] = False,
    without_audit: Annotated[
        bool, typer.Option("--without-audit", help="Leave privacy.md alone: its audit takes some minutes.")
    ] = False,
) -> None:
    """Write the mechanism pages with their figures, the comparison, and the privacy table.

    Needs a repository's docs folder, or any folder to write to. The same code gives the same bytes.
    """
    from graphldp.stages.pages.docs import outdated_pages, write_docs
    from graphldp.stages.pages.wording import counted

    if check:
        wrong = outdated_pages(output, audit=not without_audit)
        for path, problem in wrong:
            out.print(f"{path}: {problem}", markup=False, soft_wrap=True)
        if wrong:
            out.print("make them again with: ldp docs")
            raise typer.Exit(1)
        out.print("every generated page says what the code says; figures are not compared")
        return
    with progress("docs", None, "steps") as bar:
        paths = write_docs(output, audit=not without_audit, progress=bar)
    out.print(f"wrote {counted(len(paths), 'file')} in {output}", markup=False, soft_wrap=True)
