"""`ldp predict`: a kept model and reports in; classes, numbers or scores of pairs out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphldp.cli import console
from graphldp.cli.options import DATA, AsJson, Data, Device, file_ending, graph_names

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["register"]


def predict(
    model: Annotated[Path, typer.Argument(help="The folder that `ldp train --save-model` wrote.")],
    reports: Annotated[Path, typer.Option("--reports", "-r", help="Reports to predict from.", dir_okay=False)],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Where to write the predictions: Parquet or CSV, by its ending.",
            dir_okay=False,
            callback=file_ending(".parquet", ".csv"),
        ),
    ],
    dataset: Annotated[
        str | None,
        typer.Option(
            "--dataset", "-d", help="Their graph, where it is not the one they name.", autocompletion=graph_names
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", help="Which seed's reports; those that the model was trained on if left out."),
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            "--pairs", help="Link prediction: a file of pairs to score, with source and target.", dir_okay=False
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            "--top", help="Link prediction: so many pairs without an edge, the highest; 100 if left out.", min=1
        ),
    ] = None,
    device: Device = "auto",
    data: Data = DATA,
    as_json: AsJson = False,
) -> None:
    """Predict from reports, of the same graph or of another one with the same features.

    A model of classes gives every node its class, the class's probability and those of all classes; one of numbers its
    number. A link predictor scores pairs of nodes: those of a file, or the highest of all without an edge.
    """
    import json

    from graphldp.stages.predict import Wanted, predict_reports, read_predictions

    wanted = None if pairs is None and top is None else Wanted(pairs=pairs, top=top)
    path = predict_reports(
        model, reports, data=data, dataset=dataset, seed=seed, wanted=wanted, device=device, output=output
    )
    table, meta = read_predictions(path)
    counts, words = _summary(table)
    if as_json:
        console.out.print_json(json.dumps({"path": str(path), **counts, **meta}))
        return
    console.out.print(f"{path}: {words}", soft_wrap=True)


def _summary(table: pa.Table) -> tuple[dict[str, Any], str]:
    """Return what was predicted as facts and in words."""
    import numpy as np

    from graphldp.stages.pages.wording import counted

    if "score" in table.column_names:
        linked = sum(table["linked"].to_pylist())
        return {
            "pairs": len(table),
            "linked": linked,
        }, f"{counted(len(table), 'pair')}, {linked:,} of them {'an edge' if linked == 1 else 'edges'}"
    facts: dict[str, Any] = {}
    words = [counted(len(table), "node")]
    if "class" in table.column_names:
        name = "label" if "label" in table.column_names else "class"
        found = sorted(table[name].value_counts().to_pylist(), key=lambda row: -row["counts"])
        facts["nodes_per_class"] = {row["values"]: row["counts"] for row in found}
        words.append(", ".join(f"{name} {row['values']}: {row['counts']:,}" for row in found))
    columns = [name for name in table.column_names if name.startswith("value")]
    if columns:
        values = np.stack([table[name].to_numpy() for name in columns]).astype(float)
        facts["values"] = {"mean": values.mean(), "low": values.min(), "high": values.max()}
        words.append(f"values from {values.min():.4g} to {values.max():.4g}, mean {values.mean():.4g}")
    return facts, "; ".join(words)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("predict")(predict)
