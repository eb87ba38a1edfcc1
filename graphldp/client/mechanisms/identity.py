"""Identity: epsilon = infinity, the value itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from graphldp.client.randomiser import Floats, Randomiser
from graphldp.client.registry import register
from graphldp.errors import OptionError

__all__ = ["Identity"]


@register("identity")
@dataclass(frozen=True, slots=True, kw_only=True)
class Identity(Randomiser):
    r"""The value itself: what a table's ceiling is made of. It protects nothing.

    Formula: P[y = x] = 1.
    Claim: none; epsilon is infinite.
    Estimator: the report itself, variance 0.
    Reference: none.
    Deviations: none.
    """

    epsilon: float = math.inf

    own_budget: ClassVar[float | None] = math.inf
    finite: ClassVar[bool] = True
    every_dimension: ClassVar[bool] = True
    deterministic: ClassVar[bool] = True

    def _check_epsilon(self) -> None:
        if self.epsilon != math.inf:
            raise OptionError(
                f"identity: epsilon must be inf, got {self.epsilon}; it sends the data itself. For a budget use another"
            )

    def _log_law(self, y: Floats, z: Floats) -> Floats:
        return np.where(np.isclose(y, z, rtol=1e-6, atol=1e-7), 0.0, -np.inf)

    def _support(self, z: Floats) -> Floats:
        return z[..., None]

    def _mean(self, z: Floats) -> Floats:
        return z + 0.0

    def _variance(self, z: Floats) -> Floats:
        return np.zeros_like(z)

    def _invert(self, z: Floats, u: Floats) -> Floats:
        return z + 0.0 * u
