"""How near estimated graphs come to the true one on Cora, by mechanism and budget: HeteroRR's figure 11, and more.

    python bench/link_quality.py                       # epsilon 1 of a relationship, as in the figure
    python bench/link_quality.py --epsilon 1 4 8       # several budgets
    python bench/link_quality.py --dataset citeseer --seeds 5

Every row spends the same epsilon on one relationship, whatever its two ends send; a device's epsilon of a bit follows.
Rows below the line need a curator who sees every link. EdgeRR leaves the links of public people as they are, and is
named by the share rho of links that are private. Walks are the root mean square distances of the random walks' chances
after 1 to 4 steps; lower is nearer. `nothing` is a graph without links: what is above it is worse than no answer.
The data are those of data/graphs; `ldp download` makes them.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from graphldp.adversary.links import attack_reports, pairs_to_guess
from graphldp.client.links import Neighbours, link_mechanism
from graphldp.errors import OptionError
from graphldp.randomness import generator
from graphldp.server.link_measures import link_measures
from graphldp.server.links import LinkEstimate, estimate_links, symmetric
from graphldp.stages.files.graphs import read_graph
from graphldp.trusted import edge_rr, edgerand, lapgraph, priv_hrg, private_people

DEVICES = (
    ("rr", "reported", {}),
    ("rr", "hybrid", {}),
    ("dprr", "reported", {}),
    ("blink", "hard", {}),
    ("blink", "hybrid", {}),
    ("blink", "hybrid", {"report": "both"}),
    ("laplace-bits", "top-k", {}),
)
SHOWN = ("density", "degree_distance", "recall", "precision", "walk_1", "walk_2", "walk_3", "walk_4")
RHO = (0.1, 0.5)


def device_of(name: str, epsilon: float, nodes: int, options: dict[str, Any]) -> Any:
    """Return the mechanism of which both ends together lose epsilon of a relationship."""
    one = link_mechanism(name, 1.0, nodes, **options)
    return link_mechanism(name, epsilon / one.relationship_epsilon, nodes, **options)


def rows(
    edges: np.ndarray, nodes: int, epsilon: float
) -> Iterator[tuple[str, Callable[[int], tuple[LinkEstimate, float]]]]:
    """Yield every row's name, and what makes its graph of a seed, with the best attack's advantage."""
    lists = Neighbours.of_edges(edges, nodes)
    none = LinkEstimate(adjacency=symmetric(np.empty(0, np.int64), np.empty(0), nodes))
    yield "nothing", lambda seed: (none, 0.0)
    for name, way, options in DEVICES:
        device = device_of(name, epsilon, nodes, options)

        def of_device(seed: int, device: Any = device, way: str = way) -> tuple[LinkEstimate, float]:
            sent = device.perturb(lists, generator(seed, "quality", device.name, device.report, epsilon))
            pairs, truth = pairs_to_guess(lists, generator(seed, "pairs"))
            return estimate_links(sent, way), attack_reports(sent, lists, pairs, truth).advantage

        yield f"{name} {way}{' both' if options else ''} ({device.epsilon:.3g} a bit)", of_device
    curators: dict[str, Callable[..., LinkEstimate]] = {"edgerand": edgerand, "lapgraph": lapgraph, "privhrg": priv_hrg}
    for name, make in curators.items():
        yield (
            f"curator: {name}",
            lambda seed, make=make, name=name: (make(edges, nodes, epsilon, generator(seed, name, epsilon)), np.nan),
        )
    for rho in RHO:

        def of_rho(seed: int, rho: float = rho) -> tuple[LinkEstimate, float]:
            private = private_people(edges, nodes, rho, generator(seed, "private", rho))
            return edge_rr(edges, nodes, epsilon, generator(seed, "edgerr", epsilon), private=private), np.nan

        yield f"curator: edgerr, rho {rho:g}", of_rho


def main() -> None:
    """Print a table for each budget."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--dataset", default="cora")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data", type=Path, default=Path("data"))
    options = parser.parse_args()
    graph = read_graph(options.data / "graphs" / options.dataset)
    for epsilon in options.epsilon:
        print(f"{options.dataset}, epsilon {epsilon:g} of a relationship, means of {options.seeds} seeds")
        print("| row | " + " | ".join(SHOWN) + " | attack's advantage |\n| --- |" + " ---: |" * (len(SHOWN) + 1))
        for name, make in rows(np.asarray(graph.edges), graph.nodes, epsilon):
            told, gained = [], []
            try:
                for seed in range(options.seeds):
                    found, gain = make(seed)
                    told.append(link_measures(found, graph.edges))
                    gained.append(gain)
            except OptionError as error:
                print(f"| {name} | refused: {error} |")
                continue
            means = [statistics.fmean(one[key] for one in told) for key in SHOWN]
            attack = statistics.fmean(gained)
            print(f"| {name} | " + " | ".join(f"{v:.4f}" for v in means) + f" | {attack:.2f} |", flush=True)


if __name__ == "__main__":
    main()
