"""The training loop: many runs as one batched model, each with its own rates, best epoch and end."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphldp.errors import DataError, ProcessError
from graphldp.learn.batch import GraphMatrices, RunBatch, without_dropout
from graphldp.learn.chain import OrderChoice, choose_order, trimmed
from graphldp.learn.deferred import DEFERRED_BYTES, Deferred
from graphldp.learn.denormals import flushed_denormals
from graphldp.learn.memory import estimate_memory, waves
from graphldp.learn.noise import DropoutNoise, initial_parameters
from graphldp.learn.optim import Adam
from graphldp.learn.parallel import deferred_interrupt, group_count, side_by_side, spread, thread_share, work
from graphldp.learn.problem import Options, Outcome, Problem, Run
from graphldp.learn.processes import Processes
from graphldp.learn.state import Group, Interrupted, State, fingerprint
from graphldp.learn.tasks.base import Metrics, Task
from graphldp.progress import Progress

__all__ = ["Trainer", "TrainingBatch"]

# Finished runs leave the batch when so many of them have gathered: leaving costs as much as a few epochs.
LEAVING_SHARE = 0.25


class TrainingBatch(RunBatch):
    """Runs that are trained together: also their objective, their noise and their optimiser."""

    def __init__(self, problem: Problem, runs: Sequence[Run], graph: GraphMatrices, order: str, task: Task):
        super().__init__(problem, runs, graph, order)
        self.noise = DropoutNoise([run.seed for run in runs], [run.dropout for run in runs], graph.device)
        self.optimizer = Adam([run.learning_rate for run in runs], [run.weight_decay for run in runs], graph.device)
        self.objective = task.objective(problem, runs, graph.device)


class Trainer:
    """Trains the runs of one problem, wave by wave."""

    def __init__(
        self,
        problem: Problem,
        runs: Sequence[Run],
        options: Options,
        device: torch.device,
        processes: Processes | None = None,
    ):
        if not runs:
            raise DataError("there is nothing to train: no runs were given")
        for run in runs:
            run.check(problem)
        self.problem, self.runs, self.options, self.device = problem, list(runs), options, device
        self.model, self.task, self.processes = options.model, options.task, processes or Processes()
        self.task.check(problem, self.runs)
        for run in runs:
            run.check_hidden(problem)
        self.doing = ""  # for the progress line, beside the epochs
        self.width_out = self.task.outputs(problem.classes)
        self.shapes = self.model.parameters(problem.dimensions, self.width_out) | self.task.parameters()
        self.width = self.model.width(self.width_out)
        self.order = self._order()
        # Runs that can be one batch stand side by side; of them those with the same filter, and then the same inputs.
        kinds: dict[Hashable, int] = {}
        self.kind = [kinds.setdefault(self._alike(run), len(kinds)) for run in runs]
        position = sorted(range(len(runs)), key=lambda r: (self.kind[r], trimmed(runs[r].coefficients), runs[r].inputs))
        self.waves = waves(position, self._estimate, self._limit())
        self._prepare()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *failure: object) -> None:
        """Let go of what it keeps elsewhere."""
        self.close()

    def close(self) -> None:
        """Let go of what it keeps elsewhere: of nothing."""

    def _order(self) -> OrderChoice:
        """Return the order of the chain."""
        # Half of the memory for the filtered inputs: the runs need some, too.
        limit = None if self.options.max_memory is None else self.options.max_memory // 2
        return choose_order(
            self.problem,
            self.runs,
            width=self.width,
            epochs=self.options.epochs,
            order=self.options.order,
            limit=limit,
        )

    def _limit(self) -> int | None:
        """Return the bytes that a wave may take: where inputs are made only when they are needed, never all at once."""
        limit = self.options.max_memory
        if limit is None and any(isinstance(one.deviations, Deferred) for one in self.problem.inputs):
            limit = max(DEFERRED_BYTES, *(self._estimate([r]) for r in range(len(self.runs))))
        return limit

    def _alike(self, run: Run) -> Hashable:
        """Return what runs of one batch have in common."""
        return run.graph, self.task.key(run)

    def _estimate(self, some: list[int]) -> int:
        """Return the bytes that these runs take together."""
        chosen = [self.runs[r] for r in some]
        waiting = self._kept_bytes() * (len(self.runs) - len(some))
        return (
            waiting
            + sum(self.task.memory(run, self.width_out) for run in chosen)
            + estimate_memory(
                self.problem,
                chosen,
                width=self.width,
                parameters=self._numbers(),
                materialised=self.order.order == "materialise",
                outputs=self.width_out,
                model=self.model,
            )
        )

    def _kept_bytes(self) -> int:
        """Return the bytes of a run that stay while others are trained: its best parameters and what it predicts."""
        kinds = self.task.predictions(self.problem.classes).values()
        predicted = sum(np.dtype(kind).itemsize for kind in kinds)
        return 4 * self._numbers() + predicted * self.problem.nodes

    def _numbers(self) -> int:
        """Return how many numbers are in one run's parameters."""
        return sum(math.prod(one.shape) for one in self.shapes.values())

    def _prepare(self) -> None:
        """Put on the device what all waves share."""
        self.problems = {index: self.problem.on(index) for index in {run.graph for run in self.runs}}
        self.graphs = {index: GraphMatrices(one, self.model, self.device) for index, one in self.problems.items()}
        self.units = work(self.problem.nodes * self.width, self.model.hops())

    def fit(self, progress: Progress | None = None, state: State | None = None) -> Outcome:
        """Train to the end, from the start or from a state."""
        mark = fingerprint(self.problem, self.runs, self.options)
        if len(set(self.processes.gather(mark.encode()))) > 1:
            raise ProcessError(
                "the processes train different things; start all of them with the same command, data and version"
            )
        if state is None:
            state = self._new_state(mark)
        else:
            state.check(mark)
            state = state.copy().to(self.device)
        with deferred_interrupt() as pressed:
            while state.wave < len(self.waves):
                self._train_wave(state, progress, pressed)
            if progress is not None:
                self._report(state, progress)
            # Of several processes all or none go on.
            if any(self.processes.gather(b"stop" if pressed() else b"")):
                raise Interrupted(state.copy())
        return self._outcome(state)

    def batch(self, index: Sequence[int]) -> TrainingBatch:
        """Return some of the runs, all of one kind, as a batch."""
        graph = self.runs[index[0]].graph
        runs = [self.runs[r] for r in index]
        return TrainingBatch(self.problems[graph], runs, self.graphs[graph], self.order.order, self.task)

    @torch.no_grad()
    def outputs(self, index: Sequence[int], parameters: Mapping[str, Tensor]) -> Tensor:
        """Return what parameters of some of the runs, all of one kind, give each node: [nodes, runs, outputs]."""
        batch = self.batch(index)
        return self.model.head(parameters, batch, self.model.trunk(parameters, batch), without_dropout)

    def initial(self, index: Sequence[int]) -> dict[str, Tensor]:
        """Return the initial parameters of some of the runs."""
        drawn = initial_parameters(self.shapes, [self.runs[r].seed for r in index])
        return {name: value.to(self.device) for name, value in drawn.items()}

    def _new_state(self, mark: str) -> State:
        count, nodes = len(self.runs), self.problem.nodes
        return State(
            fingerprint=mark,
            wave=0,
            groups=[],
            best=self.initial(range(count)),
            best_epoch=np.zeros(count, np.int32),
            epochs=np.zeros(count, np.int32),
            validation_loss=np.full(count, np.inf),
            metrics={name: np.full(count, value) for name, value in self.task.metrics().items()},
            failed=np.zeros(count, bool),
            done=np.zeros(count, bool),
            outputs={
                name: np.zeros((count, nodes), kind)
                for name, kind in self.task.predictions(self.problem.classes).items()
            },
        )

    def _groups(self, wave: int) -> list[Group]:
        """Return the groups of a wave as they start."""
        runs = self.waves[wave]
        alike = [list(some) for _, some in groupby(runs, key=lambda r: self.kind[r])]
        count = min(len(runs), self.processes.size)
        if self.device.type == "cpu":
            count = group_count(len(runs), self.units, self.processes.threads, processes=self.processes.size)
        share = max(1, count // len(alike))
        out = []
        for some in (part for same in alike for part in spread(same, min(share, len(same)))):
            parameters = self.initial(some)
            first, second = Adam.moments(parameters)
            out.append(
                Group(
                    runs=some,
                    batch=list(some),
                    epoch=0,
                    ended=False,
                    parameters=parameters,
                    first=first,
                    second=second,
                )
            )
        return out

    def _train_wave(self, state: State, progress: Progress | None, pressed: Callable[[], bool]) -> None:
        """Train this process's groups of the wave side by side, take in the others', and go on to the next wave."""
        groups = state.groups = state.groups or self._groups(state.wave)

        def tick() -> bool:
            try:
                if progress is not None:
                    self._report(state, progress)
            except KeyboardInterrupt:
                self.processes.stop()
                return True
            if pressed():
                self.processes.stop()
            return pressed() or self.processes.stopping()

        def task(group: Group) -> Callable[[Callable[[], bool]], None]:
            return lambda stop: self._train_group(state, group, stop)

        tasks = [task(group) for group in self._mine(state) if not group.ended]
        units = self.units * sum(len(group.runs) for group in groups)
        # Runs of more kinds than there are threads: the first ones begin.
        threads = self.processes.threads
        most = max(1, min(len(groups), threads)) if self.device.type == "cpu" else 1
        share = thread_share(most, units, threads)
        # As many threads as one process would use for a group, and as many groups at once as this one has threads for.
        here = most if self.processes.size == 1 else min(most, max(1, torch.get_num_threads() // share))
        stopped = bool(tasks) and side_by_side(tasks, tick, share, here)
        if self.processes.size > 1:
            stopped = self._exchange(state, stopped, tick)
        if stopped:
            raise Interrupted(state.copy())
        for one in self.problem.inputs:
            if isinstance(one.deviations, Deferred):
                one.deviations.forget()
        state.wave += 1
        state.groups = []

    def _mine(self, state: State) -> list[Group]:
        """Return the groups of the wave that this process trains."""
        return state.groups[self.processes.rank :: self.processes.size]

    def _exchange(self, state: State, stopped: bool, tick: Callable[[], bool]) -> bool:
        """Take in what the other processes have made of their groups; return whether any of them was stopped."""
        others = []
        for part in self.processes.gather(bytes([stopped]) + state.to_bytes(), tick):
            stopped = stopped or bool(part[0])
            others.append(State.from_bytes(part[1:]).to(self.device))
        for number in range(len(state.groups)):
            state.take(others[number % self.processes.size], number)
        return stopped

    @flushed_denormals()
    def _train_group(self, state: State, group: Group, stop: Callable[[], bool]) -> None:
        batch = self.batch(group.batch)
        while True:
            if stop():
                return
            last = group.epoch >= self.options.epochs
            for value in group.parameters.values():
                value.requires_grad_(not last)
            with torch.set_grad_enabled(not last):
                hidden = self.model.trunk(group.parameters, batch)
            if group.epoch:
                self._select(state, group, batch, hidden.detach())
            running = state.running(group)
            if not running.any() or last:
                break
            self._update(group, batch, hidden)
            group.epoch += 1
            if 1 - running.mean() >= LEAVING_SHARE:
                group.keep(np.flatnonzero(running))
                batch = self.batch(group.batch)
        self._predict(state, group)

    def _update(self, group: Group, batch: TrainingBatch, hidden: Tensor) -> None:
        """Make one update of all runs of the batch."""
        batch.noise.start(group.epoch)
        outputs = self.model.head(group.parameters, batch, hidden, batch.noise)
        names = list(group.parameters)
        loss = batch.objective.loss(outputs, group.parameters).sum()
        found = torch.autograd.grad(loss, [group.parameters[name] for name in names])
        gradients = dict(zip(names, found, strict=True))
        parameters = {name: value.detach() for name, value in group.parameters.items()}
        batch.optimizer.step(group.epoch + 1, parameters, gradients, group.first, group.second)

    @torch.no_grad()
    def _select(self, state: State, group: Group, batch: TrainingBatch, hidden: Tensor) -> None:
        """Validate the parameters as they stand."""
        outputs = self.model.head(group.parameters, batch, hidden, without_dropout)
        self._keep_best(state, group, *batch.objective.validate(outputs, group.parameters))

    def _keep_best(self, state: State, group: Group, loss: NDArray[np.float64], metrics: Metrics) -> None:
        """Remember the parameters of runs whose validation loss is the lowest so far, and end runs."""
        runs = np.asarray(group.batch)
        running = state.running(group)
        broken = running & ~np.isfinite(loss)
        state.failed[runs[broken]] = state.done[runs[broken]] = True
        state.epochs[runs[running]] = group.epoch
        better = np.flatnonzero(running & ~broken & (loss < state.validation_loss[runs]))
        chosen = runs[better]
        state.validation_loss[chosen] = loss[better]
        for name, metric in metrics.items():
            state.metrics[name][chosen] = metric[better]
        state.best_epoch[chosen] = group.epoch
        if len(chosen):
            source, target = (torch.from_numpy(index).to(self.device) for index in (better, chosen))
            for name, value in group.parameters.items():
                state.best[name].index_copy_(0, target, value.detach().index_select(0, source))
        if self.options.patience is not None:
            state.done[runs[group.epoch - state.best_epoch[runs] >= self.options.patience]] = True

    @torch.no_grad()
    def _predict(self, state: State, group: Group) -> None:
        """Predict and measure with the best parameters of the group's runs: it has ended."""
        batch = self.batch(group.runs)
        parameters = {name: value[group.runs] for name, value in state.best.items()}
        hidden = self.model.trunk(parameters, batch)
        outputs = self.model.head(parameters, batch, hidden, without_dropout)
        runs = np.asarray(group.runs)
        for name, guess in batch.objective.predict(outputs, parameters).items():
            state.outputs[name][runs] = guess
        # The metrics of a run that never had a finite loss are those of no training: they stay as they are.
        found = np.flatnonzero(state.best_epoch[runs] > 0)
        for name, value in batch.objective.summary(outputs, parameters).items():
            state.metrics[name][runs[found]] = value[found]
        state.done[group.runs] = True
        group.ended = True

    def _report(self, state: State, progress: Progress) -> None:
        """Tell the caller: epochs done, of the slowest group of each wave; epochs in all; a line of text."""
        epochs, waves_ = self.options.epochs, len(self.waves)
        mine = self._mine(state)
        behind = min((group.epoch for group in mine if not group.ended), default=epochs if state.groups else 0)
        wave = f"wave {state.wave + 1} of {waves_}, " if 1 < waves_ > state.wave else ""
        processes = f"process {self.processes.rank + 1} of {self.processes.size}, " if self.processes.size > 1 else ""
        running = sum(int(state.running(group).sum()) for group in mine)
        best = float(state.validation_loss.min())
        loss = f", best validation loss {best:.4f}" if np.isfinite(best) else ""
        epoch = f"epoch {behind} of {epochs}, " if state.wave < waves_ else ""
        text = f"{processes}{wave}{epoch}{self.doing}{running} of {len(self.runs)} runs training{loss}"
        progress(state.wave * epochs + behind, epochs * waves_, text)

    def _record(self) -> dict[str, Any]:
        """Return what else there is to say of how the runs were trained."""
        return {}

    def _outcome(self, state: State) -> Outcome:
        failed: NDArray[Any] = np.flatnonzero(state.failed)
        record = {
            "task": {"name": self.task.name, "options": asdict(self.task)},  # type: ignore[call-overload]
            "chain": self.order.record(),
            "waves": [len(wave) for wave in self.waves],
            "max_memory": self.options.max_memory,
            **self._record(),
            "failed": [
                f"run {r}: the loss was not finite after {state.epochs[r]} updates; "
                f"kept its parameters of epoch {state.best_epoch[r]}"
                for r in failed
            ],
        }
        return Outcome(
            best_epoch=state.best_epoch,
            epochs=state.epochs,
            validation_loss=state.validation_loss,
            metrics=state.metrics,
            failed=state.failed,
            outputs=state.outputs,
            parameters={name: value.detach().cpu().numpy() for name, value in state.best.items()},
            record=record,
        )
