"""What some people tell of themselves where no graph is: their features, and their own links and label beside these.

It is what devices do in a collection, or a server that rehearses one. A person is known by her name, which stands in
the file of answers; links are named by their numbers among everybody who takes part, in an order that is declared.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphldp import __version__
from graphldp.client import VectorMechanism
from graphldp.client.links import LinkMechanism, Neighbours
from graphldp.client.mechanisms.krr import LabelQuestion
from graphldp.errors import DataError
from graphldp.experiment.addresses import source_of
from graphldp.experiment.conversation import LINKS, Question
from graphldp.experiment.devices import hash_of_names, release_meta
from graphldp.experiment.estimates import estimate_of
from graphldp.experiment.options import Further
from graphldp.experiment.server_view import asked_for_labels, asked_for_links, further_meta, link_device, most_links
from graphldp.randomness import SecureSource, Source
from graphldp.server import Calibration, Estimate

__all__ = ["UNDECLARED", "OwnAnswers", "OwnBeside", "own_beside"]

UNDECLARED = -2  # a label that is none of the declared classes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OwnBeside:
    """What people tell beside their features.

    Attributes:
        further: what is asked.
        question: what is run by who is asked for her label.
        labels: of each person in the file, -1 where she has none. One that is `UNDECLARED` is reported, too, as if it
            were one of the classes, drawn at random: a report that is missing would tell.
        device: what is run by who is asked for her links.
        lists: everybody's list in the file, in the order of their numbers.
        order: of each list which person of the file it is.
        people: a hash of the names of everybody who takes part.
    """

    further: Further
    question: LabelQuestion | None = None
    labels: NDArray[np.int32] | None = None
    device: LinkMechanism | None = None
    lists: Neighbours | None = None
    order: NDArray[np.int64] | None = None
    people: str = ""


def own_beside(
    further: Further,
    ids: Sequence[str],
    *,
    people: Sequence[str] = (),
    pairs: NDArray[np.int64] | None = None,
    classes: int = 0,
    labels: NDArray[np.int32] | None = None,
) -> OwnBeside:
    """Return what these people tell beside their features.

    Args:
        further: what is asked.
        ids: who they are.
        people: everybody who takes part, in the declared order; where links are asked for.
        pairs: links as numbers of `people`, 2 x E, each once.
        classes: how many classes are declared; where labels are asked for.
        labels: of each of them, -1 where she has none, `UNDECLARED` where hers is no declared class.
    """
    facts: dict[str, Any] = {}
    if further.private_labels:
        assert labels is not None
        question = LabelQuestion(epsilon=further.epsilon_labels, classes=classes)
        facts |= {"question": question, "labels": labels}
    if further.private_links:
        assert pairs is not None
        number = {name: place for place, name in enumerate(people)}
        strange = [name for name in ids if name not in number]
        if strange:
            raise DataError(
                f"{strange[0]!r} is none of the {len(people):,} people who take part; name her there, or leave her out"
            )
        own = np.array([number[name] for name in ids], dtype=np.int64)
        order = np.argsort(own, kind="stable")
        facts |= {
            "device": link_device(further, len(people)),
            "lists": Neighbours.of_people(own[order], pairs, len(people)),
            "order": order,
            "people": hash_of_names(len(people), people),
        }
    return OwnBeside(further=further, **facts)


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnAnswers:
    """A conversation with people who are known by their own file: everybody reports once, and tells what is asked for.

    Attributes:
        name: what the data are called.
        device: how features are reported.
        features: of each person.
        beside: what is told beside these.
        root: the root of seeded draws.
        secure: whether draws are the operating system's.
        facts: what else the artifact says.
        level: everybody's privacy level, where it is given.
        before: what finding out the mechanism's options has cost.
    """

    name: str
    device: VectorMechanism
    features: Any
    beside: OwnBeside
    root: int
    secure: bool
    facts: Mapping[str, Any]
    level: NDArray[np.int32] | None = None
    before: Sequence[Mapping[str, Any]] = field(default_factory=tuple)

    @property
    def m(self) -> int:
        """How many features a person reports."""
        return self.device.m

    def questions(self, seed: int) -> tuple[Question, ...]:
        """Return what leaves the devices."""
        answers = self.device.perturb(self.features, self._source(self.device, seed, level=self.level), self.level)
        count, told = self.features.shape[0], self.beside
        dimensions = np.arange(self.device.dimensions)
        out = [Question(name="features", people=np.arange(count), features=dimensions, answers=answers)]
        if told.question is not None and told.labels is not None and (told.labels != -1).any():
            source = self._source(told.question, seed, people=np.flatnonzero(told.labels != -1))
            strange = told.labels == UNDECLARED
            drawn = source.integers(0, told.question.classes, int(strange.sum()))
            labels = told.labels.copy()
            labels[strange] = drawn
            out.append(asked_for_labels(told.question, labels, source))
        if told.device is not None and told.lists is not None and told.order is not None:
            source = self._source(told.device, seed, owners=told.lists.owners)
            one = asked_for_links(told.device, told.lists, source, most_links(told.further))
            out.append(
                Question(name=LINKS, people=told.order, features=one.features, answers=one.answers, further=True)
            )
        return tuple(out)

    def _source(self, device: Any, seed: int, **asked: Any) -> Source:
        if self.secure:
            return SecureSource()
        level = asked.pop("level", None)
        return source_of(self.root, self.name, device, seed, level, **asked)

    def estimate(self, questions: Sequence[Question], calibration: Calibration) -> Estimate:
        """Return the rectified reports on features after the threshold before the filter."""
        return estimate_of(questions[0].answers, calibration)

    @cached_property
    def _nonce(self) -> str:
        return os.urandom(16).hex() if self.secure else ""

    def meta(self, content: str, seeds: Sequence[int]) -> dict[str, Any]:
        """Return what the artifact says of itself: of real reports nothing from which a guess could be confirmed."""
        count = self.features.shape[0]
        own = release_meta(self.device, count, seeds, self.facts, level=self.level, ledger=self.before)
        told = self.beside
        if not told.further.asked:
            return own
        shared = {
            "seeds": list(seeds),
            "library": __version__,
            **{key: self.facts[key] for key in ("dataset", "input", "random")},
        }
        labelled = 0 if told.labels is None else int((told.labels != -1).sum())
        further = further_meta(
            told.further,
            shared,
            labels=(told.question, labelled),
            links=(told.device, {"people": told.people}),
            nonce=self._nonce,
        )
        ledger = [*own["ledger"], *further["ledger"]]
        return {**own, **further, "kind": "answers", "seeds": list(seeds), "deterministic": False, "ledger": ledger}
