"""Methods of two rounds: reports, a ranking of the features from them, and reports that the ranking directs.

Each seed has its own split, and only the labels of its training nodes rank its features: so each seed has its own
ranking, and the two rounds are drawn seed by seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphldp.client import Reports, VectorMechanism, from_meta
from graphldp.client.directed import DirectedMechanism, directed_from_meta, first_round, second_round
from graphldp.client.ppm_public import PublicLevels
from graphldp.experiment.addresses import source_of
from graphldp.experiment.devices import check_options, refuse_parts, reports_meta
from graphldp.experiment.estimates import of_people
from graphldp.experiment.options import Settings
from graphldp.experiment.parts import apart_of, split_of
from graphldp.graph import Graph
from graphldp.ledger import ledger_from_meta
from graphldp.methods import Rounds
from graphldp.server import (
    Calibration,
    Estimate,
    Filtered,
    Scores,
    combine_rounds,
    kprop,
    node_weights,
    rectify,
    rectify_directed,
    score_attributes,
)
from graphldp.server.estimate import rectangular
from graphldp.splits import Apart, Split, among

__all__ = ["TwoRounds", "joined", "score_reports", "selection_facts", "spent_in_both", "split_facts"]


def score_reports(
    graph: Graph, reports: Reports, *, by: str, steps: int, split: Split, apart: Apart | None = None
) -> Scores:
    """Denoise a first round and score every feature; of the labels only the training nodes' are read.

    Where the parts are graphs `apart`, nobody's report counts but those of the training nodes' graph.
    """
    calibration, estimate, train = kprop(steps), rectify(reports), split.train
    if apart is not None:
        graph, estimate, train = among(graph, apart.train), of_people(estimate, apart.train), place_in(apart, train)
    denoised = Filtered.of(estimate, calibration, calibration.operator(graph))
    return score_attributes(by, denoised, graph.labels, train)


def place_in(apart: Apart, train: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the training nodes' numbers in their own graph."""
    return np.searchsorted(apart.train, train)


def selection_facts(by: str, steps: int, params: Settings) -> dict[str, Any]:
    """Return how features were ranked, and by which splits; training on other splits would show it test labels."""
    return {"score_by": by, "score_steps": steps, **split_facts(params)}


def split_facts(params: Settings) -> dict[str, Any]:
    """Return what decides whose labels are training labels."""
    train = params.train
    return {
        "root": params.seed,
        "train_fraction": train.train_fraction,
        "validation_fraction": train.validation,
        **({} if train.split == "random" else {"split": train.split}),
    }


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
    """Both rounds of one cell in memory: the devices' side and, between the rounds, the server's.

    Attributes:
        graph: whose features are reported.
        rounds: how the budget is spent.
        mechanism, epsilon, options: what the devices run, with the budget of both rounds together.
        params: where splits and draws come from.
        device: the first round's mechanism.
    """

    graph: Graph
    rounds: Rounds
    mechanism: str
    epsilon: float
    options: Mapping[str, Any]
    params: Settings
    device: VectorMechanism

    @classmethod
    def of(
        cls,
        graph: Graph,
        rounds: Rounds,
        mechanism: str,
        epsilon: float,
        params: Settings,
        options: Mapping[str, Any] | None = None,
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
    def last(self) -> VectorMechanism:
        """The second round's mechanism."""
        return self.second(range(self.graph.dimensions)).device

    def scores(self, reports: Reports, seed: int) -> Scores:
        """Return what the server makes of a seed's first round, with the training labels of that seed's split."""
        rounds, split = self.rounds, split_of(self.graph, self.params, seed)
        apart = apart_of(self.graph, self.params, seed)
        return score_reports(
            self.graph, reports, by=rounds.score_by, steps=rounds.score_steps, split=split, apart=apart
        )

    def first(self, seed: int) -> Reports:
        """Return what leaves the devices in the first round."""
        return self.device.perturb(self.graph.features, source_of(self.params.seed, self.graph.name, self.device, seed))

    def directed(self, first: Reports, scores: Scores, seed: int) -> Reports:
        """Return what leaves them in the second, once the first has been scored."""
        graph, directed = self.graph, self.second([int(j) for j in scores.ranking()])
        level = first.level if isinstance(self.device, PublicLevels) else None
        source = source_of(self.params.seed, graph.name, directed, seed, level)
        return directed.perturb(graph.features, source, level)

    def reports(self, seed: int) -> tuple[Reports, Reports]:
        """Return what leaves the devices in both rounds."""
        first = self.first(seed)
        return first, self.directed(first, self.scores(first, seed), seed)

    def estimate(self, seed: int, calibration: Calibration) -> Estimate:
        """Return the seed's estimate, as the learner gets it."""
        first, second = self.reports(seed)
        return joined(first, second, rounds=self.rounds, weighting=calibration.weighting)

    def meta(self, content: str, seeds: Sequence[int]) -> dict[str, Any]:
        """Return what the Calibrated artifact of these rounds would say of both, for who keeps none."""
        graph, root = self.graph, self.params.seed
        one = reports_meta(graph, content, self.device, seeds=seeds, root=root)
        directed = self.second(range(graph.dimensions)).device
        two = reports_meta(graph, content, directed, seeds=seeds, root=root, after=one)
        two["options"] = {**two["options"], "rho": self.rounds.rho}
        return {
            **two,
            "rounds": asdict(self.rounds),
            "selection": selection_facts(self.rounds.score_by, self.rounds.score_steps, self.params),
            **spent_in_both(one, two, self.epsilon),
        }


def spent_in_both(one: Mapping[str, Any], two: Mapping[str, Any], epsilon: float) -> dict[str, Any]:
    """Return what the calibrated artifact says of both rounds: their budgets add up."""
    options = {key: value for key, value in two["options"].items() if key != "rankings"}
    claim = {**two["claim"], "epsilon": float(one["claim"]["epsilon"]) + float(two["claim"]["epsilon"])}
    return {
        "epsilon": float(epsilon),
        "epsilon_exact": float(one["epsilon_exact"]) + float(two["epsilon_exact"]),
        "delta": float(one["delta"]) + float(two["delta"]),
        "claim": claim,
        "options": options,
        "ledger": ledger_from_meta([one, two]).as_json(),
    }
