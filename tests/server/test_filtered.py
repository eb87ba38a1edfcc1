"""The factored form gives what the written-out one gives, in less memory."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from small_graphs import adjacency, estimate

from graphldp.client import protocol
from graphldp.errors import OptionError
from graphldp.server import Filtered, apply, hoa, kprop, nfr_after, normalised, ppr, rectify, vanishes

CALIBRATIONS = [kprop(0), kprop(3), hoa(4), ppr(0.2), kprop(2, before=1.0)]


@pytest.fixture(params=CALIBRATIONS, ids=lambda c: f"theta{len(c.coefficients)}-before{c.before}")
def filtered(request: pytest.FixtureRequest) -> Filtered:
    return Filtered.of(estimate(), request.param, normalised(adjacency("weighted"), convolution=0.3))


def test_products_are_those_of_the_dense_matrix(filtered: Filtered) -> None:
    rng = np.random.default_rng(0)
    h = filtered.dense().astype(float)
    weight, columns = rng.normal(size=(7, 3)), rng.normal(size=(12, 2))
    np.testing.assert_allclose(filtered.project(weight), h @ weight, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(filtered.adjoint(columns), h.T @ columns, rtol=1e-4, atol=1e-5)


def test_blocks_of_any_width_are_the_same_matrix(filtered: Filtered) -> None:
    whole = filtered.dense()
    for width in (1, 3, 7):
        memory = 4 * 3 * 12 * width
        assert filtered.width(memory) == width
        parts = list(filtered.blocks(memory))
        assert max(block.shape[1] for _, block in parts) == width
        assert [c.start for c, _ in parts] == list(range(0, 7, width))
        np.testing.assert_allclose(np.hstack([block for _, block in parts]), whole, rtol=1e-5, atol=1e-6)


def test_the_fill_is_filtered_with_the_deviations(filtered: Filtered) -> None:
    np.testing.assert_allclose(filtered.ground(), 0.5 * _filter(filtered, np.ones(12)), rtol=1e-5)


def _filter(filtered: Filtered, vector: np.ndarray) -> np.ndarray:
    total, power = np.zeros(12), vector
    for theta in filtered.calibration.coefficients:
        total += theta * power
        power = filtered.operator.astype(np.float64) @ power
    return total


def test_few_numbers_are_kept_sparse_and_many_are_not() -> None:
    operator = normalised(adjacency("plain"))
    for after in (0.0, 0.4, 0.8, 100.0):
        one = Filtered.of(estimate(), kprop(1, after=after), operator)
        whole = np.hstack([block for _, block in one.deviation_blocks()])
        share = np.count_nonzero(whole) / whole.size
        found = one.sparse(share)
        assert found is not None
        np.testing.assert_array_equal(found.toarray(), whole)
        assert share == 0 or one.sparse(share - 1e-9) is None


@pytest.mark.parametrize("name", ["mb", "pm"])
def test_a_threshold_vanishes_where_float32_does_not_see_it(name: str) -> None:
    operator, rng = normalised(adjacency("plain")), np.random.default_rng(0)
    device = protocol(name, 1.0, 60, 0.0, 1.0)
    reports = rectify(device.perturb(rng.integers(0, 2, (12, 60)).astype(float), rng))
    sizes = []
    for degree in (2.0, 4.0, 8.0, 16.0, 64.0):
        thresholded = nfr_after(hoa(8), device, 0.5, degree)
        with_it = Filtered.of(reports, thresholded, operator).dense()
        without = Filtered.of(reports, thresholded.but(after=0.0), operator).dense()
        change = np.abs(with_it - without).max() / np.sqrt(np.mean(without**2))
        sizes.append((vanishes(thresholded, device, operator), change))
    assert [gone for gone, _ in sizes] == sorted(gone for gone, _ in sizes)
    assert {gone for gone, _ in sizes} == {True, False}
    assert all(change < 2e-6 for gone, change in sizes if gone)
    assert all(change > 1e-7 for gone, change in sizes if not gone)
    assert not vanishes(hoa(8), device, operator)
    assert not vanishes(nfr_after(hoa(0), device, 0.5, 1e9), device, operator)


def test_thresholds_after_the_filter_do_not_commute_and_are_refused() -> None:
    one = Filtered.of(estimate(), kprop(1, after=0.1), normalised(adjacency("plain")))
    for product in (lambda: one.project(np.ones((7, 1))), lambda: one.adjoint(np.ones((12, 1)))):
        with pytest.raises(OptionError, match="linear"):
            product()


def test_a_limit_that_does_not_fit_is_told() -> None:
    operator = normalised(adjacency("plain"))
    with pytest.raises(OptionError, match="max_memory is 100; raise it"):
        list(Filtered.of(estimate(), kprop(1), operator).blocks(100))
    with pytest.raises(OptionError, match="limit is 1e-06 GB"):
        apply(estimate(), kprop(1), operator, max_memory=1e3)


BENCH = Path(__file__).resolve().parents[2] / "bench"
PEAK = """
    import numpy as np, scipy.sparse as sp
    from graphldp.server import Estimate, Filtered, dirichlet_energy, kprop, normalised
    from memory import peak

    rng = np.random.default_rng(0)
    nodes, dimensions = 6000, 20000
    ends = rng.integers(0, nodes, (2, 20000))
    adjacency = sp.coo_array((np.ones(20000), ends), shape=(nodes, nodes)).tocsr()
    operator = normalised(adjacency + adjacency.T)
    index = np.sort(rng.integers(0, dimensions // 2, (nodes, 2)), axis=1) * 2 + [0, 1]
    parts = (np.ones(2 * nodes, np.float32), index.ravel(), np.arange(0, 2 * nodes + 1, 2))
    estimate = Estimate(matrix=sp.csr_array(parts, shape=(nodes, dimensions)), fill=0.5)
    filtered = Filtered.of(estimate, kprop(4), operator)
    next(filtered.blocks())
    start = peak()
    filtered.project(np.ones((dimensions, 8)))
    filtered.adjoint(np.ones((nodes, 8)))
    total = sum(float(block[0].sum()) for _, block in filtered.blocks())
    print(4 * nodes * dimensions, peak() - start)
"""


@pytest.mark.slow
def test_nothing_of_size_n_x_d_is_made() -> None:
    command = [sys.executable, "-c", textwrap.dedent(PEAK)]
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=BENCH)
    dense, grown = map(int, run.stdout.split())
    assert dense > 450e6
    assert grown < dense / 8
