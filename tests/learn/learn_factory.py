"""Small problems, and the plain way of training one run: torch_geometric's GCNConv and torch.optim.Adam."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from graphldp.learn import NodeInputs, Problem, Run, model, random_split
from graphldp.learn.noise import DropoutNoise, initial_parameters

with warnings.catch_warnings():
    # torch_geometric compiles a class with torch.jit as it is imported.
    warnings.simplefilter("ignore", DeprecationWarning)
    from torch_geometric.nn import GCNConv


def adjacency_of(nodes: int, edges: int, rng: np.random.Generator) -> sp.csr_array:
    pairs = rng.integers(0, nodes, (2, edges))
    pairs = pairs[:, pairs[0] != pairs[1]]
    matrix = sp.coo_array((np.ones(pairs.shape[1]), (pairs[0], pairs[1])), shape=(nodes, nodes)).tocsr()
    return sp.csr_array((matrix + matrix.T) > 0, dtype=np.float32)


def shift_of(adjacency: sp.csr_array) -> sp.csr_array:
    degree = np.asarray(adjacency.sum(axis=1)).ravel()
    scale = np.divide(1.0, np.sqrt(degree), out=np.zeros_like(degree, dtype=float), where=degree > 0)
    return sp.csr_array(sp.diags_array(scale) @ adjacency @ sp.diags_array(scale), dtype=np.float32)


def sparse_inputs(
    nodes: int, dimensions: int, rng: np.random.Generator, *, m: int = 2, fill: float = 0.5
) -> NodeInputs:
    columns = np.argsort(rng.random((nodes, dimensions)), axis=1)[:, :m]
    values = rng.standard_normal(nodes * m).astype(np.float32)
    matrix = sp.csr_array((values, columns.ravel(), np.arange(nodes + 1) * m), shape=(nodes, dimensions))
    return NodeInputs(deviations=matrix, fill=fill)


def dense_inputs(nodes: int, dimensions: int, rng: np.random.Generator, **options: float) -> NodeInputs:
    return NodeInputs(deviations=rng.standard_normal((nodes, dimensions)).astype(np.float32), **options)


def small_problem(
    *,
    nodes: int = 40,
    dimensions: int = 12,
    classes: int = 3,
    seed: int = 0,
    kinds: tuple[str, ...] = ("sparse", "sparse"),
) -> tuple[Problem, NDArray[np.int64]]:
    """Return a random problem and the labels."""
    rng = np.random.default_rng(seed)
    adjacency = adjacency_of(nodes, 3 * nodes, rng)
    inputs = tuple(
        sparse_inputs(nodes, dimensions, rng, fill=0.5 - 0.5 * i)
        if kind == "sparse"
        else dense_inputs(nodes, dimensions, rng, fill=0.25)
        for i, kind in enumerate(kinds)
    )
    labels = rng.integers(0, classes, nodes)
    return Problem(shift=shift_of(adjacency), adjacency=adjacency, inputs=inputs, classes=classes), labels


def make_run(problem: Problem, labels: NDArray[np.int64], seed: int, **options: object) -> Run:
    split = random_split(np.arange(problem.nodes), np.random.default_rng(1000 + seed))
    options = {"inputs": seed % len(problem.inputs)} | options
    return Run(split=split, labels=split.visible(labels), seed=seed, **options)  # type: ignore[arg-type]


def varied_runs(problem: Problem, labels: NDArray[np.int64], count: int = 5) -> list[Run]:
    """Return runs that differ in everything in which runs may differ."""
    filters = [(1.0,), (0.0, 0.0, 1.0), (0.3, 0.3, 0.4), (0.0, 1.0), (0.0, 0.0, 1.0)]
    return [
        make_run(
            problem,
            labels,
            seed,
            learning_rate=0.01 * (1 + seed % 3),
            weight_decay=0.01 * (seed % 2),
            dropout=0.25 * (seed % 4),
            coefficients=filters[seed % 5],
        )
        for seed in range(count)
    ]


def filtered_dense(problem: Problem, run: Run) -> NDArray[np.float64]:
    """Return F(X) of a run, dense, by definition."""
    one = problem.inputs[run.inputs]
    deviations = one.deviations.toarray() if one.sparse else np.asarray(one.deviations)
    power = deviations.astype(np.float64) + one.fill
    if one.filtered:
        return power
    total = np.zeros_like(power)
    for theta in run.coefficients:
        total += theta * power
        power = problem.shift.astype(np.float64) @ power
    return total


class PlainGCN(torch.nn.Module):
    """Layers of GCNConv with SELU and dropout between them."""

    def __init__(self, widths: list[int]):
        super().__init__()
        self.layers = torch.nn.ModuleList([GCNConv(a, b) for a, b in pairwise(widths)])

    def load(self, parameters: dict[str, torch.Tensor]) -> None:
        with torch.no_grad():
            for number, layer in enumerate(self.layers, start=1):
                layer.lin.weight.copy_(parameters[f"weight{number}"].T)
                layer.bias.copy_(parameters[f"bias{number}"])

    def read(self, name: str, *, gradient: bool = False) -> NDArray[np.float64]:
        layer = self.layers[int(name[-1]) - 1]
        value = layer.lin.weight.T if name.startswith("weight") else layer.bias
        if gradient:
            value = layer.lin.weight.grad.T if name.startswith("weight") else layer.bias.grad
        return value.detach().numpy().copy()

    def forward(self, x: torch.Tensor, edges: torch.Tensor, masks: list[torch.Tensor] | None = None) -> torch.Tensor:
        for number, layer in enumerate(self.layers):
            x = layer(x, edges)
            if number < len(self.layers) - 1:
                x = torch.selu(x)
                if masks is not None:
                    x = x * masks[number]
        return x


@dataclass
class Plain:
    """What the plain way has found for one run."""

    best_epoch: int
    epochs: int
    validation_loss: float
    validation_accuracy: float
    parameters: dict[str, NDArray[np.float64]]
    predictions: NDArray[np.int64]


def plain_fit(problem: Problem, run: Run, *, epochs: int, hidden: int = 16, patience: int | None = None) -> Plain:
    """Train one run in float64 with torch_geometric and torch.optim; the masks are those of (seed, epoch)."""
    net = PlainGCN([problem.dimensions, hidden, problem.classes]).double()
    shapes = model("gcn", hidden=hidden).parameters(problem.dimensions, problem.classes)
    net.load({name: value[0].double() for name, value in initial_parameters(shapes, [run.seed]).items()})
    x = torch.from_numpy(filtered_dense(problem, run))
    edges = torch.from_numpy(np.stack(problem.adjacency.nonzero()).astype(np.int64))
    optimizer = torch.optim.Adam(net.parameters(), lr=run.learning_rate, weight_decay=run.weight_decay)
    noise = DropoutNoise([run.seed], [run.dropout], torch.device("cpu"))
    labels = torch.from_numpy(np.asarray(run.labels))
    train, held_out = torch.from_numpy(run.split.train), torch.from_numpy(run.split.validation)
    best = Plain(0, 0, np.inf, 0.0, {}, np.empty(0))
    for epoch in range(epochs):
        optimizer.zero_grad()
        noise.start(epoch)
        ones = torch.ones(problem.nodes, 1, hidden)
        out = net(x, edges, [noise(ones)[:, 0].double()])
        torch.nn.functional.cross_entropy(out[train], labels[train]).backward()
        optimizer.step()
        with torch.no_grad():
            out = net(x, edges)
        loss = float(torch.nn.functional.cross_entropy(out[held_out], labels[held_out]))
        best.epochs = epoch + 1
        if loss < best.validation_loss:
            best.best_epoch, best.validation_loss = epoch + 1, loss
            best.validation_accuracy = float((out[held_out].argmax(1) == labels[held_out]).double().mean())
            best.parameters = {name: net.read(name) for name in shapes}
            best.predictions = out.argmax(1).numpy()
        if patience is not None and epoch + 1 - best.best_epoch >= patience:
            break
    return best
