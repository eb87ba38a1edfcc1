"""A dense matrix that is computed when it is needed and forgotten afterwards, so that not all of them stand in memory.

A threshold after the filter leaves an n x d matrix for every seed and depth: 0.4 GB each for 22,000 people and 4,700
features. Training goes wave by wave, and a wave needs its own ones alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from graphldp.errors import DataError

__all__ = ["DEFERRED_BYTES", "Deferred"]

DEFERRED_BYTES = 2 * 10**9  # that a wave with such matrices may take where no limit was given


class Deferred:
    """A float32 matrix by how it is made.

    Attributes:
        shape: nodes x dimensions.
        mark: says what it holds: equal marks, equal matrices.
    """

    def __init__(self, shape: tuple[int, int], make: Callable[[], NDArray[np.float32]], mark: str) -> None:
        self.shape = shape
        self.mark = mark
        self._make = make
        self._made: NDArray[np.float32] | None = None
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return self.shape[0] * self.shape[1]

    def matrix(self) -> NDArray[np.float32]:
        """Return the matrix, made once until it is forgotten; threads that need it wait for the first."""
        with self._lock:
            if self._made is None:
                made = self._make()
                if made.shape != self.shape or not np.isfinite(made).all():
                    raise DataError(f"inputs must be finite and {self.shape}, got {made.shape} or a NaN or infinity")
                self._made = made
            return self._made

    def forget(self) -> None:
        """Drop the matrix until it is asked for again."""
        with self._lock:
            self._made = None
