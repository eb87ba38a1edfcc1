"""From reports to estimates: the inverse of the client's own law."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphldp.client import Reports, VectorMechanism, from_meta

__all__ = ["Estimate", "rectify"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimate:
    """What the server makes of the reports: unbiased for every coordinate, before any calibration.

    Attributes:
        matrix: n x d, CSR, float32: the estimate at the reported coordinates. An estimate of 0 is stored, not left out.
        fill: what every unreported coordinate counts as.
    """

    matrix: sp.csr_array
    fill: float

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
    """Return the unbiased estimate of the features.

    A reported value goes through the inverse of the law's mean, and counts d/m times, since a coordinate is among the
    m of d with probability m/d: fill + d/m (estimate - fill).
    """
    device = from_meta(dict(reports.meta))
    values = _values(reports, device)
    nodes, width = reports.value.shape
    shape = (nodes, device.dimensions)
    if reports.index is None:
        index = np.tile(np.arange(width, dtype=np.int32), nodes)
    else:
        index = np.ascontiguousarray(reports.index, dtype=np.int32).reshape(-1)
    offsets = np.arange(0, nodes * width + 1, width, dtype=np.int64 if nodes * width >= 2**31 else np.int32)
    matrix = sp.csr_array((values.reshape(-1), index, offsets), shape=shape)
    return Estimate(matrix=matrix, fill=device.fill_value)


def _values(reports: Reports, device: VectorMechanism) -> NDArray[np.float32]:
    weight = 1.0 if reports.index is None or device.base.epsilon in (0.0, np.inf) else device.dimensions / device.m
    out = np.empty(reports.value.shape, dtype=np.float32)
    step = max(1, 2**22 // max(1, reports.m))
    for start in range(0, reports.nodes, step):
        block = device.base.estimate(reports.value[start : start + step])
        out[start : start + step] = device.fill_value + weight * (block - device.fill_value)
    return out
