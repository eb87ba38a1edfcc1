"""`ldp select`: which features matter, from people's reports."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphldp.cli import console
from graphldp.cli.cell import ParamsFile, choose_params
from graphldp.cli.options import DATA, AsJson, Data, graph_names, parquet_file
from graphldp.errors import OptionError

__all__ = ["register"]


def select(
    reports: Annotated[
        Path,
        typer.Option("--reports", "-r", help="Reports of everybody, as `ldp perturb` writes them.", dir_okay=False),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to write the scores.", dir_okay=False, callback=parquet_file)
    ],
    by: Annotated[str, typer.Option("--by", help="fda, sma, mi, chi-square or pca.")] = "fda",
    steps: Annotated[int, typer.Option("--steps", "-k", help="Depth K of the filter that denoises them.", min=0)] = 2,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Which seed's reports, and whose training labels; 0 if left out.")
    ] = None,
    all_seeds: Annotated[
        bool, typer.Option("--all-seeds", help="Score every seed's reports, each by its own split's training labels.")
    ] = False,
    dataset: Annotated[
        str | None,
        typer.Option(
            "--dataset", "-d", help="Their graph, where it is not the one they name.", autocompletion=graph_names
        ),
    ] = None,
    top: Annotated[int, typer.Option("--top", help="How many features to print.", min=1)] = 10,
    params: ParamsFile = Path("params.yaml"),
    data: Data = DATA,
    as_json: AsJson = False,
) -> None:
    """Score every feature from people's reports and the training labels.

    `ldp perturb --mechanism featurerr --scores FILE` shares a budget out by the scores of one seed; its artifact says
    what both have spent. Methods of two rounds rank features themselves: `ldp perturb --method togl-fda`.
    """
    import json

    from graphldp.ledger import Ledger
    from graphldp.stages.files.artifacts import read_meta, read_table
    from graphldp.stages.select import select as stage

    if all_seeds and seed is not None:
        raise OptionError(f"--all-seeds scores seed {seed} among the others: give --seed or --all-seeds")
    chosen = choose_params(params, dataset or "any")
    one = None if all_seeds else seed or 0
    path = stage(reports, data=data, params=chosen, by=by, steps=steps, seed=one, dataset=dataset, output=output)
    meta = read_meta(path, "ldp select")
    shown = meta["seeds"][0]
    rows = [row for row in read_table(path, "ldp select").to_pylist() if row["seed"] == shown]
    rows = sorted(rows, key=lambda row: row["rank"])[:top]
    if as_json:
        console.out.print_json(json.dumps({"path": str(path), "top": rows, **meta}))
        return
    best = ", ".join(f"{row['feature']} ({row['importance']:.3g})" for row in rows)
    which = f" for seed {shown}, of {len(meta['seeds'])}" if len(meta["seeds"]) > 1 else ""
    console.out.print(f"{path}: best by {by}{which}: {best}", soft_wrap=True)
    console.note(Ledger.from_json(meta["ledger"]).text())


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("select")(select)
