r"""How much a report can say of its sender's class: the mutual information, from the mechanism's law.

A node of class Y has features that are independent given Y, feature j with probability c_Yj (the synthetic family has
exactly that law). Its report is a set J of m of the d dimensions, drawn without looking, and a symbol for each of them:

    I(Y; report) = E_J I(Y; symbols of J),    P(symbol | Y = k) = c_kj P(symbol | high) + (1 - c_kj) P(symbol | low).

Bounds that hold for every epsilon-LDP report, in bits:

    H(Y);   epsilon tanh(epsilon/2) / ln 2;   tanh(epsilon/2)^2 I(Y; features).

The second is the largest divergence between two reports; the third is the contraction of divergences by an epsilon-LDP
channel (Asoodeh & Zhang, 2022). Both are of the whole report's epsilon.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphldp.client import Randomiser, VectorMechanism
from graphldp.client.protocol import Sampled
from graphldp.errors import DataError, OptionError

__all__ = ["Information", "class_entropy", "class_information", "feature_information", "information_bound"]

Floats: TypeAlias = NDArray[np.float64]

_MOST = 2**20  # sets times patterns times classes that are summed up exactly
_BITS = math.log(2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Information:
    """What reports say of the class, in bits.

    Attributes:
        bits: the mutual information.
        error: its standard error where it was estimated; 0 where it was summed up.
        bound: what no epsilon-LDP report of these features can exceed.
        entropy: of the class: what there is to know.
    """

    bits: float
    error: float
    bound: float
    entropy: float


def class_information(
    device: VectorMechanism,
    chances: ArrayLike,
    prior: ArrayLike | None = None,
    *,
    draws: int = 20_000,
    rng: np.random.Generator,
) -> Information:
    """Return the information between a node's class and its report.

    Summed up over all sets and symbols where there are few enough; otherwise estimated from `draws` reports.

    Args:
        device: a mechanism that reports m of d dimensions through a scalar randomiser with few outputs.
        chances: probability that a node has a feature (is at `high`, not at `low`), [classes, dimensions].
        prior: share of each class; equal if left out.
        draws: how many reports an estimate is made from.
        rng: where they come from.
    """
    table, shares = _checked(chances, prior)
    base = _scalar_of(device, table.shape[1])
    law = _symbols(base, table)
    entropy = class_entropy(shares)
    bound = information_bound(device.epsilon, entropy, feature_information(table, shares, draws=draws, rng=rng).bits)
    if math.comb(table.shape[1], device.m) * law.shape[2] ** device.m * len(table) <= _MOST:
        return Information(bits=_exact(law, shares, device.m), error=0.0, bound=bound, entropy=entropy)
    bits, error = _estimated(law, shares, device.m, draws, rng)
    return Information(bits=bits, error=error, bound=bound, entropy=entropy)


def feature_information(
    chances: ArrayLike, prior: ArrayLike | None = None, *, draws: int = 20_000, rng: np.random.Generator
) -> Information:
    """Return the information between a node's class and all of its features, as nobody reports them."""
    table, shares = _checked(chances, prior)
    law = np.stack([1 - table, table], axis=2)
    entropy = class_entropy(shares)
    if 2 ** table.shape[1] * len(table) <= _MOST:
        return Information(bits=_exact(law, shares, table.shape[1]), error=0.0, bound=entropy, entropy=entropy)
    bits, error = _estimated(law, shares, table.shape[1], draws, rng)
    return Information(bits=bits, error=error, bound=entropy, entropy=entropy)


def class_entropy(prior: ArrayLike) -> float:
    """Return the entropy of the class, in bits."""
    shares = np.asarray(prior, dtype=np.float64)
    return float(-(shares * np.log(np.where(shares > 0, shares, 1.0))).sum() / _BITS)


def information_bound(epsilon: float, entropy: float, features: float) -> float:
    """Return what an epsilon-LDP report can say at most of a class of that entropy, in bits.

    Args:
        epsilon: of the whole report.
        entropy: of the class.
        features: the information between the class and the features; the entropy, where it is not known.
    """
    if not epsilon >= 0:
        raise OptionError(f"epsilon must be >= 0, got {epsilon}")
    if math.isinf(epsilon):
        return min(entropy, features)
    lean = math.tanh(epsilon / 2)
    return min(entropy, epsilon * lean / _BITS, lean**2 * features)


def _checked(chances: ArrayLike, prior: ArrayLike | None) -> tuple[Floats, Floats]:
    table = np.asarray(chances, dtype=np.float64)
    if table.ndim != 2 or not table.size or not ((table >= 0) & (table <= 1)).all():
        raise DataError("chances must be probabilities, classes x dimensions")
    shares = np.full(len(table), 1 / len(table)) if prior is None else np.asarray(prior, dtype=np.float64)
    if shares.shape != (len(table),) or not (shares >= 0).all() or not math.isclose(shares.sum(), 1, abs_tol=1e-9):
        raise DataError(f"the prior must be {len(table)} shares that add up to 1, got {shares.tolist()}")
    return table, shares


def _scalar_of(device: VectorMechanism, dimensions: int) -> Randomiser:
    if not isinstance(device, Sampled) or not device.base.finite:
        raise OptionError(
            "the information is computed for mechanisms that report m dimensions through a randomiser with few outputs "
            f"(mb, to, mlr, ...); {device.name} is none"
        )
    if device.dimensions != dimensions:
        raise DataError(f"the mechanism has {device.dimensions} dimensions, the chances {dimensions}")
    return device.base


def _symbols(base: Randomiser, chances: Floats) -> Floats:
    """Return P(symbol of dimension j | class k), [classes, dimensions, symbols]."""
    ends = np.array([base.low, base.high])
    symbols = np.unique(base.support(ends))
    at_low, at_high = (base.pmf(symbols, np.full(symbols.shape, end)) for end in ends)
    return np.asarray(chances[:, :, None] * at_high + (1 - chances[:, :, None]) * at_low)


def _given(joint: Floats) -> Floats:
    """Return H(Y) - H(Y | report) term by term in nats: sum_k P(k, r) log(P(k, r) / (P(k) P(r)))."""
    total = joint.sum(axis=0)
    share = joint.sum(axis=tuple(range(1, joint.ndim)))
    share = share.reshape(-1, *[1] * (joint.ndim - 1))
    ratio = np.divide(joint, share * total, out=np.ones_like(joint), where=joint > 0)
    return np.asarray(joint * np.log(ratio))


def _exact(law: Floats, prior: Floats, m: int) -> float:
    classes, dimensions, _ = law.shape
    sets, total = 0, 0.0
    for chosen in itertools.combinations(range(dimensions), m):
        joint = prior.reshape(classes, 1)
        for j in chosen:
            joint = (joint[:, :, None] * law[:, j][:, None, :]).reshape(classes, -1)
        total += float(_given(joint).sum())
        sets += 1
    return total / sets / _BITS


def _estimated(law: Floats, prior: Floats, m: int, draws: int, rng: np.random.Generator) -> tuple[float, float]:
    """Return the mean of H(Y) - H(Y | report) over drawn reports, and its standard error."""
    classes, dimensions, _ = law.shape
    with np.errstate(divide="ignore"):
        logs = np.log(law)
    edges = np.cumsum(law, axis=2)[:, :, :-1]
    gains = np.empty(draws)
    start = np.log(np.where(prior > 0, prior, 1.0))
    before = class_entropy(prior) * _BITS
    labels = rng.choice(classes, draws, p=prior)
    for place in range(draws):
        chosen = rng.choice(dimensions, m, replace=False, shuffle=False) if m < dimensions else np.arange(dimensions)
        symbol = (rng.random((m, 1)) >= edges[labels[place], chosen]).sum(axis=1)
        posterior = start + logs[:, chosen, symbol].sum(axis=1)
        posterior = np.where(prior > 0, posterior, -np.inf)
        posterior = np.exp(posterior - posterior.max())
        posterior /= posterior.sum()
        gains[place] = before + (posterior * np.log(np.where(posterior > 0, posterior, 1.0))).sum()
    return max(0.0, float(gains.mean()) / _BITS), float(gains.std(ddof=1) / math.sqrt(draws)) / _BITS
