"""Command links: how near estimated graphs come to the true one, as a table, a page and figures."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphldp.adversary.link_quality import COLUMNS, RHO, LinkRow, measure_links
from graphldp.progress import Progress
from graphldp.stages.attack import write_rows
from graphldp.stages.files.artifacts import write_text
from graphldp.stages.files.graphs import read_graph
from graphldp.stages.files.paths import graph_dir

__all__ = ["RHO", "cells", "links", "markdown", "of_seeds", "write_links"]

_SEEN = ("density", "degree_distance", "recall", "precision", "walk_1", "walk_2", "walk_4")

_DRAWN = {
    "recall": "recall",
    "precision": "precision",
    "adjacency_error": "share of pairs that are wrong",
    "density": "density",
    "degree_distance": "distance of the degrees",
    "walk_2": "distance of walks of two steps",
}
_ABOUT = (
    "Every row of an epsilon loses that much about one relationship, whatever its two ends send; a device's epsilon "
    "of a bit stands behind its name. A curator sees every link as it is, so that these rows are for comparison "
    "alone; of EdgeRR a share rho of the links is private, and the others stay. Walks are root mean square distances "
    "of the random walks' chances after 1 to 4 steps (HeteroRR's Figure 11, which prints no numbers): lower is nearer, "
    "and what is above `nothing`, a graph without links, is worse than no answer. Attack is the best attack's "
    "advantage on one relationship."
)


def links(
    dataset: str,
    epsilons: Sequence[float],
    *,
    data: Path,
    seeds: int = 3,
    rho: Sequence[float] = RHO,
    root: int = 0,
    progress: Progress | None = None,
) -> list[LinkRow]:
    """Return how near each way comes on a stored graph at each budget of a relationship."""
    graph = read_graph(graph_dir(data, dataset), features=False)
    return measure_links(graph, epsilons, seeds=seeds, rho=rho, root=root, progress=progress)


def cells(row: LinkRow) -> list[str]:
    """Return a row as a table shows it."""
    if row.why:
        return [f"{row.epsilon:g}", row.row, row.trust, "refused", *[""] * len(_SEEN)]
    gain = "" if math.isnan(row.advantage) else f"{row.advantage:.2f}"
    return [f"{row.epsilon:g}", row.row, row.trust, *(_number(row.measures[name]) for name in _SEEN), gain]


def of_seeds(seeds: int) -> str:
    """Return what numbers are, in words."""
    return "of one seed" if seeds == 1 else f"means of {seeds} seeds"


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.4f}"  # no link was kept, of which none can be right


HEADS = ("epsilon", "row", "trusts", *_SEEN, "attack")


def markdown(rows: Sequence[LinkRow], command: str, seeds: int) -> str:
    """Return the page: what is compared, and a table for each graph."""
    text = [
        "# How near estimated graphs come to the true one",
        "",
        *textwrap.wrap(f"`{command}`: {of_seeds(seeds)}. {_ABOUT}", 120),
    ]
    for dataset in dict.fromkeys(row.dataset for row in rows):
        text += ["", f"## {dataset}", "", "| " + " | ".join(HEADS) + " |", "| --- | --- | --- |" + " ---: |" * 8]
        text += ["| " + " | ".join(cells(row)) + " |" for row in rows if row.dataset == dataset]
        refused = [f"- {row.row} at {row.epsilon:g}: {row.why}" for row in rows if row.why and row.dataset == dataset]
        text += ["", *refused] if refused else []
        text += ["", f"![distances of random walks on {dataset}](walks-{dataset}.svg)"]
        if len(_budgets(rows, dataset)) > 1:
            text += ["", f"![measures on {dataset} against the budget](measures-{dataset}.svg)"]
    return "\n".join(text) + "\n"


def write_links(rows: Sequence[LinkRow], folder: Path, command: str, seeds: int) -> list[Path]:
    """Write all measures as CSV, a page, and figures for each graph.

    These are the walks' distances by hops, and of several budgets all measures against the budget.
    """
    from graphldp.stages.pages.docs_figures import measures_figure, walks_figure

    table = [
        {"dataset": row.dataset, "epsilon": row.epsilon, "row": row.row, "trust": row.trust}
        | {name: row.measures.get(name, math.nan) for name in COLUMNS}
        | {"attack_advantage": row.advantage, "why": row.why}
        for row in rows
    ]
    out = [folder / "links.csv", folder / "links.md"]
    write_rows(out[0], table)
    write_text(out[1], markdown(rows, command, seeds))
    for dataset in dict.fromkeys(row.dataset for row in rows):
        path = folder / f"walks-{dataset}.svg"
        shown = [row for row in rows if row.dataset == dataset and not row.why]
        walks_figure({epsilon: _walks(shown, epsilon) for epsilon in dict.fromkeys(row.epsilon for row in shown)}, path)
        out.append(path)
        if len(_budgets(rows, dataset)) > 1:
            out.append(folder / f"measures-{dataset}.svg")
            measures_figure(
                _budgets(rows, dataset), _by_budget([row for row in rows if row.dataset == dataset]), out[-1]
            )
    return out


def _budgets(rows: Sequence[LinkRow], dataset: str) -> list[float]:
    """Return the budgets that a graph's rows are of, the smallest first."""
    return sorted({row.epsilon for row in rows if row.dataset == dataset})


def _by_budget(rows: Sequence[LinkRow]) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Return of each measure each way's values, a number for each budget; NaN where it was refused."""
    found = {(row.row.partition(" (")[0], row.epsilon): row.measures for row in rows}
    budgets, ways = sorted({budget for _, budget in found}), dict.fromkeys(name for name, _ in found)
    return {
        title: {way: np.array([found.get((way, budget), {}).get(name, math.nan) for budget in budgets]) for way in ways}
        for name, title in _DRAWN.items()
    }


def _walks(rows: Sequence[LinkRow], epsilon: float) -> dict[str, NDArray[np.float64]]:
    """Return the distances after each number of steps: of EdgeRR and what its paper compares it with."""
    own = ("edgerand", "lapgraph", "privhrg", "edgerr", "nothing", "blink hybrid (")
    return {
        row.row.partition(" (")[0]: np.array([row.measures[f"walk_{hop}"] for hop in range(1, 5)])
        for row in rows
        if row.epsilon == epsilon and row.row.startswith(own)
    }
