"""How time and memory grow with nodes, edges and features: the baseline, and TOGL's two rounds.

    OMP_NUM_THREADS=1 python bench/scaling.py --output docs    # a few minutes; writes CSV files and scaling.svg there
    python bench/scaling.py --quick --output look              # smaller shapes

Two shapes are those of TOGL's Table 8 (Co-Phy and ogbn-arxiv) with synthetic contents; around a small base shape,
nodes, edges and features are doubled one at a time. Each measurement is one seed of one method in a process of its own:
people report (both rounds, with the ranking between them), the server filters, and one GCN trains for a fixed number of
epochs. Time is CPU time, which other work on the machine disturbs least. Memory is the peak resident size above that of
the graph and the imports. Exponents are slopes of log y over log x, with the 95 % interval of the regression.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from memory import peak

METHODS = ("lpgnn", "togl-fda")
EPSILON, MECHANISM, STEPS, HIDDEN = 10.0, "pm", 2, 64
AXES = ("nodes", "edges", "features")
COLUMNS = ("shape", "axis", "method", "nodes", "edges", "features", "classes", "epochs")
MEASURED = ("collect_seconds", "train_seconds", "seconds", "megabytes")


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A synthetic graph and how long is trained on it."""

    shape: str
    nodes: int
    edges: int
    features: int
    classes: int
    words: float = 20.0
    epochs: int = 20
    axis: str = ""


LARGE = (
    Shape(shape="co-phy", nodes=34_493, edges=247_962, features=8_415, classes=5, words=33.0, epochs=50),
    Shape(shape="ogbn-arxiv", nodes=169_343, edges=1_157_799, features=128, classes=40, epochs=50),
)
BASE = Shape(shape="base", nodes=16_000, edges=128_000, features=512, classes=8)


def shapes(quick: bool) -> list[Shape]:
    """Return what is measured. A longer axis leaves the others as they are; more nodes keep the number of edges."""
    base, large = BASE, list(LARGE)
    if quick:
        base = replace(base, nodes=4_000, edges=32_000, epochs=3)
        large = [replace(one, nodes=one.nodes // 10, edges=one.edges // 10, epochs=3) for one in large]
    swept = [
        replace(base, shape=f"{axis} x {factor}", axis=axis, **{axis: getattr(base, axis) * factor})
        for axis in AXES
        for factor in (2, 4, 8)
    ]
    return [*large, base, *swept]


def measure(shape: Shape, method: str) -> dict[str, float]:
    """Measure one method on one shape, in this process."""
    import torch  # noqa: F401

    from graphldp import methods
    from graphldp.datasets.synthetic import synthetic
    from graphldp.experiment.estimates import centred, plain_inputs, unit_scale
    from graphldp.experiment.options import SearchParams
    from graphldp.experiment.parts import split_of
    from graphldp.experiment.plan import Devices
    from graphldp.learn import Options, Problem, Run, fit, model
    from graphldp.stages.grids.params import Params

    graph = synthetic(
        nodes=shape.nodes,
        classes=shape.classes,
        degree=2 * shape.edges / shape.nodes,
        dimensions=shape.features,
        words=shape.words,
    )
    params = Params(seeds=1, search=SearchParams(steps=(STEPS,)))
    split = split_of(graph, params, 0)
    floor, start = peak(), time.process_time()
    recipe = methods.method(method)
    devices = Devices(graph=graph, recipe=recipe, mechanism=MECHANISM, epsilon=EPSILON, options={}, params=params)
    setup = devices.setup({})
    estimate = setup.estimate(0)
    collected = time.process_time()
    calibration = setup.calibration(STEPS)
    inputs = plain_inputs(centred(estimate), unit_scale(estimate))
    problem = Problem(
        shift=calibration.operator(graph), adjacency=graph.adjacency(), inputs=(inputs,), classes=graph.classes
    )
    run = Run(
        inputs=0,
        split=split,
        labels=split.visible(graph.labels),
        seed=0,
        dropout=0.5,
        coefficients=calibration.coefficients,
    )
    options = Options(model=model("gcn", hidden=HIDDEN, activation="relu"), epochs=shape.epochs, patience=None)
    fit(problem, [run], options, device="cpu")
    end = time.process_time()
    return {
        "collect_seconds": collected - start,
        "train_seconds": end - collected,
        "seconds": end - start,
        "megabytes": (peak() - floor) / 1e6,
    }


def measured(shape: Shape, method: str, turns: int) -> dict[str, Any]:
    """Measure in processes of their own, and return the quickest time and the middle of the memory."""
    import numpy as np

    found = []
    for _ in range(turns):
        command = [sys.executable, __file__, "--worker", method, json.dumps(asdict(shape))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{method} on {shape.shape} ended with {done.returncode}:\n{done.stderr}")
        found.append(json.loads(done.stdout.splitlines()[-1]))
    best = min(found, key=lambda one: one["seconds"])
    row = {**asdict(shape), "method": method, **best}
    return {**row, "megabytes": float(np.median([one["megabytes"] for one in found]))}


def exponent(x: Sequence[float], y: Sequence[float]) -> tuple[float, float, float]:
    """Return the slope of log y over log x and its 95 % interval."""
    import numpy as np
    from scipy.stats import linregress, t

    line = linregress(np.log(x), np.log(y))
    half = float(t.ppf(0.975, len(x) - 2) * line.stderr)
    return float(line.slope), float(line.slope) - half, float(line.slope) + half


def swept(rows: Sequence[dict[str, Any]], axis: str, method: str) -> list[dict[str, Any]]:
    """Return the rows along an axis, the base among them."""
    return [row for row in rows if row["method"] == method and (row["axis"] == axis or row["shape"] == "base")]


def exponents(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return how each measure grows along each axis."""
    out = []
    for axis in AXES:
        for method in METHODS:
            line = swept(rows, axis, method)
            for measure_ in MEASURED:
                slope, low, high = exponent([row[axis] for row in line], [row[measure_] for row in line])
                facts = {"axis": axis, "method": method, "measure": measure_}
                out.append({**facts, "exponent": slope, "low": low, "high": high})
    return out


def draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw time and memory along each axis."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    short = FuncFormatter(lambda value, _: f"{value / 1000:g}k" if value >= 10_000 else f"{value:g}")
    matplotlib.rcParams["svg.hashsalt"] = "graphldp"
    figure, grid = plt.subplots(2, 3, figsize=(9, 5), sharey="row", layout="constrained")
    for column, axis in enumerate(AXES):
        for row, (key, words) in enumerate((("seconds", "CPU seconds"), ("megabytes", "peak MB"))):
            place = grid[row, column]
            for method, colour, mark in zip(METHODS, ("#0072b2", "#d55e00"), "os", strict=True):
                line = swept(rows, axis, method)
                slope, low, high = exponent([one[axis] for one in line], [one[key] for one in line])
                label = f"{method}: {slope:.2f} ({low:.2f} to {high:.2f})"
                x, y = ([one[name] for one in line] for name in (axis, key))
                place.loglog(x, y, marker=mark, markersize=4, linewidth=1, color=colour, label=label)
            place.set_xticks([one[axis] for one in swept(rows, axis, METHODS[0])])
            for side in (place.xaxis, place.yaxis):
                side.set_major_formatter(short)
                side.set_minor_formatter(NullFormatter())
            place.xaxis.set_minor_locator(NullLocator())
            place.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            place.tick_params(labelsize=8)
            place.legend(frameon=False, fontsize=7, title="exponent", title_fontsize=7)
            if row:
                place.set_xlabel(axis)
            if not column:
                place.set_ylabel(words)
    figure.savefig(path, format="svg", metadata={"Date": None, "Title": "Growth with nodes, edges and features"})
    plt.close(figure)


def show(rows: Sequence[dict[str, Any]], slopes: Sequence[dict[str, Any]]) -> None:
    print(f"{'shape':14}{'method':10}{'collect s':>11}{'train s':>9}{'in all':>9}{'peak MB':>9}")
    for row in rows:
        print(
            f"{row['shape']:14}{row['method']:10}{row['collect_seconds']:11.2f}{row['train_seconds']:9.2f}"
            f"{row['seconds']:9.2f}{row['megabytes']:9.0f}"
        )
    for shape in LARGE:
        one, two = (next(r for r in rows if (r["shape"], r["method"]) == (shape.shape, m)) for m in METHODS)
        print(
            f"{shape.shape}: {METHODS[1]} takes {two['seconds'] / one['seconds']:.2f} times the time and "
            f"{two['megabytes'] / one['megabytes']:.2f} times the memory of {METHODS[0]}"
        )
    print(f"{'grows with':12}{'method':10}{'measure':17}exponent")
    for row in slopes:
        interval = f"{row['exponent']:.2f} ({row['low']:.2f} to {row['high']:.2f})"
        print(f"{row['axis']:12}{row['method']:10}{row['measure']:17}{interval}")


def write(path: Path, rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> None:
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: f"{value:.3f}" if isinstance(value, float) else value for key, value in row.items()})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller shapes: a look, not a measurement")
    parser.add_argument("--turns", type=int, default=1, help="each measurement's quickest of so many")
    parser.add_argument("--output", type=Path, help="folder for the CSV files and the figure; none if left out")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(measure(Shape(**json.loads(options.worker[1])), options.worker[0])))
        return
    rows = [measured(shape, method, options.turns) for shape in shapes(options.quick) for method in METHODS]
    slopes = exponents(rows)
    show(rows, slopes)
    if options.output is None:
        return
    options.output.mkdir(parents=True, exist_ok=True)
    write(options.output / "scaling.csv", rows, (*COLUMNS, *MEASURED))
    write(options.output / "scaling-exponents.csv", slopes, ("axis", "method", "measure", "exponent", "low", "high"))
    draw(rows, options.output / "scaling.svg")


if __name__ == "__main__":
    main()
