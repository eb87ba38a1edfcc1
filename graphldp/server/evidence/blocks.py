"""What reports on links say of classes, read by their law beside labels and votes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from graphldp.errors import OptionError
from graphldp.server.blocks import Seen, block_evidence, class_links, seen_links
from graphldp.server.evidence.base import Evidence, EvidenceSetting
from graphldp.server.evidence.registry import register
from graphldp.server.propagation import class_shares, fold_of
from graphldp.server.voting import centred, check_survey, fused, likelihoods, memberships, named, signal

__all__ = ["Blocks", "BlocksVotes"]

_FOLDS = 5
_ROUNDS = 12
_SETTLED = 1e-3


@register("blocks")
@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks(Evidence):
    """Log evidence about each node's class from reports on links and labels, through a block model and their laws.

    Everybody's class probabilities and the rates at which classes are linked are found by turns. The own label of a
    training node is left out of its evidence: each fifth of them is read with its own labels hidden.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = "Reports on links and labels, read through their laws by a block model."

    reads: ClassVar[bool] = False
    spreads: ClassVar[bool] = True
    links: ClassVar[bool] = True

    def build(self, setting: EvidenceSetting) -> NDArray[np.float32]:
        """Return n x classes."""
        start = _start(setting)
        return centred(_read(setting, start, np.zeros(start.shape))).astype(np.float32)


@register("blocks-votes")
@dataclass(frozen=True, slots=True, kw_only=True)
class BlocksVotes(Evidence):
    """The same with people's votes: they help to find the others' classes, and speak for their voter's own.

    The evidence of links and that of votes have a weight each, fitted to the training labels.

    Attributes:
        gate: by how many standard deviations of shuffled votes the votes must go together with the classes to count.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = "As `blocks`, with people's votes read by their law as well."

    spreads: ClassVar[bool] = True
    links: ClassVar[bool] = True

    gate: float = 4.0

    def __post_init__(self) -> None:
        if isinstance(self.gate, bool) or not isinstance(self.gate, int | float) or not self.gate >= 0:
            raise OptionError(f"gate must be a number of standard deviations of at least 0, got {self.gate!r}")

    def build(self, setting: EvidenceSetting) -> NDArray[np.float32]:
        """Return n x 3 classes: both fused, the links' evidence, the votes'."""
        survey = check_survey(setting.estimate)
        start = _start(setting)
        votes, asked = np.zeros(start.shape), survey.votes[:, 0] >= 0
        answers = named(survey, setting.classes)[asked]
        if asked.any() and signal(start[asked], answers, setting.generator("votes")) > self.gate:
            votes = np.log(likelihoods(survey, start))
        parts = [centred(_read(setting, start, votes)), centred(votes)]
        prior = class_shares(setting.labels, setting.train, setting.classes)
        together, _ = fused(parts, prior, setting.labels, setting.train)
        return np.hstack([centred(together), *parts]).astype(np.float32)


def _start(setting: EvidenceSetting) -> NDArray[np.float64]:
    """Return the first guess of everybody's class probabilities, by label propagation over the estimated graph."""
    rng = setting.generator("labels")
    shares, _ = memberships(setting.graph, setting.labels, setting.train, setting.classes, rng, setting.chances)
    return shares


def _read(setting: EvidenceSetting, start: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the links' log evidence about everybody, without the own label; `other` is what else is known of her."""
    seen, train = seen_links(setting.links, setting.graph), setting.train
    prior = class_shares(setting.labels, train, setting.classes)
    sent, known = _sent(setting), np.log(prior) + other
    shares, rates = _settle(seen, start, known + sent)
    out = block_evidence(seen, shares, rates)
    folds = fold_of(train, setting.graph.nodes, _FOLDS, setting.generator("folds"))
    for fold in range(int(folds[train].max()) + 1):
        hidden = folds == fold
        without = np.where(hidden[:, None], prior, start)
        shares, _ = _settle(seen, without, known + np.where(hidden[:, None], 0.0, sent), rates)
        out[hidden] = block_evidence(seen, shares, rates)[hidden]
    return out


def _sent(setting: EvidenceSetting) -> NDArray[np.float64]:
    """Return the log probability of everybody's label by class; 0 where it is not known."""
    keep, stray = (1 - 1e-9, 1e-9) if setting.chances is None else setting.chances
    out = np.zeros((setting.graph.nodes, setting.classes))
    own = np.eye(setting.classes, dtype=bool)[setting.labels[setting.train]]
    out[setting.train] = np.log(np.where(own, keep, stray))
    return out


def _settle(
    seen: Seen, shares: NDArray[np.float64], known: NDArray[np.float64], rates: NDArray[np.float64] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return class probabilities and the rates of links, found by turns; `known` is what else is known of classes."""
    given = rates
    for _ in range(_ROUNDS):
        rates = class_links(seen, shares) if given is None else given
        logits = known + block_evidence(seen, shares, rates)
        fresh = np.exp(logits - logits.max(axis=1, keepdims=True))
        fresh /= fresh.sum(axis=1, keepdims=True)
        moved = float(np.abs(fresh - shares).mean())
        shares = (shares + fresh) / 2
        if moved < _SETTLED:
            break
    assert rates is not None
    return shares, rates
