"""`ldp evaluate`: from runs to tables, figures, metrics and the report page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from graphldp.cli.console import out, progress
from graphldp.cli.options import DATA, AsJson, Data

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("evaluate")(evaluate)


def evaluate(
    params: Annotated[Path, typer.Option("--params", help="The grid.", dir_okay=False)] = Path("params.yaml"),
    data: Data = DATA,
    results: Annotated[Path, typer.Option("--results", help="Where everything is written.", file_okay=False)] = Path(
        "results"
    ),
    papers: Annotated[
        Path, typer.Option("--papers", help="Folder of the papers' printed numbers.", file_okay=False)
    ] = Path("papers"),
    as_json: AsJson = False,
) -> None:
    """Make tables, figures, metrics and the report page from the grid's runs.

    Every cell of the grid must have been trained. The papers' numbers are read from the repository's folder papers;
    without it their column stays empty and the table says so.
    """
    from graphldp.stages.evaluate import measure, write
    from graphldp.stages.grids.params import load
    from graphldp.stages.pages.findings import find
    from graphldp.stages.pages.tables import metrics

    grid = load(params)
    with progress("evaluate", len(grid.cells()), "cells") as bar:
        result = measure(grid, data, papers, bar)
    files = write(result, results)
    findings = [find(section) for section in result.sections]
    if as_json:
        answer = {
            "metrics": metrics(result),
            "findings": [finding.headline for finding in findings],
            "notes": list(result.notes),
            "files": [str(path) for path in files],
        }
        typer.echo(json.dumps(answer, indent=2, sort_keys=True, ensure_ascii=False))
        return
    for finding in findings:
        out.print(finding.headline, markup=False, soft_wrap=True, style="bold")
        for sentence in finding.sentences:
            out.print(sentence, markup=False, soft_wrap=True)
    for text in result.notes:
        out.print(text, markup=False, soft_wrap=True)
    out.print(f"table: {results / 'tables' / 'main.md'}", markup=False, soft_wrap=True)
    out.print(f"page:  {results / 'report.html'}", markup=False, soft_wrap=True)
