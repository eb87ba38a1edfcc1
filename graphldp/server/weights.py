"""FlexProp's node weights: from reported levels, or from the variance of each node's report."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphldp.client import VectorMechanism
from graphldp.errors import DataError, OptionError
from graphldp.server.thresholds import coordinate_variance

__all__ = ["decode_levels", "level_weights", "variance_weights"]


def decode_levels(reported: ArrayLike, levels: int, offset: int = 0) -> NDArray[np.int64]:
    """Return the level in 1..levels that each report stands for: clip(reported - offset, 1, levels).

    The extended square wave reports level t as t..t+2b, centred on t+b, out of 1..levels+2b: its offset is b. Levels
    that were sent as they are (public policy) have offset 0. Weighting by undecoded reports, as PPGNN's Eq. 12 is
    written, favours everybody alike when b is large.
    """
    if levels < 1 or offset < 0:
        raise OptionError(f"levels must be at least 1 and offset at least 0, got {levels} and {offset}")
    values = np.asarray(reported)
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise DataError(f"levels must be one whole number per node, got {values.dtype} of the shape {values.shape}")
    if values.size and not (values.min() >= 1 and values.max() <= levels + 2 * offset):
        raise DataError(f"a reported level lies outside 1..{levels + 2 * offset}")
    return np.asarray(np.clip(values.astype(np.int64) - offset, 1, levels))


def level_weights(reported: ArrayLike, levels: int, offset: int = 0) -> NDArray[np.float64]:
    """Return each node's decoded level as its weight (PPGNN, Eq. 12)."""
    return decode_levels(reported, levels, offset).astype(np.float64)


def variance_weights(
    reported: ArrayLike, devices: Sequence[VectorMechanism], offset: int = 0, at: float | None = None
) -> NDArray[np.float64]:
    """Return the inverse variance of each node's rectified report: the weights that PPGNN derives as optimal.

    Args:
        reported: the reported levels.
        devices: the mechanism of each level 1, 2, ..., with its own budget.
        offset: of the levels' encoding.
        at: the value for which the variance is taken; the middle of the range unless it is given.
    """
    if not devices:
        raise OptionError("variance weights need the mechanism of each level, got none")
    level = decode_levels(reported, len(devices), offset)
    variances = np.empty(len(devices))
    for position, device in enumerate(devices):
        middle = (device.base.low + device.base.high) / 2
        variances[position] = coordinate_variance(device, middle if at is None else at)
    if not (np.isfinite(variances).all() and (variances > 0).all()):
        raise OptionError(f"every level's report needs a finite variance above 0, got {variances.tolist()}")
    return np.asarray(1 / variances[level - 1])
