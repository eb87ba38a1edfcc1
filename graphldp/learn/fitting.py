"""`fit`: all runs in full batch where memory holds them, in batches of nodes where it does not or where asked."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from graphldp.learn.device import resolve_device
from graphldp.learn.engine import Trainer
from graphldp.learn.memory import MemoryLimitError
from graphldp.learn.minibatch import AUTO_SIZE, BatchTrainer
from graphldp.learn.neighbors import NeighborTrainer, missing_sampler
from graphldp.learn.problem import Options, Outcome, Problem, Run
from graphldp.learn.processes import Processes
from graphldp.learn.row_store import Stores
from graphldp.learn.state import State
from graphldp.progress import Progress

__all__ = ["fit", "trainer"]


def fit(
    problem: Problem,
    runs: Sequence[Run],
    options: Options | None = None,
    *,
    device: str | torch.device = "auto",
    progress: Progress | None = None,
    state: State | None = None,
    processes: Processes | None = None,
    stores: Stores | None = None,
) -> Outcome:
    """Train all runs as one batched model and return what each has become.

    Args:
        problem: the graph and the inputs.
        runs: the models to train.
        options: the backbone and how it is trained.
        device: `auto`, `cpu`, `cuda`, `mps`, or a torch device.
        progress: called with (epochs done, epochs in all, text) before each epoch.
        state: of an interrupted training of the same runs, which is continued.
        processes: those that share the runs, each of which calls this with the same arguments; all of them get the
            whole outcome.
        stores: where batches of nodes keep filtered inputs that `max_memory` does not hold.

    Raises:
        Interrupted: on Ctrl-C, between two epochs; it carries the state to continue from.
    """
    where = resolve_device(device) if isinstance(device, str) else device
    with trainer(problem, runs, options or Options(), where, processes, stores) as chosen:
        return chosen.fit(progress, state)


def trainer(
    problem: Problem,
    runs: Sequence[Run],
    options: Options,
    device: torch.device,
    processes: Processes | None = None,
    stores: Stores | None = None,
) -> Trainer:
    """Return what trains these runs: in batches if `options` ask for it, or if nothing else fits into memory."""
    kind = NeighborTrainer if options.model.decoupled() is None else BatchTrainer
    if options.batch_size:
        return kind(problem, runs, options, device, processes, size=options.batch_size, stores=stores)
    try:
        return Trainer(problem, runs, options, device, processes)
    except MemoryLimitError as error:
        if not options.task.by_node:
            raise
        missing = missing_sampler(options.model.name) if kind is NeighborTrainer else None
        if missing is not None:
            raise MemoryLimitError(f"{error}. It would fit in batches, but {missing}") from error
        return kind(problem, runs, options, device, processes, size=AUTO_SIZE, stores=stores, automatic=True)
