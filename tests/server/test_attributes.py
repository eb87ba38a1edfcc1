"""Attribute scores against scikit-learn on clean data, and against their dense formulas on filtered data."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import chi2, f_classif, mutual_info_classif
from sklearn.linear_model import LogisticRegression
from small_graphs import adjacency

from graphldp.errors import DataError, OptionError
from graphldp.server import AttributeScores, Estimate, Filtered, kprop, none, normalised, score_attributes, scorer_names
from graphldp.server.logistic import fit_sparse_logistic
from graphldp.server.pair_products import PairProducts

NODES, ATTRIBUTES, CLASSES = 150, 12, 3


@pytest.fixture(scope="module")
def labels() -> np.ndarray:
    return np.random.default_rng(0).integers(0, CLASSES, NODES)


@pytest.fixture(scope="module")
def binary(labels: np.ndarray) -> np.ndarray:
    """Return 0/1 attributes; the first three follow the class, the last is always 0."""
    rng = np.random.default_rng(1)
    chance = np.full((NODES, ATTRIBUTES), 0.3)
    for j in range(3):
        chance[:, j] += np.where(labels == j, 0.5, 0) / (j + 1)
    out = (rng.random(chance.shape) < chance).astype(float)
    out[:, -1] = 0
    return out


@pytest.fixture(scope="module")
def real(binary: np.ndarray) -> np.ndarray:
    """Return real-valued attributes with the same leaning."""
    return binary + np.random.default_rng(2).normal(0, 0.7, binary.shape)


def clean(x: np.ndarray) -> Filtered:
    """Return features as a filtered estimate without noise or filter, written around a fill of 1/2."""
    estimate = Estimate(matrix=sp.csr_array(x.astype(np.float32) + np.float32(8)), fill=0.5)
    estimate.matrix.data -= np.float32(8)  # entries of 0 stay stored
    return Filtered.of(estimate, none(), sp.csr_array((NODES, NODES), dtype=np.float32))


TRAIN = np.arange(0, NODES, 2)


def test_fda_is_the_ratio_of_variances_of_scikit_learns_discriminant(real: np.ndarray, labels: np.ndarray) -> None:
    ours = score_attributes("fda", clean(real), labels, TRAIN).values
    for j in range(ATTRIBUTES):
        one = LinearDiscriminantAnalysis(solver="lsqr", store_covariance=True).fit(
            real[TRAIN, j : j + 1], labels[TRAIN]
        )
        between = one.priors_ @ (one.means_[:, 0] - one.priors_ @ one.means_[:, 0]) ** 2
        assert ours[j] == pytest.approx(between / one.covariance_[0, 0], rel=1e-4)
    anova, _ = f_classif(real[TRAIN], labels[TRAIN])
    np.testing.assert_allclose(ours * (len(TRAIN) - CLASSES) / (CLASSES - 1), anova, rtol=1e-3)
    assert set(score_attributes("fda", clean(real), labels, TRAIN).top(3)) >= {0, 1}


def test_an_attribute_without_variance_scores_0(binary: np.ndarray, labels: np.ndarray) -> None:
    for method in ("fda", "sma", "mi", "chi-square", "pca"):
        assert score_attributes(method, clean(binary), labels, TRAIN).values[-1] == pytest.approx(0, abs=1e-9), method


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", [0.01, 0.05])
def test_sma_is_scikit_learns_l1_regression(
    real: np.ndarray, labels: np.ndarray, penalty: float, intercept: bool
) -> None:
    theirs = LogisticRegression(
        l1_ratio=1, C=1 / (len(TRAIN) * penalty), solver="saga", fit_intercept=intercept, tol=1e-9, max_iter=100_000
    ).fit(real[TRAIN].astype(np.float32).astype(float), labels[TRAIN])
    classes = np.unique(labels[TRAIN], return_inverse=True)[1]
    ours = fit_sparse_logistic(clean(real), TRAIN, classes, penalty=penalty, intercept=intercept, tolerance=1e-6)
    assert ours.converged
    np.testing.assert_allclose(ours.weight.T, theirs.coef_, atol=1e-4)
    probability = theirs.predict_proba(real)
    scores = real @ ours.weight + ours.intercept
    mine = np.exp(scores - scores.max(axis=1, keepdims=True))
    np.testing.assert_allclose(mine / mine.sum(axis=1, keepdims=True), probability, atol=1e-4)
    if not intercept:
        assert not ours.intercept.any()
    scored = score_attributes("sma", clean(real), labels, TRAIN, penalty=penalty, intercept=intercept, tolerance=1e-6)
    np.testing.assert_allclose(scored.values, np.abs(theirs.coef_).mean(axis=0), atol=1e-4)
    assert scored.details["converged"]
    assert scored.details["attributes_used"] == int((np.abs(theirs.coef_) > 1e-6).any(axis=0).sum())


def test_the_strength_is_a_share_of_the_penalty_at_which_all_weights_vanish(
    real: np.ndarray, labels: np.ndarray
) -> None:
    everything = score_attributes("sma", clean(real), labels, TRAIN, strength=1.0)
    assert not everything.values.any()
    nearly = score_attributes("sma", clean(real), labels, TRAIN, strength=0.99, tolerance=1e-5)
    assert 0 < nearly.details["attributes_used"] <= 2
    # It means the same on every scale: weights shrink as values grow.
    larger = score_attributes("sma", clean(1000 * real), labels, TRAIN, strength=0.3, tolerance=1e-6)
    plain = score_attributes("sma", clean(real), labels, TRAIN, strength=0.3, tolerance=1e-6)
    np.testing.assert_allclose(1000 * larger.values, plain.values, rtol=1e-2, atol=1e-5)
    assert larger.ranking()[:3].tolist() == plain.ranking()[:3].tolist()


def test_work_that_is_cut_short_is_told(real: np.ndarray, labels: np.ndarray) -> None:
    cut = score_attributes("sma", clean(real), labels, TRAIN, strength=0.01, iterations=3)
    assert not cut.details["converged"]
    assert cut.details["residual"] > 1e-3
    assert cut.details["iterations"] == 3


def test_mi_is_scikit_learns(binary: np.ndarray, labels: np.ndarray) -> None:
    theirs = mutual_info_classif(binary[TRAIN], labels[TRAIN], discrete_features=True)
    np.testing.assert_allclose(score_attributes("mi", clean(binary), labels, TRAIN).values, theirs, atol=1e-9)


def test_chi_square_is_scikit_learns_over_all_values(binary: np.ndarray, labels: np.ndarray) -> None:
    # Theirs counts the ones alone; the statistic of the whole table also counts the zeros.
    ones, _ = chi2(binary[TRAIN, :-1], labels[TRAIN])
    zeros, _ = chi2(1 - binary[TRAIN, :-1], labels[TRAIN])
    ours = score_attributes("chi-square", clean(binary), labels, TRAIN).values
    np.testing.assert_allclose(ours[:-1], ones + zeros, rtol=1e-9)


def test_real_values_are_put_into_bins_of_equal_frequency(real: np.ndarray, labels: np.ndarray) -> None:
    bins = 5
    codes = np.empty((len(TRAIN), ATTRIBUTES), dtype=int)
    for j in range(ATTRIBUTES):
        values = real[TRAIN, j].astype(np.float32).astype(float)
        codes[:, j] = np.searchsorted(np.quantile(values, np.arange(1, bins) / bins), values, side="right")
        assert np.bincount(codes[:, j]).tolist() == [15] * 5
    theirs = mutual_info_classif(codes, labels[TRAIN], discrete_features=True)
    np.testing.assert_allclose(score_attributes("mi", clean(real), labels, TRAIN, bins=bins).values, theirs, atol=1e-9)


@pytest.mark.parametrize("components", [1, 4, 11])
def test_pca_is_scikit_learns(real: np.ndarray, labels: np.ndarray, components: int) -> None:
    theirs = PCA(components, svd_solver="full").fit(real.astype(np.float32))
    expected = theirs.explained_variance_ @ theirs.components_**2
    ours = score_attributes("pca", clean(real), labels, TRAIN, components=components)
    np.testing.assert_allclose(ours.values, expected, rtol=1e-3)


@pytest.fixture(scope="module")
def filtered() -> Filtered:
    """Return noisy sparse reports after two steps of the graph."""
    rng = np.random.default_rng(3)
    index = np.argsort(rng.random((NODES, ATTRIBUTES)), axis=1)[:, :2]
    parts = (
        rng.normal(0.5, 20, 2 * NODES).astype(np.float32),
        np.sort(index, axis=1).ravel(),
        np.arange(0, 2 * NODES + 1, 2),
    )
    estimate = Estimate(matrix=sp.csr_array(parts, shape=(NODES, ATTRIBUTES)), fill=0.5)
    return Filtered.of(estimate, kprop(2), normalised(adjacency("weighted", NODES)))


@pytest.mark.parametrize("method", ["fda", "sma", "mi", "chi-square", "pca"])
def test_the_factored_form_scores_as_the_written_out_one(filtered: Filtered, labels: np.ndarray, method: str) -> None:
    written = clean(filtered.dense())
    options = {"tolerance": 1e-6} if method == "sma" else {}
    ours = score_attributes(method, filtered, labels, TRAIN, max_memory=4 * 3 * NODES * 5, **options)
    theirs = score_attributes(method, written, labels, TRAIN, **options)
    np.testing.assert_allclose(ours.values, theirs.values, rtol=2e-3, atol=1e-5 * theirs.values.max())
    assert np.ptp(ours.values) > 0


@pytest.mark.parametrize("method", ["fda", "sma", "mi", "chi-square", "pca"])
def test_only_training_labels_are_read(filtered: Filtered, labels: np.ndarray, method: str) -> None:
    hidden = np.full(NODES, -1)
    hidden[TRAIN] = labels[TRAIN]
    others = labels.copy()
    others[1::2] = 0
    scores = [score_attributes(method, filtered, one, TRAIN).values for one in (labels, hidden, others)]
    assert np.array_equal(scores[0], scores[1])
    assert np.array_equal(scores[0], scores[2])
    if method != "pca":
        moved = labels.copy()
        moved[TRAIN] = np.roll(moved[TRAIN], 7)
        assert not np.allclose(scores[0], score_attributes(method, filtered, moved, TRAIN).values)


def test_attributes_without_weight_are_ranked_by_how_soon_they_would_have_one(
    real: np.ndarray, labels: np.ndarray
) -> None:
    none_yet = score_attributes("sma", clean(real), labels, TRAIN, strength=1.0)
    assert not none_yet.values.any()
    assert none_yet.ties is not None
    assert none_yet.ties.max() == pytest.approx(1, abs=1e-6)
    first, second = none_yet.top(2)
    few = score_attributes("sma", clean(real), labels, TRAIN, strength=0.97, tolerance=1e-6)
    assert np.flatnonzero(few.values).tolist() == [first]
    assert few.ties is not None
    assert few.ties[first] == pytest.approx(1, abs=1e-4)
    assert few.ties[second] < 1
    assert "ties" not in few.details


def test_what_is_equal_in_all_keeps_its_own_order() -> None:
    scores = AttributeScores(method="mi", values=np.array([0.0, 2.0, 0.0, 2.0, 1.0]))
    assert scores.ranking().tolist() == [1, 3, 4, 0, 2]
    assert scores.top(2) == (1, 3)
    tied = AttributeScores(method="sma", values=np.array([0.0, 2.0, 0.0]), ties=np.array([0.1, 1.0, 0.5]))
    assert tied.ranking().tolist() == [1, 2, 0]


def test_what_cannot_be_scored_is_refused(labels: np.ndarray, binary: np.ndarray) -> None:
    assert scorer_names() == ["fda", "sma", "mi", "chi-square", "pca"]
    one = clean(binary)
    with pytest.raises(OptionError, match=r"unknown attribute score 'fdaa'; did you mean 'fda'"):
        score_attributes("fdaa", one, labels, TRAIN)
    with pytest.raises(OptionError, match=r"mi has no option 'strength'; it has: bins"):
        score_attributes("mi", one, labels, TRAIN, strength=0.1)
    for train, words in (
        ([], "there is none"),
        ([NODES], "outside"),
        (np.flatnonzero(labels == 0), "two classes"),
    ):
        with pytest.raises(DataError, match=words):
            score_attributes("fda", one, labels, train)
    unlabelled = labels.copy()
    unlabelled[TRAIN[:2]] = -1
    with pytest.raises(DataError, match="2 training node"):
        score_attributes("fda", one, unlabelled, TRAIN)
    for method, options in (
        ("fda", {"smoothing": 0}),
        ("sma", {"strength": 0}),
        ("sma", {"penalty": -1.0}),
        ("sma", {"tolerance": 0}),
        ("mi", {"bins": 1}),
        ("pca", {"components": ATTRIBUTES}),
    ):
        with pytest.raises(OptionError, match=next(iter(options))):
            score_attributes(method, one, labels, TRAIN, **options)


# pairs, where links are learned ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", scorer_names())
def test_pairs_are_scored_as_their_products_written_out(binary: np.ndarray, method: str) -> None:
    """Of noisy filtered values, with more pairs than people, in blocks of few columns."""
    rng = np.random.default_rng(4)
    noisy = Estimate(matrix=sp.csr_array((binary + rng.normal(0, 1, binary.shape)).astype(np.float32)), fill=0.5)
    filtered = Filtered.of(noisy, kprop(2), normalised(adjacency("weighted", NODES)))
    pairs = rng.integers(0, NODES, (2, 400))
    linked = (rng.random(400) < 0.5).astype(int)
    found = PairProducts(filtered=filtered, pairs=pairs)
    values = filtered.dense().astype(np.float64)
    written = values[pairs[0]] * values[pairs[1]]
    np.testing.assert_allclose(found.dense(), written, rtol=1e-4, atol=1e-5)
    plain_ = Filtered.of(
        Estimate(matrix=sp.csr_array(written.astype(np.float32)), fill=0.0),
        none(),
        sp.csr_array((400, 400), dtype=np.float32),
    )
    memory = {} if method in ("sma", "pca") else {"max_memory": 12.0 * 400 * 3}
    one = score_attributes(method, found, linked, np.arange(400), **memory)
    other = score_attributes(method, plain_, linked, np.arange(400))
    np.testing.assert_allclose(one.values, other.values, rtol=2e-3, atol=1e-6)


def test_products_that_do_not_fit_are_refused_before_they_are_made(binary: np.ndarray) -> None:
    pairs = np.zeros((2, 10**9), dtype=np.int8)
    with pytest.raises(OptionError, match="48 GB; score_by fda, mi and chi-square take them in blocks"):
        PairProducts(filtered=clean(binary), pairs=pairs).dense()
