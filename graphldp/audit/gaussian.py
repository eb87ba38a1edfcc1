"""Gaussian noise: its exact delta at an epsilon and its exact epsilon at a delta. Its pure epsilon is infinite."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphldp.errors import OptionError

__all__ = [
    "classical_sigma",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_sigma",
    "loss_distribution",
    "numerical_epsilon",
]

Floats: TypeAlias = NDArray[np.float64]

_STEPS = 200  # of a bisection: more than float64 can tell apart
_LATTICE = 2**19  # points of a privacy-loss distribution


def _log_normal_cdf(x: float) -> float:
    from scipy.special import log_ndtr

    return float(log_ndtr(x))


def log_gaussian_delta(epsilon: float, sigma: float, sensitivity: float) -> float:
    """Return the log of `gaussian_delta`, without cancellation where delta is tiny.

    delta = Phi(a) - e^epsilon Phi(b); with both terms as logs the difference keeps its relative precision down to
    the smallest positive float.
    """
    if not (sigma > 0 and sensitivity > 0 and epsilon >= 0):
        raise OptionError(
            f"needs sigma > 0, sensitivity > 0 and epsilon >= 0, got {sigma}, {sensitivity} and {epsilon}"
        )
    half, ratio = sensitivity / (2 * sigma), epsilon * sigma / sensitivity
    first, second = _log_normal_cdf(half - ratio), epsilon + _log_normal_cdf(-half - ratio)
    gap = second - first
    return first + math.log(-math.expm1(gap)) if gap < 0 else -math.inf


def gaussian_delta(epsilon: float, sigma: float, sensitivity: float) -> float:
    r"""Return the smallest delta for which noise N(0, sigma^2) on values that differ by `sensitivity` is private.

    Formula: delta = Phi(D/(2s) - epsilon s/D) - e^epsilon Phi(-D/(2s) - epsilon s/D). Exact, not a bound.
    For d coordinates with the same noise the sensitivity is the Euclidean one, sqrt(d) times a coordinate's.
    Reference: Balle & Wang, Improving the Gaussian Mechanism for Differential Privacy, ICML 2018, Theorem 8.
    """
    return math.exp(log_gaussian_delta(epsilon, sigma, sensitivity))


def gaussian_epsilon(delta: float, sigma: float, sensitivity: float) -> float:
    """Return the smallest epsilon at which `gaussian_delta` is at most delta, rounded up."""
    if not 0 < delta < 1:
        raise OptionError(f"delta must lie between 0 and 1, got {delta}")
    target = math.log(delta)
    if log_gaussian_delta(0.0, sigma, sensitivity) <= target:
        return 0.0
    low, high = 0.0, 1.0
    while log_gaussian_delta(high, sigma, sensitivity) > target:
        high *= 2
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if log_gaussian_delta(middle, sigma, sensitivity) > target:
            low = middle
        else:
            high = middle
    return high


def gaussian_sigma(epsilon: float, delta: float, sensitivity: float) -> float:
    """Return the smallest sigma with which (epsilon, delta) is kept, rounded up (the analytic Gaussian mechanism)."""
    if not 0 < delta < 1:
        raise OptionError(f"delta must lie between 0 and 1, got {delta}")
    target = math.log(delta)
    low = high = sensitivity / max(epsilon, 1e-12)
    while log_gaussian_delta(epsilon, high, sensitivity) > target:
        high *= 2
    while log_gaussian_delta(epsilon, low, sensitivity) <= target:
        low /= 2
    for _ in range(_STEPS):
        middle = math.sqrt(low * high)
        if log_gaussian_delta(epsilon, middle, sensitivity) > target:
            low = middle
        else:
            high = middle
    return high


def classical_sigma(epsilon: float, delta: float, sensitivity: float) -> float:
    """Return the classical formula's sigma, D sqrt(2 ln(1.25/delta))/epsilon: proved for epsilon < 1 alone."""
    return sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def loss_distribution(first: Floats, second: Floats, count: int) -> tuple[Floats, Floats]:
    """Return the privacy losses of `count` independent reports and their probabilities under the first input.

    From the probabilities of one report's outcomes under two inputs, on a lattice of losses (rounded to the nearest
    point), convolved by Fourier transform. Nothing about normal distributions is used.
    """
    seen = (first > 0) & (second > 0)
    losses = np.log(first[seen]) - np.log(second[seen])
    reach = count * float(np.abs(losses).max()) * 1.001
    step = 2 * reach / _LATTICE
    place = np.rint(losses / step).astype(np.int64) % _LATTICE
    one = np.bincount(place, first[seen], minlength=_LATTICE)
    total = np.fft.irfft(np.fft.rfft(one) ** count, _LATTICE)
    values = np.fft.fftfreq(_LATTICE, 1 / _LATTICE) * step
    return np.asarray(values, dtype=np.float64), np.asarray(np.maximum(total, 0.0), dtype=np.float64)


def numerical_epsilon(losses: Floats, probabilities: Floats, delta: float) -> float:
    """Return the epsilon at which a privacy-loss distribution has this delta."""

    def excess(epsilon: float) -> float:
        over = losses > epsilon
        return float(np.sum(probabilities[over] * -np.expm1(epsilon - losses[over]))) - delta

    if excess(0.0) <= 0:
        return 0.0
    low, high = 0.0, float(losses.max())
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high
