"""Perturbing Facebook's features (22,470 x 4,714): the m-of-d protocol against the plain dense way, and dense noise.

    python bench/perturb.py            # medians of 7 (ours) and 3 (plain) repeats; about a minute and a half
    python bench/perturb.py --quick    # fewer repeats
    python bench/perturb.py --json     # the same as JSON

Each measurement runs in a process of its own. Time is that of perturbing features that are already loaded, CSR for us
and dense for the plain way. Memory is the peak resident size above what the imports alone take, features included.
Mechanisms that report every dimension are compared with numpy.random filling an array of the same shape and type.
The data are data/graphs/facebook, or the mirror that LDP_MIRROR names; without either, random features of that shape.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from memory import peak

NODES, DIMENSIONS = 22_470, 4_714
SOURCE = "benedekrozemberczki/MUSAE/5f901232957b6c9985d750aac48cda39a4b24285/input/features/facebook.json"
EPSILON = 1.0
SPEEDUP, MEMORY = 20.0, 0.1  # what is asked of the m-of-d mechanisms: times faster, share of the memory
SECONDS = 1.0
NUMPY_SHARE = 0.5  # of numpy.random's speed, asked of the dense mechanisms
BLOCK = 14  # rows: about 2^16 values


def features(data: Path) -> tuple[sp.csr_array, str]:
    if (data / "graphs" / "facebook" / "graph.json").exists():
        from graphldp.stages.files.graphs import read_graph

        return read_graph(data / "graphs" / "facebook").features, "data/graphs/facebook"
    mirror = Path(os.environ.get("LDP_MIRROR", "")) / SOURCE
    if os.environ.get("LDP_MIRROR") and mirror.is_file():
        rows = json.loads(mirror.read_text())
        lists = [sorted(set(rows[str(node)])) for node in range(len(rows))]
        name = "the mirror"
    else:
        rng = np.random.default_rng(0)
        lists = [np.unique(rng.integers(0, DIMENSIONS, 15)).tolist() for _ in range(NODES)]
        name = "random features of that shape"
    starts = np.cumsum([0, *map(len, lists)])
    index = np.concatenate([np.array(part, dtype=np.int32) for part in lists])
    return sp.csr_array((np.ones(len(index), np.float32), index, starts), shape=(NODES, DIMENSIONS)), name


def timed(work: Callable[[], Any], repeats: int) -> list[float]:
    out = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        out.append(time.perf_counter() - start)
    return out


def ours(mechanism: str, repeats: int, data: Path) -> dict[str, Any]:
    import graphldp.stages.files.graphs  # noqa: F401  (part of the imports, not of the work)
    from graphldp.client import protocol

    floor = peak()
    x, source = features(data)
    device = protocol(mechanism, EPSILON, x.shape[1], 0.0, 1.0)
    rng = np.random.default_rng(0)
    device.perturb(x[:100], rng)
    times = timed(lambda: device.perturb(x, rng), repeats)
    return {"seconds": times, "memory": peak() - floor, "m": device.m, "source": source, "shape": x.shape}


def plain(mechanism: str, repeats: int, data: Path) -> dict[str, Any]:
    import torch
    from plain_mechanisms import MECHANISMS

    import graphldp.stages.files.graphs  # noqa: F401
    from graphldp.client import protocol

    torch.rand(4, 4).topk(2)
    floor = peak()
    x, source = features(data)
    m = protocol(mechanism, EPSILON, x.shape[1], 0.0, 1.0).m
    dense = torch.from_numpy(x.toarray())
    times = timed(lambda: MECHANISMS[mechanism](dense, EPSILON, m), repeats)
    return {"seconds": times, "memory": peak() - floor, "m": m, "source": source, "shape": x.shape}


def fill(law: str, repeats: int, data: Path) -> dict[str, Any]:
    """Fill an array of the dense reports' shape and type from numpy.random, block by block in the cache."""
    rng = np.random.default_rng(0)
    floor = peak()
    draw = {"lp": rng.laplace, "gm": rng.normal, "ag": rng.normal}[law]

    def work() -> None:
        out = np.empty((NODES, DIMENSIONS), dtype=np.float32)
        for start in range(0, NODES, BLOCK):
            stop = min(NODES, start + BLOCK)
            out[start:stop] = draw(0.0, 1.0, (stop - start, DIMENSIONS))

    return {"seconds": timed(work, repeats), "memory": peak() - floor, "shape": (NODES, DIMENSIONS)}


SIDES = {"ours": ours, "plain": plain, "fill": fill}


def measure(side: str, mechanism: str, repeats: int, data: Path) -> dict[str, Any]:
    command = [sys.executable, __file__, "--side", side, "--mechanism", mechanism, "--repeats", str(repeats)]
    done = subprocess.run([*command, "--data", str(data)], check=True, capture_output=True, text=True)
    out: dict[str, Any] = json.loads(done.stdout)
    out["median"] = statistics.median(out["seconds"])
    return out


def report(quick: bool, data: Path) -> tuple[list[dict[str, Any]], bool]:
    rows: list[dict[str, Any]] = []
    for mechanism in ("mb", "pm"):
        one = measure("ours", mechanism, 3 if quick else 7, data)
        other = measure("plain", mechanism, 1 if quick else 3, data)
        entries = one["shape"][0] * one["shape"][1]
        row = {
            "mechanism": mechanism,
            "against": "plain dense torch",
            "m": one["m"],
            "seconds": one["median"],
            "other_seconds": other["median"],
            "speedup": other["median"] / one["median"],
            "MB": one["memory"] / 1e6,
            "other_MB": other["memory"] / 1e6,
            "million_features_per_second": entries / one["median"] / 1e6,
            "million_reports_per_second": one["shape"][0] * one["m"] / one["median"] / 1e6,
            "source": one["source"],
        }
        row["fine"] = row["speedup"] >= SPEEDUP and row["MB"] < MEMORY * row["other_MB"] and row["seconds"] < SECONDS
        rows.append(row)
    for mechanism in ("lp", "gm", "ag"):
        one = measure("ours", mechanism, 1 if quick else 3, data)
        other = measure("fill", mechanism, 1 if quick else 3, data)
        entries = one["shape"][0] * one["shape"][1]
        row = {
            "mechanism": mechanism,
            "against": "numpy.random",
            "m": one["m"],
            "seconds": one["median"],
            "other_seconds": other["median"],
            "speedup": other["median"] / one["median"],
            "MB": one["memory"] / 1e6,
            "other_MB": other["memory"] / 1e6,
            "million_features_per_second": entries / one["median"] / 1e6,
            "million_reports_per_second": entries / one["median"] / 1e6,
            "source": one["source"],
        }
        row["fine"] = row["speedup"] >= NUMPY_SHARE
        rows.append(row)
    return rows, all(row["fine"] for row in rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--mechanism", help=argparse.SUPPRESS)
    parser.add_argument("--repeats", type=int, default=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        print(json.dumps(SIDES[options.side](options.mechanism, options.repeats, options.data)))
        return 0
    rows, fine = report(options.quick, options.data)
    if options.json:
        print(json.dumps(rows, indent=2))
        return 0 if fine else 1
    print(f"{NODES:,} x {DIMENSIONS:,} features ({rows[0]['source']}), epsilon {EPSILON:g}")
    for row in rows:
        print(
            f"{row['mechanism']:3} m={row['m']:<5} {row['seconds']:8.4f} s  {row['MB']:7.1f} MB | {row['against']}: "
            f"{row['other_seconds']:8.4f} s  {row['other_MB']:7.1f} MB | {row['speedup']:7.1f} times its speed, "
            f"{row['million_features_per_second']:9.1f} M features/s, "
            f"{row['million_reports_per_second']:6.2f} M reports/s  {'ok' if row['fine'] else 'MISSED'}"
        )
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
