"""`ldp list KIND`: what is registered, with one line for each entry."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from rich.table import Table

from graphldp.cli.console import note, out
from graphldp.cli.options import DATA, AsJson, Data

__all__ = ["Kind", "register"]

Row: TypeAlias = dict[str, Any]


class Kind(StrEnum):
    """What can be listed."""

    DATASETS = "datasets"
    DATA = "data"
    MECHANISMS = "mechanisms"
    METHODS = "methods"
    FILTERS = "filters"
    EVIDENCE = "evidence"
    SCORERS = "scorers"
    ESTIMATORS = "estimators"
    MODELS = "models"
    TASKS = "tasks"


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("list")(list_entries)


def list_entries(
    kind: Annotated[Kind, typer.Argument(help="What to list.", show_default=False)],
    data: Data = DATA,
    as_json: AsJson = False,
) -> None:
    """List what there is of a kind, or the graphs in the data folder (`data`).

    Filters, evidence and scorers are what methods are made of; estimators turn reports on links into a graph.
    """
    rows = _stored(data) if kind is Kind.DATA else _ROWS[kind]()
    if as_json:
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
    elif rows:
        narrow = out.width < _WIDE.get(kind, 0)
        out.print(_table([{key: row[key] for key in row if not (narrow and key == "description")} for row in rows]))
        if narrow:
            note(f"what each is: in a terminal of {_WIDE[kind]} columns, or with --json")
    else:
        note(f"no graphs in {data}; `ldp download` and `ldp import` make them")


def _datasets() -> list[Row]:
    from graphldp.datasets import names, spec

    rows = []
    for name in names():
        entry = spec(name)
        known = entry.expected
        rows.append(
            {
                "name": name,
                "nodes": known.nodes,
                "edges": known.edges,
                "features": known.dimensions,
                "classes": known.classes,
                "range": f"{entry.low:g}..{entry.high:g}",
                "from": entry.source,
                "description": entry.description,
            }
        )
    return rows


def _stored(data: Path) -> list[Row]:
    from graphldp.errors import ArtifactError
    from graphldp.stages.download import made_from
    from graphldp.stages.files.graphs import read_graph_meta
    from graphldp.stages.files.paths import graph_dir, stored_graphs

    facts = {"nodes": "n", "edges": "edges", "features": "d", "classes": "classes"}
    rows: list[Row] = []
    for name in stored_graphs(data):
        try:
            meta = read_graph_meta(graph_dir(data, name))
        except ArtifactError:
            rows.append({"name": name, **dict.fromkeys([*facts, "range"]), "from": "damaged"})
            continue
        counts = {heading: getattr(meta, key) for heading, key in facts.items()}
        rows.append(
            {"name": name, **counts, "range": f"{meta.low:g}..{meta.high:g}", "from": made_from(meta.provenance)}
        )
    return rows


def _mechanisms() -> list[Row]:
    from graphldp.client import lookup, names
    from graphldp.client.links import link_names, lookup_link
    from graphldp.trusted import CURATORS

    entries = [(name, lookup(name).kind, lookup(name)) for name in names()]
    entries += [(name, "links", lookup_link(name)) for name in link_names()]
    rows = [{"name": name, "kind": kind, "description": _first_line(entry)} for name, kind, entry in entries]
    return rows + [
        {"name": name, "kind": "curator", "description": f"Trusted with all links, {_gives(entry)}"}
        for name, entry in CURATORS.items()
    ]


def _methods() -> list[Row]:
    from graphldp.methods import method, names

    entries = [method(name) for name in names()]
    return [
        {
            "name": item.name,
            "mechanism": item.mechanism,
            "description": item.summary,
            "paper_grid": "; ".join(f"{key} {', '.join(map(_value, values))}" for key, values in item.grid),
        }
        for item in entries
    ]


def _value(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _models() -> list[Row]:
    from graphldp.learn.models import model, models

    return [{"name": name, "description": _first_line(type(model(name)))} for name in models()]


def _filters() -> list[Row]:
    from graphldp.server.filters import filter_entry, filter_names

    return [{"name": name, "description": filter_entry(name).summary} for name in filter_names()]


def _evidence() -> list[Row]:
    from graphldp.server.evidence import evidence_class, evidence_names

    return [{"name": name, "description": evidence_class(name).summary.rstrip(".")} for name in evidence_names()]


def _scorers() -> list[Row]:
    from graphldp.server.attributes import SCORERS

    return [{"name": name, "description": _first_line(score)} for name, score in SCORERS.items()]


def _estimators() -> list[Row]:
    from graphldp.client.links import link_names
    from graphldp.server.links import ESTIMATORS, link_estimators

    readers = {name: [one for one in link_names() if name in link_estimators(one)] for name in ESTIMATORS}
    return [
        {"name": name, "links": ", ".join(readers[name]), "description": _first_line(estimate)}
        for name, estimate in ESTIMATORS.items()
    ]


def _tasks() -> list[Row]:
    from graphldp.measures import measures_of, tasks

    rows = []
    for one in map(measures_of, tasks()):
        learned = [] if one.learns == ("numbers",) else [one.targets]
        learned += [f"the {one.target.name}"] if one.target else []
        what = f"Learns {' and '.join(learned)}; public is {one.public}"
        rows.append({"name": one.task, "measures": ", ".join(one.names), "description": what})
    return rows


_ROWS: dict[Kind, Callable[[], list[Row]]] = {
    Kind.DATASETS: _datasets,
    Kind.MECHANISMS: _mechanisms,
    Kind.METHODS: _methods,
    Kind.FILTERS: _filters,
    Kind.EVIDENCE: _evidence,
    Kind.SCORERS: _scorers,
    Kind.ESTIMATORS: _estimators,
    Kind.MODELS: _models,
    Kind.TASKS: _tasks,
}


def _gives(entry: object) -> str:
    """Return what a function returns, of a docstring that begins so."""
    return _first_line(entry).replace("Return", "gives", 1)


# From how many columns on a table has room for descriptions beside its numbers.
_WIDE = {Kind.DATASETS: 110}


def _first_line(entry: object) -> str:
    """Return the first sentence of a docstring: every registered class has one."""
    return (inspect.getdoc(entry) or "").partition("\n")[0].rstrip(".")


def _table(rows: list[Row]) -> Table:
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for key in rows[0]:
        number = all(isinstance(row[key], int | None) for row in rows)
        table.add_column(key, justify="right" if number else "left", overflow="fold", no_wrap=key == "name")
    for row in rows:
        table.add_row(*(_cell(value) for value in row.values()))
    return table


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else str(value)
