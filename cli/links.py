"""`ldp links`: how near graphs that are estimated from private links come to the true one."""

from __future__ import annotations

from typing import Annotated

import typer

from graphldp.cli import console
from graphldp.cli.cell import fetch
from graphldp.cli.lists import between, words
from graphldp.cli.options import DATA, AsJson, Data, Graphs, ResultsFolder, Seed
from graphldp.cli.output import check_room, written

__all__ = ["register"]

_SPARE = ("trusts", "density", "walk_2", "precision", "degree_distance")  # what a narrow terminal goes without


def links(
    dataset: Graphs = None,
    epsilon: Annotated[
        list[str] | None,
        typer.Option(
            "--epsilon",
            "-e",
            help="What all reports lose about one relationship; several with commas.",
            show_default="1",
        ),
    ] = None,
    rho: Annotated[
        list[str] | None,
        typer.Option(
            "--rho", help="Of EdgeRR: the share of links that are private; several.", show_default="0.1,0.5,1"
        ),
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", help="How many independent repetitions.", min=1)] = 3,
    seed: Seed = 0,
    output: ResultsFolder = None,
    data: Data = DATA,
    as_json: AsJson = False,
) -> None:
    """Measure how near each way of reporting and estimating links comes to the true graph, at one loss of a link.

    Density, the distance of degrees, recall and precision, the distance of random walks after 1 to 4 steps (HeteroRR's
    Figure 11), and the best attack's advantage. Rows of a curator, who sees all links, are for comparison.
    """
    import json
    from dataclasses import asdict

    from graphldp.jsonable import plain
    from graphldp.stages import links as stage

    graphs = words("--dataset", dataset or ["cora"])
    budgets, shares = (
        between("--epsilon", epsilon or ["1"], 0.0, 700.0),
        between("--rho", rho or [",".join(map(str, stage.RHO))], 0.0, 1.0),
    )
    check_room(output)
    rows = []
    for name in graphs:
        fetch(name, data)
        with console.progress(f"links {name}", None, "ways") as bar:
            rows += stage.links(name, budgets, data=data, seeds=seeds, rho=shares, root=seed, progress=bar)
    told = ",".join(f"{value:g}" for value in budgets)
    command = f"ldp links --dataset {','.join(graphs)} --epsilon {told} --seeds {seeds}"
    command += f" --rho {','.join(f'{value:g}' for value in shares)}" if rho else ""
    with written(output, lambda folder: stage.write_links(rows, folder, command, seeds)) as files:
        if as_json:
            answer = {"rows": [asdict(row) for row in rows], "files": [str(path) for path in files]}
            console.out.print_json(json.dumps(plain(answer)))
            return
        title = f"Estimated graphs beside the true one; {stage.of_seeds(seeds)}"
        notes = [f"{row.row} at {row.epsilon:g}: {row.why}" for row in rows if row.why]
        console.figures(title, list(stage.HEADS), [stage.cells(row) for row in rows], notes, text=3, spare=_SPARE)
        for path in files:
            console.note(f"written: {path}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("links")(links)
