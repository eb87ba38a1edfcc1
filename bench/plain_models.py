"""The plain way to train the same models: torch_geometric's own layers, one model after another, on denoised features.

Written as one would write it with the library's own layers: normalisation cached where a layer can cache it (for SGConv
and SSGConv that is the whole propagation), the features denoised once, a training step and an evaluation in each
epoch, the parameters with the lowest validation loss kept.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn import functional

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from torch_geometric.nn import APPNP, MLP, GATConv, GCNConv, GINConv, SAGEConv, SGConv, SSGConv
    from torch_geometric.utils import to_torch_csr_tensor

__all__ = ["FORMS", "build", "denoise", "form", "graph_as", "train"]

ACTIVATION = torch.selu
# A graph is given as a list of edges, the usual way, or as a CSR tensor, which SAGEConv and GINConv need so as not to
# write every message down, and with which SGConv and SSGConv are done sooner. `train.py --forms` measures both.
FORMS = ("edges", "csr")
FASTER_AS_CSR = {"sage", "gin", "sgc", "ssgc"}
FASTER_AS_CSR_IF_LARGE = {"gcn"}
LARGE = 10_000


def form(name: str, nodes: int) -> str:
    """Return the faster form of the graph for a model."""
    return "csr" if name in FASTER_AS_CSR or (nodes >= LARGE and name in FASTER_AS_CSR_IF_LARGE) else "edges"


def graph_as(kind: str, adjacency: sp.csr_array) -> Tensor:
    """Return a symmetric graph as what the layers take."""
    edges = torch.from_numpy(np.stack(adjacency.nonzero()).astype(np.int64))
    if kind == "edges":
        return edges
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse")
        csr: Tensor = to_torch_csr_tensor(edges, size=adjacency.shape)
    return csr


class TwoLayers(torch.nn.Module):
    """Two convolutions with an activation and dropout between them."""

    def __init__(self, first: torch.nn.Module, second: torch.nn.Module, dropout: float):
        super().__init__()
        self.first, self.second, self.dropout = first, second, dropout

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        x = functional.dropout(ACTIVATION(self.first(x, edges)), self.dropout, training=self.training)
        out: Tensor = self.second(x, edges)
        return out


class Walk(torch.nn.Module):
    """A perceptron, then APPNP's walk."""

    def __init__(self, perceptron: torch.nn.Module, walk: torch.nn.Module):
        super().__init__()
        self.perceptron, self.walk = perceptron, walk

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        out: Tensor = self.walk(self.perceptron(x), edges)
        return out


class Alone(torch.nn.Module):
    """A perceptron that never looks at the edges."""

    def __init__(self, perceptron: torch.nn.Module):
        super().__init__()
        self.perceptron = perceptron

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        out: Tensor = self.perceptron(x)
        return out


def perceptron(wide: int, hidden: int, narrow: int, dropout: float, *, bias: bool = True) -> torch.nn.Module:
    return MLP([wide, hidden, narrow], act=ACTIVATION, norm=None, dropout=dropout, bias=bias)


def build(
    name: str, dimensions: int, classes: int, hidden: int, dropout: float, *, cached: bool = True
) -> torch.nn.Module:
    """Return the model that graphldp's backbone of that name is with its default options."""
    if name == "gcn":
        first, second = GCNConv(dimensions, hidden, cached=cached), GCNConv(hidden, classes, cached=cached)
    elif name == "sage":
        first, second = SAGEConv(dimensions, hidden), SAGEConv(hidden, classes)
    elif name == "gat":
        first, second = GATConv(dimensions, hidden, heads=4), GATConv(4 * hidden, classes, heads=1)
    elif name == "gin":
        first = GINConv(perceptron(dimensions, hidden, hidden, 0.0))
        second = GINConv(perceptron(hidden, hidden, classes, 0.0))
    elif name == "appnp":
        return Walk(perceptron(dimensions, hidden, classes, dropout), APPNP(K=10, alpha=0.1, cached=cached))
    elif name == "sgc":
        return SGConv(dimensions, classes, K=2, cached=cached)
    elif name == "ssgc":
        return SSGConv(dimensions, classes, alpha=0.05, K=16, cached=cached)
    elif name == "mlp":
        return Alone(perceptron(dimensions, hidden, classes, dropout, bias=False))
    else:
        raise ValueError(f"no plain model {name!r}")
    return TwoLayers(first, second, dropout)


def denoise(dense: np.ndarray, shift: sp.csr_array, steps: int) -> Tensor:
    """Return S^steps X, dense, by torch's own CSR products (faster here than scipy's or scattered messages)."""
    index = (torch.from_numpy(shift.indptr), torch.from_numpy(shift.indices))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse")
        matrix = torch.sparse_csr_tensor(*index, torch.from_numpy(shift.data), size=shift.shape)
    x = torch.from_numpy(dense)
    for _ in range(steps):
        x = matrix @ x
    return x


def train(
    net: torch.nn.Module, x: Tensor, edges: Tensor, labels: np.ndarray, split: Any, settings: Any
) -> tuple[np.ndarray, list[tuple[float, float]]]:
    """Train one model; return its predictions, and the seconds and CPU seconds of each epoch."""
    optimizer = torch.optim.Adam(net.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay)
    truth = torch.from_numpy(labels.astype(np.int64))
    train_nodes, held_out = torch.from_numpy(split.train), torch.from_numpy(split.validation)
    best, kept, spent = np.inf, {}, []
    # One more: in the first one layers fill what they keep.
    for _ in range(settings.epochs + 1):
        start, used = time.perf_counter(), time.process_time()
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
        spent.append((time.perf_counter() - start, time.process_time() - used))
    net.load_state_dict(kept)
    net.eval()
    with torch.no_grad():
        return net(x, edges).argmax(1).numpy(), spent
