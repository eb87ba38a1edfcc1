"""Which of several yes/no labels hold for each node, as proteins have functions."""

from graphldp.measures import share
from graphldp.tasks.base import TaskEntry

__all__ = ["ENTRY"]

ENTRY = TaskEntry(
    task="multi-label",
    title="multi-label classification",
    learns=("sets",),
    measures=(share("micro_f1", "micro-F1"), share("macro_f1", "macro-F1")),
    targets="labels",
    guess="giving everybody the same labels",
    predicts="the probability of each label of every node",
    public="the graph and the labels",
)
