"""Slow, plain ways of getting from a mechanism's law to what the tests compare with it."""

from __future__ import annotations

import numpy as np
from client_cases import CASES
from scipy import stats

from graphldp.client import Randomiser, lookup, mechanism, names

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
ALPHA = 1e-7  # a goodness-of-fit test rejects below this; several hundred of them give a false alarm once in 10^4 runs
Z = 6.0  # standard errors that a simulated moment may lie from its closed form: 2e-9 per comparison

LAWS = [(name, epsilon) for name in names() if lookup(name).kind != "vector" for epsilon in CASES[name].budgets]
RANDOM_LAWS = [(name, epsilon) for name, epsilon in LAWS if name != "identity"]


def built(name: str, epsilon: float, **options: object) -> Randomiser:
    """Return the mechanism of a test case at a budget."""
    case = CASES[name]
    return mechanism(name, epsilon, *case.range, **{**case.options, **options})


def inputs(name: str) -> np.ndarray:
    """Return values of the range: the ends, the middle and others; levels where only they are allowed."""
    low, high = CASES[name].range
    if not CASES[name].plain_inputs:
        return np.arange(low, high + 1)
    return low + (high - low) * np.array([0.0, 0.13, 0.5, 0.77, 1.0])


def pieces(law: Randomiser, x: float) -> np.ndarray:
    """Return points between which the density is smooth, from one end of its support (or 60 deviations out) on."""
    inner = law._shift + law._scale * law._breaks(law._unit(np.array(x)))
    spread, mean = float(np.sqrt(law.variance(x))), float(law.mean(x))
    ends = np.clip(law.support(x), mean - 60 * spread, mean + 60 * spread)
    return np.unique(np.clip(np.concatenate([np.linspace(*ends, 161), inner.reshape(-1)]), *ends))


def distribution(law: Randomiser, x: float, at: np.ndarray) -> np.ndarray:
    """Return P[ideal report <= at], the density integrated by Gauss-Legendre quadrature on every smooth piece."""
    inside = np.clip(at, *pieces(law, x)[[0, -1]])
    edges = np.unique(np.concatenate([pieces(law, x), inside]))
    half = np.diff(edges)[:, None] / 2
    mass = np.sum(half * WEIGHTS * law.pdf(edges[:-1, None] + half * (1 + NODES), x), axis=1)
    total = np.interp(inside, edges, np.concatenate([[0.0], np.cumsum(mass)]))
    if hasattr(law, "atoms"):
        places, weights = law.atoms(x)
        total = total + ((places <= np.asarray(at)[..., None]) * weights).sum(axis=-1)
    return total


def moment(law: Randomiser, x: float, f) -> float:
    """Return the mean of f(report) by summation or quadrature."""
    if law.finite:
        y = law.support(x)
        return float(np.sum(law.pmf(y, x) * f(y)))
    edges = pieces(law, x)
    half = np.diff(edges)[:, None] / 2
    y = edges[:-1, None] + half * (1 + NODES)
    total = float(np.sum(half * WEIGHTS * law.pdf(y, x) * f(y)))
    if hasattr(law, "atoms"):
        places, weights = law.atoms(x)
        total += float(np.sum(weights * f(places)))
    return total


def quantiles(law: Randomiser, x: float, count: int = 40) -> np.ndarray:
    """Return boundaries, between grid points, of about equally likely intervals of a density's report."""
    u = (np.arange(4000) + 0.5) / 4000
    step = law.step * law._scale
    y = np.quantile(law.invert(x, u).astype(np.float64), np.arange(1, count) / count)
    return np.unique(law._shift + (np.round((y - law._shift) / step) + 0.5) * step)


def fit(law: Randomiser, x: float, draws: np.ndarray) -> float:
    """Return the chi-square p-value of the draws: over all outputs, or over intervals of a density.

    The intervals end halfway between grid points, so that their probabilities are those of the ideal report.
    """
    n = len(draws)
    if law.finite:
        places = law.support(x).astype(law.dtype)
        counts = np.array([(draws == place).sum() for place in places])
        if counts.sum() != n:
            return 0.0
        return chi_square(counts, n * law.pmf(law.support(x), x))
    edges = quantiles(law, x)
    counts = np.histogram(draws, np.concatenate([[-np.inf], edges, [np.inf]]))[0]
    return chi_square(counts, n * np.diff(np.concatenate([[0.0], distribution(law, x, edges), [1.0]])))


def chi_square(counts: np.ndarray, expected: np.ndarray) -> float:
    """Return the chi-square p-value; cells that expect fewer than 10 are put together first."""
    order = np.argsort(expected)
    counts, expected = counts[order], expected[order]
    while len(expected) > 1 and expected[0] < 10:
        counts = np.concatenate([[counts[0] + counts[1]], counts[2:]])
        expected = np.concatenate([[expected[0] + expected[1]], expected[2:]])
    if len(counts) < 2:
        return 1.0
    return float(stats.chi2.sf(np.sum((counts - expected) ** 2 / expected), len(counts) - 1))
