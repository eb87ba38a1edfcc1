"""Batches with their neighbourhood; a small sampler stands in for NeighborLoader and its native library."""

from __future__ import annotations

import dataclasses
import sys
import types
import warnings
from importlib.machinery import ModuleSpec
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from learn_factory import adjacency_of, make_run, shift_of, small_problem, varied_runs
from test_engine import StopAt, alike, same

from graphldp.errors import OptionError
from graphldp.learn import Interrupted, Options, Problem, State, fit, model, neighbors
from graphldp.learn.batch import without_dropout
from graphldp.learn.engine import Trainer
from graphldp.learn.minibatch import part_of
from graphldp.learn.neighbors import NeighborTrainer, WholeGraph, missing_sampler

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import torch_geometric.loader
    from torch_geometric.data import Data

CPU = torch.device("cpu")
MODELS = ("gcn", "sage", "gat", "gin")


class PlainLoader:
    """What torch_geometric's NeighborLoader does, in a loop: its arguments, its call, and what it returns."""

    drawn: ClassVar[list[torch.Tensor]] = []

    def __init__(self, data: Data, num_neighbors: list[int]):
        assert isinstance(data, Data)
        self.count, self.neighbors = data.num_nodes, num_neighbors
        self.edges = data.edge_index

    def __call__(self, index: torch.Tensor) -> Any:
        nodes, place = index.tolist(), {node: k for k, node in enumerate(index.tolist())}
        assert len(place) == len(nodes), "a node is in the batch twice"
        front, sources, targets, ids = list(nodes), [], [], []
        for most in self.neighbors:
            following = []
            for node in front:
                heard = torch.nonzero(self.edges[1] == node).ravel()
                if 0 <= most < len(heard):
                    heard = heard[torch.randperm(len(heard))[:most]]
                for edge in heard.tolist():
                    other = int(self.edges[0, edge])
                    if other not in place:
                        place[other] = len(nodes)
                        nodes.append(other)
                        following.append(other)
                    sources.append(place[other])
                    targets.append(place[node])
                    ids.append(edge)
            front = following
        PlainLoader.drawn.append(torch.tensor(ids))
        edge_index = torch.tensor([sources, targets], dtype=torch.int64)
        return SimpleNamespace(
            n_id=torch.tensor(nodes), edge_index=edge_index, e_id=torch.tensor(ids), batch_size=len(index)
        )


@pytest.fixture
def sampler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_geometric.loader, "NeighborLoader", PlainLoader)
    library = types.ModuleType("pyg_lib")
    library.__spec__ = ModuleSpec("pyg_lib", None)
    monkeypatch.setitem(sys.modules, "pyg_lib", library)


def directed_problem() -> tuple[Problem, Any]:
    """Return a problem on a directed graph with a node that hears nobody, so that no direction is taken for another."""
    problem, labels = small_problem()
    adjacency = adjacency_of(problem.nodes, 90, np.random.default_rng(4)).tolil()
    adjacency[:20, 20:] = 0
    adjacency[7] = 0
    adjacency = adjacency.tocsr()
    adjacency.eliminate_zeros()
    return dataclasses.replace(problem, adjacency=adjacency, shift=shift_of(adjacency)), labels


def weighted_problem() -> tuple[Problem, Any]:
    """Return a problem on an estimated graph, whose links have weights."""
    problem, labels = small_problem()
    adjacency = problem.adjacency.copy()
    rows, columns = adjacency.nonzero()
    adjacency.data = (0.05 + 0.95 * ((rows * columns + rows + columns) % 7) / 7).astype(np.float32)
    return dataclasses.replace(problem, adjacency=adjacency, shift=shift_of(adjacency)), labels


GRAPHS = {"plain": small_problem, "directed": directed_problem, "weighted": weighted_problem}


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_all_neighbours_of_all_nodes_are_the_full_batch(sampler: None, name: str, layers: int, graph: str) -> None:
    problem, labels = GRAPHS[graph]()
    runs = [dataclasses.replace(run, dropout=0.0) for run in varied_runs(problem, labels, count=3)]
    options = Options(model=model(name, layers=layers, hidden=4), epochs=5, patience=None)
    full = fit(problem, runs, options, device="cpu")
    batched = fit(problem, runs, dataclasses.replace(options, batch_size=problem.nodes, neighbors=-1), device="cpu")
    if name == "gat":
        # Most of the slope of its scores cancels, and Adam makes whole steps of what rounding leaves; the slope itself
        # is compared below.
        np.testing.assert_allclose(full.validation_loss, batched.validation_loss, rtol=1e-2)
    else:
        for r in range(len(runs)):
            alike(full, r, batched, r)
    assert np.mean(full.predictions == batched.predictions) > 0.97
    assert batched.record["batches"]["neighbors"] == -1


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_the_slope_of_a_batch_is_that_of_the_full_batch(sampler: None, layers: int) -> None:
    problem, labels = directed_problem()
    run = make_run(problem, labels, 1, coefficients=(0.0, 0.5, 0.5))
    options = Options(model=model("gat", hidden=4, layers=layers), batch_size=problem.nodes, neighbors=-1)
    trainer, full = NeighborTrainer(problem, [run], options, CPU, size=40), Trainer(problem, [run], options, CPU)
    nodes = np.sort(run.split.train)
    whole, rows = full.batch([0]), trainer.rows([0], [nodes], (0, 0))
    some = full.task.objective(problem, [part_of(run, nodes, train=len(nodes))], CPU)
    found = []
    parameters = full.initial([0])
    for value in parameters.values():
        value.requires_grad_()
    for outputs, objective in (
        (full.model.head(parameters, whole, full.model.trunk(parameters, whole), without_dropout), whole.objective),
        (trainer._forward(parameters, rows, without_dropout), some),
    ):
        found.append(torch.autograd.grad(objective.loss(outputs, parameters).sum(), list(parameters.values())))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_predictions_are_exact_whatever_was_drawn_in_training(sampler: None, name: str) -> None:
    """The kept parameters give the full batch's validation loss: what is selected by is not a sample."""
    problem, labels = small_problem()
    runs = [make_run(problem, labels, seed, dropout=0.25) for seed in range(2)]
    options = Options(model=model(name, hidden=4), epochs=4, batch_size=7, neighbors=2)
    outcome = fit(problem, runs, options, device="cpu")
    trainer = NeighborTrainer(problem, runs, options, CPU, size=7)
    for r, run in enumerate(runs):
        parameters = {key: torch.from_numpy(value[r : r + 1]) for key, value in outcome.parameters.items()}
        full = Trainer(problem, runs, dataclasses.replace(options, batch_size=0), CPU)
        outputs = full.outputs([r], parameters)
        torch.testing.assert_close(trainer.outputs([r], parameters), outputs, rtol=1e-4, atol=1e-5)
        loss, _ = full.task.objective(problem, [run], CPU).validate(outputs, parameters)
        assert outcome.validation_loss[r] == pytest.approx(float(loss[0]), rel=1e-4)


@pytest.mark.parametrize("graph", ["plain", "weighted"])
@pytest.mark.slow
@pytest.mark.parametrize("name", ["gcn", "sage", "gin"])
def test_a_sum_over_some_neighbours_is_right_in_the_mean(sampler: None, name: str, graph: str) -> None:
    problem, _ = GRAPHS[graph]()
    options = Options(model=model(name), neighbors=2)
    whole = WholeGraph(problem, options, hops=1)
    (operator,) = options.model.operators(problem.adjacency).values()
    h = np.random.default_rng(0).standard_normal((problem.nodes, 3))
    total, draws = np.zeros((5, 3)), 3000
    torch.manual_seed(0)
    for _ in range(draws):
        found = whole.drawn(torch.arange(5))
        (matrix,) = whole.part(found, CPU).values()
        assert matrix.forward.tensor is not None
        total += (matrix.forward.tensor.to_dense().double().numpy() @ h[found.n_id.numpy()])[:5]
    spread = np.abs(operator).sum(axis=1)[:5].max() * np.abs(h).max()
    np.testing.assert_allclose(total / draws, (operator @ h)[:5], atol=6 * spread / np.sqrt(draws))
    degree = np.diff(problem.adjacency.indptr)[:5]
    assert (degree > 2).any()


def test_each_update_draws_anew_and_a_repetition_draws_the_same(sampler: None) -> None:
    problem, labels = small_problem()
    runs = [make_run(problem, labels, seed, dropout=0.5) for seed in range(3)]
    options = Options(model=model("sage", hidden=4), epochs=3, patience=None, batch_size=9, neighbors=2)

    def drawn() -> tuple[Any, list[list[int]]]:
        PlainLoader.drawn = []
        state = torch.random.get_rng_state()
        outcome = fit(problem, runs, options, device="cpu")
        assert torch.equal(state, torch.random.get_rng_state()), "the global generator was used"
        return outcome, [one.tolist() for one in PlainLoader.drawn]

    (one, first), (two, second) = drawn(), drawn()
    same(one, two)
    assert first == second
    assert len({tuple(ids) for ids in first}) > len(first) / 2
    whole = fit(problem, runs[:1], options, device="cpu")
    with pytest.raises(Interrupted) as stop:
        fit(problem, runs[:1], options, device="cpu", progress=StopAt(3))
    state = State.from_bytes(stop.value.state.to_bytes())
    same(whole, fit(problem, runs[:1], options, device="cpu", state=state))


def test_it_learns_from_samples(sampler: None) -> None:
    problem, labels = small_problem(nodes=80, dimensions=6)
    run = make_run(problem, labels, 0, learning_rate=0.05)
    first = fit(problem, [run], Options(model=model("gcn"), epochs=1, batch_size=20, neighbors=3), device="cpu")
    last = fit(problem, [run], Options(model=model("gcn"), epochs=20, batch_size=20, neighbors=3), device="cpu")
    assert last.validation_loss[0] < first.validation_loss[0]


def test_without_a_sampler_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbors, "find_spec", lambda name: None)  # also where it is installed
    problem, labels = small_problem(nodes=3000, dimensions=4)
    runs = [make_run(problem, labels, 0)]
    wanted = (
        "model 'gcn' passes messages between its layers: batches of nodes need torch_geometric's NeighborLoader, and "
        "that pyg-lib or torch-sparse, which are not installed. Install pyg-lib, or choose one of the models "
        "appnp, mlp, posterior, sgc, ssgc, or train in full batch"
    )
    assert str(missing_sampler("gcn")) == wanted
    with pytest.raises(OptionError) as error:
        fit(problem, runs, Options(model=model("gcn"), batch_size=10))
    assert str(error.value) == wanted
    with pytest.raises(OptionError) as error:
        fit(problem, runs, Options(model=model("gcn"), max_memory=1_000_000))
    assert str(error.value).startswith("max_memory 1000000 bytes is too little for a single run; raise it to ")
    assert str(error.value).endswith(f"It would fit in batches, but {wanted}")


def test_where_nothing_else_fits(sampler: None) -> None:
    problem, labels = small_problem(nodes=300, dimensions=4)
    runs = [make_run(problem, labels, 0)]
    options = Options(model=model("gcn", hidden=64, layers=1), epochs=1)
    with pytest.raises(OptionError, match="too little for a single run"):
        fit(problem, runs, dataclasses.replace(options, max_memory=10_000), device="cpu")
    outcome = fit(problem, runs, dataclasses.replace(options, max_memory=180_000), device="cpu")
    assert outcome.record["batches"]["automatic"]


def test_options_are_checked(sampler: None) -> None:
    for bad in (0, -2):
        with pytest.raises(OptionError, match=f"neighbors must be >= 1, or -1 for all, got {bad}"):
            Options(neighbors=bad)
