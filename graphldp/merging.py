"""Reports of many devices as one collection, in a graph's order: what a server does with what it has received.

Nothing is drawn, so nothing is spent. Every node needs one report, and no person may have two: whoever has reported
twice has spent twice, which is said and not averaged away.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphldp.client import Reports
from graphldp.errors import ArtifactError, DataError
from graphldp.experiment.conversation import FURTHER, LINKS, Question
from graphldp.graph import Graph
from graphldp.ledger import Ledger, Spend, spends_of

__all__ = ["merged_meta", "merged_questions", "node_of_names", "place_of_nodes"]


def place_of_nodes(names: Sequence[tuple[str, Sequence[str]]], graph: Graph) -> NDArray[np.int64]:
    """Return of each node which report is hers, counted through all collections.

    Args:
        names: what each collection is called, and whose reports it has, in their order.
        graph: whose nodes they are.
    """
    known = graph.node_ids or tuple(str(node) for node in range(graph.nodes))
    number = {name: node for node, name in enumerate(known)}
    place = np.full(graph.nodes, -1, dtype=np.int64)
    owner: dict[str, str] = {}
    count = 0
    for where, people in names:
        for name in people:
            if name not in number:
                raise DataError(f"{where}: {name!r} is no node of {graph.name}; leave the report out, or import her")
            if name in owner:
                raise DataError(
                    f"{where}: {name!r} has a report in {owner[name]} already, and has spent twice; keep one"
                )
            owner[name], place[number[name]] = where, count
            count += 1
    lacking = np.flatnonzero(place < 0)
    if lacking.size:
        has = "has" if lacking.size == 1 else "have"
        raise DataError(
            f"{lacking.size:,} of the {graph.nodes:,} nodes of {graph.name} {has} no report, the first is "
            f"{known[lacking[0]]!r}; add theirs, or import the graph without them"
        )
    return place


def node_of_names(names: Sequence[str], graph: Graph) -> NDArray[np.int64]:
    """Return of everybody among whom links were reported which node she is, -1 of who is none."""
    number = {name: node for node, name in enumerate(graph.node_ids or ())}
    out = np.array([number.get(name, -1) for name in names], dtype=np.int64)
    if (np.diff(out[out >= 0]) < 0).any():
        raise ArtifactError(
            f"the nodes of {graph.name} stand in another order than the people among whom links were reported: import "
            "it with --nodes in their order"
        )
    return out


def merged_questions(
    answered: Sequence[Sequence[Question]],
    counts: Sequence[int],
    place: NDArray[np.int64],
    numbers: NDArray[np.int64],
) -> tuple[Question, ...]:
    """Return what all people have answered, in the order of the graph's nodes.

    Args:
        answered: of each collection, all that its people were asked.
        counts: how many people each has.
        place: which report is whose, as `place_of_nodes` has it.
        numbers: which node each of the people is among whom links were reported, as `node_of_names` has it.
    """
    starts = np.cumsum([0, *counts])
    node = np.empty(len(place), dtype=np.int64)  # of each report, counted through all files, whose it is
    node[place] = np.arange(len(place))
    found: dict[str, list[tuple[NDArray[np.int64], Question]]] = {}
    for every, start in zip(answered, starts[:-1], strict=True):
        for asked in every:
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


def merged_meta(metas: Sequence[Mapping[str, Any]], graph: Graph) -> dict[str, Any]:
    """Return what all reports together say of themselves: one release, of which each person has one draw."""
    first = metas[0]
    release = _hash("\n".join(sorted(map(_release, metas))))
    meta: dict[str, Any] = {key: value for key, value in first.items() if key != "nodes_hash"}
    meta |= {"dataset": graph.name, "nodes": graph.nodes, "input": None, "release": release, "merged": len(metas)}
    means, mean = [one.get("epsilon_mean") for one in metas], None
    if means[0] is not None:
        mean = float(np.average(np.asarray(means, dtype=float), weights=[_people(one) for one in metas]))
        meta |= {"epsilon_mean": mean}
    releases = {_release(first): release}
    for key in FURTHER:
        if key in first:
            own = releases[_release(first[key])] = _hash(f"{release} {key}")
            nodes = graph.nodes if key == LINKS else sum(_people(one[key]) for one in metas)
            meta[key] = {**first[key], "dataset": graph.name, "release": own, "nodes": nodes}
    spent = [spends_of(one) for one in metas]
    if len({tuple(map(_cost, spends)) for spends in spent}) > 1:
        raise ArtifactError("the files' people have not spent the same; `ldp ledger FILES...` says what each has")
    renamed = []
    for spend in spent[0]:
        own = releases.get(spend.source, spend.source)
        own_mean = mean if mean is not None and own == release else spend.mean
        renamed.append(replace(spend, source=own, mean=own_mean))
    return {**meta, "ledger": Ledger(spends=tuple(renamed)).as_json()}


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _release(meta: Mapping[str, Any]) -> str:
    return str(meta["release"])


def _cost(spend: Spend) -> tuple[Any, ...]:
    """Return what a person has spent in a release, whoever she is; the mean is that of all people together."""
    return spend.what, spend.per, spend.epsilon, spend.delta, spend.max, spend.times, spend.known


def _people(meta: Mapping[str, Any]) -> int:
    return int(meta["nodes"])
