"""The training loop: many runs as one batched model, each with its own rates, best epoch and end."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphldp.errors import DataError
from graphldp.learn.batch import GraphMatrices, RunBatch, without_dropout
from graphldp.learn.chain import choose_order, trimmed
from graphldp.learn.device import resolve_device
from graphldp.learn.noise import DropoutNoise, initial_parameters
from graphldp.learn.optim import Adam
from graphldp.learn.problem import Options, Outcome, Problem, Run
from graphldp.learn.state import Interrupted, State, fingerprint
from graphldp.learn.task import NodeClassification
from graphldp.learn.waves import estimate_memory, waves

__all__ = ["Progress", "Trainer", "TrainingBatch", "fit"]

Progress: TypeAlias = Callable[[int, int, str], None]
# Finished runs leave the batch when so many of them have gathered: leaving costs as much as a few epochs.
LEAVING_SHARE = 0.25


def fit(
    problem: Problem,
    runs: Sequence[Run],
    options: Options | None = None,
    *,
    device: str | torch.device = "auto",
    progress: Progress | None = None,
    state: State | None = None,
) -> Outcome:
    """Train all runs as one batched model and return what each has become.

    Args:
        problem: the graph and the inputs.
        runs: the models to train.
        options: the backbone and how it is trained.
        device: `auto`, `cpu`, `cuda`, `mps`, or a torch device.
        progress: called with (epochs done, epochs in all, text) before each epoch.
        state: of an interrupted training of the same runs, which is continued.

    Raises:
        Interrupted: on Ctrl-C, between two epochs; it carries the state to continue from.
    """
    where = resolve_device(device) if isinstance(device, str) else device
    return Trainer(problem, runs, options or Options(), where).fit(progress, state)


class TrainingBatch(RunBatch):
    """Runs that are trained together: also their task, their noise and their optimiser."""

    def __init__(self, problem: Problem, runs: Sequence[Run], graph: GraphMatrices, order: str):
        super().__init__(problem, runs, graph, order)
        self.noise = DropoutNoise([run.seed for run in runs], [run.dropout for run in runs], graph.device)
        self.optimizer = Adam([run.learning_rate for run in runs], [run.weight_decay for run in runs], graph.device)
        self.task = NodeClassification(runs, graph.device)


class Trainer:
    """Trains the runs of one problem, wave by wave."""

    def __init__(self, problem: Problem, runs: Sequence[Run], options: Options, device: torch.device):
        if not runs:
            raise DataError("there is nothing to train: no runs were given")
        for run in runs:
            run.check(problem)
        self.problem, self.runs, self.options, self.device = problem, list(runs), options, device
        self.model = options.model
        self.shapes = self.model.parameters(problem.dimensions, problem.classes)
        width = self.model.width(problem.classes)
        # Half of the memory for the filtered inputs: the runs need some, too.
        limit = None if options.max_memory is None else options.max_memory // 2
        self.order = choose_order(
            problem, self.runs, width=width, epochs=options.epochs, order=options.order, limit=limit
        )
        # Runs with the same filter, and then with the same inputs, stand side by side.
        position = sorted(range(len(runs)), key=lambda r: (trimmed(runs[r].coefficients), runs[r].inputs))
        size = sum(math.prod(one.shape) for one in self.shapes.values())

        def estimate(some: list[int]) -> int:
            return estimate_memory(
                problem,
                [runs[r] for r in some],
                width=width,
                parameters=size,
                materialised=self.order.order == "materialise",
            )

        self.waves = waves(position, estimate, options.max_memory)
        self.graph = GraphMatrices(problem, self.model, device)

    def fit(self, progress: Progress | None = None, state: State | None = None) -> Outcome:
        """Train, from the start or from a state."""
        mark = fingerprint(self.problem, self.runs, self.options)
        if state is None:
            state = self._new_state(mark)
        else:
            state.check(mark)
            state = state.copy().to(self.device)
        with deferred_interrupt() as interrupted:
            while state.wave < len(self.waves):
                self._train_wave(state, progress, interrupted)
                self._finish_wave(state)
            if interrupted():
                raise Interrupted(state.copy())
        if progress is not None:
            total = self.options.epochs * len(self.waves)
            progress(total, total, self._text(state))
        return self._outcome(state)

    def batch(self, index: Sequence[int]) -> TrainingBatch:
        """Return some of the runs as a batch."""
        return TrainingBatch(self.problem, [self.runs[r] for r in index], self.graph, self.order.order)

    def initial(self, index: Sequence[int]) -> dict[str, Tensor]:
        """Return the initial parameters of some of the runs."""
        drawn = initial_parameters(self.shapes, [self.runs[r].seed for r in index])
        return {name: value.to(self.device) for name, value in drawn.items()}

    def _new_state(self, mark: str) -> State:
        count, nodes = len(self.runs), self.problem.nodes
        state = State(
            fingerprint=mark,
            wave=0,
            epoch=0,
            batch=[],
            parameters={},
            first={},
            second={},
            best=self.initial(range(count)),
            best_epoch=np.zeros(count, np.int32),
            epochs=np.zeros(count, np.int32),
            validation_loss=np.full(count, np.inf),
            validation_accuracy=np.zeros(count),
            failed=np.zeros(count, bool),
            done=np.zeros(count, bool),
            predictions=np.zeros((count, nodes), np.int32),
        )
        self._start_wave(state)
        return state

    def _start_wave(self, state: State) -> None:
        state.epoch = 0
        state.batch = list(self.waves[state.wave]) if state.wave < len(self.waves) else []
        state.parameters = self.initial(state.batch) if state.batch else {}
        state.first, state.second = Adam.moments(state.parameters)

    def _train_wave(self, state: State, progress: Progress | None, interrupted: Callable[[], bool]) -> None:
        batch = self.batch(state.batch)
        epochs = self.options.epochs
        while True:
            self._boundary(state, progress, interrupted)
            last = state.epoch == epochs
            for value in state.parameters.values():
                value.requires_grad_(not last)
            with torch.set_grad_enabled(not last):
                hidden = self.model.trunk(state.parameters, batch)
            if state.epoch:
                self._select(state, batch, hidden.detach())
            if last or not state.running.any():
                return
            self._update(state, batch, hidden)
            state.epoch += 1
            running = state.running
            if 1 - running.mean() >= LEAVING_SHARE:
                state.keep(np.flatnonzero(running))
                batch = self.batch(state.batch)

    def _update(self, state: State, batch: TrainingBatch, hidden: Tensor) -> None:
        """Make one update of all runs."""
        batch.noise.start(state.epoch)
        logits = self.model.head(state.parameters, batch, hidden, batch.noise)
        names = list(state.parameters)
        found = torch.autograd.grad(batch.task.loss(logits).sum(), [state.parameters[name] for name in names])
        gradients = dict(zip(names, found, strict=True))
        parameters = {name: value.detach() for name, value in state.parameters.items()}
        batch.optimizer.step(state.epoch + 1, parameters, gradients, state.first, state.second)

    @torch.no_grad()
    def _select(self, state: State, batch: TrainingBatch, hidden: Tensor) -> None:
        """Validate the parameters as they stand, remember the best, and end runs that have stopped improving."""
        loss, accuracy = batch.task.validate(self.model.head(state.parameters, batch, hidden, without_dropout))
        runs = np.asarray(state.batch)
        running = state.running
        broken = running & ~np.isfinite(loss)
        state.failed[runs[broken]] = state.done[runs[broken]] = True
        state.epochs[runs[running]] = state.epoch
        better = np.flatnonzero(running & ~broken & (loss < state.validation_loss[runs]))
        chosen = runs[better]
        state.validation_loss[chosen], state.validation_accuracy[chosen] = loss[better], accuracy[better]
        state.best_epoch[chosen] = state.epoch
        if len(chosen):
            source, target = (torch.from_numpy(index).to(self.device) for index in (better, chosen))
            for name, value in state.parameters.items():
                state.best[name].index_copy_(0, target, value.detach().index_select(0, source))
        if self.options.patience is not None:
            state.done[runs[state.epoch - state.best_epoch[runs] >= self.options.patience]] = True

    @torch.no_grad()
    def _finish_wave(self, state: State) -> None:
        """Predict with the best parameters of the wave's runs, and begin the next wave."""
        wave = self.waves[state.wave]
        batch = self.batch(wave)
        parameters = {name: value[wave] for name, value in state.best.items()}
        hidden = self.model.trunk(parameters, batch)
        state.predictions[wave] = batch.task.predict(self.model.head(parameters, batch, hidden, without_dropout))
        state.done[wave] = True
        state.wave += 1
        self._start_wave(state)

    def _boundary(self, state: State, progress: Progress | None, interrupted: Callable[[], bool]) -> None:
        """Between two epochs: tell the caller, and stop here if somebody asked for it."""
        try:
            if progress is not None:
                epochs = self.options.epochs
                progress(state.wave * epochs + state.epoch, epochs * len(self.waves), self._text(state))
            stop = interrupted()
        except KeyboardInterrupt:
            stop = True
        if stop:
            raise Interrupted(state.copy())

    def _text(self, state: State) -> str:
        wave = f"wave {state.wave + 1} of {len(self.waves)}, " if 1 < len(self.waves) > state.wave else ""
        running = int(state.running.sum())
        best = float(state.validation_loss.min())
        loss = f", best validation loss {best:.4f}" if np.isfinite(best) else ""
        return f"{wave}{running} of {len(self.runs)} runs training{loss}"

    def _outcome(self, state: State) -> Outcome:
        failed: NDArray[Any] = np.flatnonzero(state.failed)
        record = {
            "chain": self.order.record(),
            "waves": [len(wave) for wave in self.waves],
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
            validation_accuracy=state.validation_accuracy,
            failed=state.failed,
            predictions=state.predictions,
            parameters={name: value.detach().cpu().numpy() for name, value in state.best.items()},
            record=record,
        )


@contextmanager
def deferred_interrupt() -> Iterator[Callable[[], bool]]:
    """Hold Ctrl-C back until the end of the epoch: inside one, the parameters are half updated.

    A second Ctrl-C interrupts at once. Signals can only be held in the main thread; elsewhere nothing is changed.
    """
    pressed: list[int] = []

    def handler(number: int, frame: Any) -> None:
        if pressed:
            raise KeyboardInterrupt
        pressed.append(number)

    previous = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or previous is not signal.default_int_handler:
        yield lambda: False
        return
    signal.signal(signal.SIGINT, handler)
    try:
        yield lambda: bool(pressed)
    finally:
        signal.signal(signal.SIGINT, previous)
