"""`ldp denoise`: reports in, calibrated estimates out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphldp.cli import console
from graphldp.cli.cell import choose_params
from graphldp.cli.grid import Grid, alone, grid_of, show
from graphldp.cli.lists import depths
from graphldp.cli.options import (
    DATA,
    AsJson,
    Data,
    Dataset,
    EpsilonLabels,
    EpsilonLinks,
    Labels,
    LinkOption,
    Links,
    Method,
    OneEpsilon,
    ParquetOut,
    parquet_file,
)
from graphldp.cli.settings import Settings, further_of, mechanism_of, parse, parts
from graphldp.errors import OptionError

__all__ = ["register"]


def denoise(
    ctx: typer.Context,
    dataset: Dataset,
    epsilon: OneEpsilon = None,
    method: Method = "lpgnn",
    mechanism: Annotated[
        str | None, typer.Option("--mechanism", "-m", help="What was reported; the method's own if left out.")
    ] = None,
    steps: Annotated[
        list[str] | None,
        typer.Option("--steps", "-k", help="Depth K of the filter; several with commas, for a search."),
    ] = None,
    reports: Annotated[
        Path | None, typer.Option("--reports", help="What `ldp perturb` wrote, where it is not in its usual place.")
    ] = None,
    materialize: Annotated[
        Path | None,
        typer.Option(
            "--materialize",
            help="Also write the dense embedding here, as Parquet.",
            dir_okay=False,
            callback=parquet_file,
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="With --materialize: which seed's reports.")] = 0,
    max_memory: Annotated[float, typer.Option(help="With --materialize: the limit in GB.", min=0.001)] = 4.0,
    settings: Settings = None,
    labels: Labels = None,
    epsilon_labels: EpsilonLabels = None,
    links: Links = None,
    epsilon_links: EpsilonLinks = None,
    link_option: LinkOption = None,
    grid: Grid = None,
    data: Data = DATA,
    params: Annotated[Path, typer.Option("--params", help="Where the searched depths stand.")] = Path("params.yaml"),
    output: ParquetOut = None,
    as_json: AsJson = False,
) -> None:
    """Rectify answers by their mechanism's law, and describe the filter that the learner is to apply.

    This is the server's side: it sees answers and the public graph, and costs no privacy. Answers to several questions
    become one estimate. A method that learns from answers as they are has nothing to denoise.
    """
    from graphldp import methods
    from graphldp.stages import denoise as stage
    from graphldp.stages.grids.cell import Cell

    if grid is not None:
        from graphldp.stages.grid import denoise_grid

        alone(ctx)
        rows, name = grid_of(grid, dataset)
        with console.progress(f"denoise {name}", None, "rows") as bar:
            made = denoise_grid(rows, name, data, bar)
        show(made, as_json=as_json)
        return
    if epsilon is None:
        raise OptionError("Missing option '--epsilon': the budget of the reports, for example --epsilon 1")
    mechanism_options, changes = parts(parse(settings), [method])
    mechanism = mechanism_of(mechanism_options, mechanism)
    if mechanism_options:
        raise OptionError(
            f"--set takes parts of the method here, as method.KEY=VALUE; got {', '.join(mechanism_options)}, "
            "which `ldp perturb` takes"
        )
    asked = depths("--steps", steps or ()) or list(choose_params(params, dataset).search.steps)
    found = methods.method(method).but(changes).steps(tuple(asked))
    if materialize is not None and len(found) != 1:
        raise OptionError(f"--materialize needs one depth: choose with --steps, from {list(found)}")
    with console.progress("denoise", None, "seeds") as bar:
        further = further_of(
            link_option, labels=labels, epsilon_labels=epsilon_labels, links=links, epsilon_links=epsilon_links
        )
        cell = Cell(
            dataset=dataset, method=method, mechanism=mechanism or "", epsilon=epsilon, changes=changes, further=further
        )
        path = stage.denoise(cell, data=data, steps=asked, reports=reports, output=output, progress=bar)
    if materialize is not None:
        stage.materialize(path, data=data, steps=found[0], seed=seed, output=materialize, max_memory=max_memory * 1e9)
    _show(path, materialize, as_json=as_json)


def _show(path: Path, embedding: Path | None, *, as_json: bool) -> None:
    import json

    from graphldp.stages.files.reports import CalibratedFile

    file = CalibratedFile(path, "ldp denoise")
    if as_json:
        places = {"path": str(path), "embedding": None if embedding is None else str(embedding)}
        console.out.print_json(json.dumps({**places, **file.meta}))
        return
    console.out.print(f"{path}: {file.says.mechanism} rectified, filter depth K in {list(file.steps)}", soft_wrap=True)
    if embedding is not None:
        console.out.print(f"{embedding}: {file.says.nodes:,} x {file.says.dimensions:,} dense", soft_wrap=True)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("denoise")(denoise)
