"""The nodes of each run that a loss is taken over, with their targets, for all runs of a batch at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["Picks"]


class Picks:
    """The chosen nodes of each run with their targets, padded to the same number; padding weighs nothing."""

    def __init__(
        self,
        nodes: Sequence[NDArray[np.int64]],
        targets: Sequence[NDArray[Any]],
        device: torch.device,
        kind: type[np.generic] = np.int64,
    ):
        count, longest = len(nodes), max(len(one) for one in nodes)
        rows = np.zeros((count, longest), dtype=np.int64)
        target = np.zeros((count, longest, *np.shape(targets[0])[1:]), dtype=kind)
        weight = np.zeros((count, longest), dtype=np.float32)
        for run, (one, truth) in enumerate(zip(nodes, targets, strict=True)):
            # Outputs stand in (node, run) order.
            rows[run, : len(one)] = one * count + run
            target[run, : len(one)] = truth[one]
            weight[run, : len(one)] = 1.0 / len(one)
        self.nodes, self.targets = list(nodes), list(targets)
        self.shape = (count, longest)
        self.rows = torch.from_numpy(rows.ravel()).to(device)
        # A padded entry's gradient is written to one row behind all others.
        spare = np.where(weight > 0, rows, -1).ravel()
        self.padded = bool((spare < 0).any())
        self.places = torch.from_numpy(spare).to(device)
        self.target = torch.from_numpy(target.ravel()).to(device).unsqueeze(0)
        self.weight = torch.from_numpy(weight).to(device)
        self.real = self.weight > 0
        self.sizes = np.array([len(one) for one in nodes])

    def choose(self, outputs: Tensor) -> Tensor:
        """Return the outputs of the chosen nodes, [runs * nodes, width]."""
        return outputs.reshape(-1, outputs.shape[2]).index_select(0, self.rows)
