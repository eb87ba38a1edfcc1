"""Randomness of training: a function of a run's seed and of the epoch, never of what was drawn before.

A run therefore starts at the same parameters and drops the same units whether it is trained alone or in a batch, at
once or resumed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from graphldp.learn.models.base import Parameter
from graphldp.randomness import seed_of

__all__ = ["DropoutNoise", "initial_parameters"]

LEVELS = 256
LOWEST = -(2**63)  # random_ without bounds leaves the sign bit out


def initial_parameters(shapes: Mapping[str, Parameter], seeds: Sequence[int]) -> dict[str, Tensor]:
    """Return the initial parameters of all runs, on the CPU, with a leading run axis."""
    out = {}
    for name, parameter in shapes.items():
        drawn = [
            parameter.draw(torch.Generator().manual_seed(seed_of(seed, "initial parameters", name))) for seed in seeds
        ]
        out[name] = torch.stack(drawn)
    return out


class DropoutNoise:
    """Dropout for a batch of runs, each with its own rate.

    A unit is dropped if a random byte is below 256 times the rate: rates are multiples of 1/256, and what is kept is
    scaled by the actual probability. One generator per run and epoch fills 8 bytes at a time.
    """

    def __init__(self, seeds: Sequence[int], rates: Sequence[float], device: torch.device):
        levels = [min(round(rate * LEVELS), LEVELS - 1) for rate in rates]
        self.seeds, self.levels, self.device = list(seeds), levels, device
        self.thresholds = torch.tensor(levels, dtype=torch.uint8, device=device).view(-1, 1)
        scales = [LEVELS / (LEVELS - level) for level in levels]
        self.scales = torch.tensor(scales, dtype=torch.float32, device=device).view(-1, 1)
        # MPS generators draw no 64-bit integers.
        self.source = torch.device("cpu") if device.type == "mps" else device
        self.generators = [torch.Generator(self.source) for _ in seeds]
        self.epoch: int | None = None

    def start(self, epoch: int) -> None:
        """Begin an epoch: the calls that follow draw one after the other from the generators of (seed, epoch)."""
        for generator, seed, level in zip(self.generators, self.seeds, self.levels, strict=True):
            if level:
                generator.manual_seed(seed_of(seed, "dropout", epoch))
        self.epoch = epoch

    def mask(self, nodes: int, width: int) -> Tensor:
        """Draw the next mask, [nodes, runs, width]: 1 where a unit is kept, 0 where it is dropped."""
        count = nodes * width
        words = torch.zeros(len(self.seeds), -(-count // 8), dtype=torch.int64, device=self.source)
        for row, generator, level in zip(words, self.generators, self.levels, strict=True):
            if level:
                row.random_(LOWEST, None, generator=generator)
        drawn = words.view(torch.uint8)[:, :count].view(-1, nodes, width).to(self.device)
        out = torch.empty(nodes, len(self.seeds), width, dtype=torch.float32, device=self.device)
        return torch.ge(drawn.transpose(0, 1), self.thresholds, out=out)

    def __call__(self, hidden: Tensor) -> Tensor:
        """Return the units with some dropped, [nodes, runs, width]."""
        if not any(self.levels):
            return hidden
        return hidden * self.mask(hidden.shape[0], hidden.shape[2]).mul_(self.scales)
