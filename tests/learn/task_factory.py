"""Problems for every task, and the plain way of training one run: torch_geometric, torch's losses, torch.optim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
import torch
from learn_factory import PlainGCN, adjacency_of, filtered_dense, make_run, shift_of, small_problem, sparse_inputs
from numpy.typing import NDArray
from torch.nn import functional

from graphldp.learn import EdgeSplit, MessageGraph, Options, Problem, Run, Values, edge_split, model, task
from graphldp.learn.engine import Trainer
from graphldp.learn.noise import DropoutNoise, initial_parameters
from graphldp.learn.tasks.base import Task
from graphldp.learn.tasks.edges import Links

HIDDEN = 8
FILTERS = [(1.0,), (0.0, 0.0, 1.0), (0.3, 0.3, 0.4), (0.0, 1.0)]
Losses = tuple[torch.Tensor, torch.Tensor]
PlainLosses = Callable[[torch.Tensor, Run, dict[str, torch.Tensor]], Losses]


def options_of(what: Task, **given: object) -> Options:
    return Options(model=model("gcn", hidden=HIDDEN), task=what, **given)  # type: ignore[arg-type]


def node_runs(count: int = 4, seed: int = 0) -> tuple[Problem, list[Run], NDArray[np.int64], NDArray[np.float64]]:
    """Return runs with labels and values, and what is hidden from them."""
    problem, labels = small_problem(seed=seed)
    values = np.random.default_rng(seed + 5).normal(2.0, 1.0, problem.nodes)
    runs = []
    for number in range(count):
        plain = make_run(problem, labels, number)
        runs.append(
            make_run(
                problem,
                labels,
                number,
                targets=Values.visible(plain.split, values),
                learning_rate=0.01 * (1 + number % 3),
                weight_decay=0.01 * (number % 2),
                dropout=0.25 * (number % 3),
                coefficients=FILTERS[number % 4],
            )
        )
    return problem, runs, labels, values


def set_runs(count: int = 4) -> tuple[Problem, list[Run], NDArray[np.bool_]]:
    """Return runs with sets of labels, which are more or less common, and everybody's sets."""
    problem, runs, _, _ = node_runs(count)
    rng = np.random.default_rng(9)
    sets = rng.random((problem.nodes, problem.classes)) < np.linspace(0.2, 0.8, problem.classes)
    none = np.empty(0, np.int64)
    return problem, [replace(run, labels=none, targets=Values.visible(run.split, sets)) for run in runs], sets


def link_runs(
    count: int = 6, *, graphs: int = 3, nodes: int = 40, edges: int = 90, isolated: int = 0, kind: str = "sparse"
) -> tuple[Problem, list[Run], list[EdgeSplit]]:
    """Return runs on several edge splits, each with the graph of its split, and the split of each run."""
    rng = np.random.default_rng(0)
    inside = adjacency_of(nodes - isolated, edges, rng).tocoo()
    upper = inside.row < inside.col
    pairs = np.stack([inside.row[upper], inside.col[upper]])
    splits = [edge_split(pairs, nodes, np.random.default_rng(10 + k)) for k in range(graphs)]
    inputs = [sparse_inputs(nodes, 12, rng) for _ in range(2)]
    problem = Problem.over([graph_of(split) for split in splits], inputs)
    runs = [
        Run(
            inputs=number % 2,
            seed=number,
            targets=splits[number % graphs].visible(),
            graph=number % graphs,
            learning_rate=0.01 * (1 + number % 3),
            weight_decay=0.01 * (number % 2),
            dropout=0.25 * (number % 3),
            coefficients=FILTERS[number % 4],
        )
        for number in range(count)
    ]
    return problem, runs, [splits[number % graphs] for number in range(count)]


def graph_of(split: EdgeSplit) -> MessageGraph:
    adjacency = adjacency_from(split.train, split.nodes)
    return MessageGraph(shift=shift_of(adjacency), adjacency=adjacency)


def adjacency_from(pairs: NDArray[np.int64], nodes: int) -> sp.csr_array:
    ones = np.ones(2 * pairs.shape[1], dtype=np.float32)
    both = np.concatenate([pairs, pairs[::-1]], axis=1)
    return sp.csr_array(sp.coo_array((ones, (both[0], both[1])), shape=(nodes, nodes)))


def class_losses(out: torch.Tensor, run: Run, head: dict[str, torch.Tensor]) -> Losses:
    labels = torch.from_numpy(np.asarray(run.labels))
    parts = [torch.from_numpy(part) for part in (run.split.train, run.split.validation)]
    one, other = (functional.cross_entropy(out[part], labels[part]) for part in parts)
    return one, other


def value_losses(kind: str) -> PlainLosses:
    measure = functional.mse_loss if kind == "squared" else functional.l1_loss

    def losses(out: torch.Tensor, run: Run, head: dict[str, torch.Tensor]) -> Losses:
        assert isinstance(run.targets, Values)
        values = torch.from_numpy(run.targets.values)
        parts = [torch.from_numpy(part) for part in (run.split.train, run.split.validation)]
        one, other = (measure(out[part, 0], values[part]) for part in parts)
        return one, other

    return losses


def set_losses(out: torch.Tensor, run: Run, head: dict[str, torch.Tensor]) -> Losses:
    assert isinstance(run.targets, Values)
    sets = torch.from_numpy(run.targets.values).to(out.dtype)
    parts = [torch.from_numpy(part) for part in (run.split.train, run.split.validation)]
    one, other = (functional.binary_cross_entropy_with_logits(out[part], sets[part]) for part in parts)
    return one, other


def both_losses(out: torch.Tensor, run: Run, head: dict[str, torch.Tensor]) -> Losses:
    one, two = class_losses(out[:, :-1], run, head), value_losses("squared")(out[:, -1:], run, head)
    return one[0] + 0.5 * two[0], one[1] + 0.5 * two[1]


def plain_scores(out: torch.Tensor, pairs: NDArray[np.int64], head: dict[str, torch.Tensor]) -> torch.Tensor:
    first, second = torch.from_numpy(pairs)
    features = out[first] * out[second]
    bias = head.get("task_bias", torch.zeros(1, dtype=out.dtype))
    return functional.linear(features, head["task_weight"][None], bias)[:, 0]


def link_losses(kind: str) -> PlainLosses:
    def one(out: torch.Tensor, pairs: list[NDArray[np.int64]], head: dict[str, torch.Tensor]) -> torch.Tensor:
        high, low = (plain_scores(out, part, head) for part in pairs)
        if kind == "pairwise":
            return torch.square(1 - (high - low)).mean()
        truth = torch.cat([torch.ones_like(high), torch.zeros_like(low)])
        return functional.binary_cross_entropy_with_logits(torch.cat([high, low]), truth)

    def losses(out: torch.Tensor, run: Run, head: dict[str, torch.Tensor]) -> Losses:
        links = run.targets
        assert isinstance(links, Links)
        return (
            one(out, [links.train, links.train_negative], head),
            one(out, [links.validation, links.validation_negative], head),
        )

    return losses


# The tasks, each with its plain losses and what makes its runs.
NODE_TASKS = {
    "classes": (task("node-classification"), class_losses),
    "squared": (task("regression"), value_losses("squared")),
    "absolute": (task("regression", loss="absolute"), value_losses("absolute")),
    "both": (task("multi-task", weight=0.5), both_losses),
    "sets": (task("regression", loss="yes-no"), set_losses),
}
LINK_TASKS = {
    "cross-entropy": (task("link-prediction", width=5), link_losses("cross-entropy")),
    "pairwise": (task("link-prediction", width=5, loss="pairwise"), link_losses("pairwise")),
}
TASKS = NODE_TASKS | LINK_TASKS


def case(name: str) -> tuple[Problem, list[Run]]:
    if name == "sets":
        return set_runs()[:2]
    return link_runs()[:2] if name in LINK_TASKS else node_runs()[:2]


@dataclass
class Plain:
    best_epoch: int
    validation_loss: float
    outputs: torch.Tensor
    parameters: dict[str, NDArray[np.float64]]


class PlainRun:
    """One run in float64, with torch_geometric's layers and the parameters that the engine starts with."""

    def __init__(self, problem: Problem, run: Run, options: Options):
        own = problem.on(run.graph)
        outputs = options.task.outputs(problem.classes)
        self.net = PlainGCN([problem.dimensions, HIDDEN, outputs]).double()
        self.names = options.model.parameters(problem.dimensions, outputs)
        shapes = Trainer(problem, [run], options, torch.device("cpu")).shapes
        drawn = {name: value[0].double() for name, value in initial_parameters(shapes, [run.seed]).items()}
        self.net.load({name: drawn[name] for name in self.names})
        self.head = {name: value.requires_grad_() for name, value in drawn.items() if name not in self.names}
        self.x = torch.from_numpy(filtered_dense(own, run))
        self.edges = torch.from_numpy(np.stack(own.adjacency.nonzero()).astype(np.int64))

    def read(self) -> dict[str, NDArray[np.float64]]:
        return {name: self.net.read(name) for name in self.names} | {
            name: value.detach().numpy().copy() for name, value in self.head.items()
        }

    def gradients(self) -> dict[str, NDArray[np.float64]]:
        return {name: self.net.read(name, gradient=True) for name in self.names} | {
            name: value.grad.numpy().copy() for name, value in self.head.items() if value.grad is not None
        }


def plain_task_fit(problem: Problem, run: Run, options: Options, losses: PlainLosses) -> Plain:
    one = PlainRun(problem, run, options)
    optimizer = torch.optim.Adam(
        [*one.net.parameters(), *one.head.values()], lr=run.learning_rate, weight_decay=run.weight_decay
    )
    noise = DropoutNoise([run.seed], [run.dropout], torch.device("cpu"))
    best = Plain(0, np.inf, torch.empty(0), {})
    for epoch in range(options.epochs):
        optimizer.zero_grad()
        noise.start(epoch)
        mask = noise(torch.ones(problem.nodes, 1, HIDDEN))[:, 0].double()
        losses(one.net(one.x, one.edges, [mask]), run, one.head)[0].backward()
        optimizer.step()
        with torch.no_grad():
            out = one.net(one.x, one.edges)
            loss = float(losses(out, run, one.head)[1])
        if loss < best.validation_loss:
            best = Plain(epoch + 1, loss, out, one.read())
    return best
