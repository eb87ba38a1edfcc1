"""The curators by name, as a row of a table asks for them: who sees all links, and makes another graph of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import ArrayLike

from graphldp.errors import OptionError
from graphldp.randomness import Source
from graphldp.registry import Registry, check_options
from graphldp.server.links import LinkEstimate
from graphldp.trusted.hrg import edge_rr, priv_hrg, private_people
from graphldp.trusted.noise import edgerand, lapgraph

__all__ = ["CURATORS", "RHO", "check_curator", "curated"]

CURATORS: Registry[Callable[..., LinkEstimate]] = Registry(
    "curator", {"edgerand": edgerand, "edgerr": edge_rr, "lapgraph": lapgraph, "privhrg": priv_hrg}
)
RHO = 1.0  # the share of links that are private, unless it is said
_GIVEN = ("edges", "nodes", "epsilon", "rng", "private")


def check_curator(name: str, options: Mapping[str, Any]) -> None:
    """Refuse options that a curator has not, before it is given any link."""
    known = [key for key in inspect.signature(CURATORS[name]).parameters if key not in _GIVEN]
    check_options(name, options, (*known, *(["rho"] if _declares(name) else [])))
    rho = options.get("rho", RHO)
    if isinstance(rho, bool) or not isinstance(rho, int | float) or not 0 < rho <= 1:
        raise OptionError(
            f"{name}: rho, the share of links that are private, must be above 0 and at most 1; got {rho!r}"
        )


def _declares(name: str) -> bool:
    """Return whether a curator keeps the links of people who are not private as they are."""
    return "private" in inspect.signature(CURATORS[name]).parameters


def curated(
    name: str, edges: ArrayLike, nodes: int, epsilon: float, rng: Source, options: Mapping[str, Any]
) -> LinkEstimate:
    """Return the graph that a curator makes of these links, at this epsilon of one of them.

    Where some people alone are private, they are declared so until a share `rho` of the links is among them.
    """
    check_curator(name, options)
    own = dict(options)
    if _declares(name):
        own["private"] = private_people(edges, nodes, float(own.pop("rho", RHO)), rng)
    return CURATORS[name](edges, nodes, epsilon, rng, **own)
