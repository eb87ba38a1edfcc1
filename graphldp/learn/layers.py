"""The dense pieces of a backbone, for [nodes, runs, width]: a linear map per run, and the activations.

torch has them all; what stands here is equal to torch's to float tolerance and faster in this layout.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from graphldp.errors import OptionError
from graphldp.learn.dense import product

__all__ = ["ACTIVATIONS", "check_activation", "linear", "selu"]

SELU_ALPHA = 1.6732632423543772
SELU_SCALE = 1.0507009873554805
# exp(-20) - 1 is -1 in float32; much lower arguments give denormal numbers, with which processors are slow.
SELU_FLAT = -20.0
# Matrix products with fewer columns than a vector register holds waste most of it.
LANES = 16
# A run's weight with so many numbers is multiplied by itself; smaller ones all together.
LARGE = 2048


def _by_run(hidden: Tensor, weight: Tensor, out: Tensor) -> Tensor:
    """Write H_r W_r for each run to `out`: [nodes, runs, a] and [runs, a, b] give [nodes, runs, b]."""
    for run, one in enumerate(weight):
        out[:, run] = product(hidden[:, run], one)
    return out


class _Linear(torch.autograd.Function):
    """H_r W_r in the layout [nodes, runs, width] both ways, without transposed copies."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(hidden, weight)
        nodes, runs, _ = hidden.shape
        width = weight.shape[2]
        if weight[0].numel() >= LARGE:
            return _by_run(hidden, weight, hidden.new_empty(nodes, runs, width))
        padding = -width % LANES
        padded = torch.nn.functional.pad(weight, (0, padding)) if padding else weight
        out = hidden.new_empty(nodes, runs, width + padding)
        torch.bmm(hidden.transpose(0, 1), padded, out=out.transpose(0, 1))
        return out[:, :, :width].contiguous()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        hidden, weight = ctx.saved_tensors
        gradient, turned = gradients[0].transpose(0, 1), weight.transpose(1, 2)
        slope = torch.empty_like(hidden)
        if weight[0].numel() >= LARGE:
            _by_run(gradients[0], turned, slope)
        else:
            torch.bmm(gradient, turned, out=slope.transpose(0, 1))
        # (G^T H)^T instead of H^T G: the longer side as columns.
        return slope, torch.bmm(gradient.transpose(1, 2), hidden.transpose(0, 1)).transpose(1, 2)


def linear(hidden: Tensor, weight: Tensor) -> Tensor:
    """Return H_r W_r for each run: [nodes, runs, a] and [runs, a, b] give [nodes, runs, b]."""
    out: Tensor = _Linear.apply(hidden.contiguous(), weight)  # type: ignore[no-untyped-call]
    return out


class _Selu(torch.autograd.Function):
    """SELU whose gradient is computed from its result: no second exponential."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor) -> Tensor:
        out = torch.selu_(hidden.clamp(min=SELU_FLAT))
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (out,) = ctx.saved_tensors
        slope: Tensor = torch.ops.aten.elu_backward(gradients[0], SELU_ALPHA, SELU_SCALE, 1.0, True, out)
        return slope


def selu(hidden: Tensor) -> Tensor:
    """Return torch.selu(hidden)."""
    out: Tensor = _Selu.apply(hidden)  # type: ignore[no-untyped-call]
    return out


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"selu": selu, "relu": torch.relu, "tanh": torch.tanh}


def check_activation(name: str) -> None:
    """Refuse an activation that is not known."""
    if name not in ACTIVATIONS:
        raise OptionError(f"activation must be one of {', '.join(sorted(ACTIVATIONS))}, got {name!r}")
