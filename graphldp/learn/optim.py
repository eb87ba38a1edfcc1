"""Adam for many runs at once: the same update as torch.optim.Adam, with a rate and a weight decay per run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

__all__ = ["Adam"]

BETA1, BETA2, TINY = 0.9, 0.999, 1e-8


class Adam:
    """Adam over parameters with a leading run axis.

    Each parameter is one tensor of all runs, so that an update is a handful of passes over memory whatever the number
    of runs. The update p -= rate / c1 * m / (sqrt(v) / sqrt(c2) + tiny), with c1 = 1 - beta1^t and c2 = 1 - beta2^t,
    is computed as p -= m / (sqrt(v) * a + b) with a = c1 / (rate sqrt(c2)) and b = tiny c1 / rate: one pass less.
    """

    def __init__(self, rates: Sequence[float], decays: Sequence[float], device: torch.device):
        self.inverse_rates = torch.tensor([1.0 / rate for rate in rates], dtype=torch.float64)
        self.decays = torch.tensor(decays, dtype=torch.float32, device=device) if any(decays) else None
        self.device = device

    @staticmethod
    def moments(parameters: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Return the first and second moments at the start."""
        zeros = [{name: torch.zeros_like(value) for name, value in parameters.items()} for _ in range(2)]
        return zeros[0], zeros[1]

    @torch.no_grad()
    def step(
        self,
        number: int,
        parameters: Mapping[str, Tensor],
        gradients: Mapping[str, Tensor],
        first: Mapping[str, Tensor],
        second: Mapping[str, Tensor],
    ) -> None:
        """Make update `number` (from 1) in place."""
        c1, c2 = 1 - BETA1**number, 1 - BETA2**number
        slope = (self.inverse_rates * (c1 / math.sqrt(c2))).to(torch.float32).to(self.device)
        offset = (self.inverse_rates * (c1 * TINY)).to(torch.float32).to(self.device)
        for name, value in parameters.items():
            shape = (-1,) + (1,) * (value.dim() - 1)
            gradient = gradients[name]
            if self.decays is not None:
                gradient = torch.addcmul(gradient, value, self.decays.view(shape))
            first[name].lerp_(gradient, 1 - BETA1)
            second[name].mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
            root = second[name].sqrt()
            torch.addcmul(offset.view(shape), root, slope.view(shape), out=root)
            value.addcdiv_(first[name], root, value=-1)
