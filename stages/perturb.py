"""Stage perturb: features in, answers out. What it writes is what would have left the devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from graphldp import methods
from graphldp.client import VectorMechanism, own_budget
from graphldp.client.laws.sets import SetValued
from graphldp.datasets.own import OwnFeatures, at_ends
from graphldp.errors import ArtifactError, OptionError
from graphldp.experiment.addresses import addressed, source_of
from graphldp.experiment.collection import UNDECLARED, OwnAnswers, OwnBeside, own_beside
from graphldp.experiment.conversation import Once, check_classes, conversation_of
from graphldp.experiment.devices import budgeted_by_feature, device_for
from graphldp.experiment.options import Further, Settings
from graphldp.experiment.server_view import ServerView, server_view_of
from graphldp.graph import Graph
from graphldp.progress import Progress
from graphldp.stages.files.answers import write_answers
from graphldp.stages.files.artifacts import file_hash, is_collected, keep_real, read_meta
from graphldp.stages.files.belong import FEATURES_HASH, features_hash, other_features
from graphldp.stages.files.graphs import graph_hash, read_graph
from graphldp.stages.files.levels_scores import Extras, read_levels, read_scores
from graphldp.stages.files.own import (
    read_classes,
    read_features,
    read_labels,
    read_links,
    read_people,
    read_vocabulary,
    row_number_words,
)
from graphldp.stages.files.paths import NAME, answers_path, graph_dir, stored_graphs
from graphldp.stages.grids.cell import Cell
from graphldp.stages.pages.wording import counted

__all__ = [
    "BesideFiles",
    "CollectionFiles",
    "addressed",
    "perturb_file",
    "perturb_graph",
    "perturb_method",
    "source_of",
]

Say = Callable[[str], None]


def perturb_graph(
    cell: Cell,
    *,
    data: Path,
    seeds: Sequence[int],
    root: int = 0,
    extras: Extras | None = None,
    output: Path | None = None,
    progress: Progress | None = None,
    say: Say | None = None,
) -> Path:
    """Perturb a data set's features once for each seed, with what people are asked for beside them, and write it.

    `say` is told how many links will be reported, before anybody is asked.
    """
    folder = graph_dir(data, cell.dataset)
    settings = Settings(seed=root, further=cell.further)
    graph = read_graph(folder, features=own_budget(cell.mechanism) != 0)  # what says nothing of features needs none
    asked = _once(graph, cell, settings, extras or Extras())
    path = output or answers_path(data, cell.dataset, cell.mechanism, asked.device.epsilon, cell.further)
    _keep_real(path)
    server_view = server_view_of(graph, settings)
    _foretell(server_view, say)
    return write_answers(path, server_view.beside(asked), graph_hash(folder), seeds, progress=progress)


def perturb_method(
    cell: Cell,
    *,
    data: Path,
    settings: Settings,
    extras: Extras | None = None,
    output: Path | None = None,
    progress: Progress | None = None,
    say: Say | None = None,
) -> Path:
    """Ask a data set's people for a row, everything that its method asks them, and write their answers.

    What people report once depends on the mechanism alone: it is the artifact that other methods read, too.
    """
    if not methods.method(cell.method).model:
        raise OptionError(f"method {cell.method!r} asks nobody for anything: there is nothing to perturb")
    cell, recipe, seeds, extras = cell.whole(), cell.recipe, settings.draws, extras or Extras()
    if recipe.asking is None:
        return perturb_graph(
            replace(cell, further=settings.further), data=data, seeds=seeds, root=settings.seed, extras=extras,
            output=output, progress=progress, say=say,
        )  # fmt: skip
    if extras.scores is not None or extras.scores_epsilon is not None:
        raise _without_scores(cell.method)
    check_classes(recipe, settings.train)
    folder = graph_dir(data, cell.dataset)
    graph = read_graph(folder)
    level = None if extras.levels is None else read_levels(extras.levels, graph)
    asked = conversation_of(graph, recipe, cell.mechanism, cell.epsilon, settings, cell.options, level)
    name = recipe.cell_name(cell.mechanism)
    facts: dict[str, Any] = {"method": cell.method, "name": name}
    facts |= {"changes": dict(cell.changes)} if cell.changes else {}
    path = output or answers_path(data, cell.dataset, name, cell.epsilon, settings.further)
    _keep_real(path)
    server_view = server_view_of(graph, settings)
    _foretell(server_view, say)
    return write_answers(path, server_view.beside(asked), graph_hash(folder), seeds, facts, progress)


def _foretell(server_view: ServerView, say: Say | None) -> None:
    refuse_curator(server_view.further)
    forecast = server_view.forecast()
    if say is not None and forecast:
        say(forecast)


def refuse_curator(further: Further) -> None:
    """Refuse to ask people for links where a curator is trusted with all of them: nobody sends any."""
    if further.curated:
        raise OptionError(
            f"{further.links} is a trusted curator who sees all links, so that nobody reports any and there is no file "
            "of reports; take `ldp run` or an experiment, or links of people's own (`ldp list links`)"
        )


def _once(graph: Graph, cell: Cell, settings: Settings, extras: Extras) -> Once:
    """Return how people report once, with the files that some mechanisms need."""
    level = None if extras.levels is None else read_levels(extras.levels, graph)
    scores = None if extras.scores is None else read_scores(extras.scores, graph, extras.scores_epsilon)
    if scores is None and extras.scores_epsilon is not None:
        raise OptionError(
            f"--scores-epsilon {extras.scores_epsilon:g} is what --scores have cost: give both or neither"
        )
    if scores is not None and cell.mechanism not in budgeted_by_feature():
        raise _without_scores(cell.mechanism)
    device = device_for(graph, cell.mechanism, cell.epsilon, {**cell.options, **(scores.options if scores else {})})
    ledger = tuple(scores.ledger) if scores else ()
    return Once(graph=graph, device=device, settings=settings, level=level, ledger=ledger)


def _without_scores(name: str) -> OptionError:
    able = " or ".join(budgeted_by_feature())
    return OptionError(f"--scores shares a budget out by feature, which {able} does; {name} does not")


@dataclass(frozen=True, slots=True, kw_only=True)
class BesideFiles:
    """Where people's own links and labels lie, beside their features, and what is declared of them.

    Attributes:
        links: `source` and `target`: on whose list somebody is.
        people: `node`: everybody who takes part, in the declared order.
        labels: `node` and `label`.
        classes: the declared classes.
    """

    links: Path | None = None
    people: Path | None = None
    labels: Path | None = None
    classes: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionFiles:
    """Where people's own features lie, and links and labels beside these, and what is declared of them.

    Attributes:
        features: the file of their features.
        low, high: the public range of a feature.
        features_file: the declared features, in their order.
        dimensions: how many features there are, where they are numbers.
        missing: what a missing value counts as.
        beside: where links and labels lie.
        extras: public levels and scores, where there are any.
        secure: whether draws are the operating system's, so that the reports are real.
    """

    features: Path
    low: float
    high: float
    features_file: Path | None = None
    dimensions: int | None = None
    missing: float | None = None
    beside: BesideFiles = field(default_factory=BesideFiles)
    extras: Extras = field(default_factory=Extras)
    secure: bool = False


def perturb_file(
    cell: Cell,
    files: CollectionFiles,
    *,
    data: Path,
    seeds: Sequence[int],
    root: int = 0,
    output: Path | None = None,
    progress: Progress | None = None,
    say: Say | None = None,
) -> Path:
    """Perturb people's own features, and their links and labels where these are asked for.

    Draws are of a seeded generator for experiments, or of the system's for real data. Nothing in the file but its
    reports depends on a value, and no value stops a report. What `say` is told of what was read otherwise than it
    stands there is for the device's own screen.
    """
    name, mechanism, further, secure = cell.dataset, cell.mechanism, cell.further, files.secure
    if secure and len(seeds) != 1:
        raise OptionError(
            "--secure collects real reports, and every further one of the same person spends epsilon again: --seeds "
            f"must be 1 and --search-seeds 0, got {len(seeds)} in all"
        )
    vocabulary = read_vocabulary(files.features_file, files.dimensions)
    read = read_features(
        name, files.features, low=files.low, high=files.high, vocabulary=vocabulary, missing=files.missing
    )
    own = read.graph
    if secure and not read.declared:
        raise OptionError(
            "--secure needs the features declared, with --features-file FILE or --dimensions N: read off the file, "
            "their number and order would tell what people have"
        )
    asked = _once(own, cell, Settings(seed=root), files.extras)
    device = asked.device
    if secure and not device.claim.keeps:
        raise OptionError(
            f"--secure collects from people, and {mechanism} does not keep its claim: {device.claim.reason}; take "
            "another mechanism (`ldp list mechanisms` marks those whose claim fails)"
        )
    _check_name(name, own, data)
    refuse_curator(further)
    beside, left_out = _beside(further, own, files.beside)
    path = output or answers_path(data, name, mechanism, device.epsilon, further)
    _keep_real(path, secure=secure, device=device)
    random = {"generator": "operating system", "reproducible": False} if secure else addressed(root)
    # A hash of real people's features is not theirs to send: it would confirm a right guess of them.
    source = None if secure else file_hash(files.features)
    facts = {"dataset": name, "input": source, "random": random, "claim": _claim(device, read)}
    if read.declared:
        facts[FEATURES_HASH] = features_hash(own)
    values = at_ends(own.features, files.low, files.high) if isinstance(device, SetValued) else own.features
    conversation = OwnAnswers(
        name=name, device=device, features=values, beside=beside, root=root, secure=secure, facts=facts,
        level=asked.level, before=asked.ledger,
    )  # fmt: skip
    write_answers(path, conversation, "", seeds, progress=progress, ids=own.node_ids, new=secure)
    if say is not None:
        if not read.declared:
            say(
                f"the features, {own.dimensions:,} in all, are those that occur in {files.features}, which tells of "
                "people: enough to rehearse; to collect, declare them with --features-file or --dimensions"
            )
        for column in read.row_numbers:
            say(row_number_words(column))
        for words in (read.mended.words(), left_out):
            if words:
                say(f"{words} (said here, and nowhere in the file)")
    return path


def _beside(further: Further, own: Graph, files: BesideFiles) -> tuple[OwnBeside, str]:
    """Return what people tell beside their features, from their files, and what of these was left out."""
    pairs = {
        "links": (further.private_links, (("--links-file", files.links), ("--people", files.people))),
        "labels": (further.private_labels, (("--labels-file", files.labels), ("--classes-file", files.classes))),
    }
    for what, (private, given) in pairs.items():
        for flag, path in given:
            if private and path is None:
                raise OptionError(f"--{what} needs {flag}: {_FILES[flag]}")
            if not private and path is not None:
                raise OptionError(f"{flag} goes with --{what} and --epsilon-{what}: how people report their {what}")
    facts: dict[str, Any] = {}
    left_out = ""
    if files.links is not None and files.people is not None:
        facts["people"] = read_people(files.people)
        read = read_links(files.links, facts["people"], own.node_ids or ())
        facts["pairs"], left_out = read.pairs, read.words()
    if files.labels is not None and files.classes is not None:
        classes = read_classes(files.classes)
        labels = read_labels(files.labels, own.node_ids or (), classes)
        facts |= {"classes": len(classes), "labels": labels}
        strange = int((labels == UNDECLARED).sum())
        if strange:
            drawn = f"{counted(strange, 'label')} of no declared class: reported as if drawn at random from the classes"
            left_out = "; ".join(filter(None, (left_out, drawn)))
    return own_beside(further, own.node_ids or (), **facts), left_out


_FILES = {
    "--links-file": "people's own links, a table of source and target",
    "--people": "everybody who takes part, in the declared order, a table of node",
    "--labels-file": "people's own labels, a table of node and label",
    "--classes-file": "the declared classes, in their order",
}


def _check_name(name: str, own: Graph, data: Path) -> None:
    """Refuse, before anything is spent, a name that cannot be one, and that of a graph with other features."""
    if not NAME.fullmatch(name):
        raise OptionError(f"--name needs letters, digits, '.', '_' or '-', got {name!r}")
    if name not in stored_graphs(data):
        return
    graph = read_graph(graph_dir(data, name), features=False)
    other = other_features(own.dimensions, own.low, own.high, features_hash(own), graph)
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
    real = is_collected(meta)
    if real and secure and device is not None:
        spent, more = float(meta["claim"]["epsilon"]), device.claim.epsilon
        raise OptionError(
            f"{path} has spent epsilon {spent:g} of everybody in it; a second collection spends {more:g} more, "
            f"{spent + more:g} in all: name another --output if that is meant"
        )
    keep_real(path)
    if secure:
        raise OptionError(f"{path} is there already, and --secure replaces nothing: name another --output")
