r"""How strong the two dials of the synthetic family are, on the scale on which theory says what can be detected.

For two classes of a contextual stochastic block model with n nodes, d Gaussian features, gamma = n/d, mean degree k and

    lambda = (k_in - k_out) / (2 sqrt k),      mu = gamma |m|^2,

with k_in and k_out the expected number of neighbours if all were of the own, or of the other class, and m half the
distance between the two classes' mean features in units of their standard deviation, the classes can be told better
than by chance, without any label, exactly if

    lambda^2 + mu^2 / gamma > 1        (Deshpande, Montanari, Mossel & Sen, NeurIPS 2018, for large n, d and k).

With q classes lambda is sqrt k times the second eigenvalue of the chance that a neighbour has a class given one's own,
and |m|^2 the mean of the q - 1 eigenvalues of the covariance of the class means. The synthetic family draws edges that
way; its features are words, not Gaussian, so that mu measures them by their means and variances alone. What a mechanism
leaves of mu follows from the mean and the variance of its estimates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphldp.client import VectorMechanism
from graphldp.datasets.options import Synthetic
from graphldp.datasets.synthetic import word_chances
from graphldp.errors import DataError

__all__ = ["Signal", "class_distance", "signal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """Where a graph stands.

    Attributes:
        structure: lambda; below 0 where neighbours differ.
        features: mu, of the features or of what a mechanism reports of them.
        gamma: nodes per feature.
    """

    structure: float
    features: float
    gamma: float

    @property
    def strength(self) -> float:
        """lambda^2 + mu^2 / gamma: above 1 the classes can be told without a label."""
        return self.structure**2 + self.features**2 / self.gamma


def signal(options: Synthetic, device: VectorMechanism | None = None) -> Signal:
    """Return both signals of a synthetic graph; with `device`, the second is of the estimates from its reports."""
    dial = options.structure
    second = dial if dial >= 0 else dial / (options.classes - 1)
    gamma = options.nodes / options.dimensions
    return Signal(
        structure=second * math.sqrt(options.degree),
        features=gamma * class_distance(word_chances(options), device),
        gamma=gamma,
    )


def class_distance(chances: NDArray[np.float64], device: VectorMechanism | None = None) -> float:
    """Return |m|^2: how far the classes' means are apart, in units of the variance within a class.

    Args:
        chances: probability that a node has a feature, [classes, dimensions]; classes are equally large.
        device: whose estimates are compared, coordinate by coordinate; None compares the features themselves.
    """
    if chances.ndim != 2 or not ((chances >= 0) & (chances <= 1)).all():
        raise DataError("chances must be probabilities, classes x dimensions")
    classes = len(chances)
    if classes < 2:
        return 0.0
    none, full = 0.0, 1.0
    noise = np.zeros_like(chances)
    if device is not None:
        if device.dimensions != chances.shape[1]:
            raise DataError(f"the mechanism has {device.dimensions} dimensions, the chances {chances.shape[1]}")
        ends = np.array([device.low, device.high])
        none, full = ends + device.bias(ends)
        at_none, at_full = device.variance(ends)
        noise = (1 - chances) * at_none + chances * at_full
    means = none + chances * (full - none)
    within = (chances * (1 - chances) * (full - none) ** 2 + noise).mean(axis=0)
    apart = np.square(means - means.mean(axis=0)).mean(axis=0)
    share = np.divide(apart, within, out=np.zeros_like(apart), where=within > 0)
    return float(share.sum() / (classes - 1))
