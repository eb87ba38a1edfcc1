"""`ldp claims`: what the papers claim in their texts, judged on regenerated numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphldp.cli import console
from graphldp.cli.options import AsJson
from graphldp.cli.reproduce import PapersFolder

__all__ = ["register"]


def claims(
    paper: Annotated[
        str | None, typer.Argument(help="Print the claims of one paper alone.", show_default=False)
    ] = None,
    results: Annotated[
        Path, typer.Option("--results", help="Where reproduced tables stand; claims.csv goes there.", file_okay=False)
    ] = Path("results"),
    docs: Annotated[Path, typer.Option("--docs", help="claims.md goes there.", file_okay=False)] = Path("docs"),
    papers: PapersFolder = Path("papers"),
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit with 1 if the committed page is out of date.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Judge every claim of the papers' texts: holds, does not hold, cannot be told here, not testable; with the reason.

    Each stands under its paper's own protocol and under ours, since a verdict may depend on it. Nothing is computed:
    `ldp reproduce` makes the numbers.
    """
    import dataclasses
    import json

    from graphldp.errors import unknown_name
    from graphldp.stages import claims as stage

    judged = stage.judge(papers, results)
    known = {one.claim.paper for one in judged}
    if paper is not None and paper not in known:
        raise unknown_name("paper", paper, known)
    if check:
        if stage.stale_page(papers, results, docs):
            console.out.print(
                f"{docs / 'claims.md'} is not what the committed numbers say; run `ldp claims`", soft_wrap=True
            )
            raise typer.Exit(1)
        console.out.print(f"{docs / 'claims.md'} is up to date")
        return
    if paper is None:
        stage.write_claims(papers, results, docs)
    shown = [one for one in judged if paper in (None, one.claim.paper)]
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(one) for one in shown], indent=2, ensure_ascii=False))
        return
    for one in shown:
        console.out.print(
            f"{one.claim.number:2} {one.claim.paper}, {one.claim.where}: {one.theirs} / {one.ours}. {one.theirs_why}",
            markup=False, soft_wrap=True,
        )  # fmt: skip
    for words, found in zip(("their protocol", "ours"), stage.counts(shown), strict=True):
        console.out.print(f"{words}: " + ", ".join(f"{count} {name}" for name, count in found.items()), style="bold")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("claims")(claims)
