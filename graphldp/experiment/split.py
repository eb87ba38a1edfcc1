"""How to share one budget out between a person's features, her label and each of her links, by trial on a stand-in.

The total is what is lost about one person's features, her label and any one of her links together:

    total = epsilon of features + epsilon of labels + what all reports together lose about one relationship

A share of links is a share of the relationship's loss, not of a bit's epsilon: with `report: both` a relationship is a
bit of two lists, and a noisy degree of each end counts as well. Shares are multiples of 1/parts. Labels always have
one, since nothing is learned without any. People are not asked at all for what has no share: without features the
method learns from a coin's reports, without links it is a perceptron on features (`mlp`).

The stand-in is public: splits are compared on its true labels. The best one is that with the highest mean score on the
validation people; what another costs is the difference between both on the test people, run by run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphldp import methods
from graphldp.client.links import link_mechanism
from graphldp.errors import OptionError
from graphldp.evaluation import Confidence, Interval, mean_interval, paired_difference
from graphldp.experiment.cell import learn_cell
from graphldp.experiment.conversation import conversation_of
from graphldp.experiment.options import Further, Settings, check_settings
from graphldp.experiment.people import split_of
from graphldp.experiment.plan import Devices, plan_of
from graphldp.experiment.resources import InMemory, Resources
from graphldp.experiment.running import spent_by
from graphldp.graph import Graph
from graphldp.learn import score_classes
from graphldp.ledger import Ledger
from graphldp.measures import measures_of
from graphldp.methods import Method
from graphldp.progress import Progress, nested

__all__ = ["MOST_PARTS", "Asked", "Shares", "Trial", "Tried", "shares_of", "try_splits"]

MOST_PARTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """How many of so many equal parts of a budget are for what.

    Attributes:
        features, links, labels: the parts; 0 where nobody is asked.
    """

    features: int
    links: int
    labels: int

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return self.features + self.links + self.labels

    @property
    def text(self) -> str:
        """The shares in percent: 'features 40 %, links 40 %, labels 20 %'."""
        named = (("features", self.features), ("links", self.links), ("labels", self.labels))
        return ", ".join(f"{name} {100 * part / self.parts:.3g} %" for name, part in named)


def shares_of(parts: int, *, labels: bool = True, links: bool = True) -> tuple[Shares, ...]:
    """Return all ways to share out so many parts; `labels`, `links`: whether these are private, and have a share.

    Private labels have one part at least, and features and links together as well.
    """
    if isinstance(parts, bool) or not isinstance(parts, int) or not 2 <= parts <= MOST_PARTS:
        raise OptionError(f"a budget is shared out in 2 to {MOST_PARTS} parts, got {parts!r}")
    if not (labels or links):
        raise OptionError("labels and links are public, so that features have all of the budget: nothing is to split")
    out = []
    for own in range(parts + 1):
        for linked in range(parts - own + 1) if links else (0,):
            rest = parts - own - linked
            if (rest >= 1 and own + linked >= 1) if labels else rest == 0:
                out.append(Shares(features=own, links=linked, labels=rest))
    return tuple(out)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What people are asked for, and with what it is learned from.

    Attributes:
        recipe: the method.
        mechanism, options: how features are reported.
        labels: how labels are; empty where they are public.
        links, link_options: how links are; empty where they are public.
    """

    recipe: Method
    mechanism: str
    options: Mapping[str, Any]
    labels: str = "krr"
    links: str = "rr"
    link_options: tuple[tuple[str, Any], ...] = ()

    def of_bit(self, nodes: int) -> float:
        """Return which share of a relationship's loss is the epsilon of one bit of a list."""
        own = {key: value for key, value in self.link_options if key not in ("estimator", "most")}
        return 1 / link_mechanism(self.links, 1.0, nodes, **own).relationship_epsilon

    def further(self, shares: Shares, total: float, nodes: int) -> Further:
        """Return what is asked beside features, and with which budgets."""
        part, asked = total / shares.parts, Further()
        if self.labels:
            asked = replace(asked, labels=self.labels, epsilon_labels=shares.labels * part)
        if self.links and shares.links:
            budget = shares.links * part * self.of_bit(nodes)
            asked = replace(asked, links=self.links, epsilon_links=budget, link_options=self.link_options)
        return asked

    def devices(self, graph: Graph, shares: Shares, total: float, settings: Settings) -> Devices:
        """Return what people run under these shares, and what is learned with."""
        own = replace(settings, further=self.further(shares, total, graph.nodes))
        check_settings(own)
        recipe, mechanism, options = self.recipe, self.mechanism, dict(self.options)
        epsilon = shares.features * total / shares.parts
        if self.links and not shares.links:  # nobody is asked for links, and none are public
            recipe = methods.method("mlp")
            if settings.train.model:  # the perceptron is the model, whatever others learn with
                own = replace(own, train=replace(own.train, model=""))
        if not shares.features:
            left = methods.method(recipe.mute) if recipe.mute else recipe
            recipe = replace(left, mechanism="null", mechanisms=("null",))
            mechanism, epsilon, options = "null", 0.0, {}
        return Devices(graph=graph, recipe=recipe, mechanism=mechanism, epsilon=epsilon, options=options, params=own)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trial:
    """What one split is worth on a stand-in.

    Attributes:
        shares: the split.
        features: the epsilon of features.
        labels: of a label; infinite where labels are public.
        bit: of one bit of a list; infinite where links are public, 0 where nobody is asked for any.
        relationship: what is lost about one relationship; as `bit` where nothing is.
        spent: the ledger of one run.
        validation, test: the accuracy of each run on the stand-in's people, by their true labels.
    """

    shares: Shares
    features: float
    labels: float
    bit: float
    relationship: float
    spent: Ledger
    validation: NDArray[np.float64]
    test: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tried:
    """All splits of one total on one stand-in.

    Attributes:
        dataset: the stand-in.
        total: what a person loses in all.
        trials: one for each split.
        best: the place of the best, by validation.
        confidence: of intervals.
    """

    dataset: str
    total: float
    trials: tuple[Trial, ...]
    best: int
    confidence: Confidence = field(default_factory=Confidence)

    def score(self, trial: Trial) -> Interval:
        """Return what a split reaches on the test people."""
        return mean_interval(trial.test, self.confidence).within(0.0, 1.0)

    def cost(self, trial: Trial) -> Interval:
        """Return how much less it is than the best one's, run by run."""
        return paired_difference(self.trials[self.best].test, trial.test, self.confidence)

    def at(self, shares: Shares) -> Trial:
        """Return the trial of a split."""
        return next(trial for trial in self.trials if trial.shares == shares)


def try_splits(
    graph: Graph,
    asked: Asked,
    total: float,
    shares: Sequence[Shares],
    settings: Settings,
    *,
    device: str = "auto",
    resources: Resources | None = None,
    progress: Progress | None = None,
) -> Tried:
    """Learn under every split of a total on a graph that is public, and compare them on its true labels.

    Args:
        graph: the stand-in.
        asked: what people are asked for.
        total: what a person loses in all.
        shares: the splits.
        settings: the seeds, the search and the training; what they ask beside features has no part in it.
        device: where to compute.
        resources: with what.
        progress: is told (done, total, text).
    """
    if isinstance(total, bool) or not isinstance(total, int | float) or not 0 < total < math.inf:
        raise OptionError(f"the total epsilon must be a number above 0, got {total!r}")
    if not measures_of(settings.train.task).classes:
        raise OptionError(f"task {settings.train.task!r} has no labels to share a budget with; use node-classification")
    plain = settings.but_public()
    everything = [asked.devices(graph, one, float(total), plain) for one in shares]
    for cell in everything:  # whatever is wrong with a split shows before the first one is trained
        conversation_of(graph, cell.recipe, cell.mechanism, cell.epsilon, cell.params, cell.options)
        cell.server_view.forecast()
    resources = resources or Resources(memo=InMemory())
    trials = []
    for count, (one, cell) in enumerate(zip(shares, everything, strict=True)):
        part = nested(progress, count, len(shares), one.text)
        trials.append(_trial(graph, one, cell, device, resources, part))
    means = [trial.validation.mean() for trial in trials]
    return Tried(
        dataset=graph.name,
        total=float(total),
        trials=tuple(trials),
        best=int(np.argmax(means)),
    )


def _trial(
    graph: Graph, shares: Shares, cell: Devices, device: str, resources: Resources, progress: Progress | None
) -> Trial:
    params = cell.params
    found = learn_cell(graph, plan_of(cell, params), params, device=device, resources=resources, progress=progress)
    assert found.outcome is not None
    classes = found.outcome.outputs["classes"]
    validation = []
    for seed in range(params.seeds):
        people = split_of(graph, params, seed).validation
        validation.append(float(score_classes(classes[seed], graph.labels, people)["accuracy"][0]))
    final = [row for row in found.rows if row["role"] == "final"]
    server_view = cell.server_view
    links = server_view.link_mechanism
    public = math.inf if server_view.linked else 0.0
    return Trial(
        shares=shares,
        features=cell.epsilon,
        labels=params.further.epsilon_labels,
        bit=public if links is None else links.epsilon,
        relationship=public if links is None else links.relationship_epsilon,
        spent=spent_by(found, graph.content_hash(), params, server_view).once(),
        validation=np.array(validation),
        test=np.array([row["test_accuracy"] for row in final], dtype=np.float64),
    )
