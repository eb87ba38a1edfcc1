"""Each filter against its dense formula; options, registry, metadata."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
import scipy.sparse as sp
from small_graphs import KINDS, adjacency, dense_shift, estimate, graph

from graphldp.errors import ArtifactError, DataError, OptionError
from graphldp.server import (
    Calibration,
    Filtered,
    apply,
    filter_entry,
    filter_names,
    flexprop,
    hoa,
    kprop,
    make_filter,
    none,
    normalised,
    ppr,
    push,
    residual,
    shift,
)
from graphldp.server.filters import ppr_terms

NORMS = [0.0, 0.3, 0.5, 1.0]


@pytest.fixture(params=list(itertools.product(KINDS, NORMS)), ids=lambda p: f"{p[0]}-r{p[1]}")
def case(request: pytest.FixtureRequest) -> tuple[np.ndarray, sp.csr_array, np.ndarray]:
    """Return the dense S of the formula, the library's, and the estimate as a dense matrix."""
    kind, r = request.param
    matrix = adjacency(kind)
    return dense_shift(matrix.toarray(), r), normalised(matrix, convolution=r), estimate().dense().astype(float)


def test_the_operator_is_its_formula(case: tuple) -> None:
    dense, operator, _ = case
    np.testing.assert_allclose(operator.toarray(), dense, rtol=1e-6)
    assert operator.dtype == np.float32
    assert operator.has_sorted_indices


def test_kprop(case: tuple) -> None:
    dense, operator, x = case
    for steps in (0, 1, 3):
        expected = np.linalg.matrix_power(dense, steps) @ x
        np.testing.assert_allclose(apply(estimate(), kprop(steps), operator), expected, rtol=1e-4, atol=1e-5)


def test_hoa_is_the_algorithm_of_the_paper(case: tuple) -> None:
    dense, operator, x = case
    steps = 4
    power, total = x, np.zeros_like(x)
    for _ in range(steps):
        power = dense @ power
        total += power
    np.testing.assert_allclose(apply(estimate(), hoa(steps), operator), total / steps, rtol=1e-4, atol=1e-5)


def test_ppr_is_within_its_tolerance_of_the_exact_solve(case: tuple) -> None:
    dense, operator, x = case
    alpha, tolerance = 0.2, 1e-3
    exact = alpha * np.linalg.solve(np.eye(len(dense)) - (1 - alpha) * dense, x)
    # The bound is entry by entry, in units of degree^r; here the same in the largest ratio of two nodes.
    result = apply(estimate(), ppr(alpha, tolerance), operator)
    reach = (
        np.abs(np.linalg.solve(np.eye(len(dense)) - (1 - alpha) * dense, np.eye(len(dense)))).sum(axis=1).max() * alpha
    )
    assert np.abs(result - exact).max() <= tolerance * reach * np.abs(x).max() * 1.01
    finer = apply(estimate(), ppr(alpha, 1e-7), operator)
    np.testing.assert_allclose(finer, exact, rtol=1e-4, atol=1e-4)
    assert np.abs(result - exact).max() > 10 * np.abs(finer - exact).max()


def test_the_tolerance_cuts_at_the_first_power_that_keeps_it() -> None:
    for alpha, tolerance in ((0.1, 1e-4), (0.15, 1e-3), (0.5, 1e-2), (0.9, 0.5), (0.5, 0.125)):
        last = ppr_terms(alpha, tolerance)
        assert (1 - alpha) ** (last + 1) <= tolerance * (1 + 1e-12)
        assert last == 0 or (1 - alpha) ** last > tolerance
        rest = 1 - sum(ppr(alpha, tolerance).coefficients)
        assert rest == pytest.approx((1 - alpha) ** (last + 1), abs=1e-12)


def test_residual_connections_are_their_recursions(case: tuple) -> None:
    dense, operator, x = case
    steps, beta = 5, 0.3
    to_input, to_previous = x, x
    for _ in range(steps):
        to_input = (1 - beta) * dense @ to_input + beta * x
        to_previous = (1 - beta) * dense @ to_previous + beta * to_previous
    close = {"rtol": 1e-4, "atol": 1e-5}
    np.testing.assert_allclose(apply(estimate(), residual(steps, beta), operator), to_input, **close)
    ours = apply(estimate(), residual(steps, beta, source="previous"), operator)
    np.testing.assert_allclose(ours, to_previous, **close)


@pytest.mark.parametrize("kind", KINDS)
def test_flexprop_is_the_weighted_mean_over_neighbours_and_the_node_itself(kind: str) -> None:
    matrix = adjacency(kind)
    levels = np.array([1, 5, 2, 3, 1, 4, 2, 2, 5, 1, 3, 4], dtype=float)
    dense, x = matrix.toarray(), estimate().dense().astype(float)
    h = x
    for _ in range(2):
        out = np.zeros_like(h)
        for i, row in enumerate(dense):
            weight = row * levels
            weight[i] += levels[i]  # PPGNN's N(v) holds v
            out[i] = weight @ h / weight.sum()
        h = out
    calibration = flexprop(2)
    operator = normalised(matrix, convolution=0, self_loops=calibration.self_loops, weights=levels)
    np.testing.assert_allclose(apply(estimate(), calibration, operator), h, rtol=1e-4, atol=1e-5)
    # Only the ratios of weights count, down to inverse variances of 1e-30.
    tiny = normalised(matrix, convolution=0, self_loops=True, weights=levels * 1e-30)
    np.testing.assert_allclose(tiny.toarray(), operator.toarray(), rtol=1e-6)


def test_inverse_variance_weights_have_the_least_variance() -> None:
    matrix = adjacency("plain")
    rng = np.random.default_rng(0)
    variance = rng.uniform(1, 50, 12)

    def noise(weights: np.ndarray | None) -> np.ndarray:
        operator = normalised(matrix, convolution=0, weights=weights).toarray().astype(float)
        return operator**2 @ variance

    best = noise(1 / variance)
    several = np.diff(matrix.indptr) > 1
    for other in (None, 1 / np.sqrt(variance), rng.uniform(0.1, 1, 12)):
        assert (best <= noise(other) + 1e-9).all()
        assert (best[several] < noise(other)[several]).any()


def test_self_loops_are_added_once_to_everybody() -> None:
    matrix = adjacency("plain")
    operator = normalised(matrix, self_loops=True).toarray()
    np.testing.assert_allclose(operator, dense_shift(matrix.toarray() + np.eye(12), 0.5), rtol=1e-6)


def test_an_edge_that_stands_twice_counts_with_both_weights_and_as_one_neighbour() -> None:
    twice = sp.csr_array((np.ones(3), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    operator = normalised(twice, convolution=0.5)
    assert operator.nnz == 2
    np.testing.assert_allclose(operator.toarray(), dense_shift(np.array([[0.0, 2], [1, 0]]), 0.5), rtol=1e-6)


def test_a_directed_edge_lets_its_row_hear_its_column() -> None:
    matrix = sp.csr_array(np.array([[0.0, 1, 1], [0, 0, 1], [0, 0, 0]]))
    np.testing.assert_allclose(normalised(matrix, convolution=0).toarray(), [[0, 0.5, 0.5], [0, 0, 1], [0, 0, 0]])


def test_an_isolated_node_hears_nobody_and_keeps_only_its_own_share() -> None:
    operator = normalised(adjacency("plain"))
    x = estimate().dense()
    assert (apply(estimate(), kprop(2), operator)[-1] == 0).all()
    assert (apply(estimate(), hoa(2), operator)[-1] == 0).all()
    np.testing.assert_allclose(apply(estimate(), ppr(0.25), operator)[-1], 0.25 * x[-1], rtol=1e-6)
    np.testing.assert_allclose(apply(estimate(), residual(3, 0.1), operator)[-1], 0.1 * x[-1], rtol=1e-5)


def test_steps_0_changes_nothing() -> None:
    operator = normalised(adjacency("plain"))
    for calibration in (none(), kprop(0), hoa(0), residual(0), flexprop(0)):
        np.testing.assert_allclose(apply(estimate(), calibration, operator), estimate().dense(), rtol=1e-6)
        assert calibration.steps == 0


def test_relabelling_the_nodes_permutes_the_result() -> None:
    matrix, order = adjacency("weighted"), np.random.default_rng(3).permutation(12)
    one = estimate()
    moved = type(one)(matrix=sp.csr_array(one.matrix[order]), fill=one.fill)
    there = normalised(sp.csr_array(matrix[order][:, order]))
    for calibration in (kprop(3), hoa(3), ppr(0.2)):
        ours = apply(one, calibration, normalised(matrix))[order]
        np.testing.assert_allclose(apply(moved, calibration, there), ours, rtol=1e-4, atol=1e-5)


def test_the_graphs_operator_is_that_of_its_adjacency() -> None:
    matrix = adjacency("plain")
    small = graph(np.zeros((12, 3)), matrix, np.zeros(12), 1)
    for calibration in (kprop(2), kprop(2, normalization="mean"), kprop(2, convolution=0.8), kprop(2, self_loops=True)):
        expected = normalised(matrix, convolution=calibration.r, self_loops=calibration.self_loops)
        assert np.array_equal(calibration.operator(small).toarray(), expected.toarray())
    assert np.array_equal(shift(small, "mean").toarray(), normalised(matrix, convolution=0).toarray())
    weights = np.arange(1.0, 13)
    for loops in (True, False):
        expected = normalised(matrix, convolution=0, self_loops=loops, weights=weights)
        chosen = flexprop(2) if loops else flexprop(2, self_loops=False)
        assert np.array_equal(chosen.operator(small, weights).toarray(), expected.toarray())
    with pytest.raises(OptionError, match="needs one weight per node"):
        flexprop(2).operator(small)
    with pytest.raises(OptionError, match="takes no node weights"):
        kprop(2).operator(small, weights)


def test_every_registered_filter_is_built_by_its_name_and_survives_json() -> None:
    options = {name: {"steps": 3} for name in ("kprop", "hoa", "residual", "flexprop")}
    assert set(filter_names()) == {"none", "kprop", "hoa", "ppr", "push", "residual", "flexprop"}
    for name in filter_names():
        calibration = make_filter(name, **options.get(name, {}))
        stored = json.loads(json.dumps(calibration.meta()))
        assert Calibration.from_meta(stored) == calibration, name
        assert filter_entry(name).summary
    assert make_filter("hoa", steps=4, after=2.0) == hoa(4).but(after=2.0)


def test_metadata_of_five_parts_is_still_read_and_strange_parts_are_refused() -> None:
    old = {"coefficients": [0.0, 1.0], "normalization": "symmetric", "self_loops": False, "before": 0.0, "after": 0.0}
    assert Calibration.from_meta(old) == kprop(1)
    with pytest.raises(ArtifactError, match="sharpness"):
        Calibration.from_meta({**old, "sharpness": 3})


def test_names_and_options_that_do_not_exist_are_told() -> None:
    with pytest.raises(OptionError, match=r"unknown filter 'hoaa'; did you mean 'hoa'\?.*flexprop"):
        make_filter("hoaa")
    with pytest.raises(OptionError, match=r"filter ppr has no option 'steps'; it has: decay, tolerance"):
        make_filter("ppr", steps=3)
    with pytest.raises(OptionError, match="filter kprop needs steps"):
        make_filter("kprop")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: kprop(-1), "steps"),
        (lambda: kprop(True), "steps"),
        (lambda: hoa(1.5), "steps"),
        (lambda: hoa(2, self_loops=True), "without self-loops"),
        (lambda: ppr(0.0), "decay"),
        (lambda: ppr(float("nan")), "decay"),
        (lambda: ppr(0.1, 0), "tolerance"),
        (lambda: push(r_max=0), "r_max"),
        (lambda: residual(2, 1.5), "strength"),
        (lambda: residual(2, source="output"), "source"),
        (lambda: flexprop(2, weighting="none"), "weighting"),
        (lambda: flexprop(2, normalization="symmetric"), "weighted mean"),
        (lambda: kprop(2, convolution=1.2), "convolution"),
        (lambda: kprop(2, normalization="rows"), "normalization"),
        (lambda: kprop(2, before=float("nan")), "before"),
        (lambda: kprop(2, shrinkage="hard"), "shrinkage"),
        (lambda: kprop(2, shrinkage="dropout", before=1.0), "dropout"),
        (lambda: kprop(2, r_max=1.0), "decay"),
        (lambda: Calibration(coefficients=()), "coefficients"),
        (lambda: Calibration(coefficients=(float("nan"),)), "coefficients"),
    ],
)
def test_options_out_of_range_are_refused(make: object, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        make()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda a: normalised(a[:5]), "square"),
        (lambda a: normalised(-a), "negative"),
        (lambda a: normalised(a, convolution=0, weights=np.ones(3)), "12 weights"),
        (lambda a: normalised(a, convolution=0, weights=-np.ones(12)), "node weights"),
        (lambda a: Filtered.of(estimate(), kprop(1), sp.csr_array((3, 3))), "12 x 12"),
    ],
)
def test_data_that_do_not_fit_are_refused(make: object, words: str) -> None:
    with pytest.raises(DataError, match=words):
        make(adjacency("plain"))


def test_node_weights_are_for_the_mean_alone() -> None:
    with pytest.raises(OptionError, match="weighted mean"):
        normalised(adjacency("plain"), convolution=0.5, weights=np.ones(12))


@pytest.mark.parametrize("decay", [0.1, 0.3, 0.9])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-4])
def test_the_short_polynomial_is_as_near_as_it_says(decay: float, tolerance: float) -> None:
    short = ppr(decay, tolerance, expansion="chebyshev")
    grid = np.linspace(-1, 1, 4001)
    values = np.polynomial.polynomial.polyval(grid, short.coefficients)
    assert np.abs(values - decay / (1 - (1 - decay) * grid)).max() <= tolerance
    assert len(short.coefficients) <= len(ppr(decay, tolerance).coefficients)
    one_less = np.polynomial.chebyshev.poly2cheb(short.coefficients)
    if len(one_less) > 1:  # of the least degree: without its last term the bound is broken
        rest = 1 - decay
        ratio = (1 - np.sqrt(1 - rest**2)) / rest
        assert one_less[-1] + one_less[-1] * ratio / (1 - ratio) > tolerance


def test_which_polynomial_is_taken() -> None:
    assert len(ppr(0.1, 1e-4).coefficients) == 88
    assert len(ppr(0.1, 1e-4, expansion="auto").coefficients) == 21
    assert ppr(0.02, 1e-4, expansion="auto") == ppr(0.02, 1e-4)
    with pytest.raises(OptionError, match="float32 cannot add up the Chebyshev polynomial"):
        ppr(0.02, 1e-4, expansion="chebyshev")
    with pytest.raises(OptionError, match="must be one of power, chebyshev, auto; got 'taylor'"):
        ppr(expansion="taylor")
