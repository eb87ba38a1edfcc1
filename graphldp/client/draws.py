"""Uniform numbers that are uniform in their small tail too."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphldp.randomness import UniformSource

__all__ = ["uniform"]


def uniform(source: UniformSource, shape: int | tuple[int, ...]) -> NDArray[np.float64]:
    """Return uniform numbers in (0, 1) that are also uniform in their small tail.

    A plain 53-bit draw below 2^-12 is replaced by a finer one, again and again, so that an event of probability
    e^-50 happens with that probability and not never, nor at 2^-53. How often this happens depends on no input.
    """
    draws = np.asarray(source.random(shape))
    flat = draws.reshape(-1)
    small = np.flatnonzero(flat < 2.0**-12)
    scale = 2.0**-12
    while small.size:
        flat[small] = scale * source.random(small.size)
        small = small[flat[small] < scale * 2.0**-12]
        scale *= 2.0**-12
        if scale < 1e-290:
            flat[small] = scale
            break
    return draws
