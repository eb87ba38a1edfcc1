"""A lower bound on epsilon from reports alone: nobody's law is trusted, only counts.

Of two inputs and an event A of reports, log P[A | x] / P[A | x'] is at most epsilon. The event is chosen on one half
of the reports and bounded on the other with Clopper-Pearson intervals, so the choice costs no confidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphldp.audit.budget import CONFIDENCE, CONVICTION_ALPHA, TABLE_ROWS
from graphldp.audit.law import Outcomes, outcomes
from graphldp.client import Randomiser, Reports

__all__ = ["Bound", "bound_of_counts", "bound_of_scores", "log_likelihood_ratio"]

Floats: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]

_MOST_THRESHOLDS = 400
_ALPHA = (1 - CONFIDENCE) / TABLE_ROWS


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Lower bounds on epsilon and the counts behind them.

    Attributes:
        value: 95 % bound, for all rows of a table at once.
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
            values = bound_of_counts(_count(a, thresholds, sign), len(a), _count(b, thresholds, sign), len(b), _ALPHA)
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
        value=float(bound_of_counts(*sizes, _ALPHA)[0]),
        convicting=float(bound_of_counts(*sizes, CONVICTION_ALPHA)[0]),
        hits=one,
        samples=samples,
        other=two,
        other_samples=other_samples,
        event=event,
    )


def log_likelihood_ratio(bases: Sequence[Randomiser], reports: Reports, first: Floats, second: Floats) -> Floats:
    """Return, for each report, the log ratio of its probability under two records: the strongest test there is.

    The ratio says only which event to look at; the bound rests on counts.
    """
    total = np.zeros(reports.nodes)
    tables: dict[Any, tuple[Outcomes, Floats]] = {}
    for position, base in enumerate(bases):
        key = (base, float(first[position]), float(second[position]))
        if key not in tables:
            law = outcomes(base, [first[position], second[position]])
            seen = (law.mass > 1e-290).any(axis=0)
            with np.errstate(invalid="ignore"):
                ratio = np.where(seen, law.log_mass[0] - law.log_mass[1], 0.0)
            tables[key] = law, np.append(np.clip(ratio, -1e6, 1e6), 0.0)
        law, ratio = tables[key]
        if reports.index is None:
            total += ratio[law.place(np.asarray(reports.value[:, position], dtype=np.float64))]
        else:
            rows, columns = np.nonzero(reports.index == position)
            values = np.asarray(reports.value[rows, columns], dtype=np.float64)
            np.add.at(total, rows, ratio[law.place(values)])
    return total


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
