"""A lower bound on epsilon from reports alone: nobody's law is trusted, only counts.

Of two inputs and an event A of reports, log P[A | x] / P[A | x'] is at most epsilon. The event is chosen on one half
of the reports and bounded on the other with Clopper-Pearson intervals, so the choice costs no confidence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphldp.audit.budget import CONFIDENCE, CONVICTION_ALPHA
from graphldp.client import Reports, VectorMechanism

__all__ = ["Bound", "bound_of_counts", "bound_of_scores", "log_likelihood_ratio"]

Floats: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]

_MOST_THRESHOLDS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Lower bounds on epsilon and the counts behind them.

    Attributes:
        value: at CONFIDENCE; below the true epsilon in at least that share of audits.
        convicting: at 1 - CONVICTION_ALPHA: what a verdict is based on.
        hits: how many of `samples` reports under the first input fell into the event.
        other: how many of `other_samples` under the second did.
        event: the event in words.
    """

    value: float
    convicting: float
    hits: int = 0
    samples: int = 0
    other: int = 0
    other_samples: int = 0
    event: str = ""


def bound_of_counts(hits: Counts, samples: int, other: Counts, other_samples: int, alpha: float) -> Floats:
    """Return lower bounds on log P[A|x]/P[A|x'] from counts, each wrong with a probability of at most alpha.

    One Clopper-Pearson bound for each of the two probabilities, at alpha/2. Never below 0.
    """
    from scipy.stats import beta

    k, other_k = np.asarray(hits, dtype=np.float64), np.asarray(other, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        lower = np.where(k > 0, beta.ppf(alpha / 2, k, samples - k + 1), 0.0)
        upper = np.where(
            other_k < other_samples, beta.ppf(1 - alpha / 2, other_k + 1, np.maximum(other_samples - other_k, 1)), 1.0
        )
        return np.asarray(np.maximum(0.0, np.log(lower) - np.log(upper)))


def bound_of_scores(first: Floats, second: Floats, *, name: str = "score") -> Bound:
    """Return the bound for reports of two inputs that are summed up in one number each.

    Events are {score >= t} and {score <= t} in both directions. The threshold is picked on the even reports and the
    bound is computed on the odd ones.
    """
    train_first, train_second = first[::2], second[::2]
    thresholds = _thresholds(train_first, train_second)
    best: tuple[float, str, float, bool] = (-1.0, ">=", 0.0, False)
    for swapped in (False, True):
        a, b = (train_second, train_first) if swapped else (train_first, train_second)
        for sign in (">=", "<="):
            values = bound_of_counts(
                _count(a, thresholds, sign), len(a), _count(b, thresholds, sign), len(b), 1 - CONFIDENCE
            )
            place = int(np.argmax(values))
            if values[place] > best[0]:
                best = (float(values[place]), sign, float(thresholds[place]), swapped)
    _, sign, threshold, swapped = best
    a, b = (second[1::2], first[1::2]) if swapped else (first[1::2], second[1::2])
    at = np.array([threshold])
    return bound_from(_count(a, at, sign), len(a), _count(b, at, sign), len(b), f"{name} {sign} {threshold:.6g}")


def bound_from(hits: Counts, samples: int, other: Counts, other_samples: int, event: str) -> Bound:
    """Return the bound of one event that was chosen before these reports were seen."""
    one, two = int(np.ravel(hits)[0]), int(np.ravel(other)[0])
    sizes = (np.array([one]), samples, np.array([two]), other_samples)
    return Bound(
        value=float(bound_of_counts(*sizes, 1 - CONFIDENCE)[0]),
        convicting=float(bound_of_counts(*sizes, CONVICTION_ALPHA)[0]),
        hits=one,
        samples=samples,
        other=two,
        other_samples=other_samples,
        event=event,
    )


def log_likelihood_ratio(device: VectorMechanism, reports: Reports, first: Floats, second: Floats) -> Floats:
    """Return, for each report, the log ratio of its probability under two records: the strongest test there is.

    The ratio says only which event to look at; the bound rests on counts.
    """
    if reports.index is None:
        x, other = np.broadcast_to(first, reports.value.shape), np.broadcast_to(second, reports.value.shape)
    else:
        x, other = first[reports.index], second[reports.index]
    value = np.asarray(reports.value, dtype=np.float64)
    one, two = device.base.log_law(value, x), device.base.log_law(value, other)
    with np.errstate(invalid="ignore"):
        gap = np.where(np.isneginf(one) & np.isneginf(two), 0.0, one - two)
    return np.asarray(np.clip(gap, -1e6, 1e6).sum(axis=1))


def _thresholds(first: Floats, second: Floats) -> Floats:
    # Rounded away from ties that differ in the last bits alone.
    values = np.unique(np.round(np.concatenate([first, second]), 9))
    if len(values) > _MOST_THRESHOLDS:
        values = values[np.unique(np.linspace(0, len(values) - 1, _MOST_THRESHOLDS).astype(int))]
    gap = 1e-8 * (1 + np.abs(values))
    return np.unique(np.concatenate([values - gap, values + gap]))


def _count(scores: Floats, thresholds: Floats, sign: str) -> Counts:
    ordered = np.sort(scores)
    below = np.searchsorted(ordered, thresholds, side="left" if sign == ">=" else "right")
    return np.asarray(len(scores) - below if sign == ">=" else below, dtype=np.int64)


def deterministic_gaussian_scores(count: int, shift: float) -> Floats:
    """Return the quantiles of N(shift, 1): scores without luck, for tests of the bound itself."""
    from scipy.stats import norm

    return np.asarray(norm.ppf((np.arange(count) + 0.5) / count) + shift, dtype=np.float64)


def infinite_evidence(bound: Bound) -> bool:
    """Whether the event was common under one input and never happened under the other."""
    return bound.other == 0 and bound.hits >= 20 and math.isfinite(bound.value) and bound.value > 0
