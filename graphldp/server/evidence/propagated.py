"""Label propagation as evidence: what the labels of the training nodes around a node say of its class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from graphldp.errors import OptionError
from graphldp.server.adjacency import shift
from graphldp.server.evidence.base import Evidence, EvidenceSetting
from graphldp.server.evidence.registry import register
from graphldp.server.propagation import class_shares, cross_fitted, fold_of, log_evidence, spread, walks

__all__ = ["PropagatedLabels"]


@register("labels")
@dataclass(frozen=True, slots=True, kw_only=True)
class PropagatedLabels(Evidence):
    """Class shares around each node, as log-odds against the classes' own shares; [n, classes * (1 + hops)].

    First those of label propagation, then those of the ends of walks of 1 to `hops` steps: on graphs whose neighbours
    differ, the classes two steps away say something else than those next door. A training node's own label is not in
    its row, nor are those of its fold.

    Attributes:
        decay: the weight of a node's own label in label propagation: near 0 labels travel far.
        steps: how many steps they travel.
        hops: the longest of the walks.
        folds: how many folds the training nodes are dealt out to.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = "Label propagation and the classes at 1 to `hops` steps, without a node's own label."
    reads: ClassVar[bool] = False
    spreads: ClassVar[bool] = True

    decay: float = 0.1
    steps: int = 50
    hops: int = 0
    folds: int = 10

    def __post_init__(self) -> None:
        if isinstance(self.decay, bool) or not isinstance(self.decay, int | float) or not 0 < self.decay < 1:
            raise OptionError(f"decay must be a number between 0 and 1, got {self.decay!r}")
        for name, least in (("steps", 1), ("hops", 0), ("folds", 2)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise OptionError(f"{name} must be a whole number of at least {least}, got {value!r}")

    def build(self, setting: EvidenceSetting) -> NDArray[np.float32]:
        """Return the log-odds."""
        symmetric, mean = shift(setting.graph), shift(setting.graph, "mean")

        def spreading(start: NDArray[np.float32]) -> list[NDArray[np.float32]]:
            far = spread(symmetric, start, decay=self.decay, steps=self.steps)
            return [far, *walks(mean, start, self.hops)]

        folds = fold_of(setting.train, setting.graph.nodes, self.folds, setting.generator("labels"))
        prior = class_shares(setting.labels, setting.train, setting.classes)
        masses = cross_fitted(spreading, setting.labels, setting.train, setting.classes, folds)
        return np.hstack([log_evidence(mass, prior) for mass in masses])
