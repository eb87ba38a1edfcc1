"""Every list of neighbours and every report of a few people, written out."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from graphldp.client.links import LinkMechanism, LinkReports, Neighbours

__all__ = ["bits_of", "every_list", "every_report", "graphs", "law", "reports_of"]


def graphs(nodes: int) -> Iterator[list[tuple[int, int]]]:
    """Yield the links of every graph."""
    pairs = list(itertools.combinations(range(nodes), 2))
    for chosen in itertools.product((False, True), repeat=len(pairs)):
        yield [pair for pair, there in zip(pairs, chosen, strict=True) if there]


def every_list(person: int, nodes: int) -> list[tuple[int, ...]]:
    """Return every list that a person may have."""
    others = [u for u in range(nodes) if u != person]
    return [c for size in range(nodes) for c in itertools.combinations(others, size)]


def bits_of(mechanism: LinkMechanism, person: int) -> list[int]:
    """Return of whom a person sends a bit."""
    return [u for u in range(mechanism.nodes) if u != person and (mechanism.report == "both" or u < person)]


def every_report(mechanism: LinkMechanism, person: int, reach: int = 0) -> list[tuple[int | None, tuple[int, ...]]]:
    """Return every report of bits, with every noisy degree from -reach to nodes + reach where there is one."""
    own = bits_of(mechanism, person)
    bits = [c for size in range(len(own) + 1) for c in itertools.combinations(own, size)]
    degrees: Any = range(-reach, mechanism.nodes + reach) if mechanism.degree_epsilon else [None]
    return [(d, b) for d in degrees for b in bits]


def reports_of(mechanism: LinkMechanism, person: int, degree: int | None, bits: tuple[int, ...]) -> LinkReports:
    """Return one person's report."""
    return LinkReports(
        nodes=mechanism.nodes,
        owners=np.array([person], np.int32),
        indptr=np.array([0, len(bits)]),
        indices=np.array(bits, np.int32),
        degree=None if degree is None else np.array([degree]),
        meta=mechanism.meta(),
    )


def law(
    mechanism: LinkMechanism, person: int, own: tuple[int, ...], degree: int | None, bits: tuple[int, ...]
) -> float:
    """Return the probability of a report by the formulas of the papers, bit by bit."""
    p = math.exp(mechanism.bit_epsilon) / (1 + math.exp(mechanism.bit_epsilon))
    out, q = 1.0, 1.0
    if degree is not None:
        r = math.exp(-mechanism.degree_epsilon)
        out *= (1 - r) / (1 + r) * r ** abs(degree - len(own))
    if mechanism.name == "dprr":
        d = degree or 0
        q = max(0.0, min(1.0, d / (d * (2 * p - 1) + (mechanism.nodes - 1) * (1 - p)))) if d > 0 else 0.0
    for u in bits_of(mechanism, person):
        one = q * (p if u in own else 1 - p)
        out *= one if u in bits else 1 - one
    return out


def lists(person: int, own: tuple[int, ...], nodes: int) -> Neighbours:
    """Return one person's list."""
    return Neighbours.of_person(person, np.array(own, dtype=np.int64), nodes)
