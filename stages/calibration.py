"""Stage calibration: what a calibration does to signal and noise, in figures: energies, and errors against clean data.

Reports come from the devices that `ldp run` asks, drawn at the same addresses. Errors and signal need everybody's true
features: they are for data that one holds, and no part of what a server does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphldp.errors import DataError, OptionError
from graphldp.experiment.plan import Devices, Setup
from graphldp.graph import Graph
from graphldp.ledger import epsilon_text
from graphldp.methods import method
from graphldp.progress import Progress
from graphldp.server import (
    Filtered,
    clean_aggregate,
    decay_rate,
    dirichlet_energy,
    energy_ratio,
    estimation_error,
    hoa,
)
from graphldp.stages.attack import write_rows
from graphldp.stages.files.artifacts import write_json
from graphldp.stages.files.graphs import read_graph
from graphldp.stages.files.paths import graph_dir
from graphldp.stages.grids.cell import Cell
from graphldp.stages.grids.params import Params

__all__ = ["MeasuredRow", "cells", "headers", "legend", "measure_calibration", "write_measured"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRow:
    """One calibration at one depth and budget; means over repetitions.

    Attributes:
        dataset, method, mechanism, epsilon, steps: what was calibrated, and by which depth K.
        repetitions: how many sets of reports.
        reported: Dirichlet energy of the rectified reports, after a threshold before the filter.
        energy: the same of the calibrated estimate.
        clean: the same of the true features behind the same filter, without thresholds.
        phi: UPGNet's Phi_K of these reports: what HOA leaves of the energy of SKA, summed over depths 1 to K.
        error: root mean square over nodes of the Euclidean distance to the true features behind the same filter.
        largest: mean over nodes of the largest error of an attribute.
        signal: root mean square over nodes of the distance of the true features behind the filter to their own mean.
        rate: the exponent of a node's error in its degree.
    """

    dataset: str
    method: str
    mechanism: str
    epsilon: float
    steps: int
    repetitions: int
    reported: float
    energy: float
    clean: float
    phi: float
    error: float
    largest: float
    signal: float
    rate: float


def measure_calibration(
    cells: Sequence[Cell],
    *,
    data: Path,
    params: Params,
    steps: Sequence[int] = (),
    progress: Progress | None = None,
) -> list[MeasuredRow]:
    """Measure the calibrations of a graph's cells at depths K: `steps`, or those that the parameters search."""
    graph = read_graph(graph_dir(data, cells[0].dataset))
    found: list[tuple[Cell, Setup, tuple[int, ...]]] = []
    for cell in cells:
        recipe = method(cell.method)
        if not recipe.model or recipe.evidence or recipe.learners:
            raise OptionError(f"method {cell.method!r} filters no reports, so there is nothing of them to measure")
        recipe = cell.recipe
        if steps and not recipe.propagates:
            raise OptionError(f"the filter of method {cell.method!r} has no depth K: leave --steps out")
        cell = cell.whole()
        source = Devices(
            graph=graph, recipe=recipe, mechanism=cell.mechanism, epsilon=cell.epsilon, options=cell.options,
            params=params,
        )  # fmt: skip
        found.append((cell, source.setup({}), recipe.steps(tuple(dict.fromkeys(steps)) or params.search.steps)))
    rows: list[MeasuredRow] = []
    for place, (cell, setup, depths) in enumerate(found):

        def say(seed: int, place: int = place, cell: Cell = cell) -> None:
            if progress is not None:
                done = place * params.seeds + seed
                progress(done, len(found) * params.seeds, f"{cell.method}, epsilon {epsilon_text(cell.epsilon)}")

        rows += _measured(graph, cell, setup, depths, params.seeds, say)
    return rows


def _measured(
    graph: Graph,
    cell: Cell,
    setup: Setup,
    depths: Sequence[int],
    seeds: int,
    say: Callable[[int], None],
) -> list[MeasuredRow]:
    adjacency = graph.adjacency()
    figures = np.full((seeds, len(depths), 7), math.nan)
    norms = np.zeros((len(depths), graph.nodes))
    known: dict[int, tuple[Filtered, float, float]] = {}  # the true features' side, by depth: the same for all reports
    for seed in range(seeds):
        say(seed)
        estimate = setup.estimate(seed)
        reported = dirichlet_energy(estimate, adjacency)
        deepest = max(depths)
        ratios = energy_ratio(estimate, hoa(1).operator(graph), adjacency, deepest) if deepest else np.zeros(0)
        for place, depth in enumerate(depths):
            calibration = setup.calibration(depth).but(before=0.0)  # the estimate has it behind it
            ours = Filtered.of(estimate, calibration, calibration.operator(graph, estimate.weights))
            if depth not in known or estimate.weights is not None:
                theirs = clean_aggregate(ours, graph.features)
                known[depth] = (theirs, dirichlet_energy(theirs, adjacency), _spread(theirs))
            theirs, clean, spread = known[depth]
            error = estimation_error(ours, None, reference=theirs)
            norms[place] += error.norm**2 / seeds
            figures[seed, place] = (
                *(reported, dirichlet_energy(ours, adjacency), clean),
                *(ratios[depth - 1] if depth else math.nan, error.root_mean_square**2, error.largest.mean()),
                spread**2,
            )
    say(seeds)
    degree = np.asarray(adjacency.sum(axis=1)).ravel()
    rows = []
    for place, depth in enumerate(depths):
        reported, energy, clean, phi, error, largest, signal = figures[:, place].mean(axis=0)
        rows.append(
            MeasuredRow(
                dataset=graph.name,
                method=cell.method,
                mechanism=cell.mechanism,
                epsilon=cell.epsilon,
                steps=depth,
                repetitions=seeds,
                reported=float(reported),
                energy=float(energy),
                clean=float(clean),
                phi=float(phi),
                error=math.sqrt(error),
                largest=float(largest),
                signal=math.sqrt(signal),
                rate=_rate(np.sqrt(norms[place]), degree),
            )
        )
    return rows


def _spread(values: Filtered) -> float:
    """Return the root mean square over nodes of the distance to the mean node."""
    total = sum(float(block.astype(np.float64).var(axis=0).sum()) for _, block in values.blocks())
    return math.sqrt(total)


def _rate(error: NDArray[np.float64], degree: NDArray[np.float64]) -> float:
    try:
        return decay_rate(error, degree)
    except DataError:  # all degrees are alike, or nothing is wrong
        return math.nan


def headers() -> tuple[str, ...]:
    """Return the columns of the table that people read."""
    return (
        "method",
        "mechanism",
        "eps",
        "K",
        "reported",
        "energy",
        "clean",
        "Phi_K",
        "error",
        "largest",
        "signal",
        "rate",
    )


def cells(row: MeasuredRow) -> tuple[str, ...]:
    """Return a row of that table."""
    numbers = (row.reported, row.energy, row.clean, row.phi, row.error, row.largest, row.signal)
    shown = ("" if math.isnan(value) else f"{value:.3g}" for value in numbers)
    rate = "" if math.isnan(row.rate) else f"{row.rate:.2f}"
    return row.method, row.mechanism, epsilon_text(row.epsilon), str(row.steps), *shown, rate


def legend(rows: Sequence[MeasuredRow]) -> tuple[str, ...]:
    """Return what the table is, and what its columns mean."""
    one = rows[0]
    return (
        f"{one.dataset}: what calibrations do to signal and noise, means over {one.repetitions} "
        f"{'set' if one.repetitions == 1 else 'sets'} of reports",
        "reported, energy, clean: Dirichlet energy of the reports, of the calibrated estimate, of the true features "
        "behind the same filter",
        "Phi_K: the energy of HOA over that of SKA, summed over depths 1 to K (UPGNet's Theorem 4 has it fall to 0)",
        "error: Euclidean distance to the true features behind the same filter, root mean square over nodes; largest: "
        "of one attribute, mean over nodes (Theorem 3)",
        "signal: how far the true features behind the filter are from their mean; rate: exponent of the error in the "
        "degree (-0.5 for a mean over neighbours)",
    )


def write_measured(rows: Sequence[MeasuredRow], path: Path) -> Path:
    """Write all rows, as JSON where the name ends so, and as CSV elsewhere."""
    facts = [asdict(row) for row in rows]
    if path.suffix.lower() == ".json":
        write_json(path, facts)
    else:
        write_rows(path, facts)
    return path
