"""Two rounds of HeteroRR: what features are worth and how exposed they are, then FeatureRR with budgets by both scores.

    theta_i = gamma importance_i + (1 - gamma) (min + max - sensitivity_i), normalised

The appendix has the formula and no more of the scores than that they exist. Here both come from a first round that
spends its own share of the budget, so that the ledger has what finding them out has cost. Importance is how far a
feature sets the training classes apart (FDA and the like, brought to a maximum of 1); of sets of labels it is the mean
over the labels. Sensitivity is how much a person's neighbours tell of it (`graphldp.server.sensitivity`). Each seed has
its own split, and so its own scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from graphldp.client import Reports, VectorMechanism, protocol
from graphldp.errors import OptionError, unknown_name
from graphldp.experiment.addresses import source_of
from graphldp.experiment.conversation import Asking, Question, Turn, is_number, meta_of
from graphldp.experiment.devices import budgeted_by_feature, check_options, refuse_parts
from graphldp.experiment.estimates import estimate_of, of_people
from graphldp.experiment.options import Settings
from graphldp.experiment.parts import apart_of, split_of
from graphldp.experiment.rounds import score_reports, selection_facts
from graphldp.experiment.server_view import server_view_of
from graphldp.graph import Graph
from graphldp.methods import check_steps
from graphldp.server import Calibration, Estimate, rectify, scorer_names
from graphldp.server.sensitivity import feature_sensitivity
from graphldp.splits import among

__all__ = ["Scored", "ScoredRounds"]

_FROM_SCORES = ("importance", "sensitivity", "theta", "gamma")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored(Asking):
    """Features are scored by a first round, and reported in a second one with budgets that follow the scores.

    Attributes:
        first: the first round's share of the budget.
        gamma: how much importance counts; the rest is sensitivity's.
        score_by: what says how important a feature is: `fda`, `sma`, `mi`, `chi-square` or `pca`.
        score_steps: depth K of the sum (KProp) that denoises the first round before importance is scored.
        scored_with: the mechanism of the first round.
    """

    directed_by: ClassVar[tuple[str, ...]] = ("labels", "sets")
    thresholds: ClassVar[bool] = False

    first: float = 0.3
    gamma: float = 0.5
    score_by: str = "fda"
    score_steps: int = 2
    scored_with: str = "mb"

    def __post_init__(self) -> None:
        if not is_number(self.first) or not 0 < self.first < 1:
            raise OptionError(f"first (the first round's share of the budget) is between 0 and 1, got {self.first!r}")
        if not is_number(self.gamma) or not 0 <= self.gamma <= 1:
            raise OptionError(f"gamma (what importance counts beside sensitivity) is from 0 to 1, got {self.gamma!r}")
        if isinstance(self.score_steps, bool) or not isinstance(self.score_steps, int) or self.score_steps < 0:
            raise OptionError(f"score_steps must be a whole number of at least 0, got {self.score_steps!r}")
        check_steps([self.score_steps])

    def but(self, **changes: Any) -> Scored:
        """Return these rounds with some options changed, checked against what there is by name."""
        out = replace(self, **changes)
        if out.score_by not in scorer_names():
            raise unknown_name("score_by", str(out.score_by), scorer_names())
        return out

    def conversation(
        self,
        graph: Graph,
        mechanism: str,
        epsilon: float,
        settings: Settings,
        options: Mapping[str, Any],
        level: NDArray[np.int32] | None = None,
    ) -> ScoredRounds:
        """Return both rounds on a graph."""
        given = dict(options)
        check_options(mechanism, given)
        refuse_parts(Scored, {key: value for key, value in given.items() if key != "gamma"})
        able = budgeted_by_feature()
        if mechanism not in able:
            raise OptionError(
                f"scores of features decide their budgets, which {' or '.join(able)} can take, got {mechanism}"
            )
        if level is not None:
            raise OptionError("scores give every feature its budget, for everybody alike: leave levels out")
        twice = [key for key in _FROM_SCORES if key in given]
        if twice:
            raise OptionError(f"{twice[0]} follows from the first round here: leave it out, or use method base")
        shape = (graph.dimensions, graph.low, graph.high)
        device = protocol(self.scored_with, self.first * epsilon, *shape)
        out = ScoredRounds(
            graph=graph, asking=self, mechanism=mechanism, epsilon=float(epsilon), options=given, params=settings,
            device=device,
        )  # fmt: skip
        out.second({})
        return out


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoredRounds:
    """Both rounds of a graph's people: the devices' side and, between the rounds, the server's.

    Attributes:
        graph: whose features are reported.
        asking: how the budget is spent.
        mechanism, epsilon, options: what the devices run, with the budget of both rounds together.
        params: where splits and draws come from.
        device: the first round's mechanism.
    """

    graph: Graph
    asking: Scored
    mechanism: str
    epsilon: float
    options: Mapping[str, Any]
    params: Settings
    device: VectorMechanism

    def second(self, scores: Mapping[str, Sequence[float]]) -> VectorMechanism:
        """Return the second round's mechanism for these scores; even shares without any."""
        graph, rest = self.graph, self.epsilon - self.asking.first * self.epsilon
        more: dict[str, Any] = {**scores, "gamma": self.asking.gamma} if scores else {}
        return protocol(self.mechanism, rest, graph.dimensions, graph.low, graph.high, **self.options, **more)

    @property
    def m(self) -> int:
        """How many features a person reports in the second round."""
        return self.second({}).m

    def scores(self, reports: Reports, seed: int) -> dict[str, list[float]]:
        """Return what the server makes of a seed's first round: both scores of every feature."""
        asking, split = self.asking, split_of(self.graph, self.params, seed)
        apart = apart_of(self.graph, self.params, seed)
        known = server_view_of(self.graph, self.params).known(seed)
        found = score_reports(known, reports, by=asking.score_by, steps=asking.score_steps, split=split, apart=apart)
        worth = np.maximum(np.nan_to_num(found.values), 0.0)
        estimate = rectify(reports)
        if apart is not None:
            known, estimate = among(known, apart.train), of_people(estimate, apart.train)
        exposed = feature_sensitivity(known, estimate)
        most = worth.max(initial=0.0)
        if not most:  # nothing sets classes apart: all features are worth the same
            worth, most = np.ones_like(worth), 1.0
        return {"importance": (worth / most).tolist(), "sensitivity": np.minimum(exposed, 1.0).tolist()}

    def questions(self, seed: int) -> tuple[Question, ...]:
        """Return what leaves the devices in both rounds."""
        graph, root = self.graph, self.params.seed
        first = self.device.perturb(graph.features, source_of(root, graph.name, self.device, seed))
        device = self.second(self.scores(first, seed))
        second = device.perturb(graph.features, source_of(root, graph.name, device, seed))
        everybody, every = np.arange(graph.nodes), np.arange(graph.dimensions)
        return tuple(
            Question(name=name, people=everybody, features=every, answers=answers)
            for name, answers in (("first", first), ("second", second))
        )

    def estimate(self, questions: Sequence[Question], calibration: Calibration) -> Estimate:
        """Return the estimate of the second round."""
        return estimate_of(questions[-1].answers, calibration)

    def meta(self, content: str, seeds: Sequence[int]) -> dict[str, Any]:
        """Return what the artifact of both rounds says of itself: their budgets add up."""
        asking = self.asking
        selection = selection_facts(asking.score_by, asking.score_steps, self.params)
        second = {"rounds": asking.shaping(), "selection": selection}
        turns = (Turn(device=self.device), Turn(device=self.second({}), facts=second))
        return meta_of(
            self.graph, content, turns, asking, seeds=seeds, root=self.params.seed, given=self.options,
        )  # fmt: skip
