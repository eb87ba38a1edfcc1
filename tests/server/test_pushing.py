"""Backward push against the exact PageRank, against the algorithm as a plain loop, and within its bound."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from small_graphs import KINDS, adjacency, dense_shift, estimate

from graphldp.errors import MissingExtraError, OptionError
from graphldp.server import Estimate, Filtered, apply, normalised, ppr, push, pushing
from graphldp.server.pushing import backward_push

pytest.importorskip("numba")


def exact(matrix: np.ndarray, x: np.ndarray, decay: float, r: float) -> np.ndarray:
    """sum_k alpha (1-alpha)^k (D^(r-1) A D^-r)^k x, by a direct solve."""
    return decay * np.linalg.solve(np.eye(len(matrix)) - (1 - decay) * dense_shift(matrix, r), x)


def by_hand(matrix: np.ndarray, column: np.ndarray, decay: float, r: float, r_max: float) -> np.ndarray:
    """Algorithm 3, one push at a time, with the receiver's degree."""
    degree = matrix.sum(axis=1)
    scale = np.where(degree > 0, degree, 1.0) ** r
    residue, reserve = column / scale, np.zeros(len(matrix))
    while (np.abs(residue) > r_max).any():
        v = int(np.argmax(np.abs(residue) > r_max))
        moved, residue[v] = residue[v], 0.0
        reserve[v] += decay * moved
        for u in np.flatnonzero(matrix[:, v]):
            residue[u] += (1 - decay) * matrix[u, v] / degree[u] * moved
    return scale * reserve


@pytest.mark.parametrize(("kind", "r"), list(itertools.product(KINDS, (0.0, 0.3, 0.5, 1.0))))
def test_the_result_is_within_the_bound_that_r_max_implies(kind: str, r: float) -> None:
    matrix, one = adjacency(kind), estimate(fill=0.0)
    degree = np.asarray(matrix.sum(axis=1)).ravel()
    scale = np.where(degree > 0, degree, 1.0) ** r
    operator = normalised(matrix, convolution=r)
    truth = exact(matrix.toarray(), one.dense().astype(float), 0.2, r)
    for r_max in (1.0, 0.1, 1e-3):
        calibration = push(0.2, r_max, convolution=r)
        ours = Filtered.of(one, calibration, operator, degree=degree).dense()
        slack = 1e-5 * np.abs(truth).max()  # float32 of S and of the result
        assert (np.abs(ours - truth) <= r_max * scale[:, None] + slack).all()
        hand = by_hand(matrix.toarray(), one.dense()[:, 2].astype(float), 0.2, r, r_max)
        assert (np.abs(hand - truth[:, 2]) <= r_max * scale + 1e-9).all()


def test_a_coarse_threshold_leaves_something_and_a_fine_one_does_not() -> None:
    matrix, one = adjacency("plain"), estimate(fill=0.0)
    operator = normalised(matrix)
    truth = exact(matrix.toarray(), one.dense().astype(float), 0.2, 0.5)
    errors = [np.abs(apply(one, push(0.2, r_max), operator) - truth).max() for r_max in (1.0, 0.1, 1e-5)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[0] > 0.05
    assert errors[2] < 1e-4


def test_one_push_is_one_line_of_the_algorithm() -> None:
    # A path 0 - 1 - 2, mass 1 at its middle, and a threshold that only the middle exceeds.
    matrix = np.array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]])
    column = sp.csc_array(np.array([[0.0], [1.0], [0.0]]))
    operator = normalised(sp.csr_array(matrix), convolution=0)
    out, pushes = backward_push(column, operator, decay=0.4, r_max=np.full(3, 0.9))
    assert pushes == 1
    np.testing.assert_allclose(out, [[0, 0.4, 0]], rtol=1e-6)
    # Each end hears the middle alone, so it receives all of 0.6 and not half of it.
    out, pushes = backward_push(column, operator, decay=0.4, r_max=np.full(3, 0.5))
    assert pushes == 3
    np.testing.assert_allclose(out[0, [0, 2]], 0.4 * 0.6, rtol=1e-6)


def test_nothing_above_the_threshold_is_no_work() -> None:
    one = estimate(fill=0.0)
    out, pushes = backward_push(
        sp.csc_array(one.deviations()), normalised(adjacency("plain")), decay=0.2, r_max=np.full(12, 1e9)
    )
    assert pushes == 0
    assert not out.any()


def test_columns_do_not_touch_each_other() -> None:
    operator, whole = normalised(adjacency("plain")), sp.csc_array(estimate(fill=0.0).deviations())
    limit = np.full(12, 0.01)
    together, _ = backward_push(whole, operator, decay=0.2, r_max=limit)
    for column in range(7):
        alone, _ = backward_push(whole[:, [column]], operator, decay=0.2, r_max=limit)
        assert np.array_equal(alone[0], together[column])


def test_signed_residues_and_blocks_and_the_fill() -> None:
    operator = normalised(adjacency("loops"))
    for fill in (0.0, 0.5):
        one = estimate(fill=fill)
        fine = Filtered.of(one, push(0.2, 1e-6, tolerance=1e-9), operator)
        expected = apply(one, ppr(0.2, 1e-9), operator)
        np.testing.assert_allclose(fine.dense(), expected, rtol=1e-4, atol=1e-4)
        narrow = np.hstack([block for _, block in fine.blocks(4 * 3 * 12 * 2)])
        np.testing.assert_allclose(narrow, fine.dense(), rtol=1e-6)


def test_a_larger_graph_with_hubs() -> None:
    rng = np.random.default_rng(0)
    nodes = 400
    ends = np.minimum(rng.zipf(1.6, (2, 3000)) - 1, nodes - 1)
    matrix = sp.coo_array((np.ones(3000), ends), shape=(nodes, nodes)).tocsr()
    matrix = sp.csr_array(((matrix + matrix.T) > 0).astype(float))
    x = sp.random_array((nodes, 5), density=0.02, rng=rng, data_sampler=lambda size: rng.normal(0, 100, size))
    one = Estimate(matrix=sp.csr_array(x, dtype=np.float32), fill=0.0)
    truth = exact(matrix.toarray(), one.dense().astype(float), 0.1, 0.5)
    ours = apply(one, push(0.1, 0.05), normalised(matrix))
    degree = np.maximum(np.diff(matrix.indptr), 1)
    assert (np.abs(ours - truth) <= 0.05 * np.sqrt(degree)[:, None] * (1 + 1e-4) + 1e-4).all()
    assert np.abs(ours - truth).max() > 1e-3  # it did stop early


def test_without_numba_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    pushing._kernel.cache_clear()
    try:
        with pytest.raises(MissingExtraError, match=r"graphldp\[fast\].*ppr"):
            apply(estimate(), push(0.2, 0.1), normalised(adjacency("plain")))
    finally:
        pushing._kernel.cache_clear()


@pytest.mark.parametrize(
    ("decay", "r_max", "words"), [(0.0, 1.0, "decay"), (1.0, 1.0, "decay"), (0.1, 0.0, "never ends")]
)
def test_options_out_of_range_are_refused(decay: float, r_max: float, words: str) -> None:
    columns = sp.csc_array(estimate().deviations())
    with pytest.raises(OptionError, match=words):
        backward_push(columns, normalised(adjacency("plain")), decay=decay, r_max=np.full(12, r_max))
