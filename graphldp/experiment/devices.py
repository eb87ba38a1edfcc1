"""What the devices of a graph run, and what a release of their reports says of itself."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphldp import __version__
from graphldp.client import Reports, VectorMechanism, protocol
from graphldp.client.directed import DirectedMechanism
from graphldp.errors import OptionError
from graphldp.experiment.addresses import addressed
from graphldp.graph import Graph
from graphldp.jsonable import plain
from graphldp.ledger import ledger_from_meta, release_of
from graphldp.randomness import Source

__all__ = [
    "PUBLIC_LEVELS",
    "Given",
    "check_options",
    "device_for",
    "draw",
    "graph_facts",
    "hash_of_names",
    "nodes_hash",
    "refuse_parts",
    "release_meta",
    "reports_meta",
]

PUBLIC_LEVELS = ("ppm-public", "pldp")
_FIXED = ("name", "epsilon", "dimensions", "low", "high")


def device_for(graph: Graph, mechanism: str, epsilon: float, options: Mapping[str, Any]) -> VectorMechanism:
    """Return what every device of the graph runs; `options` are the mechanism's further ones."""
    check_options(mechanism, options)
    return protocol(mechanism, epsilon, graph.dimensions, graph.low, graph.high, **options)


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
            raise OptionError(f"{part.name} is a part of the method: --set denoise.{part.name}={options[part.name]}")


def hash_of_names(nodes: int, names: Iterable[str]) -> str:
    """Return a hash of the nodes' names in their order, and of their number where they have none."""
    digest = hashlib.sha256(str(nodes).encode())
    for name in names:
        digest.update(b"\0" + name.encode())
    return "sha256:" + digest.hexdigest()


def nodes_hash(graph: Graph) -> str:
    """Return a hash of the nodes' names in their order: reports belong to a graph whose nodes are the same."""
    return hash_of_names(graph.nodes, graph.node_ids or ())


def draw(
    features: Any,
    device: VectorMechanism,
    sources: Mapping[int, Source],
    level: NDArray[np.int32] | None = None,
    directed: Mapping[int, DirectedMechanism] | None = None,
) -> Iterator[tuple[int, Reports]]:
    """Yield each seed's reports. A mechanism without randomness yields one for all of them."""
    for count, (seed, source) in enumerate(sources.items()):
        if device.base.deterministic and count:
            return
        yield seed, (directed[seed] if directed else device).perturb(features, source, level)


def graph_facts(graph: Graph, content: str, root: int) -> dict[str, Any]:
    """Return what a release says of its people; `content` is the hash of the graph that they are in."""
    return {
        "dataset": graph.name,
        "input": content,
        "nodes_hash": nodes_hash(graph),
        "random": addressed(root),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A mechanism, the levels it was given, and what its options have cost already."""

    device: VectorMechanism
    level: NDArray[np.int32] | None = None
    ledger: tuple[Mapping[str, Any], ...] = ()
    directed: Mapping[int, DirectedMechanism] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def of(self, seed: int) -> VectorMechanism | DirectedMechanism:
        """Return what a seed's devices run."""
        return self.directed[seed] if self.directed else self.device

    def meta(self) -> dict[str, Any]:
        """Return the mechanism's metadata; of a directed round with every seed's ranking among its options."""
        out = self.device.meta()
        if self.directed is not None:
            own = {str(seed): one.meta()["options"] for seed, one in self.directed.items()}
            rho = next(iter(own.values()))["rho"]
            rankings = {seed: options["ranking"] for seed, options in own.items()}
            out["options"] = {**out["options"], "rho": rho, "rankings": rankings}
        return out


def _release(meta: Mapping[str, Any], level: NDArray[np.int32] | None) -> str:
    """Return what identifies a release: what shaped its draws, and, of real reports, a number that nobody else has.

    Draws of one release with the same seed are the same answers; two collections from the same people are two. The
    number also keeps anybody from confirming a guess of the people's levels.
    """
    nonce = "" if meta["random"]["reproducible"] else os.urandom(16).hex()
    levels = "" if level is None else hashlib.sha256(level.astype(np.int64).tobytes()).hexdigest()
    return release_of(plain(meta), levels, nonce)


def reports_meta(
    graph: Graph,
    content: str,
    device: VectorMechanism,
    *,
    seeds: Sequence[int],
    root: int,
    after: Mapping[str, Any] | None = None,
    further: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return what the Reports artifact of these devices would say of itself, for who keeps none.

    `after` is the same of the round before, for the second of two. `further` are facts in which a release differs from
    an ordinary one; they are a part of what identifies it.
    """
    ledger = () if after is None else tuple(after["ledger"])
    rounds = {} if after is None else {"after": after["release"]}
    facts = {**graph_facts(graph, content, root), **rounds, **(further or {})}
    return release_meta(Given(device=device, ledger=ledger), graph.nodes, seeds, facts)


def release_meta(given: Given, nodes: int, seeds: Sequence[int], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a release of reports says of itself."""
    device = given.device
    meta = {
        "kind": "reports",
        **given.meta(),
        "epsilon_exact": device.privacy_loss(),
        "nodes": nodes,
        "seeds": list(seeds)[:1] if device.base.deterministic else list(seeds),
        "deterministic": device.base.deterministic,
        "library": __version__,
        **facts,
    }
    if given.level is not None and "budgets" in meta:
        # Public levels are policy, so the users' mean is known exactly. Private ones are nobody's to average: the
        # distribution says nothing of levels that were given, so the mean is bounded by the largest budget.
        public = device.name in PUBLIC_LEVELS
        meta["epsilon_mean"] = (
            float(np.mean(np.asarray(meta["budgets"])[given.level - 1])) if public else meta["epsilon_max"]
        )
    meta["release"] = _release(meta, given.level)
    meta["ledger"] = [*given.ledger, *ledger_from_meta([meta]).as_json()]
    return meta
