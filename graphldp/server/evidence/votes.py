"""Votes as evidence: what people's features say of their class by their own account, beside what the graph says."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from graphldp.errors import OptionError
from graphldp.graph import Graph
from graphldp.server.adjacency import shift
from graphldp.server.evidence.base import Evidence, EvidenceSetting
from graphldp.server.evidence.registry import register
from graphldp.server.propagation import class_shares, spread
from graphldp.server.voting import (
    Surveyed,
    centred,
    check_survey,
    fused,
    likelihoods,
    memberships,
    named,
    neighbourhood,
    signal,
)

__all__ = ["Votes"]

KINDS = ("fused", "all")
_FAR = (0.1, 20)  # decay and steps by which votes travel further than to neighbours


@register("votes")
@dataclass(frozen=True, slots=True, kw_only=True)
class Votes(Evidence):
    """Log evidence about each node's class: labels around it, its own vote, its neighbours' votes, and those beyond.

    Where votes and classes do not go together, they count as nothing, and what is left is what the labels say. Around
    people in a graph that was not seen there are no labels: what is left is their own votes and their neighbours', with
    the weights, and how common each class is, of those who were seen.

    Attributes:
        kind: `fused` into one log posterior, with a weight for each part that is fitted to training labels; or `all`:
            the parts beside it.
        gate: by how many standard deviations of shuffled votes the votes must go together with the classes to count.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = "Labels around a node, its own vote and its neighbours', weighed by what votes are worth."

    spreads: ClassVar[bool] = True
    transfers: ClassVar[bool] = True
    posterior: ClassVar[bool] = True

    kind: str = "fused"
    gate: float = 4.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise OptionError(f"kind must be one of {', '.join(KINDS)}; got {self.kind!r}")
        if isinstance(self.gate, bool) or not isinstance(self.gate, int | float) or not self.gate >= 0:
            raise OptionError(f"gate must be a number of standard deviations of at least 0, got {self.gate!r}")

    def whole(self) -> Votes:
        """Return all of it: the log posterior stands first."""
        return replace(self, kind="all")

    def cut(self, matrix: NDArray[np.float32], classes: int) -> NDArray[np.float32]:
        """Return the log posterior, or all."""
        return matrix[:, :classes] if self.kind == "fused" else matrix

    def counts(self, matrix: NDArray[np.float32], classes: int) -> bool:
        """Return whether any vote does: people's own ones stand in the middle."""
        place = matrix.shape[1] // classes // 2 * classes
        return bool(matrix[:, place : place + classes].any())

    def unasked(self, matrix: NDArray[np.float32], shares: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return the log posterior by label propagation; None where no labels are around people."""
        classes = len(shares)
        if matrix.shape[1] != 5 * classes:
            return None
        return np.asarray(matrix[:, classes : 2 * classes] + np.log(shares), dtype=np.float64)

    def build(self, setting: EvidenceSetting) -> NDArray[np.float32]:
        """Return n x classes, or as many for each part, too: five times, three of people who were not seen."""
        survey = check_survey(setting.estimate)
        shares, labels = memberships(
            setting.graph, setting.labels, setting.train, setting.classes, setting.generator("labels"), setting.chances
        )
        if setting.seen is None:
            parts = self._seen(setting, survey, shares, labels)
        else:
            parts = self._unseen(setting.graph, survey, shares, setting.seen)
        prior = class_shares(setting.labels, setting.train, setting.classes)
        together, _ = fused(parts, prior, setting.labels, setting.train)
        return np.hstack([centred(together), *(parts if self.kind == "all" else [])]).astype(np.float32)

    def _seen(
        self, setting: EvidenceSetting, survey: Surveyed, shares: NDArray[np.float64], labels: NDArray[Any]
    ) -> list[NDArray[np.float64]]:
        """Return the labels around people, their own votes, their neighbours' and those beyond, each n x classes."""
        likelihood = np.ones(shares.shape)
        asked = survey.votes[:, 0] >= 0
        answers = named(survey, setting.classes)[asked]
        if asked.any() and signal(shares[asked], answers, setting.generator("votes")) > self.gate:
            likelihood = likelihoods(survey, shares)
        own = centred(np.log(likelihood))
        near = centred(neighbourhood(setting.graph.adjacency(), shares, likelihood))
        return [labels.astype(np.float64), own, near, centred(self._far(setting, own))]

    def _unseen(
        self, graph: Graph, survey: Surveyed, shares: NDArray[np.float64], seen: NDArray[np.int64]
    ) -> list[NDArray[np.float64]]:
        """Return own and neighbours' votes, each n x classes, of which nothing is fitted to who was not seen."""
        known = np.zeros(graph.nodes, dtype=bool)
        known[seen] = True
        likelihood = likelihoods(survey, shares, known)
        near = neighbourhood(graph.adjacency(), shares * known[:, None], likelihood)
        return [centred(np.log(likelihood)), centred(near)]

    def _far(self, setting: EvidenceSetting, own: NDArray[np.float64]) -> NDArray[np.float64]:
        decay, steps = _FAR
        found = spread(shift(setting.graph), own.astype(np.float32), decay=decay, steps=steps)
        return np.asarray(found, dtype=np.float64) / decay - own
