"""Command links: how near estimated graphs come to the true one, by mechanism and budget (HeteroRR's Figure 11)."""

from __future__ import annotations

import math
import statistics
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphldp.adversary.links import attack_reports, pairs_to_guess
from graphldp.client.links import Neighbours, link_mechanism
from graphldp.errors import OptionError
from graphldp.graph import Graph
from graphldp.progress import Progress
from graphldp.randomness import generator
from graphldp.server.link_measures import link_measures
from graphldp.server.links import LinkEstimate, estimate_links, symmetric
from graphldp.stages.attack import write_rows
from graphldp.stages.files.artifacts import write_text
from graphldp.stages.files.graphs import read_graph
from graphldp.stages.files.paths import graph_dir
from graphldp.trusted import curated

__all__ = ["COLUMNS", "RHO", "LinkRow", "cells", "markdown", "measure_links", "of_seeds", "write_links"]

# What people run, how the server makes a graph of it, and further options.
_DEVICES: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
    ("rr", "reported", {}),
    ("rr", "hybrid", {}),
    ("dprr", "reported", {}),
    ("blink", "hard", {}),
    ("blink", "hybrid", {}),
    ("blink", "hybrid", {"report": "both"}),
    ("laplace-bits", "top-k", {}),
)
RHO = (0.1, 0.5, 1.0)
COLUMNS = (
    "adjacency_error",
    "density",
    "degree_distance",
    "recall",
    "precision",
    "walk_1",
    "walk_2",
    "walk_3",
    "walk_4",
)
_SEEN = ("density", "degree_distance", "recall", "precision", "walk_1", "walk_2", "walk_4")

_ABOUT = (
    "Every row of an epsilon loses that much about one relationship, whatever its two ends send; a device's epsilon "
    "of a bit stands behind its name. A curator sees every link as it is, so that these rows are for comparison "
    "alone; of EdgeRR a share rho of the links is private, and the others stay. Walks are root mean square distances "
    "of the random walks' chances after 1 to 4 steps (HeteroRR's Figure 11, which prints no numbers): lower is nearer, "
    "and what is above `nothing`, a graph without links, is worse than no answer. Attack is the best attack's "
    "advantage on one relationship."
)

_Make = Callable[[int], tuple[LinkEstimate, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRow:
    """How near one way of making a graph comes.

    Attributes:
        epsilon: what is lost about one relationship, in every row of that number alike.
        row: the way.
        trust: `nobody`, or a `curator` who sees all links.
        measures: means over the seeds, by name.
        advantage: of the best attack on the reports; NaN where there are none.
        why: why there is no number.
    """

    dataset: str
    epsilon: float
    row: str
    trust: str
    measures: Mapping[str, float]
    advantage: float = math.nan
    why: str = ""


def measure_links(
    dataset: str,
    epsilons: Sequence[float],
    *,
    data: Path,
    seeds: int = 3,
    rho: Sequence[float] = RHO,
    root: int = 0,
    progress: Progress | None = None,
) -> list[LinkRow]:
    """Return how near each way comes on a graph at each budget of a relationship: people's own, then curators'."""
    graph = read_graph(graph_dir(data, dataset), features=False)
    if not graph.edges.size:
        raise OptionError(f"graph {dataset} has no links, so there is nothing to compare with")
    ways = [(epsilon, *way) for epsilon in epsilons for way in _ways(graph, epsilon, rho, root)]
    out = []
    for count, (epsilon, row, trust, make) in enumerate(ways, start=1):
        out.append(_measured(graph, epsilon, row, trust, make, seeds))
        if progress:
            progress(count, len(ways), f"{row} at epsilon {epsilon:g}")
    return out


def _measured(graph: Graph, epsilon: float, row: str, trust: str, make: _Make, seeds: int) -> LinkRow:
    found, gained = [], []
    try:
        for seed in range(seeds):
            estimate, gain = make(seed)
            found.append(link_measures(estimate, graph.edges))
            gained.append(gain)
    except OptionError as error:  # at this budget the mechanism would report more than fits
        return LinkRow(dataset=graph.name, epsilon=epsilon, row=row, trust=trust, measures={}, why=str(error))
    means = {name: statistics.fmean(one[name] for one in found) for name in COLUMNS}
    gain = statistics.fmean(gained)
    return LinkRow(dataset=graph.name, epsilon=epsilon, row=row, trust=trust, measures=means, advantage=gain)


def _ways(graph: Graph, epsilon: float, rho: Sequence[float], root: int) -> Iterator[tuple[str, str, _Make]]:
    """Yield each way's name, whom it trusts, and what makes its graph of a seed, with the attack's advantage."""
    edges, nodes = np.asarray(graph.edges), graph.nodes
    lists = Neighbours.of_edges(edges, nodes)
    none = LinkEstimate(adjacency=symmetric(np.empty(0, np.int64), np.empty(0), nodes))
    yield "nothing", "nobody", lambda seed: (none, 0.0)
    for name, way, options in _DEVICES:
        whole = link_mechanism(name, 1.0, nodes, **options).relationship_epsilon
        device = link_mechanism(name, epsilon / whole, nodes, **options)

        def told(seed: int, device: Any = device, way: str = way) -> tuple[LinkEstimate, float]:
            sent = device.perturb(
                lists, generator(root, "links", graph.name, device.name, device.report, epsilon, seed)
            )
            pairs, truth = pairs_to_guess(lists, generator(root, "pairs", graph.name, seed))
            return estimate_links(sent, way), attack_reports(sent, lists, pairs, truth).advantage

        yield f"{name} {way}{' both' if options else ''} ({device.epsilon:.3g} a bit)", "nobody", told
    curators = [("edgerand", {}), ("lapgraph", {}), ("privhrg", {}), *(("edgerr", {"rho": one}) for one in rho)]
    for name, given in curators:
        label = f"{name}, rho {given['rho']:g}" if given else name

        def made(seed: int, name: str = name, given: Any = given, label: str = label) -> tuple[LinkEstimate, float]:
            source = generator(root, "links", graph.name, label, epsilon, seed)
            return curated(name, edges, nodes, epsilon, source, given), math.nan

        yield label, "curator", made


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
    return "\n".join(text) + "\n"


def write_links(rows: Sequence[LinkRow], folder: Path, command: str, seeds: int) -> list[Path]:
    """Write all measures as CSV, a page, and for each graph a figure of the walks' distances by hops."""
    from graphldp.stages.pages.docs_figures import walks_figure

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
    return out


def _walks(rows: Sequence[LinkRow], epsilon: float) -> dict[str, NDArray[np.float64]]:
    """Return the distances after each number of steps: of EdgeRR and what its paper compares it with."""
    own = ("edgerand", "lapgraph", "privhrg", "edgerr", "nothing", "blink hybrid (")
    return {
        row.row.partition(" (")[0]: np.array([row.measures[f"walk_{hop}"] for hop in range(1, 5)])
        for row in rows
        if row.epsilon == epsilon and row.row.startswith(own)
    }
