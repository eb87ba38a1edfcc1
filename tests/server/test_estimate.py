"""The server's estimate: what is stored, what the rest counts as, and that it is built from the reports alone."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

from graphldp.client import Reports, from_meta, lookup, names, protocol
from graphldp.client.laws.sets import SetValued
from graphldp.client.registry import NO_FEATURE
from graphldp.errors import OptionError
from graphldp.randomness import generator
from graphldp.server import rectify


def reports_of(name: str, epsilon: float = 1.0, dimensions: int = 7, nodes: int = 30, **options: object) -> Reports:
    budget = {"null": 0.0, "identity": np.inf}.get(name, epsilon)
    x = generator(0, "x").uniform(-1, 1, (nodes, dimensions))
    if issubclass(lookup(name), SetValued):
        x, options = (x > 0.3).astype(float), {"low": 0.0, **options}
    return protocol(name, budget, dimensions, **options).perturb(sp.csr_array(x), generator(1, name))


@pytest.mark.parametrize("name", [name for name in names() if lookup(name).kind not in NO_FEATURE])
def test_the_matrix_holds_the_reported_coordinates_and_the_fill_stands_for_the_rest(name: str) -> None:
    sent = reports_of(name)
    estimate, reports = rectify(sent), from_meta(dict(sent.meta)).unfold(sent)
    assert estimate.matrix.shape == (30, 7)
    assert estimate.matrix.dtype == np.float32
    # One length for all rows, also where nodes reported different numbers of dimensions.
    assert (np.diff(estimate.matrix.indptr) == reports.m).all()
    assert estimate.matrix.has_canonical_format
    dense = estimate.dense()
    if reports.index is not None:
        rest = np.ones((30, 7), dtype=bool)
        rows = np.repeat(np.arange(30), (reports.index >= 0).sum(axis=1))
        rest[rows, reports.index[reports.index >= 0]] = False
        assert (dense[rest] == np.float32(estimate.fill)).all()
    np.testing.assert_allclose(estimate.deviations().toarray() + np.float32(estimate.fill), dense, rtol=1e-6)


def test_a_sign_counts_as_the_inverse_of_the_law_by_hand() -> None:
    meta = protocol("mb", 2.0, 5, low=0.0, high=1.0, m=2).meta()
    reports = Reports(
        index=np.array([[0, 3], [1, 4]], dtype=np.int32), value=np.array([[1, -1], [-1, -1]], dtype=np.int8), meta=meta
    )
    size = 5 / 2 * 0.5 / np.tanh(2.0 / 2 / 2)
    expected = np.full((2, 5), 0.5)
    expected[0, 0] += size
    expected[0, 3] -= size
    expected[1, [1, 4]] -= size
    np.testing.assert_allclose(rectify(reports).dense(), expected, rtol=1e-6)
    zero = dataclasses.replace(reports, meta={**meta, "options": {"fill": "zero"}})
    assert rectify(zero).fill == 0.0
    expected_zero = np.zeros((2, 5))
    plus, minus = 0.5 + 0.5 / np.tanh(0.5), 0.5 - 0.5 / np.tanh(0.5)
    expected_zero[0, 0], expected_zero[0, 3], expected_zero[1, 1], expected_zero[1, 4] = 2.5 * np.array(
        [plus, minus, minus, minus]
    )
    np.testing.assert_allclose(rectify(zero).dense(), expected_zero, rtol=1e-6)


def test_identity_reports_come_back_as_they_are() -> None:
    x = generator(0, "x").uniform(-1, 1, (30, 7))
    np.testing.assert_allclose(rectify(reports_of("identity")).dense(), x, rtol=1e-6)
    sparse = sp.random_array((40, 50), density=0.05, rng=np.random.default_rng(0), format="csr")
    reports = protocol("identity", np.inf, 50).perturb(sparse, generator(0))
    assert reports.index is not None
    np.testing.assert_allclose(rectify(reports).dense(), sparse.toarray(), rtol=1e-6)


@pytest.mark.parametrize("dimensions", [7, 30])
def test_shorter_reports_are_filled_up_with_unreported_dimensions_at_the_fill(dimensions: int) -> None:
    reports = reports_of("ppm-public", 4.0, dimensions)
    device = protocol("ppm-public", 4.0, dimensions)
    used = (reports.index >= 0).sum(axis=1)
    np.testing.assert_array_equal(used, [device.m_of(int(level)) for level in reports.level])
    assert len(set(used.tolist())) > 1
    estimate = rectify(reports)
    deviations = estimate.deviations()
    assert (np.diff(deviations.indptr) == reports.m).all()
    for node in range(30):
        row = slice(deviations.indptr[node], deviations.indptr[node + 1])
        own = np.isin(deviations.indices[row], reports.index[node])
        assert own.sum() == used[node]
        assert (deviations.data[row][own] != 0).all()
        assert (deviations.data[row][~own] == 0).all()


def test_the_estimate_of_a_block_is_that_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pm", "ppm-safe", "featurerr", "lp"):
        reports = reports_of(name, 5.0)
        whole = rectify(reports).dense()
        monkeypatch.setattr("graphldp.client.vector._ESTIMATES", 11)
        np.testing.assert_array_equal(rectify(reports).dense(), whole)
        monkeypatch.undo()


def test_reports_that_name_no_known_mechanism_are_refused() -> None:
    reports = reports_of("mb")
    with pytest.raises(OptionError, match="unknown mechanism 'bm'"):
        rectify(dataclasses.replace(reports, meta={**reports.meta, "mechanism": "bm"}))
    with pytest.raises(OptionError, match="has no option"):
        rectify(dataclasses.replace(reports, meta={**reports.meta, "options": {"fixed": [1]}}))


def test_no_report_gives_an_empty_estimate() -> None:
    for name in ("mb", "lp", "ppm-safe"):
        built = protocol(name, 1.0, 4)
        estimate = rectify(built.perturb(np.zeros((0, 4)), generator(0)))
        assert estimate.dense().shape == (0, 4)
