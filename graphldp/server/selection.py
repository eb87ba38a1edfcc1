"""Task-oriented selection: rectifying the second round, joining both rounds, and what was selected, in figures.

The rounds themselves are drawn on the device (`graphldp.client.directed`); scores are in `graphldp.server.attributes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from graphldp.client import Reports, VectorMechanism
from graphldp.client.directed import DirectedMechanism, directed_from_meta
from graphldp.client.levels import Personalised, probabilities
from graphldp.errors import DataError, OptionError
from graphldp.server.attributes import TrainingClasses
from graphldp.server.estimate import Estimate, rectangular
from graphldp.server.filtered import BLOCK_MEMORY, Filtered

__all__ = [
    "RECTIFICATIONS",
    "attribute_accuracy",
    "combine_rounds",
    "degree_correlation",
    "directed_variance",
    "mean_jaccard",
    "rectify_directed",
]

RECTIFICATIONS = ("inclusion", "paper")


def rectify_directed(reports: Reports, rectification: str = "inclusion") -> Estimate:
    """Return the estimate from a second round's reports.

    `inclusion` weighs each reported value by the inverse of its dimension's own probability of being reported
    (Horvitz-Thompson), which is unbiased wherever that probability is not 0. `paper` weighs all by d/m, as TOGL's
    Algorithm 1 does: fixed dimensions are inflated d/m times, the others are shrunk. It is kept for comparison.
    """
    if rectification not in RECTIFICATIONS:
        raise OptionError(f"rectification must be one of {', '.join(RECTIFICATIONS)}; got {rectification!r}")
    directed = directed_from_meta(reports.meta)
    if reports.index is None:
        raise DataError("a directed report holds the indices of its dimensions; these reports do not")
    fill = directed.device.fill_value
    nodes, dimensions = reports.nodes, directed.device.dimensions
    level = np.ones(nodes, dtype=np.int64) if reports.level is None else np.asarray(reports.level)
    values = np.full(reports.value.shape, fill)
    for number, part in enumerate(directed.parts, start=1):
        members = np.flatnonzero(level == number)
        columns = slice(0, part.m)
        index = reports.index[members, columns]
        even = np.full(dimensions, part.m / dimensions)
        chance = directed.inclusion(number) if rectification == "inclusion" else even
        away = part.base.estimate(reports.value[members, columns]) - fill
        values[members, columns] = fill + away / chance[index]
    used = np.asarray(reports.index) >= 0
    offsets = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
    parts = (values[used].astype(np.float32), np.ascontiguousarray(reports.index[used], dtype=np.int32), offsets)
    return rectangular(Estimate(matrix=sp.csr_array(parts, shape=(nodes, dimensions)), fill=fill))


def directed_variance(directed: DirectedMechanism, x: float, level: int = 1) -> NDArray[np.float64]:
    """Return each dimension's variance of the rectified report of value x; infinite where it is never reported."""
    base, fill = directed.parts[level - 1].base, directed.device.fill_value
    away = float(base.estimate_mean(x)) - fill
    second = float(base.estimate_variance(x)) + away**2
    chance = directed.inclusion(level)
    return np.divide(second, chance, out=np.full_like(chance, np.inf), where=chance > 0) - away**2


def combine_rounds(
    first: Estimate, second: Estimate, device: VectorMechanism, directed: DirectedMechanism, *, at: float | None = None
) -> Estimate:
    """Return both rounds in one estimate: for each attribute, weighted by the inverse of their variances.

    For a given ranking the weights depend on the attribute and on nothing that was drawn, so two unbiased estimates
    give an unbiased one. A ranking that was made from the first round itself prefers attributes whose classes this
    round's noise set apart, and with `first` this stays in the estimate. TOGL discards the first round; to do so, take
    the second estimate alone. Where users have levels, the weights are the average user's.

    Args:
        first: the first round's estimate.
        second: the second round's.
        device: the first round's mechanism.
        directed: the second round's.
        at: the value for which the variances are compared; the middle of the range unless it is given.
    """
    if first.matrix.shape != second.matrix.shape or first.fill != second.fill:
        raise DataError(
            f"the rounds do not fit: {first.matrix.shape} filled with {first.fill}, "
            f"{second.matrix.shape} filled with {second.fill}"
        )
    value = device.low / 2 + device.high / 2 if at is None else at
    one, two = float(device.variance(value)), _mean_variance(directed, value)
    # The second round's share: 0 where it never reports.
    share = np.divide(one, one + two, out=np.zeros_like(two), where=np.isfinite(two))
    a, b = first.deviations(), second.deviations()
    a.data = (a.data * (1 - share)[a.indices]).astype(np.float32)
    b.data = (b.data * share[b.indices]).astype(np.float32)
    total = sp.csr_array(a + b)
    total.sort_indices()
    total.data += np.float32(first.fill)
    return rectangular(Estimate(matrix=total, fill=first.fill))


def _mean_variance(directed: DirectedMechanism, x: float) -> NDArray[np.float64]:
    device = directed.device
    if not isinstance(device, Personalised):
        return directed_variance(directed, x)
    share = probabilities(device.distribution, device.levels)
    found = [p * directed_variance(directed, x, t) for t, p in enumerate(share, start=1) if p > 0]
    return np.asarray(np.sum(found, axis=0))


def mean_jaccard(selections: Sequence[Iterable[int]]) -> float:
    """Return how alike repeated selections are: the mean over all pairs of |A and B| / |A or B| (TOGL's Table 9)."""
    sets = [frozenset(one) for one in selections]
    if len(sets) < 2:
        raise DataError(f"stability compares at least two selections, got {len(sets)}")
    pairs = [len(a & b) / len(a | b) if a | b else 1.0 for a, b in combinations(sets, 2)]
    return float(np.mean(pairs))


def degree_correlation(values: Any, degree: ArrayLike, attributes: Sequence[int]) -> NDArray[np.float64]:
    """Return the Pearson correlation of each of these attributes with the nodes' degree (TOGL's Table 6).

    Args:
        values: n x d, sparse or dense: the true features, an estimate's matrix, or H.
        degree: one number per node.
        attributes: which columns. A column without any variance has correlation 0.
    """
    size = np.asarray(degree, dtype=np.float64)
    chosen = np.asarray(list(attributes), dtype=np.int64)
    columns = sp.csc_array(values)[:, chosen].toarray() if sp.issparse(values) else np.asarray(values)[:, chosen]
    if len(size) != columns.shape[0]:
        raise DataError(f"{columns.shape[0]} nodes need {columns.shape[0]} degrees, got {len(size)}")
    centred = columns.astype(np.float64) - columns.mean(axis=0, dtype=np.float64)
    away = size - size.mean()
    scale = np.sqrt((centred**2).sum(axis=0) * (away**2).sum())
    return np.asarray(np.divide(away @ centred, scale, out=np.zeros(len(chosen)), where=scale > 0))


def attribute_accuracy(
    filtered: Filtered, labels: ArrayLike, train: ArrayLike, scored: ArrayLike, *, max_memory: float = BLOCK_MEMORY
) -> NDArray[np.float64]:
    """Return, for each attribute, how well it tells the classes apart alone (the utility column of TOGL's Table 10).

    A linear discriminant on that attribute (normal classes of one variance, proportions as in training) is fitted on
    the training nodes; the figure is its accuracy on the `scored` nodes.
    """
    classes = TrainingClasses.of(labels, train)
    wanted = np.asarray(scored, dtype=np.int64)
    if wanted.size == 0:
        raise DataError("accuracy needs nodes to be scored on: there is none")
    names = np.unique(np.asarray(labels)[classes.nodes])
    truth = np.asarray(labels)[wanted]
    share = classes.counts / classes.size
    averaging = classes.averaging()
    out = np.empty(filtered.dimensions)
    for columns, block in filtered.blocks(max_memory):
        known = block[classes.nodes].astype(np.float64)
        means = averaging @ known
        variance = np.mean((known - means[classes.codes]) ** 2, axis=0)
        best = np.full((len(wanted), block.shape[1]), -np.inf)
        guess = np.zeros(best.shape, dtype=names.dtype)
        for position, name in enumerate(names):
            # An attribute that never varies says nothing: only the proportions count.
            gap = block[wanted].astype(np.float64) - means[position]
            score = np.log(share[position]) - np.divide(
                gap**2, 2 * variance, out=np.zeros_like(gap), where=np.broadcast_to(variance > 0, gap.shape)
            )
            better = score > best
            best[better], guess[better] = score[better], name
        out[columns] = np.mean(guess == truth[:, None], axis=0)
    return out
