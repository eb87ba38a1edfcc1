from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from learn_factory import PlainGCN, adjacency_of, filtered_dense, small_problem, varied_runs
from pyg_factory import (
    Drop,
    Pieces,
    Plain,
    check_outputs_and_gradients,
    check_training,
    directed,
    some_runs,
    training_problem,
)
from torch import Tensor
from torch_geometric.nn import GCNConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm as pyg_norm

from graphldp.errors import OptionError
from graphldp.learn import Options, Problem, Run, model, models
from graphldp.learn.batch import without_dropout
from graphldp.learn.engine import Trainer
from graphldp.learn.layers import linear, selu
from graphldp.learn.models.gcn import GCN, gcn_norm
from graphldp.learn.models.registry import register

CPU = torch.device("cpu")


def outputs_and_gradients(problem: Problem, runs: list[Run], net: GCN, order: str) -> tuple[np.ndarray, dict]:
    trainer = Trainer(problem, runs, Options(model=net, order=order), CPU)
    every = range(len(runs))
    batch, parameters = trainer.batch(every), trainer.initial(every)
    for name, value in parameters.items():
        # Biases start at 0, where a wrong one would not show.
        parameters[name] = (value + 0.1 * torch.sin(torch.arange(value.numel())).view(value.shape)).requires_grad_()
    logits = net.head(parameters, batch, net.trunk(parameters, batch), without_dropout)
    batch.objective.loss(logits, parameters).sum().backward()
    return logits.detach().numpy(), parameters


@pytest.mark.parametrize("order", ["propagate", "materialise"])
@pytest.mark.parametrize("kinds", [("sparse", "sparse"), ("sparse", "dense"), ("dense", "dense")])
@pytest.mark.parametrize(("layers", "hidden"), [(1, 16), (2, 16), (2, 2), (3, 5)])
def test_outputs_and_gradients_equal_pyg(order: str, kinds: tuple[str, ...], layers: int, hidden: int) -> None:
    problem, labels = small_problem(kinds=kinds, classes=3)
    runs = varied_runs(problem, labels)
    logits, parameters = outputs_and_gradients(problem, runs, GCN(hidden=hidden, layers=layers), order)
    edges = torch.from_numpy(np.stack(problem.adjacency.nonzero()).astype(np.int64))
    for r, run in enumerate(runs):
        plain = PlainGCN([problem.dimensions, *[hidden] * (layers - 1), problem.classes]).double()
        plain.load({name: value[r].detach().double() for name, value in parameters.items()})
        out = plain(torch.from_numpy(filtered_dense(problem, run)), edges)
        np.testing.assert_allclose(logits[:, r], out.detach().numpy(), rtol=1e-4, atol=1e-5)
        train = torch.from_numpy(run.split.train)
        torch.nn.functional.cross_entropy(out[train], torch.from_numpy(run.labels)[train]).backward()
        for name, value in parameters.items():
            assert value.grad is not None
            expected = plain.read(name, gradient=True)
            np.testing.assert_allclose(value.grad[r].numpy(), expected, rtol=1e-3, atol=1e-6, err_msg=f"{r} {name}")


class PygGCN(Plain):
    def __init__(self, net: GCN, problem: Problem):
        super().__init__()
        widths = pairwise([problem.dimensions, *[net.hidden] * (net.layers - 1), problem.classes])
        self.layers = torch.nn.ModuleList([GCNConv(a, b) for a, b in widths])

    def pieces(self) -> Pieces:
        out: Pieces = {}
        for number, layer in enumerate(self.layers, start=1):
            out |= {f"weight{number}": [(layer.lin.weight, True)], f"bias{number}": [(layer.bias, False)]}
        return out

    def forward(self, x: Tensor, edges: Tensor, drop: Drop) -> Tensor:
        for number, layer in enumerate(self.layers):
            x = layer(x, edges)
            x = drop(torch.selu(x)) if number < len(self.layers) - 1 else x
        return x


@pytest.mark.parametrize("net", [GCN(), GCN(layers=3, hidden=5)], ids=["plain", "three layers"])
def test_one_way_edges_and_training_equal_pyg(net: GCN) -> None:
    problem, labels = small_problem(kinds=("sparse", "dense"), classes=5)
    check_outputs_and_gradients(net, lambda one: PygGCN(net, one), directed(problem), some_runs(problem, labels))
    check_training(net, lambda one: PygGCN(net, one), *training_problem())


@pytest.mark.parametrize("nodes", [1, 2, 30])
def test_normalisation_equals_pyg(nodes: int) -> None:
    adjacency = adjacency_of(nodes, nodes, np.random.default_rng(0))
    index, weight = pyg_norm(torch.from_numpy(np.stack(adjacency.nonzero()).astype(np.int64)), num_nodes=nodes)
    expected = sp.coo_array((weight.numpy(), index.numpy()), shape=(nodes, nodes)).toarray()
    np.testing.assert_allclose(gcn_norm(adjacency).toarray(), expected, rtol=1e-6)


def test_initial_weights_follow_glorots_law() -> None:
    problem, labels = small_problem(dimensions=200)
    drawn = Trainer(problem, varied_runs(problem, labels), Options(), CPU).initial(range(5))
    bound = np.sqrt(6 / (200 + 16))
    weight = drawn["weight1"].numpy()
    assert weight.shape == (5, 200, 16)
    assert abs(weight).max() <= bound
    assert abs(weight).max() > 0.99 * bound
    # Uniform on [-b, b]: mean 0, variance b^2 / 3; 16,000 draws, 6 standard errors.
    assert abs(weight.mean()) < 6 * bound / np.sqrt(3 * weight.size)
    assert weight.var() == pytest.approx(bound**2 / 3, rel=6 * np.sqrt(0.8 / weight.size))
    assert not drawn["bias1"].any()
    assert len({row.tobytes() for row in weight}) == 5


@pytest.mark.parametrize("width", [1, 7, 8, 16, 20])
def test_linear_equals_matmul(width: int) -> None:
    torch.manual_seed(0)
    hidden = torch.randn(11, 3, 6, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(3, 6, width, dtype=torch.float64, requires_grad=True)
    expected = torch.einsum("nra,rab->nrb", hidden, weight)
    torch.testing.assert_close(linear(hidden, weight), expected)
    assert torch.autograd.gradcheck(linear, (hidden, weight))


def test_selu_equals_torch() -> None:
    x = torch.linspace(-120, 120, 4801, requires_grad=True)
    torch.testing.assert_close(selu(x), torch.selu(x), rtol=0, atol=2e-7)
    ours, theirs = (torch.autograd.grad(f(x).sum(), x)[0] for f in (selu, torch.selu))
    torch.testing.assert_close(ours, theirs, rtol=0, atol=5e-7)
    assert selu(torch.tensor([float("nan")])).isnan().all()


def test_registry() -> None:
    assert "gcn" in models()
    assert model("gcn", hidden=8) == GCN(hidden=8)
    with pytest.raises(OptionError, match="unknown model 'gcnn'; did you mean 'gcn'"):
        model("gcnn")
    with pytest.raises(OptionError, match=r"model gcn has no option 'width'; it has: hidden, layers, activation"):
        model("gcn", width=3)
    for options, message in [
        ({"hidden": 0}, "hidden must be >= 1, got 0"),
        ({"layers": 0}, "layers must be >= 1, got 0"),
        ({"activation": "gelu"}, "activation must be one of relu, selu, tanh, got 'gelu'"),
    ]:
        with pytest.raises(OptionError, match=message):
            model("gcn", **options)
    with pytest.raises(ValueError, match="registered twice"):
        register("gcn")(GCN)
