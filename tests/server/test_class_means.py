"""What reports say of the classes' means: against Bayesian regression by hand, with planted and without any signal."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from graphldp.client import protocol
from graphldp.errors import DataError
from graphldp.randomness import generator
from graphldp.server import rectify
from graphldp.server.class_means import ClassMeans, Wave, class_means

CLASSES, D = 3, 12


def people(count: int, *, soft: bool, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return classes, and probabilities that are right on average."""
    rng = generator(seed, "people", count)
    if not soft:
        own = rng.integers(0, CLASSES, count)
        return own, np.eye(CLASSES)[own]
    shares = rng.dirichlet(np.full(CLASSES, 0.4), count)
    own = (rng.random((count, 1)) > np.cumsum(shares, axis=1)).sum(axis=1)
    return own, shares


def planted(own: np.ndarray, strength: float = 0.5, seed: int = 1) -> sp.csr_array:
    """Return features of which the first three are each commoner in one class."""
    chance = np.full((CLASSES, D), 0.2)
    for c in range(CLASSES):
        chance[c, c] += strength
    return sp.csr_array((generator(seed, "x").random((len(own), D)) < chance[own]).astype(np.float32))


def wave(own: np.ndarray, shares: np.ndarray, epsilon: float, name: str = "privset", seed: int = 2, **options) -> Wave:
    device = protocol(name, epsilon, D, 0.0, 1.0, **options)
    estimate = rectify(device.perturb(planted(own), generator(seed, "r", epsilon)))
    return Wave(estimate=estimate, device=device, features=np.arange(D), shares=shares)


def by_hand(waves: list[Wave], found: ClassMeans) -> tuple[np.ndarray, np.ndarray]:
    """Return the posterior mean of the differences, and of their square, one feature after the other."""
    means, squares = np.zeros((D, CLASSES)), np.zeros(D)
    sizes = np.concatenate([[0.0], np.geomspace(1e-6, 10.0, 25)])
    values, basis = np.linalg.eigh(sum(np.cov(w.shares.T) * (len(w.shares) - 1) for w in waves))
    basis = basis[:, values > 1e-6 * values.max()]
    for v in range(D):
        precision, total = np.zeros((basis.shape[1], basis.shape[1])), np.zeros(basis.shape[1])
        for one in waves:
            if v not in one.features:
                continue
            place = one.features.tolist().index(v)
            design = (one.shares - one.shares.mean(axis=0)) @ basis
            noise = float(one.device.variance(found.mean[v]))
            precision += design.T @ design / noise
            total += design.T @ one.estimate.dense()[:, place].astype(np.float64) / noise
        likely, moments = np.zeros(len(sizes)), []
        for place, size in enumerate(sizes):
            # The estimate precision^-1 total is normal, with the prior's variance and its own.
            variance = size * (4 * found.spread[v]) ** found.power
            spread = np.linalg.inv(precision) + variance * np.eye(len(precision))
            guess = np.linalg.solve(precision, total)
            likely[place] = -0.5 * (guess @ np.linalg.solve(spread, guess) + np.linalg.slogdet(spread)[1])
            covariance = variance * np.linalg.inv(np.eye(len(precision)) + variance * precision)
            moments.append((basis @ covariance @ total, np.square(covariance @ total).sum() + np.trace(covariance)))
        chance = found.sizes * np.exp(likely - likely.max())
        chance /= chance.sum()
        means[v] = sum(part * mean for part, (mean, _) in zip(chance, moments, strict=True))
        squares[v] = sum(part * square for part, (_, square) in zip(chance, moments, strict=True))
    return means, squares


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("name", ["privset", "subset", "pm"])
def test_the_posterior_is_bayesian_regression(name: str, soft: bool) -> None:
    own, shares = people(1500, soft=soft)
    waves = [wave(own, shares, 6.0, name)]
    found = class_means(waves, D)
    assert found.sizes[0] < 1
    assert found.sizes.sum() == pytest.approx(1.0)
    means, squares = by_hand(waves, found)
    np.testing.assert_allclose(found.difference, means, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.square, squares, rtol=1e-4)


def test_two_waves_about_different_features_add_up() -> None:
    own, shares = people(900, soft=True)
    first = wave(own[:500], shares[:500], 5.0)
    asked = np.array([0, 1, 5, 7])
    device = protocol("privset", 5.0, 4, 0.0, 1.0, pad=2)
    reports = device.perturb(sp.csr_array(planted(own)[500:][:, asked]), generator(9))
    second = Wave(estimate=rectify(reports), device=device, features=asked, shares=shares[500:])
    found = class_means([first, second], D)
    means, squares = by_hand([first, second], found)
    np.testing.assert_allclose(found.difference, means, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.square, squares, rtol=1e-4)


def test_uncertain_classes_bias_nothing() -> None:
    own, shares = people(60_000, soft=True)
    found = class_means([wave(own, shares, 6.0)], D)
    clean = np.array([[0.2 + 0.5 * (c == v) for c in range(CLASSES)] for v in range(D)])
    truth = clean - clean.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(found.difference, truth, atol=0.05)
    # Means weighted by the same probabilities are biased: they see less than three quarters of it.
    dense = wave(own, shares, 6.0).estimate.dense()
    weighted = dense.T @ shares / shares.sum(axis=0)
    assert (weighted - weighted.mean(axis=1, keepdims=True))[0, 0] < 0.75 * truth[0, 0]


@pytest.mark.parametrize("name", ["privset", "mb"])
def test_reports_that_say_nothing_of_the_classes_give_next_to_nothing(name: str) -> None:
    own, shares = people(3000, soft=True)
    told = class_means([wave(own, shares, 6.0, name)], D)
    shuffled = [class_means([wave(own, generator(s).permutation(shares), 6.0, name)], D) for s in range(5)]
    assert np.median([np.abs(one.difference).max() for one in shuffled]) < 0.15 * np.abs(told.difference).max()


def test_features_that_tell_nothing_are_shrunk_harder_than_those_that_tell_much() -> None:
    own, shares = people(3000, soft=True)
    (one,) = waves = [wave(own, shares, 5.0)]
    found = class_means(waves, D)
    away = one.shares - one.shares.mean(axis=0)
    plain = np.linalg.lstsq(away, one.estimate.dense().astype(np.float64), rcond=None)[0].T
    kept = np.linalg.norm(found.difference, axis=1) / np.linalg.norm(plain - plain.mean(axis=1, keepdims=True), axis=1)
    assert kept[:3].min() > 0.8
    assert np.median(kept[3:]) < 0.3


def test_the_telling_features_are_found_and_people_are_sorted_by_them() -> None:
    own, shares = people(4000, soft=True)
    found = class_means([wave(own, shares, 4.0)], D)
    assert found.telling(3).tolist() == [0, 1, 2]
    weights, offsets = found.ballot()
    fresh, _ = people(4000, soft=True, seed=7)
    scores = planted(fresh, seed=8) @ weights - offsets
    np.testing.assert_allclose(scores.mean(axis=0), 0.0, atol=0.2)
    np.testing.assert_allclose(scores.std(axis=0), 1.0, atol=0.3)
    assert (scores.argmax(axis=1) == fresh).mean() > 0.6


def test_a_ballot_is_fair_to_classes_that_have_more_of_everything() -> None:
    mean = np.array([0.5, 0.2, 0.1])
    found = ClassMeans(
        mean=mean,
        spread=mean * (1 - mean),
        difference=np.array([[0.3, -0.1], [0.1, -0.1], [0.05, 0.0]]),
        square=np.ones(3),
        sizes=np.ones(1),
        power=1.0,
    )
    weights, offsets = found.ballot()
    np.testing.assert_allclose(mean @ weights - offsets, 0.0, atol=1e-12)  # the average person's scores
    np.testing.assert_allclose(found.spread @ weights**2, 1.0)
    assert offsets[0] > 0.5
    assert offsets[1] < -0.1


def test_people_of_one_class_tell_nothing_and_do_not_fail() -> None:
    own = np.zeros(50, dtype=int)
    found = class_means([wave(own, np.tile(np.eye(CLASSES)[0], (50, 1)), 3.0)], D)
    assert not found.difference.any()
    weights, offsets = found.ballot()
    assert not weights.any()
    assert np.isfinite(offsets).all()


def test_a_wave_that_does_not_fit_is_refused() -> None:
    own, shares = people(50, soft=False)
    good = wave(own, shares, 3.0)
    with pytest.raises(DataError, match="as many shares"):
        Wave(estimate=good.estimate, device=good.device, features=good.features, shares=shares[:-1])
    with pytest.raises(DataError, match="feature numbers"):
        Wave(estimate=good.estimate, device=good.device, features=good.features[:-1], shares=shares)
