r"""Private links: each person randomises her own list of neighbours before it leaves her device.

link_mechanism(name, epsilon, nodes, report="lower", **options)   a mechanism; link_names() says which there are
Neighbours.of_edges(edges, nodes)                                 everybody's list, from a graph
Neighbours.of_person(person, neighbours, nodes)                   one person's list, on her device
mechanism.perturb(neighbours, rng)                                what leaves the devices: `LinkReports`
mechanism.meta(), link_mechanism_of(meta)                         the public facts, and the mechanism again

The server's side, from reports to an estimated graph, is `graphldp.server.links`.

Every mechanism has the budget `epsilon` of one list: two lists that differ in one bit give reports within e^epsilon.
A relationship is a bit of two lists, its two ends'. How often it is seen is the option `report`:

- `lower` (the default): a pair's bit is sent by the end with the larger number alone;
- `both`: both ends send it.

A noisy degree is of the whole list either way, so both ends' degrees tell of a relationship. `relationship_epsilon` is
what is lost about one relationship in everything that leaves all devices; it stands in `meta()` beside `epsilon`.
A whole list, that is (nodes - 1) bits, is never claimed to be protected.
"""

from __future__ import annotations

from typing import Any

# Importing a mechanism's module registers it: this is the list of all of them.
from graphldp.client.links import blink, dprr, laplace, rr
from graphldp.client.links.base import (
    MOST_LINKS,
    REPORTS,
    LinkMechanism,
    LinkReports,
    Neighbours,
    allow_more,
    link_names,
    lookup_link,
)
from graphldp.client.randomiser import plain

__all__ = [
    "MOST_LINKS",
    "REPORTS",
    "LinkMechanism",
    "LinkReports",
    "Neighbours",
    "allow_more",
    "blink",
    "dprr",
    "laplace",
    "link_mechanism",
    "link_mechanism_of",
    "link_names",
    "lookup_link",
    "rr",
]


def link_mechanism(name: str, epsilon: float, nodes: int, report: str = "lower", **options: Any) -> LinkMechanism:
    """Return the mechanism of that name for lists of neighbours among so many people.

    Args:
        name: a registered one, see `link_names`.
        epsilon: the budget of a bit of one person's list, noisy degree included.
        nodes: how many people there are; that is public.
        report: `lower` or `both`, see above.
        options: the mechanism's own: `degree_share` of `blink` and `dprr`, `grid` of `laplace-bits`.
    """
    built: LinkMechanism = lookup_link(name).build(
        epsilon=plain(epsilon),
        nodes=plain(nodes),
        report=report,
        options={key: plain(value) for key, value in options.items()},
    )
    return built


def link_mechanism_of(meta: dict[str, Any]) -> LinkMechanism:
    """Return the mechanism that the metadata of reports describes."""
    return link_mechanism(
        meta["mechanism"], float(meta["epsilon"]), int(meta["nodes"]), meta["report"], **meta["options"]
    )
