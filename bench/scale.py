"""The whole chain on 1 million nodes and 10 million edges, from the command line: time and peak memory of each stage.

    OMP_NUM_THREADS=1 python bench/scale.py            # a few minutes; about 2 GB of disk
    python bench/scale.py --nodes 50000 --max-memory 0.1     # a look

Every stage is one `ldp` command in a process of its own. Peak memory is the largest resident size of that process, with
the pages of mapped files. Training has `--max-memory`, and its single run does not fit into that in full batch: it
trains in batches of nodes. That every stage stays within `--limit` is checked; the exit code says whether it does.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Stage:
    name: str
    seconds: float
    cpu_seconds: float
    gigabytes: float


def run(name: str, *arguments: object, cwd: Path) -> Stage:
    """Run one command to its end and measure it alone."""
    command = [sys.executable, "-m", "graphldp.cli", "--quiet", *(str(word) for word in arguments)]
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command[3:])} ended with {process.returncode}")
    scale = 1 if sys.platform == "darwin" else 1024
    return Stage(
        name=name,
        seconds=time.perf_counter() - start,
        cpu_seconds=usage.ru_utime + usage.ru_stime,
        gigabytes=usage.ru_maxrss * scale / 1e9,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--degree", type=float, default=20.0)
    parser.add_argument("--dimensions", type=int, default=128)
    parser.add_argument("--classes", type=int, default=40)
    parser.add_argument("--model", default="sgc", help="a decoupled backbone: sgc, ssgc, mlp or appnp")
    parser.add_argument("--steps", type=int, default=2, help="the filter's depth K")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--max-memory", type=float, default=1.0, help="GB for training, beside the data")
    parser.add_argument("--limit", type=float, default=3.0, help="GB that no stage may exceed")
    parser.add_argument("--data", type=Path, help="where to work; a temporary folder if left out")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args()
    cell = ("--dataset", "synthetic", "--epsilon", 1, "--mechanism", "mb")
    shape = {name: getattr(options, name) for name in ("nodes", "degree", "dimensions", "classes")}
    sets = [word for name, value in shape.items() for word in ("--set", f"{name}={value:.12g}")]
    training = ("--model", options.model, "--seeds", 1, "--search-points", 1, "--search-seeds", 1)
    training += ("--epochs", options.epochs, "--max-memory", options.max_memory)
    with tempfile.TemporaryDirectory() as folder:
        cwd = options.data or Path(folder)
        cwd.mkdir(parents=True, exist_ok=True)
        stages = [
            run("generate", "download", "synthetic", *sets, cwd=cwd),
            run("perturb", "perturb", *cell, "--seeds", 1, "--search-seeds", 1, cwd=cwd),
            run("denoise", "denoise", *cell, "--method", "lpgnn", "--steps", options.steps, cwd=cwd),
            run("train", "train", *cell, "--method", "lpgnn", *training, cwd=cwd),
        ]
        facts = inspect(cwd)
    graph = f"{options.nodes:,} nodes of degree {options.degree:g}"
    print(f"{graph}, {options.dimensions} features, {options.classes} classes, {options.model}")
    print(f"{'stage':10}{'seconds':>10}{'CPU s':>10}{'peak GB':>10}")
    for stage in stages:
        print(f"{stage.name:10}{stage.seconds:10.1f}{stage.cpu_seconds:10.1f}{stage.gigabytes:10.2f}")
    print(f"training: {facts}")
    kept = all(stage.gigabytes < options.limit for stage in stages)
    print(f"every stage below {options.limit:g} GB: {'yes' if kept else 'NO'}")
    if options.json:
        rows = [vars(stage) for stage in stages]
        options.json.write_text(json.dumps({"shape": shape, "stages": rows}, indent=2) + "\n", encoding="utf-8")
    return 0 if kept else 1


def inspect(cwd: Path) -> str:
    """Return how the run was trained, and what came of it."""
    command = [sys.executable, "-m", "graphldp.cli", "inspect", "--json", "data/runs/synthetic/lpgnn/eps=1.parquet"]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    record = found.get("record") or found["meta"]["record"]
    batches = record.get("batches")
    if batches is None:
        return "in full batch"
    where = "in files" if batches["in_files"] else "in memory"
    return f"batches of {batches['size']:,} nodes, {batches['updates'][0]} updates an epoch, rows {where}"


if __name__ == "__main__":
    sys.exit(main())
