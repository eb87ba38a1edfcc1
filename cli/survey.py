"""`ldp survey`: everybody is asked once, one after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphldp.cli import console
from graphldp.cli.options import DATA, AsJson, Data, Dataset, Epsilon, Method
from graphldp.cli.settings import Settings, mechanism_of, parse, parts
from graphldp.cli.train import ParamsFile, choose_params

__all__ = ["register"]


def survey(
    dataset: Dataset,
    epsilon: Epsilon,
    method: Method = "frontier",
    mechanism: Annotated[
        str | None,
        typer.Option("--mechanism", "-m", help="How teachers report features; the method's own if left out."),
    ] = None,
    seeds: Annotated[int | None, typer.Option("--seeds", help="Final runs.", min=1)] = None,
    search_seeds: Annotated[int | None, typer.Option(help="Seeds of the search.", min=1)] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="The root of all randomness of an experiment.", min=0)
    ] = None,
    settings: Settings = None,
    params: ParamsFile = Path("params.yaml"),
    data: Data = DATA,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write the answers.", dir_okay=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Ask people in turn, each of them once and with the whole epsilon, and write what each of them has said.

    Teachers report features; what these say of the classes is what the others vote with. Who is asked what follows from
    the graph, the training labels and the answers before; each seed has its own. `ldp train` learns from the file.
    """
    from graphldp.stages import survey as stage

    options, changes = parts(parse(settings))
    mechanism = mechanism_of(options, mechanism)
    chosen = choose_params(params, dataset, seeds=seeds, search_seeds=search_seeds, seed=seed)
    with console.progress(f"survey {dataset}", None, "seeds") as bar:
        path = stage.survey(
            dataset, method, mechanism, epsilon, data=data, params=chosen, options=options, changes=changes,
            output=output, progress=bar,
        )  # fmt: skip
    _show(path, as_json=as_json)


def _show(path: Path, *, as_json: bool) -> None:
    import json

    from graphldp.ledger import Ledger
    from graphldp.stages.artifacts import read_meta

    meta = read_meta(path, "ldp survey")
    if as_json:
        console.out.print_json(json.dumps({"path": str(path), **meta}))
        return
    seeds, rounds = len(meta["seeds"]), meta["rounds"]
    console.out.print(
        f"{path}: {meta['nodes']:,} people asked once{f' x {seeds} seeds' if seeds > 1 else ''}: "
        f"{100 * rounds['teachers']:g} % report features with {meta['mechanism']}, the others vote; epsilon "
        f"{meta['epsilon']:g} claimed, {float(meta['epsilon_exact']):.6g} exact",
        soft_wrap=True,
    )
    console.note(Ledger.from_json(meta["ledger"]).text())


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("survey")(survey)
