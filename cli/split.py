"""`ldp split`: how a budget is best shared out between features, links and labels."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphldp.cli import console
from graphldp.cli.cell import ParamsFile, choose_params, fetch
from graphldp.cli.lists import numbers, words
from graphldp.cli.options import DATA, AsJson, Data, Device, LinkOption, Method, RootSeed, graph_names
from graphldp.cli.output import check_room, written
from graphldp.cli.processes import machine
from graphldp.cli.settings import Search, Settings, axes, link_pairs, mechanism_of, parse, parts
from graphldp.errors import OptionError

if TYPE_CHECKING:
    from graphldp.stages.split import Splits

__all__ = ["register"]

_PUBLIC = "public"
_SPARE = ("costs", "accuracy")  # what a narrow terminal goes without


def split(
    dataset: Annotated[
        list[str],
        typer.Option(
            "--dataset",
            "-d",
            help="The stand-in: a public or synthetic graph; several with commas.",
            autocompletion=graph_names,
            show_default=False,
        ),
    ],
    epsilon: Annotated[
        list[str],
        typer.Option(
            "--epsilon",
            "-e",
            help="The total: what is lost about a person's features, her label and any one of her links together; "
            "several with commas.",
            show_default=False,
        ),
    ],
    method: Method = "lpgnn",
    mechanism: Annotated[
        str | None, typer.Option("--mechanism", "-m", help="How features are reported; the method's own if left out.")
    ] = None,
    labels: Annotated[str, typer.Option("--labels", help=f"How labels are reported: krr, or {_PUBLIC}.")] = "krr",
    links: Annotated[
        str, typer.Option("--links", help=f"How links are reported: rr, blink, dprr, laplace-bits, or {_PUBLIC}.")
    ] = "blink",
    link_option: LinkOption = None,
    cut: Annotated[
        int, typer.Option("--parts", help="Into how many parts the total is cut; a split has so many steps.")
    ] = 4,
    seeds: Annotated[int | None, typer.Option("--seeds", help="Final runs of each split.", min=2)] = None,
    search_points: Annotated[int | None, typer.Option(help="Points of the search.", min=1)] = None,
    search_seeds: Annotated[int | None, typer.Option(help="Seeds that each point is tried on.", min=1)] = None,
    search: Search = None,
    epochs: Annotated[int | None, typer.Option(help="Epochs at most.", min=1)] = None,
    model: Annotated[str | None, typer.Option("--model", help="The backbone; the method's own if left out.")] = None,
    seed: RootSeed = None,
    settings: Settings = None,
    public: Annotated[
        bool, typer.Option("--public", help="A graph of your own among the stand-ins is public: nobody is protected.")
    ] = False,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the tables.", file_okay=False)] = Path(
        "results/split"
    ),
    device: Device = "auto",
    params: ParamsFile = Path("params.yaml"),
    data: Data = DATA,
    as_json: AsJson = False,
) -> None:
    """Try every split of a total on public stand-ins: which is best, and what a wrong one costs.

    Nobody's data is needed: splits are compared on graphs of which everything is public, true labels included.
    A share of links is what is lost about one relationship, not a bit's epsilon. Labels have a share in every split;
    without one of features or links nobody is asked for these.
    """
    import json

    from graphldp import methods
    from graphldp.experiment.options import SearchParams
    from graphldp.experiment.search_space import SearchedRow, check_axes
    from graphldp.experiment.split import Asked
    from graphldp.jsonable import plain
    from graphldp.stages.grids.params import with_axes
    from graphldp.stages.split import measure_splits, split_rows, stand_in, write_splits

    options, changes = parts(parse(settings), [method], ("epochs", "model"))
    mechanism = mechanism_of(options, mechanism)
    recipe = methods.method(method).but(changes)
    if recipe.silent or not recipe.model or recipe.alone:
        raise OptionError(f"method {method!r} asks people for no features or no links, so there is nothing to split")
    pairs = link_pairs(link_option, links)
    if pairs and links == _PUBLIC:
        raise OptionError("--link-option is of private links: leave it out, or say --links")
    asked = Asked(
        recipe=recipe,
        mechanism=recipe.choose(mechanism),
        options=options,
        labels="" if labels == _PUBLIC else labels,
        links="" if links == _PUBLIC else links,
        link_options=tuple(pairs.items()),
    )
    names, totals = words("--dataset", dataset), numbers("--epsilon", epsilon)
    chosen = choose_params(
        params, names[0], seeds=seeds, seed=seed, search_points=search_points, search_seeds=search_seeds,
        search=axes(search), epochs=epochs, model=model,
    )  # fmt: skip
    row = SearchedRow(recipe=recipe, mechanism=asked.mechanism, model=chosen.train.model, drop=bool(asked.labels))
    check_axes(with_axes(SearchParams(), axes(search)), [row])  # the file's may be other rows'
    check_room(output)
    for name in names:
        fetch(name, data)
    graphs = [stand_in(data, name, public=public) for name in names]
    with console.progress(f"split {', '.join(names)}", None, "epochs") as bar:
        found = measure_splits(
            graphs, totals, asked, cut, params=chosen, device=device, resources=machine(None, None, data), progress=bar
        )
    with written(output, lambda folder: write_splits(found, folder, _command())) as files:
        if as_json:
            answer = {"splits": split_rows(found), "files": [str(path) for path in files]}
            console.out.print_json(json.dumps(plain(answer)))
            return
        _show(found, files)


def _command() -> str:
    """Return this command line without where things stand, and how the answer is shown."""
    out, given = [], iter(console.arguments())
    for word in given:
        name, _, value = word.partition("=")
        if name in ("--data", "--output", "-o", "--device"):
            if not value:
                next(given, None)
        elif name not in ("--json", "--quiet", "-q"):
            out.append(word)
    return shlex.join(["ldp", *out])


def _show(found: Splits, files: list[Path]) -> None:
    from graphldp.stages.split import SUMMARY, TRANSFER, summary_rows, transfer_rows

    notes = (
        found.how,
        "total: what is lost about a person's features, her label and any one of her links together; link: the share "
        "of what is lost about one; costs: how many points of accuracy the best split is ahead, run by run",
    )
    rows = summary_rows(found)
    heads = ["link" if name == "relationship" else name for name in SUMMARY]  # for a terminal's width
    console.figures("Splits of a budget: accuracy in percent", heads, rows, notes, text=3, spare=_SPARE)
    moved = transfer_rows(found)
    if moved:
        console.figures("What a split costs on another graph", TRANSFER, moved, (), text=4)
    if files:
        console.note(f"written: {', '.join(str(path) for path in files)}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("split")(split)
