"""Links estimated from reports: against brute-force Bayes, the beta-model, and what every estimate has to be."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from graphldp.client.links import LinkReports, Neighbours, link_mechanism, link_names
from graphldp.errors import DataError, OptionError
from graphldp.randomness import generator
from graphldp.server.links import LinkEstimate, estimate_links, link_estimators, reported_pairs
from graphldp.server.links_beta import fit_beta

EVERY = [(name, way, report) for name in link_names() for way in link_estimators(name) for report in ("lower", "both")]


def random_graph(nodes: int, links: int, seed: int = 0) -> np.ndarray:
    """Return links of which a few people have many."""
    rng = generator(seed, "links", nodes)
    weight = 1 / (1.0 + np.arange(nodes))
    pairs = np.array(list(itertools.combinations(range(nodes), 2)))
    chance = weight[pairs[:, 0]] * weight[pairs[:, 1]]
    return pairs[rng.choice(len(pairs), links, replace=False, p=chance / chance.sum())].T


def reported(name: str, report: str, *, epsilon: float = 2.0, nodes: int = 60, links: int = 150) -> LinkReports:
    built = link_mechanism(name, epsilon, nodes, report)
    return built.perturb(Neighbours.of_edges(random_graph(nodes, links), nodes), generator(1, name, report))


def check(estimate: LinkEstimate, nodes: int) -> None:
    matrix = estimate.adjacency
    assert matrix.shape == (nodes, nodes)
    assert abs(matrix - matrix.T).max() == 0 if matrix.nnz else True
    assert not matrix.diagonal().any()
    assert matrix.has_sorted_indices
    assert matrix.dtype == np.float32
    if matrix.nnz:
        assert 0 < matrix.data.min() <= matrix.data.max() <= 1
    edges, weights = estimate.edges()
    assert (edges[0] < edges[1]).all()
    assert (np.diff(edges[0].astype(int) * nodes + edges[1]) > 0).all()
    assert len(weights) == estimate.links == edges.shape[1] == estimate.facts["links"]


@pytest.mark.parametrize(("name", "way", "report"), EVERY)
def test_an_estimate_is_a_symmetric_graph_with_weights_and_without_loops(name: str, way: str, report: str) -> None:
    check(estimate_links(reported(name, report), way), 60)


@pytest.mark.parametrize(("name", "way", "report"), EVERY)
def test_isolated_people_stay_and_an_empty_graph_is_one(name: str, way: str, report: str) -> None:
    built = link_mechanism(name, 30.0, 20, report)
    one = built.perturb(Neighbours.of_edges(np.array([[3], [8]]), 20), generator(0, "one", name))
    found = estimate_links(one, way)
    check(found, 20)
    if way not in ("soft", "hybrid"):
        assert found.edges()[0].tolist() in ([[3], [8]], [[], []])
    nobody = built.perturb(Neighbours.of_edges(np.empty((2, 0), int), 20), generator(0, "nobody", name))
    check(estimate_links(nobody, way), 20)


@pytest.mark.parametrize("report", ["lower", "both"])
@pytest.mark.parametrize("name", ["blink", "rr"])
def test_the_posterior_is_that_of_brute_force_bayes_over_all_graphs_of_four(name: str, report: str) -> None:
    nodes = 4
    built = link_mechanism(name, 1.2, nodes, report)
    pairs = list(itertools.combinations(range(nodes), 2))
    keep = math.exp(built.bit_epsilon) / (1 + math.exp(built.bit_epsilon))
    for seed in range(12):
        graph = Neighbours.of_edges(np.array([[0, 1], [1, 3]]), nodes)
        sent = built.perturb(graph, generator(seed, name, report))
        bits = {
            (int(o), u): u in sent.indices[sent.indptr[o] : sent.indptr[o + 1]]
            for o in range(nodes)
            for u in range(nodes)
            if u != o and (report == "both" or u < o)
        }
        if sent.degree is None:
            # As the server computes it, to the last bit: half sums may stand right between two whole numbers.
            flip, each = 1 / (1 + np.exp(built.bit_epsilon)), 2 if report == "both" else 1
            sums = [sum(v for pair, v in bits.items() if k in pair) / each for k in range(nodes)]
            degree = np.rint((np.array(sums) - (nodes - 1) * flip) / (1 - 2 * flip))
        else:
            degree = sent.degree
        prior = fit_beta(degree).chances()
        total, with_pair = 0.0, np.zeros(len(pairs))
        for there in itertools.product((0, 1), repeat=len(pairs)):
            chance = math.prod(prior[p] if t else 1 - prior[p] for p, t in zip(pairs, there, strict=True))
            truth = dict(zip(pairs, there, strict=True))
            for (o, u), bit in bits.items():
                chance *= keep if bit == truth[min(o, u), max(o, u)] else 1 - keep
            total += chance
            with_pair += chance * np.array(there)
        posterior = with_pair / total
        soft = estimate_links(sent, "soft").adjacency.toarray()
        np.testing.assert_allclose([soft[p] for p in pairs], posterior, rtol=1e-5)
        hard = estimate_links(sent, "hard").adjacency.toarray()
        np.testing.assert_array_equal([hard[p] for p in pairs], posterior > 0.5)
        hybrid = estimate_links(sent, "hybrid")
        assert hybrid.links == round(posterior.sum())
        assert hybrid.facts["expected_links"] == pytest.approx(posterior.sum())
        kept = hybrid.adjacency.toarray()
        chosen = np.array([kept[p] for p in pairs])
        np.testing.assert_allclose(chosen[chosen > 0], posterior[chosen > 0], rtol=1e-5)
        if hybrid.links:
            assert posterior[chosen > 0].min() >= np.sort(posterior)[::-1][hybrid.links - 1] - 1e-7


@pytest.mark.parametrize("epsilon", [0.3, 2.0, 6.0])
@pytest.mark.parametrize("report", ["lower", "both"])
def test_hybrid_keeps_the_rounded_sum_of_posteriors_and_the_likeliest(epsilon: float, report: str) -> None:
    sent = reported("blink", report, epsilon=epsilon, nodes=90, links=300)
    soft = estimate_links(sent, "soft")
    weights = np.sort(soft.edges()[1].astype(np.float64))[::-1]
    hybrid = estimate_links(sent, "hybrid")
    assert hybrid.links == round(hybrid.facts["expected_links"])
    assert hybrid.facts["expected_links"] == pytest.approx(weights.sum(), rel=1e-5)
    np.testing.assert_allclose(np.sort(hybrid.edges()[1])[::-1], weights[: hybrid.links], rtol=1e-6)
    hard = estimate_links(sent, "hard")
    assert hard.links == (weights > 0.5).sum()


def test_the_beta_model_of_known_chances_is_found_again() -> None:
    own = generator(0, "beta").normal(-1.0, 1.0, 40)
    chance = 1 / (1 + np.exp(-(own[:, None] + own)))
    np.fill_diagonal(chance, 0)
    model = fit_beta(chance.sum(axis=1), rounds=2000, tolerance=1e-12)
    np.testing.assert_allclose(model.beta[model.level], own, atol=1e-6)
    np.testing.assert_allclose(model.chances(), chance, atol=1e-6)
    assert model.residual <= 1e-12
    np.testing.assert_allclose(model.expected_degrees()[model.level], chance.sum(axis=1), rtol=1e-6)


def test_people_of_one_degree_share_a_level_and_degrees_are_clipped() -> None:
    model = fit_beta([-7.0, 1.0, 3.0, 3.0, 99.0, 8.0])
    assert model.degree.tolist() == [1.0, 3.0, 4.0]
    assert model.level.tolist() == [0, 0, 1, 1, 2, 2]
    assert model.rounds <= 200
    assert np.isfinite(model.beta).all()
    with pytest.raises(DataError, match="finite degree"):
        fit_beta([1.0, math.nan])
    with pytest.raises(OptionError, match="rounds >= 1"):
        fit_beta([1.0, 2.0], rounds=0)


def test_reported_links_of_both_ends_count_half_each() -> None:
    built = link_mechanism("rr", 50.0, 5, "both")
    sent = built.perturb(Neighbours.of_edges(np.array([[0, 1], [2, 4]]), 5), generator(0, "half"))
    kept = sent.indices.copy()
    dropped = LinkReports(
        nodes=5, owners=sent.owners, indptr=np.minimum(sent.indptr, 3), indices=kept[:3], meta=sent.meta
    )
    assert estimate_links(sent).edges()[1].tolist() == [1.0, 1.0]
    assert estimate_links(dropped).edges()[1].tolist() == [1.0, 0.5]
    pairs, ones = reported_pairs(dropped)
    assert pairs.tolist() == [10, 21]
    assert ones.tolist() == [2, 1]


@pytest.mark.parametrize("report", ["lower", "both"])
def test_top_k_keeps_the_largest_sums(report: str) -> None:
    sent = reported("laplace-bits", report, epsilon=1.0, nodes=30, links=60)
    dense = np.zeros((30, 30))
    assert sent.value is not None
    dense[sent.owners[sent.rows()], sent.indices] = sent.value
    pairs = np.array(list(itertools.combinations(range(30), 2)))
    sums = (dense + dense.T)[pairs[:, 0], pairs[:, 1]] / (2 if report == "both" else 1)
    wanted = round(sums.sum())
    best = {tuple(p) for p in pairs[np.argsort(-sums, kind="stable")[:wanted]]}
    found = estimate_links(sent).edges()[0]
    assert {tuple(p) for p in found.T} == best


def test_a_better_budget_gives_a_better_graph() -> None:
    true = {tuple(p) for p in np.sort(random_graph(90, 300), axis=0).T}
    for name in ("blink", "dprr", "rr"):
        shares = []
        for epsilon in (1.0, 4.0, 12.0):
            found = estimate_links(reported(name, "lower", epsilon=epsilon, nodes=90, links=300)).edges()[0]
            shares.append(len(true & {tuple(p) for p in found.T}) / max(1, len(true | {tuple(p) for p in found.T})))
        assert shares[0] < shares[1] < shares[2], name
        assert shares[2] > 0.9


def test_what_would_not_fit_is_refused_with_what_to_do() -> None:
    sent = reported("blink", "lower")
    with pytest.raises(OptionError, match="use hybrid, which keeps the likeliest"):
        estimate_links(sent, "soft", max_memory=1e5)
    for way in ("hybrid", "hard", "reported"):
        with pytest.raises(OptionError, match=r"spend more on links, or allow more with --link-option most=\d\.\de\d$"):
            estimate_links(sent, way, max_memory=100.0)
    with pytest.raises(OptionError, match="did you mean 'hybrid'"):
        estimate_links(sent, "hybird")
    alone: Any = link_mechanism("rr", 1.0, 9).perturb(Neighbours.of_person(3, [1], 9), generator(0, "alone"))
    with pytest.raises(DataError, match="1 of 9 came"):
        estimate_links(alone)
