"""From reports to what a model is given: rectify, threshold, filter, and bring to one scale."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphldp.client import Reports, VectorMechanism
from graphldp.graph import Graph
from graphldp.randomness import generator
from graphldp.server import (
    Calibration,
    Estimate,
    Filtered,
    node_weights,
    rectify,
    shrink,
    vanishes,
)
from graphldp.splits import among

if TYPE_CHECKING:
    from graphldp.learn import NodeInputs
    from graphldp.methods import Method

__all__ = [
    "average_degree",
    "calibration_of",
    "centred",
    "estimate_of",
    "evidence_inputs",
    "filtered_apart",
    "filtered_inputs",
    "of_people",
    "side_by_side",
    "unit_scale",
    "widened",
]

FEW = 0.05  # share of non-zeros up to which filtered inputs are kept sparse: there the products are the cheaper ones


def average_degree(graph: Graph) -> float:
    """Return how many neighbours a node has on average, at least 1; it scales NFR's threshold after the filter."""
    links = len(graph.edges[0]) if graph.weights is None else float(graph.weights.sum(dtype=np.float64))
    return max(1.0, 2.0 * links / max(1, graph.nodes))


def calibration_of(
    recipe: Method, steps: int, device: VectorMechanism, graph: Graph, *, whole: bool = True
) -> Calibration:
    """Return what the server does with that mechanism's reports over the graph, at depth K.

    A threshold after the filter that is below the rounding of what it is taken off is left out: without it the filter
    commutes with the model's weights, and nothing of size n x d has to be made. It stays where the reports are not
    filtered over the `whole` graph: in a part of it, with fewer neighbours, it is another one.
    """
    out = recipe.calibration(steps, device, average_degree(graph))
    if whole and out.after and out.weighting == "none" and vanishes(out, device, out.operator(graph)):
        return out.but(after=0.0)
    return out


def estimate_of(reports: Reports, calibration: Calibration) -> Estimate:
    """Return the rectified reports after the first threshold, with the weights that the filter asks for."""
    estimate = rectify(reports)
    if calibration.before:
        # Which values dropout drops is drawn once for a set of reports, and again for the same ones.
        drawn = hashlib.sha256(np.ascontiguousarray(estimate.matrix.data).tobytes()).hexdigest()
        deviations = shrink(estimate, calibration, generator(0, "dropout", drawn))
        deviations.data = (deviations.data + np.float32(estimate.fill)).astype(np.float32)
        estimate = replace(estimate, matrix=deviations)
    return replace(estimate, weights=node_weights(reports, calibration.weighting))


def centred(estimate: Estimate) -> Estimate:
    """Return the estimate less its fill: what every unreported coordinate counts as is a public constant."""
    return replace(estimate, matrix=estimate.deviations(), fill=0.0)


def of_people(estimate: Estimate, nodes: NDArray[np.int64]) -> Estimate:
    """Return the estimate of these people alone."""
    weights = None if estimate.weights is None else estimate.weights[nodes]
    return replace(estimate, matrix=sp.csr_array(estimate.matrix[nodes]), weights=weights)


def unit_scale(estimate: Estimate, seen: NDArray[np.int64] | None = None) -> float:
    """Return the factor at which the estimate's deviations have a mean square of 1 over all n x d coordinates.

    Estimates are as large as their noise: 0.1 for clean bits, 400 for the piecewise mechanism at epsilon 0.1. A
    learning rate only means the same for all of them if their scale does, so every method's inputs are brought to
    this one, and lose the constant that the fill is: in all d coordinates at once it can outweigh small reports (the
    square wave's at epsilon 1 by 8 to 1) and nothing is learned. The factor is computed from the reports, so it costs
    no privacy; with `seen`, from those of these people alone.
    """
    deviations = (estimate if seen is None else of_people(estimate, seen)).deviations()
    mean = float(np.square(deviations.data, dtype=np.float64).sum()) / max(1, np.prod(deviations.shape))
    return 1.0 / np.sqrt(mean) if mean > 0 else 1.0


def plain_inputs(estimate: Estimate, scale: float) -> NodeInputs:
    """Return an estimate times `scale`: sparse where few dimensions were reported, dense where all were."""
    from graphldp.learn import NodeInputs  # torch, which a server that only denoises does without

    deviations = estimate.deviations()
    deviations.data = (deviations.data * np.float32(scale)).astype(np.float32)
    nodes, dimensions = deviations.shape
    if deviations.nnz == nodes * dimensions:
        return NodeInputs(deviations=deviations.data.reshape(nodes, dimensions), fill=scale * estimate.fill)
    return NodeInputs(deviations=deviations, fill=scale * estimate.fill)


def evidence_inputs(
    matrix: NDArray[np.float32], unit: bool, *, over: sp.csr_array | None, seen: NDArray[np.int64] | None = None
) -> NodeInputs:
    """Return evidence as a model gets it: with `unit`, at a mean square of 1 like every other input.

    `over` is the adjacency that it was made with, where no filter comes behind it; None where one does. With `seen` the
    mean square is that of these people's rows.
    """
    from graphldp.learn import NodeInputs  # torch, which a server that only denoises does without

    rows = matrix if seen is None else matrix[seen]
    mean = float(np.square(rows, dtype=np.float64).mean()) if unit else 1.0
    scaled = matrix * np.float32(1.0 / np.sqrt(mean) if mean > 0 else 1.0)
    return NodeInputs(deviations=scaled, filtered=over is not None, over=over)


def widened(inputs: Sequence[NodeInputs]) -> list[NodeInputs]:
    """Return evidence with columns of zeros behind it, all of it as wide as the widest."""
    width = max(one.deviations.shape[1] for one in inputs)
    missing = [width - one.deviations.shape[1] for one in inputs]
    return [
        replace(one, deviations=np.pad(one.dense(), ((0, 0), (0, more)))) if more else one
        for one, more in zip(inputs, missing, strict=True)
    ]


def side_by_side(parts: Sequence[NodeInputs], *, over: sp.csr_array | None) -> NodeInputs:
    """Return inputs beside each other, each at its own scale: sparse where that is what one of them is.

    `over` is the adjacency of what was filtered already, where no filter comes behind it; None where one does.
    """
    from graphldp.learn import NodeInputs  # torch, which a server that only denoises does without

    if any(part.fill for part in parts):  # one number cannot stand in all columns of two matrices
        parts = [NodeInputs(deviations=part.dense() + np.float32(part.fill)) for part in parts]
    few = [part for part in parts if part.sparse and part.stored <= FEW * np.prod(part.deviations.shape)]
    rest = [part for part in parts if all(part is not one for one in few)]
    if not few:
        return NodeInputs(deviations=np.hstack([part.dense() for part in rest]), filtered=over is not None, over=over)
    # Words are few and evidence is not: its columns come first, and are multiplied as what they are.
    joined: Any = sp.csr_array(sp.hstack([sp.csr_array(part.deviations) for part in (*rest, *few)], format="csr"))
    full = sum(int(part.deviations.shape[1]) for part in rest)
    return NodeInputs(deviations=joined, filtered=over is not None, over=over, full=full)


def filtered_apart(
    graph: Graph,
    groups: Sequence[NDArray[np.int64]],
    estimate: Estimate,
    calibrations: Sequence[Calibration],
    scale: float,
) -> NodeInputs:
    """Return what `filtered_inputs` makes of each group of people alone, with its own calibration, in one matrix.

    `graph` has no edge between groups.
    """
    from graphldp.learn import Deferred, NodeInputs  # torch, which a server that only denoises does without

    order = np.argsort(np.concatenate(groups))
    parts: list[Any] = [
        filtered_inputs(among(graph, nodes), of_people(estimate, nodes), one, scale).deviations
        for nodes, one in zip(groups, calibrations, strict=True)
    ]
    over = calibrations[0].operator(graph, estimate.weights)
    if all(sp.issparse(part) for part in parts):
        few = sp.csr_array(sp.vstack(parts, format="csr")[order])
        return NodeInputs(deviations=few, fill=0.0, filtered=True, over=over)

    def make() -> NDArray[np.float32]:
        dense = [part.matrix() if isinstance(part, Deferred) else part.toarray() for part in parts]
        for part in parts:
            if isinstance(part, Deferred):
                part.forget()
        return np.asarray(np.concatenate(dense)[order], dtype=np.float32)

    digest = hashlib.sha256(np.concatenate(groups).tobytes())
    for part in parts:
        digest.update(part.mark.encode() if isinstance(part, Deferred) else part.data.tobytes())
    deferred = Deferred(estimate.matrix.shape, make, digest.hexdigest())
    return NodeInputs(deviations=deferred, fill=0.0, filtered=True, over=over)


def filtered_inputs(graph: Graph, estimate: Estimate, calibration: Calibration, scale: float) -> NodeInputs:
    """Return an estimate with the filter and the threshold after it applied, n x d, times `scale`, when it is needed.

    A threshold after the filter does not commute with the model's first weight matrix. What it leaves is dense, unless
    nearly everything is below the threshold.
    """
    from graphldp.learn import Deferred, NodeInputs  # torch, which a server that only denoises does without

    rest = calibration.but(before=0.0)  # the estimate has it behind it
    operator = rest.operator(graph, estimate.weights)
    filtered = Filtered.of(estimate, rest, operator)
    few = filtered.sparse(FEW) if filtered.fill == 0 else None  # a fill stands in every coordinate
    if few is not None:
        few.data = (few.data * np.float32(scale)).astype(np.float32)
        return NodeInputs(deviations=few, fill=0.0, filtered=True, over=operator)
    digest = hashlib.sha256(repr((rest.meta(), scale, estimate.fill)).encode())
    for matrix in (filtered.deviations, operator):
        digest.update(np.ascontiguousarray(matrix.data).tobytes() + np.ascontiguousarray(matrix.indices).tobytes())

    def make() -> NDArray[np.float32]:
        out = filtered.dense()
        out *= np.float32(scale)
        return out

    deferred = Deferred((filtered.nodes, filtered.dimensions), make, digest.hexdigest())
    return NodeInputs(deviations=deferred, fill=0.0, filtered=True, over=operator)
