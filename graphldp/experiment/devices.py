"""What the devices of a graph run, and what a release of their reports says of itself."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphldp import __version__
from graphldp.client import VectorMechanism, names, option_names, protocol
from graphldp.errors import OptionError
from graphldp.experiment.addresses import addressed
from graphldp.graph import Graph
from graphldp.jsonable import plain
from graphldp.ledger import ledger_from_meta, release_of

__all__ = [
    "budgeted_by_feature",
    "check_options",
    "device_for",
    "graph_facts",
    "hash_of_names",
    "nodes_hash",
    "refuse_parts",
    "release_meta",
]

_FIXED = ("name", "epsilon", "dimensions", "low", "high")


def device_for(graph: Graph, mechanism: str, epsilon: float, options: Mapping[str, Any]) -> VectorMechanism:
    """Return what every device of the graph runs; `options` are the mechanism's further ones."""
    check_options(mechanism, options)
    return protocol(mechanism, epsilon, graph.dimensions, graph.low, graph.high, **options)


def budgeted_by_feature() -> list[str]:
    """Return the mechanisms that share their budget out by scores of the features."""
    return [name for name in names("vector") if "importance" in option_names(name)]


def check_options(mechanism: str, options: Mapping[str, Any]) -> None:
    """Refuse further options that are none: what is given by itself, or declared with the data."""
    for key in _FIXED:
        if key in options:
            raise OptionError(
                f"{key} is no further option of {mechanism}, got {options[key]!r}: mechanism and epsilon are given by "
                "themselves, dimensions and range are declared with the data"
            )


def refuse_parts(plan: type[Any], options: Mapping[str, Any]) -> None:
    """Refuse what belongs to a method's plan of questions among the options of its mechanism."""
    for part in fields(plan):
        if part.name in options:
            raise OptionError(f"{part.name} is a part of the method: --set method.{part.name}={options[part.name]}")


def hash_of_names(nodes: int, names: Iterable[str]) -> str:
    """Return a hash of the nodes' names in their order, and of their number where they have none."""
    digest = hashlib.sha256(str(nodes).encode())
    for name in names:
        digest.update(b"\0" + name.encode())
    return "sha256:" + digest.hexdigest()


def nodes_hash(graph: Graph) -> str:
    """Return a hash of the nodes' names in their order: reports belong to a graph whose nodes are the same."""
    return hash_of_names(graph.nodes, graph.node_ids or ())


def graph_facts(graph: Graph, content: str, root: int) -> dict[str, Any]:
    """Return what a release says of its people; `content` is the hash of the graph that they are in."""
    return {
        "dataset": graph.name,
        "input": content,
        "nodes_hash": nodes_hash(graph),
        "random": addressed(root),
    }


def _release(meta: Mapping[str, Any], level: NDArray[np.int32] | None) -> str:
    """Return what identifies a release: what shaped its draws, and, of real reports, a number that nobody else has.

    Draws of one release with the same seed are the same answers; two collections from the same people are two. The
    number also keeps anybody from confirming a guess of the people's levels.
    """
    nonce = "" if meta["random"]["reproducible"] else os.urandom(16).hex()
    levels = "" if level is None else hashlib.sha256(level.astype(np.int64).tobytes()).hexdigest()
    return release_of(plain(meta), levels, nonce)


def release_meta(
    device: VectorMechanism,
    nodes: int,
    seeds: Sequence[int],
    facts: Mapping[str, Any],
    *,
    level: NDArray[np.int32] | None = None,
    ledger: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return what a release of reports says of itself.

    `facts` are those of its people, and in what it differs from an ordinary release; they are a part of what identifies
    it. `ledger` is what was spent before it.
    """
    meta = {
        "kind": "reports",
        **device.meta(),
        "epsilon_exact": device.privacy_loss(),
        "nodes": nodes,
        "seeds": list(seeds)[:1] if device.base.deterministic else list(seeds),
        "deterministic": device.base.deterministic,
        "library": __version__,
        **facts,
    }
    if level is not None and "budgets" in meta:
        # Public levels are policy, so the users' mean is known exactly. Private ones are nobody's to average: the
        # distribution says nothing of levels that were given, so the mean is bounded by the largest budget.
        if device.parts:
            meta["epsilon_mean"] = float(np.mean(np.asarray(meta["budgets"])[level - 1]))
        else:
            meta["epsilon_mean"] = meta["epsilon_max"]
    meta["release"] = _release(meta, level)
    meta["ledger"] = [*ledger, *ledger_from_meta([meta]).as_json()]
    return meta
