"""The plain way to train the same models: one GCN of torch_geometric at a time on dense denoised features.

Written as one would write it with the library's own layers: cached normalisation, the features denoised once, a
training step and an evaluation in each epoch, the parameters with the lowest validation loss kept.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch.nn import functional

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from torch_geometric.nn import GCNConv


class GCN(torch.nn.Module):
    def __init__(self, dimensions: int, hidden: int, classes: int, dropout: float):
        super().__init__()
        self.first = GCNConv(dimensions, hidden, cached=True)
        self.second = GCNConv(hidden, classes, cached=True)
        self.dropout = dropout

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        x = torch.selu(self.first(x, edges))
        x = functional.dropout(x, self.dropout, training=self.training)
        return self.second(x, edges)


def denoise(dense: np.ndarray, shift: sp.csr_array, steps: int) -> torch.Tensor:
    """Return S^steps X, dense, by torch's own CSR products (faster here than scipy's or scattered messages)."""
    index = (torch.from_numpy(shift.indptr), torch.from_numpy(shift.indices))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        matrix = torch.sparse_csr_tensor(*index, torch.from_numpy(shift.data), size=shift.shape)
    x = torch.from_numpy(dense)
    for _ in range(steps):
        x = matrix @ x
    return x


def train(
    x: torch.Tensor, edges: torch.Tensor, labels: np.ndarray, split: Any, classes: int, seed: int, settings: Any
) -> tuple[np.ndarray, float]:
    """Train one model; return its predictions and the seconds of the epochs."""
    torch.manual_seed(seed)
    net = GCN(x.shape[1], settings.hidden, classes, settings.dropout)
    optimizer = torch.optim.Adam(net.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay)
    truth = torch.from_numpy(labels.astype(np.int64))
    train_nodes, held_out = torch.from_numpy(split.train), torch.from_numpy(split.validation)
    best, kept = np.inf, {}
    start = time.perf_counter()
    for _ in range(settings.epochs):
        net.train()
        optimizer.zero_grad()
        functional.cross_entropy(net(x, edges)[train_nodes], truth[train_nodes]).backward()
        optimizer.step()
        net.eval()
        with torch.no_grad():
            loss = float(functional.cross_entropy(net(x, edges)[held_out], truth[held_out]))
        if loss < best:
            best = loss
            kept = {name: value.clone() for name, value in net.state_dict().items()}
    seconds = time.perf_counter() - start
    net.load_state_dict(kept)
    net.eval()
    with torch.no_grad():
        return net(x, edges).argmax(1).numpy(), seconds
