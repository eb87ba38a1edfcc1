"""`ldp audit`: whether mechanisms keep their privacy claims, ours or anybody's."""

from __future__ import annotations

import json
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.markup import escape
from rich.table import Table

from graphldp.cli.console import figures, fitted, left_out, note, out, progress
from graphldp.cli.lists import numbers
from graphldp.cli.options import AsJson, Seed, folder_option
from graphldp.cli.output import check_room, written
from graphldp.cli.processes import workers
from graphldp.cli.settings import Settings, of_mechanism, parse

if TYPE_CHECKING:
    from graphldp.audit import Audit, AuditOptions, BlackBoxOptions

__all__ = ["register"]

# What a narrow terminal goes without, the first of them first: never a row's name, its budget, its loss or the verdict.
_SPARE = ("var mean", "var max", "bias", "bits", "enumer.", "fit p", "noticed", "claimed", "lower b.")
_FAILED = 1  # the exit code of a claim that fails without being marked


def _complete(incomplete: str) -> list[str]:
    from graphldp.audit.subject import subject_names
    from graphldp.trusted import CURATORS

    return [name for name in (*subject_names(), *CURATORS) if name.startswith(incomplete)]


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("audit")(audit)


def audit(
    mechanisms: Annotated[
        list[str] | None,
        typer.Argument(
            help="Which mechanisms, or vote, rounds, survey; or trusted curators: edgerand, edgerr, lapgraph, privhrg. "
            "Everything but curators if none is named.",
            autocompletion=_complete,
        ),
    ] = None,
    epsilon: Annotated[
        list[str] | None,
        typer.Option("--epsilon", "-e", help="A budget; several with commas.", show_default="0.01,0.1,1,5,10"),
    ] = None,
    dimensions: Annotated[
        int | None, typer.Option("--dimensions", help="Features of a node.", show_default="8, or 1 with --module")
    ] = None,
    samples: Annotated[
        int | None, typer.Option("--samples", help="Reports per test.", show_default="60000, or 40000 with --module")
    ] = None,
    seed: Seed = 0,
    settings: Settings = None,
    output: Annotated[Path | None, folder_option("Folder to write audit.json, audit.md and privacy.md into.")] = None,
    module: Annotated[
        str | None,
        typer.Option(
            "--module",
            help="FILE.py:FUNCTION: audit a function (x, epsilon, rng) -> report as a black box. FILE.py alone audits "
            "all functions that its AUDIT names.",
            show_default=False,
        ),
    ] = None,
    prop: Annotated[
        str | None,
        typer.Option(
            "--property",
            help="With --module: privacy, unbiased, same-law, gaussian or soft-threshold.",
            show_default="privacy",
        ),
    ] = None,
    low: Annotated[float, typer.Option("--low", help="Lower end of the range of a feature, or of an input.")] = -1.0,
    high: Annotated[float, typer.Option("--high", help="Upper end of that range.")] = 1.0,
    people: Annotated[
        int, typer.Option("--people", help="With --module: how many people's records one call is given, a row each.")
    ] = 1,
    inputs: Annotated[
        str | None,
        typer.Option("--inputs", help="With --module: the inputs to try, as JSON, for example '[1, 2, 3]'."),
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(
            "--processes", help="Share the rows between so many processes.", min=1, show_default="one for each core"
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check privacy claims: exact loss, goodness of fit, a lower bound from samples, and a verdict.

    Exit code 1 if a claim fails that the mechanism itself does not mark as failing; every `--module` claim counts.
    `no power` is no failure: the tests could not have seen one, and the table says what it would take.
    """
    from graphldp.trusted import CURATORS

    budgets = numbers("--epsilon", epsilon or [])
    curators = [name for name in mechanisms or () if name in CURATORS]
    if curators and module is None:
        _refuse_stray("mechanisms without a curator", dimensions=dimensions, set=settings, output=output)
        if len(curators) < len(mechanisms or ()):
            raise typer.BadParameter("curators are audited apart from mechanisms of people's own: name either")
        _curators(curators, budgets, samples, seed, as_json=as_json)
        return
    if module is None:
        given = {"property": prop, "inputs": inputs, "people": people if people != 1 else None}
        _refuse_stray("--module FILE.py:FUNCTION", **given)
        from graphldp.audit import AuditOptions

        sizes = {"dimensions": dimensions, "samples": samples}
        ours = AuditOptions(
            seed=seed,
            low=low,
            high=high,
            options=of_mechanism(parse(settings)),
            **{key: value for key, value in sizes.items() if value is not None},
        )
        _ours(list(mechanisms or []), budgets, ours, output, processes, as_json=as_json)
        return
    from graphldp.audit import BlackBoxOptions

    _refuse_stray("a registered mechanism: leave --module out", set=settings, output=output, processes=processes)
    if mechanisms or len(budgets) > 1:
        raise typer.BadParameter("--module audits one file at one --epsilon, and no registered mechanism")
    sizes = {"dimensions": dimensions, "samples": samples}
    options = BlackBoxOptions(
        low=low,
        high=high,
        people=people,
        seed=seed,
        inputs=_inputs(inputs),
        **{key: value for key, value in sizes.items() if value is not None},
    )
    _theirs(module, budgets[0] if budgets else None, options, prop, as_json=as_json)


def _ours(
    mechanisms: list[str],
    epsilons: list[float],
    options: AuditOptions,
    output: Path | None,
    processes: int | None,
    *,
    as_json: bool,
) -> None:
    from graphldp.jsonable import plain
    from graphldp.stages.audit import audit_mechanisms, problem_lines, table_json, write_audit

    if options.options and len(mechanisms) != 1:
        raise typer.BadParameter("--set goes with one mechanism: each has options of its own")
    check_room(output)
    with progress("audit", None, "rows") as bar:
        found = audit_mechanisms(mechanisms, epsilons, options, bar, workers(processes))
    with written(output, lambda folder: write_audit(found, folder)) as files:
        if as_json:
            typer.echo(json.dumps(plain(table_json(found)), indent=2, sort_keys=True, ensure_ascii=False))
        else:
            table, gone = fitted(partial(_table, found), _SPARE)
            out.print(table)
            left_out(gone)
            for line in problem_lines(found):
                out.print(line, markup=False, soft_wrap=True)
            for _, _, reason in found.refused:
                out.print(f"refused: {reason}", markup=False, soft_wrap=True)
        if files:
            note(f"wrote {', '.join(str(path) for path in files)}")
    if found.fails:
        raise typer.Exit(_FAILED)


def _curators(names: list[str], epsilons: list[float], samples: int | None, seed: int, *, as_json: bool) -> None:
    from graphldp.stages.audit_curators import BUDGETS, HEADS, SAMPLES, audit_curators, cells
    from graphldp.trusted import CAVEAT

    with progress("audit", None, "rows") as bar:
        rows = audit_curators(names, epsilons or BUDGETS, samples=samples or SAMPLES, seed=seed, progress=bar)
    if as_json:
        typer.echo(json.dumps({"curators": [row.as_json() for row in rows]}, indent=2, sort_keys=True))
    else:
        notes = [
            "a bound above epsilon convicts, one below proves nothing",
            *([CAVEAT] if any(r.caveat for r in rows) else []),
        ]
        title = f"Trusted curators: graphs of five people, {rows[0].samples:,} of either kind"
        figures(title, list(HEADS), [cells(row) for row in rows], notes, text=1)
    if any(row.fails for row in rows):
        raise typer.Exit(_FAILED)


def _theirs(target: str, epsilon: float | None, options: BlackBoxOptions, prop: str | None, *, as_json: bool) -> None:
    from graphldp.jsonable import plain
    from graphldp.stages.audit import audit_file, finding_json

    with progress("audit", None, "steps") as bar:
        findings = audit_file(target, epsilon, options, bar, property=prop)
    if as_json:
        typer.echo(json.dumps(plain(finding_json(findings)), indent=2, sort_keys=True, ensure_ascii=False))
    else:
        for finding in findings:
            out.print(f"{finding.name}: {finding.verdict}", markup=False, soft_wrap=True)
    if not all(finding.keeps for finding in findings):
        raise typer.Exit(_FAILED)


def _table(audit: Audit, without: Collection[str] = ()) -> Table:
    from graphldp.stages.audit import cells, samples_text

    options = audit.options
    table = Table(
        title=f"{options.dimensions} features a node in [{options.low:g}, {options.high:g}], "
        f"{samples_text(options)} reports a test, seed {options.seed}",
        title_justify="left",
        caption="lower bound: from samples, 95 % for all rows at once. fit p: of the sampler against its law. "
        "noticed: the factor on the budget that the samples show",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
    )
    names = (
        "mechanism",
        "eps",
        "claimed",
        "exact",
        "enumer.",
        "lower b.",
        "fit p",
        "var max",
        "var mean",
        "bias",
        "bits",
        "noticed",
        "verdict",
    )
    shown = [place for place, name in enumerate(names) if name not in without]
    for place in shown:
        left = names[place] in ("mechanism", "verdict")
        table.add_column(names[place], justify="left" if left else "right", no_wrap=True)
    last = ""
    for row in audit.rows:
        if last and row.mechanism != last:
            table.add_section()
        texts = [escape(cell.replace("**", "")) for cell in cells(row)]
        style = None if row.keeps else "yellow" if row.marked or row.open else "bold red"
        texts[0] = texts[0] if row.mechanism != last else ""
        table.add_row(*(texts[place] for place in shown), style=style)
        last = row.mechanism
    return table


def _inputs(text: str | None) -> tuple[Any, ...]:
    if text is None:
        return ()
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise typer.BadParameter(f"--inputs must be a JSON list such as '[1, 2, 3]', got {text!r}") from error
    if not isinstance(values, list) or len(values) < 2:
        raise typer.BadParameter(f"--inputs must be a JSON list of at least two inputs, got {text!r}")
    import numpy as np

    return tuple(np.array(value, dtype=float) if isinstance(value, list) else value for value in values)


def _refuse_stray(owner: str, **options: object) -> None:
    for name, value in options.items():
        if value is not None:
            raise typer.BadParameter(f"--{name} belongs to {owner}")
