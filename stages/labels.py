"""Command labels: how often people's labels are known, as they were sent and by what the server makes of them."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from graphldp.adversary.label_readings import LabelReading, read_labels
from graphldp.errors import OptionError
from graphldp.evaluation import Confidence, Interval, mean_interval
from graphldp.experiment.options import Further, Settings, check_settings
from graphldp.experiment.people import split_of
from graphldp.experiment.server_view import server_view_of
from graphldp.graph import Graph
from graphldp.progress import Progress
from graphldp.stages.attack import percent, write_rows
from graphldp.stages.files.artifacts import write_text
from graphldp.stages.files.graphs import read_graph
from graphldp.stages.files.paths import graph_dir

__all__ = ["DEPTHS", "HEADS", "LabelRow", "cells", "labels", "markdown", "spoken", "write_labels"]

DEPTHS = (1, 2, 4, 8)
_ABOUT = (
    "Labels of the training and validation part are reported by krr; the share of the training part whose label is "
    "known, in percent, with an interval of 95 % over seeds. `as sent` is before the server does anything, and the "
    "rest after. `at most` is what epsilon allows any guess from a person's own answer, on average; `propagated` (what "
    "Drop learns from, K steps) and `frequencies` (RGNN) read neighbours' answers, too, which no one person's epsilon "
    "bounds."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRow:
    """One way of reading labels at one budget.

    Attributes:
        dataset: the graph.
        epsilon: of a label.
        row: the way.
        right: the share of labels that is known; an interval over the seeds.
        bound: the most that epsilon allows of a person's own answer; None where others' are read.
    """

    dataset: str
    epsilon: float
    row: str
    right: Interval
    bound: float | None


def labels(
    dataset: str,
    epsilons: Sequence[float],
    further: Further,
    *,
    data: Path,
    seeds: int = 5,
    root: int = 0,
    progress: Progress | None = None,
    say: Callable[[str], None] | None = None,
) -> list[LabelRow]:
    """Return how often each way knows the labels of a stored graph at each budget.

    `further` says how links are reported; `say` is told how many that will be, before anybody is asked.
    """
    graph = read_graph(graph_dir(data, dataset), features=False)
    if not graph.classes:
        raise OptionError(f"graph {graph.name} has no classes, so there is no label to know; take one that has")
    out: list[LabelRow] = []
    for count, epsilon in enumerate(epsilons, start=1):
        asked = replace(further, labels="krr", epsilon_labels=epsilon)
        settings = Settings(seed=root, seeds=seeds, further=asked)
        check_settings(settings)
        forecast = server_view_of(graph, settings).forecast()
        if say and forecast and count == 1:
            say(forecast)
        out += _rows(graph, settings)
        if progress:
            progress(count, len(epsilons), f"epsilon {epsilon:g}")
    return out


def _rows(graph: Graph, settings: Settings) -> list[LabelRow]:
    view, found = server_view_of(graph, settings), dict[str, list[LabelReading]]()
    question = view.label_question
    assert question is not None
    for seed in range(settings.seeds):
        split = split_of(graph, settings, seed)
        for one in read_labels(question, view.known(seed), split, graph.labels, DEPTHS):
            found.setdefault(one.name, []).append(one)
    return [
        LabelRow(
            dataset=graph.name,
            epsilon=question.epsilon,
            row=name,
            right=mean_interval(np.array([one.right for one in ones]), Confidence()).within(0.0, 1.0),
            bound=None if ones[0].bound is None else statistics.fmean(one.bound for one in ones if one.bound),
        )
        for name, ones in found.items()
    ]


HEADS = ("epsilon", "row", "right", "at most")


def cells(row: LabelRow) -> list[str]:
    """Return a row as a table shows it, in percent."""
    right = row.right
    known = f" [{percent(right.low)}, {percent(right.high)}]" if right.known else ""
    return [f"{row.epsilon:g}", row.row, percent(right.mean) + known, "" if row.bound is None else percent(row.bound)]


def spoken(seeds: int, further: Further) -> str:
    """Return what numbers are of, in words."""
    links = f"links by {further.links} at {further.epsilon_links:g} a bit" if further.private_links else "links public"
    return f"{seeds} seed{'s' if seeds > 1 else ''}, {links}"


def markdown(rows: Sequence[LabelRow], command: str, how: str) -> str:
    """Return the page: what is counted, and a table for each graph."""
    text = ["# How often a label is known", "", *textwrap.wrap(f"`{command}`: {how}. {_ABOUT}", 120)]
    for dataset in dict.fromkeys(row.dataset for row in rows):
        text += ["", f"## {dataset}", "", "| " + " | ".join(HEADS) + " |", "| ---: | --- | ---: | ---: |"]
        text += ["| " + " | ".join(cells(row)) + " |" for row in rows if row.dataset == dataset]
        text += ["", f"![labels known on {dataset}](labels-{dataset}.svg)"]
    return "\n".join(text) + "\n"


def write_labels(rows: Sequence[LabelRow], folder: Path, command: str, how: str) -> list[Path]:
    """Write all rows as CSV, a page, and of each graph a figure against epsilon."""
    from graphldp.stages.pages.docs_figures import labels_figure

    table = [
        {
            "dataset": row.dataset,
            "epsilon": row.epsilon,
            "row": row.row,
            **{name: getattr(row.right, part) for name, part in (("right", "mean"), ("low", "low"), ("high", "high"))},
            "bound": float("nan") if row.bound is None else row.bound,
        }
        for row in rows
    ]
    out = [folder / "labels.csv", folder / "labels.md"]
    write_rows(out[0], table)
    write_text(out[1], markdown(rows, command, how))
    for dataset in dict.fromkeys(row.dataset for row in rows):
        own = [row for row in rows if row.dataset == dataset]
        names = dict.fromkeys(row.row for row in own)
        lines = {name: [100 * row.right.mean for row in own if row.row == name] for name in names}
        lines["at most, of one answer"] = [100 * row.bound for row in own if row.row == "as sent" and row.bound]
        out.append(folder / f"labels-{dataset}.svg")
        labels_figure(list(dict.fromkeys(row.epsilon for row in own)), lines, out[-1])
    return out
