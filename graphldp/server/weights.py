"""FlexProp's node weights: from reported levels, or from the variance of each node's report."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphldp.client import Reports, from_meta
from graphldp.client.levels import Personalised
from graphldp.errors import DataError, OptionError
from graphldp.server.calibration import WEIGHTINGS

__all__ = ["decode_levels", "node_weights", "variance_weights"]


def decode_levels(reported: ArrayLike, levels: int, offset: int = 0) -> NDArray[np.int64]:
    """Return the level in 1..levels that each report stands for: clip(reported - offset, 1, levels).

    The extended square wave reports level t as t..t+2b, centred on t+b, out of 1..levels+2b: its offset is b. Levels
    that were sent as they are (public policy) have offset 0. Weighting by undecoded reports, as PPGNN's Eq. 12 is
    written, makes the weights of all levels more alike than the levels are.
    """
    if levels < 1 or offset < 0:
        raise OptionError(f"levels must be at least 1 and offset at least 0, got {levels} and {offset}")
    values = np.asarray(reported)
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise DataError(f"levels must be one whole number per node, got {values.dtype} of the shape {values.shape}")
    if values.size and not (values.min() >= 1 and values.max() <= levels + 2 * offset):
        raise DataError(f"a reported level lies outside 1..{levels + 2 * offset}")
    return np.asarray(np.clip(values.astype(np.int64) - offset, 1, levels))


def variance_weights(level: NDArray[np.int64], device: Personalised) -> NDArray[np.float64]:
    """Return the inverse variance of each node's report at the middle of the range, by its level 1, 2, ..."""
    return np.asarray(1 / device.level_variances()[level - 1])


def node_weights(reports: Reports, weighting: str) -> NDArray[np.float64] | None:
    """Return the weight of each node's column that a calibration's `weighting` asks for.

    `none` gives None, `level` the decoded reported level (PPGNN, Eq. 12), `variance` the inverse variance of the
    report of that level, which PPGNN derives as optimal (Eq. 11).
    """
    if weighting not in WEIGHTINGS:
        raise OptionError(f"weighting must be one of {', '.join(WEIGHTINGS)}; got {weighting!r}")
    if weighting == "none":
        return None
    device = from_meta(dict(reports.meta))
    if not isinstance(device, Personalised) or reports.level is None:
        raise OptionError(
            f"{device.name} reports no level, so there is nothing to weight by; use kprop, or ppm-public or pldp"
        )
    level = decode_levels(reports.level, device.levels, device.level_offset)
    return level.astype(np.float64) if weighting == "level" else variance_weights(level, device)
