"""Which of several yes/no labels hold for each node, as proteins have functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphldp.measures import share
from graphldp.tasks.base import Target, TaskEntry, TrainingLoss

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from torch import Tensor

    from graphldp.graph import Graph

__all__ = ["ENTRY", "YES_NO"]

_MEASURES = (share("micro_f1", "micro-F1"), share("macro_f1", "macro-F1"))


def _sets(graph: Graph) -> NDArray[Any]:
    assert graph.label_sets is not None
    return graph.label_sets.astype(float)


def _cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    from torch.nn.functional import binary_cross_entropy_with_logits

    return binary_cross_entropy_with_logits(outputs, targets, reduction="none")


def _scores(truth: NDArray[Any], guess: NDArray[Any]) -> Mapping[str, float]:
    from graphldp.learn.tasks.metrics import set_macro_f1, set_micro_f1  # numpy, which `--help` does without

    there, said = truth > 0.5, guess > 0.5
    return {"micro_f1": set_micro_f1(there, said), "macro_f1": set_macro_f1(there, said)}


def _commonest(seen: NDArray[Any]) -> NDArray[Any]:
    """Return the set for everybody with the highest micro-F1."""
    import numpy as np

    share = seen.mean(axis=0)
    order = np.argsort(-share, kind="stable")
    f1 = 2 * np.cumsum(share[order]) / (np.arange(1, len(order) + 1) + max(share.sum(), np.finfo(float).tiny))
    out: NDArray[Any] = np.zeros_like(share)
    out[order[: int(f1.argmax()) + 1]] = 1.0
    return out


YES_NO = TrainingLoss(
    name="yes-no",
    of=_cross_entropy,
    predicts=lambda outputs: outputs.sigmoid(),
    measures=_MEASURES,
    scores=_scores,
    standardized=False,
    several=True,
    constant=_commonest,
)

ENTRY = TaskEntry(
    task="multi-label",
    title="multi-label classification",
    learns=("sets",),
    measures=_MEASURES,
    targets="labels",
    guess="giving everybody the same labels",
    predicts="the probability of each label of every node",
    public={"links": "the graph", "labels": "the labels"},
    target=Target(name="set of labels", of=_sets, private=False, loss=YES_NO),
    learner="regression",
)
