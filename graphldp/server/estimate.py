"""From reports to estimates: the inverse of the client's own law."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphldp.client import Reports, from_meta

__all__ = ["Estimate", "rectify"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimate:
    """What the server makes of the reports, before any calibration.

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
    """Return the estimate of the features, unbiased where the mechanism is.

    A reported value goes through the inverse of the law's mean, and counts d/m times, since a coordinate is among the
    m of d with probability m/d: fill + d/m (estimate - fill). Mechanisms that are used unrectified are taken as sent.
    """
    device = from_meta(dict(reports.meta))
    values = device.estimate(reports)
    nodes, width = reports.value.shape
    wide: Any = np.int64 if nodes * width >= 2**31 else np.int32
    if reports.index is None:
        index = np.tile(np.arange(width, dtype=np.int32), nodes)
        offsets = np.arange(0, nodes * width + 1, width, dtype=wide)
    else:
        used = reports.index >= 0
        offsets = np.zeros(nodes + 1, dtype=wide)
        np.cumsum(used.sum(axis=1), out=offsets[1:])
        index = np.ascontiguousarray(reports.index[used], dtype=np.int32)
        values = values[used]
    matrix = sp.csr_array((values.reshape(-1), index, offsets), shape=(nodes, device.dimensions))
    return Estimate(matrix=matrix, fill=device.fill_value)
