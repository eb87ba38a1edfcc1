"""What people tell beside their features, in answer to further questions, and the graph as the server then knows it.

Questions may be asked for labels and for links. Where they are, the server's graph of a seed has the labels that people
have sent in the place of their own, and the links that it estimates from what they have sent: whatever learns, chooses
or directs questions takes that graph. Everybody who has a label sends one, and a split hides those of the test part as
it hides true ones. True labels are opened to measure a test, and true links for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphldp import __version__
from graphldp.client import Reports
from graphldp.client.links import (
    MOST_LINKS,
    LinkMechanism,
    LinkReports,
    Neighbours,
    link_mechanism,
    link_mechanism_of,
    lookup_link,
)
from graphldp.client.mechanisms.krr import LabelQuestion
from graphldp.errors import DataError, unknown_name
from graphldp.experiment.addresses import source_of
from graphldp.experiment.conversation import LABELS, LINKS, Conversation, Question
from graphldp.experiment.devices import graph_facts
from graphldp.experiment.options import SERVERS, Further, Settings
from graphldp.graph import WITHOUT_LABELS, WITHOUT_LINKS, Graph
from graphldp.jsonable import plain
from graphldp.ledger import Ledger, ledger_from_meta, release_of
from graphldp.methods import Method
from graphldp.randomness import UniformSource, generator
from graphldp.registry import check_options
from graphldp.server import Calibration, Estimate
from graphldp.server.links import LinkEstimate, estimate_links, link_estimators, memory_for
from graphldp.trusted.curators import check_curator, curated

__all__ = [
    "ServerView",
    "WithFurther",
    "as_answered",
    "asked_for_labels",
    "asked_for_links",
    "estimator_of",
    "further_meta",
    "link_device",
    "most_links",
    "server_view_of",
]

Listen = Callable[[int], Sequence[Question]]


CURATED = "edge, from a trusted curator"  # whose promise it is: another one than that of people's own reports


def link_device(further: Further, nodes: int) -> LinkMechanism:
    """Return what is run by each of so many people who are asked for their links."""
    options = dict(further.link_options)
    check_options(further.links, options, ("report", *SERVERS, *lookup_link(further.links).option_names))
    own = {name: value for name, value in options.items() if name not in SERVERS}
    return link_mechanism(further.links, further.epsilon_links, nodes, **own)


def estimator_of(further: Further) -> str:
    """Return how the server makes a graph of reported links."""
    known = link_estimators(further.links)
    name = str(dict(further.link_options).get("estimator", known[0]))
    if name not in known:
        raise unknown_name(f"estimator of links reported by {further.links}", name, known)
    return name


def most_links(further: Further) -> float:
    """Return how many false links may be expected before nobody is asked."""
    return float(dict(further.link_options).get("most", MOST_LINKS))


def asked_for_labels(question: LabelQuestion, labels: NDArray[Any], source: UniformSource) -> Question:
    """Ask everybody who has a label, which is one that is not -1, for it."""
    people = np.flatnonzero(labels >= 0)
    answers = question.perturb(labels[people], source)
    return Question(name=LABELS, people=people, features=np.arange(1), answers=answers, further=True)


def asked_for_links(device: LinkMechanism, lists: Neighbours, source: UniformSource, most: float) -> Question:
    """Ask the owners of these lists for them; a person is the place of her list."""
    answers = as_reports(device.perturb(lists, source, most=most))
    people = np.arange(len(lists.owners))
    return Question(name=LINKS, people=people, features=np.arange(lists.nodes), answers=answers, further=True)


def further_meta(
    further: Further,
    shared: Mapping[str, Any],
    labels: tuple[LabelQuestion | None, int],
    links: tuple[LinkMechanism | None, Mapping[str, Any]],
    nonce: str = "",
    curator: str = "",
) -> dict[str, Any]:
    """Return what an artifact says of further questions, with their ledger.

    Args:
        further: what is asked.
        shared: the facts of all releases of the artifact.
        labels: what is asked of labels, and of how many people.
        links: what people run for their links, and what else is said of that.
        nonce: what tells real releases apart.
        curator: who has the links as they are, and makes another graph of them.
    """
    out: dict[str, Any] = {"further": further.facts(), "ledger": []}

    def tell(kind: str, facts: dict[str, Any], exact: dict[str, Any], **more: Any) -> None:
        whole = {**facts, "kind": kind, **shared}
        whole["release"] = release_of(plain(whole), *([nonce] if nonce else []))
        out[kind] = {**exact, **whole, **more}
        out["ledger"] += ledger_from_meta([whole]).as_json()

    question, nodes = labels
    if question is not None:
        tell(LABELS, {**question.meta(), "nodes": nodes}, {"epsilon_exact": question.privacy_loss()})
    device, more = links
    if device is not None:
        said = device.meta()
        facts = {**said, "per": "edge", "epsilon": said["epsilon_relationship"], "epsilon_bit": said["epsilon"]}
        exact = {"epsilon_exact": device.relationship_loss(), "epsilon_bit_exact": device.privacy_loss()}
        tell(LINKS, facts, exact, **more)
    if curator:
        options = dict(further.link_options)
        facts = {"question": LINKS, "what": LINKS, "mechanism": curator, "options": options, "per": CURATED}
        tell(LINKS, {**facts, "epsilon": float(further.epsilon_links), "delta": 0.0}, {})
    return out


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ServerView:
    """The further questions of a graph's people, and what the server knows from the answers.

    Attributes:
        graph: the people's own labels, links and features.
        further: what is asked.
        root: the root of all draws.
        listen: what gives a seed's answers where they were given before; else people are asked.
        source: the hash of where they are from, where this code has not made them of their seeds.
        linked: whether links have a part in what is learned; else the server is told of none, public or not.
    """

    graph: Graph
    further: Further
    root: int
    listen: Listen | None = None
    source: str = ""
    linked: bool = True
    kept: dict[int, Graph] = field(default_factory=dict)
    sent: dict[int, LinkReports] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.further.private_labels and self.graph.classes < 2:
            raise DataError(
                f"graph {self.graph.name} has {self.graph.classes} classes, so there is no label to hide; leave labels "
                "out"
            )
        if self.link_mechanism is not None:
            self._estimator()
        elif self.curator:
            check_curator(self.curator, dict(self.further.link_options))
        if self.linked and not self.further.private_links and WITHOUT_LINKS in self.graph.provenance:
            raise DataError(_elsewhere(self.graph, "links", "--links and --epsilon-links"))
        if not self.further.private_labels and WITHOUT_LABELS in self.graph.provenance:
            raise DataError(_elsewhere(self.graph, "labels", "--labels and --epsilon-labels"))

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
    def link_mechanism(self) -> LinkMechanism | None:
        """What is run by who is asked for her links; None where links are public, or have no part."""
        if not (self.further.private_links and self.linked) or self.further.curated:
            return None
        return link_device(self.further, self.graph.nodes)

    @property
    def curator(self) -> str:
        """The trusted curator who makes the server's graph of everybody's links; empty where people report them."""
        return self.further.links if self.further.curated and self.linked else ""

    def _curated(self, seed: int) -> LinkEstimate:
        """Return a seed's graph of the curator."""
        further = self.further
        facts = {"budget": float(further.epsilon_links), **dict(further.link_options)}
        words = [f"{name}={value}" for name, value in sorted(facts.items())]
        source = generator(self.root, "curator", self.graph.name, self.curator, *words, seed)
        options = dict(further.link_options)
        return curated(self.curator, self.graph.edges, self.graph.nodes, further.epsilon_links, source, options)

    def _estimator(self) -> str:
        return estimator_of(self.further)

    def forecast(self) -> str:
        """Return how many links will be reported, in words, before anything is allocated; empty where none are."""
        device = self.link_mechanism
        if self.curator:
            return (
                f"links by {self.curator}, epsilon {self.further.epsilon_links:g} for one of them: a curator sees all "
                "links as they are, whom everybody has to trust"
            )
        if device is None:
            return ""
        return (
            f"links by {device.name}, epsilon {device.epsilon:g} for a bit and {device.relationship_epsilon:g} for a "
            f"relationship: about {device.expected_links():,.0f} false ones will be reported by {device.nodes:,} people"
        )

    def found(self) -> str:
        """Return how many links the server's graph of the first run has, in words; empty where links are public."""
        if self.link_mechanism is None and not self.curator:
            return ""
        links = self.known(0).edges.shape[1]
        return f"the server's graph of the first run has {f'{links:,} links' if links else 'no link at all'}"

    @property
    def chances(self) -> tuple[float, float] | None:
        """The probabilities that a label is sent as it is, and as a certain other one; None where labels are public."""
        question = self.label_question
        return None if question is None else question.law.chances

    def questions(self, seed: int) -> tuple[Question, ...]:
        """Ask everybody, or return what was answered before."""
        if self.listen is not None:
            return tuple(one for one in self.listen(seed) if one.further)
        for what, name in ((WITHOUT_LINKS, "links"), (WITHOUT_LABELS, "labels")):
            if what in self.graph.provenance:
                raise DataError(
                    f"the {name} of {self.graph.name} are on people's devices, and cannot be asked for here: merge "
                    "their reports with `ldp merge`, then `ldp denoise` and `ldp train`"
                )
        out = []
        question = self.label_question
        if question is not None:
            people = np.flatnonzero(self.graph.labels >= 0)
            source = source_of(self.root, self.graph.name, question, seed, people=people)
            out.append(asked_for_labels(question, self.graph.labels, source))
        device = self.link_mechanism
        if device is not None:
            lists = Neighbours.of_edges(self.graph.edges, self.graph.nodes)
            source = source_of(self.root, self.graph.name, device, seed)
            out.append(asked_for_links(device, lists, source, most_links(self.further)))
        return tuple(out)

    def known(self, seed: int) -> Graph:
        """Return the graph as the server knows it in a seed's runs."""
        if not self.replaces:
            return self.graph
        if seed not in self.kept:
            known = self.heard(self.questions(seed))
            self.kept[seed] = known.linked(*self._curated(seed).edges()) if self.curator else known
        return self.kept[seed]

    def link_reports(self, seed: int) -> LinkReports | None:
        """Return what people have sent of their links in a seed's runs; None where they are asked for none."""
        if self.link_mechanism is None:
            return None
        if seed not in self.sent:
            self.sent[seed] = next(as_links(one.answers) for one in self.questions(seed) if one.name == LINKS)
        return self.sent[seed]

    @property
    def replaces(self) -> bool:
        """Whether the server's graph is another one than the people's own."""
        return self.asked or not self.linked

    @property
    def private_links(self) -> bool:
        """Whether the server has no true links."""
        return self.further.private_links or not self.linked

    @property
    def sample(self) -> Graph:
        """The graph by which what is public of a calibration is decided: where links are private, an estimated one."""
        return self.known(0) if self.private_links else self.graph

    def heard(self, questions: Sequence[Question]) -> Graph:
        """Return the graph as the server knows it from these answers."""
        out = self.graph
        if self.private_links:  # no true link is left, whatever was answered
            out = replace(out, edges=np.empty((2, 0), np.int32), self_loops=np.empty(0, np.int32), weights=None)
        for one in questions:
            if one.name == LABELS:
                out = as_answered(out, [one])
            if one.name == LINKS and self.linked:
                room = memory_for(most_links(self.further))
                found = estimate_links(as_links(one.answers), self._estimator(), max_memory=room)
                out = out.linked(*found.edges())
        return out

    def meta(self, content: str, seeds: Sequence[int]) -> dict[str, Any]:
        """Return what an artifact says of the further questions, with their ledger; `content` is the graph's hash."""
        if not self.asked:
            return {}
        device = self.link_mechanism
        return further_meta(
            self.further,
            {"seeds": list(seeds), "library": __version__, **graph_facts(self.graph, content, self.root)},
            labels=(self.label_question, int((self.graph.labels >= 0).sum())),
            links=(device, {} if device is None else {"estimator": self._estimator()}),
            curator=self.curator,
        )

    def facts(self) -> dict[str, Any]:
        """Return all that decides the answers, beside the graph and the seed."""
        given = "" if self.listen is None else self.source
        alone = {} if self.linked else {"linked": False}
        return {**self.further.facts(), **alone, "root": self.root, **({"from": given} if given else {})}

    def ledger(self, content: str, seeds: Sequence[int]) -> Ledger:
        """Return what the further questions cost."""
        return Ledger.from_json(self.meta(content, seeds).get("ledger", []))

    def beside(self, conversation: Conversation) -> Conversation:
        """Return a conversation with the further questions beside its own; the same one where there are none."""
        return WithFurther(own=conversation, server_view=self) if self.asked else conversation


def _elsewhere(graph: Graph, what: str, options: str) -> str:
    return (
        f"the graph {graph.name} was imported without {what}, which people report: say with {options} how they have "
        "done so"
    )


def as_answered(graph: Graph, questions: Sequence[Question]) -> Graph:
    """Return the graph with the labels that people have sent, and no others."""
    labels = np.full(graph.nodes, -1, dtype=np.int32)
    for one in questions:
        if one.name == LABELS:
            labels[one.people] = np.asarray(one.answers.value)[:, 0]
    return replace(graph, labels=labels)


def as_reports(links: LinkReports) -> Reports:
    """Return reports on links as a rectangle: the reported neighbours, -1 behind them, and a degree or numbers."""
    counts = np.diff(links.indptr)
    width = int(counts.max(initial=0))
    place = np.arange(width) < counts[:, None]
    index = np.full(place.shape, -1, dtype=np.int32)
    index[place] = links.indices
    if links.value is not None:
        value: NDArray[Any] = np.zeros(place.shape, dtype=np.float32)
        value[place] = links.value
    else:
        degree = np.zeros(len(counts), np.int64) if links.degree is None else links.degree
        value = degree[:, None]
    return Reports(index=index, value=value, meta=links.meta)


def as_links(reports: Reports) -> LinkReports:
    """Return the reports on links that stand in a rectangle."""
    assert reports.index is not None
    place, meta = reports.index >= 0, dict(reports.meta)
    numbers = np.asarray(reports.value)
    device = link_mechanism_of(meta)
    return LinkReports(
        nodes=reports.nodes,
        owners=np.arange(reports.nodes, dtype=np.int32),
        indptr=np.concatenate([[0], np.cumsum(place.sum(axis=1))]).astype(np.int64),
        indices=reports.index[place].astype(np.int32),
        degree=numbers[:, 0].astype(np.int64) if device.degree_epsilon else None,
        value=numbers[place].astype(np.float32) if numbers.dtype.kind == "f" else None,
        meta=meta,
    )


@lru_cache(maxsize=4)
def _server_view(graph: Graph, further: Further, root: int, linked: bool) -> ServerView:
    return ServerView(graph=graph, further=further, root=root, linked=linked)


def server_view_of(graph: Graph, settings: Settings, recipe: Method | None = None) -> ServerView:
    """Return the further questions that these settings ask a graph's people for a row.

    For a method in which links have no part nobody is asked for them.
    """
    alone = recipe is not None and recipe.alone
    further = settings.further.without_links() if alone else settings.further
    return _server_view(graph, further, settings.seed, not alone)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WithFurther:
    """A conversation about features, and further questions beside it: everything that a person sends for a row.

    Attributes:
        own: the conversation about features.
        server_view: the further questions, and what the server knows by them.
    """

    own: Conversation
    server_view: ServerView

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
        return (*self.own.questions(seed), *self.server_view.questions(seed))

    def estimate(self, questions: Sequence[Question], calibration: Calibration) -> Estimate:
        """Return what a learner is given of the answers about features."""
        return self.own.estimate([one for one in questions if not one.further], calibration)

    def meta(self, content: str, seeds: Sequence[int]) -> dict[str, Any]:
        """Return what the artifact of all answers says of itself: what they cost adds up."""
        own = self.own.meta(content, seeds)
        further = self.server_view.meta(content, seeds)
        ledger = [*own["ledger"], *further["ledger"]]
        # Of a mechanism without randomness one draw serves every seed, and what stands beside it differs.
        return {**own, **further, "kind": "answers", "seeds": list(seeds), "deterministic": False, "ledger": ledger}
