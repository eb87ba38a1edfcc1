"""What a cell of `frontier` costs once the floor's learners are there, beside cells of `lpgnn` at the same budget.

    python bench/floors.py                     # the default table's graphs, labels, search and budgets, in memory
    python bench/floors.py --quick             # 60 epochs of the same
    python bench/floors.py --dataset citeseer --train-fraction 0.05 --epsilon 3 --points 4 --search-seeds 2 --seeds 10
    python bench/floors.py --dataset citeseer --split inductive --epsilon 3 5
    python bench/floors.py --json              # one line for a script

For each graph the floor is computed first, into a folder of its own. Then for each budget the cells take turns, and
each has two numbers, in seconds of the processor: what asking people takes (with `dvc repro` that is another stage) and
what learning takes. The ratio is that of learning.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import tempfile
import time
from pathlib import Path
from typing import Any

LIMIT = 1.5  # what would be cheap: times the seconds of `lpgnn`
TABLE = (("cora", 0.5), ("citeseer", 0.05))  # the default table's graphs, and their shares of labels


def measure(given: argparse.Namespace, dataset: str, fraction: float) -> list[dict[str, Any]]:
    """Return what the cells of a graph cost, a mapping for each budget."""
    from graphldp.experiment.options import SearchParams, Settings, TrainParams
    from graphldp.experiment.resources import Resources
    from graphldp.stages.files.floors import Floors
    from graphldp.stages.files.graphs import read_graph
    from graphldp.stages.files.paths import graph_dir

    search = SearchParams(
        points=given.points,
        seeds=given.search_seeds,
        learning_rate=(0.01,),
        weight_decay=(0.001, 0.01, 0.03, 0.1),
        dropout=(0.25, 0.75),
    )
    validates: dict[str, Any] = {} if fraction == 0.5 else {"validation_fraction": "half"}
    train = TrainParams(
        split=given.split, epochs=given.epochs, patience=given.patience, train_fraction=fraction, **validates
    )
    params = Settings(seeds=given.seeds, search=search, train=train)
    graph = read_graph(graph_dir(Path(given.data), dataset))
    found = []
    with tempfile.TemporaryDirectory() as folder:
        resources = Resources(memo=Floors(Path(folder)))
        cost(graph, params, resources, "lpgnn", "mb", 1.0)  # what a process does once
        floor = cost(graph, params, resources, "structure", "null", 0.0)
        for epsilon in given.epsilon:
            rows = (("lpgnn", "mb"), ("lpgnn", "privset"), ("votes", "privset"), ("frontier", "privset"))
            turns = [[cost(graph, params, resources, *row, epsilon) for row in rows] for _ in range(given.turns)]
            least = [min(part, key=lambda one: one["learning"]) for part in zip(*turns, strict=True)]
            cells = {f"{name}, {mechanism}": one for (name, mechanism), one in zip(rows, least, strict=True)}
            learning = {name: one["learning"] for name, one in cells.items()}
            ratios = {
                name: round(learning["frontier, privset"] / seconds, 2)
                for name, seconds in learning.items()
                if name.startswith("lpgnn")
            }
            found.append(
                {
                    "dataset": dataset,
                    "train_fraction": fraction,
                    "epsilon": epsilon,
                    "floor": floor["learning"],
                    "cells": cells,
                    "ratios": ratios,
                }
            )
    return found


def cost(graph: Any, params: Any, resources: Any, name: str, mechanism: str, epsilon: float) -> dict[str, Any]:
    """Return the seconds of the processor that a cell takes to ask and to learn, and which learner it took."""
    from graphldp import methods
    from graphldp.experiment.cell import learn_cell
    from graphldp.experiment.plan import Devices, plan_of

    recipe = methods.method(name)
    start = time.process_time()
    devices = Devices(graph=graph, recipe=recipe, mechanism=mechanism, epsilon=epsilon, options={}, params=params)
    plan = plan_of(devices, params)
    planned = time.process_time()
    said: dict[tuple[str, int], Any] = {}

    def answered(setup: Any) -> Any:
        """Return a setup whose people have answered already, if anybody is asked."""

        def estimate(seed: int) -> Any:
            if (setup.key, seed) not in said:
                said[setup.key, seed] = setup.estimate(seed)
            return said[setup.key, seed]

        beside = None if setup.beside is None else answered(setup.beside)
        return dataclasses.replace(setup, estimate=estimate, beside=beside)

    setups = {id(setup): answered(setup) for setup in plan.setups}
    plan = dataclasses.replace(plan, setups=tuple(setups[id(setup)] for setup in plan.setups))
    asked = [setup for setup in setups.values() if not setup.public][:1]
    for seed in params.draws:
        for setup in asked:
            setup.estimate(seed)
    heard = time.process_time()
    result = learn_cell(graph, plan, params, device="cpu", resources=resources, whole=False)
    done = time.process_time()
    learner = result.chosen.get("options", {}).get("learner", "")
    return {
        "asking": round(heard - planned, 3),
        "learning": round(done - heard + planned - start, 3),
        "learner": learner,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", action="append", help="may be given several times; left out, the default table's")
    parser.add_argument("--train-fraction", type=float, default=0.5, help="of the graphs that are named")
    parser.add_argument("--split", default="random", help="random, or inductive: people who were not seen")
    parser.add_argument("--data", default="data")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 5.0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--points", type=int, default=4)
    parser.add_argument("--search-seeds", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=500)
    parser.add_argument("--patience", type=int, default=20)
    parser.add_argument("--turns", type=int, default=1, help="the least of so many counts")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="60 epochs")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.quick:
        given.epochs = 60
    import torch

    torch.set_num_threads(given.threads)
    graphs = [(name, given.train_fraction) for name in given.dataset] if given.dataset else TABLE
    found = [one for name, fraction in graphs for one in measure(given, name, fraction)]
    if given.json:
        print(json.dumps(found))
        return
    print("| graph, labels to train | ε | floor | cell | asking | learning | frontier is |")
    print("| --- | --- | ---: | --- | ---: | ---: | ---: |")
    for one in found:
        for name, cell in one["cells"].items():
            times = f"{one['ratios'][name]:.2f} times" if name in one["ratios"] else cell["learner"]
            place = f"{one['dataset']}, {100 * one['train_fraction']:g} % | {one['epsilon']:g} | {one['floor']:.1f}"
            print(f"| {place} | {name} | {cell['asking']:.2f} | {cell['learning']:.2f} | {times} |")
    print(f"Seconds of the processor, {given.threads} thread(s); cheap would be {LIMIT} times.")


if __name__ == "__main__":
    main()
