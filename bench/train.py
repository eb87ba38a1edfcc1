"""Training of a table cell with each backbone: ten seeds as one batched model, against torch_geometric one by one.

    python bench/train.py                          # all backbones on Cora and Facebook
    python bench/train.py --quick                  # a look
    python bench/train.py --threads 1              # on a busy machine: read the column of CPU time
    python bench/train.py --uncached               # against layers with their defaults: they keep nothing
    python bench/train.py --forms --dataset cora   # only: which way of giving the graph is torch_geometric's faster one

Both ways get the same graph, reports (mb), splits and hyper-parameters, validate after each update and keep the
parameters with the lowest validation loss. Each way is a process of its own per backbone; the two take turns, so that
whatever else the machine does disturbs both. The plain way may train fewer of the seeds: one after the other they take
as long each. Memory is the peak resident size above what the imports alone take.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from memory import peak

HERE = Path(__file__).resolve().parent
BACKBONES = ("gcn", "sage", "gat", "gin", "appnp", "sgc", "ssgc", "mlp")
# Backbones whose plain way takes seconds an epoch on the larger graph.
SLOW = ("sage", "gin")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What is measured.

    Attributes:
        epochs: that are timed on both sides; one more, the first, fills what layers keep and is not.
        plain_seeds: how many of the seeds the plain way trains.
        turns: how often each way is measured.
        watched: epochs of the breakdown.
        folder: where the ways find what both start from.
        cached: whether the plain way's layers keep what they can; torch_geometric's own default is not to.
    """

    dataset: str
    epochs: int
    backbone: str = "gcn"
    seeds: int = 10
    plain_seeds: int = 10
    turns: int = 3
    watched: int = 20
    epsilon: float = 1.0
    steps: int = 16
    hidden: int = 16
    learning_rate: float = 0.01
    weight_decay: float = 0.001
    dropout: float = 0.5
    data: str = "data"
    folder: str = ""
    threads: int = 0
    cached: bool = True


FULL = [
    Settings(dataset="cora", epochs=30),
    Settings(dataset="facebook", epochs=8, plain_seeds=1, watched=3),
]
QUICK = [
    Settings(dataset="cora", epochs=5, plain_seeds=3, turns=1, watched=5),
    Settings(dataset="facebook", epochs=2, plain_seeds=1, turns=1, watched=1),
]
SLOW_EPOCHS = 3


def prepare(settings: Settings) -> dict[str, Callable[[], Any]]:
    """Return what writes the graph, and per seed the server's estimate and the split."""
    return {"turn": lambda: write_cell(settings)}


def write_cell(settings: Settings) -> None:
    from graphldp.client import protocol
    from graphldp.learn import random_split
    from graphldp.randomness import generator
    from graphldp.server import rectify
    from graphldp.stages.download import download
    from graphldp.stages.files.graphs import read_graph

    graph = read_graph(download(settings.dataset, Path(settings.data)))
    device = protocol("mb", settings.epsilon, graph.dimensions, low=graph.low, high=graph.high)
    labelled = np.flatnonzero(graph.labels >= 0)
    estimates, splits = [], []
    for seed in range(settings.seeds):
        address = (graph.name, "mb", settings.epsilon, seed)
        estimates.append(rectify(device.perturb(graph.features, generator(0, *address))))
        splits.append(random_split(labelled, generator(0, "split", graph.name, seed)))
    with open(Path(settings.folder) / "cell.pickle", "wb") as file:
        pickle.dump((graph, estimates, splits), file)


def cell(settings: Settings) -> tuple[Any, list[Any], list[Any]]:
    """Return what `prepare` has written."""
    with open(Path(settings.folder) / "cell.pickle", "rb") as file:
        found: tuple[Any, list[Any], list[Any]] = pickle.load(file)
    return found


def batched(settings: Settings) -> dict[str, Callable[[], Any]]:
    """Return what the batched way can be asked for."""
    import torch

    from graphldp.learn import NodeInputs, Options, Problem, Run, model, score, unit_filter
    from graphldp.learn.engine import Trainer
    from graphldp.server import shift

    floor = peak()
    graph, estimates, splits = cell(settings)
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
    net = model(settings.backbone)

    def fit(some: list[Run], epochs: int) -> tuple[float, float, Any]:
        start, used = time.perf_counter(), time.process_time()
        trainer = Trainer(problem, some, Options(model=net, epochs=epochs, patience=None), torch.device("cpu"))
        outcome = trainer.fit()
        return time.perf_counter() - start, time.process_time() - used, outcome

    def turn() -> dict[str, Any]:
        # What is done once per training is in both.
        first, first_used, _ = fit(runs, 1)
        whole, used, outcome = fit(runs, settings.epochs + 1)
        return {
            "first_seconds": first,
            "epoch_ms": 1e3 * (whole - first) / settings.epochs,
            "cpu_ms": 1e3 * (used - first_used) / settings.epochs,
            "accuracy": [
                float(score(guess, graph.labels, split.test))
                for guess, split in zip(outcome.predictions, splits, strict=True)
            ],
            "chain": outcome.record["chain"],
        }

    def profile() -> dict[str, Any]:
        sys.path.insert(0, str(HERE))
        from breakdown import breakdown

        threads = torch.get_num_threads()
        share = runs[::threads]
        torch.set_num_threads(1)
        try:
            return {"runs": len(share)} | breakdown(lambda epochs: fit(share, epochs)[2], settings.watched)
        finally:
            torch.set_num_threads(threads)

    return {"turn": turn, "profile": profile, "memory": lambda: {"bytes": peak() - floor, "imports": floor}}


def plain(settings: Settings) -> dict[str, Callable[[], Any]]:
    """Return what the plain way can be asked for."""
    sys.path.insert(0, str(HERE))
    import plain_models
    import torch

    from graphldp.learn import score

    floor = peak()
    graph, _, splits = cell(settings)
    graphs = {kind: plain_models.graph_as(kind, graph.adjacency()) for kind in plain_models.FORMS}
    chosen = plain_models.form(settings.backbone, graph.nodes)

    def train(seed: int, kind: str) -> tuple[float, list[tuple[float, float]]]:
        x = torch.from_numpy(np.load(Path(settings.folder) / f"x{seed}.npy"))
        split = splits[seed]
        torch.manual_seed(seed)
        net = plain_models.build(
            settings.backbone, x.shape[1], graph.classes, settings.hidden, settings.dropout, cached=settings.cached
        )
        labels = split.visible(graph.labels)
        guess, spent = plain_models.train(net, x, graphs[kind], labels, split, settings)
        return float(score(guess, graph.labels, split.test)), spent

    def turn() -> dict[str, Any]:
        some = [train(seed, chosen) for seed in range(settings.plain_seeds)]
        spent = np.array([times for _, times in some])
        # One epoch of all seeds, as on the other side.
        first = spent[:, 0, 0].mean() * settings.seeds
        wall, used = 1e3 * spent[:, 1:].mean(axis=(0, 1)) * settings.seeds
        return {
            "first_seconds": float(first),
            "epoch_ms": float(wall),
            "cpu_ms": float(used),
            "accuracy": [accuracy for accuracy, _ in some],
            "form": chosen,
        }

    def forms() -> dict[str, Any]:
        found = {}
        for kind in plain_models.FORMS:
            spent = np.array(train(0, kind)[1])
            found[kind] = {"first_ms": 1e3 * float(spent[0, 1]), "epoch_ms": 1e3 * float(np.median(spent[1:, 1]))}
        return found

    return {"turn": turn, "forms": forms, "memory": lambda: {"bytes": peak() - floor, "imports": floor}}


def denoise(settings: Settings) -> dict[str, Callable[[], Any]]:
    """Return what writes the plain way's features; all its models start from the same."""
    sys.path.insert(0, str(HERE))
    import plain_models

    from graphldp.server import shift

    floor = peak()

    def turn() -> dict[str, Any]:
        graph, estimates, _ = cell(settings)
        matrix, times = shift(graph), []
        for seed in range(settings.plain_seeds):
            start = time.perf_counter()
            x = plain_models.denoise(estimates[seed].dense(), matrix, settings.steps)
            times.append(time.perf_counter() - start)
            np.save(Path(settings.folder) / f"x{seed}.npy", x.numpy())
        return {"seconds": float(np.mean(times)), "bytes": peak() - floor}

    return {"turn": turn}


def rates(settings: Settings) -> dict[str, Callable[[], Any]]:
    """Return what measures the hardware: a big dense product, and the sparse one at several widths; one thread."""
    import torch

    from graphldp.learn.sparse import Csr
    from graphldp.server import shift

    def gigaflops(work: float, call: Callable[[], Any]) -> float:
        times = []
        for _ in range(20):
            start = time.thread_time()
            call()
            times.append(time.thread_time() - start)
        return work / min(times) / 1e9

    def turn() -> dict[str, Any]:
        graph, _, _ = cell(settings)
        torch.set_num_threads(1)
        matrix, square = shift(graph), torch.randn(1024, 1024)
        ours, sparse = Csr.of(matrix, torch.device("cpu")), {}
        for width in (8, 16, 32, 64, 160):
            hidden, out = torch.randn(graph.nodes, width), torch.empty(graph.nodes, width)
            work = 2.0 * matrix.nnz * width
            sparse[width] = gigaflops(work, lambda h=hidden, o=out: ours.multiply(h, out=o))  # type: ignore[misc]
        return {"dense": gigaflops(2.0 * 1024**3, lambda: square @ square), "sparse": sparse}

    return {"turn": turn}


SIDES = {"prepare": prepare, "batched": batched, "plain": plain, "denoise": denoise, "rates": rates}


def serve(side: str, settings: Settings) -> None:
    """Answer requests from standard input, a line of JSON each, until it ends."""
    if settings.threads:
        import torch

        torch.set_num_threads(settings.threads)
    answers, out = SIDES[side](settings), sys.stdout
    sys.stdout = sys.stderr
    for line in sys.stdin:
        print(json.dumps(answers[line.strip()]()), file=out, flush=True)


class Worker:
    """One way in a process of its own, which does nothing until it is asked."""

    def __init__(self, side: str, settings: Settings):
        self.name = f"{side} {settings.backbone} on {settings.dataset}"
        environment = dict(os.environ)
        if settings.threads:
            environment |= {"OMP_NUM_THREADS": str(settings.threads)}
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--worker", side, json.dumps(asdict(settings))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def ask(self, request: str) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        line = ""
        try:
            print(request, file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            pass
        if not line:
            self.process.wait()
            raise SystemExit(f"{self.name} failed: see above")
        return json.loads(line)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


@contextmanager
def worker(side: str, settings: Settings) -> Iterator[Worker]:
    one = Worker(side, settings)
    try:
        yield one
    finally:
        one.close()


def busy_seconds() -> float:
    """Return the CPU seconds that all of the machine's processes have used; 0 where the system does not say."""
    try:
        fields = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
    except OSError:
        return 0.0
    user, nice, system, _, _, irq, softirq, *_ = (int(one) for one in fields[1:])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def children_seconds() -> float:
    """Return the CPU seconds of this process and of the ways that have ended."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def interval(values: list[float], resamples: int = 1000) -> tuple[float, float, float]:
    """Return the mean and its 95 % bootstrap interval."""
    array = np.asarray(values)
    drawn = np.random.default_rng(0).integers(0, len(array), (resamples, len(array)))
    low, high = np.quantile(array[drawn].mean(axis=1), [0.025, 0.975])
    return float(array.mean()), float(low), float(high)


def middle(turns: list[dict[str, Any]], denoising: float, memory: dict[str, Any]) -> dict[str, Any]:
    """Return what all turns of one way say."""
    return {
        "epoch_ms": float(np.median([one["epoch_ms"] for one in turns])),
        "every_epoch_ms": [one["epoch_ms"] for one in turns],
        "cpu_ms": float(np.median([one["cpu_ms"] for one in turns])),
        "every_cpu_ms": [one["cpu_ms"] for one in turns],
        "setup_seconds": denoising + float(np.median([one["first_seconds"] for one in turns])),
        "accuracy": interval(turns[0]["accuracy"]),
        "peak_mib": memory["bytes"] / 2**20,
    }


def compare(settings: Settings, denoised: dict[str, Any]) -> dict[str, Any]:
    """Let both ways take turns with one backbone and report the middle of each."""
    ours, theirs = [], []
    with worker("batched", settings) as fast, worker("plain", settings) as slow:
        for _ in range(settings.turns):
            ours.append(fast.ask("turn"))
            theirs.append(slow.ask("turn"))
        memory = {"batched": fast.ask("memory"), "plain": slow.ask("memory")}
        profile = fast.ask("profile")
    memory["plain"]["bytes"] = max(memory["plain"]["bytes"], denoised["bytes"])
    out: dict[str, Any] = {
        "backbone": settings.backbone,
        "settings": asdict(settings),
        "batched": middle(ours, 0.0, memory["batched"]) | {"chain": ours[0]["chain"]},
        "plain": middle(theirs, denoised["seconds"] * settings.seeds, memory["plain"]) | {"form": theirs[0]["form"]},
        "profile": profile,
    }
    for key, name in (("epoch_ms", "faster"), ("cpu_ms", "cpu_faster")):
        pairs = sorted(b[key] / a[key] for a, b in zip(ours, theirs, strict=True))
        out[name] = {"median": float(np.median(pairs)), "low": pairs[0], "high": pairs[-1]}
    out["memory"] = out["batched"]["peak_mib"] / out["plain"]["peak_mib"]
    return out


def measure(settings: Settings, backbones: tuple[str, ...], tell: Callable[[str], None]) -> dict[str, Any]:
    """Measure one dataset."""
    start, busy, own = time.perf_counter(), busy_seconds(), children_seconds()
    with tempfile.TemporaryDirectory() as folder:
        settings = replace(settings, folder=folder)
        with worker("prepare", settings) as one:
            one.ask("turn")
        with worker("denoise", settings) as one:
            denoised = one.ask("turn")
        with worker("rates", settings) as one:
            hardware = one.ask("turn")
        found = []
        for name in backbones:
            slow = settings.plain_seeds == 1 and name in SLOW
            epochs = min(settings.epochs, SLOW_EPOCHS) if slow else settings.epochs
            found.append(compare(replace(settings, backbone=name, epochs=epochs), denoised))
            tell(f"{settings.dataset} {name}: {found[-1]['faster']['median']:.1f} x")
    seconds = time.perf_counter() - start
    others = (busy_seconds() - busy) - (children_seconds() - own)
    return {
        "dataset": settings.dataset,
        "cores": os.cpu_count(),
        "threads": settings.threads,
        "seconds": seconds,
        "others": max(0.0, others / (seconds * (os.cpu_count() or 1))),
        "rates": hardware,
        "backbones": found,
    }


def percent(accuracy: tuple[float, float, float], several: bool) -> str:
    mean, low, high = (100 * one for one in accuracy)
    return f"{mean:.1f} [{low:.1f}, {high:.1f}]" if several else f"{mean:.1f}"


def spread(found: dict[str, float]) -> str:
    return f"{found['median']:.1f} ({found['low']:.1f}-{found['high']:.1f})"


def table(found: dict[str, Any]) -> list[str]:
    """Return the comparison of one dataset as Markdown."""
    first = found["backbones"][0]["settings"]
    threads = found["threads"] or f"{found['cores']}, torch's default"
    lines = [
        f"### {found['dataset']}, {first['seeds']} seeds, K {first['steps']}, threads: {threads}",
        "",
        "| backbone | batched, ms per epoch | plain | times faster (each turn) | in CPU time | with setup, 500 epochs "
        "| MiB batched | plain | accuracy batched | plain | epochs |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in found["backbones"]:
        fast, slow, settings = one["batched"], one["plain"], one["settings"]
        whole = [way["setup_seconds"] + 0.5 * way["epoch_ms"] for way in (slow, fast)]
        cells = [
            one["backbone"],
            f"{fast['epoch_ms']:.1f}",
            f"{slow['epoch_ms']:.0f}{' (csr)' if slow['form'] == 'csr' else ''}",
            spread(one["faster"]),
            spread(one["cpu_faster"]),
            f"{whole[0] / whole[1]:.1f}",
            f"{fast['peak_mib']:.0f}",
            f"{slow['peak_mib']:.0f}",
            percent(fast["accuracy"], True),
            percent(slow["accuracy"], settings["plain_seeds"] > 1),
            f"{settings['epochs'] + 1}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def limits(found: dict[str, Any]) -> list[str]:
    """Return where the batched way's time goes as Markdown."""
    sys.path.insert(0, str(HERE))
    from breakdown import PARTS

    sparse = ", ".join(f"{rate:.0f} at width {width}" for width, rate in found["rates"]["sparse"].items())
    lines = [
        f"Where the time of the batched way goes on {found['dataset']}: CPU milliseconds of one epoch of one thread's "
        "share of the runs.",
        f"Measured alone, in one thread: sparse products {sparse} GFLOP/s, dense products "
        f"{found['rates']['dense']:.0f} GFLOP/s.",
        "",
        f"| backbone | runs | epoch | {' | '.join(PARTS)} | operations | GFLOP/s of sparse products, alone "
        "| of dense ones, alone | products alone |",
        f"| {' | '.join(['---'] * (len(PARTS) + 7))} |",
    ]
    said = []
    for one in found["backbones"]:
        profile = one["profile"]
        parts = [f"{profile['parts_ms'][part]:.2f}" for part in PARTS]
        pairs = [f"{profile[kind]['gflops']:.0f}, {profile[kind]['alone_gflops']:.0f}" for kind in ("sparse", "dense")]
        cells = [one["backbone"], f"{profile['runs']}", f"{profile['epoch_ms']:.2f}", *parts]
        cells += [f"{profile['operations']:.0f}", *pairs, f"{profile['limit_ms']:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
        spent = profile["parts_ms"]["sparse"] + profile["parts_ms"]["dense"]
        said.append(
            f"- {one['backbone']}: {spent / profile['epoch_ms']:.0%} of the time is in products, which run at "
            f"{profile['limit_ms'] / max(spent, 1e-9):.0%} of the rate measured for them alone; "
            f"with nothing else, an epoch would take {profile['limit_ms']:.2f} ms instead of {profile['epoch_ms']:.2f}"
        )
    return [*lines, "", *said]


def report(found: list[dict[str, Any]]) -> str:
    lines = []
    for one in found:
        lines += [*table(one), "", *limits(one), ""]
        if one["others"] > 0.05:
            lines += [
                f"**Other processes took {one['others']:.0%} of the machine meanwhile: times are no measure, and "
                "ratios little of one.**",
                "",
            ]
    lines.append(f"Measured in {sum(one['seconds'] for one in found) / 60:.1f} minutes.")
    return "\n".join(lines)


def forms(settings: Settings, backbones: tuple[str, ...]) -> None:
    """Print what each way of giving the graph costs the plain way, CPU milliseconds of one seed."""
    with tempfile.TemporaryDirectory() as folder:
        settings = replace(settings, folder=folder, plain_seeds=1, epochs=2)
        with worker("prepare", settings) as one:
            one.ask("turn")
        with worker("denoise", settings) as one:
            one.ask("turn")
        for name in backbones:
            with worker("plain", replace(settings, backbone=name)) as one:
                for kind, times in one.ask("forms").items():
                    first, rest = times["first_ms"], times["epoch_ms"]
                    print(f"{settings.dataset} {name:6} {kind:6} {rest:9.1f} ms, the first {first:.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one turn of few epochs: a look, not a measurement")
    parser.add_argument("--dataset", action="append", choices=["cora", "facebook"], help="only this one; repeatable")
    parser.add_argument("--backbone", action="append", choices=BACKBONES, help="only this one; repeatable")
    parser.add_argument("--data", default="data", help="where the graphs are, or are downloaded to")
    parser.add_argument("--threads", type=int, default=0, help="threads of each way; 0 is torch's default")
    parser.add_argument(
        "--uncached", action="store_true", help="layers of torch_geometric as by default: they keep nothing"
    )
    parser.add_argument("--forms", action="store_true", help="measure both ways of giving torch_geometric the graph")
    parser.add_argument("--json", type=Path, help="also write everything measured to this file")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        serve(options.worker[0], Settings(**json.loads(options.worker[1])))
        return
    backbones = tuple(name for name in BACKBONES if options.backbone is None or name in options.backbone)
    found = []
    for settings in QUICK if options.quick else FULL:
        if options.dataset is not None and settings.dataset not in options.dataset:
            continue
        settings = replace(settings, data=options.data, threads=options.threads, cached=not options.uncached)
        if options.forms:
            forms(settings, backbones)
        else:
            found.append(measure(settings, backbones, lambda text: print(text, file=sys.stderr, flush=True)))
    if found:
        print(report(found))
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
