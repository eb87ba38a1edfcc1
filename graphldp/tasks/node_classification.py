"""The class of each node."""

from graphldp.measures import CLASSES
from graphldp.tasks.base import TaskEntry

__all__ = ["ENTRY"]

ENTRY = TaskEntry(
    task="node-classification",
    title="node classification",
    learns=("labels",),
    measures=CLASSES,
    targets="labels",
    guess="guessing the commonest class",
    predicts="the class of every node",
    public={"links": "the graph", "labels": "the labels"},
)
