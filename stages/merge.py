"""Stage merge: the files of many devices in, one out, in a graph's order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphldp.errors import ArtifactError, OptionError
from graphldp.experiment.conversation import FURTHER, LABELS, LINKS, Question
from graphldp.experiment.devices import hash_of_names, nodes_hash
from graphldp.graph import Graph
from graphldp.jsonable import plain
from graphldp.ledger import epsilon_text
from graphldp.merging import merged_meta, merged_questions, node_of_names, place_of_nodes
from graphldp.stages.files.answers import AnswersFile, further_in, write_questions
from graphldp.stages.files.artifacts import is_real
from graphldp.stages.files.belong import FEATURES_HASH, check_graph
from graphldp.stages.files.graphs import read_graph
from graphldp.stages.files.own import read_people
from graphldp.stages.files.paths import answers_path, graph_dir
from graphldp.stages.files.reports import ReportsMeta, write_reports
from graphldp.stages.pages.wording import counted

__all__ = ["merge", "words"]

_MAKE = "ldp perturb --input"
# In what the reports of one collection are alike; and what of its further questions is of a single file.
_SAME = (
    *("mechanism", "options", "epsilon", "epsilon_exact", "delta", "dimensions", "m", "low", "high", "claim"),
    *("deterministic", FEATURES_HASH, "budgets", "kind", "further"),
)
_OWN = ("release", "seeds", "input", "library", "dataset")


def merge(
    files: Sequence[Path], dataset: str, *, data: Path, people: Path | None = None, output: Path | None = None
) -> Path:
    """Write the reports of all files, one of each of the graph's nodes, in the graph's order.

    Links name others by their numbers among `people`, who were declared to take part; where somebody of these is no
    node of the graph, what others have reported of her is left out.
    """
    if not files:
        raise OptionError("name at least one file of reports")
    graph = read_graph(graph_dir(data, dataset), features=False)
    read = [AnswersFile(path, _MAKE) for path in files]
    first = read[0]
    for one in read:
        _check(one, first)
    place = place_of_nodes([(str(one.path), one.ids or ()) for one in read], graph)
    numbers = _numbers(first, graph, people)
    _check_classes(first, graph)
    meta = merged_meta([one.meta for one in read], graph)
    check_graph(first.path, {**meta, "nodes_hash": nodes_hash(graph)}, graph, data, "perturb again")
    further = further_in(meta)
    target = output or answers_path(data, dataset, first.says.mechanism, first.says.epsilon, further)
    if any(target.exists() and target.samefile(path) for path in files):
        raise OptionError(f"{target} is one of the files to merge: name another --output")
    if graph.node_ids is None:
        meta["nodes_hash"] = nodes_hash(graph)
    counts = [len(one.ids or ()) for one in read]

    def asked(seed: int) -> tuple[Question, ...]:
        answered = [(*one.questions(seed), *one.further_questions(seed)) for one in read]
        return merged_questions(answered, counts, place, numbers)

    runs = ((seed, asked(seed)) for seed in first.says.seeds)
    if further.asked:
        write_questions(target, runs, meta, graph.node_ids, new=is_real(meta))
    else:
        write_reports(target, ((seed, one.answers) for seed, (one,) in runs), meta, graph.node_ids, new=is_real(meta))
    return target


def _numbers(first: AnswersFile, graph: Graph, people: Path | None) -> NDArray[np.int64]:
    """Return of everybody who was declared to take part which node she is, -1 of who is none; empty without links."""
    declared = first.meta.get(LINKS, {}).get("people")
    if declared is None:
        if people is not None:
            raise OptionError("--people says among whom links were reported, and no file has any; leave it out")
        return np.empty(0, dtype=np.int64)
    known = graph.node_ids or ()
    names = known if people is None else read_people(people)
    if hash_of_names(len(names), names) != declared:
        whose = f"{graph.name} has" if people is None else f"{people} names"
        raise ArtifactError(
            f"{first.path} has links among other people than {whose}, or in another order; give those that were "
            "declared with --people"
        )
    return node_of_names(names, graph)


def _check_classes(first: AnswersFile, graph: Graph) -> None:
    """Refuse labels of another number of classes than the graph has."""
    classes = first.meta.get(LABELS, {}).get("classes")
    if classes is not None and int(classes) != graph.classes:
        raise ArtifactError(
            f"{first.path} has labels of {classes} classes, and {graph.name} has {graph.classes}: import it with the "
            "classes that were declared, with --classes-file"
        )


def _check(one: AnswersFile, first: AnswersFile) -> None:
    """Refuse what is no report of people who are named, or of another collection."""
    if one.ids is None:
        raise ArtifactError(
            f"{one.path} does not say whose reports it holds; merge what `ldp perturb --input` writes on devices"
        )
    for key in _SAME:
        was, now = plain(first.meta.get(key)), plain(one.meta.get(key))
        if was != now:
            what = "other features" if key == FEATURES_HASH else f"{key} {now} where {first.path} has {was}"
            raise ArtifactError(f"{one.path} has {what}; reports of one collection are alike in all but their people")
    for key in FURTHER:
        was, now = (
            plain({name: value for name, value in part.meta.get(key, {}).items() if name not in (*_OWN, "nodes")})
            for part in (first, one)
        )
        if was != now:
            raise ArtifactError(
                f"{one.path} was asked for {key} otherwise than {first.path}; reports of one collection are alike in "
                "all but their people"
            )
    if one.says.reproducible != first.says.reproducible:
        raise ArtifactError(f"{one.path} and {first.path}: one is real, the other drawn from a seed; merge one kind")
    was, now = list(first.says.seeds), list(one.says.seeds)
    if one.says.reproducible and was != now:
        raise ArtifactError(f"{one.path} has the seeds {now}, {first.path} {was}; give all the same")


def words(path: Path, meta: Mapping[str, Any]) -> str:
    """Return one line for people."""
    says, files = ReportsMeta.of(meta), counted(meta["merged"], "file")
    return (
        f"{path}: {counted(says.nodes, 'report')} of {files} in the order of {says.dataset}, "
        f"{says.mechanism} at epsilon {epsilon_text(says.epsilon)}; {says.ledger.text()}"
    )
