"""Reports of many devices as one file, in a graph's order: what a server does with what it has received."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphldp.client import Reports
from graphldp.errors import ArtifactError, DataError, OptionError
from graphldp.experiment.devices import nodes_hash
from graphldp.graph import Graph
from graphldp.jsonable import plain
from graphldp.ledger import Ledger, epsilon_text
from graphldp.stages.files.answers import AnswersFile
from graphldp.stages.files.artifacts import is_real
from graphldp.stages.files.belong import FEATURES_HASH, check_graph
from graphldp.stages.files.graphs import read_graph
from graphldp.stages.files.paths import graph_dir, reports_path
from graphldp.stages.files.reports import write_reports
from graphldp.stages.pages.wording import counted

__all__ = ["merge", "words"]

_MAKE = "ldp perturb --input"
# In what the reports of one collection are alike.
_SAME = (
    *("mechanism", "options", "epsilon", "epsilon_exact", "delta", "dimensions", "m", "low", "high", "claim"),
    *("deterministic", FEATURES_HASH, "budgets"),
)


def merge(files: Sequence[Path], dataset: str, *, data: Path, output: Path | None = None) -> Path:
    """Write the reports of all files, one of each of the graph's nodes, in the graph's order.

    Nothing is drawn, so nothing is spent. Every node needs one report, and no person may have two: whoever has
    reported twice has spent twice, which is said and not averaged away.
    """
    if not files:
        raise OptionError("name at least one file of reports")
    graph = read_graph(graph_dir(data, dataset), features=False)
    read = [AnswersFile(path, _MAKE) for path in files]
    first = read[0]
    for one in read:
        _check(one, first)
    place = _places(read, graph)
    meta = _meta(read, graph)
    check_graph(first.path, {**meta, "nodes_hash": nodes_hash(graph), "input": None}, graph, data, "perturb again")

    def runs() -> Iterator[tuple[int, Reports]]:
        for seed in meta["seeds"]:
            yield seed, _joined([one.load(seed) for one in read], place)

    target = output or reports_path(data, dataset, str(meta["mechanism"]), float(meta["epsilon"]))
    if any(target.exists() and target.samefile(path) for path in files):
        raise OptionError(f"{target} is one of the files to merge: name another --output")
    if graph.node_ids is None:
        meta["nodes_hash"] = nodes_hash(graph)
    write_reports(target, runs(), meta, graph.node_ids, new=is_real(meta))
    return target


def _check(one: AnswersFile, first: AnswersFile) -> None:
    """Refuse what is no report of people who are named, or of another collection."""
    if one.meta["kind"] != "reports" or one.ids is None:
        raise ArtifactError(
            f"{one.path} does not say whose reports it holds; merge what `ldp perturb --input` writes on devices"
        )
    for key in _SAME:
        was, now = plain(first.meta.get(key)), plain(one.meta.get(key))
        if was != now:
            what = "other features" if key == FEATURES_HASH else f"{key} {now} where {first.path} has {was}"
            raise ArtifactError(f"{one.path} has {what}; reports of one collection are alike in all but their people")
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
    meta["ledger"] = [_renamed(row, first, release, meta) for row in first["ledger"]]
    shape = [[(row["what"], row["epsilon"]) for row in one.meta["ledger"]] for one in read]
    if any(plain(other) != plain(shape[0]) for other in shape):
        raise ArtifactError("the files' people have not spent the same; `ldp ledger FILES...` says what each has")
    return meta


def _renamed(row: Mapping[str, Any], first: Mapping[str, Any], release: str, meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry of the ledger: that of the reports themselves is of the merged release."""
    if row["source"] != first["release"]:
        return dict(row)
    mean = {"mean": meta["epsilon_mean"]} if meta.get("epsilon_mean") is not None else {}
    return {**row, **mean, "source": release}


def _joined(parts: Sequence[Reports], place: NDArray[np.int64]) -> Reports:
    """Return all reports, in the order of their nodes."""
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


def words(path: Path, meta: Mapping[str, Any]) -> str:
    """Return one line for people."""
    files = counted(meta["merged"], "file")
    return (
        f"{path}: {counted(meta['nodes'], 'report')} of {files} in the order of {meta['dataset']}, "
        f"{meta['mechanism']} at epsilon {epsilon_text(float(meta['epsilon']))}; "
        f"{Ledger.from_json(meta['ledger']).text()}"
    )
