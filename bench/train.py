"""Training of a table cell: all runs as one batched model, against one torch_geometric GCN at a time.

    python bench/train.py            # Cora: 10 seeds, 500 epochs; Facebook: 2 seeds, 50 epochs
    python bench/train.py --quick    # a minute's worth of the same

Both sides get the same graph, reports (mb), splits and hyper-parameters, train the same number of epochs and keep the
parameters with the lowest validation loss. Each side runs in a process of its own; the processes take turns, so that
whatever else the machine does disturbs both. Memory is the peak resident size above what the imports alone take.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, kw_only=True)
class Settings:
    dataset: str
    seeds: int
    epochs: int
    turns: int = 1
    epsilon: float = 1.0
    steps: int = 16
    hidden: int = 16
    learning_rate: float = 0.01
    weight_decay: float = 0.001
    dropout: float = 0.5
    data: str = "data"
    threads: int = 0


FULL = [
    Settings(dataset="cora", seeds=10, epochs=500, turns=2),
    Settings(dataset="facebook", seeds=2, epochs=50, turns=2),
]
QUICK = [Settings(dataset="cora", seeds=10, epochs=60), Settings(dataset="facebook", seeds=2, epochs=5)]


def peak() -> int:
    """Return the peak resident size so far, in bytes."""
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else size * 1024


def cell(settings: Settings) -> tuple[Any, list[Any], list[Any]]:
    """Return the graph, and per seed the server's estimate and the split."""
    from graphldp.client import protocol
    from graphldp.learn import random_split
    from graphldp.randomness import generator
    from graphldp.server import rectify
    from graphldp.stages.download import download
    from graphldp.stages.graphs import read_graph

    graph = read_graph(download(settings.dataset, Path(settings.data)))
    device = protocol("mb", settings.epsilon, graph.dimensions, low=graph.low, high=graph.high)
    labelled = np.flatnonzero(graph.labels >= 0)
    estimates, splits = [], []
    for seed in range(settings.seeds):
        address = (graph.name, "mb", settings.epsilon, seed)
        estimates.append(rectify(device.perturb(graph.features, generator(0, *address))))
        splits.append(random_split(labelled, generator(0, "split", graph.name, seed)))
    return graph, estimates, splits


def batched(settings: Settings) -> dict[str, Any]:
    import torch

    from graphldp.learn import NodeInputs, Options, Problem, Run, model, score, unit_filter
    from graphldp.learn.engine import Trainer
    from graphldp.server import shift

    floor = peak()
    graph, estimates, splits = cell(settings)
    start, used = time.perf_counter(), time.process_time()
    problem = Problem(
        shift=shift(graph),
        adjacency=graph.adjacency(),
        inputs=tuple(NodeInputs(deviations=one.deviations(), fill=one.fill) for one in estimates),
        classes=graph.classes,
    )
    runs = [
        Run(
            inputs=seed,
            split=split,
            labels=split.visible(graph.labels),
            seed=seed,
            learning_rate=settings.learning_rate,
            weight_decay=settings.weight_decay,
            dropout=settings.dropout,
            coefficients=unit_filter(settings.steps),
        )
        for seed, split in enumerate(splits)
    ]
    options = Options(model=model("gcn", hidden=settings.hidden), epochs=settings.epochs, patience=None)
    trainer = Trainer(problem, runs, options, torch.device("cpu"))
    stamps: list[float] = []
    outcome = trainer.fit(lambda *_: stamps.append(time.perf_counter()))
    total, used = time.perf_counter() - start, time.process_time() - used
    accuracy = [
        float(score(guess, graph.labels, split.test)) for guess, split in zip(outcome.predictions, splits, strict=True)
    ]
    return {
        "seconds": total,
        "cpu_seconds": used,
        "epoch_ms": 1e3 * (stamps[-1] - stamps[0]) / settings.epochs,
        "median_epoch_ms": 1e3 * float(np.median(np.diff(stamps))),
        "accuracy": accuracy,
        "imports_bytes": floor,
        "bytes": peak() - floor,
        "chain": outcome.record["chain"],
    }


def plain(settings: Settings) -> dict[str, Any]:
    sys.path.insert(0, str(HERE))
    import plain_gcn
    import torch

    from graphldp.learn import score
    from graphldp.server import shift

    floor = peak()
    graph, estimates, splits = cell(settings)
    start, used = time.perf_counter(), time.process_time()
    matrix = shift(graph)
    edges = torch.from_numpy(np.stack(graph.adjacency().nonzero()).astype(np.int64))
    accuracy, epochs = [], 0.0
    for seed, (estimate, split) in enumerate(zip(estimates, splits, strict=True)):
        x = plain_gcn.denoise(estimate.dense(), matrix, settings.steps)
        guess, seconds = plain_gcn.train(x, edges, split.visible(graph.labels), split, graph.classes, seed, settings)
        accuracy.append(float(score(guess, graph.labels, split.test)))
        epochs += seconds
    return {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - used,
        # One epoch of all runs, as on the other side.
        "epoch_ms": 1e3 * epochs / settings.epochs,
        "accuracy": accuracy,
        "imports_bytes": floor,
        "bytes": peak() - floor,
    }


def rates(settings: Settings) -> dict[str, Any]:
    """Measure what the hardware gives: the sparse product at the batch's width, and a big dense product."""
    import torch

    from graphldp.learn.sparse import Csr
    from graphldp.server import shift

    graph, _, _ = cell(replace(settings, seeds=1))
    matrix = shift(graph)
    ours = Csr.of(matrix, torch.device("cpu"))
    width = settings.hidden * settings.seeds
    hidden, out = torch.randn(graph.nodes, width), torch.empty(graph.nodes, width)
    square = torch.randn(2048, 2048)

    def gigaflops(work: float, call: Any) -> float:
        for _ in range(3):
            call()
        times = []
        for _ in range(20):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        return work / float(np.median(times)) / 1e9

    return {
        "width": width,
        "sparse_gflops": gigaflops(2.0 * matrix.nnz * width, lambda: ours.multiply(hidden, out=out)),
        "dense_gflops": gigaflops(2.0 * 2048**3, lambda: square @ square),
        # Forward and backward through the filter, and through both layers' own propagation.
        "products_flops": 2.0 * 2 * (settings.steps + 1) * matrix.nnz * width,
    }


SIDES = {"batched": batched, "plain": plain, "rates": rates}


def run(side: str, settings: Settings) -> dict[str, Any]:
    """Run one side in a process of its own."""
    command = [sys.executable, __file__, "--worker", side, json.dumps(asdict(settings))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{side} on {settings.dataset} failed:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def interval(values: list[float], resamples: int = 1000) -> tuple[float, float, float]:
    """Return the mean and its 95 % bootstrap interval."""
    array = np.asarray(values)
    drawn = np.random.default_rng(0).integers(0, len(array), (resamples, len(array)))
    low, high = np.quantile(array[drawn].mean(axis=1), [0.025, 0.975])
    return float(array.mean()), float(low), float(high)


def compare(settings: Settings) -> dict[str, Any]:
    """Let both sides take turns and report the middle of each."""
    turns: dict[str, list[dict[str, Any]]] = {"batched": [], "plain": []}
    for _ in range(settings.turns):
        turns["batched"].append(run("batched", settings))
        turns["plain"].append(run("plain", settings))
    turns["batched"].append(run("batched", settings))
    out: dict[str, Any] = {"settings": asdict(settings), "rates": run("rates", settings)}
    for side, found in turns.items():
        out[side] = {
            "epoch_ms": float(np.median([one["epoch_ms"] for one in found])),
            "every_epoch_ms": [one["epoch_ms"] for one in found],
            "seconds": float(np.median([one["seconds"] for one in found])),
            "cpu_seconds": float(np.median([one["cpu_seconds"] for one in found])),
            "peak_mib": max(one["bytes"] for one in found) / 2**20,
            "imports_mib": max(one["imports_bytes"] for one in found) / 2**20,
            "accuracy": interval(found[0]["accuracy"]),
        }
    out["chain"] = turns["batched"][0]["chain"]
    fast, slow = out["batched"], out["plain"]
    out["faster"] = {key: slow[key] / fast[key] for key in ("epoch_ms", "seconds", "cpu_seconds")}
    out["memory"] = fast["peak_mib"] / slow["peak_mib"]
    return out


def show(found: dict[str, Any]) -> None:
    settings, measured = found["settings"], found["rates"]
    print(
        f"\n{settings['dataset']}: {settings['seeds']} seeds, {settings['epochs']} epochs, mb, "
        f"epsilon {settings['epsilon']:g}, K {settings['steps']}, hidden {settings['hidden']}"
    )
    print(f"{'':10}{'ms per epoch':>14}{'seconds':>10}{'CPU s':>9}{'peak MiB':>10}{'imports MiB':>13}   accuracy")
    for side in ("batched", "plain"):
        one = found[side]
        mean, low, high = one["accuracy"]
        print(
            f"{side:10}{one['epoch_ms']:14.2f}{one['seconds']:10.2f}{one['cpu_seconds']:9.2f}{one['peak_mib']:10.0f}{one['imports_mib']:13.0f}"
            f"   {100 * mean:.2f} [{100 * low:.2f}, {100 * high:.2f}]"
        )
    print(
        f"faster: {found['faster']['epoch_ms']:.1f} x per epoch of all seeds, {found['faster']['seconds']:.1f} x in "
        f"all ({found['faster']['cpu_seconds']:.1f} x less CPU time); memory: {found['memory']:.2f} of the plain way"
    )
    least = 1e3 * measured["products_flops"] / (1e9 * measured["sparse_gflops"])
    print(
        f"measured: sparse product {measured['sparse_gflops']:.0f} GFLOP/s at width {measured['width']}, dense "
        f"{measured['dense_gflops']:.0f}; the sparse products of an epoch take at least {least:.2f} ms; "
        f"order: {found['chain']['order']} ({found['chain']['reason']})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few epochs: a look, not a measurement")
    parser.add_argument("--dataset", action="append", choices=["cora", "facebook"], help="only this one; repeatable")
    parser.add_argument("--data", default="data", help="where the graphs are, or are downloaded to")
    parser.add_argument("--threads", type=int, default=0, help="threads of each side; 0 is torch's default")
    parser.add_argument("--json", type=Path, help="also write everything measured to this file")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        settings = Settings(**json.loads(options.worker[1]))
        if settings.threads:
            import torch

            torch.set_num_threads(settings.threads)
        print(json.dumps(SIDES[options.worker[0]](settings)))
        return
    found = []
    for settings in QUICK if options.quick else FULL:
        if options.dataset is None or settings.dataset in options.dataset:
            found.append(compare(replace(settings, data=options.data, threads=options.threads)))
            show(found[-1])
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
