"""`ldp perturb`: features in, reports out."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphldp.cli import console
from graphldp.cli.options import (
    DATA,
    AsJson,
    Data,
    Dimensions,
    Epsilon,
    FeaturesFile,
    Mechanism,
    Seed,
    Seeds,
    graph_names,
)
from graphldp.cli.settings import Settings, parse, parts
from graphldp.errors import OptionError

if TYPE_CHECKING:
    from graphldp.stages.perturb import Round

__all__ = ["register"]

_MECHANISM = "mb"
OWN = "own"  # a name that says nothing: a file's may name its owner


class Which(StrEnum):
    """The two rounds of a method."""

    FIRST = "first"
    SECOND = "second"


def perturb(
    epsilon: Epsilon,
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
    seeds: Seeds = 1,
    search_seeds: Annotated[
        int, typer.Option(help="Further repetitions, for a hyper-parameter search (seeds -1, -2, ...).", min=0)
    ] = 0,
    seed: Seed = 0,
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
    directed: Annotated[
        Path | None,
        typer.Option(
            "--directed",
            help="A second round: report the best features of this file of `ldp select`, and random others. "
            "--set rho=0.5 is the share of the best.",
            dir_okay=False,
        ),
    ] = None,
    method: Annotated[
        str | None, typer.Option("--method", help="With --round: the method of two rounds, such as togl-fda.")
    ] = None,
    which: Annotated[
        Which | None,
        typer.Option(
            "--round",
            help="With --method: which of its two rounds. --epsilon is then of both, and --set denoise.KEY changes how "
            "they share it out.",
        ),
    ] = None,
    secure: Annotated[
        bool, typer.Option("--secure", help="Draw from the operating system's CSPRNG: for real people's data.")
    ] = False,
    data: Data = DATA,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write the reports.", dir_okay=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Perturb features under local differential privacy, and write exactly what would have left the devices.

    Each person's report spends the whole epsilon; what stands in the file protects her features and nothing else.
    Of your own features no value stops a report, since its absence would tell: one outside the range counts as its
    nearer end, and a feature that is not declared is left out. `--secure` never replaces a file.
    A round of a method with two (`--method togl-fda --round first`) takes its share of the budget, and the artifact's
    ledger adds up what both spent.
    """
    from graphldp.experiment.options import report_seeds
    from graphldp.stages import perturb as stage
    from graphldp.stages.extras import Extras

    options, changes = parts(parse(settings))
    part, mechanism = _part(method, which, mechanism, changes)
    if m is not None:
        if "m" in options:
            raise OptionError(f"m is given twice, as --m {m} and with --set; leave one out")
        options["m"] = m
    if (dataset is None) == (features is None):
        raise OptionError("give either --dataset NAME or --input FILE, and not both")
    runs = report_seeds(seeds, search_seeds)
    extras = Extras(levels=levels, scores=scores, scores_epsilon=scores_epsilon, directed=directed)
    said: list[str] = []
    with console.progress("perturb", len(runs), "seeds") as bar:
        if dataset is not None:
            own = {"--low": low, "--high": high, "--name": name, "--features-file": features_file}
            for flag, given in {**own, "--dimensions": dimensions, "--missing": missing}.items():
                if given is not None:
                    raise OptionError(f"{flag} goes with --input; a data set declares its own")
            if secure:
                raise OptionError("--secure goes with --input: a public data set has nobody to protect")
            path = stage.perturb_graph(
                dataset,
                mechanism,
                epsilon,
                data=data,
                seeds=runs,
                root=seed,
                options=options,
                extras=extras,
                part=part,
                output=output,
                progress=bar,
            )
        else:
            assert features is not None
            if part is not None:
                raise OptionError(
                    "--round goes with --dataset: its rounds are of an experiment; to collect a round of real reports, "
                    "give --epsilon its share of the budget"
                )
            if low is None or high is None:
                raise OptionError("--input needs --low and --high: a range read off the data would leak its extremes")
            path = stage.perturb_file(
                features, mechanism, epsilon, low=low, high=high, name=name or OWN, data=data, seeds=runs, root=seed,
                features_file=features_file, dimensions=dimensions, missing=missing, options=options, extras=extras,
                output=output, secure=secure, progress=bar, say=said.append,
            )  # fmt: skip
    _show(path, as_json=as_json)
    for text in said:
        console.note(f"note: {text}")
    if features is not None and not secure:
        console.note("note: drawn from a seeded generator, for experiments; use --secure to collect real people's data")


def _part(
    method: str | None, which: Which | None, mechanism: str | None, changes: dict[str, Any]
) -> tuple[Round | None, str]:
    """Return which round of a method is meant, if any, and the mechanism."""
    from graphldp import methods
    from graphldp.stages.perturb import Round

    if method is None or which is None:
        if which is not None:
            raise OptionError(f"--round {which.value} needs --method: the one whose round it is")
        if method is not None:
            raise OptionError(
                f"--method {method} needs --round first or second: reports of a method with one round depend on the "
                "mechanism alone"
            )
        if changes:
            raise OptionError(
                f"denoise.{next(iter(changes))} changes a method: `ldp denoise` takes it, and here --method and --round"
            )
        return None, mechanism or _MECHANISM
    recipe = methods.method(method).but(changes)
    if not isinstance(recipe.rounds, methods.Rounds):
        two = [name for name in methods.names() if isinstance(methods.method(name).rounds, methods.Rounds)]
        raise OptionError(f"method {method!r} has no two rounds: leave --round out, or take {' or '.join(two)}")
    return Round(plan=recipe.rounds, second=which is Which.SECOND), recipe.choose(mechanism)


def _show(path: Path, *, as_json: bool) -> None:
    import json

    from graphldp.ledger import Ledger
    from graphldp.stages.artifacts import read_meta

    meta = read_meta(path, "ldp perturb")
    if as_json:
        console.out.print_json(json.dumps({"path": str(path), **meta}))
        return
    if not isinstance(meta["epsilon"], float | int):
        console.out.print(
            f"{path}: {meta['nodes']:,} rows as they are: mechanism {meta['mechanism']} protects nothing",
            soft_wrap=True,
        )
        return
    seeds, claim = len(meta["seeds"]), meta["claim"]
    lowest = f"{meta['epsilon']:g} (lowest level), " if "budgets" in meta else ""
    console.out.print(
        f"{path}: {meta['nodes']:,} reports of {meta['m']} of {meta['dimensions']} features"
        f"{f' x {seeds} seeds' if seeds > 1 else ''}, {meta['mechanism']}, epsilon {lowest}"
        f"{float(claim['epsilon']):g} claimed for the whole report, {float(meta['epsilon_exact']):.6g} exact",
        soft_wrap=True,
    )
    if not claim["keeps"]:
        console.note(f"warning: {meta['mechanism']} does not keep its claim: {claim['reason']}")
    if seeds > 1:
        console.note(f"{Ledger.from_json(meta['ledger']).text()}, if all of it leaves the devices")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("perturb")(perturb)
