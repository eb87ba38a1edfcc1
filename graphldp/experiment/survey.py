"""A survey: everybody is asked once, one after the other, and each question follows from the answers so far.

Each seed has its own split, and only the labels of its training nodes decide who is asked what.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphldp.client import VectorMechanism, from_meta, protocol
from graphldp.client.laws.sets import SetValued
from graphldp.client.vote import Vote
from graphldp.errors import DataError, OptionError
from graphldp.experiment.addresses import source_of
from graphldp.experiment.conversation import Asking, Question, Turn, is_number, meta_of
from graphldp.experiment.devices import check_options, device_for, refuse_parts
from graphldp.experiment.options import Settings, split_facts
from graphldp.experiment.people import apart_of, split_of
from graphldp.experiment.server_view import server_view_of
from graphldp.graph import Graph
from graphldp.randomness import Source, generator, seed_of
from graphldp.server import Calibration, Estimate, rectify
from graphldp.server.class_means import ClassMeans, Wave, class_means
from graphldp.server.voting import CALIBRATING, Surveyed, memberships, teachers_and_voters
from graphldp.splits import Apart

__all__ = ["VOTE", "Survey", "Surveys", "heard"]

VOTE = "vote"


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey(Asking):
    """Everybody is asked once, with the whole budget, one after the other.

    Attributes:
        teachers: the share of the people who are asked about their features; the others vote for a class.
        first: the share of the teachers who are asked about all features; the others, about the most telling ones.
        narrowed: how many times the question is narrowed to these, each time for as many of the others.
        features: how many these are the first time.
        last: how many they are the last time; in between, they fall by the same factor.
    """

    calibrates: ClassVar[bool] = False
    directed_by: ClassVar[tuple[str, ...]] = ("labels",)

    teachers: float = 0.5
    first: float = 0.4
    narrowed: int = 3
    features: int = 400
    last: int = 40

    def __post_init__(self) -> None:
        for name, most in (("teachers", False), ("first", True)):
            value = getattr(self, name)
            if not is_number(value) or not (0 < value < 1 or (most and value == 1)):
                raise OptionError(f"{name} is a share above 0 and {'at most' if most else 'below'} 1, got {value!r}")
        for name in ("narrowed", "features", "last"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise OptionError(f"{name} must be a whole number of at least 1, got {value!r}")

    def sizes(self, dimensions: int) -> tuple[int, ...]:
        """Return how many features each narrowed question is about."""
        most = min(self.features, dimensions)
        fall = (min(self.last, most) / most) ** (1 / max(1, self.narrowed - 1))
        return tuple(max(1, round(most * fall**place)) for place in range(self.narrowed))

    def conversation(
        self,
        graph: Graph,
        mechanism: str,
        epsilon: float,
        settings: Settings,
        options: Mapping[str, Any],
        level: NDArray[np.int32] | None = None,
    ) -> Surveys:
        """Return the survey of a graph's people."""
        out = Surveys.of(graph, self, mechanism, epsilon, settings, options)
        if level is not None:
            raise OptionError(f"people of a survey spend one budget, the same for all: {mechanism} takes no levels")
        return out


def heard(questions: Sequence[Question], nodes: int, dimensions: int) -> Surveyed:
    """Return what a learner gets of a survey: who named which classes. The last question is the vote."""
    vote = questions[-1]
    votes = np.full((nodes, vote.answers.m), -1, dtype=np.int16)
    votes[vote.people] = vote.answers.value
    facts = vote.answers.meta
    nothing = np.zeros((1, facts["classes"]))
    law = Vote.of(float(facts["epsilon"]), nothing, nothing[0], facts["low"], facts["high"], facts["m"])
    present, absent = law.chances()
    nobody = sp.csr_array((nodes, dimensions), dtype=np.float32)
    return Surveyed(matrix=nobody, fill=0.0, votes=votes, present=present, absent=absent)


@dataclass(frozen=True, kw_only=True, eq=False)
class Surveys:
    """The survey of each seed: the devices' side and, between the questions, the server's.

    Attributes:
        graph: whose features are asked about.
        survey: how many are asked what.
        mechanism, epsilon, options: how teachers report features; every answer has the whole budget.
        params: where splits and draws come from.
        device: what the first teachers run.
    """

    graph: Graph
    survey: Survey
    mechanism: str
    epsilon: float
    options: Mapping[str, Any]
    params: Settings
    device: VectorMechanism

    @classmethod
    def of(
        cls,
        graph: Graph,
        survey: Survey,
        mechanism: str,
        epsilon: float,
        params: Settings,
        options: Mapping[str, Any] | None = None,
    ) -> Surveys:
        """Return the surveys, with everything that can be wrong in them checked before anything is drawn."""
        if graph.classes < 2:
            raise DataError(f"graph {graph.name} has {graph.classes} classes; people vote between at least 2")
        given = dict(options or {})
        check_options(mechanism, given)
        refuse_parts(Survey, given)
        device = device_for(graph, mechanism, epsilon, given)
        if device.deterministic or len(device.budgets) > 1:
            raise OptionError(
                f"{mechanism} cannot be surveyed: every answer spends one budget, the same for all; take privset for "
                "features that are there or not, pm or mb for others"
            )
        out = cls(
            graph=graph,
            survey=survey,
            mechanism=mechanism,
            epsilon=float(epsilon),
            options=given,
            params=params,
            device=device,
        )
        for size in survey.sizes(graph.dimensions):
            out.narrowed(np.arange(size), 1.0)
        nothing = np.zeros((graph.dimensions, graph.classes))
        out.vote(nothing, nothing[0])
        return out

    @property
    def m(self) -> int:
        """How many features the first teachers report: the only ones who are asked about all."""
        return self.device.m

    def narrowed(self, asked: np.ndarray[Any, np.dtype[np.int64]], expected: float) -> VectorMechanism:
        """Return what is run by teachers who are asked about these features, of which `expected` are there."""
        options = dict(self.options)
        if isinstance(self.device, SetValued):
            options["pad"] = max(1, min(self.device.pad, round(min(expected, len(asked)))))
        if "overlap" in options:
            options["overlap"] = min(int(options["overlap"]), options["pad"])
        if "m" in options:
            options["m"] = min(int(options["m"]), len(asked))
        return protocol(self.mechanism, self.epsilon, len(asked), self.graph.low, self.graph.high, **options)

    def vote(self, weights: Any, offsets: Any) -> Vote:
        """Return what voters run."""
        return Vote.of(self.epsilon, weights, offsets, self.graph.low, self.graph.high)

    @cached_property
    def loss(self) -> float:
        """The largest exact loss of anybody's answer, whichever question she is asked.

        How far a narrowed question pads sets is known once it is asked. No padding makes the loss of a set larger than
        epsilon, and that of a vote is epsilon.
        """
        nothing = np.zeros((self.graph.dimensions, self.graph.classes))
        asked = [self.narrowed(np.arange(size), math.inf) for size in self.survey.sizes(self.graph.dimensions)]
        taught = max(one.privacy_loss() for one in (self.device, *asked))
        return max(taught, self.vote(nothing, nothing[0]).privacy_loss())

    def estimate(self, questions: Sequence[Question], calibration: Calibration) -> Estimate:
        """Return who named which classes; no filter has a part in it."""
        return heard(questions, self.graph.nodes, self.graph.dimensions)

    def questions(self, seed: int) -> tuple[Question, ...]:
        """Ask everybody, one question after the other, and return what they were asked and what they said."""
        graph, train = self.graph, split_of(self.graph, self.params, seed).train
        labels = np.full(graph.nodes, -1, dtype=np.int64)
        server_view = server_view_of(graph, self.params)
        server = server_view.known(seed)
        labels[train] = server.labels[train]
        root = seed_of(self.params.seed, "survey", graph.name, seed)
        apart = apart_of(graph, self.params, seed)
        known = server if apart is None else apart.sever(server)
        shares, _ = memberships(known, labels, train, graph.classes, generator(root, "labels"), server_view.chances)
        if apart is None:
            teachers, voters = teachers_and_voters(shares, train, self.survey.teachers, generator(root, "groups"))
        else:
            teachers, voters = self._groups(apart, shares, train, generator(root, "groups"))
        about = self._teach(teachers, shares, seed)
        every = np.arange(graph.dimensions)
        ballot = self.vote(*self._taught(about, shares).ballot())
        answers = ballot.perturb(graph.features[voters], self._source("vote", ballot, voters, every, seed))
        return (*about, Question(name=VOTE, people=voters, features=every, answers=answers))

    def _groups(self, apart: Apart, shares: Any, train: Any, rng: np.random.Generator) -> tuple[Any, Any]:
        """Return who teaches and who votes where only the training graph is there yet.

        Nobody else can teach. So everybody there does, but the training nodes that are to show what votes are worth:
        half of them, 200 at most. Who is in another graph votes.
        """
        nodes = apart.train
        spared = min(len(train) - len(train) // 2, CALIBRATING)
        share = max(self.survey.teachers, 1 - spared / len(nodes))
        teachers, voters = teachers_and_voters(shares[nodes], np.searchsorted(nodes, train), share, rng)
        return nodes[teachers], np.sort(np.concatenate([nodes[voters], apart.validation, apart.test]))

    def _teach(self, teachers: Any, shares: Any, seed: int) -> list[Question]:
        """Ask the teachers: the first about all features, each later group about what was found telling before it."""
        graph = self.graph
        first = max(1, round(self.survey.first * len(teachers)))
        asked = [self._ask("first", teachers[:first], np.arange(graph.dimensions), self.device, seed)]
        groups = np.array_split(teachers[first:], self.survey.narrowed)
        for count, (people, size) in enumerate(zip(groups, self.survey.sizes(graph.dimensions), strict=True)):
            if not len(people):
                break
            found = self._taught(asked, shares)
            telling = found.telling(size)
            expected = float(((found.mean[telling] - graph.low) / (graph.high - graph.low)).sum())
            device = self.narrowed(telling, expected)
            asked.append(self._ask(f"narrowed {count + 1}", people, telling, device, seed))
        return asked

    def _ask(self, name: str, people: Any, features: Any, device: VectorMechanism, seed: int) -> Question:
        rows = sp.csr_array(self.graph.features[people][:, features])
        answers = device.perturb(rows, self._source(name, device, people, features, seed))
        return Question(name=name, people=people, features=features, answers=answers)

    def _taught(self, asked: Sequence[Question], shares: Any) -> ClassMeans:
        """Return what the server knows of the classes' features from these answers."""
        waves = [
            Wave(
                estimate=rectify(one.answers),
                device=from_meta(dict(one.answers.meta)),
                features=one.features,
                shares=shares[one.people],
            )
            for one in asked
        ]
        return class_means(waves, self.graph.dimensions)

    def _source(self, question: str, device: VectorMechanism | Vote, people: Any, features: Any, seed: int) -> Source:
        root, name = self.params.seed, self.graph.name
        return source_of(root, name, device, seed, survey=question, people=people, features=features)

    def meta(self, content: str, seeds: Sequence[int]) -> dict[str, Any]:
        """Return what the artifact of the answers says of itself: everybody has answered one question."""
        facts = {"kind": "answers", "rounds": self.survey.shaping(), "selection": split_facts(self.params)}
        return meta_of(
            self.graph,
            content,
            (Turn(device=self.device, facts=facts, loss=self.loss),),
            self.survey,
            seeds=seeds,
            root=self.params.seed,
            given=self.options,
        )
