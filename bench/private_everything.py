"""Methods where features, labels and links are all private, at one total: what is lost about a person's features, her
label and any one of her links together. A row that asks for no links, or no features, spends their share on the rest.

    python bench/private_everything.py --total 8 10 14 --dataset cora --seeds 5
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from graphldp.client.links import link_mechanism
from graphldp.stages.files.graphs import read_graph
from graphldp.stages.files.paths import graph_dir
from graphldp.stages.run import run

# method, mechanism, and whether it asks for features and for links
ROWS = (
    ("pooled", "privset", True, True),
    ("blocks-votes", "privset", True, True),
    ("blocks", "null", False, True),
    ("labels", "null", False, True),
    ("votes", "privset", True, True),
    ("lpgnn", "mb", True, True),
    ("base", "mb", True, True),
    ("solitude", "mb", True, True),
    ("hogs", "mb", True, True),
    ("rgnn", "mb", True, True),
    ("mlp", "mb", True, False),
    ("mlp", "privset", True, False),
)
NAMES = {"base": "blink with GCN (base)", "lpgnn": "blink with KProp (lpgnn)", "labels": "label propagation (labels)"}


def main() -> None:
    """Print a table for each total."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="cora")
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--total", type=float, nargs="+", default=[10.0])
    parser.add_argument("--features", type=float, default=1.0, help="epsilon of features")
    parser.add_argument("--label", type=float, default=2.0, help="epsilon of a label; links have the rest")
    parser.add_argument("--links", default="blink")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--points", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[], help="methods")
    given = parser.parse_args()
    nodes = read_graph(graph_dir(given.data, given.dataset)).nodes
    ratio = link_mechanism(given.links, 1.0, nodes).relationship_epsilon
    print("| total | row | features by | features | relationship | label | accuracy |")
    print("| ---: | --- | --- | ---: | ---: | ---: | ---: |")
    for total in given.total:
        for method, mechanism, features, links in ROWS:
            if given.only and method not in given.only:
                continue
            relationship = (total - given.label - given.features * features) if links else 0.0
            epsilon = total - given.label - relationship
            asked: dict[str, Any] = {"labels": "krr", "epsilon_labels": given.label}
            # A row of features alone is asked for no links, whatever is said of them.
            asked |= {"links": given.links, "epsilon_links": relationship / ratio if links else 1.0}
            found = run(
                given.dataset, method, data=given.data, mechanism=mechanism, epsilon=epsilon, seeds=given.seeds,
                search_seeds=1, points=given.points, epochs=300, patience=20, references=False, **asked,
            )  # fmt: skip
            score = found.score
            print(
                f"| {total:g} | {NAMES.get(method, method)} | {mechanism} | "
                f"{epsilon:g} | {relationship:g} | {given.label:g} | "
                f"{score.mean:.1f} [{score.low:.1f}, {score.high:.1f}] |",
                flush=True,
            )


if __name__ == "__main__":
    main()
