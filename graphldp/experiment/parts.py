"""What a cell of a table is trained for: its parts, its graphs, its targets and its scores, for each task.

A seed has a `Part`: what its runs are trained on, selected by and tested on, and the graph over which messages pass.
For tasks of nodes that is the whole public graph, or, with an inductive split, three graphs without a link between
them; for link prediction it is the training edges alone. Everything that looks at edges (the server's filter, the
backbone) has to take them from there.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphldp.client.links import LinkReports, link_names
from graphldp.errors import OptionError
from graphldp.experiment.conversation import check_classes
from graphldp.experiment.estimates import average_degree, centred, filtered_apart, filtered_inputs, unit_scale
from graphldp.experiment.options import INDUCTIVE, Settings, TrainParams
from graphldp.experiment.people import apart_of, split_of
from graphldp.graph import WITHOUT_LABELS, Graph
from graphldp.learn import (
    EdgeSplit,
    MessageGraph,
    NodeInputs,
    Options,
    Outcome,
    Problem,
    Replica,
    Run,
    Split,
    Task,
    Values,
    edge_split,
    majority,
    score_classes,
    score_links,
    score_values,
    task,
)
from graphldp.learn.tasks.private import (
    LabelChannel,
    true_accuracy,
    true_macro_f1,
)
from graphldp.ledger import Ledger, Spend
from graphldp.measures import measures_of
from graphldp.methods import Method, method
from graphldp.randomness import generator
from graphldp.server import Calibration, Estimate
from graphldp.server.evidence import evidence_class
from graphldp.server.links import BITS, link_estimators
from graphldp.server.links_homophily import homophilous_links
from graphldp.server.links_learned import choose_links
from graphldp.splits import Apart, among
from graphldp.tasks import TrainingLoss

if TYPE_CHECKING:
    from graphldp.experiment.server_view import ServerView
    from graphldp.learn.tasks import Targets

__all__ = [
    "NodePart",
    "Part",
    "apart_of",
    "calibration_over",
    "channel_of",
    "check_relinks",
    "check_task",
    "few_tested",
    "final_scores",
    "fits",
    "given_away",
    "graph_places",
    "learners_of",
    "part_of",
    "problem_of",
    "relinked",
    "split_of",
    "task_of",
]

FEW_TESTED = 20  # below it, one node is more than five percent of the accuracy

Scores = dict[str, float]
Answers: TypeAlias = Mapping[str, NDArray[Any] | None]  # for every node, by the names of what tasks predict
_GIVERS = "person of the training and validation part"  # whose number to learn is known as it is


def task_of(train: TrainParams, channel: LabelChannel | None = None) -> Task:
    """Return the task that the parameters ask for, with its options; `channel` is what labels have gone through."""
    entry = measures_of(train.task)
    options = {key: getattr(train, name) for key, name in entry.options.items()}
    if entry.target is not None:
        options["loss"] = entry.target.loss.name
    found = task(entry.learner or entry.task, **options)
    return found if channel is None else found.under(channel)


def check_task(recipe: Method, train: TrainParams) -> None:
    """Refuse a method that needs what the task does not have."""
    check_classes(recipe, train)
    if train.split == INDUCTIVE and recipe.evidence and not _transfers(recipe):
        raise OptionError(
            f"method {recipe.name!r} learns where people are in one graph, or whose labels are around them, and with "
            "train.split inductive those that are tested are in another graph, without labels; use split random, or "
            "another method"
        )
    if not fits(recipe, train):
        raise OptionError(
            f"method {recipe.name!r} spreads the classes of training nodes, and task {train.task!r} has none to learn; "
            "use task node-classification or multi-task, or another method"
        )


def fits(recipe: Method, train: TrainParams) -> bool:
    """Whether the task has what the method's evidence is made of, and the split leaves it its meaning."""
    if recipe.beside and not fits(method(recipe.beside), train):
        return False
    if not recipe.evidence:
        return True
    classes = measures_of(train.task).classes or not evidence_class(recipe.evidence).spreads
    return classes and (train.split != INDUCTIVE or _transfers(recipe))


def _transfers(recipe: Method) -> bool:
    return evidence_class(recipe.evidence).transfers


def learners_of(recipe: Method, train: TrainParams) -> tuple[str, ...]:
    """Return the learners among which a method chooses: those that fit, of what it has for such a split."""
    names = recipe.unseen if train.split == INDUCTIVE else recipe.learners
    return tuple(name for name in names if fits(recipe.learner(name), train))


def given_away(train: TrainParams, content: str) -> Ledger:
    """Return what people of the training and validation part have given away to be learned from, beside labels.

    A number that is made of their features is known as it is. `content` is the hash of the graph.
    """
    target = measures_of(train.task).given
    given = Spend(what=target, epsilon=math.inf, per=_GIVERS, source=f"{target} of {content}") if target else None
    return Ledger(spends=(given,) if given else ())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part(ABC):
    """One seed's share of a task.

    Attributes:
        parts: what a split consists of, as the entries of tasks name it.
        task: the task's name.
        graph: over which messages may pass; with everybody's features and labels, which runs do not see.
    """

    parts: ClassVar[str]

    task: str
    graph: Graph

    @classmethod
    @abstractmethod
    def of_seed(cls, graph: Graph, params: Settings, seed: int, server_view: ServerView | None) -> Part:
        """Return a seed's part."""

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, int, int]:
        """How many nodes, or edges, are trained on, selected by and tested on."""

    @property
    @abstractmethod
    def labelled(self) -> NDArray[np.int64]:
        """The nodes whose labels the learner knows."""

    @property
    def seen(self) -> NDArray[np.int64] | None:
        """The people whose reports may decide how inputs are scaled; None where that is everybody."""
        return None

    def filtered(self, whole: Graph, estimate: Estimate, calibration: Calibration, scale: float) -> NodeInputs:
        """Return an estimate with the filter and the threshold after it applied, as the calibration of `whole` is here.

        `scale` multiplies it.
        """
        own = calibration_over(calibration, average_degree(whole), self.graph)
        return filtered_inputs(self.graph, estimate, own, scale)

    def check(self, problem: Problem, run: Run) -> None:  # noqa: B027
        """Refuse a run of this part through whose graph or inputs a message passes that may not."""

    @abstractmethod
    def replica(self, place: int, graph: int, seed: int) -> Replica:
        """Return what all runs of the seed share; `place` is that of its inputs, `graph` that of its graph."""

    @abstractmethod
    def guess(self) -> tuple[Scores, Scores]:
        """Return what the best answer that needs neither features nor edges scores, in validation and in test."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodePart(Part):
    """A part of a task of nodes.

    `labels` are the server's where classes are predicted, `numbers` everybody's where numbers or sets of labels are.

    With `apart` the people of each part are a graph of their own, and a model is applied to the others' as it is.
    `truth` are the people's own labels, which a test is measured by; they are the server's where labels are public.
    Else these have gone through `channel`. Where nobody's own label is known, `truth` is None, and a test is an
    estimate from what was sent, as the validation is.
    """

    parts: ClassVar[str] = "nodes"

    split: Split
    labels: NDArray[np.int32] | None
    truth: NDArray[np.int32] | None
    channel: LabelChannel | None
    numbers: NDArray[np.float64] | None
    apart: Apart | None = None

    @classmethod
    def of_seed(cls, graph: Graph, params: Settings, seed: int, server_view: ServerView | None) -> NodePart:
        """Return a seed's part: labels are those that the server has, the test opens people's own."""
        entry, known = measures_of(params.train.task), graph if server_view is None else server_view.known(seed)
        split, apart = split_of(graph, params, seed), apart_of(graph, params, seed)
        return cls(
            task=entry.task,
            graph=known if apart is None else apart.sever(known),
            split=split,
            labels=known.labels if entry.classes else None,
            truth=graph.labels if entry.classes and WITHOUT_LABELS not in graph.provenance else None,
            channel=channel_of(server_view),
            numbers=None if entry.target is None else entry.target.of(graph),
            apart=apart,
        )

    @property
    def loss(self) -> TrainingLoss:
        """How the numbers are learned, where numbers are."""
        target = measures_of(self.task).target
        assert target is not None
        return target.loss

    @property
    def sizes(self) -> tuple[int, int, int]:
        """How many nodes are trained on, selected by and tested on."""
        return len(self.split.train), len(self.split.validation), len(self.split.test)

    @property
    def labelled(self) -> NDArray[np.int64]:
        """The training nodes, where their classes are what is learned."""
        return self.split.train if self.labels is not None else np.empty(0, np.int64)

    @property
    def seen(self) -> NDArray[np.int64] | None:
        """Those that are trained on, where the others are in graphs of their own."""
        return None if self.apart is None else self.apart.train

    def filtered(self, whole: Graph, estimate: Estimate, calibration: Calibration, scale: float) -> NodeInputs:
        """Return the filtered estimate; of people apart, each part's as if there were no other."""
        if self.apart is None:
            return Part.filtered(self, whole, estimate, calibration, scale)
        groups = [nodes for nodes in self.apart.groups if len(nodes)]
        own = [calibration_over(calibration, average_degree(whole), among(self.graph, nodes)) for nodes in groups]
        return filtered_apart(self.graph, groups, estimate, own, scale)

    def check(self, problem: Problem, run: Run) -> None:
        """Refuse whatever joins people of different parts, where these are apart."""
        if self.apart is None:
            return
        graph, over = problem.graph(run.graph), problem.inputs[run.inputs].over
        found = {"the filter": graph.shift, "the backbone's adjacency": graph.adjacency}
        for what, matrix in (found | ({} if over is None else {"what inputs were filtered over": over})).items():
            rows, columns = matrix.nonzero()
            self.apart.check(rows, columns, what)

    def replica(self, place: int, graph: int, seed: int) -> Replica:
        """Return what all runs of the seed share: of labels and numbers what may be seen."""
        split = self.split
        labels = np.empty(0, np.int64) if self.labels is None else split.visible(self.labels)
        targets: Targets | None = None
        if self.numbers is not None:
            targets = Values.visible(split, self.numbers, standardize=self.loss.standardized)
        return Replica(inputs=place, graph=graph, split=split, labels=labels, targets=targets, seed=seed)

    def guess(self) -> tuple[Scores, Scores]:
        """Return the scores of the commonest class of the training nodes, and of the best numbers for everybody."""
        same = None
        if self.numbers is not None:
            same = np.zeros_like(self.numbers) + self.loss.constant(self.numbers[self.split.train])
        answers: Answers = {
            "classes": None if self.labels is None else majority(self.labels, self.split),
            "values": same,
        }
        return self._heard(answers, self.split.validation), self.tested(answers)

    def tested(self, answers: Answers) -> Scores:
        """Return what predictions score on the test part, of labels by people's own where these are known."""
        if self.truth is None and self.labels is not None:
            return self._heard(answers, self.split.test)
        return self.scores(answers, self.split.test)

    def validated(self, classes: NDArray[Any]) -> Scores:
        """Return what predicted classes score on the validation part."""
        return self._heard({"classes": classes}, self.split.validation)

    def _heard(self, answers: Answers, nodes: NDArray[np.int64]) -> Scores:
        """Return what predictions score on some nodes, of labels by what the server has."""
        found, classes = self.scores(answers, nodes, self.labels), answers.get("classes")
        if self.channel is not None and self.labels is not None and classes is not None:
            found["accuracy"] = float(true_accuracy(found["accuracy"], self.channel))
            found["macro_f1"] = true_macro_f1(self.labels[nodes], classes[nodes], self.channel)
        return found

    def scores(self, answers: Answers, nodes: NDArray[np.int64], labels: NDArray[np.int32] | None = None) -> Scores:
        """Return what predictions for every node score on some of them, by these labels, else by people's own."""
        found: dict[str, NDArray[np.float64]] = {}
        labels = self.truth if labels is None else labels
        classes, values = answers.get("classes"), answers.get("values")
        if labels is not None and classes is not None:
            found |= score_classes(classes, labels, nodes)
        if self.numbers is not None and values is not None:
            found |= score_values(values, self.numbers, nodes, self.loss)
        return {name: float(value[0]) for name, value in found.items()}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinkPart(Part):
    """A part of link prediction; its graph holds the training edges alone."""

    parts: ClassVar[str] = "edges"

    edges: EdgeSplit

    @classmethod
    def of_seed(cls, graph: Graph, params: Settings, seed: int, server_view: ServerView | None) -> LinkPart:
        """Return a seed's part."""
        edges = edge_split(graph.edges, graph.nodes, generator(params.seed, "edges", graph.name, seed))
        return cls(task=params.train.task, graph=edges.graph(graph), edges=edges)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """How many edges are trained on, selected by and tested on; as many pairs that are no edges go with each."""
        return self.edges.train.shape[1], self.edges.validation.shape[1], self.edges.test.shape[1]

    @property
    def labelled(self) -> NDArray[np.int64]:
        """No node: classes are not what is learned."""
        return np.empty(0, np.int64)

    def replica(self, place: int, graph: int, seed: int) -> Replica:
        """Return what all runs of the seed share: the edges, but those of the test part."""
        return Replica(inputs=place, graph=graph, targets=self.edges.visible(), seed=seed)

    def guess(self) -> tuple[Scores, Scores]:
        """Return the scores of the same answer for every pair: half of them are edges."""
        return {"auc": 0.5, "average_precision": 0.5}, {"auc": 0.5, "average_precision": 0.5}


def part_of(graph: Graph, params: Settings, seed: int, server_view: ServerView | None = None) -> Part:
    """Return a seed's part: the same for every method of a table.

    `told` is what the server has in the place of the people's own graph, where they are asked for anything of it.
    """
    parts = measures_of(params.train.task).parts
    kind = next(one for one in (NodePart, LinkPart) if one.parts == parts)
    return kind.of_seed(graph, params, seed, server_view)


def check_relinks(recipe: Method, mechanism: str) -> None:
    """Refuse reports on links by which the method cannot find links anew."""
    reads = BITS if recipe.relinks == "homophily" else tuple(name for name in link_names() if _bits(name))
    if mechanism not in reads:
        raise OptionError(
            f"method {recipe.name!r} finds links anew by reported bits, and those of {mechanism} are none that it can "
            f"read; use {' or '.join(reads)}"
        )


def _bits(mechanism: str) -> bool:
    return "reported" in link_estimators(mechanism)


def relinked(
    part: Part, recipe: Method, reports: LinkReports, estimate: Estimate, rng: np.random.Generator, max_memory: float
) -> Part:
    """Return a part of nodes over the links that the method finds by their reports, the estimates and known labels."""
    assert isinstance(part, NodePart)
    features = centred(estimate).matrix * unit_scale(estimate)
    if recipe.relinks == "homophily":
        found = homophilous_links(reports, features, rng, max_memory=max_memory)
    else:
        split = part.split
        found = choose_links(
            reports, features, part.graph.labels, split.train, split.validation, max_memory=max_memory
        ).estimate
    return replace(part, graph=part.graph.linked(*found.edges()))


def channel_of(server_view: ServerView | None, **options: Any) -> LabelChannel | None:
    """Return what the server's labels have gone through, and how that is reckoned with; None where they are true."""
    chances = None if server_view is None else server_view.chances
    return None if chances is None else LabelChannel(keep=chances[0], stray=chances[1], **options)


def calibration_over(calibration: Calibration, made_for: float, graph: Graph) -> Calibration:
    """Return a calibration that was made for a graph of that average degree as it is for another one.

    The threshold after the filter is divided by the average degree to the K (UPGNet's Theorem 5): with fewer edges, as
    in a part of a graph, a sum over neighbours has fewer terms.
    """
    found = average_degree(graph)
    if not calibration.after or found == made_for:
        return calibration
    return calibration.but(after=calibration.after * (made_for / found) ** calibration.steps)


def graph_places(parts: Sequence[Part]) -> list[int]:
    """Return on which of the problem's graphs each part's runs are: parts over the same links share one."""
    known: list[Graph] = []
    out = []
    for part in parts:
        same = [place for place, one in enumerate(known) if _same_links(one, part.graph)]
        out.append(same[0] if same else len(known))
        known += [] if same else [part.graph]
    return out


def _same_links(one: Graph, other: Graph) -> bool:
    pairs = ((one.edges, other.edges), (one.weights, other.weights))
    return all(a is b or (a is not None and b is not None and np.array_equal(a, b)) for a, b in pairs)


def problem_of(
    parts: Sequence[Part], inputs: Sequence[NodeInputs], operator: Callable[[Graph], sp.csr_array]
) -> Problem:
    """Return the problem of these parts' runs, with the graphs that `graph_places` names.

    `operator` is the filter's S of a graph.
    """
    first: dict[int, Graph] = {}
    for place, part in zip(graph_places(parts), parts, strict=True):
        first.setdefault(place, part.graph)
    graphs = [MessageGraph(shift=operator(one), adjacency=one.adjacency()) for one in first.values()]
    return Problem.over(graphs, inputs, classes=_classes(parts))


def weighted_problem_of(
    parts: Sequence[Part],
    inputs: Sequence[NodeInputs],
    operator: Callable[[Graph, NDArray[Any] | None], sp.csr_array],
    estimates: Sequence[Estimate],
) -> Problem:
    """Return the problem of runs whose S has people's weights: a graph for each estimate.

    The estimates are those of the inputs, one for each part and then again; runs name the graph at their inputs' place.
    """
    adjacency = {id(part.graph): part.graph.adjacency() for part in parts}
    graphs = []
    for place, estimate in enumerate(estimates):
        graph = parts[place % len(parts)].graph
        graphs.append(MessageGraph(shift=operator(graph, estimate.weights), adjacency=adjacency[id(graph)]))
    return Problem.over(graphs, inputs, classes=_classes(parts))


def _classes(parts: Sequence[Part]) -> int:
    """Return how many classes, or labels of a set, the trainer counts: 1 where links and numbers alone are learned."""
    sets = parts[0].graph.label_sets
    return max(1, parts[0].graph.classes) if sets is None else sets.shape[1]


def final_scores(
    parts: Sequence[Part], problem: Problem, runs: Sequence[Run], options: Options, outcome: Outcome, device: str
) -> list[Scores]:
    """Return the test scores of final runs, one for each part: only here are hidden targets opened."""
    links = [part.edges for part in parts if isinstance(part, LinkPart)]
    if links:
        found = score_links(problem, runs, options, outcome, links, device=device)
        return [{name: float(values[r]) for name, values in found.items()} for r in range(len(runs))]
    out = []
    for r, part in enumerate(parts):
        assert isinstance(part, NodePart)
        out.append(part.tested({name: found[r] for name, found in outcome.outputs.items()}))
    return out


def few_tested(graph: Graph, params: Settings) -> str:
    """Return a warning where so few nodes are tested that runs agree or differ by chance; nothing where there are more.

    Link prediction tests pairs, of which there are always more.
    """
    if measures_of(params.train.task).parts == "edges":
        return ""
    tested = split_of(graph, params, 0).test.size
    if tested >= FEW_TESTED:
        return ""
    return f"{tested} test node{'s' * (tested != 1)} in each run: too few to tell methods apart; label more nodes"
