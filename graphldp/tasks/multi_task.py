"""The class of each node and a number, by one model."""

from graphldp.measures import CLASSES, NUMBERS
from graphldp.tasks.base import TaskEntry
from graphldp.tasks.regression import NORM

__all__ = ["ENTRY"]

ENTRY = TaskEntry(
    task="multi-task",
    title="classification and regression",
    learns=("labels", "numbers"),
    measures=(*CLASSES, *NUMBERS),
    targets="labels",
    guess="guessing the commonest class",
    predicts="the class of every node, and a number for it",
    public={"links": "the graph", "labels": "the labels", "numbers": "the numbers to learn"},
    target=NORM,
)
