"""Reports of many devices as one file, in a graph's order: what a server does with what it has received."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphldp.client import Reports
from graphldp.errors import ArtifactError, DataError, OptionError
from graphldp.experiment.conversation import FURTHER, LABELS, LINKS, Question
from graphldp.experiment.devices import hash_of_names, nodes_hash
from graphldp.graph import Graph
from graphldp.jsonable import plain
from graphldp.ledger import Ledger, epsilon_text
from graphldp.stages.files.answers import AnswersFile, further_in, write_questions
from graphldp.stages.files.artifacts import is_real
from graphldp.stages.files.belong import FEATURES_HASH, check_graph
from graphldp.stages.files.graphs import read_graph
from graphldp.stages.files.own import read_people
from graphldp.stages.files.paths import answers_path, graph_dir
from graphldp.stages.files.reports import write_reports
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

    Nothing is drawn, so nothing is spent. Every node needs one report, and no person may have two: whoever has
    reported twice has spent twice, which is said and not averaged away. Links name others by their numbers among
    `people`, who were declared to take part; where somebody of these is no node of the graph, what others have reported
    of her is left out.
    """
    if not files:
        raise OptionError("name at least one file of reports")
    graph = read_graph(graph_dir(data, dataset), features=False)
    read = [AnswersFile(path, _MAKE) for path in files]
    first = read[0]
    for one in read:
        _check(one, first)
    place = _places(read, graph)
    numbers = _numbers(first, graph, people)
    _check_classes(first, graph)
    meta = _meta(read, graph)
    check_graph(first.path, {**meta, "nodes_hash": nodes_hash(graph), "input": None}, graph, data, "perturb again")
    further = further_in(meta)
    target = output or answers_path(data, dataset, str(meta["mechanism"]), float(meta["epsilon"]), further)
    if any(target.exists() and target.samefile(path) for path in files):
        raise OptionError(f"{target} is one of the files to merge: name another --output")
    if graph.node_ids is None:
        meta["nodes_hash"] = nodes_hash(graph)
    runs = ((seed, _questions(read, seed, place, numbers)) for seed in meta["seeds"])
    if further.asked:
        write_questions(target, runs, meta, graph.node_ids, new=is_real(meta))
    else:
        write_reports(target, ((seed, one.answers) for seed, (one,) in runs), meta, graph.node_ids, new=is_real(meta))
    return target


def _questions(
    read: Sequence[AnswersFile], seed: int, place: NDArray[np.int64], numbers: NDArray[np.int64]
) -> tuple[Question, ...]:
    """Return what all files' people have answered, in the order of the graph's nodes."""
    starts = np.cumsum([0, *(len(one.ids or ()) for one in read)])
    node = np.empty(len(place), dtype=np.int64)  # of each report, counted through all files, whose it is
    node[place] = np.arange(len(place))
    found: dict[str, list[tuple[NDArray[np.int64], Question]]] = {}
    for one, start in zip(read, starts[:-1], strict=True):
        for asked in (*one.questions(seed), *one.further_questions(seed)):
            found.setdefault(asked.name, []).append((node[start + asked.people], asked))
    out = []
    for name, parts in found.items():
        people = np.concatenate([who for who, _ in parts])
        order = np.argsort(people, kind="stable")
        answers = [asked.answers for _, asked in parts]
        if name == LINKS:
            answers = [_renumbered(one, numbers) for one in answers]
        features = parts[0][1].features
        joined = _joined(answers, order, ragged=name == LINKS)
        out.append(
            Question(name=name, people=people[order], features=features, answers=joined, further=name in FURTHER)
        )
    return tuple(out)


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
    number = {name: node for node, name in enumerate(known)}
    out = np.array([number.get(name, -1) for name in names], dtype=np.int64)
    if (np.diff(out[out >= 0]) < 0).any():
        raise ArtifactError(
            f"the nodes of {graph.name} stand in another order than the people among whom links were reported: import "
            "it with --nodes in their order"
        )
    return out


def _renumbered(links: Reports, numbers: NDArray[np.int64]) -> Reports:
    """Return reported links by the graph's numbers; what is said of who is no node is left out."""
    assert links.index is not None
    nodes = int((numbers >= 0).sum())
    new = np.where(links.index < 0, -1, numbers[np.maximum(links.index, 0)])
    value = np.asarray(links.value)
    order = np.argsort(new < 0, axis=1, kind="stable")
    new = np.take_along_axis(new, order, axis=1)
    if value.shape == new.shape and value.dtype.kind == "f":
        value = np.take_along_axis(value, order, axis=1)
    return Reports(index=new.astype(np.int32), value=value, meta={**links.meta, "nodes": nodes})


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
    if is_real(one.meta) != is_real(first.meta):
        raise ArtifactError(f"{one.path} and {first.path}: one is real, the other drawn from a seed; merge one kind")
    if not is_real(one.meta) and one.meta["seeds"] != first.meta["seeds"]:
        raise ArtifactError(
            f"{one.path} has the seeds {one.meta['seeds']}, {first.path} {first.meta['seeds']}; give all the same"
        )


def _places(read: Sequence[AnswersFile], graph: Graph) -> NDArray[np.int64]:
    """Return of each node which report is hers, counted through all files."""
    known = graph.node_ids or tuple(str(node) for node in range(graph.nodes))
    number = {name: node for node, name in enumerate(known)}
    place = np.full(graph.nodes, -1, dtype=np.int64)
    owner: dict[str, Path] = {}
    count = 0
    for one in read:
        for name in one.ids or ():
            if name not in number:
                raise DataError(f"{one.path}: {name!r} is no node of {graph.name}; leave the report out, or import her")
            if name in owner:
                raise DataError(
                    f"{one.path}: {name!r} has a report in {owner[name]} already, and has spent twice; keep one"
                )
            owner[name], place[number[name]] = one.path, count
            count += 1
    lacking = np.flatnonzero(place < 0)
    if lacking.size:
        has = "has" if lacking.size == 1 else "have"
        raise DataError(
            f"{lacking.size:,} of the {graph.nodes:,} nodes of {graph.name} {has} no report, the first is "
            f"{known[lacking[0]]!r}; add theirs, or import the graph without them"
        )
    return place


def _meta(read: Sequence[AnswersFile], graph: Graph) -> dict[str, Any]:
    """Return what all reports together say of themselves: one release, of which each person has one draw."""
    first = read[0].meta
    release = hashlib.sha256("\n".join(sorted(str(one.meta["release"]) for one in read)).encode()).hexdigest()[:32]
    meta: dict[str, Any] = {key: value for key, value in first.items() if key != "nodes_hash"}
    meta |= {"dataset": graph.name, "nodes": graph.nodes, "input": None, "release": release, "merged": len(read)}
    means = [one.meta.get("epsilon_mean") for one in read]
    if means[0] is not None:
        nodes = [one.meta["nodes"] for one in read]
        meta["epsilon_mean"] = float(np.average(np.asarray(means, dtype=float), weights=nodes))
    releases = {str(first["release"]): release}
    for key in FURTHER:
        if key in first:
            releases[str(first[key]["release"])] = hashlib.sha256(f"{release} {key}".encode()).hexdigest()[:32]
            meta[key] = {**first[key], "dataset": graph.name, "release": releases[str(first[key]["release"])]}
    if LABELS in first:
        meta[LABELS]["nodes"] = sum(int(one.meta[LABELS]["nodes"]) for one in read)
    if LINKS in first:
        meta[LINKS]["nodes"] = graph.nodes
    meta["ledger"] = [_renamed(row, releases, meta) for row in first["ledger"]]
    shape = [[(row["what"], row["epsilon"]) for row in one.meta["ledger"]] for one in read]
    if any(plain(other) != plain(shape[0]) for other in shape):
        raise ArtifactError("the files' people have not spent the same; `ldp ledger FILES...` says what each has")
    return meta


def _renamed(row: Mapping[str, Any], releases: Mapping[str, str], meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry of the ledger: that of the reports themselves is of the merged release."""
    if row["source"] not in releases:
        return dict(row)
    own = releases[row["source"]]
    mean = {"mean": meta["epsilon_mean"]} if meta.get("epsilon_mean") is not None and own == meta["release"] else {}
    return {**row, **mean, "source": own}


def _joined(parts: Sequence[Reports], place: NDArray[np.int64], *, ragged: bool = False) -> Reports:
    """Return all reports, in the order of their nodes; those of links name more or fewer, with -1 behind."""
    if ragged:
        parts = _padded(parts)
    width = {part.value.shape[1] for part in parts}
    if len(width) != 1 or len({part.index is None for part in parts}) != 1:
        raise ArtifactError("the reports have different lengths, so that they are of different collections")
    index = [part.index for part in parts if part.index is not None]
    level = [part.level for part in parts if part.level is not None]
    return Reports(
        index=np.concatenate(index)[place] if index else None,
        value=np.concatenate([part.value for part in parts])[place],
        level=np.concatenate(level)[place] if level else None,
        meta=parts[0].meta,
    )


def _padded(parts: Sequence[Reports]) -> list[Reports]:
    """Return reports on links that are equally wide, as wide as the longest needs."""
    every = [np.asarray(one.index) for one in parts]
    width = max(int((index >= 0).sum(axis=1).max(initial=0)) for index in every)
    out = []
    for one, index in zip(parts, every, strict=True):
        new = np.full((len(index), width), -1, dtype=np.int32)
        kept = min(width, index.shape[1])
        new[:, :kept] = index[:, :kept]
        value = np.asarray(one.value)
        if value.dtype.kind == "f":  # a number for each
            wide = np.zeros((len(index), width), dtype=value.dtype)
            wide[:, :kept] = value[:, :kept]
            value = wide
        out.append(Reports(index=new, value=value, meta=one.meta))
    return out


def words(path: Path, meta: Mapping[str, Any]) -> str:
    """Return one line for people."""
    files = counted(meta["merged"], "file")
    return (
        f"{path}: {counted(meta['nodes'], 'report')} of {files} in the order of {meta['dataset']}, "
        f"{meta['mechanism']} at epsilon {epsilon_text(float(meta['epsilon']))}; "
        f"{Ledger.from_json(meta['ledger']).text()}"
    )
