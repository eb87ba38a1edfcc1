"""Shrinkage: what NFR and its comparisons do to noisy values, and the boundary that their amounts are measured in.

All of it acts on deviations from the fill, never on the values themselves: with a fill of 1/2, shrinking y towards 0
would push every unreported coordinate away from what it counts as.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphldp.client import VectorMechanism
from graphldp.errors import OptionError
from graphldp.server.calibration import Calibration
from graphldp.server.estimate import Estimate

__all__ = ["nfr_after", "nfr_before", "shrink", "shrink_columns", "soft"]


def soft(values: NDArray[Any], threshold: float) -> NDArray[Any]:
    """Return sign(v) max(|v| - threshold, 0)."""
    return np.asarray(np.sign(values) * np.maximum(np.abs(values) - threshold, 0), dtype=values.dtype)


def _share(tau: float) -> float:
    if not 0 <= tau < 1:
        raise OptionError(f"tau must be from 0 to below 1 (a share of the boundary), got {tau}")
    return float(tau)


def nfr_before(calibration: Calibration, device: VectorMechanism, tau: float) -> Calibration:
    """Return the calibration with UPGNet's N-H threshold: tau B on the reports themselves (Theorem 6).

    With `mb` and the fill in the middle of the range every reported deviation is +B or -B, so this is nothing but
    multiplication by 1 - tau.
    """
    return calibration.but(before=_share(tau) * device.boundary())


def nfr_after(
    calibration: Calibration, device: VectorMechanism, tau: float, average_degree: float | None = None
) -> Calibration:
    """Return the calibration with UPGNet's H-N threshold on the filtered values (Theorem 5).

    The threshold is tau B, or tau B / degree^K where the graph's average degree is given, as the theorem has it.
    """
    if average_degree is not None and not 0 < average_degree < np.inf:
        raise OptionError(f"average_degree must be above 0, got {average_degree}")
    divisor = 1.0 if average_degree is None else float(average_degree) ** calibration.steps
    return calibration.but(after=_share(tau) * device.boundary() / divisor)


def shrink(estimate: Estimate, calibration: Calibration, rng: np.random.Generator | None = None) -> sp.csr_array:
    """Return the estimate's deviations after the calibration's `before`: sparse, at the same coordinates.

    `soft` is the threshold. `group` shrinks each attribute's column as one group, by its root mean square over the
    nodes that reported it. `dropout` drops each reported value with the rate `before` and scales up the others; it
    draws once, from `rng`, and is the only one that needs it.
    """
    deviations = estimate.deviations()
    amount = calibration.before
    if amount == 0:
        return deviations
    if calibration.shrinkage == "soft":
        deviations.data = soft(deviations.data, amount)
    elif calibration.shrinkage == "group":
        squares = np.bincount(
            deviations.indices, weights=deviations.data.astype(np.float64) ** 2, minlength=deviations.shape[1]
        )
        counts = np.bincount(deviations.indices, minlength=deviations.shape[1])
        factors = _group_factors(np.sqrt(squares / np.maximum(counts, 1)), amount)
        deviations.data *= factors[deviations.indices]
    else:
        if rng is None:
            raise OptionError("dropout draws which values to drop: give a random generator")
        keep = rng.random(deviations.data.shape) >= amount
        deviations.data = np.where(keep, deviations.data / np.float32(1 - amount), np.float32(0))
    return deviations


def shrink_columns(block: NDArray[np.float32], calibration: Calibration) -> NDArray[np.float32]:
    """Return a block of whole filtered columns (deviations, n x b) after the calibration's `after`."""
    if calibration.after == 0:
        return block
    if calibration.shrinkage == "soft":
        return soft(block, calibration.after)
    size = np.sqrt(np.mean(np.square(block, dtype=np.float64), axis=0))
    return np.asarray(block * _group_factors(size, calibration.after), dtype=np.float32)


def _group_factors(size: NDArray[np.float64], amount: float) -> NDArray[np.float32]:
    """Return max(0, 1 - amount/size): the group lasso's proximal step for groups of these root mean squares."""
    ratio = np.divide(amount, size, out=np.full_like(size, np.inf), where=size > 0)
    return np.maximum(0.0, 1.0 - ratio).astype(np.float32)
