"""`ldp influence`: what a trained model tells of people's links."""

from __future__ import annotations

from typing import Annotated

import typer

from graphldp.cli import console
from graphldp.cli.cell import fetch
from graphldp.cli.lists import between, words
from graphldp.cli.options import DATA, AsJson, Data, Graphs, ResultsFolder, Seed
from graphldp.cli.output import check_room, written

__all__ = ["register"]


def influence(
    dataset: Graphs = None,
    epsilon: Annotated[
        list[str] | None,
        typer.Option(
            "--epsilon",
            "-e",
            help="What all reports lose about one relationship; several with commas.",
            show_default="8",
        ),
    ] = None,
    people: Annotated[
        int, typer.Option("--people", help="Of how many people the attacker asks: ends of random links.", min=3)
    ] = 120,
    seed: Seed = 0,
    output: ResultsFolder = None,
    data: Data = DATA,
    as_json: AsJson = False,
) -> None:
    """Attack trained models for people's links: whose answers move when one person's features change (LinkTeller)?

    GCN is trained over public links, over none, and over the graph that each mechanism and each curator leaves.
    """
    import json
    from dataclasses import asdict

    from graphldp.jsonable import plain
    from graphldp.stages import influence as stage

    graphs, budgets = words("--dataset", dataset or ["cora"]), between("--epsilon", epsilon or ["8"], 0.0, 700.0)
    check_room(output)
    rows = []
    for name in graphs:
        fetch(name, data)
        with console.progress(f"influence {name}", None, "models") as bar:
            rows += stage.influence(name, budgets, data=data, people=people, root=seed, progress=bar)
    told = ",".join(f"{value:g}" for value in budgets)
    command = f"ldp influence --dataset {','.join(graphs)} --epsilon {told} --people {people}"
    with written(output, lambda folder: stage.write_influence(rows, folder, command)) as files:
        if as_json:
            answer = {"rows": [asdict(row) for row in rows], "files": [str(path) for path in files]}
            console.out.print_json(json.dumps(plain(answer)))
            return
        notes = [f"{row.row} at {row.epsilon:g}: {row.why}" for row in rows if row.why]
        shown = [[row.dataset, *stage.cells(row)] for row in rows]
        console.figures("What a model tells of links, in percent", ["graph", *stage.HEADS], shown, notes, text=1)
        for path in files:
            console.note(f"written: {path}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("influence")(influence)
