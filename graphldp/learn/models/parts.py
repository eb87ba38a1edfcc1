"""What several backbones share: checks of options, torch's initial laws, polynomials of an operator."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from graphldp.errors import OptionError

# chain imports the default backbone, and with it this folder: its names exist once it is called.
from graphldp.learn import chain
from graphldp.learn.models.base import Batch, Parameter
from graphldp.learn.sparse import SparseMatrix

__all__ = ["check_between", "check_whole", "linear_bias", "linear_weight", "polynomial"]


def check_whole(name: str, value: Any, least: int) -> None:
    """Refuse an option that is not a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise OptionError(f"{name} must be a whole number >= {least}, got {value!r}")
    if value < least:
        raise OptionError(f"{name} must be >= {least}, got {value}")


def check_between(name: str, value: float, low: float, high: float) -> None:
    """Refuse an option outside of [low, high], and NaN."""
    if not low <= value <= high:
        raise OptionError(f"{name} must be in [{low:g}, {high:g}], got {value}")


def linear_weight(wide: int, narrow: int) -> Parameter:
    """Return a weight that starts as torch.nn.Linear's does: uniform on +-1/sqrt(inputs)."""
    return Parameter((wide, narrow), "uniform", 1.0 / math.sqrt(wide))


def linear_bias(wide: int, narrow: int) -> Parameter:
    """Return a bias that starts as torch.nn.Linear's does: uniform on +-1/sqrt(inputs)."""
    return Parameter((narrow,), "uniform", 1.0 / math.sqrt(wide))


class _Polynomial(torch.autograd.Function):
    """One step for autograd whatever the degree; the gradient is the same polynomial of the transpose."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, matrix: SparseMatrix, coefficients: tuple[float, ...]) -> Tensor:
        ctx.matrix, ctx.coefficients = matrix, coefficients
        flat = hidden.reshape(hidden.shape[0], -1)
        return chain.walked(matrix.forward, flat, coefficients).view(hidden.shape)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = gradients
        flat = gradient.reshape(gradient.shape[0], -1)
        return chain.walked(ctx.matrix.backward, flat, ctx.coefficients).view(gradient.shape), None, None


def polynomial(batch: Batch, hidden: Tensor, operator: str, coefficients: Sequence[float]) -> Tensor:
    """Return sum_k c_k A^k H for one of the backbone's operators, for [nodes, runs, width]; no step needs none."""
    if chain.trimmed(coefficients) == (1.0,):
        return hidden
    out: Tensor = _Polynomial.apply(hidden, batch.operators[operator], tuple(coefficients))  # type: ignore[no-untyped-call]
    return out
