"""`ldp attack`: what an attacker learns of single people, beside what their budget allows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphldp.cli import console
from graphldp.cli.cell import ParamsFile, choose_params, fetch
from graphldp.cli.lists import numbers, words
from graphldp.cli.options import DATA, AsJson, Data, Epsilons, Mechanisms, RootSeed, Seeds, folder_option, graph_names
from graphldp.cli.output import check_room, written
from graphldp.cli.settings import Settings, of_mechanism, parse
from graphldp.errors import OptionError

if TYPE_CHECKING:
    from graphldp.stages.attack import AttackRow

__all__ = ["register"]

# What a narrow terminal goes without, the first of them first: never the mechanism, its budget or the best guess.
_SPARE = ("right", "sure of yes", "knows the rest", "votes", "m", "two profiles", "public", "learned", "bound")


def attack(
    dataset: Annotated[
        str | None,
        typer.Option(
            "--dataset", "-d", help="Name of the graph; `ldp list datasets` shows them.", autocompletion=graph_names
        ),
    ] = None,
    mechanism: Mechanisms = None,
    epsilon: Epsilons = None,
    reports: Annotated[
        Path | None,
        typer.Option("--reports", "-r", help="Attack the reports of this artifact instead.", dir_okay=False),
    ] = None,
    seeds: Seeds = None,
    attributes: Annotated[
        int | None,
        typer.Option(
            "--attributes",
            help="How many attributes are attacked, drawn at random; 100, or all if there are fewer, if left out.",
            min=1,
        ),
    ] = None,
    steps: Annotated[
        int, typer.Option("--steps", "-k", help="Depth K of the filter before the learned attack.", min=0)
    ] = 2,
    by_level: Annotated[
        bool,
        typer.Option(
            "--by-level", help="Of a mechanism with privacy levels a row for each: everybody has it, as is known."
        ),
    ] = False,
    seed: RootSeed = None,
    settings: Settings = None,
    output: Annotated[Path | None, folder_option("Folder to write attack.csv and attack.md into.")] = None,
    params: ParamsFile = Path("params.yaml"),
    data: Data = DATA,
    as_json: AsJson = False,
) -> None:
    """Guess people's attributes from what left their devices: the best guess by the law, votes, and a learned attack.

    Beside each stands what epsilon-LDP allows any attack. Guesses are of whether a person has an attribute; the figure
    is true less false positives, 0 for a guess that looks at nothing.
    """
    import json

    from graphldp.jsonable import plain
    from graphldp.stages import attack as stage
    from graphldp.stages.grids.cell import Cell

    check_room(output)
    if reports is not None:
        for name, given in (("--dataset", dataset), ("--mechanism", mechanism), ("--epsilon", epsilon)):
            if given:
                raise OptionError(f"--reports says itself what was reported: leave {name} out")
        if settings:
            raise OptionError("--reports says itself with which options: leave --set out")
        if by_level:
            raise OptionError("--reports says itself who has which level: leave --by-level out")
        chosen = choose_params(params, "any", seeds=seeds, seed=seed)
        with console.progress("attack", None, "repetitions") as bar:
            rows = stage.attack_file(
                reports, data=data, params=chosen, attributes=attributes, steps=steps, progress=bar
            )
    else:
        if dataset is None or not epsilon:
            raise OptionError("name a graph and a budget (--dataset cora --epsilon 1,10), or reports (--reports FILE)")
        if not mechanism:
            raise OptionError("name what perturbs the features, for example --mechanism mb,pm,privset")
        names, budgets = words("--mechanism", mechanism), numbers("--epsilon", epsilon)
        chosen = choose_params(params, dataset, seeds=seeds, seed=seed)
        options = of_mechanism(parse(settings))
        cells = [
            Cell(dataset=dataset, mechanism=name, epsilon=budget, options=options)
            for name in names
            for budget in budgets
        ]
        fetch(dataset, data)
        with console.progress("attack", None, "repetitions") as bar:
            rows = stage.attack(
                cells, data=data, params=chosen, attributes=attributes, steps=steps, by_level=by_level, progress=bar
            )
    with written(output, lambda folder: stage.write_attack(rows, folder)) as files:
        if as_json:
            answer = {"rows": [row.flat() for row in rows], "files": [str(path) for path in files]}
            console.out.print_json(json.dumps(plain(answer)))
            return
        _show(rows, files)


def _show(rows: list[AttackRow], files: list[Path]) -> None:
    from graphldp.stages.attack import cells, headers, legend

    title, *notes = legend(rows)
    before = ["", *(row.mechanism for row in rows)]  # a mechanism is named where its rows begin
    shown = [
        cells(row) if row.mechanism != last else ["", *cells(row)[1:]] for row, last in zip(rows, before, strict=False)
    ]
    console.figures(title, headers(), shown, notes, text=1, spare=_SPARE)
    if files:
        console.note(f"written: {', '.join(str(path) for path in files)}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("attack")(attack)
