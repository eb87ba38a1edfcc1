"""Two rounds: reports, a ranking of the features from them, and reports that the ranking directs.

Each seed has its own split, and only the labels of its training nodes, or its training links where links are learned,
rank its features: so each seed has its own ranking, and the two rounds are drawn seed by seed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from graphldp.client import Reports, VectorMechanism, from_meta
from graphldp.client.directed import M_FROM, DirectedMechanism, directed_from_meta, first_round, second_round
from graphldp.errors import OptionError, unknown_name
from graphldp.experiment.addresses import source_of
from graphldp.experiment.conversation import Asking, Question, Turn, is_number, meta_of
from graphldp.experiment.devices import check_options, refuse_parts
from graphldp.experiment.estimates import of_people
from graphldp.experiment.options import Settings, split_facts
from graphldp.experiment.people import apart_of, split_of
from graphldp.experiment.server_view import server_view_of
from graphldp.graph import Graph
from graphldp.measures import measures_of
from graphldp.methods import check_steps
from graphldp.randomness import generator
from graphldp.server import (
    AttributeScores,
    Calibration,
    Estimate,
    Filtered,
    combine_rounds,
    kprop,
    node_weights,
    rectify,
    rectify_directed,
    score_attributes,
    scorer_names,
)
from graphldp.server.estimate import rectangular
from graphldp.server.pair_products import PairProducts
from graphldp.server.selection import RECTIFICATIONS
from graphldp.splits import Apart, Split, among

__all__ = ["Rounds", "TwoRounds", "joined", "score_reports", "selection_facts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds(Asking):
    """The budget is spent in two rounds, the second directed by what the first has shown.

    Attributes:
        score_by: what ranks the features: `fda`, `sma`, `mi`, `chi-square` or `pca`.
        rho: the share of the second round's features that is taken from the ranking.
        reuse: whether the estimate joins both rounds by their inverse variances, or is the second's alone.
        first: the first round's share of the budget.
        m_from: which budget m is chosen from: each `round`'s own, or the `total`.
        score_steps: depth K of the sum (KProp) that denoises the first round before it is scored.
        rectification: how the second round becomes an estimate: by each feature's own `inclusion`, or by d/m as the
            `paper` prints it, which inflates the ranked ones.
    """

    directed_by: ClassVar[tuple[str, ...]] = ("labels", "links")
    thresholds: ClassVar[bool] = False
    afterwards: ClassVar[tuple[str, ...]] = ("reuse", "rectification")

    score_by: str
    rho: float = 0.5
    reuse: bool = False
    first: float = 0.5
    m_from: str = "round"
    score_steps: int = 2
    rectification: str = "inclusion"

    def __post_init__(self) -> None:
        if not is_number(self.rho) or not 0 <= self.rho <= 1:
            raise OptionError(f"rho (the ranked features' share of the second round) is from 0 to 1, got {self.rho!r}")
        if not is_number(self.first) or not 0 < self.first < 1:
            raise OptionError(f"first (the first round's share of the budget) is between 0 and 1, got {self.first!r}")
        if not isinstance(self.reuse, bool):
            raise OptionError(
                f"reuse (does the first round stay in the estimate?) is true or false, got {self.reuse!r}"
            )
        if isinstance(self.score_steps, bool) or not isinstance(self.score_steps, int) or self.score_steps < 0:
            raise OptionError(f"score_steps must be a whole number of at least 0, got {self.score_steps!r}")
        check_steps([self.score_steps])

    def but(self, **changes: Any) -> Rounds:
        """Return these rounds with some options changed, checked against what there is by name."""
        out = replace(self, **changes)
        if out.score_by not in scorer_names():
            raise unknown_name("score_by", str(out.score_by), scorer_names())
        if out.m_from not in M_FROM:
            raise OptionError(f"m_from must be one of {', '.join(M_FROM)}; got {out.m_from!r}")
        if out.rectification not in RECTIFICATIONS:
            raise OptionError(f"rectification must be one of {', '.join(RECTIFICATIONS)}; got {out.rectification!r}")
        if out.reuse and out.rectification == "paper":
            raise OptionError(
                "reuse joins both rounds by the variances of unbiased estimates, and rectification 'paper' gives none; "
                "leave one of them out"
            )
        return out

    def remark(self, m: int) -> str:
        """Say so where scores direct nothing, as m* = floor(rho m) is 0."""
        return "m* = 0: second round random" if math.floor(self.rho * m + 1e-12) == 0 else ""

    def conversation(
        self,
        graph: Graph,
        mechanism: str,
        epsilon: float,
        settings: Settings,
        options: Mapping[str, Any],
        level: NDArray[np.int32] | None = None,
    ) -> TwoRounds:
        """Return both rounds on a graph."""
        return TwoRounds.of(graph, self, mechanism, epsilon, settings, options, level)


def score_reports(
    graph: Graph, reports: Reports, *, by: str, steps: int, split: Split, apart: Apart | None = None
) -> AttributeScores:
    """Denoise a first round and score every feature; of the labels only the training nodes' are read.

    Where the parts are graphs `apart`, nobody's report counts but those of the training nodes' graph.
    """
    calibration, estimate, train = kprop(steps), rectify(reports), split.train
    if apart is not None:
        graph, estimate, train = among(graph, apart.train), of_people(estimate, apart.train), place_in(apart, train)
    denoised = Filtered.of(estimate, calibration, calibration.operator(graph))
    return score_attributes(by, denoised, graph.labels if graph.label_sets is None else graph.label_sets, train)


def score_by_links(
    graph: Graph, reports: Reports, *, by: str, steps: int, params: Settings, seed: int
) -> AttributeScores:
    """Denoise a first round over a seed's training links, and score every feature by what linked people share.

    The pairs are those that are trained on: the training links and as many pairs without one.
    """
    from graphldp.learn import edge_split  # needs torch, which no device has to have

    edges = edge_split(graph.edges, graph.nodes, generator(params.seed, "edges", graph.name, seed))
    calibration = kprop(steps)
    denoised = Filtered.of(rectify(reports), calibration, calibration.operator(edges.graph(graph)))
    pairs = np.concatenate([edges.train, edges.train_negative], axis=1)
    linked = np.repeat([1, 0], edges.train.shape[1])
    return score_attributes(by, PairProducts(filtered=denoised, pairs=pairs), linked, np.arange(len(linked)))


def place_in(apart: Apart, train: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the training nodes' numbers in their own graph."""
    return np.searchsorted(apart.train, train)


def selection_facts(by: str, steps: int, params: Settings) -> dict[str, Any]:
    """Return how features were ranked, and by which splits; training on other splits would show it test labels."""
    return {"score_by": by, "score_steps": steps, **split_facts(params)}


def joined(first: Reports, second: Reports, *, rounds: Rounds, weighting: str = "none") -> Estimate:
    """Return the estimate of both rounds (`reuse`), or of the second alone, with the weights that a filter asks for."""
    estimate = rectify_directed(second, rounds.rectification)
    if rounds.reuse:
        device, directed = from_meta(dict(first.meta)), directed_from_meta(second.meta)
        # How many features a person reports in either round differs with chance; a file's rows have one length.
        width = min(device.dimensions, device.m + directed.device.m)
        estimate = rectangular(combine_rounds(rectify(first), estimate, device, directed), width)
    # People keep their level, and the first round's metadata is that of a mechanism which has one.
    return replace(estimate, weights=node_weights(first, weighting))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TwoRounds:
    """Both rounds of a graph's people: the devices' side and, between the rounds, the server's.

    Attributes:
        graph: whose features are reported.
        rounds: how the budget is spent.
        mechanism, epsilon, options: what the devices run, with the budget of both rounds together.
        params: where splits and draws come from.
        device: the first round's mechanism.
        level: everybody's privacy level, where it is given; else devices with levels draw them.
    """

    graph: Graph
    rounds: Rounds
    mechanism: str
    epsilon: float
    options: Mapping[str, Any]
    params: Settings
    device: VectorMechanism
    level: NDArray[np.int32] | None = None

    @classmethod
    def of(
        cls,
        graph: Graph,
        rounds: Rounds,
        mechanism: str,
        epsilon: float,
        params: Settings,
        options: Mapping[str, Any] | None = None,
        level: NDArray[np.int32] | None = None,
    ) -> TwoRounds:
        """Return the rounds, with everything that can be wrong in them checked before anything is drawn."""
        given = dict(options or {})
        check_options(mechanism, given)
        refuse_parts(Rounds, given)
        ask = (mechanism, epsilon, graph.dimensions, graph.low, graph.high)
        device = first_round(*ask, first=rounds.first, m_from=rounds.m_from, **given)
        out = cls(
            graph=graph,
            rounds=rounds,
            mechanism=mechanism,
            epsilon=float(epsilon),
            options=given,
            params=params,
            device=device,
            level=level,
        )
        out.second(range(graph.dimensions))
        return out

    def second(self, ranking: Sequence[int]) -> DirectedMechanism:
        """Return the second round's mechanism for a ranking."""
        graph, rounds = self.graph, self.rounds
        return second_round(
            self.mechanism,
            self.epsilon,
            graph.dimensions,
            graph.low,
            graph.high,
            ranking=ranking,
            rho=rounds.rho,
            first=rounds.first,
            m_from=rounds.m_from,
            **self.options,
        )

    @property
    def m(self) -> int:
        """How many features a person reports in the second round."""
        return self.second(range(self.graph.dimensions)).device.m

    def scores(self, reports: Reports, seed: int) -> AttributeScores:
        """Return what the server makes of a seed's first round, with the training labels, or links, of its split."""
        rounds = self.rounds
        if measures_of(self.params.train.task).parts == "edges":
            return score_by_links(
                self.graph, reports, by=rounds.score_by, steps=rounds.score_steps, params=self.params, seed=seed
            )
        split = split_of(self.graph, self.params, seed)
        apart = apart_of(self.graph, self.params, seed)
        known = server_view_of(self.graph, self.params).known(seed)
        return score_reports(known, reports, by=rounds.score_by, steps=rounds.score_steps, split=split, apart=apart)

    def first(self, seed: int) -> Reports:
        """Return what leaves the devices in the first round."""
        source = source_of(self.params.seed, self.graph.name, self.device, seed, self.level)
        return self.device.perturb(self.graph.features, source, self.level)

    def directed(self, first: Reports, scores: AttributeScores, seed: int) -> Reports:
        """Return what leaves them in the second, once the first has been scored."""
        graph, directed = self.graph, self.second([int(j) for j in scores.ranking()])
        source = source_of(self.params.seed, graph.name, directed, seed, first.level)
        return directed.perturb(graph.features, source, first.level)

    def questions(self, seed: int) -> tuple[Question, ...]:
        """Return what leaves the devices in both rounds."""
        first = self.first(seed)
        second = self.directed(first, self.scores(first, seed), seed)
        everybody, every = np.arange(self.graph.nodes), np.arange(self.graph.dimensions)
        return tuple(
            Question(name=name, people=everybody, features=every, answers=answers)
            for name, answers in (("first", first), ("second", second))
        )

    def estimate(self, questions: Sequence[Question], calibration: Calibration) -> Estimate:
        """Return the estimate of both rounds, or of the second alone, with the weights that the filter asks for."""
        first, second = (one.answers for one in questions)
        return joined(first, second, rounds=self.rounds, weighting=calibration.weighting)

    def meta(self, content: str, seeds: Sequence[int]) -> dict[str, Any]:
        """Return what the artifact of both rounds says of itself: their budgets add up."""
        selection = selection_facts(self.rounds.score_by, self.rounds.score_steps, self.params)
        # The first round is an ordinary collection; what the second is directed by is a part of what it is.
        second = {"rounds": self.rounds.shaping(), "selection": selection}
        turns = (Turn(device=self.device), Turn(device=self.second(range(self.graph.dimensions)).device, facts=second))
        return meta_of(
            self.graph,
            content,
            turns,
            self.rounds,
            seeds=seeds,
            root=self.params.seed,
            given=self.options,
            level=self.level,
        )
