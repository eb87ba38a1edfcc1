"""The best guess of a person's label from what she has sent of it, and what her epsilon lets any guess reach.

The attacker knows the law of `krr` and how common each label is. Of an answer u the likeliest label is the one with the
largest prior times P[u | label]: no other guess from the answer alone is right more often. Whatever the mechanism, an
answer of epsilon raises the chance of a label from pi to at most e pi/(1 + (e-1) pi), e = e^epsilon: the commonest
label's is the bound of all guesses, and randomised response over labels that are equally common reaches it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphldp.client.mechanisms.krr import LabelQuestion
from graphldp.errors import DataError

__all__ = ["LabelAttack", "attack_labels", "most_right"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelAttack:
    """How often labels were guessed.

    Attributes:
        guesses: the label that is guessed of each person.
        right: the share that is.
        without: the share that the commonest label alone gets, from no answer at all.
        expected: what the law says of `right`, on average over the draws.
        bound: the most that any guess from answers of this epsilon can be right, on average.
    """

    guesses: NDArray[np.int64]
    right: float
    without: float
    expected: float
    bound: float


def most_right(prior: float, epsilon: float) -> float:
    """Return the chance to which an answer of this epsilon can raise that of a label which has such a prior."""
    return prior / (prior + (1 - prior) * math.exp(-epsilon))


def attack_labels(question: LabelQuestion, sent: ArrayLike, labels: ArrayLike) -> LabelAttack:
    """Return what the best guess of everybody's label comes to.

    Args:
        question: how people were asked.
        sent: the label that each of them has sent, 0..classes-1.
        labels: the true ones, by which guesses are counted; how common each is counts as known.
    """
    told, truth = np.asarray(sent, dtype=np.int64).reshape(-1), np.asarray(labels, dtype=np.int64)
    if told.shape != truth.shape or not len(truth):
        raise DataError(f"{len(truth)} labels need as many answers, at least one; got {len(told)}")
    for name, values in (("answer", told), ("label", truth)):
        if values.min() < 0 or values.max() >= question.classes:
            raise DataError(f"an {name} is none of the {question.classes} classes".replace("an l", "a l"))
    keep, stray = question.law.chances
    prior = np.bincount(truth, minlength=question.classes) / len(truth)
    joint = prior[None, :] * np.where(np.eye(question.classes, dtype=bool), keep, stray)  # answer, label
    best = joint.argmax(axis=1)
    guesses = best[told]
    return LabelAttack(
        guesses=guesses,
        right=float((guesses == truth).mean()),
        without=float(prior.max()),
        expected=float(joint.max(axis=1).sum()),
        bound=most_right(float(prior.max()), question.epsilon),
    )
