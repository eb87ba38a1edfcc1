"""Null: epsilon = 0, a fair coin that has never seen the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from graphldp.client.randomiser import Floats, Randomiser
from graphldp.client.registry import register
from graphldp.errors import OptionError

__all__ = ["Null"]


@register("null")
@dataclass(frozen=True, slots=True, kw_only=True)
class Null(Randomiser):
    r"""A sign of a fair coin: what a table's floor is made of.

    Formula: P[+1] = P[-1] = 1/2 whatever the value.
    Claim: 0-LDP: the report is independent of the data.
    Estimator: there is none. The server takes the sign as it is, as a random code of the node.
    Reference: none; the same reports as `mb` has at epsilon = 0.
    Deviations: none.
    """

    epsilon: float = 0.0

    own_budget: ClassVar[float | None] = 0.0
    finite: ClassVar[bool] = True
    scaled: ClassVar[bool] = False
    unbiased: ClassVar[bool] = False
    dtype: ClassVar[Any] = np.int8

    def _check_epsilon(self) -> None:
        if self.epsilon != 0:
            raise OptionError(
                f"null: epsilon must be 0, got {self.epsilon}; for reports about the data use a mechanism with a budget"
            )

    def _log_law(self, y: Floats, z: Floats) -> Floats:
        return np.where(np.abs(y) == 1.0, -np.log(2.0), -np.inf)

    def _support(self, z: Floats) -> Floats:
        return np.broadcast_to(np.array([-1.0, 1.0]), (*z.shape, 2))

    def _mean(self, z: Floats) -> Floats:
        return np.zeros_like(z)

    def _variance(self, z: Floats) -> Floats:
        return np.ones_like(z)

    def _invert(self, z: Floats, u: Floats) -> Floats:
        return np.where(u < 0.5, -1.0, 1.0) + 0.0 * z

    def estimate(self, report: ArrayLike) -> Floats:
        """Return the sign, stretched to the declared range: it says nothing about the value."""
        return (self.low + self.high) / 2 + self._half * np.asarray(report, dtype=np.float64)

    def estimate_mean(self, x: ArrayLike) -> Floats:
        """Return the middle of the range, whatever the value."""
        return np.full_like(np.asarray(x, dtype=np.float64), (self.low + self.high) / 2)

    def estimate_variance(self, x: ArrayLike) -> Floats:
        """Return the variance of `estimate`."""
        return np.full_like(np.asarray(x, dtype=np.float64), self._half**2)
