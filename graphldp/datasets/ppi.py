"""Protein interactions as GraphSAGE published them: 24 graphs in three parts, each node with a set of 121 labels.

Of each part (train, valid, test) there are PART_graph.json (nodes and links as networkx writes them, numbered from 0),
PART_feats.npy, PART_labels.npy (0 or 1) and PART_graph_id.npy, which says to which of the graphs a node belongs.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphldp.datasets.arrays import from_arrays
from graphldp.datasets.assemble import permutation
from graphldp.datasets.options import LabelledRange
from graphldp.errors import DataError, OptionError
from graphldp.graph import Graph

__all__ = ["FILES", "parse_ppi"]

_PARTS = ("train", "valid", "test")
FILES = tuple(f"{part}_{name}" for part in _PARTS for name in ("graph.json", "feats.npy", "labels.npy", "graph_id.npy"))


def parse_ppi(files: Mapping[str, bytes], *, name: str, options: LabelledRange, provenance: Mapping[str, Any]) -> Graph:
    """Return all graphs as one, with the parts that the files have them in.

    A node has the set of its labels, or one of them as its class, as `options` say. Links join nodes of one graph; as
    other readers of the format do, links that do not are left out.
    """
    features, edges, labels, parts, start = [], [], [], [], 0
    for number, part in enumerate(_PARTS):
        x, links, y = _part(files, part)
        features.append(x)
        edges.append(links + start)
        labels.append(y)
        parts.append(np.full(len(x), number, dtype=np.int8))
        start += len(x)
    if len({one.shape[1] for one in features}) > 1 or len({one.shape[1] for one in labels}) > 1:
        raise DataError("the three parts differ in how many features or labels they have")
    sets = np.concatenate(labels)
    if not np.isin(sets, (0, 1)).all():
        raise DataError("labels must each be 0 or 1")
    if options.label >= sets.shape[1]:
        raise OptionError(f"label must be in 0..{sets.shape[1] - 1}, or -1 for a set of all, got {options.label}")
    return from_arrays(
        name=name,
        features=np.concatenate(features),
        edges=np.concatenate(edges, axis=1),
        labels=sets if options.label < 0 else sets[:, options.label],
        value_range=(options.low, options.high),
        provenance=provenance,
        parts=np.concatenate(parts),
    )


def _part(files: Mapping[str, bytes], part: str) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[Any]]:
    """Return the features, links and labels of a part."""
    try:
        x, y, graph = (
            np.load(io.BytesIO(files[f"{part}_{name}.npy"]), allow_pickle=False)
            for name in ("feats", "labels", "graph_id")
        )
        listed = json.loads(files[f"{part}_graph.json"])
        ids = [node["id"] for node in listed["nodes"]]
        ends = [(link["source"], link["target"]) for link in listed["links"]]
    except KeyError as error:
        raise DataError(f"{part}: {error} is missing") from error
    except (ValueError, TypeError, EOFError) as error:
        raise DataError(f"{part}: a file is no PPI file ({error})") from error
    permutation(ids, f"the nodes of {part}_graph.json")
    if not (x.ndim == y.ndim == 2 and len(x) == len(y) == len(graph) == len(ids)):
        raise DataError(
            f"{part}: {len(ids)} nodes need as many rows of features, labels and graph ids, got {x.shape}, {y.shape} "
            f"and {graph.shape}"
        )
    pairs = np.array(ends, dtype=np.int64).reshape(-1, 2).T
    if pairs.size and not (pairs.min() >= 0 and pairs.max() < len(ids)):
        raise DataError(f"{part}: a link names a node outside 0..{len(ids) - 1}")
    return x, pairs[:, graph[pairs[0]] == graph[pairs[1]]], y
