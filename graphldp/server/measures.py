"""What a calibration did to the signal and to the noise, measured: energies, and errors against the clean aggregate.

The papers bound these (UPGNet's Theorems 3 and 4, TOGL's Proposition 1); here they are figures. Errors need the clean
features, so they are for experiments on public data and never part of what a server does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from graphldp.errors import DataError, OptionError
from graphldp.server.estimate import Estimate
from graphldp.server.filtered import BLOCK_MEMORY, Filtered

__all__ = ["EstimationError", "clean_aggregate", "decay_rate", "dirichlet_energy", "energy_ratio", "estimation_error"]


def _laplacian(adjacency: Any) -> tuple[NDArray[np.float64], sp.csr_array]:
    matrix = sp.csr_array(adjacency, dtype=np.float64)
    # sum_ij A_ij |h_i - h_j|^2 counts a node once as i and once as j.
    degree = np.asarray(matrix.sum(axis=1)).reshape(-1) + np.asarray(matrix.sum(axis=0)).reshape(-1)
    return degree, matrix


def _energy(block: NDArray[Any], degree: NDArray[np.float64], adjacency: sp.csr_array) -> float:
    values = block.astype(np.float64)
    own = float(np.einsum("i,ij,ij->", degree, values, values))
    return own - 2 * float(np.vdot(values, adjacency @ values))


def dirichlet_energy(values: Any, adjacency: Any, *, max_memory: float = BLOCK_MEMORY) -> float:
    r"""Return 1/n sum_i sum_{j in N(i)} A_ij |h_i - h_j|^2: 0 where all neighbours agree.

    Formula: UPGNet's Eq. 7. It equals 1/n trace(H^T (D_out + D_in - A - A^T) H).

    Args:
        values: H at any stage: an `Estimate` (before the filter), a `Filtered` (after it, done in blocks of columns),
            a sparse or a dense matrix.
        adjacency: n x n, of the public graph.
        max_memory: bytes of working memory for a `Filtered`.
    """
    degree, matrix = _laplacian(adjacency)
    nodes = len(degree)
    if isinstance(values, Estimate):
        values = values.deviations()  # the fill is the same everywhere and drops out of every difference
    if values.deviations.shape[0] != nodes if isinstance(values, Filtered) else values.shape[0] != nodes:
        raise DataError(f"the adjacency has {nodes} nodes, the values have another number")
    if isinstance(values, Filtered):
        total = sum(_energy(block, degree, matrix) for _, block in values.blocks(max_memory))
    elif sp.issparse(values):
        csr = sp.csr_array(values, dtype=np.float64)
        squares = np.asarray(csr.multiply(csr).sum(axis=1)).reshape(-1)
        total = float(degree @ squares) - 2 * float(csr.multiply(matrix @ csr).sum())
    else:
        total = _energy(np.asarray(values), degree, matrix)
    return max(0.0, float(total)) / max(1, nodes)


def energy_ratio(
    estimate: Estimate, operator: sp.csr_array, adjacency: Any, steps: int, *, max_memory: float = BLOCK_MEMORY
) -> NDArray[np.float64]:
    """Return UPGNet's Phi_K for K = 1..steps: the energies of HOA at depths 1..K over those of SKA, summed.

    Theorem 4 says that it tends to 0. Both filters share their powers, so all depths cost `steps` products.
    """
    if steps < 1:
        raise OptionError(f"steps must be at least 1, got {steps}")
    degree, matrix = _laplacian(adjacency)
    energies = np.zeros((2, steps))
    sparse = sp.csc_array(estimate.deviations())
    width = max(1, int(max_memory // (16 * max(1, sparse.shape[0]))))
    # One column more for the fill, which counts once for every attribute but mixes with each: add it to the blocks.
    level = np.full((sparse.shape[0], 1), np.float32(estimate.fill))
    for start in range(0, sparse.shape[1], width):
        power = sparse[:, start : start + width].toarray() + level
        total = np.zeros_like(power)
        for step in range(steps):
            power = operator @ power
            total += power
            energies[0, step] += _energy(total / np.float32(step + 1), degree, matrix)
            energies[1, step] += _energy(power, degree, matrix)
    above, below = np.cumsum(energies, axis=1)
    return np.asarray(np.divide(above, below, out=np.full(steps, np.nan), where=below > 0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EstimationError:
    """The distance between a calibrated estimate and the clean aggregate.

    Attributes:
        largest: n, each node's largest error over its attributes (UPGNet's max xi_i, PPGNN's Delta).
        norm: n, each node's Euclidean error (TOGL's Upsilon).
    """

    largest: NDArray[np.float64]
    norm: NDArray[np.float64]

    @property
    def root_mean_square(self) -> float:
        """Over all nodes, of the Euclidean error."""
        return float(np.sqrt(np.mean(self.norm**2)))


def clean_aggregate(estimated: Filtered, clean: Any) -> Filtered:
    """Return true features, sparse or dense, behind the filter of an estimate, without thresholds."""
    features = Estimate(matrix=sp.csr_array(clean, dtype=np.float32), fill=0.0)
    return Filtered.of(features, estimated.calibration.but(before=0.0, after=0.0, r_max=0.0), estimated.operator)


def estimation_error(
    estimated: Filtered, clean: Any, *, reference: Filtered | None = None, max_memory: float = BLOCK_MEMORY
) -> EstimationError:
    """Return the error of a calibrated estimate against the same filter, without thresholds, on the clean features.

    Args:
        estimated: what the server computed.
        clean: n x d, sparse or dense: everybody's true features.
        reference: another aggregate to compare with than the filter applied to `clean`.
        max_memory: bytes of working memory.
    """
    if reference is None:
        reference = clean_aggregate(estimated, clean)
    if reference.deviations.shape != estimated.deviations.shape:
        raise DataError(
            f"the clean features have the shape {reference.deviations.shape}, the estimate {estimated.deviations.shape}"
        )
    largest = np.zeros(estimated.nodes)
    squares = np.zeros(estimated.nodes)
    pairs = zip(estimated.blocks(max_memory / 2), reference.blocks(max_memory / 2), strict=True)
    for (_, ours), (_, theirs) in pairs:
        gap = ours.astype(np.float64) - theirs
        np.maximum(largest, np.abs(gap).max(axis=1, initial=0.0), out=largest)
        squares += np.einsum("ij,ij->i", gap, gap)
    return EstimationError(largest=largest, norm=np.sqrt(squares))


def decay_rate(error: ArrayLike, degree: ArrayLike, at_least: Sequence[float] | float = 1) -> float:
    """Return the exponent of the error in the neighbourhood's size: the slope of log error over log degree.

    One step of the mean over neighbours gives -1/2 (Theorem 3; Proposition 1's -1 is not what its proof shows). Nodes
    of fewer than `at_least` neighbours are left out.
    """
    size, wrong = np.asarray(degree, dtype=np.float64), np.asarray(error, dtype=np.float64)
    used = (size >= at_least) & (size > 0) & (wrong > 0)
    if len(np.unique(size[used])) < 2:
        raise DataError("a rate needs nodes of at least two different degrees with an error above 0")
    return float(np.polyfit(np.log(size[used]), np.log(wrong[used]), 1)[0])
