"""Denoising: blocks, the factored form and backward push, against a plain loop of sparse times dense.

    python bench/denoise.py            # Facebook: K = 16, and personalised PageRank to 1e-4
    python bench/denoise.py --quick    # the same on Cora

The plain loop keeps the reports as a dense n x d matrix and multiplies it by S again and again, once with scipy, and
for K = 16 once with torch's CSR product on all threads. Each way runs in a process of its own. Memory is the peak
resident size above what graph, reports and imports take; CPU time is that of all threads, and is what to compare on a
machine that does other things as well. The error is the largest over 64 columns against float64 to 1e-12, in units of
B, the largest value of a report; for PageRank `bound` is what the way guarantees at the node where it guarantees least,
in the same units. Power iteration guarantees tolerance degree^r max|D^-r x|, push r_max degree^r, here with r_max =
tolerance B, so that both guarantee about the same.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from memory import peak

DECAY = 0.1
TOLERANCE = 1e-4
STEPS = 16
HIDDEN = 16
PROBE = 64  # columns that are compared with the reference


class Case:
    """The graph, one round of reports and what the server makes of them."""

    def __init__(self, directory: Path, mechanism: str, epsilon: float) -> None:
        from graphldp.client import protocol
        from graphldp.randomness import generator
        from graphldp.server import rectify, shift
        from graphldp.stages.files.graphs import read_graph

        graph = read_graph(directory)
        device = protocol(mechanism, epsilon, graph.dimensions, graph.low, graph.high)
        self.graph, self.device, self.bound = graph, device, device.boundary()
        self.estimate = rectify(device.perturb(graph.features, generator(0, graph.name, mechanism, epsilon)))
        self.operator = shift(graph)
        self.degree = np.diff(self.operator.indptr)

    @property
    def deviations(self) -> sp.csr_array:
        """The estimate without its fill, which all ways treat alike and none needs here."""
        return self.estimate.deviations()


def terms(tolerance: float = TOLERANCE) -> tuple[float, ...]:
    from graphldp.server import ppr

    return ppr(DECAY, tolerance).coefficients


def scipy_kprop(case: Case) -> Any:
    x = case.deviations.toarray()
    for _ in range(STEPS):
        x = case.operator @ x
    return x


def scipy_ppr(case: Case) -> Any:
    x = case.deviations.toarray()
    z = np.float32(DECAY) * x
    for _ in terms()[1:]:
        x = case.operator @ x
        x *= np.float32(1 - DECAY)
        z += np.float32(DECAY) * x
    return z


def torch_operator(case: Case) -> Any:
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = (torch.from_numpy(part) for part in (case.operator.indptr, case.operator.indices, case.operator.data))
        return torch.sparse_csr_tensor(*parts, size=case.operator.shape)


def torch_kprop(case: Case) -> Any:
    import torch

    operator, x = torch_operator(case), torch.from_numpy(case.deviations.toarray())
    for _ in range(STEPS):
        x = operator @ x
    return x.numpy()


def blocks(case: Case, calibration: Any) -> Any:
    """Take every block once, as the scores and energies do; only the probe is kept."""
    from graphldp.server import Filtered

    kept, total = [], 0.0
    for columns, block in Filtered.of(case.estimate, calibration, case.operator).deviation_blocks():
        total += float(block[0].sum())
        if columns.start < PROBE:
            kept.append(block[:, : PROBE - columns.start].copy())
    return np.hstack(kept)


def blocks_kprop(case: Case) -> Any:
    from graphldp.server import kprop

    return blocks(case, kprop(STEPS))


def dense_kprop(case: Case) -> Any:
    from graphldp.server import apply, kprop

    out = apply(case.estimate, kprop(STEPS), case.operator)
    return out[:, :PROBE] - out_of_fill(case)


def out_of_fill(case: Case) -> np.ndarray:
    from graphldp.server import Filtered, kprop

    return Filtered.of(case.estimate, kprop(STEPS), case.operator).ground()[:, None]


def project_kprop(case: Case) -> Any:
    """Return H W at the hidden width, which is all that a learner needs; W holds unit vectors, to compare columns."""
    from graphldp.server import Estimate, Filtered, kprop

    plain = Estimate(matrix=case.deviations, fill=0.0)
    return Filtered.of(plain, kprop(STEPS), case.operator).project(
        np.eye(case.graph.dimensions, HIDDEN, dtype=np.float32)
    )


def blocks_ppr(case: Case) -> Any:
    from graphldp.server import ppr

    return blocks(case, ppr(DECAY, TOLERANCE))


def push_ppr(case: Case) -> Any:
    from graphldp.server import push

    return blocks(case, push(DECAY, TOLERANCE * case.bound, tolerance=TOLERANCE))


def worst(case: Case) -> dict[str, float]:
    """Return what each way guarantees at the node where it guarantees least."""
    root = float(np.sqrt(case.degree.max()))
    power = TOLERANCE * root / float(np.sqrt(max(1, case.degree.min())))
    return {"plain": power, "blocks": power, "push": TOLERANCE * root}


WAYS: dict[str, dict[str, Callable[[Case], Any]]] = {
    "kprop": {
        "plain scipy": scipy_kprop,
        "plain torch": torch_kprop,
        "dense by blocks": dense_kprop,
        "blocks": blocks_kprop,
        "projection": project_kprop,
    },
    "ppr": {
        "plain scipy": scipy_ppr,
        "blocks": blocks_ppr,
        "push": push_ppr,
    },
}


def reference(case: Case, task: str) -> np.ndarray:
    x = sp.csc_array(case.deviations)[:, :PROBE].toarray().astype(np.float64)
    operator = case.operator.astype(np.float64)
    if task == "kprop":
        for _ in range(STEPS):
            x = operator @ x
        return x
    z = DECAY * x
    for _ in terms(1e-12)[1:]:
        x = (1 - DECAY) * (operator @ x)
        z += DECAY * x
    return z


def child(arguments: argparse.Namespace) -> None:
    case = Case(Path(arguments.graph), arguments.mechanism, arguments.epsilon)
    way = WAYS[arguments.task][arguments.way]
    if "push" in arguments.way:
        # Compiling is done once per machine, so it is not part of the figure.
        from graphldp.server.pushing import backward_push

        one = sp.csc_array((np.ones(1, np.float32), np.zeros(1, np.int32), np.array([0, 1])), shape=(2, 1))
        backward_push(one, sp.csr_array(np.eye(2, dtype=np.float32)), decay=0.5, r_max=np.ones(2))
    if "torch" in arguments.way:
        import torch  # noqa: F401
    start, cpu, before = time.perf_counter(), time.process_time(), peak()
    out = way(case)
    seconds, cpu, grown = time.perf_counter() - start, time.process_time() - cpu, peak() - before
    probe = np.asarray(out)[:, :PROBE]
    truth = reference(case, arguments.task)[:, : probe.shape[1]]
    error = float(np.abs(probe - truth).max()) / case.bound
    found = {"seconds": seconds, "cpu_seconds": cpu, "bytes": grown, "error": error}
    if arguments.task == "ppr":
        found["bound"] = worst(case)[arguments.way.split()[0]]
    print(json.dumps(found))


def measure(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    options = ["--graph", arguments.graph, "--mechanism", arguments.mechanism, "--epsilon", str(arguments.epsilon)]
    for task, ways in WAYS.items():
        best: dict[str, dict[str, Any]] = {}
        for _ in range(arguments.turns):
            for way in ways:
                command = [sys.executable, __file__, "--child", "--task", task, "--way", way, *options]
                run = subprocess.run(command, capture_output=True, text=True, check=True)
                found = json.loads(run.stdout)
                if way not in best or found["seconds"] < best[way]["seconds"]:
                    best[way] = found
        rows += [{"task": task, "way": way, **found} for way, found in best.items()]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", default="data/graphs/facebook", help="a Graph artifact (`ldp download facebook`)")
    parser.add_argument("--mechanism", default="mb")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--turns", type=int, default=2, help="each way's best of so many runs")
    parser.add_argument("--quick", action="store_true", help="Cora, one turn")
    parser.add_argument("--json", help="also write the figures here")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--task", help=argparse.SUPPRESS)
    parser.add_argument("--way", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments)
        return
    if arguments.quick:
        arguments.graph, arguments.turns = "data/graphs/cora", 1
    rows = measure(arguments)
    print(f"{arguments.graph}, {arguments.mechanism} at epsilon {arguments.epsilon:g}, K = {STEPS}, alpha = {DECAY}")
    print(f"{'task':6} {'way':16} {'seconds':>9} {'CPU s':>8} {'MB':>8} {'error/B':>9} {'bound/B':>9}")
    for row in rows:
        bound = f"{row['bound']:9.1e}" if "bound" in row else ""
        line = f"{row['task']:6} {row['way']:16} {row['seconds']:9.2f} "
        line += f"{row['cpu_seconds']:8.2f} {row['bytes'] / 1e6:8.0f} {row['error']:9.1e}"
        print(line, bound)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
