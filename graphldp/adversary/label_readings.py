"""How often people's labels are known, before and after what the server makes of all that was sent: for tables.

    as sent          the answer, taken for the label
    best guess       from the answer alone, by the law: no other guess is right more often, and epsilon bounds it
    propagated, K    argmax S^K Y of everybody's answers: what Drop learns from
    frequencies, K   the likeliest class by the shares of answers at K steps, the channel undone: what RGNN learns from

The last two look at neighbours' answers over the graph that the server has, so that a person's own epsilon does not
bound them. Answers of the test part are hidden, and those whose labels are counted are the training part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from graphldp.adversary.labels import attack_labels
from graphldp.client.mechanisms.krr import LabelQuestion
from graphldp.graph import Graph
from graphldp.learn import NodeInputs, Problem, Run
from graphldp.learn.tasks.private import LabelChannel, PrivateClasses
from graphldp.learn.tasks.proportions import frequencies
from graphldp.splits import Split

__all__ = ["LabelReading", "read_labels"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelReading:
    """One way of reading labels.

    Attributes:
        name: which.
        right: the share of the training part whose label it gives.
        bound: the most that epsilon allows any reading of a person's own answer; None where others' answers are read.
    """

    name: str
    right: float
    bound: float | None = None


def read_labels(
    question: LabelQuestion, known: Graph, split: Split, truth: ArrayLike, depths: Sequence[int]
) -> list[LabelReading]:
    """Return how often each way gives the true label.

    Args:
        question: how people were asked.
        known: the graph as the server has it: its labels are answers, its links public or estimated.
        split: whose answers are there, and whose labels are counted.
        truth: the true labels.
        depths: the numbers K of steps.
    """
    true = np.asarray(truth)[split.train]
    answers = split.visible(known.labels)
    guess = attack_labels(question, answers[split.train], true)
    out = [
        LabelReading(name="as sent", right=_share(answers[split.train], true), bound=guess.bound),
        LabelReading(name="best guess", right=guess.right, bound=guess.bound),
    ]
    adjacency = known.adjacency()
    keep, stray = question.law.chances
    for steps in depths:
        target = _drop_targets(known, answers, split, LabelChannel(keep=keep, stray=stray, steps=steps))
        out.append(LabelReading(name=f"propagated, {steps}", right=_share(target, true)))
    for steps in depths:
        chances = frequencies(adjacency, answers, known.classes, steps, keep, stray)
        out.append(LabelReading(name=f"frequencies, {steps}", right=_share(chances[split.train].argmax(axis=1), true)))
    return out


def _share(found: NDArray[Any], true: NDArray[Any]) -> float:
    return float((found == true).mean())


def _drop_targets(known: Graph, answers: NDArray[np.int64], split: Split, channel: LabelChannel) -> NDArray[Any]:
    """Return the labels of the training part that Drop compares a model with."""
    adjacency = known.adjacency()
    inputs = NodeInputs(deviations=np.zeros((known.nodes, 1), dtype=np.float32))
    problem = Problem(shift=adjacency, adjacency=adjacency, inputs=(inputs,), classes=known.classes)
    run = Run(inputs=0, seed=0, split=split, labels=answers)
    return np.asarray(PrivateClasses([run], torch.device("cpu"), channel, problem).train.target[0])
