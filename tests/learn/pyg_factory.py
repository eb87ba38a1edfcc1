"""A backbone against torch_geometric's own layers: one run at a time, in float64, with torch.optim.Adam."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from learn_factory import filtered_dense, make_run, shift_of, small_problem, varied_runs
from numpy.typing import NDArray
from torch import Tensor

from graphldp.learn import Backbone, NodeInputs, Options, Problem, Run, Split, fit
from graphldp.learn.batch import GraphMatrices, RunBatch, without_dropout
from graphldp.learn.noise import DropoutNoise, initial_parameters

CPU = torch.device("cpu")
Drop: TypeAlias = Callable[[Tensor], Tensor]
# One of ours is some of theirs side by side; theirs may be stored transposed or with another shape.
Pieces: TypeAlias = dict[str, list[tuple[torch.nn.Parameter, bool]]]


class Plain(torch.nn.Module):
    """The same model built from torch_geometric's layers."""

    def pieces(self) -> Pieces:
        raise NotImplementedError

    def forward(self, x: Tensor, edges: Tensor, drop: Drop) -> Tensor:
        raise NotImplementedError

    @torch.no_grad()
    def load(self, parameters: dict[str, Tensor]) -> None:
        pieces = self.pieces()
        assert pieces.keys() == parameters.keys()
        assert {id(one) for some in pieces.values() for one, _ in some} == {id(one) for one in self.parameters()}
        for name, some in pieces.items():
            assert sum(one.numel() for one, _ in some) == parameters[name].numel(), name
            for (one, transposed), part in zip(some, parameters[name].chunk(len(some), dim=-1), strict=True):
                one.copy_((part.T if transposed else part).reshape(one.shape))

    def read(self, name: str, *, gradient: bool = False) -> NDArray[np.float64]:
        parts = []
        for one, transposed in self.pieces()[name]:
            value = one.grad if gradient else one.detach()
            assert value is not None, name
            value = value.squeeze(0) if value.dim() > 2 else value
            parts.append((value.T if transposed else value).numpy())
        return np.concatenate(parts, axis=-1).copy()


Builder: TypeAlias = Callable[[Problem], Plain]


def edges_of(problem: Problem) -> Tensor:
    """Return torch_geometric's list: sources above targets, as row i of the adjacency collects from its columns."""
    targets, sources = problem.adjacency.nonzero()
    return torch.from_numpy(np.stack([sources, targets]).astype(np.int64))


def directed(problem: Problem) -> Problem:
    """Return the problem with half of its edges one-way: a transpose that is missing somewhere shows."""
    matrix = sp.csr_array(sp.triu(problem.adjacency) + sp.tril(problem.adjacency.multiply(stripes(problem.nodes))))
    matrix.eliminate_zeros()
    return dataclasses.replace(problem, adjacency=matrix)


def stripes(nodes: int) -> NDArray[np.float32]:
    return (np.add.outer(np.arange(nodes), np.arange(nodes)) % 2).astype(np.float32)


def check_outputs_and_gradients(
    net: Backbone, build: Builder, problem: Problem, runs: list[Run], order: str = "propagate"
) -> None:
    batch = RunBatch(problem, runs, GraphMatrices(problem, net, CPU), order)
    shapes = net.parameters(problem.dimensions, problem.classes)
    parameters = initial_parameters(shapes, [run.seed for run in runs])
    for name, value in parameters.items():
        # Some start at 0, where a wrong one would not show.
        parameters[name] = (value + 0.1 * torch.sin(torch.arange(value.numel())).view(value.shape)).requires_grad_()
    hidden = net.trunk(parameters, batch)
    assert hidden.shape[:2] == (problem.nodes, len(runs))
    logits = net.head(parameters, batch, hidden, without_dropout)
    assert logits.shape == (problem.nodes, len(runs), problem.classes)
    slope = torch.cos(torch.arange(problem.nodes * problem.classes).double()).view(problem.nodes, problem.classes)
    (logits * slope.unsqueeze(1)).sum().backward()
    for r, run in enumerate(runs):
        plain = build(problem).double()
        plain.load({name: value[r].detach().double() for name, value in parameters.items()})
        out = plain(torch.from_numpy(filtered_dense(problem, run)), edges_of(problem), without_dropout)
        np.testing.assert_allclose(logits[:, r].detach().numpy(), out.detach().numpy(), rtol=1e-4, atol=2e-5)
        (out * slope).sum().backward()
        for name, value in parameters.items():
            assert value.grad is not None, name
            expected = plain.read(name, gradient=True)
            # Sums over all nodes in float32: the error is relative to the largest entry.
            close = 1e-5 * max(1.0, abs(expected).max())
            np.testing.assert_allclose(value.grad[r].numpy(), expected, rtol=1e-3, atol=close, err_msg=f"{r} {name}")


@dataclass
class Best:
    """What the plain way has found for one run.

    `idle` marks entries whose gradient was 0 up to rounding in some epoch, as that of a node's own score is if
    LeakyReLU bends nowhere among its edges: Adam walks along whatever rounding leaves, which in float32 is anything.
    """

    epoch: int = 0
    loss: float = np.inf
    accuracy: float = 0.0
    parameters: dict[str, Any] = dataclasses.field(default_factory=dict)
    predictions: Any = None
    idle: dict[str, Any] = dataclasses.field(default_factory=dict)


def plain_training(net: Backbone, build: Builder, problem: Problem, run: Run, epochs: int) -> Best:
    """Train one run with torch.optim.Adam; units are dropped by the masks of (seed, epoch)."""
    plain = build(problem).double()
    shapes = net.parameters(problem.dimensions, problem.classes)
    plain.load({name: value[0].double() for name, value in initial_parameters(shapes, [run.seed]).items()})
    x, edges = torch.from_numpy(filtered_dense(problem, run)), edges_of(problem)
    optimizer = torch.optim.Adam(plain.parameters(), lr=run.learning_rate, weight_decay=run.weight_decay)
    noise = DropoutNoise([run.seed], [run.dropout], CPU)
    labels = torch.from_numpy(np.asarray(run.labels))
    train, held_out = torch.from_numpy(run.split.train), torch.from_numpy(run.split.validation)

    def drop(hidden: Tensor) -> Tensor:
        return hidden * noise(torch.ones(hidden.shape[0], 1, hidden.shape[1]))[:, 0].double()

    best, idle = Best(), dict.fromkeys(shapes, np.False_)
    for epoch in range(epochs):
        optimizer.zero_grad()
        noise.start(epoch)
        torch.nn.functional.cross_entropy(plain(x, edges, drop)[train], labels[train]).backward()
        for name in shapes:
            gradient = abs(plain.read(name, gradient=True) + run.weight_decay * plain.read(name))
            idle[name] = idle[name] | ((gradient > 0) & (gradient < 1e-6))
        optimizer.step()
        with torch.no_grad():
            out = plain(x, edges, without_dropout)
        loss = float(torch.nn.functional.cross_entropy(out[held_out], labels[held_out]))
        if loss < best.loss:
            best = Best(epoch + 1, loss, float((out[held_out].argmax(1) == labels[held_out]).double().mean()))
            best.parameters = {name: plain.read(name) for name in shapes}
            best.predictions, best.idle = out.argmax(1).numpy(), dict(idle)
    return best


def check_training(net: Backbone, build: Builder, problem: Problem, runs: list[Run], epochs: int = 12) -> None:
    outcome = fit(problem, runs, Options(model=net, epochs=epochs, patience=None), device="cpu")
    for r, run in enumerate(runs):
        best = plain_training(net, build, problem, run, epochs)
        assert best.epoch > 5, "hardly anything was learned: the comparison says little"
        assert outcome.best_epoch[r] == best.epoch
        assert outcome.validation_loss[r] == pytest.approx(best.loss, rel=1e-4)
        assert outcome.validation_accuracy[r] == pytest.approx(best.accuracy)
        compared = 0
        for name, value in best.parameters.items():
            steered = ~best.idle[name]
            compared += steered.sum()
            np.testing.assert_allclose(
                outcome.parameters[name][r][steered], value[steered], rtol=2e-3, atol=2e-4, err_msg=f"run {r} {name}"
            )
        assert compared > 0.8 * sum(value.size for value in best.parameters.values())
        np.testing.assert_array_equal(outcome.predictions[r], best.predictions)


def training_problem() -> tuple[Problem, list[Run]]:
    """Return runs that differ in everything; whatever is learned shows in the validation loss.

    The graph is there twice: validation nodes are the twins of the training nodes, so that the best epoch is a late
    one for every backbone, however few steps it is given.
    """
    one, labels = small_problem(kinds=("dense", "sparse"))
    twice = [sp.csr_array(sp.block_diag([matrix, matrix])) for matrix in (one.shift, one.adjacency)]
    inputs = tuple(
        NodeInputs(
            deviations=sp.csr_array(sp.vstack([x.deviations] * 2)) if x.sparse else np.vstack([x.deviations] * 2),
            fill=x.fill,
        )
        for x in one.inputs
    )
    runs = []
    for run in varied_runs(one, labels):
        train, rest = run.split.train, run.split.test
        split = Split(train=train, validation=train + one.nodes, test=np.concatenate([rest, rest + one.nodes]))
        runs.append(dataclasses.replace(run, split=split, labels=split.visible(np.tile(labels, 2))))
    return Problem(shift=twice[0], adjacency=twice[1], inputs=inputs, classes=one.classes), runs


def small(nodes: int, edges: list[tuple[int, int]], classes: int) -> Problem:
    adjacency = sp.lil_array((nodes, nodes), dtype=np.float32)
    for u, v in edges:
        adjacency[u, v] = adjacency[v, u] = 1
    matrix = sp.csr_array(adjacency)
    values = np.random.default_rng(0).standard_normal((nodes, 4)).astype(np.float32)
    inputs = (NodeInputs(deviations=sp.csr_array(values), fill=0.5), NodeInputs(deviations=values))
    return Problem(shift=shift_of(matrix), adjacency=matrix, inputs=inputs, classes=classes)


SMALL = [
    pytest.param(small(5, [(0, 1), (1, 2), (2, 3)], 2), id="isolated node"),
    pytest.param(small(5, [], 2), id="no edges"),
    pytest.param(small(4, [(0, 1), (2, 3)], 1), id="one class"),
    pytest.param(small(1, [], 2), id="one node"),
]


def check_small(net: Backbone, build: Builder, problem: Problem) -> None:
    """Check a graph that lacks something: outputs, gradients and the end of a training are those of the plain way."""
    nodes = np.arange(problem.nodes)
    split = Split(train=nodes[:2], validation=nodes[2:], test=nodes[:0])
    runs = [
        Run(
            inputs=inputs,
            split=split,
            labels=split.visible(nodes % problem.classes),
            seed=3 + inputs,
            dropout=0.5,
            coefficients=(0.5, 0.5),
        )
        for inputs in range(2)
    ]
    check_outputs_and_gradients(net, build, problem, runs)
    if problem.nodes == 1:
        return  # nothing to select by, and therefore nothing to train
    outcome = fit(problem, runs, Options(model=net, epochs=8, patience=None), device="cpu")
    assert not outcome.failed.any()
    for r, run in enumerate(runs):
        best = plain_training(net, build, problem, run, epochs=8)
        assert outcome.validation_loss[r] == pytest.approx(best.loss, rel=1e-4, abs=1e-6)
    assert outcome.predictions.shape == (2, problem.nodes)
    assert outcome.predictions.max() < problem.classes


def some_runs(problem: Problem, labels: NDArray[np.int64], count: int = 3) -> list[Run]:
    filters = [(1.0,), (0.0, 0.0, 1.0), (0.3, 0.3, 0.4)]
    return [make_run(problem, labels, seed, coefficients=filters[seed % 3]) for seed in range(count)]
