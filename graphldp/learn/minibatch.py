"""Training in batches of nodes, for graphs whose hidden units memory does not hold.

A decoupled backbone is rows and walks. A walk before the rows (SGC, SSGC; the filter itself for the MLP) is applied to
the inputs once, in blocks of columns; what comes out is a store of rows, and an update needs the rows of one batch of
training nodes. A walk after the rows (APPNP) mixes the outputs of all nodes, which are few numbers a node: its rows
are computed batch by batch, walked, and computed again for the gradient, so that there is one update an epoch and it is
that of the full batch. Everything else, from initial parameters to early stopping, is as in full batch, and equal to it
where a batch holds all training nodes and nothing is dropped.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphldp.errors import OptionError
from graphldp.learn.batch import without_dropout
from graphldp.learn.chain import OrderChoice, choose_order, filtered, trimmed
from graphldp.learn.deferred import Deferred
from graphldp.learn.denormals import flushed_denormals
from graphldp.learn.engine import LEAVING_SHARE, Trainer
from graphldp.learn.memory import CLASS_ARRAYS, LAYER_ARRAYS, NODE_ARRAYS, PARAMETER_ARRAYS
from graphldp.learn.models.base import Dropout
from graphldp.learn.noise import DropoutNoise
from graphldp.learn.optim import Adam
from graphldp.learn.problem import Options, Problem, Run
from graphldp.learn.processes import Processes
from graphldp.learn.row_store import BLOCK_MEMORY, Chain, RowStore, Stores, filtered_columns, in_memory
from graphldp.learn.sparse import Csr, SparseMatrix
from graphldp.learn.state import Group, State
from graphldp.learn.tasks.base import Metrics, Objective
from graphldp.randomness import seed_of
from graphldp.splits import Split

__all__ = ["AUTO_SIZE", "BatchTrainer", "part_of"]

# Training nodes of an update, where memory and not the user asks for batches.
AUTO_SIZE = 2**14
# Rows that are read at once where nothing is learned from them.
READ_SIZE = 2**16
# What an operator takes for each of its numbers while it is put on the device.
EDGE_BYTES = 32
NONE = np.empty(0, dtype=np.int64)


def part_of(run: Run, nodes: NDArray[np.int64], *, train: int = 0, validation: int = 0) -> Run:
    """Return a run on some nodes, which count from 0: the first ones are its training or its validation nodes.

    The other part has a node behind all of them, as a split has no empty parts; nobody looks at it.
    """
    nodes = np.append(nodes, nodes[0])
    spare = np.array([len(nodes) - 1])
    return replace(
        run,
        split=Split(
            train=np.arange(train) if train else spare,
            validation=np.arange(validation) if validation else spare,
            test=NONE,
        ),
        labels=np.asarray(run.labels)[nodes] if np.asarray(run.labels).size else run.labels,
        targets=None if run.targets is None else run.targets.part(nodes),
    )


class _StoppedError(Exception):
    """The user has asked to stop while inputs were filtered."""


class Rows:
    """What a backbone sees of a batch of nodes: rows of inputs, for each run its own; no graph."""

    def __init__(self, parts: Sequence[tuple[slice, Tensor]]):
        self.parts = parts
        self.operators: Mapping[str, SparseMatrix] = {}

    def project(self, weight: Tensor) -> Tensor:
        """Return X_r W_r; runs with the same rows share one product."""
        out = []
        for runs, rows in self.parts:
            part = weight[runs]
            wide = part.transpose(0, 1).reshape(part.shape[1], -1)
            out.append((rows @ wide).view(rows.shape[0], part.shape[0], part.shape[2]))
        return torch.cat(out, dim=1) if len(out) > 1 else out[0]

    def propagate(self, hidden: Tensor, operator: str) -> Tensor:
        """Refuse: rows have no neighbours."""
        raise OptionError(f"the backbone asks for its operator {operator!r} between rows: it is not decoupled")


class BatchTrainer(Trainer):
    """Trains the runs of one problem in batches of nodes.

    Args:
        problem, runs, options, device, processes: as for the training in full batch.
        size: how many training nodes are in a batch at most.
        stores: where filtered inputs are kept that the memory limit does not hold.
        automatic: whether batches are what the memory limit has left, and not what was asked for.
    """

    def __init__(
        self,
        problem: Problem,
        runs: Sequence[Run],
        options: Options,
        device: torch.device,
        processes: Processes | None = None,
        *,
        size: int,
        stores: Stores | None = None,
        automatic: bool = False,
    ):
        self.size, self.automatic = size, automatic
        self._check(options)
        # One matrix of rows for each graph, inputs and filter.
        keys = [
            (run.graph, run.inputs, (1.0,) if problem.inputs[run.inputs].filtered else trimmed(run.coefficients))
            for run in runs
        ]
        self.slots = list(dict.fromkeys(keys))
        self.slot = [self.slots.index(key) for key in keys]
        bytes_ = 4 * problem.nodes * problem.dimensions * len(self.slots)
        limit = options.max_memory
        self.in_files = stores is not None and limit is not None and bytes_ > limit // 2
        self.kept = 0 if self.in_files else bytes_
        self.stores = stores if stores is not None and self.in_files else in_memory
        self.stored: dict[int, RowStore] = {}
        self.walks: dict[int, SparseMatrix] = {}
        self.lock = threading.Lock()
        super().__init__(problem, runs, options, device, processes)

    def _check(self, options: Options) -> None:
        """Refuse what has no batches."""
        found = options.model.decoupled()
        assert found is not None, "other backbones have a trainer of their own"
        self.decoupled = found
        self._check_task(options)

    def _check_task(self, options: Options) -> None:
        if not options.task.by_node:
            raise OptionError(
                f"{options.task.name} looks at pairs of nodes, and trains in full batch alone: leave batch_size out"
            )

    def close(self) -> None:
        """Let go of the stores."""
        for store in self.stored.values():
            store.close()
        self.stored.clear()

    # the plan --------------------------------------------------------------------------------------------------------

    def updates(self, run: Run) -> int:
        """Return how many updates an epoch of a run has."""
        return 1 if self.decoupled.after else -(-len(run.split.train) // self.size)

    def _alike(self, run: Run) -> Hashable:
        return super()._alike(run), self.updates(run)

    def _order(self) -> OrderChoice:
        options = self.options
        known = choose_order(self.problem, self.runs, width=self.width, epochs=options.epochs)
        return replace(known, order="rows", reason="batches of nodes read rows of filtered inputs")

    def _estimate(self, some: list[int]) -> int:
        """Return the bytes that these runs take together: first their inputs are filtered, then they are trained."""
        nodes, dimensions, last = self.problem.nodes, self.problem.dimensions, self.width_out
        filtering = max(self._moving(), self._block_memory() + self._moving() // 2)
        if any(isinstance(one.deviations, Deferred) for one in self.problem.inputs):
            filtering += 4 * nodes * dimensions  # one such matrix at a time
        training = EDGE_BYTES * self.problem.adjacency.nnz if self.decoupled.after else 0
        for run in (self.runs[r] for r in some):
            rows = self._spread(min(self.size, READ_SIZE if self.decoupled.after else len(run.split.train)))
            kept = nodes if self.decoupled.after else len(run.split.validation)
            training += 4 * (
                (NODE_ARRAYS * self.width + LAYER_ARRAYS * self.model.deeper()) * rows
                + CLASS_ARRAYS * (rows + kept) * last
                + PARAMETER_ARRAYS * self._numbers()
                + 2 * rows * dimensions
            )
        waiting = self._kept_bytes() * (len(self.runs) - len(some))
        return int(self.kept + waiting + max(filtering, training))

    def _spread(self, rows: int) -> int:
        """Return of how many nodes a batch of so many computes the hidden units."""
        return rows

    def _moving(self) -> int:
        """Return the bytes of an operator on its way to the device; there it and the filter's take half of that."""
        return int(EDGE_BYTES * max(self.problem.shift.nnz, self.problem.adjacency.nnz))

    def _block_memory(self) -> int:
        """Return how many bytes the blocks of columns may take while inputs are filtered: what is left."""
        nodes, dimensions = self.problem.nodes, self.problem.dimensions
        column = 4 * nodes * (2 + max(Counter(key[:2] for key in self.slots).values()))
        if self.options.max_memory is None:
            return max(column, min(dimensions * column, BLOCK_MEMORY))
        left = self.options.max_memory - self.kept - self._moving() // 2 - self._kept_bytes() * len(self.runs)
        return max(column, min(dimensions * column, left))

    def _prepare(self) -> None:
        rows = max(min(self.size, len(run.split.train)) for run in self.runs)
        self.units = (self.problem.nodes if self.decoupled.after else rows) * self.width

    def _record(self) -> dict[str, Any]:
        return {
            "batches": {
                "size": self.size,
                "updates": sorted({self.updates(run) for run in self.runs}),
                "matrices": len(self.slots),
                "in_files": self.in_files,
                "automatic": self.automatic,
            }
        }

    # rows ------------------------------------------------------------------------------------------------------------

    def store(self, slot: int, stop: Callable[[], bool] | None = None) -> RowStore:
        """Return a matrix of rows; all that come from the same inputs are filtered at once.

        `stop` is asked between blocks; if it says so, `_StoppedError` is raised.
        """
        with self.lock:
            if slot not in self.stored:
                graph, inputs, _ = self.slots[slot]
                self._filter(graph, inputs, stop)
            return self.stored[slot]

    def _filter(self, graph: int, inputs: int, stop: Callable[[], bool] | None) -> None:
        """Filter inputs in blocks of columns, for every filter that some run has for them."""
        given, one = self.problem.inputs[inputs], self.problem.graph(graph)
        wanted = [slot for slot, key in enumerate(self.slots) if key[:2] == (graph, inputs)]
        before = self.decoupled.before
        after = before.coefficients if before else (1.0,)
        chains: list[Chain] = [(self.slots[slot][2], after) for slot in wanted]
        shift = Csr.of(one.shift, self.device) if any(len(first) > 1 for first, _ in chains) else None
        walk = None
        if before and len(trimmed(after)) > 1:
            walk = Csr.of(self.model.operators(one.adjacency)[before.operator], self.device)
        writers = [self.stores(self.problem.nodes, self.problem.dimensions) for _ in wanted]
        for columns, blocks in filtered_columns(
            given, shift, walk, chains, device=self.device, max_memory=self._block_memory()
        ):
            for writer, block in zip(writers, blocks, strict=True):
                writer.write(columns, block)
            self.doing = f"filtered {columns.stop} of {self.problem.dimensions} columns, "
            if stop is not None and stop():
                raise _StoppedError
        self.doing = ""
        if isinstance(given.deviations, Deferred):
            given.deviations.forget()
        for slot, writer in zip(wanted, writers, strict=True):
            self.stored[slot] = writer.finish()

    def rows(
        self, runs: Sequence[int], nodes: Sequence[NDArray[np.int64]], draw: tuple[int, int] | None = None
    ) -> Rows:
        """Return the rows of each run's nodes, equally many; runs that share array and matrix are read once.

        `draw` is where in the training a batch is (epoch, number), None of one that nothing is learned from; rows that
        stand alone are the same for both.
        """
        parts = []
        keys = [(self.slot[run], id(some)) for run, some in zip(runs, nodes, strict=True)]
        for (slot, _), group in groupby(range(len(runs)), key=keys.__getitem__):
            index = list(group)
            read = torch.from_numpy(self.store(slot).take(nodes[index[0]]))
            parts.append((slice(index[0], index[-1] + 1), read.to(self.device)))
        return Rows(parts)

    def _forward(self, parameters: Mapping[str, Tensor], rows: Rows, dropout: Dropout) -> Tensor:
        """Return the rows' outputs."""
        model = self.decoupled.rows
        return model.head(parameters, rows, model.trunk(parameters, rows), dropout)

    def _read(
        self,
        runs: Sequence[int],
        parameters: Mapping[str, Tensor],
        nodes: Sequence[NDArray[np.int64]],
        dropout: Dropout = without_dropout,
    ) -> Tensor:
        """Return the outputs of each run's nodes, [nodes, runs, outputs], without a gradient, batch by batch."""
        count = len(nodes[0])
        out = torch.empty(count, len(runs), self.width_out, device=self.device)
        with torch.no_grad():
            for span in self._spans(count):
                out[span] = self._forward(parameters, self.rows(runs, _cut(nodes, span)), dropout)
        return out

    def _spans(self, count: int) -> Iterator[slice]:
        step = min(self.size, READ_SIZE)
        for start in range(0, count, step):
            yield slice(start, min(start + step, count))

    def _walk(self, graph: int, outputs: Tensor, *, transposed: bool = False) -> Tensor:
        """Return the outputs after the backbone's last walk, or a gradient before it."""
        after = self.decoupled.after
        if after is None:
            return outputs
        with self.lock:
            if graph not in self.walks:
                matrix = self.model.operators(self.problem.graph(graph).adjacency)[after.operator]
                self.walks[graph] = SparseMatrix.of(matrix, self.device)
        known = self.walks[graph]
        flat = outputs.reshape(outputs.shape[0], -1)
        return filtered(known.backward if transposed else known.forward, flat, after.coefficients).view(outputs.shape)

    @torch.no_grad()
    def outputs(self, index: Sequence[int], parameters: Mapping[str, Tensor]) -> Tensor:
        """Return what parameters of some of the runs, all of one kind, give each node: [nodes, runs, outputs]."""
        every = np.arange(self.problem.nodes)
        return self._walk(self.runs[index[0]].graph, self._read(index, parameters, [every] * len(index)))

    # the loop --------------------------------------------------------------------------------------------------------

    @flushed_denormals()
    def _train_group(self, state: State, group: Group, stop: Callable[[], bool]) -> None:
        epoch = self._accumulate if self.decoupled.after else self._pass
        batch = _Some(self, group.batch)
        try:
            for slot in dict.fromkeys(self.slot[run] for run in group.batch):
                self.store(slot, stop)
        except _StoppedError:
            return
        while True:
            if stop():
                return
            if group.epoch:
                self._keep_best(state, group, *batch.validate(group.parameters))
            running = state.running(group)
            if group.epoch == self.options.epochs or not running.any():
                break
            epoch(group, batch)
            group.epoch += 1
            if 1 - running.mean() >= LEAVING_SHARE:
                group.keep(np.flatnonzero(running))
                batch = _Some(self, group.batch)
        self._predict(state, group)

    def _pass(self, group: Group, batch: _Some) -> None:
        """Make the updates of one epoch: each training node is in one of them."""
        orders = batch.orders(group.epoch)
        updates = self.updates(self.runs[group.batch[0]])
        batch.noise.start(group.epoch)
        for number in range(updates):
            nodes, sizes = batch.chosen(orders, number, updates)
            some = [part_of(run, one, train=size) for run, one, size in zip(batch.runs, nodes, sizes, strict=True)]
            objective = self.task.objective(self.problem, some, self.device)
            parameters = _leaves(group.parameters)
            outputs = self._forward(parameters, self.rows(group.batch, nodes, (group.epoch, number)), batch.noise)
            loss = objective.loss(outputs, parameters).sum()
            found = torch.autograd.grad(loss, list(parameters.values()))
            batch.step(group, group.epoch * updates + number + 1, dict(zip(parameters, found, strict=True)))

    def _accumulate(self, group: Group, batch: _Some) -> None:
        """Make the one update of an epoch, that of the full batch, from rows that are computed twice."""
        runs, graph = group.batch, self.runs[group.batch[0]].graph
        nodes = [np.arange(self.problem.nodes)] * len(runs)
        parameters = _leaves(group.parameters)
        batch.noise.start(group.epoch)
        walked = self._walk(graph, self._read(runs, parameters, nodes, batch.noise)).requires_grad_()
        loss = batch.whole.loss(walked, parameters).sum()
        (slope,) = torch.autograd.grad(loss, [walked])
        slope = self._walk(graph, slope, transposed=True)
        found = {name: torch.zeros_like(value) for name, value in parameters.items()}
        batch.noise.start(group.epoch)  # the same units are dropped again
        for span in self._spans(self.problem.nodes):
            outputs = self._forward(parameters, self.rows(runs, _cut(nodes, span)), batch.noise)
            for name, part in zip(
                found, torch.autograd.grad(outputs, list(parameters.values()), slope[span]), strict=True
            ):
                found[name] += part
        batch.step(group, group.epoch + 1, found)

    @torch.no_grad()
    def _predict(self, state: State, group: Group) -> None:
        """Predict and measure with the best parameters, run by run; where nothing walks over them, in batches."""
        for run in group.runs:
            parameters = {name: value[run : run + 1] for name, value in state.best.items()}
            some = _Some(self, [run])
            every = self.outputs([run], parameters) if self.decoupled.after else None
            for span in self._spans(self.problem.nodes):
                nodes = np.arange(span.start, span.stop)
                outputs = self._read([run], parameters, [nodes]) if every is None else every[span]
                for name, guess in some.held_out.predict(outputs, parameters).items():
                    state.outputs[name][run, span] = guess[0]
            if state.best_epoch[run] > 0:
                held = self._read([run], parameters, some.held) if every is None else every[some.held[0]]
                for name, value in some.held_out.summary(held, parameters).items():
                    state.metrics[name][run] = value[0]
        state.done[group.runs] = True
        group.ended = True


class _Some:
    """Runs that are trained together: their noise, their optimiser, and what does not change from epoch to epoch."""

    def __init__(self, trainer: BatchTrainer, index: Sequence[int]):
        self.trainer, self.index = trainer, list(index)
        self.runs = [trainer.runs[r] for r in index]
        device = trainer.device
        self.noise = DropoutNoise([run.seed for run in self.runs], [run.dropout for run in self.runs], device)
        self.optimizer = Adam([run.learning_rate for run in self.runs], [run.weight_decay for run in self.runs], device)
        self._objective: Objective | None = None
        longest = max(len(run.split.validation) for run in self.runs)
        held = _once(self.runs, lambda run: id(run.split), lambda run: _padded(run.split.validation, longest))
        self.held = held
        parts = [
            part_of(run, nodes, validation=len(run.split.validation))
            for run, nodes in zip(self.runs, held, strict=True)
        ]
        self.held_out = trainer.task.objective(trainer.problem, parts, device)

    @property
    def whole(self) -> Objective:
        """The objective over all nodes."""
        if self._objective is None:
            trainer = self.trainer
            self._objective = trainer.task.objective(trainer.problem, self.runs, trainer.device)
        return self._objective

    @torch.no_grad()
    def validate(self, parameters: Mapping[str, Tensor]) -> tuple[NDArray[np.float64], Metrics]:
        """Return the validation loss of each run, and what is measured with it."""
        if self.trainer.decoupled.after:
            return self.whole.validate(self.trainer.outputs(self.index, parameters), parameters)
        return self.held_out.validate(self.trainer._read(self.index, parameters, self.held), parameters)

    def orders(self, epoch: int) -> list[NDArray[np.int64]]:
        """Return each run's training nodes in the order of an epoch; runs of one seed and split share the array."""

        def shuffled(run: Run) -> NDArray[np.int64]:
            generator = torch.Generator().manual_seed(seed_of(run.seed, "batches", epoch))
            return np.asarray(run.split.train[torch.randperm(len(run.split.train), generator=generator).numpy()])

        return _once(self.runs, lambda run: (id(run.split), run.seed), shuffled)

    @staticmethod
    def chosen(
        orders: Sequence[NDArray[np.int64]], number: int, updates: int
    ) -> tuple[list[NDArray[np.int64]], list[int]]:
        """Return each run's nodes of one update, sorted and padded to one length, and how many are real.

        Batches of an epoch are equally large, up to one node.
        """
        sizes = [(number + 1) * len(order) // updates - number * len(order) // updates for order in orders]
        longest = max(sizes)

        def cut(order: NDArray[np.int64]) -> NDArray[np.int64]:
            start, end = number * len(order) // updates, (number + 1) * len(order) // updates
            return _padded(np.sort(order[start:end]), longest)

        return _once(orders, id, cut), sizes

    def step(self, group: Group, number: int, gradients: Mapping[str, Tensor]) -> None:
        """Make update `number` (from 1)."""
        parameters = {name: value.detach() for name, value in group.parameters.items()}
        self.optimizer.step(number, parameters, gradients, group.first, group.second)


def _once(items: Sequence[Any], key: Callable[[Any], Hashable], make: Callable[[Any], Any]) -> list[Any]:
    """Return what is made of each item; items with one key share it."""
    made: dict[Hashable, Any] = {}
    for item in items:
        if key(item) not in made:
            made[key(item)] = make(item)
    return [made[key(item)] for item in items]


def _padded(nodes: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """Return the nodes, with the first one again and again behind them."""
    return np.concatenate([nodes, np.full(length - len(nodes), nodes[0])])


def _cut(nodes: Sequence[NDArray[np.int64]], span: slice) -> list[NDArray[np.int64]]:
    return _once(nodes, id, lambda some: some[span])


def _leaves(parameters: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the parameters as leaves of a gradient."""
    return {name: value.detach().requires_grad_() for name, value in parameters.items()}
