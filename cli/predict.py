"""`ldp predict`: a kept model and reports in, classes out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphldp.cli import console
from graphldp.cli.options import DATA, AsJson, Data, Device

__all__ = ["register"]


def predict(
    model: Annotated[Path, typer.Argument(help="The folder that `ldp train --save-model` wrote.")],
    reports: Annotated[Path, typer.Option("--reports", "-r", help="Reports to predict from.", dir_okay=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the predictions.", dir_okay=False)],
    dataset: Annotated[
        str | None, typer.Option("--dataset", "-d", help="Their graph, where it is not the one they name.")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", help="Which seed's reports; those that the model was trained on if left out."),
    ] = None,
    device: Device = "auto",
    data: Data = DATA,
    as_json: AsJson = False,
) -> None:
    """Predict every node's class from reports, of the same graph or of another one with the same features.

    The output has a row for each node: its class, the class's probability, and the probabilities of all classes.
    """
    import json

    from graphldp.stages.artifacts import read_meta, read_table
    from graphldp.stages.models import predict_reports

    path = predict_reports(model, reports, data=data, dataset=dataset, seed=seed, device=device, output=output)
    classes = read_table(path, "ldp predict", columns=["class"]).column("class").value_counts().to_pylist()
    counts = {row["values"]: row["counts"] for row in sorted(classes, key=lambda row: -row["counts"])}
    if as_json:
        facts = {"path": str(path), "nodes_per_class": counts, **read_meta(path, "ldp predict")}
        console.out.print_json(json.dumps(facts))
        return
    shown = ", ".join(f"class {name}: {count:,}" for name, count in counts.items())
    console.out.print(f"{path}: {sum(counts.values()):,} nodes; {shown}", soft_wrap=True)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("predict")(predict)
