"""Random features: a code for each node that has seen nobody's data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from graphldp.errors import OptionError
from graphldp.server.evidence.base import Evidence, EvidenceSetting
from graphldp.server.evidence.registry import register

__all__ = ["RandomFeatures"]

KINDS = ("sign", "gaussian")


@register("random")
@dataclass(frozen=True, slots=True, kw_only=True)
class RandomFeatures(Evidence):
    """Independent random numbers, by which a model can tell nodes apart and see whose neighbour they are.

    Attributes:
        width: how many features.
        kind: `sign` (+1 or -1) or `gaussian`.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = "Random signs or Gaussian numbers: nobody's data, a code for each node."
    reads: ClassVar[bool] = False
    transfers: ClassVar[bool] = True

    width: int = 128
    kind: str = "sign"

    def __post_init__(self) -> None:
        if isinstance(self.width, bool) or not isinstance(self.width, int) or self.width < 1:
            raise OptionError(f"width must be a whole number of at least 1, got {self.width!r}")
        if self.kind not in KINDS:
            raise OptionError(f"kind must be one of {', '.join(KINDS)}; got {self.kind!r}")

    def build(self, setting: EvidenceSetting) -> NDArray[np.float32]:
        """Return n x width random numbers."""
        shape = (setting.graph.nodes, self.width)
        rng = setting.generator("random", self.kind)
        if self.kind == "gaussian":
            return rng.standard_normal(shape, dtype=np.float32)
        return (2 * rng.integers(0, 2, shape, dtype=np.int8) - 1).astype(np.float32)
