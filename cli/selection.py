"""`ldp selection`: how stable, fair, useful and exposed what a first round selects is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphldp.cli import console
from graphldp.cli.cell import ParamsFile, choose_params, fetch
from graphldp.cli.lists import numbers, words
from graphldp.cli.options import (
    DATA,
    AsJson,
    Data,
    Epsilons,
    Mechanisms,
    PairedSeeds,
    RootSeed,
    folder_option,
    graph_names,
)
from graphldp.cli.output import check_room, written
from graphldp.cli.settings import Settings, parse, parts
from graphldp.errors import OptionError

if TYPE_CHECKING:
    from graphldp.stages.selection import Selected

__all__ = ["register"]

# What a narrow terminal goes without, the first of them first: never what was selected by what, or its budget.
_SPARE = (
    *("attack", "TOGL random", "TOGL", "right (guess)", "votes", "law", "clean", "public"),
    *("random, sent", "selected, sent", "by chance"),
)


def selection(
    dataset: Annotated[
        str | None,
        typer.Option(
            "--dataset", "-d", help="Name of the graph; `ldp list datasets` shows them.", autocompletion=graph_names
        ),
    ] = None,
    mechanism: Mechanisms = None,
    epsilon: Epsilons = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            help="What ranks the features: fda, sma, mi, chi-square or pca; several with commas.",
            show_default="fda,sma",
        ),
    ] = None,
    answers: Annotated[
        Path | None,
        typer.Option(
            "--answers",
            help="Measure an artifact instead: both rounds, as `ldp perturb --method` wrote them.",
            dir_okay=False,
        ),
    ] = None,
    seeds: PairedSeeds = None,
    top: Annotated[int, typer.Option("--top", help="How many features count as selected.", min=1)] = 5,
    random: Annotated[
        int, typer.Option("--random", help="How many of the others are measured beside them.", min=1)
    ] = 20,
    seed: RootSeed = None,
    settings: Settings = None,
    output: Annotated[Path | None, folder_option("Folder to write the tables into.")] = None,
    papers: Annotated[
        Path, typer.Option("--papers", help="Folder of the papers' printed numbers.", file_okay=False)
    ] = Path("papers"),
    params: ParamsFile = Path("params.yaml"),
    data: Data = DATA,
    as_json: AsJson = False,
) -> None:
    """Repeat the choice of features, and measure whether the same ones are chosen, for whom, and what it exposes.

    Four questions, three of them asked by the TOGL paper: do repetitions choose the same features (its Table 9), do
    these fit people with many and with few links alike (Table 6), do they help the learner, and can they be guessed
    (Table 10)?

    A budget is that of both rounds. Options of the rounds are given as `ldp run` takes them: --set method.rho=0.5,
    --set m_rule=2/5. Where the paper prints a number, it stands beside ours.
    """
    import json

    from graphldp.jsonable import plain
    from graphldp.stages import selection as stage
    from graphldp.stages.grids.cell import Cell
    from graphldp.stages.pages.selection_tables import flat, write_selection

    check_room(output)
    if answers is not None:
        given = {"--dataset": dataset, "--mechanism": mechanism, "--epsilon": epsilon, "--by": by, "--set": settings}
        for name, value in given.items():
            if value:
                raise OptionError(f"the artifact says itself how it was made: leave {name} out")
        chosen = choose_params(params, "any", seeds=seeds, seed=seed)
        with console.progress("selection", None, "repetitions") as bar:
            found = stage.measure_file(answers, data=data, params=chosen, top=top, others=random, progress=bar)
    else:
        if dataset is None or not epsilon:
            raise OptionError(
                "name a graph and a budget (--dataset cora --epsilon 5,10), or an artifact of both rounds (--answers)"
            )
        names, budgets = words("--mechanism", mechanism or ["pm"]), numbers("--epsilon", epsilon)
        scorers = words("--by", by or ["fda", "sma"])
        chosen = choose_params(params, dataset, seeds=seeds, seed=seed)
        options, changes = parts(parse(settings))
        cells = [
            Cell(dataset=dataset, mechanism=name, epsilon=budget, options=options, changes=changes)
            for name in names
            for budget in budgets
        ]
        fetch(dataset, data)
        with console.progress(f"selection {dataset}", None, "repetitions") as bar:
            found = stage.measure_selection(
                cells, scorers, data=data, params=chosen, top=top, others=random, progress=bar
            )
    with written(output, lambda folder: write_selection(found, folder, papers)) as files:
        if as_json:
            answer = {
                "selection": [flat(row) for row in found.rows],
                "groups": [flat(row) for row in found.groups],
                "files": [str(path) for path in files],
            }
            console.out.print_json(json.dumps(plain(answer)))
            return
        _show(found, papers, files)


def _show(found: Selected, papers: Path, files: list[Path]) -> None:
    from graphldp.stages.pages.selection_tables import tables

    for one in tables(found, papers):
        console.figures(one.title, one.names, one.rows, one.notes, text=2, spare=_SPARE, rest="--output")
    if files:
        console.note(f"written: {', '.join(str(path) for path in files)}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("selection")(selection)
