"""What `frontier` is worth by the rule that chooses between the floor, votes, and votes beside the floor.

    python bench/choosing.py                                  # two roots that no table has; about 20 minutes
    python bench/choosing.py --experiment inductive --root 7  # one experiment's cells at another root
    python bench/choosing.py --json FILE                      # and every candidate's values, a line a cell

The cells are those of `frontier` in the experiments inductive, dials and label-rates, with other splits, reports and
synthetic graphs. In each cell every candidate is trained, also where `frontier` would not try it, and scored on the
validation and the test nodes of its final runs; then each rule chooses by the former and is worth the latter.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from graphldp import methods
from graphldp.datasets.synthetic import Synthetic, synthetic_graph
from graphldp.experiment.cell import _Cell, _leader
from graphldp.experiment.options import SearchParams, Settings, TrainParams
from graphldp.experiment.plan import Devices, plan_of
from graphldp.experiment.resources import Resources
from graphldp.experiment.result import CellResult
from graphldp.graph import Graph
from graphldp.stages.files.floors import Floors
from graphldp.stages.files.graphs import read_graph
from graphldp.stages.files.paths import graph_dir

SEARCH: dict[str, Any] = {
    "learning_rate": (0.01,),
    "weight_decay": (0.001, 0.01, 0.03, 0.1),
    "dropout": (0.25, 0.75),
    "steps": (0, 2, 4, 8, 16),
}
FEW: dict[str, Any] = {"validation_fraction": "half"}


class _All(_Cell):
    """A cell that tries votes beside the floor wherever they count."""

    __slots__ = ()

    def _unasked(self, beside: Any) -> None:
        return None

    def _asking(self, best: Any) -> list[int]:
        return []


def cells(experiment: str, data: Path, root: int) -> Iterator[tuple[str, Graph, Settings, tuple[float, ...]]]:
    """Yield where a cell is, its graph, how it is searched and trained, and its budgets."""
    if experiment == "dials":
        search = SearchParams(points=3, seeds=1, **{**SEARCH, "weight_decay": (0.001, 0.01), "steps": (0, 2, 4)})
        train = TrainParams(train_fraction=0.2, epochs=300, patience=30, **FEW)
        for structure, features in itertools.product((0, 0.25, 0.5, 0.75), (0.3, 0.6, 0.9)):
            options = Synthetic(nodes=1000, dimensions=32, words=8, structure=structure, features=features, seed=root)
            graph = synthetic_graph(options, name="synthetic", provenance={})
            params = Settings(seed=root, seeds=5, search=search, train=train)
            yield f"structure {structure:g}, features {features:g}", graph, params, (1, 4)
        return
    for dataset in ("cora", "citeseer"):
        graph = read_graph(graph_dir(data, dataset))
        if experiment == "inductive":
            search, trains = SearchParams(points=8, seeds=2, **SEARCH), [TrainParams(split="inductive")]
        else:
            search = SearchParams(points=4, seeds=2, **SEARCH)
            trains = [TrainParams(train_fraction=share, **FEW) for share in (0.01, 0.05, 0.2, 0.5)]
        for train in trains:
            where = dataset if experiment == "inductive" else f"{dataset}, {100 * float(train.train_fraction):g} %"
            yield where, graph, Settings(seed=root, seeds=10, search=search, train=train), (1, 3, 5)


def candidates(graph: Graph, params: Settings, epsilon: float, resources: Resources) -> dict[str, dict[str, Any]]:
    """Return what each candidate reaches in its final runs, in percent, by the learner's name; the floor's first."""
    recipe = methods.method("frontier")
    devices = Devices(graph=graph, recipe=recipe, mechanism="privset", epsilon=epsilon, options={}, params=params)
    plan = plan_of(devices, params)
    cell = _All(graph, plan, params, "cpu", resources, None)
    cell.try_all()
    met = cell.met()
    scores = cell._scores(met)
    floor = cell._floor(scores, met)
    found = {}
    for place in [floor, *(place for place in range(len(met)) if not plan.setups[met[place]].public)]:
        index = met[place]
        result = CellResult(rows=cell.tried, chosen={}, setup=plan.setups[index], records=[])
        rows, _ = cell._finish(index, result, None)
        found[cell._of(index).name] = {
            "validation": (100 * scores[place]).tolist(),
            "test": [100 * row["test_accuracy"] for row in rows],
            "heard": place == floor or cell._heard(plan.setups[index]),
        }
    return found


def _choice(found: Mapping[str, Any], caution: float, *, beside: bool, always: bool = False) -> str:
    """Return which candidate a rule takes: with how much caution, and whether votes beside the floor are tried.

    If so, then `always`, or where votes are not clearly ahead by themselves.
    """
    names = [name for name in found if found[name]["heard"]]
    scores = np.array([found[name]["validation"] for name in names])
    asking = [place for place in range(1, len(names)) if "+" not in names[place]]
    if beside and (always or _leader(scores, 0, asking) == 0):
        asking = list(range(1, len(names)))
    return names[_leader(scores, 0, asking, caution)]


RULES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "votes alone, ahead by a standard error": lambda found: _choice(found, 1, beside=False),
    "the better one, ahead by a standard error": lambda found: _choice(found, 1, beside=True, always=True),
    "the better one, ahead on average": lambda found: _choice(found, 0, beside=True, always=True),
    "beside the floor where votes are not clearly ahead": lambda found: _choice(found, 0, beside=True),
    "there, and where the floor is cheap to train again": lambda found: _choice(
        found, 0, beside=True, always=not methods.method("frontier").learner(next(iter(found))).propagates
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--experiment", action="append", choices=("inductive", "dials", "label-rates"))
    parser.add_argument("--root", type=int, action="append", help="of splits, reports and synthetic graphs")
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--json", type=Path, help="a file for what every candidate reaches")
    given = parser.parse_args()
    torch.set_num_threads(1)
    lines = []
    for root, experiment in itertools.product(
        given.root or (100, 101), given.experiment or ("inductive", "dials", "label-rates")
    ):
        for where, graph, params, epsilons in cells(experiment, given.data, root):
            with tempfile.TemporaryDirectory() as folder:
                resources = Resources(memo=Floors(Path(folder)))
                for epsilon in epsilons:
                    found = candidates(graph, params, epsilon, resources)
                    lines.append({"cell": f"{experiment}: {where}", "epsilon": epsilon, "root": root, "found": found})
                    if given.json is not None:
                        with given.json.open("a", encoding="utf-8") as handle:
                            handle.write(json.dumps(lines[-1]) + "\n")
    print("| rule | gain over the floor, mean | worst cell | best cell | cells not at the floor |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, rule in RULES.items():
        gains = []
        for line in lines:
            found = line["found"]
            floor = next(iter(found))
            gains.append(np.mean(found[rule(found)]["test"]) - np.mean(found[floor]["test"]))
        worst, best, moved = min(gains), max(gains), sum(gain != 0 for gain in gains)
        print(f"| {name} | {np.mean(gains):+.2f} | {worst:+.1f} | {best:+.1f} | {moved} |")
    print(f"{len(lines)} cells; in points of accuracy on the test nodes.")


if __name__ == "__main__":
    main()
