"""What a cell of `frontier` costs once the floor's learners are there, beside a cell of `lpgnn`.

    python bench/floors.py                 # Cora, epsilon 3, 5 % of the labels, the search of experiments/frontier.yaml
    python bench/floors.py --quick         # 60 epochs of the same
    python bench/floors.py --json          # one line for a script

The floor is computed first, into a folder of its own; then both methods, seconds of the processor each.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

LIMIT = 1.5  # what would be cheap: times the seconds of `lpgnn` with the same mechanism


def measure(given: argparse.Namespace) -> dict[str, Any]:
    import torch

    from graphldp import methods
    from graphldp.experiment.cell import learn_cell
    from graphldp.experiment.options import SearchParams, Settings, TrainParams
    from graphldp.experiment.plan import Devices, plan_of
    from graphldp.experiment.resources import Resources
    from graphldp.stages.files.floors import Floors
    from graphldp.stages.files.graphs import read_graph
    from graphldp.stages.files.paths import graph_dir

    if given.threads:
        torch.set_num_threads(given.threads)
    search = SearchParams(
        points=4, seeds=2, learning_rate=(0.01,), weight_decay=(0.001, 0.01, 0.03, 0.1), dropout=(0.25, 0.75)
    )
    train = TrainParams(epochs=given.epochs, train_fraction=given.train_fraction)
    params = Settings(seeds=given.seeds, search=search, train=train)
    graph = read_graph(graph_dir(Path(given.data), given.dataset))
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        resources = Resources(memo=Floors(Path(folder)))
        for name, mechanism, epsilon in (
            ("structure", "null", 0.0),
            ("lpgnn", "privset", given.epsilon),
            ("votes", "privset", given.epsilon),
            ("frontier", "privset", given.epsilon),
            ("nonpriv", "identity", float("inf")),
        ):
            recipe = methods.method(name)
            cell = Devices(graph=graph, recipe=recipe, mechanism=mechanism, epsilon=epsilon, options={}, params=params)
            start = time.process_time()
            learn_cell(graph, plan_of(cell, params), params, device="cpu", resources=resources)
            seconds[name] = round(time.process_time() - start, 2)
    ratio = round(seconds["frontier"] / seconds["lpgnn"], 2)
    return {"dataset": given.dataset, "threads": torch.get_num_threads(), "processor": seconds, "ratio": ratio}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="cora")
    parser.add_argument("--data", default="data")
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=500)
    parser.add_argument("--train-fraction", type=float, default=0.05)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="60 epochs")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.quick:
        given.epochs = 60
    found = measure(given)
    if given.json:
        print(json.dumps(found))
        return
    print(f"{found['dataset']}, {found['threads']} threads, seconds of the processor")
    for name, value in found["processor"].items():
        print(f"  {name:10} {value:8.2f} s")
    print(f"  frontier is {found['ratio']} times lpgnn once the floor is there; cheap would be {LIMIT}")


if __name__ == "__main__":
    main()
