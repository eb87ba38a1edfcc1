"""What people tell beside their features, in answer to further questions, and the graph as the server then knows it.

A question may be asked for labels. Where it is, the server's graph of a seed has the labels that people have sent in
the place of their own: whatever learns, chooses or directs questions takes that graph. Everybody who has a label sends
one, and a split hides those of the test part as it hides true ones. True labels are opened to measure a test, and for
nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphldp import __version__
from graphldp.client import Reports
from graphldp.client.krr import LabelQuestion
from graphldp.errors import DataError
from graphldp.experiment.addresses import source_of
from graphldp.experiment.conversation import Conversation, Question
from graphldp.experiment.devices import graph_facts
from graphldp.experiment.options import Further, Settings
from graphldp.graph import Graph
from graphldp.jsonable import plain
from graphldp.ledger import Ledger, ledger_from_meta, release_of
from graphldp.server import Calibration, Estimate

__all__ = ["FURTHER", "LABELS", "Told", "WithFurther", "told_of"]

LABELS = "labels"
FURTHER = (LABELS,)  # the names of all further questions
Listen = Callable[[int], Sequence[Question]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Told:
    """The further questions of a graph's people, and what the server knows from the answers.

    Attributes:
        graph: the people's own labels, links and features.
        further: what is asked.
        root: the root of all draws.
        listen: what gives a seed's answers where they were given before; else people are asked.
        source: the hash of where they are from, where this code has not made them of their seeds.
    """

    graph: Graph
    further: Further
    root: int
    listen: Listen | None = None
    source: str = ""

    def __post_init__(self) -> None:
        if self.further.private_labels and self.graph.classes < 2:
            raise DataError(
                f"graph {self.graph.name} has {self.graph.classes} classes, so there is no label to hide; leave labels "
                "out"
            )

    @property
    def asked(self) -> bool:
        """Whether there is any further question."""
        return self.further.asked

    @property
    def label_question(self) -> LabelQuestion | None:
        """What is run by who is asked for her label; None where labels are public."""
        if not self.further.private_labels:
            return None
        return LabelQuestion(epsilon=self.further.epsilon_labels, classes=self.graph.classes)

    @property
    def chances(self) -> tuple[float, float] | None:
        """The probabilities that a label is sent as it is, and as a certain other one; None where labels are public."""
        question = self.label_question
        return None if question is None else question.law.chances

    def questions(self, seed: int) -> tuple[Question, ...]:
        """Ask everybody, or return what was answered before."""
        if self.listen is not None:
            return tuple(one for one in self.listen(seed) if one.name in FURTHER)
        out = []
        question = self.label_question
        if question is not None:
            people = np.flatnonzero(self.graph.labels >= 0)
            source = source_of(self.root, self.graph.name, question, seed, people=people)
            out.append(_question(LABELS, people, question.perturb(self.graph.labels[people], source)))
        return tuple(out)

    def known(self, seed: int) -> Graph:
        """Return the graph as the server knows it in a seed's runs."""
        return self.graph if not self.asked else self.heard(self.questions(seed))

    def heard(self, questions: Sequence[Question]) -> Graph:
        """Return the graph as the server knows it from these answers."""
        out = self.graph
        for one in questions:
            if one.name == LABELS:
                out = replace(out, labels=self._labels(one))
        return out

    def _labels(self, answered: Question) -> NDArray[np.int32]:
        labels = np.full(self.graph.nodes, -1, dtype=np.int32)
        labels[answered.people] = np.asarray(answered.answers.value)[:, 0]
        return labels

    def meta(self, content: str, seeds: Sequence[int]) -> dict[str, Any]:
        """Return what an artifact says of the further questions, with their ledger; `content` is the graph's hash."""
        if not self.asked:
            return {}
        out: dict[str, Any] = {"further": self.further.facts()}
        question = self.label_question
        if question is not None:
            facts = {
                "kind": LABELS,
                **question.meta(),
                "nodes": int((self.graph.labels >= 0).sum()),
                "seeds": list(seeds),
                "library": __version__,
                **graph_facts(self.graph, content, self.root),
            }
            facts["release"] = release_of(plain(facts))
            out[LABELS] = {"epsilon_exact": question.privacy_loss(), **facts}
            out["ledger"] = ledger_from_meta([facts]).as_json()
        return out

    def facts(self) -> dict[str, Any]:
        """Return all that decides the answers, beside the graph and the seed."""
        given = "" if self.listen is None else self.source
        return {**self.further.facts(), "root": self.root, **({"from": given} if given else {})}

    def ledger(self, content: str, seeds: Sequence[int]) -> Ledger:
        """Return what the further questions cost."""
        return Ledger.from_json(self.meta(content, seeds).get("ledger", []))

    def beside(self, conversation: Conversation) -> Conversation:
        """Return a conversation with the further questions beside its own; the same one where there are none."""
        return WithFurther(own=conversation, told=self) if self.asked else conversation


def _question(name: str, people: NDArray[np.int64], answers: Reports) -> Question:
    return Question(name=name, people=people, features=np.arange(1), answers=answers)


@lru_cache(maxsize=2)
def _told(graph: Graph, further: Further, root: int) -> Told:
    return Told(graph=graph, further=further, root=root)


def told_of(graph: Graph, settings: Settings) -> Told:
    """Return the further questions that these settings ask a graph's people."""
    return _told(graph, settings.further, settings.seed)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WithFurther:
    """A conversation about features, and further questions beside it: everything that a person sends for a row.

    Attributes:
        own: the conversation about features.
        told: the further questions.
    """

    own: Conversation
    told: Told

    @property
    def device(self) -> Any:
        """What describes the first answers about features."""
        return self.own.device

    @property
    def m(self) -> int:
        """How many features a person reports when she is asked last."""
        return self.own.m

    def questions(self, seed: int) -> tuple[Question, ...]:
        """Ask everybody for everything."""
        return (*self.own.questions(seed), *self.told.questions(seed))

    def estimate(self, questions: Sequence[Question], calibration: Calibration) -> Estimate:
        """Return what a learner is given of the answers about features."""
        return self.own.estimate([one for one in questions if one.name not in FURTHER], calibration)

    def meta(self, content: str, seeds: Sequence[int]) -> dict[str, Any]:
        """Return what the artifact of all answers says of itself: what they cost adds up."""
        own = self.own.meta(content, seeds)
        further = self.told.meta(content, seeds)
        ledger = [*own["ledger"], *further["ledger"]]
        # Of a mechanism without randomness one draw serves every seed, and what stands beside it differs.
        return {**own, **further, "kind": "answers", "seeds": list(seeds), "deterministic": False, "ledger": ledger}
