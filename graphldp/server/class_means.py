r"""How the classes' mean features differ, from noisy reports of people whose class is known in probability only.

    x_i = sum_c q_ic M_c + noise,      q_i the probabilities of person i's class

so that M is the regression of the estimates on q: where the q are right on average, people who may belong to several
classes bias nothing. What is estimated is D_v, feature v's C class means less their mean over people, with the prior

    D_v ~ sum_k s_k N(0, tau_k spread_v^g I),   spread_v = m_v (1 - m_v) for features that are there or not, m_v their
                                                mean, else 1; tau_k on a grid that starts at 0

The shares s and g maximise the probability of all reports (empirical Bayes): most features tell nothing of the class
and few tell much, so that one size for all would either keep the noise of the many or lose what the few say. Reports
that are not clearly likelier than with D = 0 give 0. Several waves of people may have been asked about different
features, with different noise: their evidence adds up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphldp.client import VectorMechanism
from graphldp.client.laws.sets import SetValued
from graphldp.errors import DataError
from graphldp.server.estimate import Estimate

__all__ = ["ClassMeans", "Wave", "class_means"]

Floats = NDArray[np.float64]

_POWERS = (0.0, 0.5, 1.0, 1.5)
_SIZES = np.concatenate([[0.0], np.geomspace(1e-6, 10.0, 25)])
_ROUNDS = 60  # of the estimation of the sizes' shares
_CLEAR = 2.0  # nats by which reports must be likelier with differences than without
_LEAST = 0.2  # of the average mean: no feature counts as rarer, or its noise would count as a signal
_LEAST_NOISE = 1e-9  # of the squared range: a variance that rounds to less, at a large budget, counts as this
_NEGLIGIBLE = 1e-9  # of the largest eigenvalue of the q's scatter: a direction in which nobody differs
_BLOCK = 2**20  # entries of d x C x C at a time


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wave:
    """What some people reported about some features.

    Attributes:
        estimate: what the server makes of it: people x features, unbiased.
        device: what they ran.
        features: which features they were asked about; the columns of the estimate, in their order.
        shares: people x classes, the probabilities of their classes, known without these reports.
    """

    estimate: Estimate
    device: VectorMechanism
    features: NDArray[np.int64]
    shares: Floats

    def __post_init__(self) -> None:
        people, columns = self.estimate.matrix.shape
        if columns != len(self.features) or self.shares.shape[0] != people:
            raise DataError(
                f"a wave of {people} people and {columns} features needs as many shares and feature numbers, got "
                f"{self.shares.shape[0]} and {len(self.features)}"
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassMeans:
    """What reports say of the classes' mean features.

    Attributes:
        mean: each feature's mean over people, [d].
        spread: its variance over people, up to a factor, [d].
        difference: posterior mean of the classes' differences from it, [d, classes].
        square: posterior mean of their squared length, [d].
        sizes: the share of each size tau of the prior.
        power: its g.
    """

    mean: Floats
    spread: Floats
    difference: Floats
    square: Floats
    sizes: Floats
    power: float

    def telling(self, count: int) -> NDArray[np.int64]:
        """Return the features by which classes may be told best, as numbers in increasing order."""
        order = np.argsort(-self.square / self.spread, kind="stable")
        return np.sort(order[:count])

    def ballot(self) -> tuple[Floats, Floats]:
        """Return weights and offsets by which a person can score the classes, all on one scale.

        Linear discriminants of independent features: w_v = D_v / spread_v; a class's scores have mean 0 and variance 1
        over people, so that none gets votes for being known better.
        """
        weights = self.difference / self.spread[:, None]
        deviation = np.sqrt(np.square(weights).T @ self.spread)
        weights = weights / np.where(deviation > 0, deviation, 1.0)
        return weights, weights.T @ self.mean


def class_means(waves: Sequence[Wave], dimensions: int) -> ClassMeans:
    """Return the posterior of the classes' mean features, given one wave of reports or several."""
    low, high = waves[0].device.low, waves[0].device.high
    mean = _means(waves, dimensions)
    if isinstance(waves[0].device, SetValued):
        share = np.clip((mean - low) / (high - low), 0.0, 1.0)
        share = np.maximum(share, max(_LEAST * float(share.mean()), 1e-12))
        mean = low + (high - low) * share
        spread = (high - low) ** 2 * np.maximum(share * (1 - share), 1e-12)
    else:
        spread = np.full(dimensions, (high - low) ** 2 / 4)
    classes = waves[0].shares.shape[1]
    precision = np.zeros((dimensions, classes, classes))
    total = np.zeros((dimensions, classes))
    scatter = np.zeros((classes, classes))
    for wave in waves:
        away = wave.shares - wave.shares.mean(axis=0)
        gram = away.T @ away
        scatter += gram
        noise = _noise(wave.device, mean[wave.features])
        precision[wave.features] += gram / noise[:, None, None]
        total[wave.features] += np.asarray(wave.estimate.deviations().T @ away) / noise[:, None]
    # In the directions in which people differ: the shares of a person sum to 1, so there are at most classes - 1.
    values, basis = np.linalg.eigh(scatter)
    basis = basis[:, values > _NEGLIGIBLE * max(float(values.max()), 1e-300)]
    step = max(1, _BLOCK // (classes * classes))
    starts = range(0, dimensions if basis.shape[1] else 0, step)
    axes = [np.linalg.eigh(basis.T @ precision[start : start + step] @ basis) for start in starts]
    if not axes:
        return _none(mean, spread, classes)
    # Along its own axes a feature's reports are independent.
    known = np.maximum(np.concatenate([one.eigenvalues for one in axes]), 0.0)
    turned = np.concatenate([one.eigenvectors for one in axes])
    found = np.einsum("vab,va->vb", turned, total @ basis)
    scale = spread / ((high - low) ** 2 / 4)
    fitted = _prior(known * (high - low) ** 2, found * (high - low), scale)
    if fitted is None:
        return _none(mean, spread, classes)
    sizes, power, chances = fitted
    centre, square = np.zeros(found.shape), np.zeros(dimensions)
    for size, chance in zip(_SIZES[1:], chances.T[1:], strict=True):
        variance = size * (high - low) ** 2 * scale[:, None] ** power
        kept = variance / (1 + variance * known)
        centre += chance[:, None] * kept * found
        square += chance * (np.square(kept * found) + kept).sum(axis=1)
    return ClassMeans(
        mean=mean,
        spread=spread,
        difference=np.einsum("vab,vb->va", turned, centre) @ basis.T,
        square=square,
        sizes=sizes,
        power=power,
    )


def _none(mean: Floats, spread: Floats, classes: int) -> ClassMeans:
    """Return the means of classes that do not differ."""
    zero = np.zeros((len(mean), classes))
    sizes = (_SIZES == 0).astype(np.float64)
    return ClassMeans(mean=mean, spread=spread, difference=zero, square=zero[:, 0], sizes=sizes, power=0.0)


def _noise(device: VectorMechanism, x: Floats) -> Floats:
    """Return the variance of the estimates of these values, above 0 at any budget."""
    least = _LEAST_NOISE * (device.high - device.low) ** 2
    return np.maximum(np.asarray(device.variance(x), dtype=np.float64), least)


def _means(waves: Sequence[Wave], dimensions: int) -> Floats:
    """Return each feature's mean over people, shrunk to the average feature's by what is known of the noise."""
    low, high = waves[0].device.low, waves[0].device.high
    weighted, weight = np.zeros(dimensions), np.zeros(dimensions)
    for wave in waves:
        people = wave.estimate.matrix.shape[0]
        found = wave.estimate.fill + np.asarray(wave.estimate.deviations().sum(axis=0), dtype=np.float64) / people
        noise = float(_noise(wave.device, np.array([low]))[0]) / people
        weighted[wave.features] += found / noise
        weight[wave.features] += 1 / noise
    noise = np.where(weight > 0, 1 / np.where(weight > 0, weight, 1.0), np.inf)
    raw = np.where(weight > 0, weighted / np.where(weight > 0, weight, 1.0), 0.0)
    centre = float(np.average(raw, weights=weight))
    # What the features' means differ by more than the noise explains.
    own = float(np.average((raw - centre) ** 2, weights=weight)) - np.count_nonzero(weight) / float(weight.sum())
    kept = max(0.0, own) / (max(0.0, own) + noise)
    return np.asarray(np.clip(centre + kept * (raw - centre), low, high))


def _prior(known: Floats, found: Floats, scale: Floats) -> tuple[Floats, float, Floats] | None:
    """Return the sizes' shares and the power that make the reports the likeliest, and each feature's chances of sizes.

    None where the reports are not clearly likelier than if no feature told the classes.

    Args:
        known: d x p, the precision of the reports along each feature's axes, for features between 0 and 1.
        found: d x p, the reports along them, times their precision.
        scale: each feature's spread, 1 at most.
    """
    best: tuple[float, Floats, float, Floats] | None = None
    for power in _POWERS:
        relative = known * scale[:, None] ** power
        gains = np.empty((len(known), len(_SIZES)))
        for place, size in enumerate(_SIZES):
            grown = 1 + size * relative
            gains[:, place] = 0.5 * (np.square(found) * size * scale[:, None] ** power / grown - np.log(grown)).sum(
                axis=1
            )
        highest = gains.max(axis=1, keepdims=True)
        likely = np.exp(gains - highest)
        shares = np.full(len(_SIZES), 1 / len(_SIZES))
        for _ in range(_ROUNDS):
            shares = shares * ((1 / (likely @ shares)) @ likely) / len(likely)
        joint = likely * shares
        whole = joint.sum(axis=1, keepdims=True)
        gain = float((np.log(whole) + highest).sum())
        if gain > _CLEAR and (best is None or gain > best[0] + 1e-9):
            best = (gain, shares, power, joint / whole)
    return None if best is None else best[1:]
