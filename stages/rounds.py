"""Methods of two rounds: reports, a ranking of the features from them, and reports that the ranking directs.

Each seed has its own split, and only the labels of its training nodes rank its features: so each seed has its own
ranking, and the two rounds are drawn seed by seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphldp import __version__
from graphldp.client import Reports, VectorMechanism, from_meta
from graphldp.client.directed import DirectedMechanism, directed_from_meta, first_round, second_round
from graphldp.client.ppm_public import PublicLevels
from graphldp.errors import ArtifactError
from graphldp.graph import Graph
from graphldp.ledger import ledger_from_meta, spends_of
from graphldp.methods import Method, Rounds
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
from graphldp.stages.artifacts import expect, file_hash
from graphldp.stages.graphs import read_graph
from graphldp.stages.inputs import calibration_of, of_people
from graphldp.stages.params import Params
from graphldp.stages.paths import calibrated_path, directed_name, epsilon_text, graph_dir, reports_path
from graphldp.stages.perturb import check_nodes, check_options, make_command, refuse_parts, reports_meta, source_of
from graphldp.stages.reports import CARRIED, ReportsFile, write_calibrated
from graphldp.stages.splits import apart_of, split_of

__all__ = [
    "TwoRounds",
    "check_selection",
    "denoise_rounds",
    "joined",
    "score_reports",
    "selection_facts",
    "split_facts",
]

Progress = Callable[[int, int, str], None]


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


def selection_facts(by: str, steps: int, params: Params) -> dict[str, Any]:
    """Return how features were ranked, and by which splits; training on other splits would show it test labels."""
    return {"score_by": by, "score_steps": steps, **split_facts(params)}


def split_facts(params: Params) -> dict[str, Any]:
    """Return what decides whose labels are training labels."""
    train = params.train
    return {
        "root": params.seed,
        "train_fraction": train.train_fraction,
        "validation_fraction": train.validation,
        **({} if train.split == "random" else {"split": train.split}),
    }


def check_selection(path: Path, facts: Mapping[str, Any], params: Params, make: str = "ldp select") -> None:
    """Refuse what was directed by labels which these parameters' splits hide; `make` is where it begins."""
    now = split_facts(params)
    for key in (*now, *(["split"] if "split" not in now else [])):
        was, value = (found.get(key, "random") for found in (facts, now))
        if was != value:
            raise ArtifactError(
                f"{path} was directed by training labels of other splits: {key} was {was}, and is {value} now; make it "
                f"again from `{make}` on, with the same parameters"
            )


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
    params: Params
    device: VectorMechanism

    @classmethod
    def of(
        cls,
        graph: Graph,
        rounds: Rounds,
        mechanism: str,
        epsilon: float,
        params: Params,
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

    def meta(self, folder: Path, seeds: Sequence[int]) -> dict[str, Any]:
        """Return what the Calibrated artifact of these rounds would say of both, for who keeps none."""
        graph, root = self.graph, self.params.seed
        one = reports_meta(graph, folder, self.device, seeds=seeds, root=root)
        directed = self.second(range(graph.dimensions)).device
        two = reports_meta(graph, folder, directed, seeds=seeds, root=root, after=one)
        two["options"] = {**two["options"], "rho": self.rounds.rho}
        return {
            **two,
            "rounds": asdict(self.rounds),
            "selection": selection_facts(self.rounds.score_by, self.rounds.score_steps, self.params),
            **_spent(one, two, self.epsilon),
        }


def denoise_rounds(
    dataset: str,
    recipe: Method,
    mechanism: str,
    epsilon: float,
    *,
    data: Path,
    steps: Sequence[int],
    first: Path | None = None,
    reports: Path | None = None,
    output: Path | None = None,
    progress: Progress | None = None,
) -> Path:
    """Write the estimate of both rounds' Reports artifacts; `first` and `reports` are these, where they are elsewhere.

    `epsilon` is the budget of both together.
    """
    assert isinstance(recipe.rounds, Rounds)
    one, two = _open(dataset, recipe.rounds, mechanism, epsilon, data, first, reports)
    graph = read_graph(graph_dir(data, dataset))
    for file in (one, two):
        check_nodes(file.path, file.meta, graph, f"make it again with `{file.make}`")
    device = from_meta(one.meta)
    tried = recipe.steps(tuple(steps))
    filters = [calibration_of(recipe, k, device, graph) for k in tried]
    meta: dict[str, Any] = {
        "kind": "calibrated",
        "method": recipe.name,
        "name": recipe.cell_name(mechanism),
        "fill": device.fill_value,
        "steps": list(tried),
        "filters": [calibration.meta() for calibration in filters],
        "reports": file_hash(two.path),
        "first": file_hash(one.path),
        "rounds": asdict(recipe.rounds),
        "selection": two.meta["selection"],
        "library": __version__,
        **{key: two.meta[key] for key in CARRIED},
        **_spent(one.meta, two.meta, epsilon),
    }

    def runs() -> Iterator[tuple[int, Estimate]]:
        assert isinstance(recipe.rounds, Rounds)
        for count, seed in enumerate(two.meta["seeds"], start=1):
            pair = (one.load(seed), two.load(seed))
            _check_levels(one.path, two.path, *pair)
            yield seed, joined(*pair, rounds=recipe.rounds, weighting=filters[0].weighting)
            if progress:
                progress(count, len(two.meta["seeds"]), f"{mechanism} at epsilon {epsilon_text(epsilon)}")

    target = output or calibrated_path(data, dataset, recipe.cell_name(mechanism), epsilon)
    write_calibrated(target, runs(), meta)
    return target


def _open(
    dataset: str,
    rounds: Rounds,
    mechanism: str,
    epsilon: float,
    data: Path,
    first: Path | None,
    reports: Path | None,
) -> tuple[ReportsFile, ReportsFile]:
    """Return both rounds' files, once they are rounds of one another and of what was asked for."""
    shares = (rounds.first * epsilon, epsilon - rounds.first * epsilon)
    make = make_command(dataset, mechanism, shares[0])
    one = ReportsFile(first or reports_path(data, dataset, mechanism, shares[0]), make)
    name = directed_name(mechanism, rounds.score_by)
    directed = f"{make_command(dataset, mechanism, shares[1])} --directed SCORES"
    two = ReportsFile(reports or reports_path(data, dataset, name, shares[1]), directed)
    for file, share in ((one, shares[0]), (two, shares[1])):
        expect(file.meta, file.path, file.make, dataset=dataset, mechanism=mechanism)
        if not math.isclose(float(file.meta["epsilon"]), share, rel_tol=1e-9):
            raise ArtifactError(
                f"{file.path} has spent epsilon {file.meta['epsilon']}, where this round's share of {epsilon} is "
                f"{share}; make the right one with `{file.make}`"
            )
    if "rankings" in one.meta["options"] or "rankings" not in two.meta["options"]:
        which, file = ("directed", one) if "rankings" in one.meta["options"] else ("not directed", two)
        raise ArtifactError(f"{file.path} is {which}: it is the other round; make this one with `{file.make}`")
    for file in (one, two):
        found_from = file.meta.get("rounds", {}).get("m_from", "round")
        if found_from != rounds.m_from:
            raise ArtifactError(
                f"{file.path} was drawn with m_from {found_from}, and the method means {rounds.m_from}; say --set "
                f"denoise.m_from={found_from}, or perturb again with `ldp perturb --round`"
            )
    chosen = {"rho": rounds.rho, "score_by": rounds.score_by, "score_steps": rounds.score_steps}
    found = {"rho": two.meta["options"]["rho"], **two.meta["selection"]}
    for key, value in chosen.items():
        if found[key] != value:
            raise ArtifactError(
                f"{two.path} was directed with {key} {found[key]}, and the method means {value}; say --set "
                f"denoise.{key}={found[key]}, or make it again"
            )
    if not {spend.source for spend in spends_of(one.meta)} <= {spend.source for spend in spends_of(two.meta)}:
        raise ArtifactError(f"{two.path} was directed by other reports than {one.path}; name those with --first")
    if not one.meta["random"]["reproducible"]:
        raise ArtifactError(
            f"{one.path} was really collected, once; a table's runs need a first round for each seed, with its labels"
        )
    return one, two


def _spent(one: Mapping[str, Any], two: Mapping[str, Any], epsilon: float) -> dict[str, Any]:
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


def _check_levels(one: Path, two: Path, first: Reports, second: Reports) -> None:
    if (first.level is None) != (second.level is None) or (
        first.level is not None and not np.array_equal(first.level, np.asarray(second.level))
    ):
        raise ArtifactError(f"{two}: people have other privacy levels than in {one}; give both the same --levels FILE")
