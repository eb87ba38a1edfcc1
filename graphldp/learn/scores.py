"""Scores of the test part: the only functions that are given hidden targets, for final runs alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from graphldp.errors import DataError
from graphldp.learn.device import resolve_device
from graphldp.learn.engine import Trainer
from graphldp.learn.problem import Options, Outcome, Problem, Run
from graphldp.learn.tasks.base import Metrics
from graphldp.learn.tasks.edges import EdgeSplit
from graphldp.learn.tasks.links import LinkPrediction, PairScores
from graphldp.learn.tasks.metrics import average_precision, macro_f1, roc_auc
from graphldp.learn.tasks.regression import scores_of
from graphldp.splits import score
from graphldp.tasks import SQUARED, TrainingLoss

__all__ = ["link_scores", "score_classes", "score_links", "score_values"]


def score_classes(
    predictions: NDArray[np.integer[Any]], labels: NDArray[np.integer[Any]], nodes: NDArray[np.integer[Any]]
) -> Metrics:
    """Return accuracy and macro-F1 on `nodes`, one number per row of `predictions` [runs, n]."""
    guess = np.atleast_2d(predictions)
    accuracy = score(guess, labels, nodes)
    truth = np.asarray(labels)[nodes]
    return {"accuracy": accuracy, "macro_f1": np.array([macro_f1(truth, row[nodes]) for row in guess])}


def score_values(
    predictions: ArrayLike, values: ArrayLike, nodes: NDArray[np.integer[Any]], loss: TrainingLoss = SQUARED
) -> Metrics:
    """Return the loss's measures on `nodes`, one number per row of `predictions` [runs, n], or [n] of one run.

    Where the nodes have several numbers, [n, width], `predictions` are [runs, n, width] or [n, width].
    """
    if not len(nodes):
        raise DataError("there are no nodes to score: the split has no test nodes")
    truth = np.asarray(values, dtype=np.float64)[nodes]
    if not np.isfinite(truth).all():
        raise DataError("a node without a finite value cannot be scored")
    guess = np.asarray(predictions, dtype=np.float64)
    guess = guess[np.newaxis] if guess.ndim == truth.ndim else guess
    return scores_of(loss, [(truth, row) for row in guess[:, nodes]])


@torch.no_grad()
def link_scores(
    problem: Problem,
    runs: Sequence[Run],
    options: Options,
    outcome: Outcome,
    pairs: Sequence[NDArray[np.int64]],
    *,
    device: str | torch.device = "auto",
) -> list[NDArray[np.float32]]:
    """Return for each run the logits of its pairs (2 x K): the higher, the more likely linked.

    Problem, runs and options are those of the training, outcome is what came of it.
    """
    if not isinstance(options.task, LinkPrediction):
        raise DataError(f"only a link predictor scores pairs; these runs were trained for {options.task.name}")
    if not len(runs) == len(pairs) == len(outcome.best_epoch):
        raise DataError(f"{len(outcome.best_epoch)} trained runs, but {len(runs)} runs and {len(pairs)} sets of pairs")
    where = resolve_device(device) if isinstance(device, str) else device
    trainer = Trainer(problem, runs, options, where)
    out = []
    for r, some in enumerate(pairs):
        parameters = {name: torch.from_numpy(value[r : r + 1]).to(where) for name, value in outcome.parameters.items()}
        outputs = trainer.outputs([r], parameters)
        out.append(PairScores(some, problem.nodes, where)(outputs, parameters)[:, 0].cpu().numpy())
    return out


def score_links(
    problem: Problem,
    runs: Sequence[Run],
    options: Options,
    outcome: Outcome,
    splits: Sequence[EdgeSplit],
    *,
    device: str | torch.device = "auto",
) -> Metrics:
    """Return AUC and average precision of each run on the test edges of its own split; arguments as for `link_scores`.

    A split whose visible part is not the one that the run was trained on is refused: its test edges may have been seen.
    """
    for r, (run, split) in enumerate(zip(runs, splits, strict=True)):
        if run.targets is None or run.targets.digest() != split.visible().digest():
            raise DataError(f"run {r} was trained on another edge split than the one it is to be scored on")
    tests = [np.concatenate([split.test, split.test_negative], axis=1) for split in splits]
    found = link_scores(problem, runs, options, outcome, tests, device=device)
    pairs = [np.split(one, 2) for one in found]
    return {
        "auc": np.array([roc_auc(*pair) for pair in pairs]),
        "average_precision": np.array([average_precision(*pair) for pair in pairs]),
    }
