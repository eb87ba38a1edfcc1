"""What leaves the devices: exactly the indices and values that were sent, and public facts about how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Reports"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reports:
    """One report per node, nothing rectified.

    Attributes:
        index: n x m, int32, the reported dimensions of each node, increasing; None where every dimension is reported.
            Where nodes report different numbers of them, the places that a node does not use come last and hold -1.
        value: n x m, what was sent for them (int8 signs, int16 symbols or float32 numbers); 0 in unused places.
        level: n, the reported privacy level, for mechanisms that report one.
        meta: public facts (mechanism, options, epsilon, dimensions, m, range, claim) from which a server rebuilds the
            law. Nothing in it depends on anybody's data.
    """

    value: NDArray[Any]
    index: NDArray[np.int32] | None = None
    level: NDArray[np.int32] | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def nodes(self) -> int:
        """How many nodes reported."""
        return int(self.value.shape[0])

    @property
    def m(self) -> int:
        """How many dimensions each of them reported."""
        return int(self.value.shape[1])
