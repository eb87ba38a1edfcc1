"""`ldp ledger FILES...`: what a set of artifacts has spent of each person's budget, together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from graphldp.cli.console import out
from graphldp.cli.options import AsJson

__all__ = ["register"]

_MOST = 6  # pairs of different releases that are told one by one: those of four files


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("ledger")(ledger)


def ledger(
    files: Annotated[
        list[Path],
        typer.Argument(help="Reports, scores, runs, predictions, and folders of kept models.", show_default=False),
    ],
    as_json: AsJson = False,
) -> None:
    """Add up what people have spent on a set of artifacts, and say which of them share a release.

    A draw of a release counts once, however many files lead back to it; another draw, or another release, spends
    again. Of more than a few different releases the pairs are counted, and --json tells them all. Where a file does not
    say what was spent on it, the total is not known, and the exit code is 2.

    Example: ldp ledger first.parquet second.parquet models/mine
    """
    from graphldp.errors import ArtifactError
    from graphldp.stages.files.spent import accounts, relations, together

    found = accounts(files)
    total = together(found)
    silent = [str(one.path) for one in found if not one.known]
    if as_json:
        answer = {
            "files": [{"path": str(one.path), "kind": one.kind, "ledger": one.ledger.as_json()} for one in found],
            "ledger": total.as_json(),
            "known": not silent,
            "text": total.text(),
            "relations": relations(found),
        }
        typer.echo(json.dumps(answer, indent=2, ensure_ascii=False))
    else:
        for one in found:
            nothing = "nothing: a graph is no release" if one.kind == "graph" else "nothing"
            text = "; ".join(spend.text for spend in one.ledger.spends) or nothing
            out.print(f"{one.path}: {one.kind}, {text}", markup=False, soft_wrap=True)
        for line in relations(found, _MOST):
            out.print(line, markup=False, style="dim", soft_wrap=True)
        out.print(total.text(), markup=False, style="bold", soft_wrap=True)
    if silent:
        raise ArtifactError(
            f"the total is not known, since nothing says what was spent on {', '.join(silent)}; name what it was made "
            "of instead, or leave it out where no person's data went into it"
        )
