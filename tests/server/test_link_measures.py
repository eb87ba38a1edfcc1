"""Measures of estimated graphs against dense matrices."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from graphldp.errors import DataError
from graphldp.randomness import generator
from graphldp.server.link_measures import adjacency_error, degree_distance, density, link_measures, walk_distances
from graphldp.server.links import LinkEstimate, symmetric


def test_measures_are_those_of_dense_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = generator(0, "measures")
    pairs = np.array(list(itertools.combinations(range(12), 2)))
    edges = pairs[rng.random(len(pairs)) < 0.3].T
    kept = pairs[rng.random(len(pairs)) < 0.3]
    kept = kept[(kept != 7).all(axis=1)]  # somebody without a link
    estimate = LinkEstimate(adjacency=symmetric(kept[:, 1] * 12 + kept[:, 0], rng.uniform(0.1, 1, len(kept)), 12))
    true, found = np.zeros((12, 12)), estimate.adjacency.toarray().astype(float)
    true[edges[0], edges[1]] = true[edges[1], edges[0]] = 1
    off = ~np.eye(12, dtype=bool)
    assert adjacency_error(estimate, edges) == pytest.approx(np.abs(true - found)[off].mean())
    assert density(estimate) == pytest.approx(found[off].mean())
    assert degree_distance(estimate, edges) == pytest.approx(
        np.abs(np.sort(true.sum(1)) - np.sort(found.sum(1))).mean()
    )

    def walk(matrix: np.ndarray) -> np.ndarray:
        total = matrix.sum(axis=1, keepdims=True)
        return np.divide(matrix, total, out=np.zeros_like(matrix), where=total > 0)

    one, two = walk(true), walk(found)
    expected = [
        np.sqrt(((np.linalg.matrix_power(one, k) - np.linalg.matrix_power(two, k)) ** 2).mean()) for k in range(1, 5)
    ]
    assert walk_distances(estimate, edges) == pytest.approx(expected)
    some = [2, 7]
    rows = np.sqrt(((one - two)[some] ** 2).mean())
    assert walk_distances(estimate, edges, hops=1, people=some) == pytest.approx([rows])
    told = link_measures(estimate, edges)
    both = len({tuple(p) for p in kept.tolist()} & {tuple(p) for p in edges.T.tolist()})
    assert told["recall"] == pytest.approx(both / edges.shape[1])
    assert told["precision"] == pytest.approx(both / len(kept))
    assert [told[f"walk_{k}"] for k in range(1, 5)] == pytest.approx(expected)
    monkeypatch.setattr("graphldp.server.link_measures._FULL", 2.0)  # the other way of multiplying
    assert walk_distances(estimate, edges) == pytest.approx(expected)
    with pytest.raises(DataError, match="at least 1 step"):
        walk_distances(estimate, edges, hops=0)


def test_the_true_graph_is_at_no_distance() -> None:
    edges = np.array([[0, 1], [1, 3]])
    same = LinkEstimate(adjacency=symmetric(edges[1] * 5 + edges[0], np.ones(2), 5))
    told = link_measures(same, edges)
    assert {told[key] for key in ("adjacency_error", "degree_distance", "walk_1", "walk_4")} == {0.0}
    assert told["recall"] == told["precision"] == 1.0
