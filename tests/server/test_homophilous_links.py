"""Links by how alike reported features are: the ratio by its definition, posteriors that come true, better links."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.isotonic import IsotonicRegression

from graphldp.client.links import LinkReports, Neighbours, link_mechanism
from graphldp.errors import DataError, OptionError
from graphldp.randomness import generator
from graphldp.server.links import estimate_links, reported_pairs
from graphldp.server.links_homophily import _similarities, _unit, homophilous_links, likeness_ratios, rising

NODES = 400
PAIRS = np.array(list(itertools.combinations(range(NODES), 2)))


def people(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return features of 4 groups, and links of which nine in ten are within them."""
    rng = generator(seed, "homophily")
    groups = np.arange(NODES) % 4
    features = rng.normal(size=(NODES, 12)) + 2.5 * np.eye(4)[groups] @ rng.normal(size=(4, 12))
    inside = groups[PAIRS[:, 0]] == groups[PAIRS[:, 1]]
    edges = PAIRS[rng.random(len(PAIRS)) < np.where(inside, 0.09, 0.0035)].T
    return features, edges


def sent(edges: np.ndarray, epsilon: float = 4.0, name: str = "rr", report: str = "lower") -> LinkReports:
    device = link_mechanism(name, epsilon, NODES, report=report)
    return device.perturb(Neighbours.of_edges(edges, NODES), generator(1, "homophily"))


def codes(edges: np.ndarray) -> np.ndarray:
    return edges[1].astype(np.int64) * NODES + edges[0]


def test_the_nearest_numbers_that_never_fall_are_those_of_scikit_learn() -> None:
    rng = generator(0, "rising")
    for size in (1, 2, 7, 40):
        values, weights = rng.normal(size=size), rng.uniform(0.1, 2, size)
        wanted = IsotonicRegression().fit_transform(np.arange(size), values, sample_weight=weights)
        np.testing.assert_allclose(rising(values, weights), wanted, atol=1e-12)


def test_similarities_are_cosines_and_nobody_without_features_is_alike() -> None:
    rng = generator(0, "cosine")
    dense = rng.normal(size=(5, 3))
    dense[2] = 0
    pairs = np.array([1 * 5 + 0, 3 * 5 + 1, 4 * 5 + 2])
    wanted = [dense[i] @ dense[j] / np.linalg.norm(dense[i]) / np.linalg.norm(dense[j]) for i, j in ((1, 0), (3, 1))]
    for form in (dense, sp.csr_array(dense)):
        np.testing.assert_allclose(_similarities(_unit(form, 5), pairs), [*wanted, 0.0], atol=1e-12)


@pytest.mark.parametrize("report", ["lower", "both"])
def test_the_ratio_is_found_through_the_flipped_bits(report: str) -> None:
    features, edges = people()
    reports = sent(edges, report=report)
    x, device = _unit(features, NODES), link_mechanism("rr", 4.0, NODES, report=report)
    pairs = codes(PAIRS.T)
    told = dict(zip(*(part.tolist() for part in reported_pairs(reports)), strict=True))
    ones = np.array([told.get(code, 0) for code in pairs.tolist()])  # of all pairs: those that nobody reported are 0
    every, ratios = likeness_ratios(x, pairs, ones, device, generator(2, "homophily"))
    there = every[np.isin(pairs, codes(edges))]
    share = np.bincount(every, minlength=len(ratios)) / len(every)
    true = np.bincount(there, minlength=len(ratios)) / len(there) / share
    assert true[-3:].mean() > 2
    assert (np.diff(ratios) >= 0).all()
    np.testing.assert_allclose(ratios, rising(true, share), atol=0.6)
    strangers = generator(3, "homophily").normal(size=features.shape)
    _, flat = likeness_ratios(_unit(strangers, NODES), *reported_pairs(reports), device, generator(2, "homophily"))
    assert np.abs(flat - 1).max() < 0.6


def test_likeness_finds_more_true_links_and_its_chances_come_true() -> None:
    features, edges = people()
    reports, true = sent(edges), set(codes(edges).tolist())
    found = homophilous_links(reports, features, generator(2, "homophily"))
    plain = estimate_links(reports, "hybrid")

    def hits(estimate: object) -> tuple[int, int, float]:
        kept, weights = estimate.edges()  # type: ignore[attr-defined]
        return sum(code in true for code in codes(kept).tolist()), kept.shape[1], float(weights.sum())

    (alike, many, promised), (by_degree, few, _) = hits(found), hits(plain)
    assert abs(many - few) < 0.25 * few
    assert alike / many > by_degree / few + 0.05
    assert alike == pytest.approx(promised, rel=0.1)
    assert found.adjacency.diagonal().sum() == 0
    told = set(reported_pairs(reports)[0].tolist())
    assert set(codes(found.edges()[0]).tolist()) <= told


def test_features_that_say_nothing_leave_the_posterior_of_the_degrees() -> None:
    _, edges = people()
    reports = sent(edges, 6.0, "blink")
    found = homophilous_links(reports, np.zeros((NODES, 3)), generator(2, "homophily"))
    assert set(found.facts["likeness"]) == {1.0}
    plain = estimate_links(reports, "hybrid")
    assert found.links == pytest.approx(plain.links, rel=0.1)


def test_no_link_at_all_and_bad_input() -> None:
    features, edges = people()
    none = homophilous_links(sent(np.empty((2, 0), np.int64), 40.0), features, generator(2, "homophily"))
    assert none.links == 0
    rng = generator(2, "homophily")
    for call, error, text in (
        (lambda: homophilous_links(sent(edges, name="dprr"), features, rng), OptionError, "blink or rr, got dprr"),
        (lambda: homophilous_links(sent(edges), features[:5], rng), DataError, "as many rows"),
        (lambda: homophilous_links(sent(edges), features, rng, max_memory=1e3), OptionError, "raise --max-memory"),
    ):
        with pytest.raises(error, match=text):
            call()
