"""Time and peak memory of the largest synthetic graph that we promise: 1 million nodes, 10 million edges.

    python bench/synthetic.py [--nodes 1000000] [--degree 20]

Drawing, writing, and reading back each run in a process of their own, so that each has its own peak. The promise (under
60 s and 4 GB for the drawing) is checked; the exit code says whether it holds.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

SECONDS, GIGABYTES = 60.0, 4.0

_STEP = """
import json, time
from pathlib import Path
from memory import peak
start = time.perf_counter()
{work}
seconds = time.perf_counter() - start
found = {{"seconds": seconds, "gigabytes": peak() / 1e9, "nodes": graph.nodes, "edges": graph.edges.shape[1]}}
print(json.dumps(found))
"""
_DRAW = "from graphldp.datasets.synthetic import synthetic\ngraph = synthetic(nodes={nodes}, degree={degree})"
_WRITE = _DRAW + "\nfrom graphldp.stages.files.graphs import write_graph\nwrite_graph(graph, Path({folder!r}))"
_READ = "from graphldp.stages.files.graphs import read_graph\ngraph = read_graph(Path({folder!r}))"


def measure(work: str) -> dict[str, float]:
    command = [sys.executable, "-c", _STEP.format(work=work)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).resolve().parent)
    out: dict[str, float] = json.loads(done.stdout)
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--degree", type=float, default=20.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        values = {"nodes": options.nodes, "degree": options.degree, "folder": f"{folder}/graph"}
        steps = {"draw": _DRAW, "draw and write": _WRITE, "read and verify": _READ}
        results = {name: measure(work.format(**values)) for name, work in steps.items()}
    for name, result in results.items():
        print(
            f"{name:<16} {result['nodes']:>10,.0f} nodes {result['edges']:>11,.0f} edges "
            f"{result['seconds']:6.1f} s {result['gigabytes']:5.2f} GB"
        )
    kept = results["draw"]["seconds"] < SECONDS and results["draw"]["gigabytes"] < GIGABYTES
    print(f"under {SECONDS:g} s and {GIGABYTES:g} GB: {'yes' if kept else 'NO'}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
