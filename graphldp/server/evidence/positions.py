"""Where a node lies in the public graph, as evidence: spectral, PageRank and link coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from graphldp.errors import OptionError
from graphldp.server.embeddings import links, pagerank, spectral
from graphldp.server.evidence.base import Evidence, EvidenceSetting
from graphldp.server.evidence.registry import register

__all__ = ["LinkPositions", "PageRankPositions", "SpectralPositions"]


def _check_width(width: Any) -> None:
    if isinstance(width, bool) or not isinstance(width, int) or width < 1:
        raise OptionError(f"width must be a whole number of at least 1, got {width!r}")


@register("spectral")
@dataclass(frozen=True, slots=True, kw_only=True)
class SpectralPositions(Evidence):
    """The leading eigenvectors of the normalised adjacency, regularised for small components.

    Attributes:
        width: how many.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = "The leading eigenvectors of the regularised normalised adjacency."
    reads: ClassVar[bool] = False

    width: int = 64

    def __post_init__(self) -> None:
        _check_width(self.width)

    def build(self, setting: EvidenceSetting) -> NDArray[np.float32]:
        """Return the eigenvectors; which nodes are trained on makes no difference."""
        return spectral(setting.graph.adjacency(), self.width).scaled(0.0)


@register("pagerank")
@dataclass(frozen=True, slots=True, kw_only=True)
class PageRankPositions(Evidence):
    """The logarithm of personalised PageRank at low rank: who is near whom, far beyond the neighbours.

    Attributes:
        width: its rank.
        decay: the share of a walk that ends at each step.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = "Coordinates by which log personalised PageRank is best approximated."
    reads: ClassVar[bool] = False

    width: int = 64
    decay: float = 0.15

    def __post_init__(self) -> None:
        _check_width(self.width)
        if isinstance(self.decay, bool) or not isinstance(self.decay, int | float) or not 0 < self.decay < 1:
            raise OptionError(f"decay must be a number between 0 and 1, got {self.decay!r}")

    def build(self, setting: EvidenceSetting) -> NDArray[np.float32]:
        """Return the coordinates; which nodes are trained on makes no difference."""
        return pagerank(setting.graph.adjacency(), self.width, decay=float(self.decay)).scaled(0.5)


@register("links")
@dataclass(frozen=True, slots=True, kw_only=True)
class LinkPositions(Evidence):
    """The rows of the adjacency matrix at low rank: to whom a node is linked, also where neighbours differ.

    Attributes:
        width: their rank.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = "The rows of the adjacency matrix at low rank (LINK)."
    reads: ClassVar[bool] = False

    width: int = 256

    def __post_init__(self) -> None:
        _check_width(self.width)

    def build(self, setting: EvidenceSetting) -> NDArray[np.float32]:
        """Return the coordinates; which nodes are trained on makes no difference."""
        return links(setting.graph.adjacency(), self.width).scaled(0.5)
