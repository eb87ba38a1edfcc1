"""`ldp run`: the whole chain in memory, for one cell."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphldp.cli import console
from graphldp.cli.cell import MemoryOptions, fetch
from graphldp.cli.command import classes
from graphldp.cli.options import Epsilon, PairedSeeds
from graphldp.cli.processes import joined, machine
from graphldp.errors import OptionError

if TYPE_CHECKING:
    from graphldp.evaluation import Interval
    from graphldp.experiment.running import RunResult
    from graphldp.stages.grids.params import Params

__all__ = ["register"]


@classes
def run(
    cell: MemoryOptions,
    epsilon: Epsilon,
    seeds: PairedSeeds = None,
    references: Annotated[
        bool, typer.Option("--references/--no-references", help="Also train the floor and the ceiling.")
    ] = True,
) -> None:
    """Perturb, denoise, search, train and score one cell in memory, and print it between its floor and its ceiling.

    The numbers are those that the pipeline would give for the same parameters; nothing is written but the graph, which
    is downloaded first where it is not there, and what the floor's learners have come to, for the next time.
    """
    from graphldp import methods
    from graphldp.evaluation import Confidence
    from graphldp.experiment.plan import Devices
    from graphldp.experiment.running import run_rows
    from graphldp.experiment.server_view import server_view_of
    from graphldp.stages.files.graphs import read_graph
    from graphldp.stages.files.paths import graph_dir

    with joined(cell.processes, cell.device) as processes:
        chosen, mechanism, options, changes = cell.asked(seeds)
        resources = machine(cell.max_memory, processes, cell.data)
        if resources.leads:
            fetch(cell.dataset, cell.data)
        resources.meet()
        recipe = methods.method(cell.method).but(changes)
        if recipe.silent and epsilon != 0:
            raise OptionError(f"method {cell.method!r} asks nobody for anything and spends nothing: say --epsilon 0")
        graph = read_graph(graph_dir(cell.data, cell.dataset))
        with console.progress(f"run {cell.dataset} {cell.method}", None, "epochs") as bar:
            own = Devices(
                graph=graph, recipe=recipe, mechanism=recipe.choose(mechanism), epsilon=epsilon, options=options,
                params=chosen,
            )  # fmt: skip
            found = run_rows(
                own, device=cell.device, resources=resources, references=references, progress=bar,
                confidence=Confidence(level=chosen.evaluate.confidence),
                say=console.note if resources.leads else None,
            )  # fmt: skip
        if resources.leads:
            _show(found, chosen, as_json=cell.as_json)
            # A method that finds links anew learns from another graph than that of the reports alone.
            estimated = "" if recipe.relinks else server_view_of(graph, chosen, recipe).found()
            if estimated:
                console.note(estimated)


def _show(found: RunResult, params: Params, *, as_json: bool) -> None:
    import json

    if as_json:
        console.out.print_json(json.dumps(found.to_dicts()))
        return
    _table(found, params)


def _table(found: RunResult, params: Params) -> None:
    from rich.table import Table

    from graphldp.evaluation import FEW
    from graphldp.experiment.parts import few_tested
    from graphldp.ledger import epsilon_text
    from graphldp.measures import measures_of
    from graphldp.stages.pages.wording import counted

    task = measures_of(params.train.task)
    one = task.headline
    show, change = f"{{:.{one.digits}f}}".format, f"{{:+.{one.digits}f}}".format
    percent = f"{100 * params.evaluate.confidence:g} %"
    interval = f"{percent} interval"
    gains = any(row.gain is not None for row in found.rows)

    def build(without: Collection[str]) -> Table:
        table = Table(title=f"{found.graph.name}: test {one.heading}", title_justify="left", box=None, pad_edge=False)
        names = ("method", "epsilon", "m", "K", one.label, interval, *(["gain over structure"] if gains else []))
        shown = [place for place, name in enumerate(names) if name not in without]
        for place in shown:
            table.add_column(names[place], justify="right" if place else "left", no_wrap=True)
        for row in found.rows:
            mean, gain = row.score, row.gain
            texts = (
                row.name,
                epsilon_text(row.epsilon),
                "" if row.m is None else str(row.m),
                str(row.chosen.get("steps", "")),
                show(mean.mean),
                f"{show(mean.low)} to {show(mean.high)}" if mean.known else "",
                _gain(gain, change),
            )
            table.add_row(*(texts[place] for place in shown))
        return table

    # Never a row's name, its budget, score or gain.
    table, gone = console.fitted(build, ("m", "K", interval))
    console.out.print(table)
    console.left_out(gone)
    for row in found.rows:
        if row.chosen.get("options"):
            chosen = ", ".join(f"{key} {value}" for key, value in row.chosen["options"].items())
            console.note(f"{row.name} chose {chosen}")
        if row.search.get("left_out"):
            console.note(f"{row.name} has no {', '.join(row.search['left_out'])}: searched without")
    few = few_tested(found.graph, params)
    if few:
        console.note(f"warning: {few}")
    if params.seeds < FEW:
        console.note(
            f"warning: {counted(params.seeds, 'run')} each: from {FEW} on an interval says which method is better"
        )
    searched = next(row.search for row in found.rows if row.search)
    console.note(
        f"{counted(params.seeds, 'run')} each; {counted(searched['points'], 'point')} searched on "
        f"{counted(params.search.seeds, 'other seed')}"
        f"{_unusual(searched)}; the budget is of one person's features; "
        + (f"{task.public} are public" if not params.further.asked else found.row.spent.text())
    )
    if params.further.asked:
        facts = params.further.facts()
        told = ", ".join(f"{name} {value}" for name, value in facts.items() if name != "link_options")
        console.note(f"{told}: in every row but the ceiling, which has what is true; no true label chooses anything")


def _gain(gain: Interval | None, change: Callable[[float], str]) -> str:
    if gain is None:
        return ""
    return change(gain.mean) + f" ({change(gain.low)} to {change(gain.high)})" * gain.known


def _unusual(search: Mapping[str, Any]) -> str:
    from graphldp.stages.pages.wording import spoken

    words = spoken(search)
    return f" ({words})" if words else ""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run")(run)
