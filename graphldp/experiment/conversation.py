"""How people are asked, for one row: what leaves the devices, what the server makes of it, and what it costs them.

A way of asking is a module of this package with two classes: an `Asking`, which holds the options that a method has
for it, and the `Conversation` that these mean on a graph. A recipe names the first one (`Method.asks`). Nothing else
has to know of it: rows in memory and rows from artifacts go through `Conversation` alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from graphldp.client import Reports, VectorMechanism
from graphldp.errors import OptionError
from graphldp.experiment.addresses import source_of
from graphldp.experiment.devices import device_for, graph_facts, release_meta
from graphldp.experiment.estimates import estimate_of
from graphldp.experiment.options import Settings, TrainParams
from graphldp.graph import Graph
from graphldp.ledger import ledger_from_meta
from graphldp.measures import measures_of, tasks
from graphldp.methods import Method
from graphldp.server import Calibration, Estimate

__all__ = [
    "FURTHER",
    "LABELS",
    "LINKS",
    "Asking",
    "Conversation",
    "Once",
    "Question",
    "Turn",
    "ask",
    "check_classes",
    "conversation_of",
    "is_number",
    "meta_of",
    "most_of",
]


LABELS, LINKS = "labels", "links"
FURTHER = (LABELS, LINKS)  # the names of the questions beside those about features; no way of asking has these


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """One question: who was asked, about what, and what they answered.

    Attributes:
        name: what tells it apart from the others of a conversation.
        people: the nodes, in the order in which they were asked.
        features: which features it was about, increasing.
        answers: what left the devices, one row for each of the people; a dimension of the mechanism is a place in
            `features`.
        further: whether it is one of `FURTHER`, which are asked beside those about features.
    """

    name: str
    people: NDArray[np.int64]
    features: NDArray[np.int64]
    answers: Reports
    further: bool = False


class Conversation(Protocol):
    """What the people of a graph are asked for one row, and what the server makes of their answers."""

    @property
    def device(self) -> VectorMechanism:
        """What describes the first answers; the filter is calibrated for it."""
        ...

    @property
    def m(self) -> int:
        """How many features a person reports when she is asked last."""
        ...

    def questions(self, seed: int) -> tuple[Question, ...]:
        """Ask everybody, one question after the other; return what has left the devices."""
        ...

    def estimate(self, questions: Sequence[Question], calibration: Calibration) -> Estimate:
        """Return what a learner is given of the answers, with any threshold before the filter already applied."""
        ...

    def meta(self, content: str, seeds: Sequence[int]) -> dict[str, Any]:
        """Return what the artifact of the answers says of itself; `content` is the hash of the graph."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking(ABC):
    """The options that a method has for a way of asking: the fields of a subclass, written `method.KEY`.

    Attributes:
        calibrates: whether the server's estimate is one of features, which `ldp denoise` writes; else a learner takes
            the answers as they are.
        directed_by: whose values of training nodes, or training links, decide what people are asked, where a task
            learns them (`labels`, `sets`, `links`); empty where nothing of the kind does.
        thresholds: whether one threshold before or after the filter fits all answers.
        afterwards: the options that change the estimate alone, and nothing that people are asked.
    """

    calibrates: ClassVar[bool] = True
    directed_by: ClassVar[tuple[str, ...]] = ()
    thresholds: ClassVar[bool] = True
    afterwards: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def conversation(
        self,
        graph: Graph,
        mechanism: str,
        epsilon: float,
        settings: Settings,
        options: Mapping[str, Any],
        level: NDArray[np.int32] | None = None,
    ) -> Conversation:
        """Return the conversation on a graph, with all that can be wrong in it checked before anybody is asked."""

    def but(self, **changes: Any) -> Self:
        """Return it with some options changed."""
        return replace(self, **changes)

    def remark(self, m: int) -> str:
        """Return what a table says of rows that ask so, where a person reports m features; empty where nothing."""
        return ""

    def shaping(self) -> dict[str, Any]:
        """Return the options that decide what people are asked."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name not in self.afterwards}


def is_number(value: Any) -> bool:
    """Return whether an option is a number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Once:
    """Everybody reports her features once, with the whole budget.

    Attributes:
        graph: whose features are reported.
        device: what the devices run.
        settings: where draws come from.
        level: everybody's privacy level, where it is given.
        ledger: what finding out the mechanism's options has cost.
    """

    graph: Graph
    device: VectorMechanism
    settings: Settings
    level: NDArray[np.int32] | None = None
    ledger: tuple[Mapping[str, Any], ...] = ()

    @property
    def m(self) -> int:
        """How many features a person reports."""
        return self.device.m

    def questions(self, seed: int) -> tuple[Question, ...]:
        """Return what leaves the devices."""
        source = source_of(self.settings.seed, self.graph.name, self.device, seed, self.level)
        return (_of_everybody("features", self.graph, self.device.perturb(self.graph.features, source, self.level)),)

    def estimate(self, questions: Sequence[Question], calibration: Calibration) -> Estimate:
        """Return the rectified reports after the threshold before the filter."""
        (one,) = questions
        return estimate_of(one.answers, calibration)

    def meta(self, content: str, seeds: Sequence[int]) -> dict[str, Any]:
        """Return what the artifact of the reports says of itself."""
        facts = graph_facts(self.graph, content, self.settings.seed)
        return release_meta(self.device, self.graph.nodes, seeds, facts, level=self.level, ledger=self.ledger)


def _of_everybody(name: str, graph: Graph, answers: Reports) -> Question:
    return Question(name=name, people=np.arange(graph.nodes), features=np.arange(graph.dimensions), answers=answers)


def conversation_of(
    graph: Graph,
    recipe: Method,
    mechanism: str,
    epsilon: float,
    settings: Settings,
    options: Mapping[str, Any] | None = None,
    level: NDArray[np.int32] | None = None,
) -> Conversation:
    """Return how the people of a graph are asked for a row; `options` are the mechanism's further ones."""
    given = dict(options or {})
    if recipe.asking is not None:
        return recipe.asking.conversation(graph, mechanism, epsilon, settings, given, level)
    return Once(graph=graph, device=device_for(graph, mechanism, epsilon, given), settings=settings, level=level)


def check_classes(recipe: Method, train: TrainParams) -> None:
    """Refuse a method whose people are asked what training nodes' classes suggest, where nothing like it is learned."""
    entry, asking = measures_of(train.task), recipe.asking
    if asking is None or not asking.directed_by or set(asking.directed_by) & set(entry.learns):
        return
    fit = [f"{name!r}" for name in tasks() if set(asking.directed_by) & set(measures_of(name).learns)]
    raise OptionError(
        f"method {recipe.name!r} is directed by the classes of training nodes; task {train.task!r} has no classes to "
        f"learn. Use task {', '.join(fit[:-1])} or {fit[-1]}, or another method"
    )


# What a person spends --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Turn:
    """One answer of every person: to whichever question of that turn she is asked, each of the same budget.

    Attributes:
        device: what she runs, or another mechanism of the same budget.
        facts: in what the release differs from an ordinary collection with that device.
        loss: the largest exact loss of any answer, where it is not the device's.
    """

    device: VectorMechanism
    facts: Mapping[str, Any] = field(default_factory=dict)
    loss: float | None = None


_ADDED = ("epsilon", "epsilon_exact", "delta", "epsilon_mean", "epsilon_max")


def meta_of(
    graph: Graph,
    content: str,
    turns: Sequence[Turn],
    asking: Asking,
    *,
    seeds: Sequence[int],
    root: int,
    given: Mapping[str, Any],
    level: NDArray[np.int32] | None = None,
) -> dict[str, Any]:
    """Return what the artifact of several questions says of itself, with the ledger of all turns.

    Budgets of turns add up, all else is the last one's. `given` are the options that the mechanism was given.
    """
    metas: list[dict[str, Any]] = []
    for turn in turns:
        before = metas[-1] if metas else None
        facts = {**graph_facts(graph, content, root), **turn.facts}
        facts |= {} if turn.loss is None else {"epsilon_exact": turn.loss}
        facts |= {} if before is None else {"after": before["release"]}
        ledger = () if before is None else tuple(before["ledger"])
        metas.append(release_meta(turn.device, graph.nodes, seeds, facts, level=level, ledger=ledger))
    last = metas[-1]
    sums: dict[str, Any] = {key: sum(float(one[key]) for one in metas) for key in _ADDED if key in last}
    if "budgets" in last:
        sums["budgets"] = [sum(parts) for parts in zip(*(one["budgets"] for one in metas), strict=True)]
    return {
        **last,
        **sums,
        "claim": {**last["claim"], "epsilon": sum(float(one["claim"]["epsilon"]) for one in metas)},
        "kind": "answers",
        "rounds": {one.name: getattr(asking, one.name) for one in fields(asking)},
        "given": dict(given),
    }


def most_of(conversation: Conversation) -> float:
    """Return what the ledger says that a person spends at most, each time that everybody is asked."""
    return float(ledger_from_meta([conversation.meta("", [0])]).total().max or 0.0)


def ask(conversation: Conversation, seed: int, most: float) -> tuple[Question, ...]:
    """Ask everybody, and make sure that nobody has answered for more than `most`, what the ledger says.

    The ledger says of links what one of them costs, and not a whole person: they are not among what adds up here.
    """
    questions = conversation.questions(seed)
    for one in questions:
        if one.further != (one.name in FURTHER):
            raise OptionError(
                f"a question about features is called {one.name!r}, as the one beside features is; give it another name"
            )
    asked = [one for one in questions if not (one.further and one.name == LINKS)]
    people = np.concatenate([one.people for one in asked])
    spent = np.concatenate([np.full(len(one.people), float(one.answers.meta["claim"]["epsilon"])) for one in asked])
    worst = float(np.bincount(people, weights=spent).max(initial=0.0))
    if worst > most * (1 + 1e-9):
        raise OptionError(
            f"the questions ({', '.join(one.name for one in questions)}) cost somebody epsilon {worst:g}, and their "
            f"ledger says at most {most:g}: ask nobody twice in a turn, or declare a further turn"
        )
    return questions
