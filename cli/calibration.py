"""`ldp calibration`: what a calibration does to signal and noise, depth by depth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphldp.cli import console
from graphldp.cli.cell import ParamsFile, choose_params, fetch
from graphldp.cli.lists import depths, numbers, words
from graphldp.cli.options import DATA, AsJson, Data, Dataset, Epsilons, RootSeed, Seeds, file_ending
from graphldp.cli.output import check_room, written
from graphldp.cli.settings import Settings, mechanism_of, parse, parts
from graphldp.errors import OptionError

if TYPE_CHECKING:
    from graphldp.stages.calibration import MeasuredRow

__all__ = ["register"]

# What a narrow terminal goes without, the first of them first: never what was calibrated, its budget or its depth.
_SPARE = ("rate", "largest", "reported", "Phi_K", "clean", "energy")


def calibration(
    dataset: Dataset,
    epsilon: Epsilons = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method", help="Whose calibration; several with commas. `ldp list methods`.", show_default="lpgnn"
        ),
    ] = None,
    mechanism: Annotated[
        str | None, typer.Option("--mechanism", "-m", help="What is reported; the method's own if left out.")
    ] = None,
    steps: Annotated[
        list[str] | None,
        typer.Option(
            "--steps", "-k", help="Depth K of the filter; several with commas.", show_default="those searched"
        ),
    ] = None,
    seeds: Seeds = None,
    seed: RootSeed = None,
    settings: Settings = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write all figures here: CSV or JSON, by its ending.",
            dir_okay=False,
            callback=file_ending(".csv", ".json"),
        ),
    ] = None,
    params: ParamsFile = Path("params.yaml"),
    data: Data = DATA,
    as_json: AsJson = False,
) -> None:
    """Measure Dirichlet energy, UPGNet's Phi_K and the error against everybody's true features, for each depth K.

    Nothing is trained. The calibration is changed as in `ldp run`: --set method.tau=0.5, --set method.filter=hoa.
    Error and signal need the true features, so they are for data that you hold.
    """
    import json
    from dataclasses import asdict

    from graphldp.jsonable import plain
    from graphldp.stages import calibration as stage
    from graphldp.stages.grids.cell import Cell

    if not epsilon:
        raise OptionError("name a budget, or several: --epsilon 0.1,1")
    names, budgets = words("--method", method or ["lpgnn"]), numbers("--epsilon", epsilon)
    options, changes = parts(parse(settings), names)
    mechanism = mechanism_of(options, mechanism)
    chosen = choose_params(params, dataset, seeds=seeds, seed=seed)
    cells = [
        Cell(dataset=dataset, method=name, mechanism=mechanism or "", epsilon=budget, options=options, changes=changes)
        for name in names
        for budget in budgets
    ]
    check_room(output)
    fetch(dataset, data)
    with console.progress(f"calibration {dataset}", None, "sets of reports") as bar:
        rows = stage.measure_calibration(
            cells, data=data, params=chosen, steps=depths("--steps", steps or ()), progress=bar
        )
    with written(output, lambda path: [stage.write_measured(rows, path)]) as files:
        if as_json:
            answer = {"rows": [asdict(row) for row in rows], "file": str(files[0]) if files else None}
            console.out.print_json(json.dumps(plain(answer)))
            return
        _show(rows)
        for path in files:
            console.note(f"written: {path}")


def _show(rows: list[MeasuredRow]) -> None:
    from graphldp.stages.calibration import cells, headers, legend

    title, *notes = legend(rows)
    console.figures(title, headers(), [cells(row) for row in rows], notes, text=2, spare=_SPARE)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("calibration")(calibration)
