"""`ldp labels`: how often private labels are known, before and after what the server makes of them."""

from __future__ import annotations

from typing import Annotated

import typer

from graphldp.cli import console
from graphldp.cli.cell import fetch
from graphldp.cli.lists import between, words
from graphldp.cli.options import DATA, AsJson, Data, EpsilonLinks, Graphs, LinkOption, Links, ResultsFolder, Seed
from graphldp.cli.output import check_room, written
from graphldp.cli.settings import further_of

__all__ = ["register"]


def labels(
    dataset: Graphs = None,
    epsilon: Annotated[
        list[str] | None,
        typer.Option("--epsilon", "-e", help="The budget of a label; several with commas.", show_default="1"),
    ] = None,
    links: Links = None,
    epsilon_links: EpsilonLinks = None,
    link_option: LinkOption = None,
    seeds: Annotated[int, typer.Option("--seeds", help="How many independent repetitions.", min=1)] = 5,
    seed: Seed = 0,
    output: ResultsFolder = None,
    data: Data = DATA,
    as_json: AsJson = False,
) -> None:
    """Measure how often labels are known: as krr has sent them, by the best guess, and after neighbours' answers.

    The best guess from one answer is bounded by epsilon. What Drop (propagated) and RGNN (frequencies) learn from reads
    neighbours' answers, too, over public links or those that the server estimates.
    """
    import json
    from dataclasses import asdict

    from graphldp.jsonable import plain
    from graphldp.stages import labels as stage

    graphs, budgets = words("--dataset", dataset or ["cora"]), between("--epsilon", epsilon or ["1"], 0.0, 700.0)
    further = further_of(link_option, labels=None, epsilon_labels=None, links=links, epsilon_links=epsilon_links)
    check_room(output)
    rows = []
    for name in graphs:
        fetch(name, data)
        with console.progress(f"labels {name}", None, "budgets") as bar:
            rows += stage.labels(
                name, budgets, further, data=data, seeds=seeds, root=seed, progress=bar, say=console.note
            )
    how = stage.spoken(seeds, further)
    told = ",".join(f"{value:g}" for value in budgets)
    command = f"ldp labels --dataset {','.join(graphs)} --epsilon {told} --seeds {seeds}"
    command += f" --links {links} --epsilon-links {epsilon_links:g}" if links else ""
    command += "".join(f" --link-option {pair}" for pair in link_option or ())
    with written(output, lambda folder: stage.write_labels(rows, folder, command, how)) as files:
        if as_json:
            answer = {"rows": [asdict(row) for row in rows], "files": [str(path) for path in files]}
            console.out.print_json(json.dumps(plain(answer)))
            return
        shown = [[row.dataset, *stage.cells(row)] for row in rows]
        console.figures(f"Labels known, in percent; {how}", ["graph", *stage.HEADS], shown, (), text=1)
        for path in files:
            console.note(f"written: {path}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("labels")(labels)
