"""Private links on Facebook (22,470 people, 252 million pairs): reports, estimates, and the dendrogram's moves.

    python bench/links.py            # about three minutes
    python bench/links.py --json     # the same as JSON

Each measurement runs in a process of its own; memory is the peak resident size above what the imports alone take.
`rr` is compared with the dense way, numpy's bits for every pair, on 5,000 people, where a dense matrix fits with its
copies; that memory follows the reports is shown by two budgets. The estimate runs under the limit that `--max-memory`
of the commands gives. The dendrogram's moves are compared with the same function in plain Python.
The data are data/graphs/facebook, or the mirror that LDP_MIRROR names; without either, random links of that number.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from memory import peak

NODES, LINKS = 22_470, 170_823
SOURCE = "benedekrozemberczki/MUSAE/5f901232957b6c9985d750aac48cda39a4b24285/input/edges/facebook_edges.csv"
DENSE_NODES = 5_000
SPEEDUP, MOVES_SPEEDUP = 50.0, 100.0
MAX_MEMORY = 4e9


def edges(data: Path) -> tuple[np.ndarray, str]:
    """Return Facebook's links, each once."""
    if (data / "graphs" / "facebook" / "graph.json").exists():
        from graphldp.stages.files.graphs import read_graph

        return read_graph(data / "graphs" / "facebook").edges, "data/graphs/facebook"
    mirror = Path(os.environ.get("LDP_MIRROR", "")) / SOURCE
    if os.environ.get("LDP_MIRROR") and mirror.is_file():
        pairs = np.loadtxt(mirror, delimiter=",", skiprows=1, dtype=np.int64).T
        name = "the mirror"
    else:
        pairs = np.random.default_rng(0).integers(0, NODES, (2, LINKS))
        name = "random links of that number"
    pairs = np.sort(pairs[:, pairs[0] != pairs[1]], axis=0)
    return np.unique(pairs, axis=1), name


def few(pairs: np.ndarray) -> np.ndarray:
    """Return the links among the first people."""
    return pairs[:, (pairs < DENSE_NODES).all(axis=0)]


def rr(data: Path, epsilon: float, nodes: int) -> dict[str, Any]:
    """Randomised response of everybody's lists."""
    import graphldp.stages.files.graphs  # noqa: F401  (part of the imports, not of the work)
    from graphldp.client.links import Neighbours, link_mechanism

    pairs, source = edges(data)
    lists = Neighbours.of_edges(pairs if nodes == NODES else few(pairs), nodes)
    device = link_mechanism("rr", epsilon, nodes)
    link_mechanism("rr", 5.0, 100).perturb(Neighbours.of_edges([[0], [1]], 100), np.random.default_rng(0))
    floor, times, links = peak(), [], 0
    for seed in range(3):
        start = time.perf_counter()
        links = device.perturb(lists, np.random.default_rng(seed)).links
        times.append(time.perf_counter() - start)
    return {
        "seconds": statistics.median(times),
        "memory": peak() - floor,
        "links": links,
        "pairs": nodes * (nodes - 1) // 2,
        "source": source,
    }


def dense(data: Path, epsilon: float, nodes: int) -> dict[str, Any]:
    """The same with a number for every pair."""
    pairs, source = edges(data)
    pairs = few(pairs)
    floor, times, links = peak(), [], 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        start = time.perf_counter()
        bits = np.zeros((nodes, nodes), dtype=bool)
        bits[pairs[1], pairs[0]] = True
        bits = np.tril(bits ^ (rng.random((nodes, nodes)) < 1 / (1 + np.exp(epsilon))), -1)
        links = len(np.nonzero(bits)[0])
        times.append(time.perf_counter() - start)
    return {"seconds": statistics.median(times), "memory": peak() - floor, "links": links, "source": source}


def blink(data: Path, epsilon: float, nodes: int) -> dict[str, Any]:
    """BLINK's reports, and the hybrid estimate under the limit of memory."""
    import graphldp.stages.files.graphs  # noqa: F401
    from graphldp.client.links import Neighbours, link_mechanism
    from graphldp.server.links import estimate_links

    pairs, source = edges(data)
    floor = peak()
    sent = link_mechanism("blink", epsilon, nodes).perturb(Neighbours.of_edges(pairs, nodes), np.random.default_rng(0))
    start = time.perf_counter()
    found = estimate_links(sent, "hybrid", max_memory=MAX_MEMORY)
    took = time.perf_counter() - start
    return {"seconds": took, "memory": peak() - floor, "reported": sent.links, "links": found.links, "source": source}


def moves(data: Path, epsilon: float, nodes: int) -> dict[str, Any]:
    """Moves of the dendrogram's chain in a second, compiled and in plain Python."""
    from graphldp.client.links import Neighbours
    from graphldp.trusted.dendrogram import random_dendrogram, steps_of

    pairs, source = edges(data)
    lists, private = Neighbours.of_edges(pairs, nodes), np.ones(nodes, dtype=bool)
    tree = random_dendrogram(lists, private, np.random.default_rng(0))
    rest = (lists.indptr, lists.indices.astype(np.int64), private, np.empty(2 * nodes, np.int64))
    parts = [tree.left, tree.right, tree.parent, tree.leaves, tree.private, tree.links]
    steps_of()(*parts, *rest, np.random.default_rng(0).random((1, 3)), 0.1, 1, 0)
    speed = {}
    for name, move, count in (("compiled", steps_of(), 200_000), ("plain", steps_of().py_func, 1_000)):
        own, draws = [part.copy() for part in parts], np.random.default_rng(1).random((count, 3))
        start = time.perf_counter()
        move(*own, *rest, draws, 0.1, 1, 0)
        speed[name] = count / (time.perf_counter() - start)
    return {**speed, "source": source}


SIDES = {"rr": rr, "dense": dense, "blink": blink, "moves": moves}


def measure(side: str, epsilon: float, nodes: int, data: Path) -> dict[str, Any]:
    """Return what one side measures in a process of its own."""
    command = [sys.executable, __file__, "--side", side, "--epsilon", str(epsilon), "--nodes", str(nodes)]
    done = subprocess.run([*command, "--data", str(data)], check=True, capture_output=True, text=True)
    out: dict[str, Any] = json.loads(done.stdout)
    return out


def report(data: Path) -> tuple[list[dict[str, Any]], bool]:
    """Return all rows, and whether everything that is asked is met."""
    rows = []
    whole = {epsilon: measure("rr", epsilon, NODES, data) for epsilon in (5.0, 7.0)}
    for epsilon, one in whole.items():
        each = one["memory"] / one["links"]
        told = {"what": f"rr at {epsilon:g}", **one, "bytes_per_link": each}
        # A bit for every pair alone would be 32 MB, a byte 252 MB; the reports' share of it falls with their number.
        rows.append({**told, "fine": one["seconds"] < 10 and one["memory"] < 200 * one["links"] + 2e7})
    small, other = measure("rr", 5.0, DENSE_NODES, data), measure("dense", 5.0, DENSE_NODES, data)
    speedup = other["seconds"] / small["seconds"]
    rows.append(
        {
            "what": f"rr at 5, {DENSE_NODES:,} people, against dense",
            **small,
            "dense_seconds": other["seconds"],
            "dense_memory": other["memory"],
            "speedup": speedup,
            "fine": speedup >= SPEEDUP,
        }
    )
    for epsilon in (4.0, 8.0):
        found = measure("blink", epsilon, NODES, data)
        rows.append({"what": f"blink hybrid at {epsilon:g}", **found, "fine": found["memory"] < MAX_MEMORY})
    chain = measure("moves", 5.0, NODES, data)
    ratio = chain["compiled"] / chain["plain"]
    rows.append({"what": "moves of a dendrogram", **chain, "speedup": ratio, "fine": ratio >= MOVES_SPEEDUP})
    return rows, all(row["fine"] for row in rows)


def main() -> int:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--epsilon", type=float, default=5.0, help=argparse.SUPPRESS)
    parser.add_argument("--nodes", type=int, default=NODES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        print(json.dumps(SIDES[options.side](options.data, options.epsilon, options.nodes)))
        return 0
    rows, fine = report(options.data)
    if options.json:
        print(json.dumps(rows, indent=2))
        return 0 if fine else 1
    print(f"{NODES:,} people, {NODES * (NODES - 1) // 2:,} pairs ({rows[0]['source']})")
    for row in rows:
        told = []
        if "seconds" in row:
            told.append(f"{row['seconds']:.3f} s, {row['memory'] / 1e6:.0f} MB, {row['links']:,} links")
        if "bytes_per_link" in row:
            told.append(f"{row['bytes_per_link']:.0f} bytes a link")
        if "dense_seconds" in row:
            told.append(f"dense {row['dense_seconds']:.3f} s, {row['dense_memory'] / 1e6:.0f} MB")
        if "compiled" in row:
            told.append(f"{row['compiled']:,.0f} a second, plain Python {row['plain']:,.0f}")
        if "speedup" in row:
            told.append(f"{row['speedup']:.0f} times")
        print(f"{row['what']:38} {'; '.join(told)}  {'ok' if row['fine'] else 'MISSED'}")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
