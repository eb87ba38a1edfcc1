"""Stage perturb: features in, answers out. What it writes is what would have left the devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from graphldp import methods
from graphldp.client import Reports, VectorMechanism, own_budget
from graphldp.client.sets import SetValued
from graphldp.datasets.own import OwnFeatures, at_ends
from graphldp.errors import ArtifactError, OptionError
from graphldp.experiment.addresses import addressed, source_of
from graphldp.experiment.conversation import Once, check_classes, conversation_of
from graphldp.experiment.devices import device_for, release_meta
from graphldp.experiment.options import Further, Settings
from graphldp.experiment.told import Told, told_of
from graphldp.graph import Graph
from graphldp.ledger import epsilon_text
from graphldp.progress import Progress
from graphldp.randomness import SecureSource, Source
from graphldp.stages.files.answers import write_answers
from graphldp.stages.files.artifacts import file_hash, is_real, keep_real, read_meta
from graphldp.stages.files.belong import FEATURES_HASH, features_hash, other_features
from graphldp.stages.files.graphs import graph_hash, read_graph
from graphldp.stages.files.levels_scores import Extras, read_levels, read_scores
from graphldp.stages.files.own import read_features, read_vocabulary, row_number_words
from graphldp.stages.files.paths import NAME, PUBLIC, answers_path, graph_dir, reports_path, stored_graphs
from graphldp.stages.files.reports import write_reports

__all__ = ["addressed", "perturb_file", "perturb_graph", "perturb_method", "source_of"]

Say = Callable[[str], None]


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
    further: Further = PUBLIC,
    output: Path | None = None,
    progress: Progress | None = None,
    say: Say | None = None,
) -> Path:
    """Perturb a data set's features once for each seed, with what people are asked for beside them, and write it.

    `say` is told how many links will be reported, before anybody is asked.
    """
    folder = graph_dir(data, dataset)
    settings = Settings(seed=root, further=further)
    graph = read_graph(folder, features=own_budget(mechanism) != 0)  # what says nothing of features needs none
    asked = _once(graph, mechanism, epsilon, settings, options or {}, extras or Extras())
    path = output or answers_path(data, dataset, mechanism, asked.device.epsilon, further)
    _keep_real(path)
    told = told_of(graph, settings)
    _foretell(told, say)
    return write_answers(path, told.beside(asked), graph_hash(folder), seeds, progress=progress)


def perturb_method(
    dataset: str,
    method: str,
    mechanism: str | None,
    epsilon: float,
    *,
    data: Path,
    settings: Settings,
    options: Mapping[str, Any] | None = None,
    changes: Mapping[str, Any] | None = None,
    extras: Extras | None = None,
    output: Path | None = None,
    progress: Progress | None = None,
    say: Say | None = None,
) -> Path:
    """Ask a data set's people for a row, everything that its method asks them, and write their answers.

    `options` are the mechanism's, `changes` those of the method, as `Method.but` takes them. What people report once
    depends on the mechanism alone: it is the artifact that other methods read, too.
    """
    plain = methods.method(method)
    if not plain.model:
        raise OptionError(f"method {method!r} asks nobody for anything: there is nothing to perturb")
    recipe = plain.but(changes or {})
    mechanism, seeds, extras = recipe.choose(mechanism), settings.draws, extras or Extras()
    if recipe.asking is None:
        return perturb_graph(
            dataset, mechanism, epsilon, data=data, seeds=seeds, root=settings.seed, options=options, extras=extras,
            further=settings.further, output=output, progress=progress, say=say,
        )  # fmt: skip
    if extras.scores is not None or extras.scores_epsilon is not None:
        raise OptionError(f"--scores shares a budget out by feature, which featurerr does; {method} does not")
    check_classes(recipe, settings.train)
    folder = graph_dir(data, dataset)
    graph = read_graph(folder)
    level = None if extras.levels is None else read_levels(extras.levels, graph)
    asked = conversation_of(graph, recipe, mechanism, epsilon, settings, options, level)
    facts: dict[str, Any] = {"method": method, "name": recipe.cell_name(mechanism)}
    facts |= {"changes": dict(changes)} if changes else {}
    path = output or answers_path(data, dataset, recipe.cell_name(mechanism), epsilon, settings.further)
    _keep_real(path)
    told = told_of(graph, settings)
    _foretell(told, say)
    return write_answers(path, told.beside(asked), graph_hash(folder), seeds, facts, progress)


def _foretell(told: Told, say: Say | None) -> None:
    forecast = told.forecast()
    if say is not None and forecast:
        say(forecast)


def _once(
    graph: Graph, mechanism: str, epsilon: float, settings: Settings, options: Mapping[str, Any], extras: Extras
) -> Once:
    """Return how people report once, with the files that some mechanisms need."""
    level = None if extras.levels is None else read_levels(extras.levels, graph)
    scores = None if extras.scores is None else read_scores(extras.scores, graph, extras.scores_epsilon)
    if scores is None and extras.scores_epsilon is not None:
        raise OptionError(
            f"--scores-epsilon {extras.scores_epsilon:g} is what --scores have cost: give both or neither"
        )
    if scores is not None and mechanism != "featurerr":
        raise OptionError(f"--scores shares a budget out by feature, which featurerr does; {mechanism} does not")
    device = device_for(graph, mechanism, epsilon, {**options, **(scores.options if scores else {})})
    ledger = tuple(scores.ledger) if scores else ()
    return Once(graph=graph, device=device, settings=settings, level=level, ledger=ledger)


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
    vocabulary = read_vocabulary(features_file, dimensions)
    read = read_features(name, features, low=low, high=high, vocabulary=vocabulary, missing=missing)
    own = read.graph
    if secure and not read.declared:
        raise OptionError(
            "--secure needs the features declared, with --features-file FILE or --dimensions N: read off the file, "
            "their number and order would tell what people have"
        )
    asked = _once(own, mechanism, epsilon, Settings(seed=root), options or {}, extras or Extras())
    device = asked.device
    if secure and not device.claim.keeps:
        raise OptionError(
            f"--secure collects from people, and {mechanism} does not keep its claim: {device.claim.reason}; take "
            "another mechanism (`ldp list mechanisms` marks those whose claim fails)"
        )
    _check_name(name, own, data)
    path = output or reports_path(data, name, mechanism, device.epsilon)
    _keep_real(path, secure=secure, device=device)
    sources: dict[int, Source] = {
        seed: SecureSource() if secure else source_of(root, name, device, seed, asked.level) for seed in seeds
    }
    random = {"generator": "operating system", "reproducible": False} if secure else addressed(root)
    # A hash of real people's features is not theirs to send: it would confirm a right guess of them.
    source = None if secure else file_hash(features)
    facts = {"dataset": name, "input": source, "random": random, "claim": _claim(device, read)}
    values = at_ends(own.features, low, high) if isinstance(device, SetValued) else own.features
    if read.declared:
        facts[FEATURES_HASH] = features_hash(own)
    meta = release_meta(device, own.nodes, list(sources), facts, level=asked.level, ledger=asked.ledger)

    def runs() -> Iterator[tuple[int, Reports]]:
        for count, seed in enumerate(meta["seeds"], start=1):
            yield seed, device.perturb(values, sources[seed], asked.level)
            if progress:
                progress(count, len(meta["seeds"]), f"{device.name} at epsilon {epsilon_text(device.epsilon)}")

    write_reports(path, runs(), meta, own.node_ids, new=secure)
    if say is not None:
        if not read.declared:
            say(
                f"the features, {own.dimensions:,} in all, are those that occur in {features}, which tells of people: "
                "enough to rehearse; to collect, declare them with --features-file or --dimensions"
            )
        for column in read.row_numbers:
            say(row_number_words(column))
        if read.mended.words():
            say(f"{read.mended.words()} (said here, and nowhere in the file)")
    return path


def _check_name(name: str, own: Graph, data: Path) -> None:
    """Refuse, before anything is spent, a name that cannot be one, and that of a graph with other features."""
    if not NAME.fullmatch(name):
        raise OptionError(f"--name needs letters, digits, '.', '_' or '-', got {name!r}")
    if name not in stored_graphs(data):
        return
    facts = {"dimensions": own.dimensions, "low": own.low, "high": own.high, FEATURES_HASH: features_hash(own)}
    other = other_features(facts, read_graph(graph_dir(data, name), features=False))
    if other:
        raise OptionError(f"--name {name}: the reports would be {other}; declare these, or choose another name")


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
    real = meta.get("kind") == "reports" and is_real(meta)
    if real and secure and device is not None:
        spent, more = float(meta["claim"]["epsilon"]), device.claim.epsilon
        raise OptionError(
            f"{path} has spent epsilon {spent:g} of everybody in it; a second collection spends {more:g} more, "
            f"{spent + more:g} in all: name another --output if that is meant"
        )
    keep_real(path)
    if secure:
        raise OptionError(f"{path} is there already, and --secure replaces nothing: name another --output")
