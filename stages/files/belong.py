"""Whether an artifact is of a graph: of its people in its order, its features, its range, and its very content.

Everything is compared by hash, and nothing is asked again of anybody: real reports are put into a graph's order, or the
graph is imported as it was declared to people.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphldp.errors import ArtifactError
from graphldp.experiment.devices import hash_of_names, nodes_hash
from graphldp.graph import Graph
from graphldp.jsonable import plain
from graphldp.ledger import epsilon_text
from graphldp.stages.files.artifacts import is_real
from graphldp.stages.files.graphs import graph_hash
from graphldp.stages.files.paths import graph_dir
from graphldp.stages.files.reports import ReportsMeta
from graphldp.stages.pages.wording import counted

__all__ = ["FEATURES_HASH", "asked_for", "check_graph", "features_hash", "other_features"]

# Of reports that were made from people's own files: a hash of the declared features, which are public.
FEATURES_HASH = "features_hash"


def features_hash(graph: Graph) -> str:
    """Return a hash of the features' names in their order, and of their number."""
    return hash_of_names(graph.dimensions, graph.feature_names or ())


def check_graph(
    path: Path, meta: Mapping[str, Any], graph: Graph, data: Path, remedy: str, *, content: bool = True
) -> None:
    """Refuse an artifact that is of another graph than the one under `data`.

    `remedy` says how one that was drawn from a seed is made again. Real reports are never made again. Without `content`
    only people, features and range have to be the graph's: somebody has named it.
    """
    real = is_real(meta)
    says = ReportsMeta.of(meta)
    other = other_features(says.dimensions, says.low, says.high, meta.get(FEATURES_HASH), graph)
    if other:
        raise ArtifactError(f"{path} is {other}; {_as_declared(graph) if real else remedy}")
    if says.nodes_hash != nodes_hash(graph):
        order = f"put them in its order with `ldp merge {path} --dataset {graph.name} --output FILE`"
        what = f"{path} holds reports of other nodes than the graph {graph.name} has, or in another order"
        raise ArtifactError(f"{what}; {order if real else remedy}")
    if content and not real and not _is_of(says.input, graph, data):
        raise ArtifactError(f"{path} was made from another graph than the {graph.name} that is there now; {remedy}")


def other_features(dimensions: int, low: float, high: float, names: str | None, graph: Graph) -> str:
    """Return in what declared features are not the graph's: number, range, or the hash of the names where it is known.

    Nothing is returned where they are the graph's.
    """
    if (dimensions, low, high) != (graph.dimensions, graph.low, graph.high):
        was = f"{counted(dimensions, 'feature')} in {low:g}..{high:g}"
        return f"of {was}, and the graph {graph.name} has {graph.dimensions:,} in {graph.low:g}..{graph.high:g}"
    if names not in (None, features_hash(graph)):
        return f"of other features, or of the same in another order, than the graph {graph.name} has"
    return ""


def _is_of(source: str | None, graph: Graph, data: Path) -> bool:
    """Return whether reports whose input has this hash are of the graph: of itself, or of its file of features."""
    if source is None:  # of several files
        return True
    if source == graph_hash(graph_dir(data, graph.name)):
        return True
    files = graph.provenance.get("files")
    if not isinstance(files, Mapping) or graph.provenance.get("dataset") != "own":
        return False
    features = files.get("features")
    return features is None or source == f"sha256:{features['sha256']}"


def _as_declared(graph: Graph) -> str:
    return (
        f"people's reports stay as they are: import {graph.name} with the features and the range that were declared to "
        "them (`ldp import --help`)"
    )


def asked_for(meta: Mapping[str, Any], path: Path, wanted: Mapping[str, Any]) -> None:
    """Refuse a file that was given by name and is of something else: what to say instead, and nothing to draw again."""
    for key in ("mechanism", "epsilon"):
        if key in wanted and meta.get(key) != plain(wanted[key]):
            has = epsilon_text(float(meta[key])) if key == "epsilon" else meta.get(key)
            got = epsilon_text(float(wanted[key])) if key == "epsilon" else wanted[key]
            raise ArtifactError(f"{path} has {key} {has} where {got} was asked for; say --{key} {has}")
    name = wanted["dataset"]
    if meta.get("dataset") != name:
        raise ArtifactError(
            f"{path} was made for {meta.get('dataset')!r}, not for {name!r}; if these are the people of {name}, name "
            f"it so with `ldp merge {path} --dataset {name} --output FILE`"
        )
