"""A whole table cell as `ldp run` computes it: the search over 48 points on 3 seeds, then 10 final runs.

    python bench/cell.py                       # Cora, lpgnn, K up to 16, 500 epochs
    python bench/cell.py --quick               # 60 epochs of the same
    python bench/cell.py --json                # one line for a script

Prints where the time went: seconds by the clock and of the processor, which other work on the machine disturbs less.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memory import peak

PARTS = ("reports", "search", "final", "rest")


class Clock:
    """Counts the seconds of the part that is being done."""

    def __init__(self) -> None:
        self.wall, self.processor = dict.fromkeys(PARTS, 0.0), dict.fromkeys(PARTS, 0.0)
        self.part, self.last = "rest", (time.perf_counter(), time.process_time())

    def go(self, part: str) -> str:
        """Begin another part; return the one before."""
        now = time.perf_counter(), time.process_time()
        self.wall[self.part] += now[0] - self.last[0]
        self.processor[self.part] += now[1] - self.last[1]
        before, self.part, self.last = self.part, part, now
        return before

    def during(self, part: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """Return the work, which counts for a part."""

        def timed(*given: Any) -> Any:
            before = self.go(part)
            try:
                return work(*given)
            finally:
                self.go(before)

        return timed


def measure(given: argparse.Namespace) -> dict[str, Any]:
    import torch

    from graphldp import methods
    from graphldp.experiment.cell import learn_cell
    from graphldp.experiment.options import SearchParams, TrainParams
    from graphldp.experiment.plan import Devices, plan_of
    from graphldp.stages.files.graphs import read_graph
    from graphldp.stages.files.paths import graph_dir
    from graphldp.stages.grids.params import Params

    if given.threads:
        torch.set_num_threads(given.threads)
    search = SearchParams(
        points=given.points,
        seeds=given.search_seeds,
        learning_rate=(0.002, 0.005, 0.01, 0.02, 0.05),
    )
    params = Params(seeds=given.seeds, search=search, train=TrainParams(epochs=given.epochs))
    graph = read_graph(graph_dir(Path(given.data), given.dataset))
    clock = Clock()
    recipe = methods.method(given.method)
    devices = Devices(
        graph=graph, recipe=recipe, mechanism=recipe.mechanism, epsilon=given.epsilon, options={}, params=params
    )
    plan = plan_of(devices, params)
    timed = {
        id(one): dataclasses.replace(one, estimate=clock.during("reports", one.estimate)) for one in set(plan.setups)
    }
    plan = dataclasses.replace(plan, setups=tuple(timed[id(one)] for one in plan.setups))

    def progress(done: int, total: int, text: str) -> None:
        if clock.part == "rest" or (clock.part == "search" and text.startswith("final")):
            clock.go("final" if text.startswith("final") else "search")

    result = learn_cell(graph, plan, params, device="cpu", progress=progress)
    clock.go("rest")
    final = [row["test_accuracy"] for row in result.rows if row["role"] == "final"]
    return {
        "dataset": given.dataset,
        "method": given.method,
        "points": len(plan.points),
        "run_epochs": sum(row["epochs"] for row in result.rows),
        "threads": torch.get_num_threads(),
        "seconds": round(sum(clock.wall.values()), 2),
        "processor": round(sum(clock.processor.values()), 2),
        "parts": {part: [round(clock.wall[part], 2), round(clock.processor[part], 2)] for part in PARTS},
        "memory_mb": round(peak() / 1e6),
        "orders": [one["chain"]["order"] for one in result.records],
        "chosen": result.chosen,
        "accuracy": round(sum(final) / len(final), 4),
    }


def show(found: dict[str, Any]) -> None:
    print(
        f"{found['dataset']}, {found['method']}: {found['points']} points, "
        f"{found['run_epochs']} epochs of runs, {found['threads']} threads"
    )
    for part, (wall, processor) in found["parts"].items():
        print(f"  {part:8} {wall:8.2f} s   {processor:8.2f} s of the processor")
    print(f"  {'all':8} {found['seconds']:8.2f} s   {found['processor']:8.2f} s; peak {found['memory_mb']} MB")
    print(f"  chosen {found['chosen']}, test accuracy {100 * found['accuracy']:.1f} %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="cora")
    parser.add_argument("--method", default="lpgnn")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--points", type=int, default=48)
    parser.add_argument("--search-seeds", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=500)
    parser.add_argument("--threads", type=int, default=0, help="0: as many as torch takes")
    parser.add_argument("--data", default="data")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.quick:
        given.epochs = 60
    found = measure(given)
    print(json.dumps(found)) if given.json else show(found)


if __name__ == "__main__":
    main()
