"""How near estimated graphs come to the true one: people's own reports and trusted curators, at one loss of a link."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphldp.adversary.links import attack_reports, pairs_to_guess
from graphldp.client.links import Neighbours, link_mechanism
from graphldp.errors import OptionError
from graphldp.graph import Graph
from graphldp.progress import Progress
from graphldp.randomness import generator
from graphldp.server.link_measures import link_measures
from graphldp.server.links import LinkEstimate, estimate_links, symmetric
from graphldp.trusted import curated

__all__ = ["COLUMNS", "RHO", "LinkRow", "measure_links"]

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
    graph: Graph,
    epsilons: Sequence[float],
    *,
    seeds: int = 3,
    rho: Sequence[float] = RHO,
    root: int = 0,
    progress: Progress | None = None,
) -> list[LinkRow]:
    """Return how near each way comes on a graph at each budget of a relationship: people's own, then curators'."""
    if not graph.edges.size:
        raise OptionError(f"graph {graph.name} has no links, so there is nothing to compare with")
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
