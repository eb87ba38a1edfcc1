"""Attackers who use the graph: one who lets a person's neighbours vote, and one who learns.

The second knows some people's true values, and learns from them what the denoised reports and the graph say of the
others'. What is public about a person are her neighbours and the training labels among them. What the server has beside
it is her own rectified report, its filtered value, and her neighbours'. Both go through the same logistic regression.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from graphldp.errors import DataError
from graphldp.graph import Graph
from graphldp.server import Calibration, Estimate, Filtered

__all__ = ["LearnedView", "fit_logistic", "learned_chances", "neighbour_votes", "public_view"]

Floats: TypeAlias = NDArray[np.float64]

_STEPS = 50
_ENOUGH = 1e-8


def fit_logistic(inputs: ArrayLike, truth: ArrayLike, *, ridge: float = 1.0) -> Floats:
    """Return intercept and weights of a logistic regression with a penalty of ridge/2 times their squares, by Newton.

    The intercept is not penalised. The same input gives the same weights, on every run.
    """
    x = np.asarray(inputs, dtype=np.float64)
    y = np.asarray(truth, dtype=np.float64)
    if x.ndim != 2 or y.shape != (len(x),):
        raise DataError(f"a regression needs one truth for each row of inputs, got {y.shape} and {x.shape}")
    if not 0 < y.mean() < 1:
        raise DataError("an attacker learns from people with the attribute and without: one of the two is missing")
    design = np.column_stack([np.ones(len(x)), x])
    penalty = np.full(design.shape[1], ridge)
    penalty[0] = 0.0
    weights = np.zeros(design.shape[1])
    weights[0] = np.log(y.mean() / (1 - y.mean()))
    cost = _cost(design, y, weights, penalty)
    for _ in range(_STEPS):
        chance = _logistic(design @ weights)
        slope = design.T @ (y - chance) - penalty * weights
        bend = (design * (chance * (1 - chance))[:, None]).T @ design + np.diag(penalty + 1e-10)
        step = np.linalg.solve(bend, slope)
        size = 1.0
        while (next_cost := _cost(design, y, weights + size * step, penalty)) > cost and size > 1e-6:
            size /= 2
        weights = weights + size * step
        if cost - next_cost <= _ENOUGH * (1 + abs(cost)):
            break
        cost = next_cost
    return np.asarray(weights)


def _logistic(score: Floats) -> Floats:
    return np.asarray(np.exp(-np.logaddexp(0.0, -score)))


def _cost(design: Floats, y: Floats, weights: Floats, penalty: Floats) -> float:
    score = design @ weights
    return float(np.logaddexp(0.0, score).sum() - y @ score + penalty @ weights**2 / 2)


def neighbour_votes(graph: Graph, odds: ArrayLike) -> NDArray[np.int64]:
    """Return each person's neighbours' votes on a fact about her: those of whom it is likelier, less those of whom not.

    The attribute inference of TOGL's and PPGNN's tables: people are like their neighbours, and her own report is not
    looked at. A neighbour whose report says nothing does not vote.
    """
    return np.asarray(graph.adjacency().astype(np.int64) @ np.sign(np.asarray(odds)).astype(np.int64))


def public_view(graph: Graph, train: ArrayLike) -> Floats:
    """Return what everybody knows of each person: the classes of her neighbours, and of theirs, and her degree.

    Only the labels of `train` are read, and a person's own is left out of her row, so that people in training look
    like all others.
    """
    known = np.asarray(train, dtype=np.int64)
    one = np.zeros((graph.nodes, graph.classes))
    one[known, graph.labels[known]] = 1.0
    adjacency = graph.adjacency().astype(np.float64)
    degree = np.diff(adjacency.indptr).astype(np.float64)
    near = adjacency @ one
    far = adjacency @ near - degree[:, None] * one
    columns = [np.log1p(degree)[:, None]]
    columns += [part / np.maximum(1.0, part.sum(axis=1, keepdims=True)) for part in (near, far)]
    return np.hstack(columns)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LearnedView:
    """What the server has of each person and each of some attributes, beside what is public.

    Attributes:
        attributes: which ones.
        own: rectified reports, n x attributes.
        filtered: their values after the filter.
        around: the mean of the neighbours' rectified reports.
    """

    attributes: NDArray[np.int64]
    own: Floats
    filtered: Floats
    around: Floats

    @classmethod
    def of(cls, graph: Graph, estimate: Estimate, calibration: Calibration, attributes: ArrayLike) -> LearnedView:
        """Return the view after calibrating an estimate; only the named attributes' columns are written out."""
        chosen = np.asarray(attributes, dtype=np.int64)
        deviations = sp.csc_array(estimate.deviations())[:, chosen]
        whole = Filtered.of(estimate, calibration, calibration.operator(graph))
        narrow = replace(whole, deviations=sp.csr_array(sp.csc_array(whole.deviations)[:, chosen]))
        adjacency = graph.adjacency().astype(np.float64)
        degree = np.maximum(1.0, np.diff(adjacency.indptr))
        own = deviations.toarray().astype(np.float64)
        return cls(
            attributes=chosen,
            own=own,
            filtered=narrow.dense().astype(np.float64),
            around=(adjacency @ own) / degree[:, None],
        )

    def columns(self, position: int) -> Floats:
        """Return what the server has about one of the attributes, n x 3."""
        return np.column_stack([part[:, position] for part in (self.own, self.filtered, self.around)])


def learned_chances(inputs: Floats, truth: Any, known: ArrayLike, scored: ArrayLike) -> Floats:
    """Return how likely the fact is for each of the `scored` people, after learning from the `known` ones.

    Columns are standardised by the known people's; one that does not vary among them is left out.
    """
    mine, theirs = np.asarray(known, dtype=np.int64), np.asarray(scored, dtype=np.int64)
    mean, spread = inputs[mine].mean(axis=0), inputs[mine].std(axis=0)
    kept = spread > 1e-12 * (1 + np.abs(mean))
    scaled = (inputs[:, kept] - mean[kept]) / spread[kept]
    weights = fit_logistic(scaled[mine], np.asarray(truth)[mine])
    return _logistic(weights[0] + scaled[theirs] @ weights[1:])
