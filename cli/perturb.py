"""`ldp perturb`: features in, reports out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphldp.cli import console
from graphldp.cli.grid import Grid, alone, grid_of, show
from graphldp.cli.options import (
    DATA,
    AsJson,
    ClassesFile,
    Data,
    Dimensions,
    EpsilonLabels,
    EpsilonLinks,
    FeaturesFile,
    Labels,
    LinkOption,
    Links,
    Mechanism,
    OneEpsilon,
    ParquetOut,
    graph_names,
)
from graphldp.cli.settings import Settings, further_of, mechanism_of, parse, parts
from graphldp.errors import OptionError

if TYPE_CHECKING:
    from graphldp.experiment.options import Settings as Options

__all__ = ["register"]

_MECHANISM = "mb"
OWN = "own"  # a name that says nothing: a file's may name its owner


def perturb(
    ctx: typer.Context,
    epsilon: OneEpsilon = None,
    mechanism: Mechanism = None,
    dataset: Annotated[
        str | None,
        typer.Option(
            "--dataset", "-d", help="Perturb the features of this downloaded graph.", autocompletion=graph_names
        ),
    ] = None,
    features: Annotated[
        Path | None,
        typer.Option("--input", "-i", help="Perturb your own features: a Parquet or CSV file.", dir_okay=False),
    ] = None,
    low: Annotated[
        float | None, typer.Option(help="With --input: the declared lower end of every feature's range.")
    ] = None,
    high: Annotated[float | None, typer.Option(help="With --input: the declared upper end.")] = None,
    features_file: FeaturesFile = None,
    dimensions: Dimensions = None,
    missing: Annotated[
        float | None,
        typer.Option(help="With --input: what a missing value counts as; the middle of the range if left out."),
    ] = None,
    name: Annotated[str | None, typer.Option(help=f"With --input: what to call the data; {OWN!r} if left out.")] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            "--seeds",
            help="How many independent repetitions; 1 if left out, since each is a further report of everybody; "
            "--params' with --method.",
            min=1,
        ),
    ] = None,
    search_seeds: Annotated[
        int | None,
        typer.Option(
            help="Further repetitions, for a hyper-parameter search (seeds -1, -2, ...); 0 if left out, or --params' "
            "with --method.",
            min=0,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", help="The root of all randomness; 0 if left out, or --params' with --method.", min=0),
    ] = None,
    m: Annotated[
        int | None, typer.Option("--m", help="How many features each person reports; the best if left out.")
    ] = None,
    settings: Settings = None,
    levels: Annotated[
        Path | None,
        typer.Option("--levels", help="Each person's privacy level (node, level), for personalised mechanisms."),
    ] = None,
    scores: Annotated[
        Path | None,
        typer.Option("--scores", help="Each feature's importance or sensitivity, for mechanism featurerr."),
    ] = None,
    scores_epsilon: Annotated[
        float | None,
        typer.Option(
            help="What finding the --scores out has cost each person, where their file does not say it: 0 if they are "
            "public. Left out, the ledger says that it is unknown.",
            min=0.0,
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            help="With --dataset: ask everything that this method asks people for. --set method.KEY changes it.",
        ),
    ] = None,
    labels: Labels = None,
    epsilon_labels: EpsilonLabels = None,
    links: Links = None,
    epsilon_links: EpsilonLinks = None,
    link_option: LinkOption = None,
    links_file: Annotated[
        Path | None,
        typer.Option(
            "--links-file",
            help="With --input and --links: people's own links, Parquet or CSV with the columns source, target; a link "
            "may stand there in either order, or in both.",
            dir_okay=False,
        ),
    ] = None,
    people: Annotated[
        Path | None,
        typer.Option(
            "--people",
            help="With --links-file: everybody who takes part, in the declared order; Parquet or CSV with the column "
            "node, as `ldp import --nodes` has it.",
            dir_okay=False,
        ),
    ] = None,
    labels_file: Annotated[
        Path | None,
        typer.Option(
            "--labels-file",
            help="With --input and --labels: people's own labels, Parquet or CSV with the columns node, label.",
            dir_okay=False,
        ),
    ] = None,
    classes_file: ClassesFile = None,
    params: Annotated[
        Path,
        typer.Option("--params", help="With --method: where the seeds and the split stand; defaults if there is none."),
    ] = Path("params.yaml"),
    secure: Annotated[
        bool, typer.Option("--secure", help="Draw from the operating system's CSPRNG: for real people's data.")
    ] = False,
    grid: Grid = None,
    data: Data = DATA,
    output: ParquetOut = None,
    as_json: AsJson = False,
) -> None:
    """Perturb features under local differential privacy, and write exactly what would have left the devices.

    Each person's report spends the whole epsilon; what stands in the file protects her features and nothing else.
    Of your own features no value stops a report, since its absence would tell: one outside the range counts as its
    nearer end, and a feature that is not declared is left out. `--secure` never replaces a file.
    With `--links-file` and `--labels-file` people report their own links and labels beside their features, in the one
    file: with `--links`, `--labels` and their budgets. `--mechanism null --epsilon 0` asks for no features.
    With `--method`, people are asked everything that the method asks, one question after the other where the answers
    to one direct the next (`togl-fda`, `votes`); the epsilon is then of all answers of a person together. What people
    report once depends on the mechanism alone, and methods share it.
    """
    if grid is not None:
        _grid(ctx, grid, dataset, data, as_json=as_json)
        return
    if epsilon is None:
        raise OptionError("Missing option '--epsilon': how much a person may spend, for example --epsilon 1")
    from dataclasses import replace

    from graphldp.stages import perturb as stage
    from graphldp.stages.files.levels_scores import Extras
    from graphldp.stages.grids.cell import Cell

    options, changes = parts(parse(settings), [method] if method else [])
    mechanism = mechanism_of(options, mechanism)
    if m is not None:
        if "m" in options:
            raise OptionError(f"m is given twice, as --m {m} and with --set; leave one out")
        options["m"] = m
    if (dataset is None) == (features is None):
        raise OptionError("give either --dataset NAME or --input FILE, and not both")
    if method is None and changes:
        raise OptionError(f"method.{next(iter(changes))} changes a method: name it with --method")
    extras = Extras(levels=levels, scores=scores, scores_epsilon=scores_epsilon)
    further = further_of(
        link_option, labels=labels, epsilon_labels=epsilon_labels, links=links, epsilon_links=epsilon_links
    )
    said: list[str] = []
    if dataset is not None:
        own = {"--low": low, "--high": high, "--name": name, "--features-file": features_file}
        own |= {"--links-file": links_file, "--people": people, "--labels-file": labels_file}
        own |= {"--classes-file": classes_file}
        for flag, given in {**own, "--dimensions": dimensions, "--missing": missing}.items():
            if given is not None:
                raise OptionError(f"{flag} goes with --input; a data set declares its own")
        if secure:
            raise OptionError("--secure goes with --input: a public data set has nobody to protect")
        chosen = replace(_settings(params if method else None, dataset, seeds, search_seeds, seed), further=further)
        with console.progress("perturb", len(chosen.draws), "seeds") as bar:
            if method is None:
                cell = Cell(
                    dataset=dataset, mechanism=mechanism or _MECHANISM, epsilon=epsilon, options=options,
                    further=further,
                )  # fmt: skip
                path = stage.perturb_graph(
                    cell, data=data, seeds=chosen.draws, root=chosen.seed, extras=extras, output=output, progress=bar,
                    say=console.note,
                )  # fmt: skip
            else:
                cell = Cell(
                    dataset=dataset, method=method, mechanism=mechanism or "", epsilon=epsilon, options=options,
                    changes=changes,
                )  # fmt: skip
                path = stage.perturb_method(
                    cell, data=data, settings=chosen, extras=extras, output=output, progress=bar, say=console.note
                )
    else:
        assert features is not None
        if method is not None:
            raise OptionError(
                "--method goes with --dataset: it directs questions by an experiment's labels; to collect real "
                "reports, name their --mechanism and --epsilon"
            )
        if low is None or high is None:
            raise OptionError("--input needs --low and --high: a range read off the data would leak its extremes")
        chosen = _settings(None, OWN, seeds, search_seeds, seed)
        beside = stage.BesideFiles(links=links_file, people=people, labels=labels_file, classes=classes_file)
        files = stage.CollectionFiles(
            features=features, low=low, high=high, features_file=features_file, dimensions=dimensions, missing=missing,
            beside=beside, extras=extras, secure=secure,
        )  # fmt: skip
        cell = Cell(
            dataset=name or OWN, mechanism=mechanism or _MECHANISM, epsilon=epsilon, options=options, further=further
        )
        with console.progress("perturb", len(chosen.draws), "seeds") as bar:
            path = stage.perturb_file(
                cell, files, data=data, seeds=chosen.draws, root=chosen.seed, output=output, progress=bar,
                say=said.append,
            )  # fmt: skip
    _show(path, as_json=as_json)
    for text in said:
        console.note(f"note: {text}")
    if features is not None and not secure:
        console.note("note: drawn from a seeded generator, for experiments; use --secure to collect real people's data")


def _grid(ctx: typer.Context, file: Path, dataset: str | None, data: Path, *, as_json: bool) -> None:
    """Write everything that people send for the rows of a file."""
    from graphldp.stages.grid import perturb_grid

    alone(ctx)
    grid, name = grid_of(file, dataset)
    with console.progress(f"perturb {name}", None, "rows") as bar:
        made = perturb_grid(grid, name, data, bar)
    show(made, as_json=as_json)


def _settings(
    params: Path | None, dataset: str, seeds: int | None, search_seeds: int | None, seed: int | None
) -> Options:
    """Return the seeds, and with parameters whose labels may direct questions; what is given counts before these."""
    from dataclasses import replace

    from graphldp.cli.cell import choose_params
    from graphldp.experiment.options import SearchParams, check_most
    from graphldp.experiment.options import Settings as Plain

    for name, count in (("seeds", seeds), ("search.seeds", search_seeds)):
        check_most(name, count or 0, "a set of everybody's reports")
    if params is None:
        return Plain(seed=seed or 0, seeds=seeds or 1, search=SearchParams(seeds=search_seeds or 0))
    found: Options = choose_params(params, dataset, seeds=seeds, seed=seed)
    return found if search_seeds is None else replace(found, search=replace(found.search, seeds=search_seeds))


def _show(path: Path, *, as_json: bool) -> None:
    import json
    import math

    from graphldp.stages.files.artifacts import read_meta
    from graphldp.stages.files.reports import ReportsMeta
    from graphldp.stages.pages.wording import counted

    meta = read_meta(path, "ldp perturb")
    if as_json:
        console.out.print_json(json.dumps({"path": str(path), **meta}))
        return
    says = ReportsMeta.of(meta)
    if math.isinf(says.epsilon):
        console.out.print(
            f"{path}: {counted(says.nodes, 'row')} as they are: mechanism {says.mechanism} protects nothing",
            soft_wrap=True,
        )
        return
    seeds, claim = len(says.seeds), says.claim
    lowest = f"{says.epsilon:g} (lowest level), " if "budgets" in meta else ""
    many = f" x {seeds} seeds" if seeds > 1 else ""
    if meta["kind"] == "reports":
        what, whole = (
            f"{counted(says.nodes, 'report')} of {says.m} of {counted(says.dimensions, 'feature')}{many}",
            "the whole report",
        )
    else:
        asked = next(iter(meta["questions"].values()))
        what, whole = f"answers of {says.nodes:,} people{many} ({', '.join(asked)})", "all answers of a person"
    further = "further" in meta
    if further:
        whole = "what is said of features"
    console.out.print(
        f"{path}: {what}, {says.mechanism}, epsilon {lowest}"
        f"{claim.epsilon:g} claimed for {whole}, {says.epsilon_exact:.6g} exact",
        soft_wrap=True,
    )
    if further:
        console.out.print(says.ledger.once().text(), soft_wrap=True)
    if not claim.keeps:
        console.note(f"warning: {says.mechanism} does not keep its claim: {claim.reason}")
    if seeds > 1:
        console.note(f"{says.ledger.text()}, if all of it leaves the devices")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("perturb")(perturb)
