"""Reports on links read through a block model: against direct formulas, and what they are worth."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

from graphldp.client import protocol
from graphldp.client.links import LinkReports, Neighbours, link_mechanism
from graphldp.datasets.synthetic import synthetic
from graphldp.errors import OptionError
from graphldp.graph import Graph
from graphldp.randomness import generator
from graphldp.server import blocks
from graphldp.server.blocks import Seen, block_evidence, class_links, seen_links
from graphldp.server.evidence import EvidenceSetting, make_evidence
from graphldp.server.links import estimate_links


def people(nodes: int = 400, **changes: Any) -> Graph:
    return synthetic(**{"nodes": nodes, "classes": 3, "degree": 8.0, "dimensions": 8, "structure": 0.8, **changes})


def told(graph: Graph, name: str, epsilon: float, report: str = "lower", seed: int = 0) -> LinkReports:
    device = link_mechanism(name, epsilon, graph.nodes, report)
    return device.perturb(Neighbours.of_edges(graph.edges, graph.nodes), generator(seed, "blocks"))


def shares_of(graph: Graph, sure: float = 0.9) -> np.ndarray:
    out = np.full((graph.nodes, graph.classes), (1 - sure) / (graph.classes - 1))
    out[np.arange(graph.nodes), graph.labels] = sure
    return out


def directly(seen: Seen, shares: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Return the log evidence pair by pair, with the exact logarithm for pairs that nobody reported as well."""
    nodes, classes = shares.shape
    ones = np.zeros((nodes, nodes), dtype=int)
    ones[seen.low, seen.high] = ones[seen.high, seen.low] = seen.ones
    out = np.zeros((nodes, classes))
    for i, j in itertools.permutations(range(nodes), 2):
        ratio = np.exp(seen.odds * (2 * ones[i, j] - seen.each))
        for c, other in itertools.product(range(classes), repeat=2):
            chance = seen.degrees[i] * seen.degrees[j] * rates[c, other]
            out[i, c] += shares[j, other] * np.log1p(chance * (ratio - 1))
    return out


@pytest.mark.parametrize("report", ["lower", "both"])
@pytest.mark.parametrize("name", ["rr", "blink"])
def test_the_evidence_is_the_sum_over_all_pairs(name: str, report: str) -> None:
    graph = people(40, degree=4.0)
    seen = seen_links(told(graph, name, 2.5, report), graph)
    assert seen.each == (2 if report == "both" else 1)
    shares, rates = shares_of(graph), np.full((3, 3), 0.006) + 0.03 * np.eye(3)
    rates[0, 1] = rates[1, 0] = 0.015
    expected, found = directly(seen, shares, rates), block_evidence(seen, shares, rates)
    # Of first order in chances of some hundredths, and t_i t_j in steps of a tenth.
    np.testing.assert_allclose(found, expected, rtol=0.06, atol=0.06 * np.ptp(expected, axis=1).mean())


@pytest.mark.parametrize("report", ["lower", "both"])
def test_the_number_of_links_of_a_pair_is_unbiased(report: str) -> None:
    graph = people(30, degree=4.0)
    seen = seen_links(told(graph, "rr", 1.5, report), graph)
    flip = 1 / (1 + np.exp(1.5))
    every = dataclasses.replace(
        seen, ones=np.arange(1, seen.each + 1), low=np.arange(seen.each), high=np.arange(seen.each)
    )
    worth, silent = every.worth
    by_ones = np.array([silent, *worth])
    chances = {"lower": [flip, 1 - flip], "both": [flip**2, 2 * flip * (1 - flip), (1 - flip) ** 2]}[report]
    assert by_ones @ np.array(chances) == pytest.approx(1, abs=1e-12)  # of a link
    assert by_ones @ np.array(chances[::-1]) == pytest.approx(0, abs=1e-12)  # of none


def test_rates_are_those_of_the_graph_also_from_uncertain_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_RIDGE", 0.0)
    graph = people(900, degree=20.0)
    low, high = graph.edges
    truth = np.zeros((3, 3))
    np.add.at(truth, (graph.labels[low], graph.labels[high]), 1)
    truth = (truth + truth.T) / np.outer(*[np.bincount(graph.labels)] * 2)
    seen = seen_links(told(graph, "rr", 4.0), graph)
    seen = dataclasses.replace(seen, degrees=np.ones(graph.nodes))
    rng = np.random.default_rng(0)
    # Whose class is known with 70 % in fact, and is said to be.
    guess = np.where(rng.random(graph.nodes) < 0.7, graph.labels, (graph.labels + rng.integers(1, 3, graph.nodes)) % 3)
    unsure = np.full((graph.nodes, 3), 0.15)
    unsure[np.arange(graph.nodes), guess] = 0.7
    for shares, slack in ((shares_of(graph, 1.0), 0.1), (unsure, 0.25)):
        found = class_links(seen, shares)
        np.testing.assert_allclose(found, found.T, rtol=1e-9)
        assert np.diag(found) == pytest.approx(np.diag(truth), rel=slack)


def test_a_public_graph_is_seen_as_it_is() -> None:
    graph = people(60)
    seen = seen_links(None, graph)
    np.testing.assert_array_equal(np.stack([seen.low, seen.high]), graph.edges)
    assert seen.degrees.mean() == pytest.approx(1.0)
    assert seen.worth[0] == pytest.approx(np.ones(graph.edges.shape[1]), abs=1e-6)


@pytest.mark.parametrize("name", ["dprr", "laplace-bits"])
def test_reports_that_are_no_bits_are_refused_in_one_line(name: str) -> None:
    graph = people(40, degree=4.0)
    with pytest.raises(OptionError, match=rf"reported by blink or rr, got {name}") as found:
        seen_links(told(graph, name, 4.0), graph)
    assert "\n" not in str(found.value)


def setting(
    graph: Graph, reports: LinkReports | None, labels: np.ndarray, train: np.ndarray, chances: Any
) -> EvidenceSetting:
    known = dataclasses.replace(graph, labels=labels.astype(np.int32))
    if reports is not None:
        edges, weights = estimate_links(reports, "hybrid").edges()
        known = dataclasses.replace(known, edges=edges, weights=weights)
    nobody = protocol("null", 0.0, graph.dimensions, 0.0, 1.0)
    return EvidenceSetting.of(known, None, nobody, train, 3, chances=chances, links=reports)


def test_it_finds_classes_that_label_propagation_over_the_estimate_does_not() -> None:
    graph, train = people(800, degree=10.0, structure=0.9), np.arange(400)
    noisy = np.where(generator(1, "noise").random(800) < 0.6, graph.labels, (graph.labels + 1) % 3)
    given = setting(graph, told(graph, "blink", 4.0), noisy, train, (0.6, 0.2))
    right = {
        name: float((make_evidence(name).matrix(given)[400:, :3].argmax(axis=1) == graph.labels[400:]).mean())
        for name in ("blocks", "labels")
    }
    assert right["blocks"] > right["labels"] + 0.1, right


def test_the_own_label_is_no_evidence() -> None:
    graph = dataclasses.replace(people(90), edges=np.empty((2, 0), np.int32))
    train = np.arange(60)
    out = make_evidence("blocks").matrix(setting(graph, None, graph.labels, train, None))
    own = out[train, graph.labels[train]]
    assert np.abs(own - out[train].mean(axis=1)).max() < 0.05
