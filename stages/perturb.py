"""Stage perturb: features in, Reports out. What it writes is what would have left the devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphldp.client import Reports, VectorMechanism
from graphldp.client.directed import DirectedMechanism, first_round, second_round
from graphldp.client.sets import SetValued
from graphldp.datasets.own import OwnFeatures, at_ends
from graphldp.errors import ArtifactError, OptionError
from graphldp.experiment.addresses import addressed, source_of
from graphldp.experiment.devices import (
    PUBLIC_LEVELS,
    Given,
    check_options,
    device_for,
    draw,
    graph_facts,
    nodes_hash,
    refuse_parts,
    release_meta,
)
from graphldp.graph import Graph
from graphldp.ledger import epsilon_text
from graphldp.methods import Rounds
from graphldp.randomness import SecureSource, Source
from graphldp.stages.artifacts import file_hash, read_meta
from graphldp.stages.extras import Extras, read_levels, read_rankings, read_scores
from graphldp.stages.graphs import graph_hash, read_graph
from graphldp.stages.own import read_features, read_vocabulary
from graphldp.stages.paths import directed_name, graph_dir, reports_path
from graphldp.stages.reports import write_reports

__all__ = [
    "Round",
    "addressed",
    "check_nodes",
    "make_command",
    "perturb_file",
    "perturb_graph",
    "source_of",
    "write",
]

Progress = Callable[[int, int, str], None]
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One of a method's two rounds; the budget that is asked for is then what both of them spend.

    Attributes:
        plan: how the rounds share it out, and what the second one reports.
        second: which of them it is.
    """

    plan: Rounds
    second: bool

    def facts(self) -> dict[str, Any]:
        """Return what of the plan has decided the round's reports."""
        names = ("first", "m_from", *(("score_by", "score_steps", "rho") if self.second else ()))
        return {name: getattr(self.plan, name) for name in names}


def make_command(dataset: str, mechanism: str, epsilon: float) -> str:
    """Return the command that makes a Reports artifact."""
    return f"ldp perturb --dataset {dataset} --mechanism {mechanism} --epsilon {epsilon_text(epsilon)}"


def check_nodes(path: Path, meta: Mapping[str, Any], graph: Graph, remedy: str) -> None:
    """Refuse an artifact whose reports are of other nodes than the graph has."""
    if meta["nodes_hash"] != nodes_hash(graph):
        raise ArtifactError(f"{path} holds reports of other nodes than the graph {graph.name} has; {remedy}")


def perturb_graph(
    dataset: str,
    mechanism: str,
    epsilon: float,
    *,
    data: Path,
    seeds: Sequence[int],
    root: int = 0,
    options: Mapping[str, Any] | None = None,
    extras: Extras | None = None,
    part: Round | None = None,
    output: Path | None = None,
    progress: Progress | None = None,
) -> Path:
    """Perturb a data set's features once for each seed, and write the Reports artifact.

    As one `part` of a method with two rounds the devices spend their share of epsilon, which is of both.
    """
    folder = graph_dir(data, dataset)
    graph: Graph = read_graph(folder)
    given = _given(graph, mechanism, epsilon, options or {}, extras or Extras(), seeds, part)
    device, directed = given.device, given.directed is not None
    sources = {seed: source_of(root, dataset, given.of(seed), seed, given.level) for seed in seeds}
    facts = {**graph_facts(graph, graph_hash(folder), root), **given.facts}
    if part is not None:
        facts["rounds"] = part.facts()
    name = directed_name(mechanism, given.facts["selection"]["score_by"]) if directed else mechanism
    path = output or reports_path(data, dataset, name, device.epsilon)
    _keep_real(path)
    return write(path, graph.features, given, sources, facts, progress)


def perturb_file(
    features: Path,
    mechanism: str,
    epsilon: float,
    *,
    low: float,
    high: float,
    name: str,
    data: Path,
    seeds: Sequence[int],
    root: int = 0,
    features_file: Path | None = None,
    dimensions: int | None = None,
    missing: float | None = None,
    options: Mapping[str, Any] | None = None,
    extras: Extras | None = None,
    output: Path | None = None,
    secure: bool = False,
    progress: Progress | None = None,
    say: Say | None = None,
) -> Path:
    """Perturb people's own features, from a seeded generator for experiments or the system's for real data.

    Nothing in the file but its reports depends on a value, and no value stops a report. What `say` is told of the
    values that were read otherwise than they stand there is for the device's own screen.
    """
    if secure and len(seeds) != 1:
        raise OptionError(
            "--secure collects real reports, and every further one of the same person spends epsilon again: --seeds "
            f"must be 1 and --search-seeds 0, got {len(seeds)} in all"
        )
    if extras is not None and extras.directed is not None:
        raise OptionError(
            "--directed goes with --dataset: its rankings are of an experiment's seeds and labels; on a person's own "
            "device use graphldp.client.directed"
        )
    vocabulary = read_vocabulary(features_file, dimensions)
    read = read_features(name, features, low=low, high=high, vocabulary=vocabulary, missing=missing)
    own = read.graph
    if secure and not read.declared:
        raise OptionError(
            "--secure needs the features declared, with --features-file FILE or --dimensions N: read off the file, "
            "their number and order would tell what people have"
        )
    given = _given(own, mechanism, epsilon, options or {}, extras or Extras())
    device = given.device
    if secure and not device.claim.keeps:
        raise OptionError(
            f"--secure collects from people, and {mechanism} does not keep its claim: {device.claim.reason}; take "
            "another mechanism (`ldp list mechanisms` marks those whose claim fails)"
        )
    path = output or reports_path(data, name, mechanism, device.epsilon)
    _keep_real(path, secure=secure, device=device)
    sources: dict[int, Source] = {
        seed: SecureSource() if secure else source_of(root, name, device, seed, given.level) for seed in seeds
    }
    random = {"generator": "operating system", "reproducible": False} if secure else addressed(root)
    # A hash of real people's features is not theirs to send: it would confirm a right guess of them.
    source = None if secure else file_hash(features)
    facts = {"dataset": name, "input": source, "random": random, "claim": _claim(device, read)}
    values = at_ends(own.features, low, high) if isinstance(device, SetValued) else own.features
    write(path, values, given, sources, facts, progress, ids=own.node_ids)
    if say is not None:
        if not read.declared:
            say(
                f"the {own.dimensions:,} features are those that occur in {features}, which tells of people: enough to "
                "rehearse; to collect, declare them with --features-file or --dimensions"
            )
        if read.mended.words():
            say(f"{read.mended.words()} (said here, and nowhere in the file)")
    return path


def _claim(device: VectorMechanism, read: OwnFeatures) -> dict[str, Any]:
    """Return the mechanism's claim, with what was done with values that break the declaration."""
    rules = read.rules
    if isinstance(device, SetValued):
        rules += "; one between the ends counts as the nearer end, the middle as low"
    return {**asdict(device.claim), "outside": rules}


def _keep_real(path: Path, *, secure: bool = False, device: VectorMechanism | None = None) -> None:
    """Refuse to replace real reports, and to collect on top of any file: who has reported has spent."""
    if not path.exists():
        return
    try:
        meta = read_meta(path, "ldp perturb")
    except ArtifactError:
        meta = {}
    real = meta.get("kind") == "reports" and not meta["random"]["reproducible"]
    if real and secure and device is not None:
        spent, more = float(meta["claim"]["epsilon"]), device.claim.epsilon
        raise OptionError(
            f"{path} has spent epsilon {spent:g} of everybody in it; a second collection spends {more:g} more, "
            f"{spent + more:g} in all: name another --output if that is meant"
        )
    if real:
        raise OptionError(f"{path} holds real reports, which nobody can draw again: name another --output")
    if secure:
        raise OptionError(f"{path} is there already, and --secure replaces nothing: name another --output")


def _given(
    graph: Graph,
    mechanism: str,
    epsilon: float,
    options: Mapping[str, Any],
    extras: Extras,
    seeds: Sequence[int] = (),
    part: Round | None = None,
) -> Given:
    level = None if extras.levels is None else read_levels(extras.levels, graph)
    if part is not None:
        check_options(mechanism, options)
        refuse_parts(Rounds, options)
        if part.second != (extras.directed is not None):
            raise OptionError(
                "the second round is directed by the scores of the first: give them with --directed, from `ldp select`"
                if part.second
                else "--directed is the second round's: leave it out of the first, whose reports are to be scored"
            )
    if extras.directed is not None:
        if extras.scores is not None:
            raise OptionError("--scores and --directed both say what a round looks for: give one of them")
        return _directed(graph, mechanism, epsilon, options, extras.directed, seeds, level, part)
    scores = None if extras.scores is None else read_scores(extras.scores, graph, extras.scores_epsilon)
    if scores is None and extras.scores_epsilon is not None:
        raise OptionError(
            f"--scores-epsilon {extras.scores_epsilon:g} is what --scores have cost: give both or neither"
        )
    if scores is not None and (mechanism != "featurerr" or part is not None):
        who = mechanism if part is None else "a method of two rounds"
        raise OptionError(f"--scores shares a budget out by feature, which featurerr does; {who} does not")
    if part is not None:
        return Given(device=_first(graph, mechanism, epsilon, options, part.plan), level=level)
    device = device_for(graph, mechanism, epsilon, {**options, **(scores.options if scores else {})})
    return Given(device=device, level=level, ledger=tuple(scores.ledger) if scores else ())


def _first(graph: Graph, mechanism: str, epsilon: float, options: Mapping[str, Any], plan: Rounds) -> VectorMechanism:
    """Return a first round's mechanism; one that cannot be directed afterwards is refused before it asks anybody."""
    _second(graph, mechanism, epsilon, options, plan)
    ask = (mechanism, epsilon, graph.dimensions, graph.low, graph.high)
    return first_round(*ask, first=plan.first, m_from=plan.m_from, **options)


def _second(graph: Graph, mechanism: str, epsilon: float, options: Mapping[str, Any], plan: Rounds) -> VectorMechanism:
    """Return a second round's mechanism, which every seed's ranking directs anew."""
    ask = (mechanism, epsilon, graph.dimensions, graph.low, graph.high)
    every = range(graph.dimensions)
    return second_round(*ask, ranking=every, rho=plan.rho, first=plan.first, m_from=plan.m_from, **options).device


def _directed(
    graph: Graph,
    mechanism: str,
    epsilon: float,
    options: Mapping[str, Any],
    path: Path,
    seeds: Sequence[int],
    level: NDArray[np.int32] | None,
    part: Round | None,
) -> Given:
    """Return a second round: what is left of the budget, and each seed's own ranking."""
    rankings = read_rankings(path, graph)
    rest = dict(options)
    if part is None:
        rho = rest.pop("rho", 0.5)
        device = device_for(graph, mechanism, epsilon, rest)
    else:
        rho, device = part.plan.rho, _second(graph, mechanism, epsilon, rest, part.plan)
        for key in ("score_by", "score_steps"):
            found, meant = rankings.facts[key], getattr(part.plan, key)
            if found != meant:
                raise ArtifactError(
                    f"{path} ranks the features with {key} {found}, and the method means {meant}; say --set "
                    f"denoise.{key}={found}, or score the first round again"
                )
    if mechanism in PUBLIC_LEVELS and level is None:
        raise OptionError(f"{mechanism}: people keep their public level in the second round; give both --levels FILE")
    directed = {seed: DirectedMechanism(device=device, ranking=rankings.of(path, seed), rho=rho) for seed in seeds}
    facts = {"selection": dict(rankings.facts)}
    return Given(device=device, level=level, ledger=tuple(rankings.ledger), directed=directed, facts=facts)


def write(
    path: Path,
    features: Any,
    given: Given,
    sources: Mapping[int, Source],
    facts: Mapping[str, Any],
    progress: Progress | None,
    ids: Sequence[str] | None = None,
) -> Path:
    """Write the artifact, one seed after another; `ids` are the names of those who report, where it carries them."""
    device = given.device
    meta = release_meta(given, int(features.shape[0]), list(sources), facts)
    stored = meta["seeds"]

    def runs() -> Iterator[tuple[int, Reports]]:
        for count, (seed, reports) in enumerate(draw(features, device, sources, given.level, given.directed), start=1):
            yield seed, reports
            if progress:
                progress(count, len(stored), f"{device.name} at epsilon {epsilon_text(device.epsilon)}")

    write_reports(path, runs(), meta, ids)
    return path
