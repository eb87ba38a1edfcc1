r"""Solitude: links learned together with a model, on the support of what randomised response reported.

Objective: cross-entropy(softmax(S(A)^2 X W), training labels) + ridge/2 |W|^2 + fit |A - A~|_F + sparse |A|_1, over W
    and A in [0, 1] on the reported pairs, S(A) = D^-1/2 (A + I) D^-1/2; A~ is the reported graph. Norms count each pair
    twice, as those of a symmetric matrix do.
Steps: by turns W by gradient steps, and A by a proximal gradient step: the smooth part's gradient, then what the norm
    of A takes off every weight, then [0, 1]. A step that would raise the objective is halved until it does not.
Reference: Lin et al., Towards Private Learning on Decentralized Graphs with Local Differential Privacy (Solitude),
    TIFS 2022.
Choice: the norm is not squared, so that from some lambda_1 on no weight leaves the reported graph, while below that
    training labels are fitted by links that vanish. `choose_links` tries several and keeps the one whose model has the
    lowest loss on the validation part's labels, as the server has them.
Deviations: the model is two steps of propagation and a linear layer, so that objective and gradient are exact; any
    backbone can then be trained on the graph that comes out. A stays on the reported pairs, where the paper's is dense.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from graphldp.client.links import LinkReports
from graphldp.errors import DataError, OptionError
from graphldp.server.links import (
    MAX_MEMORY,
    MORE_MEMORY,
    LinkEstimate,
    check_memory,
    estimate_links,
    reported_pairs,
    symmetric,
)

__all__ = ["FITS", "LearnOptions", "LearnedLinks", "choose_links", "learn_links"]

Floats: TypeAlias = NDArray[np.float64]

FITS = (1e-3, 2e-3, 4e-3, 8e-3)
_HALVINGS = 30
_KEPT = 1e-3  # a weight below this is no link


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnOptions:
    """How links are learned.

    Attributes:
        fit: what a departure from the reported graph costs, the paper's lambda_1.
        sparse: what weight costs, the paper's lambda_2.
        ridge: what the square of the model's weights costs.
        rounds: how often links and model take turns.
        model_steps: gradient steps of the model in each turn.
        tolerance: a turn that lowers the objective by less, relatively, is the last.
    """

    fit: float = 1e-3
    sparse: float = 1e-5
    ridge: float = 1e-3
    rounds: int = 60
    model_steps: int = 5
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        for name in ("fit", "sparse", "ridge", "tolerance"):
            if not getattr(self, name) >= 0:
                raise OptionError(f"solitude: {name} must be at least 0, got {getattr(self, name)!r}")
        for name in ("rounds", "model_steps"):
            if not getattr(self, name) >= 1:
                raise OptionError(f"solitude: {name} must be at least 1, got {getattr(self, name)!r}")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LearnedLinks:
    """What was learned.

    Attributes:
        estimate: the graph.
        objective: its value at the start and after each turn; it never rises.
        scores: n x classes, the model's own scores on that graph.
    """

    estimate: LinkEstimate
    objective: tuple[float, ...]
    scores: Floats


def _loss(scores: Floats, labels: NDArray[Any], people: NDArray[np.int64]) -> float:
    """Return the mean cross-entropy of these people's labels."""
    own = scores[people] - scores[people].max(axis=1, keepdims=True)
    return float((np.log(np.exp(own).sum(axis=1)) - own[np.arange(len(own)), labels[people]]).mean())


class _Problem:
    """The objective and its gradients, for pairs (i, j) with weights a."""

    def __init__(
        self, rows: Any, columns: Any, reported: Floats, features: Any, labels: Any, train: Any, options: LearnOptions
    ) -> None:
        self.i, self.j, self.reported, self.options = rows, columns, reported, options
        self.nodes = features.shape[0]
        self.features, self.labels, self.train = features, labels, train

    def normalised(self, a: Floats) -> tuple[sp.csr_array, Floats]:
        degree = 1 + np.bincount(self.i, a, self.nodes) + np.bincount(self.j, a, self.nodes)
        root = 1 / np.sqrt(degree)
        values = np.concatenate([a * root[self.i] * root[self.j]] * 2 + [root**2])
        ends = (
            np.concatenate([self.i, self.j, np.arange(self.nodes)]),
            np.concatenate([self.j, self.i, np.arange(self.nodes)]),
        )
        return sp.coo_array((values, ends), shape=(self.nodes, self.nodes)).tocsr(), root

    def penalty(self, a: Floats) -> float:
        away = float(np.sqrt(2 * ((a - self.reported) ** 2).sum()))
        return self.options.fit * away + 2 * self.options.sparse * float(a.sum())

    def task(self, scores: Floats) -> tuple[float, Floats]:
        """Return the mean cross-entropy of the training people, and its gradient by the scores."""
        own = scores[self.train] - scores[self.train].max(axis=1, keepdims=True)
        slope = np.exp(own) / np.exp(own).sum(axis=1, keepdims=True)
        slope[np.arange(len(own)), self.labels[self.train]] -= 1
        out = np.zeros_like(scores)
        out[self.train] = slope / len(own)
        return _loss(scores, self.labels, self.train), out

    def value(self, a: Floats, weights: Floats) -> float:
        s, _ = self.normalised(a)
        loss, _ = self.task(s @ (s @ (self.features @ weights)))
        return loss + self.options.ridge / 2 * float((weights**2).sum()) + self.penalty(a)

    def links_gradient(self, a: Floats, weights: Floats) -> Floats:
        """Return the gradient of the task's loss by the pairs' weights, through the degrees as well."""
        s, root = self.normalised(a)
        zero = self.features @ weights
        one = s @ zero
        _, second = self.task(s @ one)
        first = s @ second  # S is symmetric

        def entry(u: Any, v: Any) -> Floats:
            return np.asarray((second[u] * one[v]).sum(axis=1) + (first[u] * zero[v]).sum(axis=1))

        both = entry(self.i, self.j) + entry(self.j, self.i)
        # S_uv = (A + I)_uv / sqrt(degree_u degree_v): a degree takes -1/2 of its row's and column's share.
        flow = both * a * root[self.i] * root[self.j]
        every = np.arange(self.nodes)
        shares = np.bincount(self.i, flow, self.nodes) + np.bincount(self.j, flow, self.nodes)
        by_degree = -0.5 * root**2 * (shares + 2 * entry(every, every) * root**2)
        return np.asarray(both * root[self.i] * root[self.j] + by_degree[self.i] + by_degree[self.j])


def learn_links(
    reports: LinkReports,
    features: Any,
    labels: ArrayLike,
    train: ArrayLike,
    *,
    options: LearnOptions | None = None,
    max_memory: float = MAX_MEMORY,
) -> LearnedLinks:
    """Return the links that fit the reports and the training labels.

    Args:
        reports: everybody's, of `rr` (or of another mechanism whose reported links are a graph).
        features: n x d, dense or sparse: the server's estimate of them, not filtered.
        labels: each person's, as the server knows it; those outside of `train` are not read.
        train: who trains.
        options: how links are learned.
        max_memory: bytes.
    """
    chosen = options or LearnOptions()
    x: Any = sp.csr_array(features, dtype=np.float64) if sp.issparse(features) else np.asarray(features, np.float64)
    y, people = np.asarray(labels), np.asarray(train, dtype=np.int64)
    if x.ndim != 2 or x.shape[0] != reports.nodes or len(y) != reports.nodes:
        raise DataError(f"solitude: {reports.nodes} people need as many rows of features and labels, got {x.shape}")
    if not len(people) or y[people].min() < 0:
        raise DataError("solitude: links are learned from training labels; there is none, or somebody has no class")
    classes = int(y[people].max()) + 1
    pairs = len(reported_pairs(reports)[0])
    check_memory(pairs, reports.nodes, max_memory, "solitude", MORE_MEMORY, per_pair=8 * 8 + 6 * 8 * classes)
    edges, given = estimate_links(reports, "reported", max_memory=max_memory).edges()
    problem = _Problem(edges[0].astype(np.int64), edges[1].astype(np.int64), given.astype(float), x, y, people, chosen)
    a, weights = given.astype(np.float64), np.zeros((x.shape[1], classes))
    path = [problem.value(a, weights)]
    sizes = [1.0, 1.0]
    for _ in range(chosen.rounds):
        for _ in range(chosen.model_steps):
            weights, sizes[0] = _model_step(problem, a, weights, sizes[0])
        a, sizes[1], value = _links_step(problem, a, weights, sizes[1])
        path.append(value)
        if path[-2] - path[-1] <= chosen.tolerance * abs(path[-2]):
            break
    kept = a > _KEPT
    pairs = edges[1, kept].astype(np.int64) * reports.nodes + edges[0, kept]
    facts = {"estimator": "solitude", "links": int(kept.sum()), "reported": len(a), "turns": len(path) - 1}
    s, _ = problem.normalised(a)
    return LearnedLinks(
        estimate=LinkEstimate(adjacency=symmetric(pairs, a[kept], reports.nodes), facts=facts),
        objective=tuple(path),
        scores=np.asarray(s @ (s @ (x @ weights))),
    )


def choose_links(
    reports: LinkReports,
    features: Any,
    labels: ArrayLike,
    train: ArrayLike,
    validation: ArrayLike,
    *,
    fits: Sequence[float] = FITS,
    options: LearnOptions | None = None,
    max_memory: float = MAX_MEMORY,
) -> LearnedLinks:
    """Return what `learn_links` finds with that one of `fits` whose model is best at the labels of `validation`.

    People of a class that nobody in `train` has are left out of the comparison.
    """
    y = np.asarray(labels)
    people = np.asarray(validation, dtype=np.int64)
    people = people[(y[people] >= 0) & (y[people] <= y[np.asarray(train, dtype=np.int64)].max(initial=-1))]
    if not len(people) or not fits:
        raise DataError("solitude: a choice among links takes validation labels and something to choose from")
    own = options or LearnOptions()
    found = [
        learn_links(reports, features, y, train, options=replace(own, fit=fit), max_memory=max_memory) for fit in fits
    ]
    losses = [_loss(one.scores, y, people) for one in found]
    best = int(np.argmin(losses))
    chosen = found[best]
    return replace(chosen, estimate=replace(chosen.estimate, facts={**chosen.estimate.facts, "fit": float(fits[best])}))


def _model_step(problem: _Problem, a: Floats, weights: Floats, size: float) -> tuple[Floats, float]:
    s, _ = problem.normalised(a)
    ridge, x = problem.options.ridge, problem.features

    def value(w: Floats) -> float:
        return problem.task(s @ (s @ (x @ w)))[0] + ridge / 2 * float((w**2).sum())

    slope = x.T @ (s @ (s @ problem.task(s @ (s @ (x @ weights)))[1])) + ridge * weights
    at, square = value(weights), float((slope**2).sum())
    size *= 4
    for _ in range(_HALVINGS):
        fresh = weights - size * slope
        if value(fresh) <= at - size * square / 2:
            return fresh, size
        size /= 2
    return weights, size


def _links_step(problem: _Problem, a: Floats, weights: Floats, size: float) -> tuple[Floats, float, float]:
    at = problem.value(a, weights)
    slope = problem.links_gradient(a, weights)
    away = a - problem.reported
    norm = float(np.sqrt(2 * (away**2).sum()))
    if norm > 0:
        slope = slope + problem.options.fit * 2 * away / norm
    slope = slope + 2 * problem.options.sparse
    size = min(size * 4, 1e6)
    for _ in range(_HALVINGS):
        fresh = np.clip(a - size * slope, 0.0, 1.0)
        value = problem.value(fresh, weights)
        if value <= at:
            return fresh, size, value
        size /= 2
    return a, size, at
