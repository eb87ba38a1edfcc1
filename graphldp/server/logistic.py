r"""Multi-class logistic regression with an L1 penalty on a factored embedding (TOGL's SMA).

Formula: minimise 1/n sum_i loss(y_i, W h_i + b) + lambda |W|_1, softmax cross-entropy, b unpenalised.
Method: accelerated proximal gradient with restarts. A product with H is d x C, then n x C: never n x d.
Reference: TOGL, Eq. 7. Deviations: the intercept b, which Eq. 7 leaves out and every implementation of it has;
    `intercept=False` is the equation as printed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphldp.errors import OptionError
from graphldp.server.filtered import Filtered
from graphldp.server.pair_products import PairProducts

__all__ = ["SparseLogistic", "fit_sparse_logistic"]

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparseLogistic:
    """A fitted regression.

    Attributes:
        weight: d x C.
        intercept: C.
        pull: d, the largest gradient of the loss in an attribute's weights, in units of lambda: 1 where a weight is not
            0, and the closer to 1 the sooner the attribute would be used if lambda fell.
        penalty: lambda, on the embedding's own scale.
        iterations: how many were needed.
        residual: the largest violation of the optimality conditions, in units of lambda.
        converged: whether it is within the tolerance.
    """

    weight: Floats
    intercept: Floats
    pull: Floats
    penalty: float
    iterations: int
    residual: float
    converged: bool

    def record(self) -> dict[str, Any]:
        """Return everything but the weights, as JSON-able values."""
        return {
            "penalty": self.penalty,
            "iterations": self.iterations,
            "residual": self.residual,
            "converged": self.converged,
            "attributes_used": int((self.weight != 0).any(axis=1).sum()),
        }


@dataclass(frozen=True, slots=True, eq=False)
class _Design:
    """H at the training nodes, centred and divided by a number: `times` is d x C -> n x C, `back` its transpose."""

    times: Callable[[Floats], Floats]
    back: Callable[[Floats], Floats]
    mean: Floats
    scale: float


def _design(filtered: Filtered | PairProducts, nodes: NDArray[np.int64], *, centre: bool) -> _Design:
    """Centring changes the intercept alone, and takes away the direction that all nodes share."""
    times, back = filtered.rows(nodes)
    count = len(nodes)
    mean = back(np.ones((count, 1)))[:, 0] / count if centre else np.zeros(filtered.dimensions)
    largest = _largest_singular(
        lambda v: times(v) - mean @ v, lambda u: back(u) - np.outer(mean, u.sum(axis=0)), filtered.dimensions
    )
    # With this scale the largest singular value is sqrt(n), as a column of ones has, so one step size fits W and b.
    scale = largest / np.sqrt(count) if largest > 0 else 1.0
    return _Design(
        times=lambda w: (times(w) - mean @ w) / scale,
        back=lambda g: (back(g) - np.outer(mean, g.sum(axis=0))) / scale,
        mean=mean,
        scale=scale,
    )


def _largest_singular(times: Callable[[Floats], Floats], back: Callable[[Floats], Floats], dimensions: int) -> float:
    vector = np.cos(np.arange(1, dimensions + 1, dtype=np.float64))[:, None]
    size = 0.0
    for _ in range(100):
        vector /= np.linalg.norm(vector)
        image = times(vector)
        before, size = size, float(np.linalg.norm(image))
        vector = back(image)
        if not np.any(vector) or abs(size - before) <= 1e-4 * size:
            break
    return size


def _softmax(scores: Floats) -> Floats:
    out = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(out / out.sum(axis=1, keepdims=True))


def fit_sparse_logistic(
    filtered: Filtered | PairProducts,
    nodes: NDArray[np.int64],
    codes: NDArray[np.int64],
    *,
    strength: float = 0.1,
    penalty: float | None = None,
    intercept: bool = True,
    tolerance: float = 1e-3,
    iterations: int = 2000,
) -> SparseLogistic:
    """Return the regression of the training nodes' classes on their rows of H.

    Args:
        filtered: the embedding, with a linear filter, or the products of pairs.
        nodes: the training nodes.
        codes: their classes, 0..C-1, each of them present.
        strength: lambda as a share of the smallest one at which all weights vanish. It means the same at every budget,
            whereas the embedding's scale, and with it the meaning of lambda, follows the noise.
        penalty: lambda itself, in place of `strength`.
        intercept: whether there is b.
        tolerance: the largest violation of the optimality conditions to stop at, in units of lambda.
        iterations: how many to try at most.
    """
    if penalty is None and not 0 < strength <= 1:
        raise OptionError(f"strength must be above 0 and at most 1, got {strength}")
    if penalty is not None and not 0 < penalty < np.inf:
        raise OptionError(f"penalty must be above 0, got {penalty}")
    if not tolerance > 0 or iterations < 1:
        raise OptionError(f"tolerance must be above 0 and iterations at least 1, got {tolerance} and {iterations}")
    design = _design(filtered, nodes, centre=intercept)
    count, classes = len(nodes), int(codes.max()) + 1
    target = np.zeros((count, classes))
    target[np.arange(count), codes] = 1.0
    start = np.log(np.maximum(target.mean(axis=0), 1e-300)) if intercept else np.zeros(classes)
    vanishing = float(np.abs(design.back(_softmax(np.tile(start, (count, 1))) - target)).max()) / count
    inner = strength * vanishing if penalty is None else penalty / design.scale
    weight, bias, used, residual = _solve(design, target, start, inner, intercept, tolerance, iterations)
    error = (_softmax(design.times(weight) + bias) - target) / count
    away = np.abs(design.back(error)).max(axis=1)
    # Without a penalty nothing pulls: rows that are all the same, as those of people without neighbours, have none.
    pull = away / inner if inner > 0 else np.zeros_like(away)
    weight = weight / design.scale
    return SparseLogistic(
        weight=weight,
        pull=pull,
        intercept=bias - design.mean @ weight,
        penalty=inner * design.scale,
        iterations=used,
        residual=residual,
        converged=residual <= tolerance,
    )


def _solve(
    design: _Design,
    target: Floats,
    start: Floats,
    penalty: float,
    intercept: bool,
    tolerance: float,
    iterations: int,
) -> tuple[Floats, Floats, int, float]:
    """Return weights, intercepts, the iterations used and the violation in units of the penalty."""
    count = len(target)
    # The softmax's curvature is at most 1/2, the design's is 1 by its scale; a little above, as that was estimated.
    step = 1 / (0.5 * 1.05)
    weight = np.zeros((len(design.mean), target.shape[1]))
    bias = start.copy()
    ahead, ahead_bias, momentum = weight, bias, 1.0
    residual = np.inf
    for iteration in range(1, iterations + 1):
        error = (_softmax(design.times(ahead) + ahead_bias) - target) / count
        moved = ahead - step * design.back(error)
        new = np.sign(moved) * np.maximum(np.abs(moved) - step * penalty, 0)
        new_bias = ahead_bias - step * error.sum(axis=0) if intercept else bias
        violation = max(float(np.abs(new - ahead).max()), float(np.abs(new_bias - ahead_bias).max())) / step
        residual = violation / penalty if penalty > 0 else (0.0 if violation == 0 else np.inf)
        if residual <= tolerance:
            return new, new_bias, iteration, residual
        # Momentum that points uphill is dropped.
        uphill = float(np.vdot(ahead - new, new - weight) + np.vdot(ahead_bias - new_bias, new_bias - bias)) > 0
        following = 1.0 if uphill else (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        speed = 0.0 if uphill else (momentum - 1) / following
        ahead = new + speed * (new - weight)
        ahead_bias = new_bias + speed * (new_bias - bias)
        weight, bias, momentum = new, new_bias, following
    return weight, bias, iterations, residual
