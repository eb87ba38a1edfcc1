"""Label propagation against its dense formula, and that nobody finds her own label in her own row."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from small_graphs import KINDS, adjacency

from graphldp.errors import DataError, OptionError
from graphldp.server import normalised
from graphldp.server.propagation import class_shares, cross_fitted, fitted_power, fold_of, log_evidence, spread, walks

LABELS = np.array([0, 1, 2, 0, 1, 2, 0, 1, -1, -1, -1, -1])
TRAIN = np.arange(8)


def one_hot(labels: np.ndarray, classes: int = 3) -> np.ndarray:
    out = np.zeros((len(labels), classes), dtype=np.float32)
    seen = np.flatnonzero(labels >= 0)
    out[seen, labels[seen]] = 1
    return out


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("decay", [0.1, 0.6])
def test_spread_is_the_polynomial(kind: str, decay: float) -> None:
    operator = normalised(adjacency(kind))
    dense, start = operator.toarray().astype(float), one_hot(LABELS).astype(float)
    expected = (1 - decay) ** 5 * np.linalg.matrix_power(dense, 5) @ start
    for k in range(5):
        expected += decay * (1 - decay) ** k * np.linalg.matrix_power(dense, k) @ start
    assert np.allclose(spread(operator, one_hot(LABELS), decay=decay, steps=5), expected, atol=1e-6)
    limit = decay * np.linalg.solve(np.eye(12) - (1 - decay) * dense, start)
    assert np.allclose(spread(operator, one_hot(LABELS), decay=decay, steps=400), limit, atol=1e-5)


def test_walks_are_powers() -> None:
    operator = normalised(adjacency("plain"), convolution=0.0)
    found = walks(operator, one_hot(LABELS), 3)
    for k, one in enumerate(found, start=1):
        assert np.allclose(
            one, np.linalg.matrix_power(operator.toarray().astype(float), k) @ one_hot(LABELS), atol=1e-6
        )
    assert len(found) == 3


def test_cross_fitting_is_propagation_without_the_own_fold() -> None:
    operator = normalised(adjacency("plain"))
    folds = fold_of(TRAIN, 12, 3, np.random.default_rng(0))

    def spreading(start: np.ndarray) -> list[np.ndarray]:
        return [spread(operator, start, decay=0.2, steps=6), *walks(operator, start, 2)]

    found = cross_fitted(spreading, LABELS, TRAIN, 3, folds)
    assert len(found) == 3
    for node in range(12):
        kept = np.where((folds == folds[node]) & (np.arange(12) < 8), -1, LABELS) if node < 8 else LABELS
        for one, expected in zip(found, spreading(one_hot(kept)), strict=True):
            assert np.allclose(one[node], expected[node], atol=1e-6), node


@pytest.mark.parametrize("folds", [2, 3, 100])
def test_nobodys_row_holds_her_own_label(folds: int) -> None:
    """Change one training label: her own row stays, somebody else's moves."""
    operator = normalised(adjacency("plain"))
    where = fold_of(TRAIN, 12, folds, np.random.default_rng(1))

    def rows(labels: np.ndarray) -> np.ndarray:
        return cross_fitted(lambda start: [spread(operator, start, decay=0.2, steps=6)], labels, TRAIN, 3, where)[0]

    before = rows(LABELS)
    for node in TRAIN:
        other = LABELS.copy()
        other[node] = (other[node] + 1) % 3
        after = rows(other)
        assert (after[node] == before[node]).all()
        if adjacency("plain")[[node]].nnz:
            assert not np.allclose(after, before)
    # The test sees what it is there to see: without folds her own row would move.
    plain = spread(operator, one_hot(LABELS), decay=0.2, steps=6)
    changed = LABELS.copy()
    changed[0] = 1
    assert not np.allclose(spread(operator, one_hot(changed), decay=0.2, steps=6)[0], plain[0])


def test_hidden_labels_are_not_read() -> None:
    operator = normalised(adjacency("plain"))
    folds = fold_of(TRAIN, 12, 3, np.random.default_rng(0))
    peeking = LABELS.copy()
    peeking[8:] = 2
    both = [
        cross_fitted(lambda start: walks(operator, start, 1), labels, TRAIN, 3, folds)[0]
        for labels in (LABELS, peeking)
    ]
    assert (both[0] == both[1]).all()


def test_folds_are_even_and_addressed() -> None:
    folds = fold_of(np.arange(3, 10), 12, 3, np.random.default_rng(0))
    assert sorted(np.bincount(folds[3:10])) == [2, 2, 3]
    assert (folds[[0, 1, 2, 10, 11]] == 3).all()
    assert (folds == fold_of(np.arange(3, 10), 12, 3, np.random.default_rng(0))).all()
    few = fold_of(np.array([4, 7]), 12, 10, np.random.default_rng(0))
    assert sorted(few[[4, 7]]) == [0, 1]
    assert few[0] == 2


def test_log_evidence() -> None:
    prior = class_shares(LABELS, TRAIN, 3)
    assert np.allclose(prior, [4 / 11, 4 / 11, 3 / 11])
    mass = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.2, 0.2, 0.2]])
    found = log_evidence(mass, prior, weight=0.1)
    assert (found[0] == 0).all()  # no label has reached this node
    own = 0.1 * mass.sum(axis=1).mean()
    for row in (1, 2):
        for c in range(3):
            share = (mass[row, c] + own * prior[c]) / (mass[row].sum() + own)
            assert found[row, c] == pytest.approx(np.log(share / prior[c]), abs=1e-6)
    assert (log_evidence(np.zeros((2, 3)), prior) == 0).all()


def test_the_fitted_power_is_that_of_the_truth() -> None:
    """Labels drawn with log-odds beta times the evidence: the fit finds beta."""
    rng = np.random.default_rng(0)
    evidence, prior = rng.normal(0, 2, (4000, 3)), np.full(3, 1 / 3)
    for beta in (0.3, 1.0, 2.5):
        chances = np.exp(beta * evidence)
        chances /= chances.sum(axis=1, keepdims=True)
        labels = (rng.random((4000, 1)) > np.cumsum(chances, axis=1)).sum(axis=1)
        assert fitted_power(evidence, prior, labels, np.arange(4000)) == pytest.approx(beta, rel=0.15)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda s: spread(s, one_hot(LABELS), decay=0.0, steps=3), OptionError, "decay"),
        (lambda s: spread(s, one_hot(LABELS), decay=0.1, steps=0), OptionError, "steps"),
        (lambda s: fold_of(TRAIN, 12, 1, np.random.default_rng(0)), OptionError, "folds must be"),
        (lambda s: class_shares(LABELS, np.arange(9), 3), DataError, "all have labels"),
        (lambda s: class_shares(LABELS, np.empty(0, int), 3), DataError, "all have labels"),
    ],
)
def test_bad_input(call, error: type[Exception], words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=words):
        call(sp.csr_array((12, 12)))
