"""Several kinds of structural evidence side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from graphldp.errors import OptionError
from graphldp.server.evidence.base import Evidence, EvidenceSetting
from graphldp.server.evidence.positions import LinkPositions, SpectralPositions
from graphldp.server.evidence.propagated import PropagatedLabels
from graphldp.server.evidence.registry import register

__all__ = ["Surroundings", "side_by_side"]

POSITIONS = {"spectral": SpectralPositions, "links": LinkPositions}


def side_by_side(*parts: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return matrices side by side, each centred by column and brought to a mean square of 1 as a whole.

    A wide part thereby weighs more than a narrow one, and its columns keep their proportions.
    """
    out = []
    for part in parts:
        centred = part - part.mean(axis=0, dtype=np.float64)
        square = float(np.square(centred).mean()) if centred.size else 0.0
        out.append((centred / np.sqrt(square) if square > 0 else centred).astype(np.float32))
    return np.hstack(out)


@register("surroundings")
@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings(Evidence):
    """All that the graph and the training labels say of a node: labels around it, where it lies, how many neighbours.

    Attributes:
        width: how many coordinates.
        positions: of which kind: `spectral` or `links`.
        decay, hops: of the labels, as the evidence `labels` has them.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = "The evidence `labels`, coordinates, and the logarithm of the degree."
    reads: ClassVar[bool] = False
    spreads: ClassVar[bool] = True

    width: int = 64
    positions: str = "spectral"
    decay: float = 0.1
    hops: int = 4

    def __post_init__(self) -> None:
        if self.positions not in POSITIONS:
            raise OptionError(f"positions must be one of {', '.join(POSITIONS)}; got {self.positions!r}")
        self.parts()

    def parts(self) -> tuple[Evidence, Evidence]:
        """Return the labels' and the positions' evidence."""
        return PropagatedLabels(decay=self.decay, hops=self.hops), POSITIONS[self.positions](width=self.width)

    def build(self, setting: EvidenceSetting) -> NDArray[np.float32]:
        """Return all of it side by side."""
        degree = np.log1p(np.asarray(setting.graph.adjacency().sum(axis=1), dtype=np.float32)).reshape(-1, 1)
        return side_by_side(*(part.build(setting) for part in self.parts()), degree)
