"""From reports to estimates: the inverse of the client's own law."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphldp.client import Reports, from_meta
from graphldp.errors import OptionError

__all__ = ["Estimate", "rectangular", "rectify"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimate:
    """What the server makes of the reports, before any calibration.

    Attributes:
        matrix: n x d, CSR, float32: the estimate at the reported coordinates. An estimate of 0 is stored, not left out.
            All rows have one length: a node that reported fewer dimensions has some unreported ones, at the fill.
        fill: what every unreported coordinate counts as.
        weights: what each node's column counts by in a filter that weighs nodes; None in all others.
    """

    matrix: sp.csr_array
    fill: float
    weights: NDArray[np.float64] | None = None

    def deviations(self) -> sp.csr_array:
        """Return matrix - fill at the reported coordinates, so that the estimate is fill + deviations everywhere."""
        out = self.matrix.copy()
        out.data = (out.data - np.float32(self.fill)).astype(np.float32)
        return out

    def dense(self) -> NDArray[np.float32]:
        """Return the estimate as an n x d array. Only for small graphs and for people who ask for it."""
        out = self.deviations().toarray()
        out += np.float32(self.fill)
        return np.asarray(out, dtype=np.float32)


def rectify(reports: Reports) -> Estimate:
    """Return the estimate of the features, unbiased where the mechanism is.

    A reported value goes through the inverse of the law's mean, and counts d/m times, since a coordinate is among the
    m of d with probability m/d: fill + d/m (estimate - fill). Mechanisms that are used unrectified are taken as sent.
    """
    device = from_meta(dict(reports.meta))
    reports = device.unfold(reports)
    values = device.estimate(reports)
    nodes, width = reports.value.shape
    if reports.index is None:
        index = np.tile(np.arange(width, dtype=np.int32), nodes)
    else:
        index, values = _one_length(np.asarray(reports.index), values)
    offsets = _offsets(nodes, width)
    matrix = sp.csr_array((values.reshape(-1), index.reshape(-1), offsets), shape=(nodes, device.dimensions))
    return Estimate(matrix=matrix, fill=device.fill_value)


def rectangular(estimate: Estimate, width: int | None = None) -> Estimate:
    """Return the estimate with rows of one length: shorter ones get unreported dimensions, at the fill.

    `width` is that length, at least the longest row's, which it is if left out.
    """
    matrix = estimate.matrix
    lengths = np.diff(matrix.indptr)
    nodes, dimensions = matrix.shape
    longest = int(lengths.max(initial=0))
    width = longest if width is None else width
    if not longest <= width <= dimensions:
        raise OptionError(f"width must be from {longest}, the longest row, to {dimensions}, got {width}")
    if (lengths == width).all():
        return estimate
    places = np.arange(width) < lengths[:, None]
    index = np.full((nodes, width), -1, dtype=np.int32)
    value = np.full((nodes, width), estimate.fill, dtype=np.float32)
    index[places], value[places] = matrix.indices, matrix.data
    index, value = _one_length(index, value)
    offsets = _offsets(nodes, width)
    full = sp.csr_array((value.reshape(-1), index.reshape(-1), offsets), shape=(nodes, dimensions))
    return replace(estimate, matrix=full)


def _offsets(nodes: int, width: int) -> NDArray[np.int32] | NDArray[np.int64]:
    """Return where each row of so many values starts; of features that are all 0 none is stored."""
    kind = np.int64 if nodes * width >= 2**31 else np.int32
    return np.arange(nodes + 1, dtype=kind) * kind(width)


def _one_length(index: NDArray[np.int32], values: NDArray[np.float32]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Give the unused places of shorter reports (index -1, at the fill) dimensions that their node did not report.

    Among the first `width` dimensions a node that reported k has at least width - k unreported ones.
    """
    unused = index < 0
    if not unused.any():
        return np.ascontiguousarray(index, dtype=np.int32), values
    width = index.shape[1]
    taken = np.zeros(index.shape, dtype=bool)
    nodes, places = np.nonzero((index >= 0) & (index < width))
    taken[nodes, index[nodes, places]] = True
    spare = np.argsort(taken, axis=1, kind="stable")
    which = np.maximum(np.cumsum(unused, axis=1) - 1, 0)
    full = np.where(unused, np.take_along_axis(spare, which, axis=1), index).astype(np.int32)
    order = np.argsort(full, axis=1)
    return np.take_along_axis(full, order, axis=1), np.take_along_axis(values, order, axis=1)
