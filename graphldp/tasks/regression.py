"""A number of each node: the l2 norm of her features, as in TOGL's Table 13."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphldp.measures import NUMBERS
from graphldp.tasks.base import Target, TaskEntry

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphldp.graph import Graph

__all__ = ["ENTRY", "NORM"]


def _norm(graph: Graph) -> NDArray[Any]:
    import numpy as np

    squares = graph.features.multiply(graph.features).sum(axis=1)
    found: NDArray[Any] = np.sqrt(np.asarray(squares, dtype=np.float64).ravel())
    return found


NORM = Target(name="l2 norm of the features", of=_norm)

ENTRY = TaskEntry(
    task="regression",
    title="regression",
    learns=("numbers",),
    measures=NUMBERS,
    targets="numbers",
    guess="always answering the mean",
    predicts="a number for every node",
    public={"links": "the graph", "numbers": "the numbers to learn"},
    target=NORM,
    longer=2.0,  # 1.7 on CiteSeer and 3.3 on Cora
)
