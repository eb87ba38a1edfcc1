"""What the time of one call tells of a record: how often a guess by it is right, for one person's device.

    python bench/timing.py             # 4000 calls of each kind; half a minute
    python bench/timing.py --calls 500

Two records are perturbed in turn, in one process, each call timed by itself, with 1,433 features and epsilon 1, drawn
from the operating system. Printed is the AUC of one call's time: 0.5 if it tells nothing, 1 if it tells which record it
was. An AUC up to 0.52 is what two equal records show; that pair is measured too.
"""

from __future__ import annotations

import argparse
import gc
import time
from typing import Any

import numpy as np
import scipy.sparse as sp

from graphldp.client import protocol
from graphldp.randomness import SecureSource

DIMENSIONS = 1433
MECHANISMS = ("lp", "1b", "privset")


def record(present: int, value: float, *, sparse: bool) -> Any:
    """Return one person's features, of which so many have the value and the others 0."""
    row = np.zeros((1, DIMENSIONS))
    row[0, np.random.default_rng(0).choice(DIMENSIONS, present, replace=False)] = value
    return sp.csr_array(row) if sparse else row


def auc(one: np.ndarray, two: np.ndarray) -> float:
    """Return how often a time of the second exceeds one of the first, at least 1/2 by naming them so."""
    ranks = np.argsort(np.argsort(np.concatenate([one, two]), kind="stable"), kind="stable") + 1.0
    found = (ranks[len(one) :].sum() - len(two) * (len(two) + 1) / 2) / (len(one) * len(two))
    return float(max(found, 1 - found))


def times(device: Any, records: tuple[Any, Any], calls: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the nanoseconds of single calls, the two records in a random order."""
    source, which = SecureSource(), np.random.default_rng(1).permutation(np.arange(2 * calls) % 2)
    out: tuple[list[int], list[int]] = ([], [])
    for k in (0, 1) * 50:
        device.perturb(records[k], source)
    gc.disable()
    for k in which:
        start = time.perf_counter_ns()
        device.perturb(records[k], source)
        out[k].append(time.perf_counter_ns() - start)
    gc.enable()
    return np.array(out[0]), np.array(out[1])


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=4000)
    calls = parser.parse_args().calls
    pairs = {
        "dense, the same record": (record(18, 1.0, sparse=False), record(18, 1.0, sparse=False)),
        "dense, 1 or 700 features": (record(1, 1.0, sparse=False), record(700, 1.0, sparse=False)),
        "sparse, 1 or 700 features": (record(1, 1.0, sparse=True), record(700, 1.0, sparse=True)),
        "sparse, 18 or 25 features": (record(18, 1.0, sparse=True), record(25, 1.0, sparse=True)),
        "dense, 0 or denormals": (record(700, 0.0, sparse=False), record(700, 5e-310, sparse=False)),
    }
    print(f"{'two records':28}" + "".join(f"{name:>22}" for name in MECHANISMS))
    for label, records in pairs.items():
        cells = []
        for name in MECHANISMS:
            if name == "privset" and "denormals" in label:  # it refuses a value between the ends
                cells.append("-")
                continue
            one, two = times(protocol(name, 1.0, DIMENSIONS, 0.0, 1.0), records, calls)
            cells.append(f"{auc(one, two):.2f} ({np.median(one) / 1e3:.0f}, {np.median(two) / 1e3:.0f} us)")
        print(f"{label:28}" + "".join(f"{cell:>22}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
