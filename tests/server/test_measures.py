"""Energies and errors against their definitions, and the theorems as figures."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from small_graphs import KINDS, adjacency, estimate

from graphldp.client import protocol
from graphldp.errors import DataError, OptionError
from graphldp.randomness import generator
from graphldp.server import (
    Filtered,
    apply,
    decay_rate,
    dirichlet_energy,
    energy_ratio,
    estimation_error,
    hoa,
    kprop,
    normalised,
    rectify,
)


def energy_by_hand(h: np.ndarray, matrix: np.ndarray) -> float:
    total = 0.0
    for i in range(len(h)):
        for j in range(len(h)):
            total += matrix[i, j] * float(((h[i] - h[j]) ** 2).sum())
    return total / len(h)


@pytest.mark.parametrize("kind", KINDS)
def test_energy_is_its_definition_at_every_stage(kind: str) -> None:
    matrix, one = adjacency(kind), estimate()
    operator = normalised(matrix)
    before = energy_by_hand(one.dense().astype(float), matrix.toarray())
    assert dirichlet_energy(one, matrix) == pytest.approx(before, rel=1e-5)
    assert dirichlet_energy(one.dense(), matrix) == pytest.approx(before, rel=1e-5)
    assert dirichlet_energy(one.deviations(), matrix) == pytest.approx(before, rel=1e-5)
    for calibration in (kprop(2), hoa(3, after=0.4)):
        filtered = Filtered.of(one, calibration, operator)
        after = energy_by_hand(filtered.dense().astype(float), matrix.toarray())
        assert dirichlet_energy(filtered, matrix) == pytest.approx(after, rel=1e-4)
        assert dirichlet_energy(filtered, matrix, max_memory=4 * 3 * 12) == pytest.approx(after, rel=1e-4)


def test_energy_of_a_directed_graph_and_of_agreement() -> None:
    matrix = sp.csr_array(np.array([[0.0, 2, 0], [0, 0, 1], [0, 0, 0]]))
    h = np.array([[1.0], [4.0], [4.0]])
    assert dirichlet_energy(h, matrix) == pytest.approx(2 * 9 / 3)
    assert dirichlet_energy(np.ones((12, 3)), adjacency("weighted")) == 0
    with pytest.raises(DataError, match="3 nodes"):
        dirichlet_energy(np.ones((4, 1)), matrix)


def test_the_energy_ratio_is_that_of_the_two_filters_depth_by_depth() -> None:
    matrix, one = adjacency("plain"), estimate()
    operator = normalised(matrix)
    high = np.array([dirichlet_energy(Filtered.of(one, hoa(k), operator), matrix) for k in (1, 2, 3, 4)])
    plain = np.array([dirichlet_energy(Filtered.of(one, kprop(k), operator), matrix) for k in (1, 2, 3, 4)])
    ratio = energy_ratio(one, operator, matrix, 4)
    np.testing.assert_allclose(ratio, np.cumsum(high) / np.cumsum(plain), rtol=1e-4)
    np.testing.assert_allclose(energy_ratio(one, operator, matrix, 4, max_memory=12 * 16), ratio, rtol=1e-4)
    assert ratio[0] == pytest.approx(1)
    with pytest.raises(OptionError, match="steps"):
        energy_ratio(one, operator, matrix, 0)


def test_theorem_4_holds_where_signs_alternate_and_fails_where_they_do_not() -> None:
    # On a bipartite graph S has the eigenvalue -1: SKA's energy never falls, the mean's cancels, the ratio goes to 0.
    ring = np.roll(np.eye(20), 1, axis=1)
    even = sp.csr_array(ring + ring.T)
    ratio = energy_ratio(estimate(nodes=20), normalised(even), even, 64)
    assert ratio[63] < 0.3 * ratio[3]
    # On a complete graph SKA smooths faster than the mean of all depths, and the ratio settles above 1.
    full = sp.csr_array(np.ones((8, 8)) - np.eye(8))
    ratio = energy_ratio(estimate(nodes=8), normalised(full), full, 256)
    assert 1.3 < ratio[127] <= ratio[255] < 1.02 * ratio[127]


def test_the_error_is_the_distance_to_the_clean_aggregate() -> None:
    operator, one = normalised(adjacency("plain")), estimate(fill=0.5)
    clean = np.random.default_rng(0).random((12, 7))
    for calibration in (kprop(2), hoa(2, before=1.0, after=0.2)):
        theirs = operator.toarray() @ clean
        theirs = operator.toarray() @ theirs if calibration.coefficients == (0, 0, 1) else theirs
        if calibration.after:
            theirs = (theirs + operator.toarray() @ theirs) / 2
        gap = apply(one, calibration, operator) - theirs
        error = estimation_error(Filtered.of(one, calibration, operator), clean)
        np.testing.assert_allclose(error.largest, np.abs(gap).max(axis=1), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(error.norm, np.linalg.norm(gap, axis=1), rtol=1e-4, atol=1e-5)
        assert error.root_mean_square == pytest.approx(np.sqrt((gap**2).sum() / 12), rel=1e-4)
        sparse = estimation_error(Filtered.of(one, calibration, operator), sp.csr_array(clean), max_memory=12 * 24)
        np.testing.assert_allclose(sparse.norm, error.norm, rtol=1e-5)
    with pytest.raises(DataError, match="shape"):
        estimation_error(Filtered.of(one, kprop(1), operator), clean[:, :3])


def test_one_mean_over_neighbours_errs_as_one_over_the_root_of_their_number() -> None:
    rng = generator(0, "stars")
    sizes = np.repeat([2, 8, 32, 128], 12)
    nodes = int(len(sizes) + sizes.sum())
    # Hubs that hear 2 to 128 nodes of their own, so that errors are independent.
    owners = np.repeat(np.arange(len(sizes)), sizes)
    leaves = np.arange(len(sizes), nodes)
    heard = sp.csr_array((np.ones(nodes - len(sizes)), (owners, leaves)), shape=(nodes, nodes))
    device = protocol("mb", 1.0, 40, 0.0, 1.0)
    x = rng.random((nodes, 40))
    one = rectify(device.perturb(x, rng))
    error = estimation_error(Filtered.of(one, kprop(1), normalised(heard, convolution=0)), x)
    rate = decay_rate(error.norm[: len(sizes)], sizes)
    assert rate == pytest.approx(-0.5, abs=0.06)
    with pytest.raises(DataError, match="two different degrees"):
        decay_rate([1.0, 2.0], [3, 3])
