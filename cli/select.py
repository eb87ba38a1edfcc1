"""`ldp select`: which features matter, from a first round's reports."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphldp.cli import console
from graphldp.cli.options import DATA, AsJson, Data
from graphldp.cli.train import ParamsFile, choose_params

__all__ = ["register"]


def select(
    reports: Annotated[Path, typer.Option("--reports", "-r", help="The first round's reports.", dir_okay=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the scores.", dir_okay=False)],
    by: Annotated[str, typer.Option("--by", help="fda, sma, mi, chi-square or pca.")] = "fda",
    steps: Annotated[int, typer.Option("--steps", "-k", help="Depth K of the filter that denoises them.", min=0)] = 2,
    seed: Annotated[int, typer.Option("--seed", help="Which seed's reports, and whose training labels.")] = 0,
    dataset: Annotated[
        str | None, typer.Option("--dataset", "-d", help="Their graph, where it is not the one they name.")
    ] = None,
    top: Annotated[int, typer.Option("--top", help="How many features to print.", min=1)] = 10,
    params: ParamsFile = Path("params.yaml"),
    data: Data = DATA,
    as_json: AsJson = False,
) -> None:
    """Score every feature from a first round's reports and the training labels.

    Use the scores in a second round: `ldp perturb --mechanism featurerr --scores FILE` shares its budget out by them,
    and its artifact says what both rounds spent.
    """
    import json

    from graphldp.audit.ledger import Ledger
    from graphldp.stages.artifacts import read_meta, read_table
    from graphldp.stages.select import select as stage

    chosen = choose_params(params, dataset or "any")
    path = stage(reports, data=data, params=chosen, by=by, steps=steps, seed=seed, dataset=dataset, output=output)
    rows = sorted(read_table(path, "ldp select").to_pylist(), key=lambda row: row["rank"])[:top]
    meta = read_meta(path, "ldp select")
    if as_json:
        console.out.print_json(json.dumps({"path": str(path), "top": rows, **meta}))
        return
    best = ", ".join(f"{row['feature']} ({row['importance']:.3g})" for row in rows)
    console.out.print(f"{path}: best by {by}: {best}", soft_wrap=True)
    console.note(Ledger.from_json(meta["ledger"]).text())


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("select")(select)
